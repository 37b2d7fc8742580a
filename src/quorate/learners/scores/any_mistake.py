"""Count the users for whom a hypothesis is wrong at least once (F4).

Theorem 4 and Lemma 22 of Ghazi et al., *User-level differential privacy with few examples per
user*: for realizable data, clip each user's mistakes to one and keep all records. The paper drops
records beyond 1/alpha; for an exact class that is not needed, so nothing is dropped here.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from quorate.learners.scores.base import AdditiveScore, Integers

__all__ = ["AnyMistake"]


@dataclass(frozen=True, kw_only=True)
class AnyMistake(AdditiveScore):
    """Loss: the number of users with at least one mistake.

    It is the best score if some hypothesis is nearly always right. It fails if users have more than
    about one mistake each with the best hypothesis.

    Privacy
    -------
    sensitivity : 1, under both relations; one more user only adds
    proof : A user contributes 0 or 1; see :class:`AdditiveScore`.

    Examples
    --------
    >>> AnyMistake().judged(np.array([[0, 3], [1, 1]]), np.array([3, 3])).tolist()
    [[False, True], [True, True]]
    """

    name = "any_mistake"

    @property
    def bound(self) -> int:
        """The bound of a contribution: one."""
        return 1

    def contribution(self, mistakes: NDArray[np.integer], held: Integers) -> NDArray[np.bool_]:
        """Return whether a user has any mistake."""
        del held
        return mistakes > 0
