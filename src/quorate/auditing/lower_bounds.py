"""Statistical lower bounds on the epsilon of a black box.

Run a mechanism many times on two neighbouring data sets, and search for an event that is much more
likely on one of them. Then bound its two probabilities: if p is at least ``p_low`` and q at most
``q_high``, no epsilon below ``log((p_low - delta) / q_high)`` can be true. [1]_ The event is chosen
on one half of the samples and tested on the other half, so the stated confidence holds for any
choice of the event. The two probabilities are bounded by Clopper and Pearson's exact intervals
[2]_, so it holds for every number of samples.

A bound below the claim proves nothing; a bound above it refutes the claim. To prove a claim for a
small world, use :mod:`quorate.auditing.exact`.

References
----------
.. [1] Ding, Wang, Wang, Zhang, Kifer. Detecting violations of differential privacy. CCS 2018,
   arXiv:1805.10277.
.. [2] Clopper, Pearson. The use of confidence or fiducial limits illustrated in the case of the
   binomial. Biometrika 26(4), 1934.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from quorate import _validate
from quorate.core.guarantees import Guarantee
from quorate.exceptions import ParameterError, SchemaError

__all__ = ["LowerBound", "epsilon_lower_bound"]

MAX_GROUPS = 32
"""Events are unions of at most this many groups of outputs; more would fit the noise."""

MAX_CUTS = 1000  # machine: time
"""Thresholds tried in each order of the outputs."""


@dataclass(frozen=True, kw_only=True)
class LowerBound:
    """A statistical lower bound on the privacy loss.

    Attributes
    ----------
    epsilon : float
        With probability ``confidence`` over the samples, the true epsilon at ``delta`` is at least
        this.
    delta : float
    confidence : float
    hits, neighbour_hits : int
        How often the chosen event happened in the test halves of the two samples.
    trials, neighbour_trials : int
        Sizes of the test halves.

    Examples
    --------
    >>> bound = epsilon_lower_bound([0] * 500, [1] * 500)  # the output is the record itself
    >>> round(bound.epsilon, 2), bound.hits, bound.neighbour_hits
    (2.82, 250, 0)
    """

    epsilon: float
    delta: float
    confidence: float
    hits: int
    trials: int
    neighbour_hits: int
    neighbour_trials: int

    def refutes(self, claim: Guarantee) -> bool:
        """Whether the claim is false, at the stated confidence.

        >>> epsilon_lower_bound([0] * 500, [1] * 500).refutes(Guarantee(epsilon=1.0))
        True
        """
        if claim.delta > self.delta:
            raise ParameterError(
                f"Expected a claim with delta <= {self.delta!r}, for which the bound was computed, "
                f"got delta={claim.delta!r}. Compute the bound with delta={claim.delta!r}."
            )
        return self.epsilon > claim.epsilon

    def __str__(self) -> str:
        at = f" at delta = {self.delta:.4g}" if self.delta else ""
        return (
            f"With confidence 1 - {1 - self.confidence:.2g} epsilon is at least "
            f"{self.epsilon:.4g}{at}: an event happened {self.hits} times in {self.trials} runs "
            f"and {self.neighbour_hits} times in {self.neighbour_trials} runs on the neighbour."
        )


def epsilon_lower_bound(
    samples: Sequence[Any] | NDArray[Any],
    neighbour_samples: Sequence[Any] | NDArray[Any],
    *,
    delta: float = 0.0,
    confidence: float = 1 - 1e-6,
) -> LowerBound:
    """Bound epsilon from below by samples of a mechanism on two neighbouring data sets.

    Parameters
    ----------
    samples, neighbour_samples : sequences
        Independent outputs on each data set: numbers or hashable objects. Reduce vectors to one
        number first; any function of the output may be used, since it cannot raise epsilon.
    delta : float, default=0.0
        The delta of the claim.
    confidence : float, default=1 - 1e-6
        Probability with which the bound holds.

    Returns
    -------
    LowerBound

    Examples
    --------
    Example: randomized response that tells the truth three times in four has epsilon = log 3 =
    1.099:

    >>> from quorate.core.public_randomness import public_generator
    >>> truthful = public_generator(0).random((2, 100_000)) < 0.75
    >>> print(epsilon_lower_bound(truthful[0], ~truthful[1]))
    With confidence 1 - 1e-06 epsilon is at least 1.05...: an event happened ... times in 50000 runs
    and ... times in 50000 runs on the neighbour.
    """
    _validate.delta(delta=delta)
    _validate.probability(confidence=confidence)
    codes, n_codes = _encode(samples, neighbour_samples)
    chosen, tested = _halves(codes[0]), _halves(codes[1])
    event, swap = _best_event(chosen[0], tested[0], n_codes, delta, 1 - confidence)
    likely, unlikely = (tested[1], chosen[1]) if swap else (chosen[1], tested[1])
    hits, misses = int(event[likely].sum()), int(event[unlikely].sum())
    bound = _log_ratio(
        np.array([hits]), likely.size, np.array([misses]), unlikely.size, delta, 1 - confidence
    )
    if swap:
        hits, misses, likely, unlikely = misses, hits, unlikely, likely
    return LowerBound(
        epsilon=max(0.0, float(bound[0])),
        delta=delta,
        confidence=confidence,
        hits=hits,
        trials=likely.size,
        neighbour_hits=misses,
        neighbour_trials=unlikely.size,
    )


def _best_event(
    first: NDArray[np.intp], second: NDArray[np.intp], n_codes: int, delta: float, risk: float
) -> tuple[NDArray[np.bool_], bool]:
    """Return the event (a mask over outputs) with the best bound, and which data set it favours."""
    counts = np.bincount(first, minlength=n_codes), np.bincount(second, minlength=n_codes)
    best, best_event, best_swap = -math.inf, np.ones(n_codes, dtype=np.bool_), False
    for order in _orders(*counts):
        cumulated = [np.cumsum(count[order]) for count in counts]
        ends = np.unique(np.linspace(0, n_codes - 1, MAX_CUTS).round().astype(np.intp))
        for swap in (False, True):
            p, q = cumulated[swap], cumulated[not swap]
            bounds = _log_ratio(p[ends], int(p[-1]), q[ends], int(q[-1]), delta, risk)
            top = int(np.argmax(bounds))
            if bounds[top] > best:
                best, best_swap = float(bounds[top]), swap
                best_event = np.zeros(n_codes, dtype=np.bool_)
                best_event[order[: ends[top] + 1]] = True
    return best_event, best_swap


def _orders(first: NDArray[np.intp], second: NDArray[np.intp]) -> Iterator[NDArray[np.intp]]:
    """Yield orderings of the outputs; their prefixes are candidate events.

    Increasing or decreasing order gives thresholds; the order of estimated likelihood ratios gives
    general events.
    """
    natural = np.arange(first.size)
    yield natural
    yield natural[::-1]
    # Groups of about equal pooled count, so that no ratio rests on a handful of samples.
    pooled = np.cumsum(first + second)
    groups = np.maximum(pooled - 1, 0) * MAX_GROUPS // pooled[-1]
    in_first = np.bincount(groups, weights=first, minlength=MAX_GROUPS)[groups]
    in_second = np.bincount(groups, weights=second, minlength=MAX_GROUPS)[groups]
    ratio = np.log((in_first + 0.5) / (in_second + 0.5))
    by_ratio = np.lexsort((natural, ratio))
    yield by_ratio
    yield by_ratio[::-1]


def _log_ratio(
    hits: NDArray[np.intp],
    trials: int,
    neighbour_hits: NDArray[np.intp],
    neighbour_trials: int,
    delta: float,
    risk: float,
) -> NDArray[np.float64]:
    """Return log((p_low - delta) / q_high), where each bound fails with probability risk / 2."""
    from scipy.special import betainccinv, betaincinv

    p_low = np.where(hits > 0, betaincinv(np.maximum(hits, 1), trials - hits + 1, risk / 2), 0.0)
    missed = neighbour_trials - neighbour_hits
    q_high = np.where(
        missed > 0, betainccinv(neighbour_hits + 1, np.maximum(missed, 1), risk / 2), 1.0
    )
    # The quantiles carry a relative error far below 1e-9; take it off in the safe direction.
    numerator = np.maximum(p_low * (1 - 1e-9) - delta, 0.0)
    with np.errstate(divide="ignore"):
        bounds = np.log(numerator) - np.log(np.minimum(1.0, q_high * (1 + 1e-9)))
    # A quantile that failed proves nothing.
    return np.asarray(np.where(np.isnan(bounds), -np.inf, bounds))


def _halves(codes: NDArray[np.intp]) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    return codes[::2], codes[1::2]


def _encode(
    samples: Sequence[Any] | NDArray[Any], neighbour_samples: Sequence[Any] | NDArray[Any]
) -> tuple[tuple[NDArray[np.intp], NDArray[np.intp]], int]:
    """Return a code for each output: numbers by their order, others by appearance."""
    sizes = len(samples), len(neighbour_samples)
    if min(sizes) < 4:
        raise SchemaError(f"Expected at least 4 samples of each data set, got {sizes}.")
    pooled = [*samples, *neighbour_samples]
    if any(isinstance(output, np.ndarray) and output.ndim for output in pooled):
        raise SchemaError("Expected one number or label per sample; reduce each output to one.")
    if all(isinstance(output, int | float | np.number | np.bool_) for output in pooled):
        numbers = np.asarray(pooled, dtype=np.float64)
        _, codes = np.unique(numbers, return_inverse=True)
        codes = codes.reshape(-1)
    else:
        seen: dict[Hashable, int] = {}
        codes = np.array([seen.setdefault(output, len(seen)) for output in pooled], dtype=np.intp)
    return (codes[: sizes[0]], codes[sizes[0] :]), int(codes.max()) + 1
