"""Medians of users' own cut-offs, or of their records, as one interval per user on a line.

Each user accepts the positions of an interval: from the first to the last cut-off that is best on
the user's own records, or between the first and the third quartile of these records. The released
position has few intervals entirely on one side of it.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from quorate.core.account.account import Account
from quorate.core.guarantees import Relation
from quorate.core.people import People
from quorate.core.questions.lines import Heights, Walk
from quorate.core.users import UserData
from quorate.core.users.grouping import group_by_user
from quorate.learners.concepts.base import ConceptClass
from quorate.learners.concepts.mistake_events import MistakeEvents
from quorate.learners.concepts.numeric.thresholds import Direction, Thresholds
from quorate.learners.scores.base import Along, MistakeLine
from quorate.mechanisms.choices.choose import CONFIDENCE, ChoiceError, ChooseBest, Selection
from quorate.mechanisms.choices.quantiles import PrivateQuantile

__all__ = [
    "DIRECTION_SHARE",
    "Middles",
    "choose_by_median",
    "median_between",
    "median_error",
    "median_of",
    "shifted",
]

DIRECTION_SHARE = Fraction(1, 10)
"""Share of the budget that chooses on which side of a cut-off 1 is predicted."""

_BETA = 1.0 - CONFIDENCE
_SLACK_FROM = 16
_SLACK_PER_ROOT = 4


def choose_by_median(
    concepts: Thresholds, people: People, *, account: Account, slack: bool = False
) -> int:
    """Choose the median of the users' own best cut-offs.

    Each user contributes one interval, from the first to the last cut-off with the fewest mistakes
    on the user's own records. The loss of a cut-off is the number of intervals entirely to its left
    or the number entirely to its right, whichever is larger. Using the whole interval instead of
    one of its points keeps the median unbiased if users have few records. A user without records
    has no influence.

    ``slack`` is for very few users, nearly all of whom must agree. It also accepts cut-offs with up
    to sqrt(m) / 4 more mistakes than a user's fewest on m records (from 16 on), which is the effect
    of label noise. It chooses by permute-and-flip, which is never less accurate.
    """
    if concepts.direction is Direction.EITHER:
        return _median_either_way(concepts, people, account=account, slack=slack)
    hulls = _Hulls(concepts.size, slack)
    return median_between(people.walk(Along(concepts)), hulls, account=account, flip=slack)


def median_between(
    walk: Walk, ends: _Hulls | Middles, *, account: Account, flip: bool = False
) -> int:
    """Release a cut-off such that few users' intervals are entirely on one side of it."""
    intervals = walk.each(ends)
    median = median_of(ends.size, epsilon=account.left, relation=account.relation, flip=flip)
    return ends.size // 2 + median.release_between(
        intervals.column(0), intervals.column(1), account=account
    )


def shifted(first: NDArray[np.uint64], last: NDArray[np.uint64], middle: int) -> NDArray[np.int64]:
    """Return intervals, one per row.

    Positions are relative to the middle, so that they fit into int64.
    """
    return (np.stack([first, last], axis=1) - np.uint64(middle)).view(np.int64)


def _median_either_way(
    concepts: Thresholds, people: People, *, account: Account, slack: bool
) -> int:
    """Let users vote on the direction, then take the median in that direction."""
    sides = (Direction.ABOVE, Direction.BELOW)
    classes = [replace(concepts, direction=side) for side in sides]
    tally = people.each(_Directions(tuple(classes))).tally(2)
    # Priced as numbers that may move apart: a sign that was turned forgets in which direction.
    against = -tally[1:]
    votes = tally[:1].beside(-against)
    vote = ChooseBest(
        candidates=2, epsilon=DIRECTION_SHARE * account.left, relation=account.relation
    )
    side = vote.release(votes, account=account)
    index = choose_by_median(classes[side], people, account=account, slack=slack)
    # The line of both directions lists "above" first and then the cut-offs 1, ..., D - 1 of
    # "below"; the constants at the ends of "below" are those of "above" the other way round.
    points = concepts.domain.points
    if side == 1:
        index = points - index if index in (0, points) else points + index
    return index


@dataclass(frozen=True)
class _Ends:
    """One interval per user, on a line with ``size`` positions."""

    size: int


