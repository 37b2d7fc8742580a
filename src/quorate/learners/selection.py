"""From a score to a hypothesis: the private releases that the learners are made of (K1, L1, L4).

Each function here takes users and an account, spends what is left of it and returns the number of a
hypothesis. Finite classes are chosen from by permute-and-flip, ordered ones of any size by exact
sampling of pieces.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from quorate.accounting.account import Account
from quorate.concepts.base import ConceptClass, OrderedConceptClass
from quorate.concepts.mistake_events import MistakeEvents, group_by_user
from quorate.concepts.numeric.thresholds import Direction, Thresholds
from quorate.exceptions import ParameterError
from quorate.guarantees import Relation
from quorate.learners.scores.base import MistakeLine, MistakeTable, Score
from quorate.learners.scores.capped_regret import CappedRegret
from quorate.learners.scores.crossing import Crossing
from quorate.learners.scores.more_than import MoreThan
from quorate.learners.scores.own_best import fewest_mistakes
from quorate.learners.scores.pairwise import MAX_DUELLISTS
from quorate.learners.stretched_line import Span, StretchedLine
from quorate.mechanisms.choose import ChooseBest, Selection
from quorate.mechanisms.ordered import ChooseOrdered
from quorate.mechanisms.quantiles import PrivateQuantile
from quorate.public_randomness import RandomState
from quorate.users import UserData
from quorate.users.crowd import Crowd

__all__ = [
    "CROSSING_SHARE",
    "DIRECTION_SHARE",
    "choice_along",
    "choice_of_best",
    "choose_by_crossing",
    "choose_by_median",
    "choose_by_score",
    "choose_in_two_stages",
    "is_walked",
    "median_of",
]

CROSSING_SHARE = Fraction(1, 8)
"""Share of the budget that chooses the t of "more than t mistakes"."""

DIRECTION_SHARE = Fraction(1, 10)
"""Share of the budget that chooses on which side of a cut-off 1 is predicted."""

_SLACK_FROM = 16
_SLACK_PER_ROOT = 4


def is_walked(concepts: ConceptClass) -> bool:
    """Return whether a class is walked along its line rather than enumerated.

    >>> is_walked(Thresholds(0, 2**32)), is_walked(Thresholds(0, 99))
    (True, False)
    """
    return isinstance(concepts, OrderedConceptClass) and concepts.size > MAX_DUELLISTS


def choose_by_score(
    concepts: ConceptClass,
    users: Crowd,
    score: Score,
    *,
    account: Account,
    random_state: RandomState = None,
    published: bool = False,
) -> int:
    """Choose a hypothesis with a small loss, by one release.

    ``published`` is the exponential mechanism with weights exp(-epsilon loss / (2 sensitivity)), as
    the papers print it (Theorem 3.4 of K, Theorems 3.4 and 4.6 of L); otherwise permute-and-flip
    where hypotheses are enumerated, and half of the sensitivity where one more user can only raise
    losses.

    >>> from quorate.learners.scores import AnyMistake
    >>> people = UserData.from_arrays([[1], [6]] * 40, [0, 1] * 40, users=np.arange(80) // 2)
    >>> account = Account.open(epsilon=2.0)
    >>> 2 <= choose_by_score(Thresholds(0, 9), people, AnyMistake(), account=account) <= 6
    True
    >>> account.left
    Fraction(0, 1)
    """
    if score.record_cap is not None:
        users = users.cap(records=score.record_cap, random_state=random_state)
    if is_walked(concepts):
        line = MistakeLine(concepts=_ordered(concepts), users=users)
        losses = score.losses_on_line(line)
        ordered = choice_along(
            score, epsilon=account.left, relation=account.relation, published=published
        )
        return ordered.release(line.lengths, losses, account=account)
    table = MistakeTable(concepts=concepts, users=users)
    chooser = choice_of_best(
        concepts.size,
        score,
        epsilon=account.left,
        relation=account.relation,
        published=published,
    )
    return chooser.release(-score.losses_of_table(table), account=account)


def choose_by_crossing(
    concepts: ConceptClass,
    users: Crowd,
    crossing: Crossing,
    *,
    account: Account,
    random_state: RandomState = None,
) -> int:
    """Choose the t of "more than t mistakes" with a share of the budget, then a hypothesis."""
    first = account.part_of(epsilon=CROSSING_SHARE * account.left)
    level = choice_of_best(
        len(crossing.rates), crossing, epsilon=first.left, relation=first.relation
    )
    if is_walked(concepts):
        losses = crossing.losses_on_line(MistakeLine(concepts=_ordered(concepts), users=users))
    else:
        losses = crossing.losses_of_table(MistakeTable(concepts=concepts, users=users))
    rate = crossing.rates[level.release(-losses, account=first)]
    return choose_by_score(
        concepts, users, MoreThan(rate=rate), account=account, random_state=random_state
    )


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
    of one's own best cut-off; and permute-and-flip chooses, which never errs more.
    """
    if concepts.direction is Direction.EITHER:
        return _median_either_way(concepts, users, account=account, slack=slack)
    hulls = users.map(_Hulls(concepts, slack))
    return _median_between(hulls, concepts.size, account=account, flip=slack)


def choose_in_two_stages(
    concepts: Thresholds,
    users: Crowd,
    *,
    account: Account,
    share: Fraction,
    score: CappedRegret | None = None,
) -> int:
    """Find where the users are with a ``share`` of the budget, then what errs least around there.

    The first stage releases a median of users' records (from a quarter of one's own to three
    quarters everyone is content): it needs no labels, so it finds the crowd whatever the rule.
    Capped regret (or another ``score``) then chooses along the line stretched around that place
    (:class:`StretchedLine`), where far less has to be outweighed than along the line itself.
    """
    first = account.part_of(epsilon=share * account.left)
    points = concepts.domain.points
    line = MistakeLine(concepts=concepts, users=users)
    if concepts.direction is Direction.ABOVE and not line.in_parts:
        middles = [_middles(line.events)]  # the same changes serve both stages
    else:
        middles = users.map(_Middles(_above(concepts)))
    place = _median_between(middles, points + 1, account=first)
    spans = [Span(0, min(points, concepts.size - 1), place)]
    if concepts.size > points + 1:
        # Both kinds of cut-offs stand in the line, one after the other.
        last = concepts.size - 1
        spans.append(Span(points + 1, last, min(points + max(place, 1), last)))
    stretched, score = StretchedLine(tuple(spans)), score or CappedRegret()
    losses = score.losses_on_line(line)
    choice = choice_along(score, epsilon=account.left, relation=account.relation)
    return stretched.point(choice.release(*stretched.pieces(line.starts, losses), account=account))


def _median_between(
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
class _Middles:
    """From a quarter to three quarters of each user's records, as cut-offs just above them."""

    concepts: Thresholds

    def __call__(self, users: UserData) -> tuple[NDArray[np.uint64], NDArray[np.uint64]]:
        return _middles(self.concepts.events_of(users))


def _middles(events: MistakeEvents) -> tuple[NDArray[np.uint64], NDArray[np.uint64]]:
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


def _above(concepts: Thresholds) -> Thresholds:
    return replace(concepts, direction=Direction.ABOVE)


@dataclass(frozen=True)
class _Directions:
    """How many users of a part err less with the first class, and with the second."""

    classes: tuple[Thresholds, ...]

    def __call__(self, users: UserData) -> NDArray[np.int64]:
        first, second = (fewest_mistakes(each.events_of(users)) for each in self.classes)
        return np.array([np.count_nonzero(first < second), np.count_nonzero(second < first)])


def _is_one_sided(score: Score, relation: Relation, *, published: bool) -> bool:
    return score.one_sided and relation is Relation.ADD_REMOVE and not published


def choice_along(
    score: Score, *, epsilon: Fraction, relation: Relation, published: bool = False
) -> ChooseOrdered:
    """Return the choice along a line by a score, with all of ``epsilon``.

    >>> from quorate.learners.scores import OwnBest
    >>> choice_along(OwnBest(), epsilon=Fraction(1), relation=Relation.REPLACE).sensitivity
    1
    """
    return ChooseOrdered(
        epsilon=epsilon,
        sensitivity=score.sensitivity(relation),
        relation=relation,
        one_sided=_is_one_sided(score, relation, published=published),
    )


def choice_of_best(
    candidates: int,
    score: Score,
    *,
    epsilon: Fraction,
    relation: Relation,
    published: bool = False,
) -> ChooseBest:
    """Return the choice among so many candidates by a score, with all of ``epsilon``.

    >>> from quorate.learners.scores import OwnBest
    >>> choice = choice_of_best(9, OwnBest(), epsilon=Fraction(1), relation=Relation.REPLACE)
    >>> choice.error_bound(0.05)
    8
    """
    return ChooseBest(
        candidates=candidates,
        epsilon=epsilon,
        sensitivity=score.sensitivity(relation),
        relation=relation,
        one_sided=_is_one_sided(score, relation, published=published),
        selection=Selection.GUMBEL if published else Selection.PERMUTE_AND_FLIP,
    )


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


def _ordered(concepts: ConceptClass) -> OrderedConceptClass:
    if not isinstance(concepts, OrderedConceptClass):
        raise ParameterError(
            f"Expected an ordered class, got {type(concepts).__name__}: its hypotheses do not "
            "stand in a line."
        )
    return concepts
