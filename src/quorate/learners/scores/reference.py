"""Compare every candidate with one reference that was chosen privately before.

For bounded losses (U7) and for mistakes alike: a user's *difference* to a good reference is much
smaller than the loss itself, of order 1/sqrt(m), so it can be clipped to a small radius. The
reference is released first; the candidates are then scored on clipped differences, and both
releases are paid for. Measured against Algorithm 5 of Levy et al. it needs no restarts and no
range to be found.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from quorate import _validate
from quorate.guarantees import Relation
from quorate.learners.scores.base import Integers, Score

__all__ = ["ClippedDifference"]


@dataclass(frozen=True, kw_only=True)
class ClippedDifference(Score):
    """Loss: the sum over users of the difference to the reference, clipped to [-radius, radius].

    Works on any table of integers, users in rows: mistakes, or losses on a public grid.

    Privacy
    -------
    sensitivity : ``2 radius`` under replacement, ``radius`` under addition or removal
    proof : A user's term lies in [-radius, radius]. ``reference`` and ``radius`` are public or were
        released before.

    Parameters
    ----------
    reference : int
        The column everything is compared with.
    radius : int
        Clip, in units of the table.

    Examples
    --------
    >>> score = ClippedDifference(reference=0, radius=1)
    >>> score.tally(np.array([[2, 7, 0], [1, 1, 0]]), np.array([9, 9]))
    array([ 0,  1, -2])
    """

    name = "clipped_difference"
    reference: int
    radius: int

    def __post_init__(self) -> None:
        _validate.non_negative_integer(reference=self.reference)
        _validate.positive_integer(radius=self.radius)

    def sensitivity(self, relation: Relation) -> int:
        """Return the width of a contribution, or its radius under addition or removal."""
        return 2 * self.radius if relation is Relation.REPLACE else self.radius

    def tally(self, mistakes: NDArray[np.integer], held: Integers) -> Integers:
        """Add up some users' clipped differences."""
        del held
        wide = mistakes.astype(np.int64)
        difference = wide - wide[:, [self.reference]]
        return np.asarray(np.clip(difference, -self.radius, self.radius).sum(axis=0))

    def losses(self, tally: Integers, *, n_users: int) -> Integers:
        """Return the sums themselves."""
        del n_users
        return tally
