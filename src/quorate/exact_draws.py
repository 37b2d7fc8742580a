"""Integers of an exact law, made of uniform words, many at once.

Discrete Gaussian, Laplace and geometric noise by rejection. A magnitude x = k 2^b + u is proposed,
where k counts the zeros before the first one of a row of fair coins and u is b fair bits, so that x
comes up with probability 2^-(k+1+b). It is kept with probability c 2^k w(x), where w(x) = exp(-e)
is the mass that is wanted, up to a factor. What is kept has mass proportional to w, exactly. With
2^b at least as large as the scale no such probability exceeds one: e is at least k for Laplace and
geometric noise (c = 1), and at least k^2 / 2 for Gaussian noise, where 2^k exp(-k^2 / 2) is at most
1.2131 (c = 4/5). Two-sided laws have a sign, and refuse -0. Between a quarter and a half of all
proposals are kept.

Whether a uniform real number, of which a word shows the first 64 bits, lies below c 2^k exp(-e) is
first asked in floats, by sums, products and one quotient alone, which are right to half a unit in
the last place; no exponential of a mathematics library is trusted. Their error stays below
2^-38 of the result (see :func:`_chances`). Where the answer is not clear by far more than that,
once in a billion times, it is found in integers: the word gets further words behind it, and
exp(-e), for the exact rational e, further digits, until the two part. So floats save time and
decide nothing that they could get wrong.

Nothing is drawn here: words come from :mod:`quorate.noise`.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

__all__ = ["LARGEST_SCALE", "exact_integers"]

Integers = NDArray[np.int64]
Words = NDArray[np.uint64]
WordSource = Callable[[int], Words]

LARGEST_SCALE = 2.0**48
"""Magnitudes stay below 2^55 up to here, but for a probability of 2^-63 each."""

_WORD = 64
_COINS = np.uint64(2**63 - 1)
_ONE = np.uint64(1)
# How far floats must be from the answer to be believed: far beyond what they can err by.
_RELATIVE = 2.0**-30
_ABSOLUTE = 2.0**-60
# Beyond this exponent a chance is below 2^-64.
_HOPELESS = 45.0
_HALVINGS = 11
# A proposal is kept with a chance of at least a quarter; so many that one round mostly does.
_PROPOSALS = 3.5
_AT_ONCE = 2**13
_SPARE = 16
_GAUSSIAN_FACTOR = Fraction(4, 5)


def exact_integers(law: str, count: int, *, scale: float, words: WordSource) -> Integers:
    """Return ``count`` independent integers of a law, from as many uniform words as it takes.

    Parameters
    ----------
    law : {"discrete_gaussian", "discrete_laplace", "geometric"}
        Mass proportional to exp(-z^2 / (2 scale^2)), exp(-abs(z) / scale), or that for z >= 0.
    count : int
    scale : float
        At most :data:`LARGEST_SCALE`; its exact value is meant.
    words : callable
        Returns so many independent uniform words of 64 bits.

    Examples
    --------
    >>> from quorate.noise import SecureNoise
    >>> words = SecureNoise().uniform_words
    >>> noise = exact_integers("discrete_gaussian", 1000, scale=100.0, words=words)
    >>> bool(80 < noise.std() < 120), noise.dtype
    (True, dtype('int64'))
    """
    found = np.empty(count, dtype=np.int64)
    missing = count
    while missing:
        tries = int(_PROPOSALS * min(missing, _AT_ONCE)) + _SPARE
        drawn = words(3 * tries).reshape(3, tries)
        # One integer is mostly among the first three proposals: arrays would take longer.
        way = _first_kept if count == 1 else _kept
        kept = way(law, scale, drawn[0], drawn[1], drawn[2], words)[:missing]
        found[count - missing : count - missing + len(kept)] = kept
        missing -= len(kept)
    return found


def _kept(
    law: str, scale: float, coins: Words, bits: Words, marks: Words, words: WordSource
) -> Integers:
    """Return the integers that are kept of one proposal for each coin, in their order."""
    width = _bits_of(scale)
    tosses = coins & _COINS
    zeros = np.bitwise_count(tosses ^ (tosses - _ONE)).astype(np.int64) - 1
    magnitudes = (zeros << width) + (bits & np.uint64(2**width - 1)).astype(np.int64)
    chances = _chances(law, scale, zeros, magnitudes)
    shown = marks * 2.0**-_WORD
    keep = shown < chances * (1.0 - _RELATIVE) - _ABSOLUTE
    unclear = ~keep & (shown <= chances * (1.0 + _RELATIVE) + _ABSOLUTE)
    unclear |= tosses == 0
    for place in np.flatnonzero(unclear).tolist():
        k = int(zeros[place])
        if tosses[place] == 0:
            more = _further_zeros(words)
            k += more
            magnitudes[place] += more << width
        keep[place] = _is_below(law, scale, k, int(magnitudes[place]), int(marks[place]), words)
    if law == "geometric":
        return magnitudes[keep]
    negative = coins > _COINS
    keep &= (magnitudes > 0) | ~negative
    return np.where(negative, -magnitudes, magnitudes)[keep]


def _first_kept(
    law: str, scale: float, coins: Words, bits: Words, marks: Words, words: WordSource
) -> list[int]:
    """Return the first integer that is kept, if any: the first one of :func:`_kept`."""
    width = _bits_of(scale)
    for coin, low, mark in zip(coins.tolist(), bits.tolist(), marks.tolist(), strict=True):
        tosses, negative = coin & int(_COINS), coin > int(_COINS)
        zeros = (tosses & -tosses).bit_length() - 1 if tosses else _WORD - 1
        magnitude = (zeros << width) + (low & 2**width - 1)
        chance, shown = _chance(law, scale, zeros, magnitude), mark * 2.0**-_WORD
        keep = shown < chance * (1.0 - _RELATIVE) - _ABSOLUTE
        if not tosses or (not keep and shown <= chance * (1.0 + _RELATIVE) + _ABSOLUTE):
            if not tosses:
                more = _further_zeros(words)
                zeros += more
                magnitude += more << width
            keep = _is_below(law, scale, zeros, magnitude, mark, words)
        if law == "geometric":
            negative = False
        if keep and (magnitude or not negative):
            return [-magnitude if negative else magnitude]
    return []


def _chance(law: str, scale: float, zeros: int, magnitude: int) -> float:
    """Return what :func:`_chances` says of one proposal, by the same operations."""
    exponent = magnitude / scale
    if law == "discrete_gaussian":
        exponent = exponent * exponent * 0.5
    exponent = min(exponent - zeros * math.log(2.0), _HOPELESS) * -(2.0**-_HALVINGS)
    chance = exponent / 6.0
    for divisor in (5.0, 4.0, 3.0, 2.0, 1.0):
        chance = (chance + 1.0) * exponent / divisor
    chance += 1.0
    for _ in range(_HALVINGS):
        chance *= chance
    return chance * float(_GAUSSIAN_FACTOR) if law == "discrete_gaussian" else chance


def _bits_of(scale: float) -> int:
    """Return the smallest b >= 0 with 2^b >= scale."""
    mantissa, exponent = math.frexp(scale)
    return max(0, exponent - (mantissa == 0.5))


def _chances(law: str, scale: float, zeros: Integers, magnitudes: Integers) -> NDArray[np.float64]:
    """Return about c 2^k exp(-e), by operations that IEEE 754 rounds correctly.

    With f = e - k ln 2 below 45 the quotient, the square and the difference err by less than 2^-43
    together, since e < 45 + k ln 2 < 90 and k <= 63. Seven terms of the series of exp(-f / 2048)
    leave out less than 2^-50.7, their roundings add less than 2^-52, and each of 11 squarings
    doubles the error and adds 2^-53: less than 2^-38 in all.
    """
    with np.errstate(all="ignore"):
        exponents = magnitudes / scale
        if law == "discrete_gaussian":
            exponents *= exponents
            exponents *= 0.5
        exponents -= zeros * math.log(2.0)
        # So is an overflow; there is no NaN, as zero over a scale is zero.
        np.minimum(exponents, _HOPELESS, out=exponents)
        exponents *= -(2.0**-_HALVINGS)
        chances = exponents / 6.0
        for divisor in (5.0, 4.0, 3.0, 2.0, 1.0):
            chances += 1.0
            chances *= exponents
            chances /= divisor
        chances += 1.0
        for _ in range(_HALVINGS):
            chances *= chances
    return chances * float(_GAUSSIAN_FACTOR) if law == "discrete_gaussian" else chances


def _further_zeros(words: WordSource) -> int:
    """Return how many zeros follow before the first one, when all coins of a word were zeros."""
    zeros = 0
    while not (word := int(words(1)[0])):
        zeros += _WORD
    return zeros + (word & -word).bit_length() - 1


def _is_below(law: str, scale: float, k: int, magnitude: int, mark: int, words: WordSource) -> bool:
    """Whether the real number that begins with the bits of ``mark`` is below c 2^k exp(-e)."""
    exponent = Fraction(magnitude) / Fraction(scale)
    factor = Fraction(2**k)
    if law == "discrete_gaussian":
        exponent = exponent * exponent / 2
        factor *= _GAUSSIAN_FACTOR
    shown = _WORD
    while True:
        digits = shown + k + 32
        lower, upper = _exponential(exponent, digits)
        # Both sides times 2^(shown + digits).
        if (mark + 1) << digits <= factor * (lower << shown):
            return True
        if mark << digits >= factor * (upper << shown):
            return False
        mark = (mark << _WORD) | int(words(1)[0])
        shown += _WORD


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
