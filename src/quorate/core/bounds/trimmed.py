r"""A user's offset from a released centre or, if it is too long, the shares themselves.

If users are similar, most of them lie in a small ball around the centre. Such a user contributes
the offset. A user outside contributes the shares themselves, in coordinates of their own and as
long as is possible without extra cost, and a vote "outside" if that is also free. An absent user
contributes a vote "absent". No offset is clipped, so the mean of the users inside is unbiased. The
other coordinates cost nothing, because they are short enough that any two users stay within the
diameter of the ball. The released sum for users outside is as noisy as if all users had been
released with noise for the whole simplex. So they can be left out if they are within the noise, and
included otherwise.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from quorate import _validate
from quorate.core.bounds.grid import Bound, Joint, row_lengths
from quorate.core.bounds.simplex import Simplex
from quorate.core.guarantees import Relation
from quorate.exceptions import ParameterError

__all__ = ["FEW", "Trimmed"]

NORMS = (1, 2)
FEW = 64
"""Up to this many categories noise balances; beyond, it gains less than one percent."""


def _rises(offsets: NDArray[np.float64]) -> NDArray[np.float64]:
    return np.asarray(np.vecdot(np.maximum(offsets, 0.0), np.ones(offsets.shape[1])))


@dataclass(frozen=True, eq=False, init=False)
class Trimmed(Bound):
    r"""An offset of at most ``radius`` from ``centre``, or shares outside, or a vote of absence.

    Rows have a user's d shares, d + 1 columns that are not used, and a last one that is 1 for an
    absent user.

    Privacy: in the norm of the ball two offsets differ by at most 2r. Shares outside are numbers
    >= 0 that add up to at most v, in coordinates of their own, and so are the votes.

    *L1:* v = r and there is no vote "outside"; a vote of absence is r long. Two users who do not
    both have an offset differ by at most r + r. With few categories the last offset is not written,
    because offsets add up to zero. Of the others neither the rises nor the falls may add up to more
    than r / 2, so that two users also differ by at most 2r in the norm of
    :class:`~quorate.mechanisms.balanced.BalancedSum`. *L2:* v = :math:`\sqrt 2 r`, votes are r
    long. In squares: offset and outside :math:`r^2 + 2r^2 + r^2`; two users outside, whose votes
    are the same, :math:`2 v^2 = 4r^2`, since no product of their shares is negative; outside and
    absent :math:`2r^2 + r^2 + r^2`; offset and absent :math:`2r^2`.

    In whole steps: lengths are rounded down, and shares are rounded as in the proof of
    ``docs/proofs/grid.md``; offsets are multiplied by a factor below r / length, as there, and then
    rounded towards the centre. The computed length is at least :math:`(1-u)^{d}` times the true one
    in either norm. Whether a user is inside depends on this user's row alone.

    Parameters
    ----------
    radius : float
        At most 2, the diameter of the simplex.
    centre : array of shape (d,)
    norm : {1, 2}

    Examples
    --------
    >>> bound = Trimmed(0.5, np.array([0.5, 0.5]), norm=1)
    >>> bound.clip([[0.6, 0.4, 0, 0, 0, 0], [1.0, 0, 0, 0, 0, 0], [0, 0, 0, 0, 0, 1]]).round(6)
    array([[0.1, 0. , 0. , 0. , 0. , 0. ],
           [0. , 0. , 0.5, 0. , 0. , 0. ],
           [0. , 0. , 0. , 0. , 0. , 0.5]])
    """

    radius: float
    centre: NDArray[np.float64]
    norm: int

    def __init__(self, radius: float, centre: NDArray[np.float64], *, norm: int) -> None:
        _validate.positive(radius=radius)
        _validate.one_of(NORMS, norm=norm)
        shares = np.array(centre, dtype=np.float64)
        middle = np.concatenate([shares, np.zeros(shares.size + 2)])
        if not (2.0**-60 <= radius <= 2.0 and np.all(np.abs(middle) <= 1.0)):
            raise ParameterError(
                f"Expected a radius of at most 2 and a centre among shares, got radius={radius!r}."
            )
        middle.flags.writeable = False
        object.__setattr__(self, "radius", float(radius))
        object.__setattr__(self, "norm", norm)
        object.__setattr__(self, "dimension", middle.size)
        object.__setattr__(self, "centre", middle)

    @property
    def categories(self) -> int:
        """The number of shares of a user."""
        return (self.dimension - 2) // 2

    @property
    def balanced(self) -> bool:
        """Whether the last offset is not written."""
        return self.norm == 1 and self.categories <= FEW

    @property
    def whole(self) -> float:
        """Sum of the shares of a user outside."""
        return self.radius if self.norm == 1 else math.sqrt(2.0) * self.radius * (1.0 - 2.0**-50)

    @property
    def vote(self) -> float:
        """Size of a vote of absence, and in the L2 norm of a vote "outside"."""
        return self.radius

    def offsets_in_steps(
        self, values: NDArray[np.float64], step: float, *, out: NDArray[np.float64]
    ) -> None:
        """Return offsets for users inside, shares for users outside, and votes for absent users."""
        inner = self.categories
        radius = self.radius * (1.0 - (inner + 8) * 2.0**-52)
        with np.errstate(all="ignore"):
            offsets = values[:, :inner] - self.centre[:inner]
            if self.balanced:
                offsets[:, -1] = 0.0
                lengths = 2.0 * np.maximum(_rises(offsets), _rises(-offsets))
            else:
                lengths = row_lengths(offsets, self.norm)
            inside = lengths <= radius
            absent = values[:, -1] > 0.5
            scaled = offsets * (radius / self.radius / step)
            out[:, :inner] = np.where((inside & ~absent)[:, None], scaled, 0.0)
            outside = ~inside & ~absent
            shares = out[:, inner:-2]
            Simplex(inner).offsets_in_steps(values[:, :inner], 1.0, out=shares)
            shares *= np.where(outside, self.whole / step, 0.0)[:, None]
            out[:, -2] = np.where(outside & (self.norm == 2), self.vote / step, 0.0)
            out[:, -1] = np.where(absent, self.vote / step, 0.0)

    def change_in_steps(self, step: float, relation: Relation) -> tuple[int, int]:
        """Return the largest change by one user, in steps: inside the ball, or outside."""
        reach = Fraction(self.radius) / Fraction(step)
        whole, vote = int(self.whole / step), int(self.vote / step)
        said = vote if self.norm == 2 else 0
        if self.norm == 1:
            length = int(reach)
            l1, squared, double = length, length * length, 4 * length * length
            apart = 2 * length
        else:
            l1, squared = math.isqrt(int(self.categories * reach * reach)), int(reach * reach)
            double = int(4 * reach * reach)
            apart = math.isqrt(int(4 * self.categories * reach * reach))
        far, far_squared = whole + said, whole * whole + said * said
        if relation is Relation.ADD_REMOVE:
            return max(l1, far, vote), max(squared, far_squared, vote * vote)
        l1_moves = (apart, l1 + far, l1 + vote, 2 * whole, far + vote)
        moves = (double, squared + far_squared, squared + vote**2, 2 * whole**2)
        return max(l1_moves), max(*moves, far_squared + vote**2)

    def joint_in_steps(self, step: float, relation: Relation) -> Joint | None:
        """All offsets balance if the last one is not written; see the proof."""
        change = self.change_in_steps(step, relation)[0]
        return ("balanced_laplace", (self.categories - 1,), change) if self.balanced else None

    def change(self, relation: Relation) -> tuple[float, float]:
        """Return the same in the units of the shares, rounded up."""
        up = 1.0 + 2.0**-48
        replaces = relation is Relation.REPLACE
        if self.norm == 1:
            times = 2.0 if replaces else 1.0
            return times * self.radius * up, times * self.radius * up
        wide, far = math.sqrt(self.categories), 1.0 + math.sqrt(2.0)
        l1 = max(2.0 * wide, wide + far, far + 1.0) if replaces else max(wide, far)
        return l1 * self.radius * up, (2.0 if replaces else math.sqrt(3.0)) * self.radius * up

    @property
    def largest_offset(self) -> float:
        """Largest absolute value of a coordinate of an offset."""
        return max(self.radius, self.whole)

    def _key(self) -> tuple[object, ...]:
        return type(self), self.radius, self.norm, self.centre.tobytes()
