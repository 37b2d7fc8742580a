"""The only randomness that protects privacy: exact integers from the operating system's entropy.

Uniform integers come from :mod:`secrets`, or from whole words of entropy. Additive noise is
computed from these words, many integers at once, by rejection sampling. A magnitude x = k 2^b + u
is proposed, where k is the number of zeros before the first one in a row of fair coins and u is b
fair bits. So x has probability 2^-(k+1+b). It is accepted with probability c 2^k w(x), where w(x) =
exp(-e) is the desired mass, up to a factor. So accepted values have mass exactly proportional to w.
If 2^b is at least the scale, no such probability exceeds one: e is at least k for Laplace and
geometric noise (c = 1), and at least k^2 / 2 for Gaussian noise, where 2^k exp(-k^2 / 2) is at most
1.2131 (c = 4/5). Two-sided laws have a sign, and reject -0. Between a quarter and a half of all
proposals are accepted. Acceptance is first decided in floats, by sums, products and one quotient
alone, which are accurate to half a unit in the last place; no exponential of a mathematics library
is trusted. A rough value with an error of less than 2^-16 (see :func:`_chances`) is mostly enough.
If the decision is within this error, a value with a relative error of less than 2^-38
(:func:`_chance`) is used. If it is also within a generous bound of that error,
:mod:`quorate.core.noise.exact_decisions` decides in integers.

Noisy maxima, and noise of enormous scales, come from OpenDP. It samples integer noise in big
integers, adds, and only then saturates at 64 bits. Its noisy maximum is permute-and-flip with exact
flips on rationals (with replacement, the exponential mechanism, for zero-concentrated privacy).
[1]_ [2]_ OpenDP does not check its inputs here, so every input is checked in this module. The time
of a draw depends on the values: an adversary who can measure the time of a release is outside the
threat model.

References
----------
.. [1] McKenna, Sheldon. Permute-and-Flip: a new mechanism for differentially private selection.
   arXiv:2010.12603.
.. [2] OpenDP, ``measurements/noise`` and ``measurements/noisy_top_k`` with their proofs, as
   published at docs.rs/crate/opendp. The noisy maximum was read in version 0.14.2; for the
   installed version the tests check the laws, by sampling.
"""

from __future__ import annotations

import math
import os
import secrets
import threading
from abc import abstractmethod
from collections.abc import Sequence
from contextvars import ContextVar
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from quorate import _validate
from quorate._validate import int64_vector, scale_of
from quorate.core.guarantees import Numerics
from quorate.core.noise.composed_laws import JOINT_LAWS, ComposedLaws
from quorate.core.noise.exact_decisions import (
    GAUSSIAN_FACTOR,
    LARGEST_SCALE,
    WORD,
    WordSource,
    further_zeros,
    is_below,
)
from quorate.core.noise.opendp_laws import opendp_laws
from quorate.core.once import this_process
from quorate.exceptions import SchemaError

__all__ = ["NoiseSource", "SecureNoise", "ambient_noise", "exact_integers", "exact_rows"]

_SMALLEST, _LARGEST = np.iinfo(np.int64).min, np.iinfo(np.int64).max
_WORDS = 1 << 64

_COINS = np.uint64(2**63 - 1)
_ONE = np.uint64(1)
# How far floats must be from the answer to be believed: far beyond what they can err by.
_RELATIVE = 2.0**-30
_ABSOLUTE = 2.0**-60
# How far rough ones must be.
_ROUGHLY = 2.0**-15
# Beyond this exponent a chance is below 2^-64.
_HOPELESS = 45.0
_HALVINGS = 11
# An odd number: half of a square that is so often halved is a square.
_FEW_HALVINGS = 7
_AT_ONCE = 2**13
# One integer is mostly among so many proposals.
_FEW = 8
_FACTOR = float(GAUSSIAN_FACTOR)
_LOG_2 = math.log(2.0)
# One over k!, from the last term of the series of the exponential to the one before 1.
_SERIES = tuple(1.0 / math.factorial(k) for k in range(6, 0, -1))

Integers = NDArray[np.int64]
Words = NDArray[np.uint64]
Floats = NDArray[np.float64]


