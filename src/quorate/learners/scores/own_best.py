"""Count the users for whom another hypothesis has fewer mistakes.

It is a private majority vote in which users vote for *all* hypotheses that are best for them. On a
line neighbouring cut-offs share votes. With enough users this is the best score there, for any
number of records and without knowing the noise level; with one record per user it is
:class:`AnyMistake`. In classes without an order, hypotheses of nearly equal quality split the
votes: use :class:`Duels`.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from quorate.learners.scores.base import AdditiveScore, Integers

__all__ = ["OwnBest"]


@dataclass(frozen=True, kw_only=True)
class OwnBest(AdditiveScore):
    """Loss: the number of users with more mistakes than under their own best hypothesis.

    Privacy
    -------
    sensitivity : 1, under both relations; one more user only adds
    proof : A user contributes 0 or 1 to each hypothesis, decided by that user's own records and
        the public class alone. Replacing a user exchanges one such term, adding a user adds one.

    Examples
    --------
    >>> OwnBest().judged(np.array([[2, 1, 1], [0, 3, 0]]), np.array([4, 4])).tolist()
    [[True, False, False], [False, True, False]]
    """

    name = "own_best"
    beyond_own_best = True

    @property
    def bound(self) -> int:
        """The bound of a contribution: one."""
        return 1

    def contribution(self, mistakes: NDArray[np.integer], held: Integers) -> NDArray[np.bool_]:
        """Return whether another hypothesis has fewer mistakes for a user."""
        del held
        return mistakes > 0
