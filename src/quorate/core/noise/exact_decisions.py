"""Comparisons in a draw that floats cannot decide, decided in integers.

A draw has to decide whether a uniform real number, of which a word gives the first 64 bits, is
below c 2^k exp(-e). This is first tried in floats (:mod:`quorate.core.noise.sources`). About once
in a billion times the result is within a generous bound of the floating-point error. Then the
comparison is decided here: the uniform number gets further words, and exp(-e), for the exact
rational e, gets further digits, until they differ. So floats save time, but never decide a
comparison that they could get wrong.
"""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

__all__ = [
    "GAUSSIAN_FACTOR",
    "LARGEST_SCALE",
    "WORD",
    "WordSource",
    "exp_enclosure",
    "further_zeros",
    "is_below",
]

WordSource = Callable[[int], NDArray[np.uint64]]

LARGEST_SCALE = 2.0**48
"""Magnitudes stay below 2^55 up to here, but for a probability of 2^-63 each."""

WORD = 64
"""Bits of a word."""

GAUSSIAN_FACTOR = Fraction(4, 5)
"""The c of Gaussian noise: 2^k exp(-k^2 / 2) is at most 1.2131."""


def further_zeros(words: WordSource) -> int:
    """Return how many zero bits precede the first one bit, if a whole word had only zeros."""
    zeros = 0
    while not (word := int(words(1)[0])):
        zeros += WORD
    return zeros + (word & -word).bit_length() - 1


def is_below(law: str, scale: float, k: int, magnitude: int, mark: int, words: WordSource) -> bool:
    """Return whether the real number beginning with ``mark`` is below c 2^k exp(-e)."""
    exponent = Fraction(magnitude) / Fraction(scale)
    factor = Fraction(2**k)
    if law == "discrete_gaussian":
        exponent = exponent * exponent / 2
        factor *= GAUSSIAN_FACTOR
    shown = WORD
    while True:
        digits = shown + k + 32
        lower, upper = exp_enclosure(exponent, bits=digits)
        # Both sides times 2^(shown + digits).
        if (mark + 1) << digits <= factor * (lower << shown):
            return True
        if mark << digits >= factor * (upper << shown):
            return False
        mark = (mark << WORD) | int(words(1)[0])
        shown += WORD


def exp_enclosure(x: Fraction, *, bits: int) -> tuple[int, int]:
    """Return integers ``lower <= 2**bits * exp(-x) <= upper`` that are a few units apart.

    It uses integer arithmetic only. The argument is halved until it is below 1/2, the alternating
    series is summed with truncated terms (each too small by less than 2), and the result is squared
    back with outward rounding.

    >>> exp_enclosure(Fraction(0), bits=10)
    (1024, 1024)
    >>> lower, upper = exp_enclosure(Fraction(1), bits=40)
    >>> lower / 2**40 < 0.3678794411714423 < upper / 2**40
    True
    >>> exp_enclosure(Fraction(10**30), bits=64)
    (0, 1)
    """
    if x == 0:
        return 1 << bits, 1 << bits
    if x >= bits:
        return 0, 1
    halvings = int(x).bit_length() + 1
    working = bits + halvings + 12
    argument = (x.numerator << working) // (x.denominator << halvings)
    lower, upper = _exp_series(argument + 1, working)[0], _exp_series(argument, working)[1]
    for _ in range(halvings):
        lower = (lower * lower) >> working
        upper = -((-upper * upper) >> working)
    excess = working - bits
    return lower >> excess, -(-upper >> excess)


def _exp_series(argument: int, bits: int) -> tuple[int, int]:
    """Enclose 2**bits * exp(-argument / 2**bits) for an argument of at most 1/2 + 2**-bits."""
    term, total, n = 1 << bits, 0, 0
    while term:
        total += -term if n % 2 else term
        n += 1
        term = (term * argument >> bits) // n
    # n truncated terms err by less than 2 each; the rest of the series is below 2 as well.
    return max(total - 2 * n - 2, 0), total + 2 * n + 2
