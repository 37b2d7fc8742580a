"""An offset inside a bound, or a vote for "absent" in one more coordinate, at no extra cost."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from quorate import _validate
from quorate.core.bounds.grid import Bound, Joint
from quorate.core.guarantees import Relation

__all__ = ["OrAbsent"]

# Far more than the rounding errors of one sum and one root.
_ROUNDING = 1e-14


@dataclass(frozen=True, eq=False, init=False)
class OrAbsent(Bound):
    """An offset inside a bound, or a vote for "absent": one more coordinate, 0 or 1 in the rows.

    Privacy: between two present users the change is that of the inner bound. Between a present and
    an absent one it is an offset in some coordinates and a vote in another, so L1 norms add up and
    so do squared L2 norms. The larger of the two counts, in whole steps.

    Parameters
    ----------
    inner : Bound
    vote : float
        Size of a vote in the units of the data.

    Examples
    --------
    >>> from quorate.core.bounds.grid import Ball
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
        """Clip the offsets of present users; write the votes of absent ones."""
        self.inner.offsets_in_steps(values[:, :-1], step, out=out[:, :-1])
        absent = values[:, -1] > 0.5
        out[absent, :-1] = 0.0
        out[:, -1] = np.where(absent, self.vote / step, 0.0)

    def change_in_steps(self, step: float, relation: Relation) -> tuple[int, int]:
        """Return the larger of two changes: one offset to another, or an offset to a vote."""
        votes = int(self.vote / step)
        l1, squared = self.inner.change_in_steps(step, Relation.ADD_REMOVE)
        if relation is Relation.ADD_REMOVE:
            return max(l1, votes), max(squared, votes * votes)
        other_l1, other_squared = self.inner.change_in_steps(step, relation)
        return max(other_l1, l1 + votes), max(other_squared, squared + votes * votes)

    def joint_in_steps(self, step: float, relation: Relation) -> Joint | None:
        """Return the largest change of a coordinate of a box, or of the coordinate for votes."""
        alone = self.inner.joint_in_steps(step, Relation.ADD_REMOVE)
        both = self.inner.joint_in_steps(step, relation)
        if alone is None or both is None or alone[0] != "cube_laplace":
            return None
        votes = int(self.vote / step) + (alone[2] if relation is Relation.REPLACE else 0)
        return alone[0], alone[1], max(both[2], votes)

    def change(self, relation: Relation) -> tuple[float, float]:
        """Return the same in the units of the data."""
        l1, l2 = self.inner.change(Relation.ADD_REMOVE)
        if relation is Relation.ADD_REMOVE:
            return max(l1, self.vote), max(l2, self.vote)
        other_l1, other_l2 = self.inner.change(relation)
        with_vote = math.hypot(l2, self.vote)
        up = 1.0 + _ROUNDING
        return max(other_l1, (l1 + self.vote) * up), max(other_l2, with_vote * up)

    @property
    def largest_offset(self) -> float:
        """Largest absolute value of a coordinate of an offset."""
        return max(self.inner.largest_offset, self.vote)

    def _key(self) -> tuple[object, ...]:
        return type(self), self.inner._key(), self.vote
