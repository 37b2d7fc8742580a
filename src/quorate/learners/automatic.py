"""The automatic choice of a score, from public numbers and private estimates.

The rules below were measured on stumps, conjunctions, intervals, random tables and cut-offs; see
``benchmarks/learners.py``. In words:

* if the error of the best concept is stated: any mistake for 0; otherwise more than t mistakes,
  with the best t;
* if users are stated to have one record each: count mistakes;
* up to 4096 hypotheses: duels if users are few for the class, because they need few users if these
  are alike; capped regret if users are many, because it minimises the total error even if users
  differ; regret without a cap if users are very many, because the cap ignores part of their errors;
* cut-offs on a line: with the fewest users, the median of the cut-offs that are nearly best for
  each user, because nearly all users must agree; with few users, the median of their own best
  cut-offs; with more users, two stages, a private median and then a choice near it by capped regret
  (without a cap for very many users);
* larger classes without an order: capped regret if users are many, and without a cap if they are
  very many; otherwise any mistake for fewer than 4 records, and the Kolmogorov-Smirnov score for
  more.

``alike=True`` states that records of all users come from one distribution. Then duels are used for
any number of users. On a line users vote for their own best cut-offs if there are many users,
otherwise the median is released. Larger classes use a crossing instead of capped regret.

Under add or remove the number of users is private, so no decision uses it: cut-offs are found in
two stages, and rules of small classes by capped regret. If users are alike, the score for cut-offs
depends on the number of records: own best for fewer than 4 records, otherwise the median.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from enum import Enum
from fractions import Fraction

from quorate.core.guarantees import Relation
from quorate.learners.scores.pairwise import MAX_DUELLISTS
from quorate.mechanisms.search.rough_records import RecordRange

__all__ = [
    "Decision",
    "RuleAlgorithm",
    "Situation",
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
# From which epsilon x users on a algorithm is taken: per unit of ln(size), and at least.
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


class RuleAlgorithm(Enum):
    """The algorithms that choose a hypothesis."""

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
    """A decision and its reason; both depend on public values only."""

    algorithm: RuleAlgorithm
    reason: str


@dataclass(frozen=True, kw_only=True)
class Situation:
    """The public facts on which the decision depends.

    Attributes
    ----------
    size : int
        The number of hypotheses.
    ordered : bool
        Whether they are ordered, so that they need not be enumerated.
    epsilon : float
    relation : Relation
    n_users : int or None
        ``None`` under add or remove, where it is private.
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
        """Whether there are many users for a class of this size.

        >>> known = dict(size=2**32, ordered=True, relation=Relation.REPLACE, epsilon=1.0)
        >>> [Situation(n_users=n, **known).has_many_users for n in (100, 200)]
        [False, True]
        """
        enough = _USERS_PER_LOG_SIZE * math.log(self.size)
        return self.n_users is not None and self.n_users * self.epsilon >= enough

    def has_come_to(self, algorithm: RuleAlgorithm) -> bool:
        """Whether there are enough users for an algorithm, according to :func:`taken_from`.

        >>> known = dict(size=2**32, ordered=True, relation=Relation.REPLACE, epsilon=1.0)
        >>> Situation(n_users=2000, **known).has_come_to(RuleAlgorithm.REGRET)
        True
        """
        if self.n_users is None:
            return False
        return self.n_users * self.epsilon >= taken_from(algorithm, self)


def taken_from(algorithm: RuleAlgorithm, situation: Situation) -> float:
    """Return the least users x epsilon from which this algorithm is used if users may differ.

    >>> known = dict(size=2**32, ordered=True, relation=Relation.REPLACE, epsilon=1.0)
    >>> round(taken_from(RuleAlgorithm.TWO_STAGES, Situation(**known)))
    200
    """
    log_size = math.log(situation.size)
    if algorithm is RuleAlgorithm.CAPPED_REGRET and situation.size > MAX_DUELLISTS:
        return _USERS_PER_LOG_SIZE * log_size
    per_log_size, least = _TAKEN_FROM.get(algorithm.value, (_USERS_PER_LOG_SIZE, 0.0))
    return max(least, per_log_size * log_size)


def regret_share(situation: Situation) -> Fraction:
    """Return the cap of a user's regret as a share of their records: 1 for very many users.

    >>> known = dict(size=2**32, ordered=True, relation=Relation.REPLACE, epsilon=1.0)
    >>> [str(regret_share(Situation(n_users=n, **known))) for n in (1000, 2000)]
    ['1/2', '1']
    """
    return Fraction(1) if situation.has_come_to(RuleAlgorithm.REGRET) else Fraction(1, 2)


