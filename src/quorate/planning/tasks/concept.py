"""Planning a learner of rules from a finite class: its excess error."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import partial
from typing import ClassVar

from quorate import _validate
from quorate.core.guarantees import Relation
from quorate.learners.automatic import (
    Decision,
    RuleAlgorithm,
    Situation,
    decide,
    regret_share,
    taken_from,
)
from quorate.learners.scores.pairwise import MAX_DUELLISTS
from quorate.mechanisms.search.rough_records import RecordRange
from quorate.planning.plan import PublishedBound
from quorate.planning.tasks.choices import (
    VoteModel,
    further_learners,
    further_rule_limits,
    label_preference,
    published_agnostic,
    regret_excess,
    rule_limit,
    unavoidable_excess,
)
from quorate.planning.tasks.rules import RuleTask

__all__ = ["ConceptTask"]

_DUELS = VoteModel()
# Larger classes are chosen from by counts of users with more than t mistakes.
_LARGE = VoteModel(certainty=8.0, per_option=1.5, everything=9.0, fluctuation=0.7)


@dataclass(frozen=True, kw_only=True)
class ConceptTask(RuleTask):
    """The best rule of a finite class, as in :class:`~quorate.learners.ConceptLearner`.

    The error is the excess error: the error of the released rule on new records minus that of the
    best rule of the class.

    Parameters
    ----------
    size : int, default=1000
        Number of rules.
    vc : int, optional
        VC dimension, for the published bounds; by default the largest possible, log2 of ``size``.
    error_level : float, default=0.1
        Error of the best rule.
    alike : bool, default=False
        Whether users are alike, so that ``between`` is zero. If users may differ, the error for few
        users is planned to be at least that of the smallest number of users for which capped regret
        is used.

    Examples
    --------
    >>> task = ConceptTask(size=500, records=16)
    >>> task.error(400, 1.0) < task.error(50, 1.0)
    True
    >>> task.algorithm(100, 1.0)[0], task.algorithm(400, 1.0)[0]
    ('duels', 'capped_regret')
    """

    size: int = 1000
    vc: int | None = None

    name: ClassVar[str] = "concept"
    error_meaning: ClassVar[str] = "excess over the error of the best rule"

    def __post_init__(self) -> None:
        super().__post_init__()
        _validate.positive_integer(size=self.size)
        if self.vc is not None:
            _validate.positive_integer(vc=self.vc)

    @property
    def vc_dimension(self) -> int:
        """The VC dimension, or the largest that a class of this size can have."""
        return self.vc or max(1, math.floor(math.log2(self.size)))

    def error(self, users: int, epsilon: float) -> float:
        """Return the excess error that the users' votes can detect."""
        if self.size == 1:
            return 0.0
        sampling = unavoidable_excess(
            users=users, records=self.records, error_level=self.error_level, beta=self.beta
        )
        return min(max(self._reached(users, epsilon), sampling), self.largest_error)

    def _reached(self, users: int, epsilon: float) -> float:
        way, situation = self._decision(users, epsilon).algorithm, self._situation(users, epsilon)
        people = self._people(users)
        if way in (RuleAlgorithm.CAPPED_REGRET, RuleAlgorithm.REGRET):
            found = self._noise(situation, users * self._reach(epsilon)) + people
        else:
            found = self._votes(users, epsilon)
        if self.alike or self.records == 1 or self.relation is Relation.ADD_REMOVE:
            return found
        # Users who differ are judged by what errs least for all of them: votes promise no more,
        # nor does a cap more than its end.
        for later in (RuleAlgorithm.CAPPED_REGRET, RuleAlgorithm.REGRET):
            if not situation.has_come_to(later):
                begin = math.ceil(taken_from(later, situation))
                found = max(found, self._noise(self._situation(begin, 1.0), begin) + people)
        return found

    def _noise(self, situation: Situation, reach: float) -> float:
        """Return the excess of a choice by regrets; ``reach`` is users x epsilon."""
        return regret_excess(
            reach=reach,
            options=self.size,
            beta=self.beta,
            records=self.records,
            share=regret_share(situation),
        )

    def _votes(self, users: int, epsilon: float) -> float:
        votes = _DUELS if self.size <= MAX_DUELLISTS else _LARGE
        return votes.excess(
            partial(label_preference, records=self.records, error_level=self.error_level),
            users=users,
            epsilon=self._reach(epsilon),
            options=self.size,
            beta=self.beta,
            largest=self.largest_error,
        )

    def _reach(self, epsilon: float) -> float:
        # One more user moves a loss by half as much as another one in its place.
        return epsilon if self.relation is Relation.REPLACE else 2.0 * epsilon

    def _situation(self, users: int, epsilon: float) -> Situation:
        return Situation(
            size=self.size,
            ordered=False,
            epsilon=epsilon,
            relation=self.relation,
            n_users=users if self.relation is Relation.REPLACE else None,
            alike=self.alike,
        )

    def _decision(self, users: int, epsilon: float) -> Decision:
        return decide(self._situation(users, epsilon), RecordRange.exactly(self.records))

    def algorithm(self, users: int, epsilon: float) -> tuple[str, str]:
        """Return the score that the learner would use."""
        decision = self._decision(users, epsilon)
        return decision.algorithm.value, decision.reason + "."

    def upper(self, *, epsilon: float, error: float) -> PublishedBound:
        """Return the number of users that suffices for an agnostic learner, by theorems."""
        return published_agnostic(
            self, epsilon=epsilon, error=error, vc=self.vc_dimension, log_size=math.log(self.size)
        )

    def lower(self, *, epsilon: float, error: float) -> PublishedBound:
        """Return a lower bound on the number of users, for the hardest data."""
        if self.size == 1:
            return PublishedBound(
                users=1.0, theorem="no theorem", holds=True, note="there is nothing to learn"
            )
        return rule_limit(
            self,
            epsilon=epsilon,
            error=error,
            error_level=self.error_level,
            vc=self.vc or 1,
            log_places=math.log(2.0),
        )

    def sufficient(self, *, epsilon: float, error: float) -> tuple[PublishedBound, ...]:
        """Return the theorems about learners, including their constants, and those of all tasks."""
        learners = further_learners(
            self, epsilon=epsilon, error=error, vc=self.vc_dimension, log_size=math.log(self.size)
        )
        further = super().sufficient(epsilon=epsilon, error=error)
        return (*learners, *further)

    def necessary(self, *, epsilon: float, error: float) -> tuple[PublishedBound, ...]:
        """Return lower bounds for few users and for the hardest data, and those of all tasks."""
        limits = further_rule_limits(
            self, epsilon=epsilon, error=error, error_level=self.error_level, vc=self.vc or 1
        )
        return (*super().necessary(epsilon=epsilon, error=error), *limits)
