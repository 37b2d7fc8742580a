"""How far clipping to a ball may have pulled a mean, by the lifts of every round on the way there.

A ball that drifts to the users (:mod:`quorate.means.routes.drifting_ball`) looks at them at every
size, from that of the range down to its last one, and each look releases a mean lift
(:mod:`quorate.core.bounds.lifted_ball`). A few users far outside of the last ball lowered the
lifts of larger ones; many who hold the same number show in lifts that do not fall as the ball
shrinks. So the lifts are compared with what users would have shown of whom all lie around the
centre at one distance, or a share of them at another, larger one. What clipping to the last ball
does to each of these crowds is known; a quantile of it, weighed by how well they explain the lifts,
is what may have been pulled. Everything here is made of released numbers.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from quorate.core.bounds.lifted_ball import lift

__all__ = ["Look", "likely_pull"]

Vector = NDArray[np.float64]

# Typical distances: from that of the range down by this step of the logarithm, so many of them.
_STEP, _SCALES = 0.35, 52
# Shares of the users who may lie farther out; by at least this factor (of e).
_SHARES, _APART = (0.1, 0.3), 0.7
# What is believed before the first look falls by these powers of how much farther they lie. In one
# dimension many people often hold the same number while others lie anywhere.
_THINNING, _THINNING_OF_ONE = (1.0, 0.5), (1.0, 0.1)
# In one or two dimensions all who lie farther out may do so on one side. In more, their directions
# vary, and so much is left of the sum of their distances.
_ONE_SIDED, _SIDES = 2, 0.3
# An error of the model in the mean lift of a round, in radii.
_MODEL = 0.1
# What is stated is this quantile of what may have been pulled. Chosen with the powers above in the
# worlds that benchmarks do not report: lower ones held too rarely for people of whom many hold the
# same number, higher ones stated more than three times the error of others.
_QUANTILE = 0.92
_LOGS = np.arange(-14.0, 20.0, 0.1)
_NODES = (np.arange(400.0) + 0.5) / 400.0


@dataclass(frozen=True)
class Look:
    """One round: a ball, the mean lift that it released and the noise of it, both in radii."""

    centre: Vector
    radius: float
    lift: float
    noise: float


def likely_pull(
    looks: Sequence[Look], *, centre: Vector, radius: float, reach: float, cone: bool = False
) -> float:
    """Return how far the mean of users clipped to a ball is likely to be pulled, as a length.

    Parameters
    ----------
    looks : sequence of Look
        All rounds up to this ball.
    centre : array of shape (d,)
        The released mean.
    radius : float
        Of the ball that users were clipped to.
    reach : float
        Nobody lies farther away.
    cone : bool, default=False
        Whether the lifts are those of a cone.

    Examples
    --------
    Lifts that fall as the ball shrinks are those of users around one centre; lifts that do not,
    of many users in it and others far away.

    >>> centre = np.zeros(1)
    >>> sizes = 2.0 ** -np.arange(0.0, 12.0)
    >>> def pull(heights):
    ...     looks = [Look(centre, r, h, 0.05) for r, h in zip(sizes, heights, strict=True)]
    ...     return likely_pull(looks, centre=centre, radius=2.0**-11, reach=1.0) * 2**11
    >>> pull(lift(sizes[-1] / 4.0 / sizes)) < 0.2, pull(np.full(12, 1.2)) > 20.0
    (True, True)
    """
    thinning = _THINNING_OF_ONE if centre.size == 1 else _THINNING
    lifts, beyond = _laws(centre.size, cone=cone)
    logs = math.log(reach) - _STEP * np.arange(float(_SCALES))
    radii = np.array([look.radius for look in looks])
    around = np.array([float(np.linalg.norm(look.centre - centre)) for look in looks])
    weights = 1.0 / (np.array([look.noise for look in looks]) ** 2 + _MODEL**2)
    sizes = np.log(np.hypot(np.exp(logs), around[:, None]) / radii[:, None])
    expected = np.interp(sizes, _LOGS, lifts)
    pulled = radius * np.interp(logs - math.log(radius), _LOGS, beyond)
    # Squared errors of all mixtures at once, up to what they have in common.
    heights = np.array([look.lift for look in looks])
    fit = (weights * heights) @ expected
    product = (expected * weights[:, None]).T @ expected
    square = np.diag(product)
    farther = logs - logs[:, None]
    apart = farther >= _APART
    chances, pulls = [fit - square / 2.0], [pulled]
    for share, power in zip(_SHARES, thinning, strict=True):
        rest = 1.0 - share
        mixed = (rest**2 * square[:, None] + share**2 * square) / 2.0 + rest * share * product
        chance = rest * fit[:, None] + share * fit - mixed - power * farther
        chances.append(chance[apart])
        pulls.append((rest * pulled[:, None] + share * pulled)[apart])
    left = 1.0 if centre.size <= _ONE_SIDED else _SIDES
    return left * _quantile(np.concatenate(pulls), np.concatenate(chances))


def _quantile(values: Vector, chances: Vector) -> float:
    """Return the quantile of values that have these logarithms of chances."""
    order = np.argsort(values)
    total = np.cumsum(np.exp(chances[order] - chances.max()))
    return float(values[order][np.searchsorted(total, _QUANTILE * total[-1])])


@lru_cache(maxsize=16)
def _laws(shape: int, *, cone: bool) -> tuple[Vector, Vector]:
    """Return mean lifts, and mean distances beyond the radius, of gamma distances, in radii.

    The logarithms of their means are ``_LOGS``. In one dimension they are exponential.
    """
    from scipy.special import gammaincinv

    distances = np.exp(_LOGS)[:, None] * (gammaincinv(float(shape), _NODES) / shape)
    return lift(distances, cone=cone).mean(axis=1), np.maximum(distances - 1.0, 0.0).mean(axis=1)
