r"""Permute-and-flip over very many candidates in few levels, sampled exactly.

Permute-and-flip asks all candidates in random order, each with its own coin, and takes the first
whose coin shows heads. That is a race: every candidate arrives at a uniform time, and of those with
heads the first one wins. Candidates of one loss are alike, so how many of them arrive with heads in
a short time has a binomial law; given these numbers everyone who arrived is equally likely to have
been the first. A domain of 2^32 points with a hundred losses costs a hundred such numbers.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from quorate.core.noise import NoiseSource
from quorate.core.noise.binomial import MOST_EXPECTED, RareSuccesses
from quorate.core.noise.exact_decisions import exp_enclosure

__all__ = ["binomial", "first_heads", "flip_probabilities"]

# Arrivals expected in one stretch of time: nobody arrives in one of a million.
_ARRIVALS = 14.0
_NODES = 40


@dataclass(frozen=True)
class _Arrival:
    r"""The chance of arriving with heads in stretch ``at`` of 2^halvings, given that not before.

    For heads with probability :math:`p = e^{-x}` and stretches of length :math:`\tau` it is
    :math:`\tau p / (1 - i \tau p)` in stretch i, which grows with p.
    """

    exponent: Fraction
    at: int
    halvings: int
    stays_away: bool = False

    def __call__(self, bits: int) -> tuple[int, int]:
        """Enclose 2**bits times the chance, or times what is left of it to 1."""
        work = bits + self.halvings + 16
        whole = 1 << (work + self.halvings)
        low, high = exp_enclosure(self.exponent, bits=work)
        lower = (low << bits) // (whole - self.at * low)
        upper = -((-high << bits) // (whole - self.at * high))
        upper = min(upper, 1 << bits)
        return ((1 << bits) - upper, (1 << bits) - lower) if self.stays_away else (lower, upper)


def binomial(
    trials: int, exponent: Fraction, *, at: int = 0, halvings: int = 0, noise: NoiseSource
) -> int:
    """Draw how many of ``trials`` candidates arrive with heads in one stretch of time.

    Heads have chance exp(-exponent). Of a chance above one half those who stay away are drawn, and
    trials come in lots of which few are expected to succeed, so that any number is possible.

    >>> from quorate.core.noise import SeededNoise
    >>> binomial(5, Fraction(0), noise=SeededNoise(0))
    5
    >>> 0 < binomial(1000, Fraction(7, 10), noise=SeededNoise(0)) < 1000
    True
    """
    if exponent == 0 and at == (1 << halvings) - 1:
        return trials
    arrival = _Arrival(exponent, at, halvings)
    often = arrival(64)[1] > 1 << 63
    chance = _Arrival(exponent, at, halvings, stays_away=True) if often else arrival
    # At most half of those that would be expected too many, whatever the enclosure's width.
    lot = max(1, (MOST_EXPECTED << 63) // max(1, chance(64)[1]))
    drawn, left = 0, trials
    while left:
        few = min(lot, left)
        drawn += RareSuccesses(few, chance).draw(noise)
        left -= few
    return trials - drawn if often else drawn


def first_heads(
    sizes: Sequence[int], gaps: Sequence[int], *, rate: Fraction, noise: NoiseSource
) -> int:
    """Return the level that permute-and-flip chooses from; level j has ``sizes[j]`` candidates.

    A candidate of level j shows heads with chance exp(-rate gaps[j]); some level of gap 0 must have
    a candidate, who arrives with heads in the last stretch if not before. Given the level, all of
    its candidates are equally likely.

    >>> from quorate.core.noise import SeededNoise
    >>> first_heads([2**40, 3], [100, 0], rate=Fraction(1), noise=SeededNoise(0))
    1
    """
    factor = float(rate)
    heads = math.fsum(
        n * math.exp(-min(factor * gap, 700.0)) for n, gap in zip(sizes, gaps, strict=True)
    )
    # How time is cut decides what a draw costs, and nothing about who comes first.
    halvings = max(1, math.ceil(math.log2(heads / _ARRIVALS)))
    at, arrived = 0, [0]
    while not any(arrived):
        arrived = [
            binomial(n, rate * gap, at=at, halvings=halvings, noise=noise)
            for n, gap in zip(sizes, gaps, strict=True)
        ]
        at += 1
    place, level = noise.uniform_below(sum(arrived)), 0
    while place >= arrived[level]:
        place -= arrived[level]
        level += 1
    return level


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
