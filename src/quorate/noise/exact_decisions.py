"""What floats cannot decide about a draw, decided in integers.

Whether a uniform real number, of which a word shows the first 64 bits, lies below c 2^k exp(-e) is
first asked in floats (:mod:`quorate.noise.sources`). Where the answer is not clear by far more than
floats can err by, once in a billion times, it is found here: the word gets further words behind it,
and exp(-e), for the exact rational e, further digits, until the two part. So floats save time and
decide nothing that they could get wrong.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

__all__ = ["GAUSSIAN_FACTOR", "LARGEST_SCALE", "WORD", "WordSource", "further_zeros", "is_below"]

WordSource = Callable[[int], NDArray[np.uint64]]

LARGEST_SCALE = 2.0**48
"""Magnitudes stay below 2^55 up to here, but for a probability of 2^-63 each."""

WORD = 64
"""Bits of a word."""

GAUSSIAN_FACTOR = Fraction(4, 5)
"""The c of Gaussian noise: 2^k exp(-k^2 / 2) is at most 1.2131."""


def further_zeros(words: WordSource) -> int:
    """Return how many zeros follow before the first one, when all coins of a word were zeros."""
    zeros = 0
    while not (word := int(words(1)[0])):
        zeros += WORD
    return zeros + (word & -word).bit_length() - 1


def is_below(law: str, scale: float, k: int, magnitude: int, mark: int, words: WordSource) -> bool:
    """Whether the real number that begins with the bits of ``mark`` is below c 2^k exp(-e)."""
    exponent = Fraction(magnitude) / Fraction(scale)
    factor = Fraction(2**k)
    if law == "discrete_gaussian":
        exponent = exponent * exponent / 2
        factor *= GAUSSIAN_FACTOR
    shown = WORD
    while True:
        digits = shown + k + 32
        lower, upper = _exponential(exponent, digits)
        # Both sides times 2^(shown + digits).
        if (mark + 1) << digits <= factor * (lower << shown):
            return True
        if mark << digits >= factor * (upper << shown):
            return False
        mark = (mark << WORD) | int(words(1)[0])
        shown += WORD


def _exponential(exponent: Fraction, digits: int) -> tuple[int, int]:
    """Return integers around 2^digits exp(-exponent), for a rational exponent >= 0.

    >>> _exponential(Fraction(1), 20), round(2**20 * math.exp(-1), 3)
    ((385749, 385750), 385749.553)
    """
    if exponent >= digits:
        return 0, 1
    halvings = math.floor(exponent).bit_length()
    places = digits + 2 * halvings + 32
    # exp(-y) for y = exponent / 2^halvings < 1; cutting y costs less than one unit.
    y = (exponent.numerator << places) // (exponent.denominator << halvings)
    total, term, terms = 0, 1 << places, 0
    while term:
        total += -term if terms % 2 else term
        terms += 1
        term = (term * y) // (terms << places)
    # Every term is at most two units too small, and those left out are together less than two.
    slack = 2 * terms + 4
    lower, upper = max(0, total - slack), total + slack
    for _ in range(halvings):
        lower, upper = lower * lower >> places, (upper * upper >> places) + 1
    return lower >> places - digits, (upper >> places - digits) + 1
