"""The exponential mechanism with a base measure, sampled exactly.

Given pieces with integer sizes L_j and integer losses s_j, choose piece j with probability
proportional to L_j exp(-rate (s_j - min s)). Floating point proposes a piece; integers alone decide
whether the proposal is accepted, so the law is the true one and not its rounding. A million pieces
take about the time of three sorts. The proof is in ``docs/proofs/ordered_choice.md``; in short:

1. Integers Q_j >= T_j := 2^k L_j exp(-rate (s_j - min s)) are computed, zero only for L_j = 0.
2. U is uniform below sum(Q) and falls into piece j at height r, 0 <= r < Q_j; V is uniform in
   [0, 1).
3. The proposal is accepted if r + V < T_j; otherwise both are drawn again. Given acceptance, piece
   j has probability proportional to the length of {r + V < T_j}, which is T_j because Q_j >= T_j.

This is rejection sampling (von Neumann, 1951) with the acceptance decided lazily: bits of V and of
an integer enclosure of T_j are added until they settle the comparison. The number of draws affects
only the time of a release.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from quorate._validate import float_down
from quorate.core.noise import NoiseSource
from quorate.core.noise.exact_decisions import exp_enclosure
from quorate.exceptions import NumericalFailure, ParameterError, SchemaError

__all__ = [
    "Proposal",
    "check_pieces",
    "choose_heavy",
    "choose_weighted",
    "gaps_of",
]

_PROPOSAL_BITS = 61
"""The Q_j add up to about 2^61: their sum is exact in int64, and a rejection is a rarity."""

_BITS_AT_ONCE = 32
"""The number of bits of V and of T_j that each refinement adds."""

_LARGEST_EXPONENT = 700.0
"""Beyond it exp(-x) is bounded by exp(-700), which keeps floats normal."""

_BLOCK = 1 << 14
"""Weights computed at once; their temporaries fit into a processor's cache."""

_LOG_2 = 0.6931471805599453
_SERIES = tuple((-1) ** i / math.factorial(i) for i in range(12))
"""Coefficients of exp(-r); for abs(r) <= 0.35 the rest of the series is below 2^-46."""


def choose_weighted(
    lengths: NDArray[np.uint64],
    losses: NDArray[np.int64],
    *,
    rate: Fraction,
    noise: NoiseSource,
) -> int:
    """Return piece j with probability exactly proportional to lengths[j] exp(-rate losses[j]).

    Parameters
    ----------
    lengths : array of integers >= 0, with a sum below 2**64
        Size of each piece; a piece of size zero is never chosen.
    losses : array of int64
        Smaller is better; any values are allowed.
    rate : Fraction >= 0
    noise : NoiseSource

    Examples
    --------
    >>> from quorate.core.noise import SecureNoise
    >>> lengths = np.array([2**62, 0, 1], dtype=np.uint64)
    >>> losses = np.array([400, -1, 0])
    >>> choose_weighted(lengths, losses, rate=Fraction(1, 2), noise=SecureNoise())
    2
    """
    if not (isinstance(rate, Fraction) and rate >= 0):
        raise ParameterError(f"Expected rate to be a Fraction >= 0, got rate={rate!r}.")
    lengths, losses = check_pieces(lengths, losses)
    gaps = gaps_of(lengths, losses)
    proposal = Proposal.of(lengths, gaps, rate)
    while True:
        piece, height = proposal.locate(noise.uniform_below(proposal.total))
        target = _Target(int(lengths[piece]), rate * int(gaps[piece]), proposal.shift)
        if target.exceeds(height, noise, size=proposal.size(piece)):
            return piece


