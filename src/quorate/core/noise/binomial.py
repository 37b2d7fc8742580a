"""The number of successes among very many trials, sampled exactly without making the trials.

A histogram over 2^256 keys has noise on each of them. Only the few keys above a threshold are
released; their number has a binomial law with an irrational probability. A uniform number is
compared with the distribution function. Integer enclosures of this function are refined until the
comparison is decided, so nothing is rounded, and the number of keys only affects the number of
digits.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

from quorate import _validate
from quorate.core.noise import NoiseSource
from quorate.exceptions import ParameterError

__all__ = ["MOST_EXPECTED", "RareSuccesses"]

MOST_EXPECTED = 32
"""Expected successes beyond which the enclosures here are not made."""

_BITS_AT_ONCE = 64
# Room for the rounding of a few hundred steps and for e^32, by which terms grow.
_GUARD = 96

Enclosure = Callable[[int], tuple[int, int]]
"""From bits to integers ``low <= 2**bits * chance <= high`` that are a few units apart."""


@dataclass(frozen=True)
class RareSuccesses:
    """The number of successes in ``trials`` independent trials of the same small chance.

    Parameters
    ----------
    trials : int
        However many.
    chance : callable
        Encloses the probability, at most 1/2: ``low <= 2**bits * chance <= high``.

    Examples
    --------
    >>> from quorate.core.noise import SecureNoise
    >>> coins = RareSuccesses(4, lambda bits: (1 << bits - 1, 1 << bits - 1))
    >>> 0 <= coins.draw(SecureNoise()) <= 4
    True
    """

    trials: int
    chance: Enclosure

    def __post_init__(self) -> None:
        _validate.non_negative_integer(trials=self.trials)
        if self.expected > MOST_EXPECTED:
            raise ParameterError(
                f"Expected at most {MOST_EXPECTED} successes in the mean, got "
                f"{self.expected:.3g}; raise the threshold."
            )

    @property
    def expected(self) -> float:
        """The mean number of successes, rounded up."""
        bits = 64 + self.trials.bit_length()
        return math.nextafter(self.trials * self.chance(bits)[1] / (1 << bits), math.inf)

    def draw(self, noise: NoiseSource) -> int:
        """Return a number of successes, from a uniform number and the distribution function."""
        drawn, bits = 0, 0
        while True:
            drawn = (drawn << _BITS_AT_ONCE) + noise.uniform_below(1 << _BITS_AT_ONCE)
            bits += _BITS_AT_ONCE
            found = self._locate(drawn, bits)
            if found is not None:
                return found

    def _locate(self, drawn: int, bits: int) -> int | None:
        """Return the k with F(k - 1) <= V < F(k), or None if more digits of V are needed.

        V lies between drawn and drawn + 1, in units of 2**-bits.
        """
        working = bits + _GUARD + 2 * self.trials.bit_length()
        one, shift = 1 << working, working - bits
        below, above = drawn << shift, (drawn + 1) << shift
        low, high = self.chance(working)
        fails = one - high, one - low
        term = _power(fails, self.trials, working)
        # Odds of one success against one failure, rounded outwards.
        odds = (low << working) // fails[1], -((-high << working) // fails[0])
        reached_low, reached_high, k = term[0], term[1], 0
        while k < self.trials:
            if above <= reached_low:
                return k
            if below < reached_high:
                return None
            left, k = self.trials - k, k + 1
            term = (
                (term[0] * left * odds[0] >> working) // k,
                -((-term[1] * left * odds[1] >> working) // k),
            )
            reached_low, reached_high = reached_low + term[0], reached_high + term[1]
        return k


def _power(base: tuple[int, int], exponent: int, bits: int) -> tuple[int, int]:
    """Return an enclosure of a power of a number in [0, 1], in units of 2**-bits."""
    low, high = 1 << bits, 1 << bits
    for digit in bin(exponent)[2:] if exponent else "":
        low, high = low * low >> bits, -(-high * high >> bits)
        if digit == "1":
            low, high = low * base[0] >> bits, -(-high * base[1] >> bits)
    return low, high
