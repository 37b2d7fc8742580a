"""What a learner of rules may state about its choice: what the last mechanism proves.

Every way ends in one private choice that spends all that is left of the budget. How much worse by
its score the chosen rule may be follows from public numbers: the size of the class, epsilon, and
how far one user can move the score. Divided by the latter it is a number of people. Along a line,
and among listed rules where people are many, that is ``worst``: it allows for one best rule while
all others are as bad as each other, where usually more and more of them are worse and worse. The
bound says what is lost then.
"""

from __future__ import annotations

import math
from fractions import Fraction

from quorate.concepts.base import ConceptClass
from quorate.concepts.numeric.thresholds import Direction, Thresholds
from quorate.guarantees import Relation
from quorate.learners.automatic import Way
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
from quorate.learners.selection import (
    CROSSING_SHARE,
    DIRECTION_SHARE,
    choice_along,
    choice_of_best,
    is_walked,
    median_of,
)
from quorate.learners.stretched_line import most_copies
from quorate.mechanisms.choose import ChooseBest
from quorate.releases.choice_error import CONFIDENCE, ChoiceError

__all__ = ["rule_error", "score_error"]

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
_LISTED = (Way.DUELS, Way.CAPPED_REGRET, Way.REGRET)
_THINNING = (
    "rules up to t people worse than the best are no more than t, or t to the power of .37 "
    "times the logarithm of their number"
)
_COUNTS: dict[Way, tuple[Score, str]] = {
    Way.MISTAKES: (Mistakes(records=1), "mistakes on one record of each"),
    Way.ANY_MISTAKE: (AnyMistake(), "people with any mistake"),
    Way.MORE_THAN: (MoreThan(rate=0.5), "people with more than a share of mistakes"),
    Way.CROSSING: (MoreThan(rate=0.5), "people with more than a share of mistakes, found before"),
    Way.KOLMOGOROV_SMIRNOV: (KolmogorovSmirnov(), "shares of mistakes against any other rule's"),
    Way.OWN_BEST: (OwnBest(), "people who know a better rule for themselves"),
    Way.CAPPED_REGRET: (CappedRegret(), "what people lose against their own best rule, capped"),
    Way.REGRET: (CappedRegret(share=Fraction(1)), "what people lose against their own best rule"),
    Way.TWO_STAGES: (CappedRegret(), "what people lose against their own best rule, capped"),
    Way.DUELS: (Duels(), "people's duels between pairs of rules"),
}


def rule_error(
    way: Way,
    concepts: ConceptClass,
    *,
    epsilon: Fraction,
    relation: Relation,
    n_users: int | None,
    published: bool = False,
    location: Fraction = Fraction(0),
) -> ChoiceError:
    """Return the error of a rule that was chosen in a way.

    Parameters
    ----------
    way : Way
    concepts : ConceptClass
    epsilon : Fraction
        What was left when the choice began.
    relation : Relation
    n_users : int or None
        Where it is public.
    published : bool, default=False
        Whether the choice is made as printed.
    location : Fraction, default=0
        The share that a first stage took to find where people are.

    Examples
    --------
    >>> known = dict(epsilon=Fraction(1), relation=Relation.REPLACE, n_users=2000)
    >>> rule_error(Way.MISTAKES, Thresholds(0, 99), **known).bound
    13.0
    >>> print(rule_error(Way.TWO_STAGES, Thresholds(0, 2**32), location=Fraction(1, 4), **known))
    at most 17 people (0.8%) worse than the best, with probability 95%
    """
    if way in (Way.MEDIAN, Way.SLACK_MEDIAN):
        return _of_median(concepts, epsilon, relation, n_users, slack=way is Way.SLACK_MEDIAN)
    if way is Way.ESTIMATED_LEVEL:
        score: Score = Surrogate(target=concepts) if published else MoreThan(rate=0.5)
        counts = "people with more mistakes than the level that was found"
        return score_error(
            score, concepts, epsilon=epsilon / 2, relation=relation, n_users=n_users,
            published=published, counts=counts,
        )  # fmt: skip
    score, counts = _COUNTS[way]
    copies = None
    if way is Way.CROSSING:
        epsilon, published = (1 - CROSSING_SHARE) * epsilon, False
    if way is Way.TWO_STAGES:
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
    if way is Way.TWO_STAGES and proved.worst <= _MOST_MISSED * n_users:
        along = choice_along(score, epsilon=epsilon, relation=relation)
        usual = _STRETCH / float(along.rate * score.sensitivity(relation))
        return proved.assuming(min(usual, proved.worst), _STRETCHES, n_users=n_users)
    listed = way in _LISTED and not is_walked(concepts)
    if listed and proved.worst <= _MOST_LOST * n_users:
        usual = proved.worst * _share_of_proved(concepts.size)
        return proved.assuming(min(usual, proved.worst), _THINNING, n_users=n_users)
    return proved


def _share_of_proved(size: int) -> float:
    """Return what is usually lost among so many rules, in parts of what may be.

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
    """Return the error of a rule that was chosen by a score, ``copies`` points along a line."""
    if isinstance(score, Crossing):
        return rule_error(
            Way.CROSSING, concepts, epsilon=epsilon, relation=relation, n_users=n_users
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


def _of_median(
    concepts: ConceptClass,
    epsilon: Fraction,
    relation: Relation,
    n_users: int | None,
    *,
    slack: bool,
) -> ChoiceError:
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
