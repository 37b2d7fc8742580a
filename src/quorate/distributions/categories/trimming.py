r"""A user's offset from a released centre, or a vote: too far away, or not there.

Where users are much alike, most of them lie in a small ball around the centre. Such a user adds the
offset; a user outside votes "outside" in a coordinate of its own, an absent one "absent". Nobody is
pulled in, so the mean of those inside is not bent, and how many were left out is known up to the
noise, which bounds what they could have changed, whoever they are. The votes cost nothing: a vote
is as long as leaves the distance between any two users at the diameter of the ball.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from quorate import _validate
from quorate.bounds import Bound
from quorate.distributions.shares import Coder, dense_shares
from quorate.exceptions import ParameterError
from quorate.grid import Grid
from quorate.guarantees import Relation
from quorate.users.data import UserData

__all__ = ["Distances", "Trimmed", "TrimmedTotals", "row_lengths"]

NORMS = (1, 2)


def row_lengths(offsets: NDArray[np.float64], norm: int) -> NDArray[np.float64]:
    """Return the L1 or L2 norm of each row, each computed by itself.

    >>> row_lengths(np.array([[3.0, -4.0]]), 1), row_lengths(np.array([[3.0, -4.0]]), 2)
    (array([7.]), array([5.]))
    """
    if norm == 1:
        return np.asarray(np.vecdot(np.abs(offsets), np.ones(offsets.shape[1])))
    return np.asarray(np.sqrt(np.vecdot(offsets, offsets)))


@dataclass(frozen=True, eq=False, init=False)
class Trimmed(Bound):
    r"""An offset of at most ``radius`` from ``centre``, or one of two votes.

    Rows hold a user's vector, a column that is not looked at, and 1 in the last for an absent user.

    Privacy: in the norm of the ball two offsets differ by at most 2r. *L1:* a vote is r long; an
    offset and a vote differ by at most 2r, two different votes by 2r. *L2:* a vote is
    :math:`\sqrt 2 r` long; an offset and a vote differ by at most :math:`\sqrt{3} r`, two votes by
    2r. In whole steps: votes are rounded down, and offsets are multiplied by a factor below
    r / length, as in the proof at the top of :mod:`quorate.bounds`, and then rounded towards the
    centre. The computed length is at least :math:`(1-u)^{d}` times the true one in either norm.
    Whether a user is inside is decided by this user's own row.

    Parameters
    ----------
    radius : float
        At most 2, the diameter of the simplex.
    centre : array of shape (d,)
    norm : {1, 2}

    Examples
    --------
    >>> bound = Trimmed(0.5, np.array([0.5, 0.5]), norm=1)
    >>> bound.clip([[0.6, 0.4, 0, 0], [1.0, 0.0, 0, 0], [0.0, 0.0, 0, 1]]).round(6)
    array([[ 0.1, -0.1,  0. ,  0. ],
           [ 0. ,  0. ,  0.5,  0. ],
           [ 0. ,  0. ,  0. ,  0.5]])
    """

    radius: float
    centre: NDArray[np.float64]
    norm: int

    def __init__(self, radius: float, centre: NDArray[np.float64], *, norm: int) -> None:
        _validate.positive(radius=radius)
        _validate.one_of(NORMS, norm=norm)
        middle = np.append(np.array(centre, dtype=np.float64), [0.0, 0.0])
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
    def vote(self) -> float:
        """Size of a vote."""
        return self.radius if self.norm == 1 else math.sqrt(2.0) * self.radius * (1.0 - 2.0**-50)

    def offsets_in_steps(
        self, values: NDArray[np.float64], step: float, *, out: NDArray[np.float64]
    ) -> None:
        """Write offsets of those who are inside, and votes of the others."""
        inner = self.dimension - 2
        radius = self.radius * (1.0 - (inner + 8) * 2.0**-52)
        with np.errstate(all="ignore"):
            offsets = values[:, :inner] - self.centre[:inner]
            lengths = row_lengths(offsets, self.norm)
            inside = lengths <= radius
            absent = values[:, -1] > 0.5
            scaled = offsets * (radius / self.radius / step)
            out[:, :inner] = np.where((inside & ~absent)[:, None], scaled, 0.0)
            out[:, inner] = np.where(~inside & ~absent, self.vote / step, 0.0)
            out[:, inner + 1] = np.where(absent, self.vote / step, 0.0)

    def change_in_steps(self, step: float, relation: Relation) -> tuple[int, int]:
        """Return the largest of: offset to offset, offset to vote, vote to vote, in steps."""
        reach, votes = Fraction(self.radius) / Fraction(step), int(self.vote / step)
        inner = self.dimension - 2
        if self.norm == 1:
            length = int(reach)
            l1, squared = length, length * length
        else:
            l1, squared = math.isqrt(int(inner * reach * reach)), int(reach * reach)
        if relation is Relation.ADD_REMOVE:
            return max(l1, votes), max(squared, votes * votes)
        double = int(4 * reach * reach) if self.norm == 2 else 4 * squared
        apart = math.isqrt(int(4 * inner * reach * reach)) if self.norm == 2 else 2 * l1
        return max(apart, l1 + votes, 2 * votes), max(double, squared + votes**2, 2 * votes**2)

    def change(self, relation: Relation) -> tuple[float, float]:
        """Return the same in the units of the shares, rounded up."""
        up = 1.0 + 2.0**-48
        times = 2.0 if relation is Relation.REPLACE else 1.0
        if relation is Relation.ADD_REMOVE and self.norm == 2:
            times = math.sqrt(2.0)
        wide = 1.0 if self.norm == 1 else math.sqrt(max(1, self.dimension - 2))
        l1 = max(times * wide, times) if relation is Relation.REPLACE else max(wide, times)
        return l1 * self.radius * up, times * self.radius * up

    @property
    def largest_offset(self) -> float:
        """Largest absolute value of a coordinate of an offset."""
        return max(self.radius, self.vote)

    def _key(self) -> tuple[object, ...]:
        return type(self), self.radius, self.norm, self.centre.tobytes()


@dataclass(frozen=True)
class TrimmedTotals:
    """The sum over users of offsets and votes, in steps of a grid of :class:`Trimmed`."""

    coder: Coder
    grid: Grid

    def __call__(self, part: UserData) -> NDArray[np.int64]:
        """Return the totals of a part in two halves, for :meth:`~quorate.grid.Grid.join`."""
        inner = self.grid.bound.dimension - 2
        halves = np.zeros((2, inner + 2), dtype=np.int64)
        for _, shares, absent in dense_shares(part, self.coder, inner):
            rows = np.zeros((len(shares), inner + 2))
            rows[:, :inner], rows[:, -1] = shares, absent
            halves += self.grid.encode_halves(rows)
        return halves


@dataclass(frozen=True)
class Distances:
    """How far each user's shares are from a released centre; absent users are at the centre.

    >>> from quorate.distributions.shares import CategoryCodes
    >>> people = UserData.from_arrays([[1.0], [0.0], [1.0]], users=[4, 9, 4])
    >>> Distances(CategoryCodes(2), (1.0, 0.0), norm=1)(people)
    array([2., 0.])
    """

    coder: Coder
    centre: tuple[float, ...]
    norm: int

    def __call__(self, part: UserData) -> NDArray[np.float64]:
        """Return one distance a user."""
        centre = np.array(self.centre)
        found = np.empty(part.n_users)
        for rows, shares, absent in dense_shares(part, self.coder, centre.size):
            found[rows] = np.where(absent, 0.0, row_lengths(shares - centre, self.norm))
        return found