class NoiseSource(ComposedLaws):
    """A source of noise; mechanisms get all their randomness from one.

    The public methods check their inputs and pass them to three hooks, so that no source can omit a
    check: add noise of a distribution, choose by a distribution, draw a uniform integer. Samplers
    made of several draws go through :meth:`sample`. ``numerics`` is copied to the guarantee of
    every release.
    """

    numerics: Numerics = Numerics.VOID

    def discrete_laplace(self, values: Integers, *, scale: float) -> Integers:
        """Add independent integers z with mass proportional to exp(-abs(z) / scale).

        The sum saturates at the ends of int64, which is post-processing.

        >>> SecureNoise().discrete_laplace(np.array([10, -10]), scale=1.0).shape
        (2,)
        """
        return self._add("discrete_laplace", int64_vector(values), scale_of(scale=scale))

    def discrete_gaussian(self, values: Integers, *, sigma: float) -> Integers:
        """Add independent integers z with mass proportional to exp(-z**2 / (2 sigma**2)).

        >>> SecureNoise().discrete_gaussian(np.array([10, -10]), sigma=3.0).dtype
        dtype('int64')
        """
        return self._add("discrete_gaussian", int64_vector(values), scale_of(sigma=sigma))

    def geometric(self, values: Integers, *, scale: float) -> Integers:
        """Add independent integers z >= 0 with mass proportional to exp(-z / scale).

        One-sided: the two-sided geometric is :meth:`discrete_laplace`.

        >>> bool(np.all(SecureNoise().geometric(np.array([5, 7]), scale=2.0) >= [5, 7]))
        True
        """
        return self._add("geometric", int64_vector(values), scale_of(scale=scale))

    def uniform_below(self, upper: int) -> int:
        """Return a uniform integer among 0, ..., upper - 1, however large.

        >>> SecureNoise().uniform_below(2**200) < 2**200
        True
        """
        _validate.positive_integer(upper=upper)
        return self._uniform_below(int(upper))

    def uniform_words(self, count: int) -> Words:
        """Return ``count`` independent uniform words of 64 bits: random bits for many draws.

        A randomizer compares bits of a word with an integer threshold, so that a million exact
        draws need one call.

        >>> SecureNoise().uniform_words(3).dtype
        dtype('uint64')
        """
        _validate.non_negative_integer(count=count)
        return self._uniform_words(int(count))

    def permute_and_flip(self, scores: Integers, *, scale: float) -> int:
        """Return the index of the largest of ``scores[i] / scale`` plus exponential noise.

        >>> SecureNoise().permute_and_flip(np.array([0, 10**6, 0]), scale=1.0)
        1
        """
        return self._choose("permute_and_flip", _candidates(scores), scale_of(scale=scale))

    def gumbel_max(self, scores: Integers, *, scale: float) -> int:
        """Return index i with probability proportional to exp(scores[i] / scale).

        >>> SecureNoise().gumbel_max(np.array([0, 10**6, 0]), scale=1.0)
        1
        """
        return self._choose("gumbel_max", _candidates(scores), scale_of(scale=scale))

    def gaussian_ahead(self, sigmas: Sequence[float], *, size: int) -> DrawnAhead | None:
        """Draw vectors of discrete Gaussian noise for later releases, if this is quicker.

        A test double draws only at the release, so that its record stays in order.

        >>> ahead = SecureNoise().gaussian_ahead([3.0, 5.0], size=2)
        >>> ahead.add(np.array([10, -10]), sigma=5.0).shape
        (2,)
        """
        return None

    @abstractmethod
    def _choose(self, law: str, scores: Integers, scale: float) -> int: ...

    def _joint(self, law: str, values: Integers, scale: float) -> Integers:
        noisy: Integers = getattr(self, JOINT_LAWS[law])(values, scale)
        return noisy

    @staticmethod
    def _saturating(values: Integers, noise: Integers) -> Integers:
        total = values + noise
        overflown = ((values ^ total) & (noise ^ total)) < 0
        if not np.logical_or.reduce(overflown):  # as nearly always
            return total
        return np.where(overflown, np.where(values < 0, _SMALLEST, _LARGEST), total)

    def _uniform_words(self, count: int) -> Words:
        words = (self._uniform_below(_WORDS) for _ in range(count))
        return np.fromiter(words, np.uint64, count=count)


