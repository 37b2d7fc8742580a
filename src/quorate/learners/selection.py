"""The private choice of a hypothesis by a score, and its error (K1, L1, L4).

Each function that chooses takes people and an account, spends the rest of the budget, and returns
the index of a hypothesis. In finite classes the choice is made by permute-and-flip, in ordered
classes of any size by exact sampling of pieces.

Every algorithm ends in one such choice. How much worse the score of the chosen rule may be depends
on public numbers: the size of the class, epsilon, and the sensitivity of the score. This error,
divided by the sensitivity, is a number of people. Along a line, and among listed rules if people
are many, this bound is ``worst``: it assumes that there is one best rule and that all others are
equally bad. Usually many rules are nearly as good as the best, and ``bound`` assumes that they are.
"""

from __future__ import annotations

import math
from dataclasses import replace
from fractions import Fraction

from quorate.core.account.account import Account
from quorate.core.guarantees import Relation
from quorate.core.people import People
from quorate.core.public_randomness import RandomState
from quorate.exceptions import ParameterError
from quorate.learners.automatic import RuleAlgorithm
from quorate.learners.concepts.base import ConceptClass, OrderedConceptClass
from quorate.learners.concepts.numeric.thresholds import Direction, Thresholds
from quorate.learners.cut_off_medians import Middles, median_between, median_error
from quorate.learners.scores import (
    AnyMistake,
    CappedRegret,
    Crossing,
    Duels,
    KolmogorovSmirnov,
    Mistakes,
    MoreThan,
    OwnBest,
    Score,
    Surrogate,
)
from quorate.learners.scores.base import Along
from quorate.learners.scores.pairwise import MAX_DUELLISTS
from quorate.learners.stretched_line import Span, StretchedLine, most_copies
from quorate.mechanisms.choices.choose import CONFIDENCE, ChoiceError, ChooseBest, Selection
from quorate.mechanisms.choices.ordered import ChooseOrdered

__all__ = [
    "choice_along",
    "choice_of_best",
    "choose_by_crossing",
    "choose_by_score",
    "choose_in_two_stages",
    "is_walked",
    "rule_error",
    "score_error",
]

# Share of the budget that chooses the t of "more than t mistakes".
_CROSSING_SHARE = Fraction(1, 8)
_BETA = 1.0 - CONFIDENCE
# If cut-offs up to t people worse than the best weigh as t^3, what is lost follows a gamma law of
# shape 3 in units of the rate; this is its 95 % quantile. Shape 2 held in 88 % of runs of one of
# the worlds that constants are chosen on.
_STRETCH = 6.2958
_STRETCHES = (
    "cut-offs up to t people worse than the best weigh no more than t cubed, as where people lie "
    "along a line without gaps"
)
# With fewer people a choice may miss all of them, and only what is proved is stated.
_MOST_MISSED = Fraction(9, 20)
# The same among listed rules, of which there are the more near the best one the more there are at
# all: their number grows with a power that is this share of the logarithm of the size, 2.2 for 360
# of them, and at least 1. Chosen with 16 to 2,500 rules on tables that serve to choose: in units of
# the rate they lost up to 2.8 (16 rules), 4.9 (360) and 5.3 (2,500) in 95 % of runs. Fewer people
# than ten times what is proved lost up to 6.9, and are told only that.
_POWER, _MOST_LOST = 0.37, Fraction(1, 10)
_LISTED = (RuleAlgorithm.DUELS, RuleAlgorithm.CAPPED_REGRET, RuleAlgorithm.REGRET)
_THINNING = (
    "rules up to t people worse than the best are no more than t, or t to the power of .37 "
    "times the logarithm of their number"
)
_COUNTS: dict[RuleAlgorithm, tuple[Score, str]] = {
    RuleAlgorithm.MISTAKES: (Mistakes(records=1), "mistakes on one record of each"),
    RuleAlgorithm.ANY_MISTAKE: (AnyMistake(), "people with any mistake"),
    RuleAlgorithm.MORE_THAN: (MoreThan(rate=0.5), "people with more than a share of mistakes"),
    RuleAlgorithm.CROSSING: (
        MoreThan(rate=0.5),
        "people with more than a share of mistakes, found before",
    ),
    RuleAlgorithm.KOLMOGOROV_SMIRNOV: (
        KolmogorovSmirnov(),
        "shares of mistakes against any other rule's",
    ),
    RuleAlgorithm.OWN_BEST: (OwnBest(), "people who know a better rule for themselves"),
    RuleAlgorithm.CAPPED_REGRET: (
        CappedRegret(),
        "what people lose against their own best rule, capped",
    ),
    RuleAlgorithm.REGRET: (
        CappedRegret(share=Fraction(1)),
        "what people lose against their own best rule",
    ),
    RuleAlgorithm.TWO_STAGES: (
        CappedRegret(),
        "what people lose against their own best rule, capped",
    ),
    RuleAlgorithm.DUELS: (Duels(), "people's duels between pairs of rules"),
}