@dataclass(frozen=True)
class _Hulls(_Ends):
    """The first and the last best (or nearly best) cut-off of each user."""

    slack: bool

    def __call__(self, line: MistakeLine) -> NDArray[np.int64]:
        slack = _slack(line.held) if self.slack else None
        return shifted(*line.events.best_ranges(slack=slack).hull(), self.size // 2)


def _slack(held: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return how many mistakes above a user's minimum are accepted: sqrt(m) / 4, rounded.

    >>> _slack(np.array([0, 15, 16, 64, 256])).tolist()
    [0, 0, 1, 2, 4]
    """
    slack = np.rint(np.sqrt(held) / _SLACK_PER_ROOT).astype(np.int64)
    return np.where(held < _SLACK_FROM, 0, slack)


@dataclass(frozen=True)
class Middles(_Ends):
    """Each user's interval between the quartiles of the user's records, as cut-offs."""

    def __call__(self, line: MistakeLine) -> NDArray[np.int64]:
        """Return the first and the last cut-off of each user's interval."""
        return shifted(*_middle_records(line.events), self.size // 2)


def _middle_records(events: MistakeEvents) -> tuple[NDArray[np.uint64], NDArray[np.uint64]]:
    """Return these intervals from the users' mistakes, which change just above each record."""
    order = group_by_user(events.user, n_users=events.n_users)
    edges, held = events.positions[order], np.bincount(events.user, minlength=events.n_users)
    # Nobody's records: content with every place.
    first = np.zeros(events.n_users, dtype=np.uint64)
    last = np.full(events.n_users, events.size - 1, dtype=np.uint64)
    present = np.flatnonzero(held)
    begin, quarter = (np.cumsum(held) - held)[present], (held[present] - 1) // 4
    first[present] = edges[begin + quarter]
    last[present] = edges[begin + held[present] - 1 - quarter]
    return first, last


@dataclass(frozen=True)
class _Directions:
    """For each user the direction with fewer mistakes (0 or 1); 2 if they are equal."""

    classes: tuple[Thresholds, ...]

    def __call__(self, users: UserData) -> NDArray[np.int64]:
        first, second = (Heights.of(each.events_of(users)).fewest() for each in self.classes)
        return np.where(first < second, 0, np.where(second < first, 1, 2))


def median_of(
    size: int, *, epsilon: Fraction, relation: Relation, flip: bool = False
) -> PrivateQuantile:
    """Return the median of positions in {0, ..., size - 1}, numbered from the middle.

    >>> median_of(11, epsilon=Fraction(1), relation=Relation.REPLACE).domain
    (-5, 5)
    """
    # Up to 2**63 + 1 cut-offs: numbered from the middle they fit into 64 bits with a sign.
    middle = size // 2
    return PrivateQuantile(
        domain=(-middle, size - 1 - middle),
        epsilon=epsilon,
        relation=relation,
        selection=Selection.PERMUTE_AND_FLIP if flip else Selection.GUMBEL,
    )


def median_error(
    concepts: ConceptClass,
    *,
    epsilon: Fraction,
    relation: Relation,
    n_users: int | None,
    slack: bool,
) -> ChoiceError:
    """Return the error of a cut-off that :func:`choose_by_median` chose.

    >>> known = dict(epsilon=Fraction(1), relation=Relation.REPLACE, n_users=2000)
    >>> median_error(Thresholds(0, 99), slack=False, **known).unit
    'people'
    """
    counts = "people whose own cut-offs all lie on one side"
    size = concepts.size
    if isinstance(concepts, Thresholds) and concepts.direction is Direction.EITHER:
        # The votes on the direction are a choice of their own; half of what may fail is for each.
        vote = ChooseBest(candidates=2, epsilon=DIRECTION_SHARE * epsilon, relation=relation)
        median = median_of(
            concepts.domain.points + 1,
            epsilon=(1 - DIRECTION_SHARE) * epsilon,
            relation=relation,
            flip=slack,
        )
        people = max(vote.error_bound(_BETA / 2), median.error_bound(_BETA / 2))
        return ChoiceError.of_people(
            people, counts=f"{counts}, and before that votes on the direction", n_users=n_users
        )
    median = median_of(size, epsilon=epsilon, relation=relation, flip=slack)
    return ChoiceError.of_people(median.error_bound(_BETA), counts=counts, n_users=n_users)