def location_share(situation: Situation) -> Fraction:
    """Return the budget share of the first stage, which locates the users.

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
    """Return the numbers of records at which the decision changes; empty if it never changes.

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
    >>> decide(Situation(n_users=100, **known), None).algorithm.value
    'median'
    >>> print(decide(Situation(n_users=300, **known), None).reason)
    300 users are enough for two stages among 4294967296 cut-offs: a private median, then the best
    cut-off near it
    >>> print(decide(Situation(n_users=300, alike=True, **known), None).reason)
    users are alike and many for 4294967296 cut-offs: users vote for their own best cut-offs
    """
    if situation.error_level is not None:
        if situation.error_level == 0:
            return Decision(
                RuleAlgorithm.ANY_MISTAKE, "error_level=0 was stated: nobody needs to err"
            )
        return Decision(
            RuleAlgorithm.MORE_THAN,
            f"error_level={situation.error_level:g} was stated: the best t follows from it",
        )
    if records == _ONE_RECORD:
        return Decision(RuleAlgorithm.MISTAKES, "one record a user was stated: count mistakes")
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
            RuleAlgorithm.DUELS,
            f"users are alike; {size} hypotheses, at most {MAX_DUELLISTS}: they compare all pairs",
        )
    if situation.n_users is None:
        return Decision(RuleAlgorithm.CAPPED_REGRET, "users may differ: sum their capped regrets")
    users = f"{situation.n_users} users"
    if (regret := _by_regret(situation, f"{size} hypotheses")) is not None:
        return regret
    return Decision(
        RuleAlgorithm.DUELS, f"{users} are few for {size} hypotheses: they compare all pairs"
    )


def _by_regret(situation: Situation, hypotheses: str) -> Decision | None:
    """Sum regrets if users are many: capped regrets, or uncapped ones if users are very many."""
    users = f"{situation.n_users} users"
    if situation.has_come_to(RuleAlgorithm.REGRET):
        return Decision(
            RuleAlgorithm.REGRET,
            f"{users} are very many for {hypotheses} and may differ: sum their regrets",
        )
    if situation.has_come_to(RuleAlgorithm.CAPPED_REGRET):
        return Decision(
            RuleAlgorithm.CAPPED_REGRET,
            f"{users} are many for {hypotheses} and may differ: add up their regrets, each capped",
        )
    return None


def _along_line(situation: Situation) -> Decision:
    cut_offs = f"{situation.size} cut-offs"
    if situation.n_users is None:
        return Decision(
            RuleAlgorithm.TWO_STAGES,
            "the number of users is private: a place among them, then what errs least around it",
        )
    users = f"{situation.n_users} users"
    if situation.has_come_to(RuleAlgorithm.REGRET):
        return Decision(
            RuleAlgorithm.TWO_STAGES,
            f"{users} are very many for {cut_offs}: a private median, then the cut-off with the "
            f"smallest total regret near it",
        )
    if situation.has_come_to(RuleAlgorithm.TWO_STAGES):
        return Decision(
            RuleAlgorithm.TWO_STAGES,
            f"{users} are enough for two stages among {cut_offs}: a private median, then the "
            f"best cut-off near it",
        )
    if situation.has_come_to(RuleAlgorithm.MEDIAN):
        return Decision(
            RuleAlgorithm.MEDIAN,
            f"{users} are few for {cut_offs}: the median of their own best cut-offs",
        )
    return _by_slack(situation)


def _by_slack(situation: Situation) -> Decision:
    return Decision(
        RuleAlgorithm.SLACK_MEDIAN,
        f"{situation.n_users} users are very few for {situation.size} cut-offs: the median of "
        f"the cut-offs that are nearly best for each user",
    )


def _alike_along_line(situation: Situation, records: RecordRange | None) -> Decision:
    if situation.relation is Relation.ADD_REMOVE and _holds_few(records):
        return Decision(
            RuleAlgorithm.OWN_BEST, f"a user has {records}: too few to find a cut-off alone"
        )
    if situation.has_many_users:
        return Decision(
            RuleAlgorithm.OWN_BEST,
            f"users are alike and many for {situation.size} cut-offs: users vote for their own "
            "best cut-offs",
        )
    if situation.n_users is not None and not situation.has_come_to(RuleAlgorithm.MEDIAN):
        return _by_slack(situation)
    return Decision(
        RuleAlgorithm.MEDIAN,
        f"users are few (or private) for {situation.size} cut-offs: the median of their own best "
        f"cut-offs",
    )


def _large(situation: Situation, records: RecordRange | None) -> Decision:
    regret = None if situation.alike else _by_regret(situation, f"{situation.size} hypotheses")
    if regret is not None:
        return regret
    held = "" if records is None else f"a user has {records}; "
    if _holds_few(records):
        return Decision(RuleAlgorithm.ANY_MISTAKE, f"{held}count the users with any mistake")
    if situation.has_many_users:
        return Decision(
            RuleAlgorithm.CROSSING, f"{held}users are many enough to choose t privately"
        )
    return Decision(
        RuleAlgorithm.KOLMOGOROV_SMIRNOV, f"{held}users are few (or private): compare all t at once"
    )
