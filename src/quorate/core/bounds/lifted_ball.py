r"""A ball with a *lift*: a number that shows how near users are to the centre, at no cost.

A user at the offset p from the centre, clipped to the radius r, contributes p and one more number,
the *lift* :math:`q = \sqrt{(r - |p|)(3r + |p|)}`: large at the centre, 0 at the edge. The sum of
the lifts shows how concentrated the users are inside of the ball. One user changes the two sums
together no farther than the first sum alone.

Proof. :math:`(r + |p|)^2 + q^2 = 4 r^2`, so all contributions lie in
:math:`K = \{(p, q) : q \ge 0, (r + |p|)^2 + q^2 \le 4 r^2\}`. Take two points of K and let
:math:`q \ge q'`. Then :math:`|p'| \le r` and :math:`(q - q')^2 \le q^2`, hence
:math:`|p - p'|^2 + (q - q')^2 \le (|p| + r)^2 + q^2 \le 4 r^2`: replacing one user changes the sum
by at most 2r, as in a ball of radius r. Each contribution has :math:`|p|^2 + q^2 \le 3 r^2 - 2 r
|p| \le 3 r^2`, which bounds the change when a user is added or removed. Under replacement a vote of
size r for "absent", in a coordinate of its own, also costs nothing: :math:`3 r^2 + r^2 = 4 r^2`.

A *cone* costs nothing under both relations. With :math:`q = r - |p|` all contributions lie in the
ball of radius r, :math:`|p|^2 + q^2 \le (|p| + q)^2 = r^2`, and in its upper half, whose diameter
is 2r. The lift of a cone is smaller, so it shows less about users near the edge.

Integers. K is closed under moving coordinates towards 0, so truncation does not leave it, and the
squared distance of two integer points of K / step is an integer of at most 4 (r / step)^2. The
clipped p in floating point is that of :class:`~quorate.core.bounds.grid.Ball`. With u = 2^-53 the
computed norm N of it is at least (1-u)^(d/2+1) |p|, so that fl(N (1 + (d + 16) 2u)) >= |p|; call it
M. The computed fl((r - M)(3r + M)) has a relative error of at most 4u, because r - M is one
rounding of a difference of floats, and the factor 1 - 2^-48 of the root makes up for it: q is at
most the root of (r - |p|)(3r + |p|), which falls in |p|. If M > r the lift is 0. The cone is fl(r -
M) (1 - 2^-48), at most r - |p|.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import ArrayLike, NDArray

from quorate.core.bounds.grid import Ball, Bound
from quorate.core.guarantees import Relation

__all__ = ["LiftedBall", "lift"]


def lift(distance: NDArray[np.float64], *, cone: bool = False) -> NDArray[np.float64]:
    """Return the lift at a distance from the centre, both in radii.

    >>> lift(np.array([0.0, 1.0, 7.0])).round(6)
    array([1.732051, 0.      , 0.      ])
    >>> lift(np.array([0.0, 0.25, 7.0]), cone=True)
    array([1.  , 0.75, 0.  ])
    """
    inside = np.minimum(distance, 1.0)
    return np.asarray(1.0 - inside if cone else np.sqrt((1.0 - inside) * (3.0 + inside)))


@dataclass(frozen=True, eq=False, init=False)
class LiftedBall(Bound):
    """A vector at L2 distance at most ``radius`` from ``centre``, and its lift.

    Rows have one more column than the centre, for the lift. NaN in this column marks an absent
    user, who contributes nothing (0 is in K). With ``cone`` the lift is smaller, and costs nothing
    under add/remove either.

    Examples
    --------
    >>> bound = LiftedBall(1.0, centre=[0.0, 0.0])
    >>> bound.clip([[0.0, 0.0, 9.0], [3.0, 4.0, 9.0]]).round(6)
    array([[0.      , 0.      , 1.732051],
           [0.6     , 0.8     , 0.      ]])
    >>> bound.change_in_steps(0.25, Relation.REPLACE)[1], Ball(1.0, dimension=2).l2_diameter
    (64, 2.0)
    """

    radius: float
    centre: NDArray[np.float64]
    cone: bool

    def __init__(self, radius: float, *, centre: ArrayLike, cone: bool = False) -> None:
        object.__setattr__(self, "cone", cone)
        ball = Ball(radius, centre=centre)
        object.__setattr__(self, "radius", ball.radius)
        object.__setattr__(self, "dimension", ball.dimension + 1)
        object.__setattr__(self, "centre", np.append(ball.centre, 0.0))

    def offsets_in_steps(
        self, values: NDArray[np.float64], step: float, *, out: NDArray[np.float64]
    ) -> None:
        """Scale each row to the radius and write its lift; NaN or infinity counts as the centre."""
        inside = np.empty((len(values), self.dimension - 1))
        ball = Ball(self.radius, centre=self.centre[:-1])
        ball.offsets_in_steps(np.ascontiguousarray(values[:, :-1]), step, out=inside)
        out[:, :-1] = inside
        radius = self.radius / step
        norm = np.sqrt(np.vecdot(inside, inside)) * (1.0 + (self.dimension + 16) * 2.0**-52)
        below = np.maximum(radius - norm, 0.0)
        root = below if self.cone else np.sqrt(below * (3.0 * radius + norm))
        out[:, -1] = root * (1.0 - 2.0**-48)
        out[np.isnan(values[:, -1])] = 0.0

    def change_in_steps(self, step: float, relation: Relation) -> tuple[int, int]:
        """Return the integer parts of the largest changes, in steps."""
        reach = Fraction(self.radius) / Fraction(step)
        alone = 1 if self.cone else 3
        squared = int((4 if relation is Relation.REPLACE else alone) * reach * reach)
        return math.isqrt(self.dimension * squared), squared

    def change(self, relation: Relation) -> tuple[float, float]:
        """Return the largest changes of a real sum: 2 r, or root 3 times r, or r for a cone."""
        alone = 1.0 if self.cone else math.sqrt(3.0) * (1.0 + 2.0**-50)
        reach = 2.0 if relation is Relation.REPLACE else alone
        up = 1.0 + 2.0**-50
        return math.sqrt(self.dimension) * reach * self.radius * up, reach * self.radius

    @property
    def largest_offset(self) -> float:
        """Largest absolute value of a coordinate of an offset."""
        return 1.75 * self.radius
