r"""The error of private gradient descent by Theorem 4 of Levy et al. (U5).

Algorithm 3 of [U]_ makes T queries for gradients, answers each by a winsorized mean after a
rotation (Theorem 3), and uses the answers in a descent of Proposition 3. With the constants of both
theorems:

* the answers have noise of mean squared length :math:`\nu^2 = 2 D b^2`. Here b is the scale of the
  Laplace noise of one of D rotated coordinates, and :math:`\tau = \sigma\sqrt{d\ln(3RHmn/(d\sigma
  \gamma))/m} + \ln(3n/\gamma)/m` is how far users' mean gradients spread in them (Proposition 1);
* a loss has curvature H on a set of diameter R (see
  :mod:`~quorate.models.optimization.optimizers`). *Convex*: :math:`HR^2/(2T) + R\nu/\sqrt T`;
  *strongly convex*: :math:`GR\,e^{-\mu T/H} + \nu^2/(\mu T)`, with constants 1, which the paper
  leaves open; *otherwise* the mean squared gradient is :math:`2H^2R^2/T + 2\nu HR\sqrt{2/T}`, if
  the projection never acts.

T is the best power of four. As :math:`\nu^2` grows with T, the noise hardly depends on this choice.

References
----------
.. [U] Levy et al. Learning with user-level privacy. NeurIPS 2021, arXiv:2102.11845, Theorems 3 and
   4, Propositions 1 and 3, appendix D.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from quorate import _validate

__all__ = ["FirstOrder", "first_order_error"]

_KINDS = ("convex", "strongly convex", "non-convex")
_STEPS = tuple(4**power for power in range(16))


@dataclass(frozen=True, kw_only=True)
class FirstOrder:
    """A loss as described in Theorem 4.

    Parameters
    ----------
    dimension : int
    radius : float, default=2.0
        Diameter R of the set of parameters: 2 for a unit ball.
    curvature : float, default=1.0
        Largest second derivative H.
    strength : float, default=0.0
        Smallest second derivative, for a strongly convex loss.
    spread : float, default=1.0
        Standard deviation of each coordinate of a gradient.
    failure : float, default=0.1
        Allowed failure probability of the theorem.

    Examples
    --------
    >>> loss = FirstOrder(dimension=2)
    >>> loss.squared_noise(users=10**6, records=16, epsilon=1.0, delta=1e-6, steps=64) < 1
    False
    """

    dimension: int
    radius: float = 2.0
    curvature: float = 1.0
    strength: float = 0.0
    spread: float = 1.0
    failure: float = 0.1

    def __post_init__(self) -> None:
        _validate.positive_integer(dimension=self.dimension)
        _validate.positive(radius=self.radius, curvature=self.curvature, spread=self.spread)
        _validate.non_negative(strength=self.strength)
        _validate.probability(failure=self.failure)

    @property
    def gradient_bound(self) -> float:
        """Typical length of a gradient, G."""
        return self.spread * math.sqrt(self.dimension)

    def concentration(self, *, users: int, records: int) -> float:
        """Return the concentration radius of users' mean gradients, by Proposition 1."""
        d, gamma = self.dimension, self.failure
        inside = 3 * self.radius * self.curvature * records * users / (d * self.spread * gamma)
        near = self.spread * math.sqrt(d * math.log(max(math.e, inside)) / records)
        return near + math.log(3 * users / gamma) / records

    def squared_noise(
        self, *, users: int, records: int, epsilon: float, delta: float, steps: int
    ) -> float:
        """Return the mean squared length of the noise of each gradient, or infinity.

        It is infinite if there are too few users for the ranges of all coordinates (Theorem 3):
        then :class:`~quorate.mechanisms.means.winsorized.RotatedWinsorizedMean` fails too often.
        """
        # The printed constants of RotatedWinsorizedMean, which a plan asks for too often to make.
        gamma, padded = self.failure / 3, 1 << (self.dimension - 1).bit_length()
        if steps > 1:
            epsilon /= 2.0 * math.sqrt(2.0 * steps * math.log(2.0 / delta))
            delta /= 2.0 * steps
        each = epsilon / math.sqrt(8.0 * padded * math.log(1.0 / delta))
        spread = 10.0 * math.sqrt(math.log(padded * users * steps / gamma) / padded)
        radius = spread * self.concentration(users=users, records=records)
        bins = math.ceil(math.sqrt(self.dimension) * self.gradient_bound / radius)
        if steps * padded * bins * math.exp(-users * each / 8.0) > gamma:
            return math.inf
        return 2.0 * padded * (8.0 * radius / (each * users)) ** 2

    def excess(self, kind: str, *, steps: int, squared_noise: float) -> float:
        """Return the bound of Proposition 3: an excess, or a mean squared gradient.

        >>> FirstOrder(dimension=2).excess("convex", steps=100, squared_noise=0.01)
        0.04
        """
        _validate.one_of(_KINDS, kind=kind)
        R, H, nu = self.radius, self.curvature, math.sqrt(squared_noise)
        if kind == "convex":
            return H * R**2 / (2 * steps) + R * nu / math.sqrt(steps)
        if kind == "non-convex":
            return 2 * (H * R) ** 2 / steps + 2 * nu * H * R * math.sqrt(2 / steps)
        if self.strength == 0:
            return math.inf
        start = self.gradient_bound * R * math.exp(-self.strength * steps / H)
        return start + squared_noise / (self.strength * steps)


def first_order_error(
    loss: FirstOrder, kind: str, *, users: int, records: int, epsilon: float, delta: float
) -> float:
    """Return the bound of Theorem 4 at the best number of steps.

    >>> loss, known = FirstOrder(dimension=2), dict(records=100, epsilon=1.0, delta=1e-6)
    >>> few, many = (
    ...     first_order_error(loss, "convex", users=n, **known) for n in (10**6, 10**9)
    ... )
    >>> many < 0.1 < few
    True
    """
    best = math.inf
    for steps in _STEPS:
        noise = loss.squared_noise(
            users=users, records=records, epsilon=epsilon, delta=delta, steps=steps
        )
        if math.isinf(noise):
            break
        best = min(best, loss.excess(kind, steps=steps, squared_noise=noise))
    return best
