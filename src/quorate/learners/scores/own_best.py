"""Count the users whose own records favour another hypothesis.

A private majority vote in which users approve of *all* hypotheses that are best for them. Along a
line neighbouring cut-offs share their approvals, and with enough users this is the best score
there, for any number of records and without knowing any noise level; with one record a user it is
:class:`AnyMistake`. In classes without an order near-equals split the approvals: use
:class:`Duels`.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from quorate.concepts.mistake_events import MistakeEvents, group_by_user
from quorate.guarantees import Relation
from quorate.learners.scores.base import Integers, MistakeLine, Score

__all__ = ["OwnBest", "fewest_mistakes"]


def fewest_mistakes(events: MistakeEvents) -> Integers:
    """Return each user's smallest number of mistakes over all hypotheses.

    >>> from quorate.concepts import Thresholds
    >>> from quorate.users import UserData
    >>> people = UserData.from_arrays([[5], [5], [7]], [0, 1, 1], users=["a", "a", "b"])
    >>> fewest_mistakes(Thresholds(0, 9).mistake_events(people))
    array([1, 0])
    """
    order = group_by_user(events.user, n_users=events.n_users)
    user, piece, after = events.user[order], events.piece[order], events.after[order]
    # Of several changes of one user at one place only the last is attained.
    passed = (user[1:] == user[:-1]) & (piece[1:] == piece[:-1])
    np.copyto(after[:-1], np.iinfo(np.int64).max, where=passed)
    held = np.bincount(user, minlength=events.n_users)
    fewest = events.initial.copy()
    some = np.flatnonzero(held)
    if some.size:
        starts = (np.cumsum(held) - held)[some]
        fewest[some] = np.minimum(fewest[some], np.minimum.reduceat(after, starts))
    return fewest


@dataclass(frozen=True, kw_only=True)
class OwnBest(Score):
    """Loss: the number of users for whom the hypothesis errs more than their own best one.

    Privacy
    -------
    sensitivity : 1, under both relations; one more user only adds
    proof : A user contributes 0 or 1 to each hypothesis, decided by that user's own records and
        the public class alone. Replacing a user exchanges one such term, adding a user adds one.

    Examples
    --------
    >>> OwnBest().tally(np.array([[2, 1, 1], [0, 3, 0]]), np.array([4, 4]))
    array([1, 1, 0])
    """

    name = "own_best"

    @property
    def one_sided(self) -> bool:
        """One more user only adds."""
        return True

    def sensitivity(self, relation: Relation) -> int:
        """Return 1, under both relations."""
        del relation
        return 1

    def tally(self, mistakes: NDArray[np.integer], held: Integers) -> Integers:
        """Count the users for whom another hypothesis is better."""
        del held
        beaten = mistakes > mistakes.min(axis=1, keepdims=True)
        return np.asarray(np.count_nonzero(beaten, axis=0), dtype=np.int64)

    def losses(self, tally: Integers, *, n_users: int) -> Integers:
        """Return the counts themselves."""
        del n_users
        return tally

    def losses_of_pieces(self, line: MistakeLine) -> Integers:
        """Return the loss of every piece of an ordered class."""
        events = line.events
        fewest = fewest_mistakes(events)
        # Leaving the own best moves a user's indicator up, coming back moves it down.
        moving = np.flatnonzero(events.level == fewest[events.user])
        changes = events.after[moving] - events.before[moving]
        above = int(np.count_nonzero(events.initial > fewest))
        return line.add_up(changes, initial=above, which=moving)
