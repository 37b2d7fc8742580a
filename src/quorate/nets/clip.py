r"""How far gradients are clipped: where noise and clipping move a step equally far.

A longer radius r clips less, and the noise of a step is longer in proportion to it: its length is
:math:`\nu r`, with a public :math:`\nu`. Clipping moves the mean gradient by at most the mean
excess of the users' lengths over r. The root of the sum of both squares is the error of a step. The
radius has the smallest expected logarithm of this error: only its size relative to the lengths
matters, and nobody knows them beforehand. So gradients keep their lengths where noise is short, and
are brought to one length where noise is longer than they are.

The lengths are log-normal with an unknown median and an unknown shape: users who are predicted well
have gradients that are many times shorter than those of others. Each released mean lift
(:mod:`quorate.core.bounds.lifted_ball`) updates a distribution over both, at no cost.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtr

from quorate.core.bounds.lifted_ball import lift
from quorate.models.optimization.optimizers import Adam

__all__ = ["LengthBelief"]

Vector = NDArray[np.float64]

# Standard deviations of the logarithm of lengths, from all alike to a factor of e^2.
_SHAPES = 2.0 ** np.arange(-3, 2)
# machine: finer grids of medians and radii change no radius by more than a twentieth.
_SPACING = 0.1
# Medians and radii from the reach down to e^-14 of it.
_LOGS = -_SPACING * np.arange(128)
# An error of the log-normal model, in radii.
_MODEL = 2.0**-3
# Lengths change while a network is trained: lifts are forgotten as Adam forgets gradients.
_KEPT = Adam.momentum
# One step says at most so much against a length.
_SURPRISE = 8.0

_NODES, _WEIGHTS = np.polynomial.hermite_e.hermegauss(31)


def _mean_lifts(logs: Vector, *, cone: bool) -> Vector:
    """Return the mean lifts at medians of e^logs radii: (shapes, medians)."""
    distances = np.exp(logs[:, None] + _SHAPES[:, None, None] * _NODES)
    return np.asarray(lift(distances, cone=cone) @ (_WEIGHTS / _WEIGHTS.sum()))


def _excess() -> Vector:
    """Return the mean excess of lengths over radii, all in reaches: (shapes, medians, radii)."""
    shape, ratio = _SHAPES[:, None, None], _LOGS[:, None] - _LOGS
    above = np.exp(_LOGS[:, None] + 0.5 * shape**2) * ndtr(ratio / shape + shape)
    return np.asarray(np.maximum(0.0, above - np.exp(_LOGS) * ndtr(ratio / shape)))


_EXCESS = _excess()


@dataclass(frozen=True)
class LengthBelief:
    """What released lifts say about the lengths of the users' gradients.

    Attributes
    ----------
    reach : float
        The longest median.
    weights : array of shape (shapes, medians)
        Logarithms of chances, up to a constant.
    cone : bool
        Which lift is released.

    Examples
    --------
    Users with gradients of length 2: with little noise they are hardly clipped, with much noise
    they are brought to one length.

    >>> belief = LengthBelief.at_most(100.0)
    >>> for radius in (16.0, 4.0, 2.0, 1.0):
    ...     height = float(lift(np.array([2.0 / radius]))[0])
    ...     belief = belief.after(height, radius=radius, noise=0.01, users=1e4)
    >>> belief.radius(noise=0.02) > 1.8, belief.radius(noise=2.0) < 1.0
    (True, True)
    """

    reach: float
    weights: Vector
    cone: bool = False

    @classmethod
    def at_most(cls, reach: float, *, cone: bool = False) -> LengthBelief:
        """Return the belief before the first step: any median up to ``reach``, any shape."""
        return cls(reach, np.zeros((_SHAPES.size, _LOGS.size)), cone)

    def radius(self, *, noise: float) -> float:
        """Return the radius with the least error, where a step's noise has a length of ``noise``.

        ``noise`` is in radii.
        """
        chances, radii = np.exp(self.weights - self.weights.max()), np.exp(_LOGS)
        errors = np.log((noise * radii) ** 2 + _EXCESS**2)
        return float(self.reach * radii[np.argmin(np.einsum("sm,smr->r", chances, errors))])

    def after(self, height: float, *, radius: float, noise: float, users: float) -> LengthBelief:
        """Return the belief after a step whose mean lift was ``height``, in radii.

        ``noise`` is the standard deviation of the noise in the lift, in radii.
        """
        logs = np.asarray(_LOGS + math.log(self.reach / radius), dtype=np.float64)
        expected = _mean_lifts(logs, cone=self.cone)
        # The lift of one user varies by less than a radius.
        variance = noise**2 + 1.0 / users + _MODEL**2
        said = -0.5 * (height - expected) ** 2 / variance
        weights = _KEPT * self.weights + np.maximum(said - said.max(), -_SURPRISE)
        return LengthBelief(self.reach, weights - weights.max(), self.cone)
