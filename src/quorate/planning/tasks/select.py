"""Planning a choice among candidates by a bounded loss: its excess loss."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar

from quorate import _validate
from quorate.core.guarantees import Relation
from quorate.estimators import Route
from quorate.learners.loss_selector import decide_selection, sums_from
from quorate.mechanisms.choices.choose import ChooseBest
from quorate.mechanisms.search.rough_records import RecordRange
from quorate.planning.limits import (
    fixed_users_error,
    fixed_users_floor,
    heterogeneity_penalty,
    two_point_users,
)
from quorate.planning.packings import finite_class_packing, packing_floor
from quorate.planning.plan import PublishedBound
from quorate.planning.solve import smallest_users
from quorate.planning.tasks.base import ErrorModel, LearningTask
from quorate.planning.tasks.choices import VoteModel, normal_preference
from quorate.ranges import half_width

__all__ = ["SelectTask"]

_DUELS = VoteModel(fluctuation=0.35)
_REFERENCE = VoteModel(certainty=4.0, per_option=1.0, everything=3.0, fluctuation=0.5)
# Measured: excess x users = a ln(1/beta) + b ln(K) noise scales, and z sqrt(ln(1/beta)) deviations.
_SUMS, _SUMS_PER_OPTION, _SUMS_FLUCTUATION = 1.0, 0.15, 0.45
# Measured on real tables (the choose part of benchmarks/people_tables.py): what most people prefer
# costs so much more than the best in the mean, in deviations between people; users do not help.
_MAJORITY = 0.075


@dataclass(frozen=True, kw_only=True)
class SelectTask(LearningTask):
    """The best of many candidates, as in :class:`~quorate.learners.LossSelector`.

    The error is the excess loss: the expected loss of the chosen candidate minus the smallest one,
    in the units of the loss.

    Parameters
    ----------
    size : int, default=100
        Number of candidates.
    bounds : float or pair, default=(0.0, 1.0)
        Public range of the loss.
    scale : float, optional
        Standard deviation, over records, of the difference of two candidates' losses; default half
        of the width of ``bounds``.
    between : float, optional
        Share of the variance of such differences that lies between people; by default a half.
    alike : bool, default=False
        Whether users are alike, as stated to the selector; then ``between`` is zero.

    Examples
    --------
    >>> task = SelectTask(size=100, records=64)
    >>> task.error(400, 1.0) < task.error(100, 1.0)
    True
    """

    size: int = 100
    bounds: Any = (0.0, 1.0)
    scale: float | None = None

    name: ClassVar[str] = "select"
    error_meaning: ClassVar[str] = "excess over the smallest expected loss"

    def __post_init__(self) -> None:
        super().__post_init__()
        _validate.positive_integer(size=self.size)
        _validate.positive(width=self.width)
        if self.scale is not None:
            _validate.positive(scale=self.scale)

    @cached_property
    def width(self) -> float:
        """Width of the public range of the loss."""
        return 2.0 * half_width(self.bounds)

    @property
    def deviation(self) -> float:
        """Standard deviation of the difference of two candidates' losses on one record."""
        return self.width / 2.0 if self.scale is None else self.scale

    @property
    def largest_error(self) -> float:
        """The width of the public range of the loss."""
        return self.width

    def error(self, users: int, epsilon: float) -> float:
        """Return the excess loss that the chosen algorithm can detect."""
        if self.size == 1:
            return 0.0
        name = self._route(users, epsilon).name
        if name == "exponential":
            found = self.sums_error(users, epsilon) + self._majority(users, epsilon)
            return min(found, self.largest_error)
        each = self.deviation * math.sqrt(self.shrunk)
        votes = _DUELS if name == "duels" else _REFERENCE
        found = votes.excess(
            lambda excess: normal_preference(excess / each),
            users=users,
            epsilon=epsilon if self.relation is Relation.REPLACE else 2.0 * epsilon,
            options=self.size,
            beta=self.beta,
            largest=self.largest_error,
        )
        found = max(found, self._unavoidable(users)) + self._majority(users, epsilon)
        if not self.alike:
            # Nothing better is promised than at the budget at which losses are added up.
            found = max(found, self.sums_error(users, sums_from(self.size) / users))
        return min(found, self.largest_error)

    def _majority(self, users: int, epsilon: float) -> float:
        """Return the excess of a vote by users, after a rough estimate of their records."""
        if self._route(users, epsilon, 2 * self.records).name == "exponential":
            return 0.0
        return _MAJORITY * self.deviation * math.sqrt(self.share_between)

    def _unavoidable(self, users: int) -> float:
        """Return the excess loss that cannot be detected even without privacy.

        It uses the two-valued differences of :meth:`lower`, whose divergence is at least twice the
        square of error / sqrt(scale^2 + error^2).
        """
        doubt = max(0.0, math.log(1.0 / (4.0 * self.beta)))
        records = 2.0 * users * self.records
        if records <= doubt:
            return self.largest_error
        return self.deviation * math.sqrt(doubt / (records - doubt))

    def sums_error(self, users: int, epsilon: float) -> float:
        """Return the excess of the exponential mechanism on the sums of users' mean losses."""
        if self.size == 1:
            return 0.0
        chooser = ChooseBest(
            candidates=self.size,
            epsilon=epsilon,
            relation=self.relation,
            one_sided=self.relation is Relation.ADD_REMOVE,
        )
        doubt = self._doubt
        noise = chooser.scale * (_SUMS * doubt + _SUMS_PER_OPTION * math.log(self.size))
        fluctuation = _SUMS_FLUCTUATION * self.deviation * math.sqrt(doubt * self.shrunk)
        found = self.width * noise / users + fluctuation / math.sqrt(users)
        return min(max(found, self._unavoidable(users)), self.largest_error)

    def group_error(self, users: int, epsilon: float) -> float:
        """Return the error of group privacy, including the sampling of people."""
        found = super().group_error(users, epsilon) + self._people(users)
        return min(found, self.largest_error)

    def item_to_user_error(self, users: int, epsilon: float) -> float:
        """Return the error of Algorithm 1 of Ghazi et al., including the sampling of people."""
        found = super().item_to_user_error(users, epsilon) + self._people(users)
        return min(found, self.largest_error)

    def _people(self, users: int) -> float:
        """Return the fluctuation of the part that the records of one person have in common."""
        common = max(0.0, self.shrunk - 1.0 / self.records)
        return _SUMS_FLUCTUATION * self.deviation * math.sqrt(self._doubt * common / users)

    @property
    def _doubt(self) -> float:
        return math.log(1.0 / self.beta)

    def baselines(self) -> dict[str, ErrorModel]:
        """Return the error of simpler methods, by name."""
        found = super().baselines()
        if self._route(1, 1.0).name != "exponential":
            found["clip to range"] = self.sums_error
        return found

    def algorithm(self, users: int, epsilon: float) -> tuple[str, str]:
        """Return the algorithm that the selector would use."""
        route = self._route(users, epsilon)
        return route.name, f"{route.reason}."

    def _route(self, users: int, epsilon: float, records: int | None = None) -> Route:
        return decide_selection(
            RecordRange.exactly(records or self.records),
            candidates=self.size,
            epsilon=epsilon,
            n_users=users if self.relation is Relation.REPLACE else None,
            alike=self.alike,
        )

    def upper(self, *, epsilon: float, error: float) -> PublishedBound:
        """Return Corollary 3 of Levy et al., with constants 1."""
        options = math.log(self.size / self.beta)
        each = self.width / math.sqrt(self.records) / error
        users = max(each * options / epsilon + each**2 * options, options / epsilon)
        whole = heterogeneity_penalty(
            bound=self.width, users=math.ceil(users), records=self.records, distance=1.0
        )
        return PublishedBound(
            users=users,
            theorem="Corollary 3 of Levy et al. (2021)",
            holds=False,
            note="stated up to constants and logarithms, constants 1 here; people who differ by "
            f"{error / whole:.1g} in total variation at most double the error (Theorem 10)",
        )

    def lower(self, *, epsilon: float, error: float) -> PublishedBound:
        """Return Le Cam's bound for two candidates whose difference takes two values."""
        if self.size == 1:
            return PublishedBound(
                users=1.0, theorem="no theorem", holds=True, note="there is nothing to choose"
            )
        reach = min(self.width, math.hypot(self.deviation, error))
        share = min(1.0, error / reach)
        certain = share == 1.0
        two = two_point_users(
            divergence=math.inf if certain else share * (math.log1p(share) - math.log1p(-share)),
            distance=share,
            records=self.records,
            epsilon=epsilon,
            delta=self.delta,
            beta=self.beta,
            relation=self.relation,
        )
        floor = float(
            fixed_users_floor(
                epsilon=epsilon, delta=self.delta, beta=self.beta, relation=self.relation
            )
        )
        if two >= floor:
            theorem = "Theorem 1 of Acharya et al. (2021)"
        else:
            theorem = "Theorem 9 of Levy et al. (2021)"
        return PublishedBound(
            users=max(two, floor, 1.0),
            theorem=theorem,
            holds=True,
            note="already for two candidates with two-valued differences",
        )

    def necessary(self, *, epsilon: float, error: float) -> tuple[PublishedBound, ...]:
        """Return also Theorem 8 of Levy et al. and the bound for few users of its appendix A."""
        if self.size == 1:
            return ()
        found = [*super().necessary(epsilon=epsilon, error=error)]
        if self.delta == 0:
            width = min(self.width, self.deviation)
            users = packing_floor(
                finite_class_packing(self.size, error, width=width),
                records=self.records,
                epsilon=epsilon,
                beta=self.beta,
                relation=self.relation,
            )
            found.append(
                PublishedBound(
                    users=max(1.0, users),
                    theorem="Theorem 8 of Levy et al. (2021)",
                    holds=True,
                    note="for the hardest losses whose differences have this scale",
                )
            )
        few = smallest_users(
            lambda n: fixed_users_error(
                largest=self.width,
                users=n,
                epsilon=epsilon,
                delta=self.delta,
                relation=self.relation,
            ),
            error,
        )
        found.append(
            PublishedBound(
                users=None if few is None else float(few),
                theorem="Appendix A of Levy et al. (2021)",
                holds=True,
                note="this excess in the mean, however many records people hold",
            )
        )
        return tuple(found)
