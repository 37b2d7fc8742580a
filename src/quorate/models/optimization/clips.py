"""The lengths of users' vectors, estimated from lifts at no extra cost, and where to clip.

Each release of a clipped mean includes the users' mean lift
(:mod:`quorate.core.bounds.lifted_ball`), a number that falls as vectors become longer. Lengths are
assumed to be log-normal. The posterior of their median and spread is a distribution on a grid. Each
lift updates it; between two lifts it is blurred, because gradients change from step to step. The
posterior gives the next radius, which minimises noise plus clipping bias, and the part of a vector
that is left after clipping.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cache

import numpy as np
from numpy.typing import NDArray

from quorate.core.bounds.lifted_ball import lift

__all__ = ["Lengths"]

Vector = NDArray[np.float64]

# Standard deviations of log lengths that are thought of: from people alike to two in three of them
# apart by a factor of five.
_SPREADS = np.geomspace(2.0**-3, 2.0, 7)
# Logarithms of (typical length / radius): beyond these ends all vectors are inside, or none.
_LOGS = np.arange(-8.0, 4.0, 0.0625)
# Lifts of lengths that are uniform, exponential or of two kinds lie so near to log-normal ones.
_UNLIKE = 2.0**-4
_NODES, _WEIGHTS = np.polynomial.hermite_e.hermegauss(15)
_LENGTHS = np.exp(_LOGS[:, None, None] + _SPREADS[:, None] * _NODES)


@cache
def _tables(*, cone: bool) -> tuple[Vector, Vector, Vector]:
    """Return, by log length and spread: mean lift, mean part left, mean length cut off."""
    weights = _WEIGHTS / _WEIGHTS.sum()
    return (
        lift(_LENGTHS, cone=cone) @ weights,
        np.minimum(1.0, 1.0 / _LENGTHS) @ weights,
        np.maximum(_LENGTHS - 1.0, 0.0) @ weights,
    )


def _at(table: Vector, logs: Vector) -> Vector:
    places = np.clip((logs - _LOGS[0]) / (_LOGS[1] - _LOGS[0]), 0.0, len(_LOGS) - 1.001)
    below = places.astype(np.intp)
    part = (places - below)[..., None]
    return np.asarray((1.0 - part) * table[below] + part * table[below + 1])


@dataclass(frozen=True)
class Lengths:
    """A posterior over the lengths of users' vectors.

    Attributes
    ----------
    logs : array
        Grid of logarithms of the typical length.
    chances : array of shape (logs, spreads)
    cone : bool
        Whether lifts are those of a cone (under add/remove).

    Examples
    --------
    >>> round(Lengths.around(1.0, error=0.5, cone=False).typical, 6)
    1.0
    """

    logs: Vector
    chances: Vector
    cone: bool

    @classmethod
    def around(cls, log: float, *, error: float, cone: bool) -> Lengths:
        """Return the posterior after a released mean logarithm with its standard deviation."""
        logs = log + np.linspace(-5.0, 5.0, 81)
        said = -0.5 * ((logs - log) / error)[:, None] ** 2
        # Vague: one standard deviation is a factor of two about a third.
        said = said - 0.5 * (np.log(3.0 * _SPREADS) / math.log(2.0)) ** 2
        return cls(logs, _normed(said), cone)

    @property
    def typical(self) -> float:
        """Posterior mean of the logarithm of the typical length."""
        return float(self.chances.sum(axis=1) @ self.logs)

    def radius(self, noise: float, dimension: int) -> float:
        """Return the radius that minimises noise plus clipping bias.

        ``noise`` is the length of the noise in radii. Along any one direction the clipped parts are
        shorter by the root of the dimension, and half of them cancel the other half.

        >>> lengths = Lengths.around(0.0, error=0.5, cone=False)
        >>> lengths.radius(1.0, 20) < 1.0 < lengths.radius(0.001, 20)
        True
        """
        radii = np.exp(self.typical + np.arange(-1.0, 4.0, 0.125))
        cut = _at(_tables(cone=self.cone)[2], self.logs - np.log(radii)[:, None])
        lost = np.tensordot(cut, self.chances, axes=2)
        bias = 0.5 * lost / math.sqrt(dimension)
        return float(radii[np.argmin(radii**2 * (noise**2 + bias**2))])

    def after(
        self, height: float, *, radius: float, noise: float, drift: float
    ) -> tuple[Lengths, float]:
        """Return the posterior after a mean lift, and which part of the vectors clipping left.

        ``height`` and its ``noise`` are in radii. ``drift`` is the expected change of log lengths
        until the next release.

        >>> lengths, kept = Lengths.around(0.0, error=2.0, cone=False), 1.0
        >>> for _ in range(3):
        ...     lengths, kept = lengths.after(1.72, radius=1.0, noise=0.01, drift=0.2)
        >>> lengths.typical < -3.0, kept > 0.95
        (True, True)
        """
        lifts, left, _ = _tables(cone=self.cone)
        places = self.logs - math.log(radius)
        # Lifts are between 0 and the root of three: what is far outside was moved there by noise.
        height = min(max(height, -2.0), 4.0)
        said = -0.5 * (height - _at(lifts, places)) ** 2 / (noise**2 + _UNLIKE**2)
        told = _normed(np.log(np.maximum(self.chances, 1e-30)) + said)
        blur = np.exp(-0.5 * (np.subtract.outer(self.logs, self.logs) / drift) ** 2)
        kept = float((told * _at(left, places)).sum())
        return Lengths(self.logs, (blur / blur.sum(axis=0)) @ told, self.cone), kept


def _normed(logs: Vector) -> Vector:
    chances = np.exp(logs - logs.max())
    return np.asarray(chances / chances.sum())
