"""From a score to a hypothesis: the private releases that the learners are made of (K1, L1, L4).

Each function here takes users and an account, spends what is left of it and returns the number of a
hypothesis. Finite classes are chosen from by permute-and-flip, ordered ones of any size by exact
sampling of pieces.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from quorate.accounting.account import Account
from quorate.concepts.base import ConceptClass, OrderedConceptClass
from quorate.concepts.numeric.thresholds import Direction, Thresholds
from quorate.exceptions import ParameterError
from quorate.guarantees import Relation
from quorate.learners.scores.base import MistakeLine, MistakeTable, Score
from quorate.learners.scores.capped_regret import CappedRegret
from quorate.learners.scores.crossing import Crossing
from quorate.learners.scores.more_than import MoreThan
from quorate.learners.scores.own_best import fewest_mistakes
from quorate.learners.scores.pairwise import MAX_DUELLISTS
from quorate.mechanisms.choose import ChooseBest, Selection
from quorate.mechanisms.ordered import ChooseOrdered
from quorate.mechanisms.quantiles import PrivateQuantile
from quorate.public_randomness import RandomState
from quorate.users import UserData
from quorate.users.crowd import Crowd

__all__ = [
    "CROSSING_SHARE",
    "choose_by_crossing",
    "choose_by_median",
    "choose_by_score",
    "choose_in_two_stages",
    "is_walked",
    "places_around",
]

CROSSING_SHARE = Fraction(1, 8)
"""Share of the budget that chooses the t of "more than t mistakes"."""

DIRECTION_SHARE = Fraction(1, 10)
"""Share of the budget that chooses on which side of a cut-off 1 is predicted."""

MEDIAN_SHARE = Fraction(3, 5)
"""Share of the budget that the median takes before capped regret chooses around it."""

_STEPS_PER_OCTAVE = 8


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
        ordered = ChooseOrdered(
            epsilon=account.left,
            sensitivity=score.sensitivity(account.relation),
            relation=account.relation,
            one_sided=_is_one_sided(score, account.relation, published=published),
        )
        return ordered.release(line.lengths, losses, account=account)
    table = MistakeTable(concepts=concepts, users=users)
    chooser = _best_of(concepts.size, score, account, published=published)
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
    level = _best_of(len(crossing.rates), crossing, first)
    if is_walked(concepts):
        losses = crossing.losses_on_line(MistakeLine(concepts=_ordered(concepts), users=users))
    else:
        losses = crossing.losses_of_table(MistakeTable(concepts=concepts, users=users))
    rate = crossing.rates[level.release(-losses, account=first)]
    return choose_by_score(
        concepts, users, MoreThan(rate=rate), account=account, random_state=random_state
    )


def choose_by_median(concepts: Thresholds, users: Crowd, *, account: Account) -> int:
    """Choose the median of the users' own best cut-offs.

    Each user contributes one interval: from their first to their last cut-off with the fewest
    mistakes on their own records. The loss of a cut-off is the larger of the numbers of intervals
    entirely to its left and to its right. Taking the whole interval in place of one point of it
    keeps the median unbiased when records are few; a user without records abstains.
    """
    if concepts.direction is Direction.EITHER:
        return _median_either_way(concepts, users, account=account)
    hulls = users.map(_Hulls(concepts))
    first, last = (np.concatenate(ends) for ends in zip(*hulls, strict=True))
    # Up to 2**63 + 1 cut-offs: numbered from the middle they fit into 64 bits with a sign.
    middle = concepts.size // 2
    median = PrivateQuantile(
        domain=(-middle, concepts.size - 1 - middle),
        epsilon=account.left,
        relation=account.relation,
    )
    shift = np.uint64(middle)
    return middle + median.release_between(
        (first - shift).view(np.int64), (last - shift).view(np.int64), account=account
    )


def places_around(place: int, *, size: int) -> list[int]:
    """Return ``place``, both ends of the line, and points in 8 steps an octave to both sides.

    >>> places_around(5, size=12)
    [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11]
    >>> len(places_around(2**31, size=2**32))
    465
    """
    found = {place, 0, size - 1}
    for octave in range(size.bit_length()):
        for step in range(_STEPS_PER_OCTAVE):
            away = 2**octave * (_STEPS_PER_OCTAVE + step) // _STEPS_PER_OCTAVE
            found.update((place - away, place + away))
    return sorted(each for each in found if 0 <= each < size)


def choose_in_two_stages(concepts: Thresholds, users: Crowd, *, account: Account) -> int:
    """Choose the median of the users' cut-offs, then what errs least among points around it.

    The median finds the crowd with few users, but where people differ it may err more than a
    cut-off nearby; capped regret (:class:`CappedRegret`) knows better and needs more users for a
    whole line than for some 500 points. These depend on the released median and nothing else.
    """
    first = account.part_of(epsilon=MEDIAN_SHARE * account.left)
    places = places_around(choose_by_median(concepts, users, account=first), size=concepts.size)
    score, line = CappedRegret(), MistakeLine(concepts=concepts, users=users)
    losses = score.losses_on_line(line)
    piece = np.searchsorted(line.starts, np.array(places, dtype=np.uint64), side="right") - 1
    choice = _best_of(len(places), score, account)
    return places[choice.release(-losses[piece], account=account)]


def _median_either_way(concepts: Thresholds, users: Crowd, *, account: Account) -> int:
    """Let users vote on the direction, then take the median in that direction."""
    sides = (Direction.ABOVE, Direction.BELOW)
    classes = [
        Thresholds(
            concepts.lower, concepts.upper, step=concepts.step, direction=side, name=concepts.name
        )
        for side in sides
    ]
    votes = users.add_up(_Directions(tuple(classes)), whole=True)
    vote = ChooseBest(
        candidates=2, epsilon=DIRECTION_SHARE * account.left, relation=account.relation
    )
    side = vote.release(votes, account=account)
    index = choose_by_median(classes[side], users, account=account)
    # The line of both directions lists "above" first and then the cut-offs 1, ..., D - 1 of
    # "below"; the constants at the ends of "below" are those of "above" the other way round.
    points = concepts.domain.points
    if side == 1:
        index = points - index if index in (0, points) else points + index
    return index


@dataclass(frozen=True)
class _Hulls:
    """The first and the last cut-off that are best for each user of a part."""

    concepts: Thresholds

    def __call__(self, users: UserData) -> tuple[NDArray[np.uint64], NDArray[np.uint64]]:
        return self.concepts.events_of(users).best_ranges().hull()


@dataclass(frozen=True)
class _Directions:
    """How many users of a part err less with the first class, and with the second."""

    classes: tuple[Thresholds, ...]

    def __call__(self, users: UserData) -> NDArray[np.int64]:
        first, second = (fewest_mistakes(each.events_of(users)) for each in self.classes)
        return np.array([np.count_nonzero(first < second), np.count_nonzero(second < first)])


def _is_one_sided(score: Score, relation: Relation, *, published: bool) -> bool:
    return score.one_sided and relation is Relation.ADD_REMOVE and not published


def _best_of(
    candidates: int, score: Score, account: Account, *, published: bool = False
) -> ChooseBest:
    return ChooseBest(
        candidates=candidates,
        epsilon=account.left,
        sensitivity=score.sensitivity(account.relation),
        relation=account.relation,
        one_sided=_is_one_sided(score, account.relation, published=published),
        selection=Selection.GUMBEL if published else Selection.PERMUTE_AND_FLIP,
    )


def _ordered(concepts: ConceptClass) -> OrderedConceptClass:
    if not isinstance(concepts, OrderedConceptClass):
        raise ParameterError(
            f"Expected an ordered class, got {type(concepts).__name__}: its hypotheses do not "
            "stand in a line."
        )
    return concepts