class SecureNoise(NoiseSource):
    """Exact noise from the operating system's entropy; the source of every real release.

    >>> SecureNoise().numerics.value
    'exact'
    """

    numerics = Numerics.EXACT

    def _add(self, law: str, values: Integers, scale: float) -> Integers:
        if law in JOINT_LAWS:
            return self._joint(law, values, scale)
        if scale <= LARGEST_SCALE:
            words = self._uniform_words
            if len(values) == 1:
                total = values.item() + _one_integer(law, scale, words)
                return np.array([min(max(total, _SMALLEST), _LARGEST)], dtype=np.int64)
            noise = exact_integers(law, len(values), scale=scale, words=words)
            return self._saturating(values, noise)
        if law == "geometric":
            totals = (int(value) + self._one_geometric(Fraction(scale)) for value in values)
            return np.fromiter((min(t, _LARGEST) for t in totals), np.int64, count=len(values))
        given = [int(values[0])] if len(values) == 1 else values  # a list crosses over sooner
        return np.array(opendp_laws()[law](scale=scale)(given), dtype=np.int64)

    def gaussian_ahead(self, sigmas: Sequence[float], *, size: int) -> DrawnAhead | None:
        """Draw vectors ahead by :func:`exact_rows`; for long vectors this would save no time."""
        scales = [scale for scale in map(float, sigmas) if 0.0 < scale <= LARGEST_SCALE]
        overridden = type(self)._add is not SecureNoise._add  # by who wants to see every release
        if overridden or not 0 < size * len(scales) <= _AT_ONCE:
            return None
        rows = exact_rows("discrete_gaussian", scales, size, self._uniform_words)
        return DrawnAhead(dict(zip(scales, rows, strict=True)))

    def _choose(self, law: str, scores: Integers, scale: float) -> int:
        return int(opendp_laws()[law](scale=scale)(scores))

    def _uniform_below(self, upper: int) -> int:
        return secrets.randbelow(upper)

    def _uniform_words(self, count: int) -> Words:
        # Little-endian on every machine, so that recorded bytes mean the same words everywhere.
        return np.frombuffer(os.urandom(8 * count), "<u8").astype(np.uint64, copy=False)

    def __repr__(self) -> str:
        return "SecureNoise()"


class DrawnAhead:
    """Vectors of Gaussian noise, by sigma, each used once and by the process that drew it.

    Before it is used, a vector does not depend on any data and has revealed nothing.

    >>> ahead = DrawnAhead({3.0: np.array([1, -2])})
    >>> ahead.add(np.array([10, 10]), sigma=3.0)
    array([11,  8])
    >>> ahead.add(np.array([10, 10]), sigma=3.0) is None
    True
    """

    def __init__(self, vectors: dict[float, Integers]) -> None:
        self._vectors, self._process = vectors, this_process()

    def add(self, values: Integers, *, sigma: float) -> Integers | None:
        """Add the vector of exactly this law and length, if there is one, and remove it."""
        if self._process != this_process():  # a fork: the parent adds what is here
            self._vectors = {}
        noise = self._vectors.pop(sigma, None)
        if noise is None or noise.shape != np.shape(values):
            return None
        return NoiseSource._saturating(int64_vector(values), noise)


def exact_integers(law: str, count: int, *, scale: float, words: WordSource) -> Integers:
    """Return ``count`` independent integers of a law, from as many uniform words as needed.

    Parameters
    ----------
    law : {"discrete_gaussian", "discrete_laplace", "geometric"}
        Mass proportional to exp(-z^2 / (2 scale^2)), exp(-abs(z) / scale), or that for z >= 0.
    count : int
    scale : float
        At most :data:`LARGEST_SCALE`; the float is taken as an exact number.
    words : callable
        Returns this many independent uniform words of 64 bits.

    Examples
    --------
    >>> words = SecureNoise().uniform_words
    >>> noise = exact_integers("discrete_gaussian", 1000, scale=100.0, words=words)
    >>> bool(80 < noise.std() < 120), noise.dtype
    (True, dtype('int64'))
    """
    found = np.empty(count, dtype=np.int64)
    missing = count
    while missing:
        tries = _tries(scale, min(missing, _AT_ONCE))
        kept = _kept(law, scale, words(3 * tries).reshape(3, tries), words)[:missing]
        if len(kept) == count:  # as nearly always
            return kept
        found[count - missing : count - missing + len(kept)] = kept
        missing -= len(kept)
    return found