@dataclass(frozen=True)
class Proposal:
    """Integers Q_j >= 2**shift * L_j * exp(-rate * gap_j), and their running sum.

    The bound holds by construction: only additions, multiplications and powers of two are used,
    which IEEE 754 rounds correctly, and their summed relative error (below 2**-40) is covered by a
    relative margin of 2**-36. No library exponential is trusted. The sampler checks it again before
    use.

    >>> lengths, gaps = np.array([5, 0, 1], dtype=np.uint64), np.array([0, 0, 3], dtype=np.uint64)
    >>> proposal = Proposal.of(lengths, gaps, Fraction(1))
    >>> proposal.size(1)
    0
    >>> proposal.size(0) >= 5 * 2**proposal.shift
    True
    """

    cumulative: NDArray[np.int64]
    shift: int

    @classmethod
    def of(
        cls,
        lengths: NDArray[np.uint64],
        gaps: NDArray[np.uint64],
        rate: Fraction,
        *,
        bits: int = _PROPOSAL_BITS,
    ) -> Proposal:
        """Bound every weight from above; gaps are losses minus the smallest loss."""
        weights = _weights_from_above(lengths, gaps, rate)
        shift = bits - int(np.frexp(weights.sum())[1])
        weights *= 2.0**shift
        sizes = weights.astype(np.int64)
        sizes += lengths > 0
        return cls(np.cumsum(sizes, out=sizes), shift)

    @property
    def total(self) -> int:
        """Sum of all Q_j."""
        return int(self.cumulative[-1])

    def size(self, piece: int) -> int:
        """Return Q_j."""
        return int(self.cumulative[piece]) - (int(self.cumulative[piece - 1]) if piece else 0)

    def locate(self, drawn: int) -> tuple[int, int]:
        """Return the piece in which ``drawn`` lies, and how far from the start of that piece."""
        piece = int(np.searchsorted(self.cumulative, drawn, side="right"))
        return piece, drawn - (int(self.cumulative[piece - 1]) if piece else 0)


def _weights_from_above(
    lengths: NDArray[np.uint64], gaps: NDArray[np.uint64], rate: Fraction
) -> NDArray[np.float64]:
    """Return lengths * exp(-rate * gaps), too large by a relative 2**-35 (to exp(-700))."""
    weights = np.empty(lengths.shape)
    factor = min(float_down(rate), np.finfo(np.float64).max)
    for start in range(0, lengths.size, _BLOCK):
        block = slice(start, start + _BLOCK)
        np.multiply(_exp_from_above(gaps[block], factor), lengths[block], out=weights[block])
    weights *= 1 + 2.0**-36
    return weights


def _exp_from_above(gaps: NDArray[np.uint64], rate: float) -> NDArray[np.float64]:
    """Return exp(-rate * gaps), at least exp(-700); too small by a relative 2**-40 at most."""
    exponents = gaps.astype(np.float64)
    with np.errstate(over="ignore", under="ignore"):
        exponents *= rate
        exponents *= 1 - 2.0**-50
    np.minimum(exponents, _LARGEST_EXPONENT, out=exponents)
    halvings = np.rint(exponents * (1 / _LOG_2))
    exponents -= halvings * _LOG_2
    powers = np.full_like(exponents, _SERIES[-1])
    for coefficient in _SERIES[-2::-1]:
        powers *= exponents
        powers += coefficient
    return np.asarray(np.ldexp(powers, -halvings.astype(np.int32)))


@dataclass(frozen=True)
class _Target:
    """The real number T = 2**shift * length * exp(-exponent), enclosed as tightly as needed."""

    length: int
    exponent: Fraction
    shift: int

    def enclosure(self, bits: int) -> tuple[Fraction, Fraction]:
        """Return bounds on T that are about 2**-bits apart."""
        precision = max(bits + self.shift + self.length.bit_length(), 1)
        lower, upper = exp_enclosure(self.exponent, bits=precision)
        unit = self.length * Fraction(2) ** (self.shift - precision)
        return lower * unit, upper * unit

    def exceeds(self, height: int, noise: NoiseSource, *, size: int) -> bool:
        """Return whether height + V < T, for V uniform in [0, 1); refuse a proposal below T."""
        drawn, bits = 0, 0
        while True:
            lower, upper = self.enclosure(bits + _BITS_AT_ONCE)
            if lower > size:
                raise NumericalFailure("A proposal weight is too small; no guarantee is claimed.")
            if height + Fraction(drawn + 1, 1 << bits) <= lower:
                return True
            if height + Fraction(drawn, 1 << bits) >= upper:
                return False
            drawn = (drawn << _BITS_AT_ONCE) + noise.uniform_below(1 << _BITS_AT_ONCE)
            bits += _BITS_AT_ONCE


