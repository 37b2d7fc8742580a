"""Laws of exact samplers in floating point: for audits and plans, never for a draw.

A sampler draws exactly, with integers only. This module has the law of each sampler, up to
rounding. An audit gets from it every possible outcome and its probability.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from quorate.core.noise.exponential import check_pieces, gaps_of
from quorate.exceptions import ParameterError

__all__ = [
    "PiecewiseLaw",
    "flip_probabilities",
    "key_law",
    "law_of",
    "point_law",
    "weighted_probabilities",
]

Integers = NDArray[np.int64]
Places = NDArray[np.uint64]

# machine: more nodes of a panel change nothing beyond rounding.
_NODES = 40


@dataclass(frozen=True)
class PiecewiseLaw:
    """The law of an integer that is uniform on each of consecutive pieces; for audits.

    Parameters
    ----------
    lower : int
        The first integer of the first piece.
    lengths : array of integers
        How many integers each piece has; none is allowed.
    probabilities : array of float
        How likely each piece is.

    Examples
    --------
    >>> PiecewiseLaw(0, np.array([3, 1]), np.array([0.75, 0.25])).size
    4
    """

    lower: int
    lengths: NDArray[Any]
    probabilities: NDArray[np.float64]

    @property
    def size(self) -> int:
        """The number of integers."""
        return sum(int(length) for length in self.lengths)


def law_of(method: str, public: Mapping[str, Any], held: Any) -> PiecewiseLaw:
    """Return the law of a sampler, from its public parameters and from its private input ``held``.

    For mechanisms with a law of their own, ``held`` is a function that returns the law.

    >>> law_of("secret_sample", {}, 8).size
    8
    """
    if callable(held):
        law: PiecewiseLaw = held()
        return law
    match method:
        case "ordered_choice" | "ordered_flips":
            entries, losses = held
            weights = np.concatenate(entries.weights)
            repeated = np.tile(losses, len(entries.weights))
            flips = method == "ordered_flips"
            chances = point_law(weights, repeated, rate=public["rate"], flips=flips)
            return PiecewiseLaw(0, np.concatenate(entries.held), chances)
        case "universe_choice":
            return key_law(held, size=public["size"], rate=public["rate"])
        case "truncated_laplace":
            ones = np.ones(2 * held.reach + 1, dtype=np.int64)
            return PiecewiseLaw(0, ones, held.probabilities)
        case "secret_sample":
            return PiecewiseLaw(0, np.array([held], dtype=object), np.ones(1))
    raise ParameterError(f"Expected a sampler whose law is known, got {method!r}.")


def point_law(
    lengths: Places, losses: Integers, *, rate: Fraction, flips: bool = False
) -> NDArray[np.float64]:
    """Return the probability of each piece of plain losses, in floating point; for audits.

    >>> point_law(np.array([1, 1]), np.array([0, 1]), rate=Fraction(1)).round(4).tolist()
    [0.7311, 0.2689]
    """
    if not flips:
        return weighted_probabilities(lengths, losses, rate=rate)
    sizes, losses = check_pieces(lengths, losses)
    return flip_probabilities(sizes.astype(np.float64), losses.astype(np.float64) * -float(rate))


def weighted_probabilities(
    lengths: NDArray[np.uint64], losses: NDArray[np.int64], *, rate: Fraction
) -> NDArray[np.float64]:
    """Return the law of :func:`choose_weighted` in floating point, for audits and plans.

    >>> weighted_probabilities(np.array([3, 1]), np.array([0, 0]), rate=Fraction(1)).tolist()
    [0.75, 0.25]
    """
    lengths, losses = check_pieces(lengths, losses)
    with np.errstate(over="ignore", under="ignore"):
        weights = lengths * np.exp(-float(rate) * gaps_of(lengths, losses))
    return np.asarray(weights / weights.sum())


def key_law(counts: Mapping[int, int], *, size: int, rate: Fraction) -> PiecewiseLaw:
    """Divide the universe at the keys with votes: into runs of keys without votes, and single keys.

    >>> key_law({1: 1}, size=3, rate=Fraction(1)).probabilities.round(4).tolist()
    [0.2119, 0.5761, 0.2119]
    """
    lengths: list[int] = []
    exponents: list[float] = []
    most, after = max(counts.values(), default=0), 0
    for key, count in [*counts.items(), (size, None)]:
        if key > after:
            lengths.append(key - after)
            exponents.append(math.log(key - after) - float(rate) * most)
        if count is not None:
            lengths.append(1)
            exponents.append(float(rate) * (count - most))
        after = key + 1
    weights = np.exp(np.array(exponents) - max(exponents))
    return PiecewiseLaw(0, np.array(lengths, dtype=object), weights / weights.sum())


def flip_probabilities(
    sizes: NDArray[np.float64], exponents: NDArray[np.float64]
) -> NDArray[np.float64]:
    r"""Return the law of :func:`first_heads` in floating point; for audits.

    Level j has probability
    :math:`\int_0^1 N_j p_j (1 - t p_j)^{-1} \prod_i (1 - t p_i)^{N_i} \, dt`. The integrand falls
    from 0 on at the scale of the number of heads, so panels grow from there.

    >>> flip_probabilities(np.array([1.0, 1.0]), np.log([1.0, 0.5])).round(6).tolist()
    [0.75, 0.25]
    """
    flips = np.exp(exponents - np.max(exponents, where=sizes > 0, initial=-np.inf))
    flips = np.where(sizes > 0, flips, 0.0)
    heads = float(sizes @ flips)
    nodes, weights = np.polynomial.legendre.leggauss(_NODES)
    edges = [0.0]
    while edges[-1] < 1.0:
        edges.append(min(1.0, max(0.5 / heads, 1.7 * edges[-1])))
    chances = np.zeros(len(sizes))
    for start, stop in pairwise(edges):
        for node, weight in zip(nodes, weights, strict=True):
            t = start + (stop - start) * (node + 1) / 2
            log_none = float(sizes @ np.log1p(-t * flips))
            here = sizes * flips / (1.0 - t * flips) * math.exp(log_none)
            chances += (stop - start) / 2 * weight * here
    return np.asarray(chances / chances.sum())