def is_walked(concepts: ConceptClass) -> bool:
    """Return whether a class is treated as ordered instead of being enumerated.

    >>> is_walked(Thresholds(0, 2**32)), is_walked(Thresholds(0, 99))
    (True, False)
    """
    return isinstance(concepts, OrderedConceptClass) and concepts.size > MAX_DUELLISTS


def choose_by_score(
    concepts: ConceptClass,
    people: People,
    score: Score,
    *,
    account: Account,
    random_state: RandomState = None,
    published: bool = False,
) -> int:
    """Choose a hypothesis with a small loss, by one release.

    ``published`` uses the exponential mechanism with weights exp(-epsilon loss / (2 sensitivity)),
    as the papers print it (Theorem 3.4 of K, Theorems 3.4 and 4.6 of L). Otherwise permute-and-flip
    is used for enumerated hypotheses, and half of the sensitivity if one more user can only raise
    losses.

    >>> import numpy as np
    >>> from quorate.core.users import UserData
    >>> data = UserData.from_arrays([[1], [6]] * 40, [0, 1] * 40, users=np.arange(80) // 2)
    >>> people = People(data, Relation.REPLACE)
    >>> account = Account.open(epsilon=2.0)
    >>> 2 <= choose_by_score(Thresholds(0, 9), people, AnyMistake(), account=account) <= 6
    True
    >>> account.left
    Fraction(0, 1)
    """
    if score.record_cap is not None:
        people = people.capped(score.record_cap, random_state=random_state)
    if is_walked(concepts):
        score.check_class(concepts, walked=True)
        losses = score.losses_along(people.walk(Along(_ordered(concepts))))
        ordered = choice_along(
            score, epsilon=account.left, relation=account.relation, published=published
        )
        return ordered.release(losses, account=account)
    chooser = choice_of_best(
        concepts.size,
        score,
        epsilon=account.left,
        relation=account.relation,
        published=published,
    )
    return chooser.release(-score.losses_over(people, concepts), account=account)


def choose_by_crossing(
    concepts: ConceptClass,
    people: People,
    crossing: Crossing,
    *,
    account: Account,
    random_state: RandomState = None,
) -> int:
    """Choose t for "more than t mistakes" with a share of the budget, then a hypothesis."""
    first = account.part_of(epsilon=_CROSSING_SHARE * account.left)
    level = choice_of_best(
        len(crossing.rates), crossing, epsilon=first.left, relation=first.relation
    )
    if is_walked(concepts):
        losses = crossing.losses_of_rates_along(people.walk(Along(_ordered(concepts))))
    else:
        losses = crossing.losses_of_rates(people, concepts)
    rate = crossing.rates[level.release(-losses, account=first)]
    return choose_by_score(
        concepts, people, MoreThan(rate=rate), account=account, random_state=random_state
    )


def choose_in_two_stages(
    concepts: Thresholds,
    people: People,
    *,
    account: Account,
    share: Fraction,
    score: CappedRegret | None = None,
) -> int:
    """Locate the users with a ``share`` of the budget, then choose the best hypothesis near them.

    The first stage releases a private median of the intervals between the first and the third
    quartile of each user's records. It needs no labels, so it works for any rule. Capped regret (or
    another ``score``) then chooses with a prior that is concentrated around that position
    (:class:`StretchedLine`), so distant hypotheses hardly raise the cost.
    """
    first = account.part_of(epsilon=share * account.left)
    points = concepts.domain.points
    walk = people.walk(Along(concepts))
    # The same steps serve both stages, unless they run in two directions.
    above = walk if concepts.direction is Direction.ABOVE else people.walk(Along(_above(concepts)))
    place = median_between(above, Middles(points + 1), account=first)
    spans = [Span(0, min(points, concepts.size - 1), place)]
    if concepts.size > points + 1:
        # Both kinds of cut-offs stand in the line, one after the other.
        last = concepts.size - 1
        spans.append(Span(points + 1, last, min(points + max(place, 1), last)))
    stretched, score = StretchedLine(tuple(spans)), score or CappedRegret()
    losses = stretched.losses(score.losses_along(walk))
    choice = choice_along(score, epsilon=account.left, relation=account.relation)
    return stretched.point(choice.release(losses, account=account))


def _above(concepts: Thresholds) -> Thresholds:
    return replace(concepts, direction=Direction.ABOVE)


def _is_one_sided(score: Score, relation: Relation, *, published: bool) -> bool:
    return score.one_sided and relation is Relation.ADD_REMOVE and not published


def choice_along(
    score: Score, *, epsilon: Fraction, relation: Relation, published: bool = False
) -> ChooseOrdered:
    """Return the choice from an ordered class by a score, with all of ``epsilon``.

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
    """Return the choice among this many candidates by a score, with all of ``epsilon``.

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