def exact_rows(law: str, scales: Sequence[float], size: int, words: WordSource) -> list[Integers]:
    """Return ``size`` integers of each scale, as :func:`exact_integers` does, in one pass.

    >>> words = SecureNoise().uniform_words
    >>> [len(row) for row in exact_rows("discrete_gaussian", [5.0, 1e9], 3, words)]
    [3, 3]
    """
    tries, widths = zip(*((_tries(scale, size), _bits_of(scale)) for scale in scales), strict=True)
    drawn = words(3 * sum(tries)).reshape(3, -1)
    integers, keep = _judged(law, np.repeat(scales, tries), np.repeat(widths, tries), drawn, words)
    kept, start, rows = integers[keep], 0, []
    counts = np.add.reduceat(keep, np.cumsum((0, *tries[:-1])), dtype=np.int64)
    for scale, count in zip(scales, counts.tolist(), strict=True):
        row = kept[start : start + size]
        # What is kept does not depend on how many are, so that too few may be replaced by others.
        rows.append(row if count >= size else exact_integers(law, size, scale=scale, words=words))
        start += count
    return rows


def _tries(scale: float, count: int) -> int:
    """Return how many proposals usually contain ``count`` accepted ones, from public numbers."""
    share = max(0.2, 0.5 * scale * 2.0 ** -_bits_of(scale))
    return math.ceil((count + 1.5 * math.sqrt(count) + 1.0) / share)


def _kept(law: str, scale: float, drawn: Words, words: WordSource) -> Integers:
    """Return the accepted integers, with one proposal for each coin, in their order."""
    integers, keep = _judged(law, scale, _bits_of(scale), drawn, words)
    return integers[keep]


def _judged(
    law: str, scale: float | Floats, width: int | Integers, drawn: Words, words: WordSource
) -> tuple[Integers, NDArray[np.bool_]]:
    """Return proposals and which of them are accepted; each may have its own scale."""
    coins, bits, marks = drawn
    zeros = np.subtract(np.bitwise_count(coins ^ (coins - _ONE)), 1, dtype=np.int64)
    magnitudes = zeros << width
    magnitudes |= bits.view(np.int64) & ((1 << width) - 1)
    beyond = marks * 2.0**-WORD
    beyond -= _chances(law, scale, zeros, magnitudes)
    keep = beyond < 0.0
    # A row of 63 zeros may go on. However it does, its chance is below (2 / e)^63 < 2^-27: where
    # the answer is clear it is no.
    unclear = np.abs(beyond, out=beyond) <= _ROUGHLY
    for place in unclear.nonzero()[0].tolist():
        own = float(np.broadcast_to(scale, coins.shape)[place])
        proposal = int(coins[place] & _COINS), int(zeros[place]), int(magnitudes[place])
        keep[place], magnitudes[place] = _decided(law, own, *proposal, int(marks[place]), words)
    if law == "geometric":
        return magnitudes, keep
    signs = coins.view(np.int64) >> (WORD - 1)  # -1 or 0
    magnitudes ^= signs
    keep &= magnitudes != -1  # zero has one sign
    magnitudes -= signs
    return magnitudes, keep


def _one_integer(law: str, scale: float, words: WordSource) -> int:
    """Return one integer of a law without using arrays, which would take longer."""
    while (found := _first_kept(law, scale, words(3 * _FEW).reshape(3, _FEW), words)) is None:
        pass
    return found


def _first_kept(law: str, scale: float, drawn: Words, words: WordSource) -> int | None:
    """Return the first accepted integer, if any: the first one of :func:`_kept`."""
    width = _bits_of(scale)
    for coin, low, mark in zip(*drawn.tolist(), strict=True):
        tosses, negative = coin & int(_COINS), coin > int(_COINS)
        zeros = (tosses & -tosses).bit_length() - 1 if tosses else WORD - 1
        magnitude = (zeros << width) + (low & 2**width - 1)
        keep, magnitude = _decided(law, scale, tosses, zeros, magnitude, mark, words)
        if law == "geometric":
            negative = False
        if keep and (magnitude or not negative):
            return -magnitude if negative else magnitude
    return None


