r"""A discrete Laplace law that is truncated on both sides, sampled exactly.

:math:`R \in \{0, \dots, 2\kappa\}` has mass proportional to :math:`e^{-\varepsilon|r-\kappa|}`. It
is the noisy limit of a propose-test-release step: a distance :math:`v` to unsuitable data, which
one user changes by at most 1, passes the test if :math:`v \le R`. Nothing passes at :math:`v >
2\kappa`, and everything at :math:`v = 0`. (Definition 8 of Ghazi et al. [1]_.)

References
----------
.. [1] Ghazi, Kamath, Kumar, Manurangsi, Meka, Zhang. User-level differential privacy with few
   examples per user. NeurIPS 2023.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from quorate import _validate
from quorate._validate import exact
from quorate.core.noise import NoiseSource
from quorate.core.noise.exact_decisions import exp_enclosure
from quorate.core.noise.exponential import choose_weighted
from quorate.exceptions import ParameterError

__all__ = ["MAX_REACH", "TruncatedLaplace", "published_reach", "smallest_reach"]

MAX_REACH = 10_000
"""A larger reach means a hopeless budget: it would ask for tens of thousands of users."""

# Enough for a tail of 2^-128 to keep a hundred significant bits.
_BITS = 256


@dataclass(frozen=True)
class TruncatedLaplace:
    r"""The law of the noisy limit R; it is a part of mechanisms and no release by itself.

    Privacy
    -------
    proof : Neighbouring masses have the ratio :math:`e^{\pm\varepsilon}`. So :math:`P[R \ge v] \le
        e^\varepsilon P[R \ge v+1] + P[R = 2\kappa]` and :math:`P[R < v+1] \le e^\varepsilon P[R <
        v] + P[R = 0]` for every integer v, and both last terms are the same number, :attr:`tail`.

    Parameters
    ----------
    epsilon : float or Fraction
        Privacy loss of one step of the distance; a float is taken as an exact number.
    reach : int
        The :math:`\kappa` of the paper: the middle of the support.

    Examples
    --------
    >>> law = TruncatedLaplace(Fraction(1, 2), reach=25)
    >>> float(law.tail) <= 1e-6
    True
    >>> law.pass_probability(0), law.pass_probability(51)
    (1.0, 0.0)
    """

    epsilon: float | Fraction
    reach: int

    def __post_init__(self) -> None:
        _validate.positive(epsilon=self.epsilon)
        _validate.positive_integer(reach=self.reach)
        if self.reach > MAX_REACH:
            raise ParameterError(f"Expected a reach of at most {MAX_REACH}, got {self.reach}.")

    @cached_property
    def tail(self) -> Fraction:
        """P[R = 0] = P[R = 2 reach], rounded up."""
        rate = exact(self.epsilon)
        whole = sum(exp_enclosure(rate * step, bits=_BITS)[0] for step in range(1, self.reach + 1))
        edge = exp_enclosure(rate * self.reach, bits=_BITS)[1]
        return Fraction(edge, (1 << _BITS) + 2 * whole)

    @cached_property
    def probabilities(self) -> NDArray[np.float64]:
        """The masses of 0, ..., 2 reach in floating point, for audits and plans."""
        weights = np.exp(-float(self.epsilon) * self._gaps)
        return np.asarray(weights / weights.sum())

    def pass_probability(self, distance: int) -> float:
        """Return P[distance <= R] in floating point."""
        if distance <= 0:
            return 1.0
        return float(self.probabilities[distance:].sum())

    def draw(self, noise: NoiseSource) -> int:
        """Return R, drawn from a source that has been paid for.

        >>> from quorate.core.noise import SecureNoise
        >>> 0 <= TruncatedLaplace(1.0, reach=3).draw(SecureNoise()) <= 6
        True
        """
        ones = np.ones(2 * self.reach + 1, dtype=np.uint64)
        rate = exact(self.epsilon)
        return noise.sample(
            "truncated_laplace",
            lambda source: choose_weighted(ones, self._gaps, rate=rate, noise=source),
            held=self,
            rate=rate,
            reach=self.reach,
        )

    @property
    def _gaps(self) -> NDArray[np.int64]:
        return np.abs(np.arange(2 * self.reach + 1) - self.reach)


def published_reach(epsilon: float | Fraction, delta: float) -> int:
    r"""Return the paper's :math:`\kappa = 1 + \lceil \ln(1/\delta)/\varepsilon \rceil`.

    >>> published_reach(1 / 3, 1e-6 / (2.71828 ** (2 / 3) + 2.71828 ** (1 / 3) + 2))
    48
    """
    _validate.positive(epsilon=epsilon)
    _validate.probability(delta=delta)
    return 1 + math.ceil(-math.log(delta) / float(epsilon))


def smallest_reach(epsilon: float | Fraction, delta: float | Fraction) -> int:
    """Return the smallest reach whose tail is at most ``delta``.

    >>> smallest_reach(0.5, 1e-6), smallest_reach(1.5, 1e-6)
    (25, 9)
    """
    _validate.positive(epsilon=epsilon)
    _validate.probability(delta=delta)
    low, high = 0, 1
    while TruncatedLaplace(epsilon, reach=min(high, MAX_REACH)).tail > delta:
        if high >= MAX_REACH:
            raise ParameterError(
                f"Expected a budget that a reach of {MAX_REACH} can keep, got "
                f"epsilon={float(epsilon):.4g} and delta={float(delta):.4g}."
            )
        low, high = high, 2 * high
    high = min(high, MAX_REACH)
    while high - low > 1:
        middle = (low + high) // 2
        if TruncatedLaplace(epsilon, reach=middle).tail > delta:
            low = middle
        else:
            high = middle
    return high
