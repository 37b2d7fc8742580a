"""A ball of the L1 norm, for Laplace noise in a few dimensions.

Laplace noise is proportional to the L1 sensitivity. In a box of half-widths r one user moves a sum
by d r in that norm, but users around a common centre are rarely at its corners. The L1 ball that
contains them is smaller, by half in five dimensions. (A box has its own noise, for the largest
coordinate. If the box would be equally wide in all coordinates, both cost about the same.)

Proof that no integer vector leaves the ball: the computed sum S of the sizes of the offsets is at
least (1-u)^(d-1) times the true one, with u = 2^-53, in any order of summation, and sums of numbers
>= 0 do not underflow. Each offset is multiplied by fl((R/step) / max(S, R)) with R = fl(r (1 -
(d+8) 2u)), so that the sizes add up to at most

    (r/step) (1 - (2d+16) u) (1+u)^3 / (1-u)^(d-1)  <  r/step          for d <= 2^30,

and truncation makes no coordinate larger; a whole number that is at most r/step is at most its
integer part. Rows whose sum overflows are first multiplied by 2^-60.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import ArrayLike, NDArray

from quorate.core.bounds.grid import Ball, Bound
from quorate.core.guarantees import Relation

__all__ = ["Diamond"]


@dataclass(frozen=True, eq=False, init=False)
class Diamond(Bound):
    """A vector per user at L1 distance at most ``radius`` from ``centre``.

    Parameters
    ----------
    radius : float
    centre : array-like of shape (dimension,)

    Examples
    --------
    >>> Diamond(1.0, centre=[0.0, 0.0]).clip([[3.0, -1.0], [0.25, 0.25], [np.nan, 0.0]]).round(6)
    array([[ 0.75, -0.25],
           [ 0.25,  0.25],
           [ 0.  ,  0.  ]])
    >>> Diamond(1.0, centre=[0.0, 0.0]).change_in_steps(0.25, Relation.REPLACE)
    (8, 64)
    """

    radius: float
    centre: NDArray[np.float64]

    def __init__(self, radius: float, *, centre: ArrayLike) -> None:
        # A ball of the same size refuses what makes no sense.
        ball = Ball(radius, centre=centre)
        object.__setattr__(self, "radius", ball.radius)
        object.__setattr__(self, "dimension", ball.dimension)
        object.__setattr__(self, "centre", ball.centre)

    def offsets_in_steps(
        self, values: NDArray[np.float64], step: float, *, out: NDArray[np.float64]
    ) -> None:
        """Shrink each row to the radius; a row with NaN or infinity becomes 0."""
        radius = self.radius * (1.0 - (self.dimension + 8) * 2.0**-52)
        ones = np.ones(self.dimension)
        with np.errstate(all="ignore"):
            np.subtract(values, self.centre, out=out)
            sums = np.vecdot(np.abs(out), ones)
            out *= ((radius / step) / np.maximum(sums, radius))[:, None]
            lost = np.flatnonzero(~np.isfinite(sums))
            if lost.size:
                far = values[lost] * 2.0**-60 - self.centre * 2.0**-60
                far *= ((radius / step) / np.vecdot(np.abs(far), ones))[:, None]
                far[~np.isfinite(values[lost]).all(axis=1)] = 0.0
                out[lost] = far

    def change_in_steps(self, step: float, relation: Relation) -> tuple[int, int]:
        """Return the integer part of the radius or, under replacement, of the diameter."""
        length = int(Fraction(self.radius) / Fraction(step))
        length *= 2 if relation is Relation.REPLACE else 1
        return length, length * length

    def change(self, relation: Relation) -> tuple[float, float]:
        """Return the radius, or twice the radius, in either norm."""
        reach = 2 * self.radius if relation is Relation.REPLACE else self.radius
        return reach, reach

    @property
    def largest_offset(self) -> float:
        """Largest absolute value of a coordinate of an offset."""
        return self.radius
