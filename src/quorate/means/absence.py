r"""Users without usable records: counted together with a sum, at no cost where everybody is there.

Under replacement the number of users is public but how many of them hold a record is not. A mean
over those who do must be divided by *their* number. So each user contributes one of two things: an
offset inside the bound, or one vote for "absent" in a coordinate of its own. An absent user has no
offset, so replacing a present user by an absent one moves the sum by less than replacing one corner
of the bound by the opposite one; a vote may therefore weigh a lot (:func:`gaussian_vote`,
:func:`laplace_vote`) before one user moves the sum by more than without it. The noise is the same,
and the number of absent users comes free.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from quorate import _validate
from quorate.bounds import Bound
from quorate.guarantees import Relation

__all__ = [
    "OrAbsent",
    "gaussian_vote",
    "hardly_anybody",
    "laplace_vote",
    "marked",
    "present_users",
]

# Absent users are believed in by the odds that noise does not explain their number; so many to one
# are against it before it is seen. That leaves a quarter of the variance of the divisor where
# everybody is there, and adds four tenths at most where a few are missing.
_DOUBT = 8.0
# Fewer than this many scales of present users are nobody.
_BELIEVED = 3.0
# Far more than the rounding errors of one vote.
_ROUNDING = 1e-12


@dataclass(frozen=True, eq=False, init=False)
class OrAbsent(Bound):
    """An offset inside a bound, or a vote for "absent": one more coordinate, 0 or 1 in the rows.

    Privacy: between two present users the change is that of the inner bound; between a present and
    an absent one it is an offset in some coordinates and a vote in another, so L1 norms add up and
    so do squared L2 norms. The larger one counts, in whole steps.

    Parameters
    ----------
    inner : Bound
    vote : float
        Size of a vote in the units of the data.

    Examples
    --------
    >>> from quorate.bounds import Ball
    >>> bound = OrAbsent(Ball(1.0, dimension=2), 1.5)
    >>> bound.clip([[3.0, 4.0, 0.0], [np.nan, np.nan, 1.0]]).round(6)
    array([[0.6, 0.8, 0. ],
           [0. , 0. , 1.5]])
    >>> bound.change_in_steps(0.5, Relation.REPLACE)
    (5, 16)
    """

    inner: Bound
    vote: float

    def __init__(self, inner: Bound, vote: float) -> None:
        _validate.positive(vote=vote)
        object.__setattr__(self, "inner", inner)
        object.__setattr__(self, "vote", float(vote))
        object.__setattr__(self, "dimension", inner.dimension + 1)
        object.__setattr__(self, "centre", np.append(inner.centre, 0.0))

    def offsets_in_steps(
        self, values: NDArray[np.float64], step: float, *, out: NDArray[np.float64]
    ) -> None:
        """Clip those who are present; the others vote."""
        self.inner.offsets_in_steps(values[:, :-1], step, out=out[:, :-1])
        absent = values[:, -1] > 0.5
        out[absent, :-1] = 0.0
        out[:, -1] = np.where(absent, self.vote / step, 0.0)

    def change_in_steps(self, step: float, relation: Relation) -> tuple[int, int]:
        """Return the larger of two changes: an offset by another, or an offset by a vote."""
        votes = int(self.vote / step)
        l1, squared = self.inner.change_in_steps(step, Relation.ADD_REMOVE)
        if relation is Relation.ADD_REMOVE:
            return max(l1, votes), max(squared, votes * votes)
        other_l1, other_squared = self.inner.change_in_steps(step, relation)
        return max(other_l1, l1 + votes), max(other_squared, squared + votes * votes)

    def change(self, relation: Relation) -> tuple[float, float]:
        """Return the same in the units of the data."""
        l1, l2 = self.inner.change(Relation.ADD_REMOVE)
        if relation is Relation.ADD_REMOVE:
            return max(l1, self.vote), max(l2, self.vote)
        other_l1, other_l2 = self.inner.change(relation)
        with_vote = math.hypot(l2, self.vote)
        up = 1.0 + _ROUNDING / 100
        return max(other_l1, (l1 + self.vote) * up), max(other_l2, with_vote * up)

    @property
    def largest_offset(self) -> float:
        """Largest absolute value of a coordinate of an offset."""
        return max(self.inner.largest_offset, self.vote)

    def _key(self) -> tuple[object, ...]:
        return type(self), self.inner._key(), self.vote


def laplace_vote(bound: Bound) -> float:
    """Return the largest vote that leaves the L1 norm of a change as it is.

    >>> from quorate.bounds import Box
    >>> round(laplace_vote(Box([-1.0, -2.0], [1.0, 2.0])), 6)
    3.0
    """
    room = bound.l1_diameter - bound.l1_radius
    return room * (1.0 - _ROUNDING)


def gaussian_vote(bound: Bound) -> float:
    """Return the largest vote that leaves the L2 norm of a change as it is.

    >>> from quorate.bounds import Ball
    >>> round(gaussian_vote(Ball(1.0, dimension=5)), 6)
    1.732051
    """
    room = bound.l2_diameter**2 - bound.l2_radius**2
    return math.sqrt(room) * (1.0 - _ROUNDING)


def marked(rows: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the rows with one more column: 1 for a row of NaN, which is nobody's.

    >>> marked(np.array([[2.0], [np.nan]]))
    array([[ 2.,  0.],
           [nan,  1.]])
    """
    result = np.empty((len(rows), rows.shape[1] + 1))
    result[:, :-1] = rows
    result[:, -1] = np.isnan(rows[:, 0])
    return result


def present_users(n_users: float, absent: float, error: float) -> tuple[float, float]:
    """Return how many users to divide by, and the error of that number.

    ``absent`` is a noisy number of users and ``error`` the size of its noise. So few that noise
    alone might explain them hardly count: the others of them are taken for the centre that offsets
    are taken from. Where hardly anybody is there, see :func:`hardly_anybody`, there is nothing to
    divide by.

    >>> [round(present_users(1000.0, seen, 4.0)[0]) for seen in (5.0, 20.0, 200.0)]
    [998, 981, 800]
    >>> present_users(1000.0, 1003.0, 4.0)
    (1000.0, 4.0)
    """
    if absent <= 0.0 or hardly_anybody(n_users, absent, error):
        return n_users, error
    return n_users - absent / (1.0 + _DOUBT * math.exp(-absent / error)), error


def hardly_anybody(n_users: float, absent: float, error: float) -> bool:
    """Whether noise alone might explain those who seem to be present: then nothing is known.

    >>> hardly_anybody(1000.0, 995.0, 4.0), hardly_anybody(1000.0, 900.0, 4.0)
    (True, False)
    """
    return n_users - absent < _BELIEVED * error