def _decided(
    law: str, scale: float, tosses: int, zeros: int, magnitude: int, mark: int, words: WordSource
) -> tuple[bool, int]:
    """Return whether one proposal is accepted, and its value; a row of zeros continues."""
    if tosses:
        chance, shown = _chance(law, scale, zeros, magnitude), mark * 2.0**-WORD
        if abs(shown - chance) > chance * _RELATIVE + _ABSOLUTE:
            return shown < chance, magnitude
    else:
        more = further_zeros(words)
        zeros += more
        magnitude += more << _bits_of(scale)
    return is_below(law, scale, zeros, magnitude, mark, words), magnitude


def _chance(law: str, scale: float, zeros: int, magnitude: int) -> float:
    """Return approximately c 2^k exp(-e), by operations that IEEE 754 rounds correctly.

    With f = e - k ln 2 below 45 the quotient, the square and the difference err by less than 2^-43
    together, since e < 45 + k ln 2 < 90 and k <= 63. Seven terms of the series of exp(-f / 2048)
    leave out less than 2^-50.7, their roundings and those of the coefficients, which count at most
    |f| / 2048 < 2^-5 of a unit, add less than 2^-52, and each of 11 squarings doubles the error and
    adds 2^-53: less than 2^-38 in all.
    """
    exponent = magnitude / scale
    if law == "discrete_gaussian":
        exponent = exponent * exponent * 0.5
    exponent = min(exponent - zeros * _LOG_2, _HOPELESS) * -(2.0**-_HALVINGS)
    chance = exponent * _SERIES[0]
    for coefficient in _SERIES[1:]:
        chance = (chance + coefficient) * exponent
    chance += 1.0
    for _ in range(_HALVINGS):
        chance *= chance
    return chance * _FACTOR if law == "discrete_gaussian" else chance


def _bits_of(scale: float) -> int:
    """Return the smallest b >= 0 with 2^b >= scale."""
    mantissa, exponent = math.frexp(scale)
    return max(0, exponent - (mantissa == 0.5))


def _chances(law: str, scale: float | Floats, zeros: Integers, magnitudes: Integers) -> Floats:
    """Return approximations of :func:`_chance` of many proposals, with errors below 2^-16.

    Three terms of the series of exp(-f / 128) leave an error below (f / 128)^3 / 6 if f > 0. After
    128 products this is at most exp(-f) (exp(d) - 1) with d = f^3 exp(f / 128) / 98304, which is
    less than 2^-16.1 everywhere; for -0.2 < f < 0 the error is less than 2^-20.
    """
    with np.errstate(all="ignore"):
        if law == "discrete_gaussian":
            exponents = magnitudes / (scale * 2.0 ** ((_FEW_HALVINGS + 1) // 2))
            exponents *= exponents
        else:
            exponents = magnitudes / (scale * 2.0**_FEW_HALVINGS)
        np.subtract(zeros * (_LOG_2 * 2.0**-_FEW_HALVINGS), exponents, out=exponents)
        # So is an overflow; there is no NaN, as zero over a scale is zero.
        np.maximum(exponents, _HOPELESS * -(2.0**-_FEW_HALVINGS), out=exponents)
        chances = exponents * 0.5
        chances += 1.0
        chances *= exponents
        chances += 1.0
        for _ in range(_FEW_HALVINGS):
            chances *= chances
        if law == "discrete_gaussian":
            chances *= _FACTOR
    return chances


_SECURE = SecureNoise()


@dataclass
class Block:
    """A block of ``use_noise``: its source, its process and thread, and whether it is active."""

    source: NoiseSource
    owner: tuple[int, int, int]
    running: bool = True


BLOCK: ContextVar[Block | None] = ContextVar("quorate_noise", default=None)


def ambient_noise() -> NoiseSource:
    """Return the source that a mechanism uses when none is given: secure, outside of tests.

    A block of :func:`~quorate.core.noise.doubles.use_noise` applies to the thread that opened it,
    until the block ends. Other threads, forked processes and code that runs after the block draw
    secure noise, even if they have a copy of the context.

    >>> ambient_noise()
    SecureNoise()
    """
    block = BLOCK.get()
    return block.source if block and block.running and block.owner == here() else _SECURE


def here() -> tuple[int, int, int]:
    return *this_process(), threading.get_ident()


def _candidates(scores: Integers) -> Integers:
    array = int64_vector(scores)
    if array.size == 0:
        raise SchemaError("Expected at least one candidate, got none.")
    return array
