"""The users' spread, estimated from released lifts.

A lift is a bounded number that falls as a user lies farther from the centre of a ball
(:mod:`quorate.core.bounds.lifted_ball`). So the mean lift shows how far users are spread. Each
round updates a distribution over the logarithm of their spread, from released numbers only.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from quorate.core.bounds.lifted_ball import lift

__all__ = ["SpreadBelief"]

Vector = NDArray[np.float64]

# An error of the model of lifts, how fast lifts are forgotten, and how much one round can say at
# most.
_MODEL, _FORGET, _SURPRISE = 0.15, 0.95, 6.0

# Mean lifts of users whose distances are log-normal around e^_LOGS radii.
_NODES, _WEIGHTS = np.polynomial.hermite_e.hermegauss(15)
_LOGS = np.linspace(-12.0, 6.0, 1801)
_LIFTS, _CONE_LIFTS = (
    lift(np.exp(_LOGS[:, None] + 0.3 * _NODES), cone=cone) @ (_WEIGHTS / _WEIGHTS.sum())
    for cone in (False, True)
)


@dataclass(frozen=True)
class SpreadBelief:
    """A posterior distribution of the logarithm of the users' spread, from released lifts.

    Examples
    --------
    >>> belief = SpreadBelief.at_most(8.0)
    >>> for _ in range(4):
    ...     belief = belief.after(1.2, radius=2.0, around=0.0, noise=0.01, users=1e4)
    >>> 0.7 < belief.spread[0] < 1.1
    True
    """

    logs: Vector
    weights: Vector
    cone: bool = False

    @classmethod
    def at_most(
        cls, reach: float, *, cone: bool = False, known: float | None = None
    ) -> SpreadBelief:
        """Return the first prior: log-uniform up to ``reach``, or only the ``known`` spread."""
        logs = math.log(reach) - np.arange(0.0, 24.0, 0.1)
        if known is not None:
            logs = np.array([math.log(known)])
        return cls(logs, np.zeros(logs.size), cone)

    @property
    def spread(self) -> tuple[float, float]:
        """The estimated spread, and the standard deviation of its logarithm."""
        chances = np.exp(self.weights - self.weights.max())
        chances = chances / chances.sum()
        mean = float(np.dot(chances, self.logs))
        square = float(np.dot(chances, self.logs**2)) - mean * mean
        return math.sqrt(float(np.dot(chances, np.exp(2.0 * self.logs)))), math.sqrt(
            max(0.0, square)
        )

    def height(self, *, radius: float, around: float) -> float:
        """Return the expected mean lift of the next round, in radii."""
        spread, _ = self.spread
        size = math.log(math.hypot(spread, around) / radius)
        return float(np.interp(size, _LOGS, _CONE_LIFTS if self.cone else _LIFTS))

    def after(
        self, height: float, *, radius: float, around: float, noise: float, users: float
    ) -> SpreadBelief:
        """Return the posterior after a round with the mean lift ``height``, in radii.

        ``around`` is how far the centre of the ball may be from the centre of the users.
        """
        sizes = 0.5 * np.log(np.exp(2.0 * self.logs) + around**2) - math.log(radius)
        expected = np.interp(sizes, _LOGS, _CONE_LIFTS if self.cone else _LIFTS)
        variance = noise**2 + 0.1 / users + _MODEL**2
        said = -0.5 * (height - expected) ** 2 / variance
        weights = _FORGET * self.weights + np.maximum(said - said.max(), -_SURPRISE)
        return SpreadBelief(self.logs, weights - weights.max(), self.cone)
