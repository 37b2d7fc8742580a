"""Which score learns best: a rule that sees public numbers and what was paid for.

Measured on stumps, conjunctions, intervals, random tables and cut-offs; see
``benchmarks/learners.py``. In words:

* the error of the best concept is stated: 0 -> any mistake; otherwise more than t mistakes, with
  the best t;
* one record a user, stated: count mistakes;
* up to 4096 hypotheses: duels, whatever users hold;
* along a line: fewer than 4 records -> any mistake; 8 or more -> the median of users' cut-offs; in
  between duels for few users, a crossing for many, the median for very few;
* larger classes without an order: fewer than 4 records -> any mistake; otherwise a crossing, or the
  Kolmogorov-Smirnov score when users are few.

Under addition or removal of users their number is private, and no branch looks at it.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from quorate.guarantees import Relation
from quorate.learners.records import RecordRange
from quorate.learners.scores.pairwise import MAX_DUELLISTS

__all__ = ["Decision", "Situation", "Way", "decide", "record_cuts"]

FEW_RECORDS = 4
MANY_RECORDS = 8

# Below this many epsilon x users a private choice of t fails too often.
_ENOUGH_TO_CROSS = 200.0


class Way(Enum):
    """How a hypothesis is chosen."""

    MISTAKES = "mistakes"
    ANY_MISTAKE = "any_mistake"
    MORE_THAN = "more_than"
    CROSSING = "crossing"
    KOLMOGOROV_SMIRNOV = "kolmogorov_smirnov"
    DUELS = "duels"
    CLIPPED_PAIRWISE = "clipped_pairwise"
    MEDIAN = "median"
    ESTIMATED_LEVEL = "estimated_level"
    PRIVATE_THRESHOLD = "private_threshold"


@dataclass(frozen=True)
class Decision:
    """What was decided, and the sentence that says why; both are functions of public values."""

    way: Way
    reason: str


@dataclass(frozen=True, kw_only=True)
class Situation:
    """What may be known before a hypothesis is chosen.

    Attributes
    ----------
    size : int
        The number of hypotheses.
    ordered : bool
        Whether they stand in a line that is walked, not enumerated.
    both_ways : bool
        Whether the line holds cut-offs of both directions.
    epsilon : float
    relation : Relation
    n_users : int or None
        ``None`` under addition or removal, where it is private.
    error_level : float or None
        Error of the best concept, if the caller states it.
    """

    size: int
    ordered: bool
    epsilon: float
    relation: Relation
    both_ways: bool = False
    n_users: int | None = None
    error_level: float | None = None

    @property
    def can_cross(self) -> bool:
        """Whether there are users enough for a private choice of t."""
        return self.n_users is not None and self.n_users * self.epsilon >= _ENOUGH_TO_CROSS

    @property
    def can_duel_on_line(self) -> bool:
        """Whether a table of duels between all pieces surely fits."""
        if self.n_users is None:
            return False
        pieces = self.n_users * (MANY_RECORDS - 1) * (2 if self.both_ways else 1) + 1
        return pieces <= MAX_DUELLISTS


def record_cuts(situation: Situation) -> tuple[int, ...]:
    """Return where the answer about records makes a difference; empty if it makes none.

    >>> known = dict(epsilon=1.0, relation=Relation.REPLACE, n_users=300)
    >>> record_cuts(Situation(size=729, ordered=False, **known))
    ()
    >>> record_cuts(Situation(size=2**32, ordered=True, **known))
    (4, 8)
    """
    if situation.error_level is not None or situation.size <= MAX_DUELLISTS:
        return ()
    if situation.ordered and situation.can_cross:
        return (FEW_RECORDS, MANY_RECORDS)
    return (FEW_RECORDS,)


def decide(situation: Situation, records: RecordRange | None) -> Decision:
    """Choose the way that learns best.

    >>> known = dict(size=2**32, ordered=True, epsilon=1.0, relation=Relation.REPLACE, n_users=300)
    >>> decide(Situation(**known), RecordRange(8)).way.value
    'median'
    >>> decide(Situation(**known), RecordRange(0, 4)).reason
    'a user holds 0 to 3 records: count the users with any mistake'
    """
    if situation.error_level is not None:
        if situation.error_level == 0:
            return Decision(Way.ANY_MISTAKE, "error_level=0 was stated: nobody needs to err")
        return Decision(
            Way.MORE_THAN,
            f"error_level={situation.error_level:g} was stated: the best t follows from it",
        )
    if records == RecordRange.exactly(1):
        return Decision(Way.MISTAKES, "one record a user was stated: count mistakes")
    if situation.size <= MAX_DUELLISTS:
        return Decision(
            Way.DUELS,
            f"{situation.size} hypotheses, at most {MAX_DUELLISTS}: users judge all pairs",
        )
    if records is None:
        records = RecordRange(MANY_RECORDS)
    held = f"a user holds {records}"
    if records.upper is not None and records.upper <= FEW_RECORDS:
        return Decision(Way.ANY_MISTAKE, f"{held}: count the users with any mistake")
    if situation.ordered:
        return _decide_on_line(situation, records, held)
    if situation.can_cross:
        return Decision(Way.CROSSING, f"{held}, and users suffice to choose t privately")
    return Decision(
        Way.KOLMOGOROV_SMIRNOV, f"{held}, and users are too few (or private) to choose t first"
    )


def _decide_on_line(situation: Situation, records: RecordRange, held: str) -> Decision:
    if records.lower >= MANY_RECORDS:
        return Decision(Way.MEDIAN, f"{held}: each can find a cut-off alone")
    if not situation.can_cross:
        return Decision(Way.MEDIAN, f"{held}, and users are too few (or private) to choose t first")
    if situation.can_duel_on_line:
        return Decision(Way.DUELS, f"{held}, and users are few enough to judge all pairs of pieces")
    return Decision(Way.CROSSING, f"{held}, and users suffice to choose t privately")
