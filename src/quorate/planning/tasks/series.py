"""Planning a table for every period: the errors of counts and sums by group."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar

from quorate import _validate
from quorate.core.guarantees import Relation
from quorate.exceptions import ParameterError
from quorate.mechanisms.calibrate import gaussian_multiplier
from quorate.planning.plan import PublishedBound
from quorate.planning.solve import smallest_users
from quorate.planning.tasks.base import ErrorModel, PlanTask
from quorate.series.design import KEPT
from quorate.series.factors import Factor, best_factor
from quorate.tabulate.released import tail_factor

__all__ = ["SeriesTask"]


@dataclass(frozen=True, kw_only=True)
class SeriesTask(PlanTask):
    """Numbers of people by group and period, as in :class:`~quorate.series.UserSeries`.

    The error is that of the number of people in one group and one period, relative to the average
    number. Everybody is assumed to be in ``touched`` periods and in one group. A sum has the same
    error, relative to the sum of as many people with full contributions. It is assumed that nobody
    exceeds the caps on records.

    Parameters
    ----------
    size : int, default=10
        Groups.
    dimension : int, default=1
        Columns that are summed, besides the number of people.
    horizon : int, default=52
        Periods.
    touched : int, default=4
        In how many periods a person has records.

    Examples
    --------
    >>> task = SeriesTask(size=8, horizon=78, touched=3, dimension=0, delta=1e-6)
    >>> round(task.error(20_000, 1.0), 3), task.algorithm(20_000, 1.0)[0]
    (0.131, 'independent')
    """

    size: int = 10
    dimension: int = 1
    horizon: int = 52
    touched: int = 4
    relation: Relation = Relation.ADD_REMOVE

    name: ClassVar[str] = "series"
    error_meaning: ClassVar[str] = (
        "error of the people of an average group in one period, as a share of them"
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        _validate.positive_integer(size=self.size, horizon=self.horizon, touched=self.touched)
        _validate.non_negative_integer(dimension=self.dimension)
        if self.touched > self.horizon:
            raise ParameterError(
                f"Expected touched <= horizon={self.horizon}, got touched={self.touched}."
            )

    @property
    def largest_error(self) -> float:
        """The error of answering 0 in every cell."""
        return 1.0

    @cached_property
    def _factor(self) -> Factor:
        return best_factor("periods", horizon=self.horizon, touched=self.touched)

    def _share(self, users: int, noise: float) -> float:
        """Return a bound on the noise of a cell, relative to the average group."""
        people = users * self.touched / (self.horizon * self.size)
        tail = tail_factor("gaussian", beta=self.beta)
        parts = math.sqrt(1 + self.dimension)
        # Two people in two periods are the root of two further apart than one and nobody.
        replaced = math.sqrt(2.0) if self.relation is Relation.REPLACE else 1.0
        return min(self.largest_error, tail * noise * parts * replaced / people)

    def error(self, users: int, epsilon: float) -> float:
        """Return the error of a cell, from the law of the noise."""
        if self.delta == 0:
            raise ParameterError("A series has Gaussian noise: state delta > 0, such as 1e-6.")
        noise = gaussian_multiplier(epsilon, self.delta) * math.sqrt(1 + 1 / KEPT)
        return self._share(users, noise * self._factor.error("periods", self.touched))

    def split_error(self, users: int, epsilon: float) -> float:
        """Return the error if every period has an equal part of the budget."""
        noise = gaussian_multiplier(epsilon, self.delta, count=self.horizon)
        return self._share(users, noise)

    def baselines(self) -> dict[str, ErrorModel]:
        """Return the error if the budget is divided over the periods."""
        return {"a budget split over the periods": self.split_error}

    def algorithm(self, users: int, epsilon: float) -> tuple[str, str]:
        """Return the kind of noise of the series, and of running totals."""
        del users, epsilon
        running = best_factor("running", horizon=self.horizon, touched=self.touched)
        return self._factor.name, (
            "periods have the least noise so; running totals have the least with "
            f"{running.name} noise (view='running')."
        )

    def upper(self, *, epsilon: float, error: float) -> PublishedBound:
        """Return the users that suffice, by the exact law of the noise."""
        users = smallest_users(lambda n: self.error(n, epsilon), error)
        return PublishedBound(
            users=None if users is None else float(users),
            theorem="law of the noise",
            holds=True,
            note="contributions beyond the caps are clipped",
        )

    def lower(self, *, epsilon: float, error: float) -> PublishedBound:
        """Return the lower bound for two populations: all people are in a group, or nobody."""
        if error >= 0.5:
            return PublishedBound(
                users=1.0, theorem="no theorem", holds=True, note="half of a group always does"
            )
        return self.two_crowds(epsilon)
