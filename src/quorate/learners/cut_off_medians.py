"""Medians of users' own cut-offs, and of their records: one interval a user along a line.

A user is content with every place of an interval: from the first to the last cut-off that is best
on their own records, or from a quarter to three quarters of these records. What is released is a
place that few intervals lie entirely on one side of.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from quorate.accounting.account import Account
from quorate.concepts.base import ConceptClass
from quorate.concepts.mistake_events import MistakeEvents, group_by_user
from quorate.concepts.numeric.thresholds import Direction, Thresholds
from quorate.guarantees import Relation
from quorate.learners.scores.base import MistakeLine
from quorate.learners.scores.own_best import fewest_mistakes
from quorate.mechanisms.choices.choose import CONFIDENCE, ChoiceError, ChooseBest, Selection
from quorate.mechanisms.choices.quantiles import PrivateQuantile
from quorate.users import UserData
from quorate.users.crowd import Crowd

__all__ = [
    "DIRECTION_SHARE",
    "Middles",
    "choose_by_median",
    "median_between",
    "median_error",
    "median_of",
    "middle_records",
]

DIRECTION_SHARE = Fraction(1, 10)
"""Share of the budget that chooses on which side of a cut-off 1 is predicted."""

_BETA = 1.0 - CONFIDENCE
_SLACK_FROM = 16
_SLACK_PER_ROOT = 4


def choose_by_median(
    concepts: Thresholds, users: Crowd, *, account: Account, slack: bool = False
) -> int:
    """Choose the median of the users' own best cut-offs.

    Each user contributes one interval: from their first to their last cut-off with the fewest
    mistakes on their own records. The loss of a cut-off is the larger of the numbers of intervals
    entirely to its left and to its right. Taking the whole interval in place of one point of it
    keeps the median unbiased when records are few; a user without records abstains.

    ``slack`` is for the fewest users, who must agree nearly all of them: each is content with
    sqrt(m) / 4 mistakes more than the fewest on m records (from 16 on), what noise in labels makes
    of your own best cut-off; and permute-and-flip chooses, which never errs more.
    """
    if concepts.direction is Direction.EITHER:
        return _median_either_way(concepts, users, account=account, slack=slack)
    hulls = users.map(_Hulls(concepts, slack))
    return median_between(hulls, concepts.size, account=account, flip=slack)


def median_between(
    ends: Sequence[tuple[NDArray[np.uint64], NDArray[np.uint64]]],
    size: int,
    *,
    account: Account,
    flip: bool = False,
) -> int:
    """Release a place of {0, ..., size - 1} that few users' intervals are entirely on a side of."""
    first, last = (np.concatenate(each) for each in zip(*ends, strict=True))
    median = median_of(size, epsilon=account.left, relation=account.relation, flip=flip)
    middle = size // 2
    shift = np.uint64(middle)
    return middle + median.release_between(
        (first - shift).view(np.int64), (last - shift).view(np.int64), account=account
    )


def _median_either_way(concepts: Thresholds, users: Crowd, *, account: Account, slack: bool) -> int:
    """Let users vote on the direction, then take the median in that direction."""
    sides = (Direction.ABOVE, Direction.BELOW)
    classes = [replace(concepts, direction=side) for side in sides]
    votes = users.add_up(_Directions(tuple(classes)), whole=True)
    vote = ChooseBest(
        candidates=2, epsilon=DIRECTION_SHARE * account.left, relation=account.relation
    )
    side = vote.release(votes, account=account)
    index = choose_by_median(classes[side], users, account=account, slack=slack)
    # The line of both directions lists "above" first and then the cut-offs 1, ..., D - 1 of
    # "below"; the constants at the ends of "below" are those of "above" the other way round.
    points = concepts.domain.points
    if side == 1:
        index = points - index if index in (0, points) else points + index
    return index


@dataclass(frozen=True)
class _Hulls:
    """The first and the last cut-off that are best for each user of a part, or nearly best."""

    concepts: Thresholds
    slack: bool

    def __call__(self, users: UserData) -> tuple[NDArray[np.uint64], NDArray[np.uint64]]:
        line = MistakeLine(concepts=self.concepts, users=users)
        return line.events.best_ranges(slack=_slack(line.held) if self.slack else None).hull()


def _slack(held: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return how many mistakes beyond the fewest are overlooked: sqrt(m) / 4, rounded.

    >>> _slack(np.array([0, 15, 16, 64, 256])).tolist()
    [0, 0, 1, 2, 4]
    """
    slack = np.rint(np.sqrt(held) / _SLACK_PER_ROOT).astype(np.int64)
    return np.where(held < _SLACK_FROM, 0, slack)


@dataclass(frozen=True)
class Middles:
    """From a quarter to three quarters of each user's records, as cut-offs just above them."""

    concepts: Thresholds

    def __call__(self, users: UserData) -> tuple[NDArray[np.uint64], NDArray[np.uint64]]:
        """Return where each user's interval begins and ends."""
        return middle_records(self.concepts.events_of(users))


def middle_records(events: MistakeEvents) -> tuple[NDArray[np.uint64], NDArray[np.uint64]]:
    """Return the same from the users' mistakes, which change just above their records."""
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
    """How many users of a part err less with the first class, and with the second."""

    classes: tuple[Thresholds, ...]

    def __call__(self, users: UserData) -> NDArray[np.int64]:
        first, second = (fewest_mistakes(each.events_of(users)) for each in self.classes)
        return np.array([np.count_nonzero(first < second), np.count_nonzero(second < first)])


def median_of(
    size: int, *, epsilon: Fraction, relation: Relation, flip: bool = False
) -> PrivateQuantile:
    """Return the median of places of {0, ..., size - 1}, numbered from the middle.

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
