"""Add up how much more a hypothesis errs than each user's own best one, up to half of the records.

What is minimised is the error that people share, so it needs no likeness: where users differ in
kind, :class:`OwnBest` and :class:`Duels` find what most users would choose for themselves, which
may err more in common. Subtracting the own fewest mistakes takes away what nothing can avoid, and
the cap doubles what the small differences weigh that a choice is about. It is the default for any
users once they are many for the class; see :mod:`quorate.learners.automatic`.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from quorate.guarantees import Relation
from quorate.learners.scores.base import Integers, MistakeLine, Score
from quorate.learners.scores.own_best import fewest_mistakes

__all__ = ["FULL_REGRET", "CappedRegret"]

FULL_REGRET = 64
"""The largest term of one user, in integer steps fine enough for any number of records."""


@dataclass(frozen=True, kw_only=True)
class CappedRegret(Score):
    """Loss: the sum over users of 64 min(1, (mistakes - own fewest) / (records / 2)), rounded down.

    Privacy
    -------
    sensitivity : 64, under both relations; one more user only adds
    proof : A user's term is an integer in {0, ..., 64}, made by integer division of that user's own
        mistakes, fewest mistakes and number of records; the class is public. Replacing a user
        exchanges one such term, adding a user adds one that is not negative.

    Complexity
    ----------
    Time O(n |H|) and memory O(|H|) over a finite class; O(N) along a line.

    Examples
    --------
    >>> CappedRegret().tally(np.array([[2, 1, 1], [0, 3, 0]]), np.array([4, 4]))
    array([32, 64,  0])
    """

    name = "capped_regret"

    @property
    def one_sided(self) -> bool:
        """One more user only adds."""
        return True

    def sensitivity(self, relation: Relation) -> int:
        """Return 64, under both relations."""
        del relation
        return FULL_REGRET

    def tally(self, mistakes: NDArray[np.integer], held: Integers) -> Integers:
        """Add up some users' capped regrets."""
        fewest = mistakes.min(axis=1, keepdims=True)
        return np.asarray(capped(mistakes - fewest, held[:, np.newaxis]).sum(axis=0))

    def losses(self, tally: Integers, *, n_users: int) -> Integers:
        """Return the sums themselves."""
        del n_users
        return tally

    def losses_of_pieces(self, line: MistakeLine) -> Integers:
        """Return the loss of every piece of an ordered class."""
        events = line.events
        fewest, held = fewest_mistakes(events), line.held
        best, own = fewest[events.user], held[events.user]
        changes = capped(events.after - best, own) - capped(events.before - best, own)
        return line.add_up(changes, initial=int(capped(events.initial - fewest, held).sum()))


def capped(regret: NDArray[np.integer], held: Integers) -> Integers:
    """Return 64 min(1, regret / (held / 2)), rounded down; 0 for somebody who holds nothing.

    >>> capped(np.array([0, 1, 1, 5, -1]), np.array([0, 1, 3, 7, 2]))
    array([ 0, 64, 42, 64,  0])
    """
    steps = 2 * FULL_REGRET * regret.astype(np.int64) // np.maximum(held, 1)
    return np.clip(steps, 0, FULL_REGRET)
