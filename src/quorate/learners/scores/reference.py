"""Comparison of every candidate with one reference that was chosen privately before.

For bounded losses (U7) and for mistakes, a user's *difference* to a good reference is much smaller
than the loss itself, of order 1/sqrt(m), so it can be clipped to a small radius. The reference is
released first; then the candidates are scored by clipped differences. Both releases are paid for.
Unlike Algorithm 5 of Levy et al. it needs no restarts and no search for a range.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from quorate import _validate
from quorate.core.guarantees import Relation
from quorate.core.people import People
from quorate.core.sealed import Sealed
from quorate.learners.concepts.base import ConceptClass
from quorate.learners.scores.base import Integers, Judged, Score

__all__ = ["ClippedDifference"]


@dataclass(frozen=True, kw_only=True)
class ClippedDifference(Score):
    """Loss: the sum over users of the difference to the reference, clipped to [-radius, radius].

    It works on any table of integers with users in rows: mistakes, or losses on a public grid.

    Privacy
    -------
    sensitivity : ``2 radius`` under replacement, ``radius`` under addition or removal
    proof : A user's term lies in [-radius, radius]. ``reference`` and ``radius`` are public or were
        released before.

    Parameters
    ----------
    reference : int
        The column with which all others are compared.
    radius : int
        Clip, in units of the table.

    Examples
    --------
    >>> score = ClippedDifference(reference=0, radius=1)
    >>> score.judged(np.array([[2, 7, 0], [1, 1, 0]]), np.array([9, 9])).tolist()
    [[0, 1, -1], [0, 0, -1]]
    """

    name = "clipped_difference"
    reference: int
    radius: int

    def __post_init__(self) -> None:
        _validate.non_negative_integer(reference=self.reference)
        _validate.positive_integer(radius=self.radius)

    def sensitivity(self, relation: Relation) -> int:
        """Return the width of the interval of contributions, or its radius under add or remove."""
        return 2 * self.radius if relation is Relation.REPLACE else self.radius

    def judged(self, mistakes: NDArray[np.integer], held: Integers) -> Integers:
        """Return the clipped differences of some users (rows)."""
        del held
        wide = mistakes.astype(np.int64)
        difference = wide - wide[:, [self.reference]]
        return np.asarray(np.clip(difference, -self.radius, self.radius))

    def losses_over(self, people: People, concepts: ConceptClass) -> Sealed:
        """Return the loss of every hypothesis of a finite class."""
        return people.scores(Judged(concepts, (self,), -self.radius, self.radius))[0]
