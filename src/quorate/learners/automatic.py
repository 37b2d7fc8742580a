"""Which score learns best: a rule that sees public numbers and what was paid for.

Measured on stumps, conjunctions, intervals, random tables and cut-offs; see
``benchmarks/learners.py``. In words:

* the error of the best concept is stated: 0 -> any mistake; otherwise more than t mistakes, with
  the best t;
* one record per user, stated: count mistakes;
* up to 4096 hypotheses: duels while users are few for the class, because they tell much with few
  users who are alike; capped regret once they are many, because it finds what errs least for users
  who differ as well; very many need no cap, which blurs what they would rather avoid;
* along a line of cut-offs: the fewest users -> the median of what is good enough for each of them,
  as they must nearly all agree; few -> the median of their own cut-offs; more -> two stages, a
  place among the users and then what errs least around it, by capped regret while they are not
  very many;
* larger classes without an order: capped regret if users are many, and without a cap if they are
  very many; otherwise fewer than 4 records -> any mistake, and more the Kolmogorov-Smirnov score.

``alike=True`` states that records of all users come from one distribution. Then duels decide
whatever the number of users; along a line everybody approves of their own best if users are many,
and the median is taken if not; larger classes have a crossing in the place of capped regret.

Under addition or removal of users their number is private and no branch looks at it: cut-offs are
then found in two stages, and small classes by capped regret. If users are alike, cut-offs are
decided by the records of a user: fewer than 4 -> own best, otherwise the median.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from enum import Enum
from fractions import Fraction

from quorate.guarantees import Relation
from quorate.learners.scores.pairwise import MAX_DUELLISTS
from quorate.mechanisms.search.rough_records import RecordRange

__all__ = [
    "Decision",
    "Situation",
    "Way",
    "decide",
    "location_share",
    "record_cuts",
    "regret_share",
    "taken_from",
]

FEW_RECORDS = 4

# Epsilon x users needed per unit of ln(size): a private choice of t, or approvals along a line,
# fail too often with less (measured at 2^32 cut-offs, where it means 200 users at epsilon 1).
_USERS_PER_LOG_SIZE = 9.0
# From which epsilon x users on a way is taken: per unit of ln(size), and at least.
_TAKEN_FROM = {
    # Own cut-offs are not too scattered to be found (47 users for 2^32 cut-offs).
    "median": (2.1, 0.0),
    "two_stages": (_USERS_PER_LOG_SIZE, 200.0),
    # Users who are alike lose little among all pairs of a small class.
    "capped_regret": (40.0, 250.0),
    # What noise a cap saves is less than what it blurs (2,000 users for 2^32 cut-offs).
    "regret": (90.0, 600.0),
}
# What finding a place among users takes, and the most that is given for it.
_LOCATION = 3.4
_MOST_FOR_LOCATION = 0.25
_PRIVATE_LOCATION = Fraction(1, 4)
_ONE_RECORD = RecordRange.exactly(1)


class Way(Enum):
    """How a hypothesis is chosen."""

    MISTAKES = "mistakes"
    ANY_MISTAKE = "any_mistake"
    MORE_THAN = "more_than"
    CROSSING = "crossing"
    KOLMOGOROV_SMIRNOV = "kolmogorov_smirnov"
    REGRET = "regret"
    CAPPED_REGRET = "capped_regret"
    TWO_STAGES = "two_stages"
    OWN_BEST = "own_best"
    DUELS = "duels"
    CLIPPED_PAIRWISE = "clipped_pairwise"
    MEDIAN = "median"
    SLACK_MEDIAN = "slack_median"
    ESTIMATED_LEVEL = "estimated_level"


@dataclass(frozen=True)
class Decision:
    """What was decided, and the sentence that says why; both are functions of public values."""

    way: Way
    reason: str


@dataclass(frozen=True, kw_only=True)
class Situation:
    """Public facts before a hypothesis is chosen.

    Attributes
    ----------
    size : int
        The number of hypotheses.
    ordered : bool
        Whether they stand in a line that is walked, not enumerated.
    epsilon : float
    relation : Relation
    n_users : int or None
        ``None`` under addition or removal, where it is private.
    error_level : float or None
        Error of the best concept, if the caller states it.
    alike : bool
        Whether the caller states that users are alike.
    """

    size: int
    ordered: bool
    epsilon: float
    relation: Relation
    n_users: int | None = None
    error_level: float | None = None
    alike: bool = False

    @property
    def has_many_users(self) -> bool:
        """Whether users are known to be many for a class of this size.

        >>> known = dict(size=2**32, ordered=True, relation=Relation.REPLACE, epsilon=1.0)
        >>> [Situation(n_users=n, **known).has_many_users for n in (100, 200)]
        [False, True]
        """
        enough = _USERS_PER_LOG_SIZE * math.log(self.size)
        return self.n_users is not None and self.n_users * self.epsilon >= enough

    def has_come_to(self, way: Way) -> bool:
        """Whether users are known to be enough for a way that :func:`taken_from` prices.

        >>> known = dict(size=2**32, ordered=True, relation=Relation.REPLACE, epsilon=1.0)
        >>> Situation(n_users=2000, **known).has_come_to(Way.REGRET)
        True
        """
        if self.n_users is None:
            return False
        return self.n_users * self.epsilon >= taken_from(way, self)


def taken_from(way: Way, situation: Situation) -> float:
    """Return from which users x epsilon on users who differ are served in this way.

    >>> known = dict(size=2**32, ordered=True, relation=Relation.REPLACE, epsilon=1.0)
    >>> round(taken_from(Way.TWO_STAGES, Situation(**known)))
    200
    """
    log_size = math.log(situation.size)
    if way is Way.CAPPED_REGRET and situation.size > MAX_DUELLISTS:
        return _USERS_PER_LOG_SIZE * log_size
    per_log_size, least = _TAKEN_FROM.get(way.value, (_USERS_PER_LOG_SIZE, 0.0))
    return max(least, per_log_size * log_size)


def regret_share(situation: Situation) -> Fraction:
    """Return up to which share of a user's records regrets count: all of them for very many users.

    >>> known = dict(size=2**32, ordered=True, relation=Relation.REPLACE, epsilon=1.0)
    >>> [str(regret_share(Situation(n_users=n, **known))) for n in (1000, 2000)]
    ['1/2', '1']
    """
    return Fraction(1) if situation.has_come_to(Way.REGRET) else Fraction(1, 2)


def location_share(situation: Situation) -> Fraction:
    """Return which share of the budget finds a place among the users, before the second stage.

    >>> known = dict(size=2**32, ordered=True, relation=Relation.REPLACE, epsilon=1.0)
    >>> [float(location_share(Situation(n_users=n, **known))) for n in (100, 200, 800)]
    [0.25, 0.25, 0.095]
    """
    if situation.n_users is None:
        return _PRIVATE_LOCATION
    needed = _LOCATION * math.log(situation.size)
    share = needed / max(needed, situation.n_users * situation.epsilon)
    return Fraction(math.ceil(1000 * min(share, _MOST_FOR_LOCATION)), 1000)


def record_cuts(situation: Situation) -> tuple[int, ...]:
    """Return where the answer about records makes a difference; empty if it makes none.

    >>> known = dict(epsilon=1.0, relation=Relation.REPLACE, n_users=50)
    >>> record_cuts(Situation(size=729, ordered=False, **known))
    ()
    >>> record_cuts(Situation(size=50_000, ordered=False, **known))
    (4,)
    """
    if situation.error_level is not None or situation.size <= MAX_DUELLISTS:
        return ()
    if situation.ordered:
        settled = situation.relation is Relation.REPLACE or not situation.alike
    else:
        settled = not situation.alike and situation.has_many_users
    return () if settled else (FEW_RECORDS,)


def decide(situation: Situation, records: RecordRange | None) -> Decision:
    """Choose the algorithm that learns best.

    >>> known = dict(size=2**32, ordered=True, epsilon=1.0, relation=Relation.REPLACE)
    >>> decide(Situation(n_users=100, **known), None).way.value
    'median'
    >>> print(decide(Situation(n_users=300, **known), None).reason)
    300 users are some for 4294967296 cut-offs: a place among them, then what errs least around it
    >>> print(decide(Situation(n_users=300, alike=True, **known), None).reason)
    users are alike and many for 4294967296 cut-offs: everybody approves of their own best
    """
    if situation.error_level is not None:
        if situation.error_level == 0:
            return Decision(Way.ANY_MISTAKE, "error_level=0 was stated: nobody needs to err")
        return Decision(
            Way.MORE_THAN,
            f"error_level={situation.error_level:g} was stated: the best t follows from it",
        )
    if records == _ONE_RECORD:
        return Decision(Way.MISTAKES, "one record a user was stated: count mistakes")
    if situation.size <= MAX_DUELLISTS:
        return _small(situation)
    if not situation.ordered:
        return _large(situation, records)
    return _alike_along_line(situation, records) if situation.alike else _along_line(situation)


def _holds_few(records: RecordRange | None) -> bool:
    return records is not None and records.upper is not None and records.upper <= FEW_RECORDS


def _small(situation: Situation) -> Decision:
    size = situation.size
    if situation.alike:
        return Decision(
            Way.DUELS,
            f"users are alike; {size} hypotheses, at most {MAX_DUELLISTS}: they judge all pairs",
        )
    if situation.n_users is None:
        return Decision(Way.CAPPED_REGRET, "users may differ: add up their regrets, each capped")
    users = f"{situation.n_users} users"
    if (regret := _by_regret(situation, f"{size} hypotheses")) is not None:
        return regret
    return Decision(Way.DUELS, f"{users} are few for {size} hypotheses: they judge all pairs")


def _by_regret(situation: Situation, hypotheses: str) -> Decision | None:
    """Add up regrets if users are many, capped unless they are very many."""
    users = f"{situation.n_users} users"
    if situation.has_come_to(Way.REGRET):
        return Decision(
            Way.REGRET, f"{users} are very many for {hypotheses} and may differ: add up regrets"
        )
    if situation.has_come_to(Way.CAPPED_REGRET):
        return Decision(
            Way.CAPPED_REGRET,
            f"{users} are many for {hypotheses} and may differ: add up their regrets, each capped",
        )
    return None


def _along_line(situation: Situation) -> Decision:
    cut_offs = f"{situation.size} cut-offs"
    if situation.n_users is None:
        return Decision(
            Way.TWO_STAGES,
            "the number of users is private: a place among them, then what errs least around it",
        )
    users = f"{situation.n_users} users"
    if situation.has_come_to(Way.REGRET):
        return Decision(
            Way.TWO_STAGES,
            f"{users} are very many for {cut_offs}: a place among them, then what errs least "
            "around it, all regrets counted whole",
        )
    if situation.has_come_to(Way.TWO_STAGES):
        return Decision(
            Way.TWO_STAGES,
            f"{users} are some for {cut_offs}: a place among them, then what errs least around it",
        )
    if situation.has_come_to(Way.MEDIAN):
        return Decision(Way.MEDIAN, f"{users} are few for {cut_offs}: take the median of their own")
    return _by_slack(situation)


def _by_slack(situation: Situation) -> Decision:
    return Decision(
        Way.SLACK_MEDIAN,
        f"{situation.n_users} users are very few for {situation.size} cut-offs: take the median of "
        "what is good enough for each",
    )


def _alike_along_line(situation: Situation, records: RecordRange | None) -> Decision:
    if situation.relation is Relation.ADD_REMOVE and _holds_few(records):
        return Decision(Way.OWN_BEST, f"a user holds {records}: too few to find a cut-off alone")
    if situation.has_many_users:
        return Decision(
            Way.OWN_BEST,
            f"users are alike and many for {situation.size} cut-offs: everybody approves of their "
            "own best",
        )
    if situation.n_users is not None and not situation.has_come_to(Way.MEDIAN):
        return _by_slack(situation)
    return Decision(
        Way.MEDIAN,
        f"users are few (or private) for {situation.size} cut-offs: take the median of their own",
    )


def _large(situation: Situation, records: RecordRange | None) -> Decision:
    regret = None if situation.alike else _by_regret(situation, f"{situation.size} hypotheses")
    if regret is not None:
        return regret
    held = "" if records is None else f"a user holds {records}; "
    if _holds_few(records):
        return Decision(Way.ANY_MISTAKE, f"{held}count the users with any mistake")
    if situation.has_many_users:
        return Decision(Way.CROSSING, f"{held}users are many enough to choose t privately")
    return Decision(
        Way.KOLMOGOROV_SMIRNOV, f"{held}users are few (or private): compare all t at once"
    )
