r"""Users who share a seed draw from different distributions and mostly get the same outcome (G1).

Each outcome has a Gumbel number that everybody computes from the shared seed. A user chooses the
outcome with the largest sum of log-weight and Gumbel number. Its law is exactly the normalised
weights. Two users with similar weights mostly agree, with a probability that is known in closed
form. With infinitely sharp weights only the best outcomes remain, and all users break ties among
them in the same way. [1]_ [2]_

Gumbel numbers belong to outcomes, never to positions: users with different lists of outcomes must
still get the same number for the same outcome.

References
----------
.. [1] Ghazi, Kumar, Manurangsi. User-level private learning via correlated sampling. NeurIPS 2021,
   Definition 7 and Theorem 8. Holenstein. Parallel repetition. STOC 2007.
.. [2] Moulton, Jiang. Maximally consistent sampling and the Jaccard index of probability
   distributions. ICDM 2018.
"""

from __future__ import annotations

import hashlib
from collections.abc import Hashable, Mapping

import numpy as np
from numpy.typing import NDArray

from quorate.papers.stability.shared_seed import SharedSeed

__all__ = [
    "agreement_probability",
    "choose_best",
    "choose_together",
    "outcome_id",
]

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]


def choose_together(
    log_weights: Floats, ids: NDArray[np.generic], seed: SharedSeed, *, stream: str = "choice"
) -> Integers:
    """Return, for each row of weights, the index of the outcome chosen by the shared seed.

    Definition 7 of paper G: each row on its own is a draw from its own law.

    Parameters
    ----------
    log_weights : array of shape (users, outcomes)
        Logarithms of weights, not necessarily normalised; minus infinity for weight 0.
    ids : array of integers below 2^64
        The identity of each outcome, one per column.
    seed : SharedSeed
    stream : str, default="choice"
        A name for this use of the seed.

    Examples
    --------
    >>> weights = np.log([[0.5, 0.3, 0.2], [0.4, 0.4, 0.2]])
    >>> seeds = [SharedSeed(s) for s in range(2000)]
    >>> both = np.array([choose_together(weights, np.arange(3), s) for s in seeds])
    >>> bool(abs(np.mean(both[:, 0] == both[:, 1]) - 0.858) < 0.03)
    True
    """
    gumbels = seed.gumbels(stream, ids)
    order = np.argsort(np.asarray(ids), kind="stable")
    # Equal sums, which have no chance, go to the smallest id.
    best: Integers = order[np.argmax((log_weights + gumbels)[:, order], axis=1)]
    return best


def choose_best(
    losses: NDArray[np.generic],
    ids: NDArray[np.generic],
    seed: SharedSeed,
    *,
    stream: str = "choice",
) -> Integers:
    """Return, for each row, the first of the best outcomes in a random order that all users share.

    This is the limit of infinitely sharp weights: a uniform draw among the outcomes of smallest
    loss. Two users agree with the probability |A ∩ B| / |A ∪ B| for their sets A and B.

    >>> losses = np.array([[0, 0, 1], [1, 0, 0]])
    >>> seeds = [SharedSeed(s) for s in range(2000)]
    >>> both = np.array([choose_best(losses, np.arange(3), seed) for seed in seeds])
    >>> bool(abs(np.mean(both[:, 0] == both[:, 1]) - 1 / 3) < 0.05)
    True
    """
    ranks = np.empty(len(ids), dtype=np.int64)
    words = seed.words(stream, ids)
    ranks[np.lexsort((np.asarray(ids), words))] = np.arange(len(ids))
    best = losses == losses.min(axis=1, keepdims=True)
    first: Integers = np.argmin(np.where(best, ranks, len(ids)), axis=1)
    return first


def outcome_id(outcome: int | bytes) -> int:
    """Return a 64-bit id of an outcome of any length, the same on every machine.

    >>> outcome_id(2**200) == outcome_id(2**200) != outcome_id(2**200 + 1)
    True
    """
    if isinstance(outcome, int):
        text = b"int" + outcome.to_bytes(outcome.bit_length() // 8 + 1, "big")
    else:
        text = b"raw" + outcome
    return int.from_bytes(hashlib.blake2b(text, digest_size=8).digest(), "big")


def agreement_probability(
    first: Mapping[Hashable, float], second: Mapping[Hashable, float]
) -> float:
    r"""Return the probability that two users with these weights agree (Theorem 8).

    It is the probability Jaccard similarity :math:`\sum_w 1 / \sum_v \max(P(v)/P(w), Q(v)/Q(w))`
    over the common outcomes w. No other use of shared randomness is better for all pairs at once
    [2]_. It is at least :math:`(1-d)/(1+d)` for the total variation distance d.

    >>> agreement_probability({"a": 1.0, "b": 1.0}, {"b": 1.0, "c": 1.0})
    0.333...
    >>> agreement_probability({"a": 0.5, "b": 0.3, "c": 0.2}, {"a": 0.4, "b": 0.4, "c": 0.2})
    0.8...
    """
    outcomes = [key for key in first if first[key] > 0]
    outcomes += [key for key in second if second[key] > 0 and not first.get(key, 0) > 0]
    p = np.array([first.get(key, 0.0) for key in outcomes])
    q = np.array([second.get(key, 0.0) for key in outcomes])
    p, q = p / p.sum(), q / q.sum()
    with np.errstate(divide="ignore"):
        ratio = p / q
    order = np.argsort(ratio)
    p, q, ratio = p[order], q[order], ratio[order]
    # Where P(v)/Q(v) is at least P(w)/Q(w) the maximum is P(v)/P(w), elsewhere Q(v)/Q(w).
    below = np.searchsorted(ratio, ratio, side="left")
    above = np.append(np.cumsum(p[::-1])[::-1], 0.0)[below]
    under = np.concatenate([[0.0], np.cumsum(q)])[below]
    common = (p > 0) & (q > 0)
    return float(np.sum(1.0 / (above[common] / p[common] + under[common] / q[common])))
