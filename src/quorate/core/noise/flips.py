r"""Permute-and-flip over very many candidates with few distinct losses, sampled exactly.

Permute-and-flip considers all candidates in random order, each with its own coin, and returns the
first whose coin shows heads. This is a race: every candidate arrives at a uniform time, and the
first one with heads wins. Candidates with the same loss are exchangeable, so the number of them
that arrive with heads in a short time has a binomial law. Given these numbers, all who arrived are
equally likely to have been the first. A domain of 2^32 points with a hundred different losses needs
a hundred such numbers.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

from quorate.core.noise import NoiseSource
from quorate.core.noise.binomial import MOST_EXPECTED, RareSuccesses
from quorate.core.noise.exact_decisions import exp_enclosure

__all__ = ["binomial", "first_heads"]

# Arrivals expected in one stretch of time: nobody arrives in one of a million.
_ARRIVALS = 14.0


@dataclass(frozen=True)
class _Arrival:
    r"""The probability of arriving with heads in interval ``at`` of 2^halvings, if not before.

    For heads with probability :math:`p = e^{-x}` and intervals of length :math:`\tau` it is
    :math:`\tau p / (1 - i \tau p)` in interval i, which increases in p.
    """

    exponent: Fraction
    at: int
    halvings: int
    stays_away: bool = False

    def __call__(self, bits: int) -> tuple[int, int]:
        """Return an enclosure of 2**bits times the probability, or times its complement."""
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
    """Draw how many of ``trials`` candidates arrive with heads in one time interval.

    Heads have probability exp(-exponent). If the probability is above one half, the number of
    candidates without heads is drawn instead. Trials are processed in batches with few expected
    successes, so any number of trials is possible.

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
    """Return the level from which permute-and-flip chooses; level j has ``sizes[j]`` candidates.

    A candidate of level j shows heads with probability exp(-rate gaps[j]). Some level of gap 0 must
    have a candidate, which arrives with heads in the last interval if not before. Given the level,
    all of its candidates are equally likely.

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
