"""Planning counts of people, sums and means over records, as tables of one group."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from quorate import _validate
from quorate.core.guarantees import Relation
from quorate.mechanisms.noisy_count import NoisyCount
from quorate.planning.plan import PublishedBound
from quorate.planning.solve import smallest_users
from quorate.planning.tasks.base import ErrorModel, PlanTask
from quorate.planning.tasks.table import HeldTask, farthest, seen_before
from quorate.tabulate.budget import Outlook

__all__ = ["CountTask", "RecordMeanTask", "SumTask"]

# A count that is off by less than half a person is right.
_EXACT_BELOW = 0.5
# machine: normal quantiles of this many people stand for all of them.
_PEOPLE = 4001
# No more than this is ever said to be lost.
_LEAST = 1e-3


@dataclass(frozen=True, kw_only=True)
class CountTask(PlanTask):
    """The number of people, as in :class:`~quorate.tabulate.UserCount`.

    The error is relative to the number of all people; a count of records is planned as a sum.

    Examples
    --------
    >>> CountTask(confidence=0.95).error(1000, 1.0) <= 0.006
    True
    """

    relation: Relation = Relation.ADD_REMOVE

    name: ClassVar[str] = "count"
    error_meaning: ClassVar[str] = "distance from the number of people, as a share of all users"

    @property
    def largest_error(self) -> float:
        """Half of all people."""
        return 0.5

    def error(self, users: int, epsilon: float) -> float:
        """Return a bound on the noise.

        There is no sampling error, because all people are counted.
        """
        mechanism = NoisyCount(epsilon=epsilon, relation=self.relation)
        return min(
            self.largest_error, max(_EXACT_BELOW, float(mechanism.error_bound(self.beta))) / users
        )

    def algorithm(self, users: int, epsilon: float) -> tuple[str, str]:
        """Return the only algorithm."""
        del users, epsilon
        return "laplace", "every person counts once."

    def baselines(self) -> dict[str, ErrorModel]:
        """Return nothing, because a person counts once, however many records there are."""
        return {}

    def upper(self, *, epsilon: float, error: float) -> PublishedBound:
        """Return the users that suffice, by the exact law of the noise."""
        users = smallest_users(lambda n: self.error(n, epsilon), error)
        return PublishedBound(
            users=None if users is None else float(users),
            theorem="law of the noise",
            holds=True,
            note="whoever the people are",
        )

    def lower(self, *, epsilon: float, error: float) -> PublishedBound:
        """Return the lower bound for two populations: all people count, or nobody."""
        del error
        return self.two_crowds(epsilon)


@dataclass(frozen=True, kw_only=True)
class SumTask(HeldTask):
    """The sum of columns, as in :class:`~quorate.tabulate.UserSum`, or a count of records.

    The error of each sum is relative to the sum, and includes what the cap removes.

    Parameters
    ----------
    dimension : int, default=1
        Number of columns; each has an equal part of the budget.
    scale : float, default=4.0
        The 99th percentile of totals per person, divided by the average; 1 if all are equal.

    Examples
    --------
    >>> SumTask().error(20_000, 1.0) < 0.01 < SumTask(scale=10.0).error(20_000, 1.0)
    True
    """

    dimension: int = 1

    name: ClassVar[str] = "sum"
    error_meaning: ClassVar[str] = "distance from the sum of what people hold, as a share of it"

    def __post_init__(self) -> None:
        super().__post_init__()
        _validate.positive_integer(dimension=self.dimension)

    def baselines(self) -> dict[str, ErrorModel]:
        """Return nothing, because group privacy amounts to a cap on each person's records here."""
        return {}

    def _seen(self, users: int, epsilon: float) -> Outlook:
        known = users, epsilon, self.delta, self.relation
        return seen_before(*known, groups=1, columns=self.dimension, records=False, held=1.0)

    @property
    def _parts(self) -> int:
        return self.dimension

    def algorithm(self, users: int, epsilon: float) -> tuple[str, str]:
        """Return the kind of noise of the sums."""
        name = "laplace" if self._seen(users, epsilon).norm == 1 else "gaussian"
        return name, "the cap was found privately."


@dataclass(frozen=True, kw_only=True)
class RecordMeanTask(HeldTask):
    """The mean of columns over all records, as in :class:`~quorate.tabulate.RecordMean`.

    The error is that of one mean over the records of the people in the data.

    Parameters
    ----------
    dimension : int, default=1
        Columns.
    scale : float, default=4.0
        The 99th percentile of records per person, divided by the average.
    bounds : float, default=10.0
        Half of the public range, in standard deviations of one record; it is used if there are too
        few people to estimate how much values differ.

    Examples
    --------
    >>> RecordMeanTask(records=10).error(5000, 1.0) < 0.05
    True
    """

    dimension: int = 1
    bounds: float = 10.0

    name: ClassVar[str] = "record-mean"
    error_meaning: ClassVar[str] = (
        "distance from the mean over records, in standard deviations of one record"
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        _validate.positive_integer(dimension=self.dimension)
        _validate.positive(bounds=self.bounds)

    def error(self, users: int, epsilon: float) -> float:
        """Return the error of one mean: the noise of the centred sum divided by the count."""
        from scipy.special import ndtri

        seen = self._seen(users, epsilon)
        if not seen.known:
            return min(self.largest_error, self.bounds)
        share = min(0.5, seen.above / users)
        cap = farthest(seen) * self._own_sum(share)
        # Who is replaced may take a sum from one side of the centre to the other.
        cap *= 2.0 if self.relation is Relation.REPLACE else 1.0
        noise = self._share(seen, cap * seen.noise, users)
        lost = self._lost(-float(ndtri(share)))
        return min(self.largest_error, noise / max(1.0 - lost, _LEAST))

    def _own_sum(self, share: float) -> float:
        """Return a quantile of people's sums relative to the centre, in standard deviations.

        People have different numbers of records, and each person's mean is normal. One part of a
        record is common to all records of the person, the other is independent for each record.
        """
        from scipy.optimize import brentq
        from scipy.special import ndtr, ndtri

        mine = math.sqrt(self.share_between + (1.0 - self.share_between) / self.records)
        places = np.abs(ndtri((np.arange(_PEOPLE) + 0.5) / _PEOPLE)) + 1e-9
        spread = max(self._deviation, 1e-9)

        def beyond(log_cap: float) -> float:
            away = (log_cap - np.log(places)) / spread + spread / 2
            return float(np.mean(ndtr(-away))) - share

        found = math.exp(float(brentq(beyond, -50.0, 50.0)))
        return mine * self.records * found

    def baselines(self) -> dict[str, ErrorModel]:
        """Return nothing, because group privacy amounts to a cap on each person's records here."""
        return {}

    def _seen(self, users: int, epsilon: float) -> Outlook:
        known = users, epsilon, self.delta, self.relation
        return seen_before(*known, groups=1, columns=self.dimension, records=True, held=1.0)

    @property
    def _parts(self) -> int:
        return self.dimension + 1

    def algorithm(self, users: int, epsilon: float) -> tuple[str, str]:
        """Return the kind of noise of the means."""
        name = "laplace" if self._seen(users, epsilon).norm == 1 else "gaussian"
        return name, "the cap was found privately."