def check_pieces(
    lengths: NDArray[np.uint64], losses: NDArray[np.int64]
) -> tuple[NDArray[np.uint64], NDArray[np.int64]]:
    """Return sizes as uint64 and losses as int64; refuse arrays that are not valid pieces.

    >>> check_pieces(np.array([3, 0]), np.array([1, -1]))[0]
    array([3, 0], dtype=uint64)
    """
    lengths, losses = np.asarray(lengths), np.asarray(losses)
    if lengths.dtype.kind not in "iu" or losses.dtype.kind not in "iu" or losses.dtype == np.uint64:
        raise SchemaError(
            f"Expected integer lengths and int64 losses, got {lengths.dtype} and {losses.dtype}."
        )
    if lengths.ndim != 1 or lengths.shape != losses.shape:
        raise SchemaError("Expected one length and one loss for each piece, in one axis.")
    if lengths.dtype.kind == "i" and np.any(lengths < 0):
        raise SchemaError("Expected no piece of negative length; sort the edges first.")
    lengths = lengths.astype(np.uint64, copy=False)
    # The sum of the lengths may wrap around; the sum of their upper halves cannot.
    high, wrapped = int(np.sum(lengths >> np.uint64(32))), int(np.sum(lengths))
    if wrapped == 0 or high >= 2**32 or wrapped < high << 32:
        raise SchemaError("Expected pieces that cover at least one and fewer than 2**64 points.")
    return lengths, losses.astype(np.int64, copy=False)


def gaps_of(lengths: NDArray[np.uint64], losses: NDArray[np.int64]) -> NDArray[np.uint64]:
    """Return losses minus the smallest loss of a piece that is not empty; zero for empty ones.

    >>> gaps_of(np.array([0, 3, 1], dtype=np.uint64), np.array([-9, 5, 7]))
    array([0, 0, 2], dtype=uint64)
    """
    covered = lengths > 0
    best = losses.min(where=covered, initial=np.iinfo(np.int64).max)
    # Wrap-around subtraction of the two's complements is exact, because a gap is below 2**64.
    gaps = losses.astype(np.uint64) - np.asarray(best).astype(np.uint64)
    gaps[~covered] = 0
    return gaps


def choose_heavy(
    lengths: Sequence[int], losses: Sequence[int], *, rate: Fraction, noise: NoiseSource
) -> int:
    """Return piece j as :func:`choose_weighted` does, for a few pieces of any length.

    The same three steps are done with Python integers instead of floats: Q_j is the upper end of an
    enclosure, so pieces of 2^256 points need no other proof.

    >>> from quorate.core.noise import SecureNoise
    >>> choose_heavy([2**256, 1], [200, 0], rate=Fraction(1, 1000), noise=SecureNoise())
    0
    """
    best = min(loss for length, loss in zip(lengths, losses, strict=True) if length)
    targets = [
        _Target(length, rate * (loss - best if length else 0), _PROPOSAL_BITS)
        for length, loss in zip(lengths, losses, strict=True)
    ]
    sizes = [math.ceil(target.enclosure(0)[1]) for target in targets]
    while True:
        height, piece = noise.uniform_below(sum(sizes)), 0
        while height >= sizes[piece]:
            height -= sizes[piece]
            piece += 1
        if targets[piece].exceeds(height, noise, size=sizes[piece]):
            return piece