def _ordered(concepts: ConceptClass) -> OrderedConceptClass:
    if not isinstance(concepts, OrderedConceptClass):
        raise ParameterError(
            f"Expected an ordered class, got {type(concepts).__name__}: its hypotheses have no "
            f"order."
        )
    return concepts


def rule_error(
    algorithm: RuleAlgorithm,
    concepts: ConceptClass,
    *,
    epsilon: Fraction,
    relation: Relation,
    n_users: int | None,
    published: bool = False,
    location: Fraction = Fraction(0),
) -> ChoiceError:
    """Return the error of a rule chosen by this algorithm.

    Parameters
    ----------
    algorithm : RuleAlgorithm
    concepts : ConceptClass
    epsilon : Fraction
        The remaining epsilon before the choice.
    relation : Relation
    n_users : int or None
        The number of users, if it is public.
    published : bool, default=False
        Whether the choice uses the published constants.
    location : Fraction, default=0
        The budget share of a first stage that located the users.

    Examples
    --------
    >>> known = dict(epsilon=Fraction(1), relation=Relation.REPLACE, n_users=2000)
    >>> rule_error(RuleAlgorithm.MISTAKES, Thresholds(0, 99), **known).bound
    13.0
    >>> domain, quarter = Thresholds(0, 2**32), Fraction(1, 4)
    >>> print(rule_error(RuleAlgorithm.TWO_STAGES, domain, location=quarter, **known))
    at most 17 people (0.8%) worse than the best, with probability 95%
    """
    if algorithm in (RuleAlgorithm.MEDIAN, RuleAlgorithm.SLACK_MEDIAN):
        return median_error(
            concepts,
            epsilon=epsilon,
            relation=relation,
            n_users=n_users,
            slack=algorithm is RuleAlgorithm.SLACK_MEDIAN,
        )
    if algorithm is RuleAlgorithm.ESTIMATED_LEVEL:
        score: Score = Surrogate(target=concepts) if published else MoreThan(rate=0.5)
        counts = "people with more mistakes than the level that was found"
        return score_error(
            score, concepts, epsilon=epsilon / 2, relation=relation, n_users=n_users,
            published=published, counts=counts,
        )  # fmt: skip
    score, counts = _COUNTS[algorithm]
    copies = None
    if algorithm is RuleAlgorithm.CROSSING:
        epsilon, published = (1 - _CROSSING_SHARE) * epsilon, False
    if algorithm is RuleAlgorithm.TWO_STAGES:
        epsilon, copies, published = (1 - location) * epsilon, most_copies(concepts.size), False
    proved = score_error(
        score,
        concepts,
        epsilon=epsilon,
        relation=relation,
        n_users=n_users,
        published=published,
        counts=counts,
        copies=copies,
    )
    if n_users is None or published:
        return proved
    if algorithm is RuleAlgorithm.TWO_STAGES and proved.worst <= _MOST_MISSED * n_users:
        along = choice_along(score, epsilon=epsilon, relation=relation)
        usual = _STRETCH / float(along.rate * score.sensitivity(relation))
        return proved.assuming(min(usual, proved.worst), _STRETCHES, n_users=n_users)
    listed = algorithm in _LISTED and not is_walked(concepts)
    if listed and proved.worst <= _MOST_LOST * n_users:
        usual = proved.worst * _share_of_proved(concepts.size)
        return proved.assuming(min(usual, proved.worst), _THINNING, n_users=n_users)
    return proved


def _share_of_proved(size: int) -> float:
    """Return the 95 % bound for typical classes of this size, as a share of the proved bound.

    >>> round(_share_of_proved(360), 2), round(_share_of_proved(2), 2)
    (0.57, 0.81)
    """
    from scipy.special import gammaincinv

    power = max(1.0, _POWER * math.log(size))
    return float(gammaincinv(power, CONFIDENCE)) / math.log(size / _BETA)


def score_error(
    score: Score,
    concepts: ConceptClass,
    *,
    epsilon: Fraction,
    relation: Relation,
    n_users: int | None,
    published: bool = False,
    counts: str | None = None,
    copies: int | None = None,
) -> ChoiceError:
    """Return the error bound of a rule; ``copies`` is the length of a stretched line, if any."""
    if isinstance(score, Crossing):
        return rule_error(
            RuleAlgorithm.CROSSING, concepts, epsilon=epsilon, relation=relation, n_users=n_users
        )
    if copies is not None or is_walked(concepts):
        along = choice_along(score, epsilon=epsilon, relation=relation, published=published)
        worse = along.error_bound(copies or concepts.size, _BETA)
    else:
        best = choice_of_best(
            concepts.size, score, epsilon=epsilon, relation=relation, published=published
        )
        worse = best.error_bound(_BETA)
    people = worse / score.sensitivity(relation)
    return ChoiceError.of_people(people, counts=counts or score.name, n_users=n_users)
