r"""Exact coins whose probability is a fraction of exponentials.

Randomized response keeps a bit with probability :math:`e^\varepsilon/(1+e^\varepsilon)`, and the
parity learner keeps a row with probability :math:`\tanh(\varepsilon/2)`. Such probabilities have
the form :math:`(a + b q)/(c + d q)` with :math:`q = e^{-x}`, and no float represents them exactly.
A coin compares the binary digits of a uniform number with those of its probability, sixty-four at a
time. They differ within the first word in all but one of :math:`2^{64}` throws; otherwise the next
word decides. Digits come from integer bounds on :math:`q`, which are tightened until they agree, so
every throw is exact.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property, lru_cache

import numpy as np
from numpy.typing import NDArray

from quorate import _validate
from quorate.core.noise import NoiseSource
from quorate.core.noise.exact_decisions import exp_enclosure
from quorate.exceptions import ParameterError

__all__ = ["Coin"]

_WORD = 64


@dataclass(frozen=True)
class Coin:
    r"""Heads with probability :math:`(a + b q)/(c + d q)`, :math:`q = e^{-x}`.

    Parameters
    ----------
    x : Fraction
        Positive.
    a, b, c, d : int
        The probability lies strictly between 0 and 1, and depends on q.

    Examples
    --------
    >>> keep = Coin(Fraction(1), 1, 0, 1, 1)
    >>> round(keep.probability, 6)
    0.731059
    >>> from quorate.core.noise import SecureNoise
    >>> keep.throw(1000, SecureNoise()).dtype
    dtype('bool')
    """

    x: Fraction
    a: int
    b: int
    c: int
    d: int

    def __post_init__(self) -> None:
        _validate.positive(x=self.x)
        if not isinstance(self.x, Fraction) or self.a * self.d == self.b * self.c:
            raise ParameterError("Expected a Fraction x and a probability that depends on exp(-x).")

    @cached_property
    def probability(self) -> float:
        """The probability of heads as a float; for audits and error bounds."""
        return self.digits(80) / 2.0**80

    def digits(self, bits: int) -> int:
        """Return the probability times ``2**bits``, rounded down, exactly."""
        return _digits(self, bits)

    def throw(self, count: int, noise: NoiseSource) -> NDArray[np.bool_]:
        """Throw the coin ``count`` times."""
        words = noise.uniform_words(count)
        cut = np.uint64(self.digits(_WORD))
        heads: NDArray[np.bool_] = words < cut
        for tie in np.flatnonzero(words == cut):
            heads[tie] = self._decide(noise)
        return heads

    def throw_one(self, noise: NoiseSource) -> bool:
        """Throw the coin once."""
        return bool(self.throw(1, noise)[0])

    def _decide(self, noise: NoiseSource) -> bool:
        """Draw further words after the first one equalled the first digits of the probability."""
        bits = _WORD
        while True:
            bits += _WORD
            word, digit = noise.uniform_below(1 << _WORD), self.digits(bits) & ((1 << _WORD) - 1)
            if word != digit:
                return word < digit


@lru_cache(maxsize=256)
def _digits(coin: Coin, bits: int) -> int:
    """Tighten bounds on q until both ends of the probability have the same digits.

    The probability is monotone in q and irrational, because exp(-x) is transcendental for every
    rational x > 0. So it never has a finite number of digits, and the loop ends.
    """
    work = bits + 16
    while True:
        bounds = (Fraction(q, 1 << work) for q in exp_enclosure(coin.x, bits=work))
        low, high = sorted((coin.a + coin.b * q) / (coin.c + coin.d * q) for q in bounds)
        first = math.floor(low * (1 << bits))
        # The probability is strictly below the upper end.
        last = math.ceil(high * (1 << bits)) - 1
        if first == last:
            return first
        work *= 2
