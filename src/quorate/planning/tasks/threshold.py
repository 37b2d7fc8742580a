r"""Planning a cut-off on an ordered domain: its excess error.

With few users the learner releases a private median of users' own best cut-offs. With more it works
in two stages: a private median, then the exponential mechanism near it. The median must first find
the right part of the domain. The share g of users for whom a far-away cut-off is worse than the
best one must outweigh the logarithm of the domain, :math:`n g \ge (2/\varepsilon)\ln(D/\beta)`.
Then its excess falls as :math:`1/(mn)`. If labels are noisy and users alike, there is an additional
term of :math:`1/(m\sqrt n)`. For few users who may differ, the planned error is not below that of
the fewest users for two stages: the excess of a choice by regret plus that of sampling people. If
users are alike, they vote for their own best cut-offs, or on up to 4095 points compare all pairs.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache, partial
from typing import ClassVar

from quorate import _validate
from quorate.core.guarantees import Relation
from quorate.learners.automatic import (
    FEW_RECORDS,
    Decision,
    RuleAlgorithm,
    Situation,
    decide,
    location_share,
    regret_share,
    taken_from,
)
from quorate.learners.scores.pairwise import MAX_DUELLISTS
from quorate.mechanisms.search.rough_records import RecordRange
from quorate.planning.learner_bounds import cut_off_users
from quorate.planning.plan import PublishedBound
from quorate.planning.solve import first_users
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

__all__ = ["ThresholdTask"]

# Walks of more records than this do not change their chances noticeably.
_LONG_WALK = 64
# Measured: excess x m x n = privacy ln(1/beta) / epsilon + sampling ln(1/beta) / (1 - 2 eta)^2.
_PRIVACY = 2.4
_SAMPLING = 0.8
# Measured: excess x m of the median = the same, and this sqrt(eta / (1 - 2 eta)) / sqrt(n).
_MEDIAN_SAMPLING = 1.3
_DUELS = VoteModel()


@lru_cache(maxsize=1024)
def _shares(records: int, error_level: float) -> tuple[float, float]:
    """Return the shares of users whose best cut-offs include the best one, or a far-away one.

    On average half of a user's records lie on each side of the best cut-off. When the cut-off moves
    away, the number of mistakes rises with probability 1 - eta and falls with probability eta at
    every record.
    """
    m = min(records, _LONG_WALK)
    up = 1.0 - error_level
    # stay[j][h]: chance that j steps from height h, up with chance 1 - eta, never go below 0.
    stay = [[1.0] * (m + 2)]
    for _ in range(m):
        last = stay[-1]
        stay.append(
            [
                up * last[min(h + 1, m + 1)] + (1.0 - up) * (last[h - 1] if h else 0.0)
                for h in range(m + 2)
            ]
        )
    best = far = 0.0
    heights = [1.0] + [0.0] * (m + 1)
    for right in range(m + 1):
        chance = math.comb(m, right) * 0.5**m
        best += chance * stay[right][0] * stay[m - right][0]
        far += chance * sum(p * stay[m - right][h] for h, p in enumerate(heights))
        # Coming back from far away, mistakes go down with chance 1 - eta at every record.
        moved = [0.0] * (m + 2)
        for h, p in enumerate(heights):
            if p:
                moved[min(h + 1, m + 1)] += (1.0 - up) * p
                if h:
                    moved[h - 1] += up * p
        heights = moved
    return best, far


@dataclass(frozen=True, kw_only=True)
class ThresholdTask(RuleTask):
    """A cut-off on an ordered domain, as in :class:`~quorate.learners.ThresholdLearner`.

    The error is the excess error: the error of the released cut-off on new records minus that of
    the best one.

    Parameters
    ----------
    domain : int, default=2**32
        Number of points of the domain.
    error_level : float, default=0.1
        Error of the best cut-off.
    alike : bool, default=False
        Whether users are alike, as stated to the learner; then ``between`` is zero.

    Examples
    --------
    >>> task = ThresholdTask(records=16)
    >>> task.error(2000, 1.0) < 0.006 < 0.02 < task.error(200, 1.0)
    True
    >>> [task.algorithm(n, 1.0)[0] for n in (40, 100, 400)]
    ['slack_median', 'median', 'two_stages']
    >>> ThresholdTask(records=16, alike=True).algorithm(400, 1.0)[0]
    'own_best'
    """

    domain: int = 2**32

    name: ClassVar[str] = "threshold"
    error_meaning: ClassVar[str] = "excess over the error of the best cut-off"

    def __post_init__(self) -> None:
        super().__post_init__()
        _validate.positive_integer(domain=self.domain)

    @property
    def _size(self) -> int:
        return self.domain + 1

    def _situation(self, users: int, epsilon: float) -> Situation:
        return Situation(
            size=self._size,
            ordered=self._size > MAX_DUELLISTS,
            epsilon=epsilon,
            relation=self.relation,
            n_users=users if self.relation is Relation.REPLACE else None,
            alike=self.alike,
        )

    def _decision(self, users: int, epsilon: float) -> Decision:
        return decide(self._situation(users, epsilon), RecordRange.exactly(self.records))

    def error(self, users: int, epsilon: float) -> float:
        """Return the excess error of the algorithm that the learner would choose."""
        sampling = unavoidable_excess(
            users=users, records=self.records, error_level=self.error_level, beta=self.beta
        )
        return min(max(self._reached(users, epsilon), sampling), self.largest_error)

    def _reached(self, users: int, epsilon: float) -> float:
        # One more user only adds, or moves a loss by half as much: half the noise.
        private = self.relation is Relation.ADD_REMOVE
        reach = 2.0 * epsilon if private else epsilon
        if self.alike:
            if self._size <= MAX_DUELLISTS:
                return self._duels(users, reach)
            return self._alike_on_line(users, epsilon, reach)
        situation, way = self._situation(users, epsilon), self._decision(users, epsilon).algorithm
        people = self._people(users)
        if way is RuleAlgorithm.DUELS:
            found = self._duels(users, reach)
        elif way in (RuleAlgorithm.MEDIAN, RuleAlgorithm.SLACK_MEDIAN):
            found = self._median(users, reach)
        elif way is RuleAlgorithm.MISTAKES and situation.ordered:
            # Along a whole line the crowd must outweigh all other places.
            if not self._visible(users, reach, self.largest_error):
                return self.largest_error
            found = self._noise(way, situation, users * reach) + people
        else:
            found = self._noise(way, situation, users * reach) + people
        if private or way is RuleAlgorithm.MISTAKES:
            return found
        # Users who differ: no way promises less error than a later one where that begins.
        first = RuleAlgorithm.TWO_STAGES if situation.ordered else RuleAlgorithm.CAPPED_REGRET
        for later in (first, RuleAlgorithm.REGRET):
            if not situation.has_come_to(later):
                begin = math.ceil(taken_from(later, situation))
                there = self._situation(begin, 1.0)
                noise = self._noise(decide(there, None).algorithm, there, float(begin))
                found = max(found, noise + people)
        return found

    def _noise(self, way: RuleAlgorithm, situation: Situation, reach: float) -> float:
        """Return the excess of a choice by regrets; ``reach`` is users x epsilon."""
        if way is RuleAlgorithm.TWO_STAGES:
            reach *= 1.0 - float(location_share(situation))
        return regret_excess(
            reach=reach,
            options=None if situation.ordered else self._size,
            beta=self.beta,
            records=self.records,
            share=regret_share(situation),
        )

    def _alike_on_line(self, users: int, epsilon: float, reach: float) -> float:
        if self.relation is Relation.ADD_REMOVE:
            way = self._own_best if self.records < FEW_RECORDS else self._median
            return way(users, reach)
        many = first_users(lambda n: self._situation(n, epsilon).has_many_users)
        found = self._median(min(users, many - 1), epsilon) if many > 1 else math.inf
        if users >= many:
            found = min(found, self._own_best(users, epsilon))
        return found

    def _visible(self, users: int, epsilon: float, share: float) -> bool:
        """Whether a share of the users suffices to find the right part of the domain."""
        doubt = math.log(1.0 / self.beta)
        noise = 2.0 / epsilon * (math.log(self._size) + doubt)
        fluctuation = math.sqrt(2.0 * doubt * users * max(0.0, share * (1.0 - share)))
        return users * share - fluctuation >= noise

    def _local(self, users: int, epsilon: float) -> float:
        clear = 1.0 - 2.0 * self.error_level
        doubt = math.log(1.0 / self.beta)
        return doubt * (_PRIVACY / epsilon + _SAMPLING / clear**2) / (users * self.records)

    def _own_best(self, users: int, epsilon: float) -> float:
        best, far = _shares(self.records, self.error_level)
        if not self._visible(users, epsilon, best - far):
            return self.largest_error
        return min(self._local(users, epsilon), self.largest_error)

    def _median(self, users: int, epsilon: float) -> float:
        best, far = _shares(self.records, self.error_level)
        # Users who mind a far-away cut-off on one side, less those who mind the best one.
        if not self._visible(users, epsilon, (1.0 - far) - (1.0 - best) / 2.0):
            return self.largest_error
        noisy = math.sqrt(self.error_level / (1.0 - 2.0 * self.error_level))
        doubt = math.sqrt(math.log(1.0 / self.beta))
        sampling = _MEDIAN_SAMPLING * noisy * doubt / (self.records * math.sqrt(users))
        return min(self._local(users, epsilon) + sampling, self.largest_error)

    def _duels(self, users: int, epsilon: float) -> float:
        return _DUELS.excess(
            partial(label_preference, records=self.records, error_level=self.error_level),
            users=users,
            epsilon=epsilon,
            options=self._size,
            beta=self.beta,
            largest=self.largest_error,
        )

    def algorithm(self, users: int, epsilon: float) -> tuple[str, str]:
        """Return the score that the learner would use."""
        decision = self._decision(users, epsilon)
        return decision.algorithm.value, decision.reason + "."

    def upper(self, *, epsilon: float, error: float) -> PublishedBound:
        """Return the users that suffice for agnostic learning of cut-offs, by theorems."""
        return published_agnostic(
            self, epsilon=epsilon, error=error, vc=1, log_size=math.log(self._size)
        )

    def lower(self, *, epsilon: float, error: float) -> PublishedBound:
        """Return a lower bound on the number of users, for the hardest data."""
        return rule_limit(
            self,
            epsilon=epsilon,
            error=error,
            error_level=self.error_level,
            vc=1,
            log_places=math.log(max(2, self.domain - 1)),
        )

    def sufficient(self, *, epsilon: float, error: float) -> tuple[PublishedBound, ...]:
        """Return the bounds, including the theorems about learners with their constants."""
        users = cut_off_users(
            log_size=math.log(self._size),
            records=self.records,
            epsilon=epsilon,
            alpha=error,
            beta=self.beta,
        )
        search = PublishedBound(
            users=users,
            theorem="Theorem 5.2 of Li, Wang, Ye (2024)",
            holds=True,
            note="every constant of the proof",
        )
        learners = further_learners(
            self, epsilon=epsilon, error=error, vc=1, log_size=math.log(self._size)
        )
        further = super().sufficient(epsilon=epsilon, error=error)
        return (search, *learners, *further)

    def necessary(self, *, epsilon: float, error: float) -> tuple[PublishedBound, ...]:
        """Return lower bounds for few users and for the hardest data, and those of all tasks."""
        limits = further_rule_limits(
            self, epsilon=epsilon, error=error, error_level=self.error_level, vc=1
        )
        return (*super().necessary(epsilon=epsilon, error=error), *limits)
