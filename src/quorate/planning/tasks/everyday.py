"""Planning counts of people, sums and means over records: a table of one group."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from quorate import _validate
from quorate.guarantees import Relation
from quorate.mechanisms.noisy_count import NoisyCount
from quorate.planning.plan import PublishedBound
from quorate.planning.solve import smallest_users
from quorate.planning.tasks.base import ErrorModel, PlanTask
from quorate.planning.tasks.table import HeldTask, seen_before
from quorate.tabulate.budget import Outlook

__all__ = ["CountTask", "RecordMeanTask", "SumTask"]

# A count that is off by less than half a person is right.
_EXACT_BELOW = 0.5
# Measured on log-normal crowds (300 to 5,000 people): a search for a cap is off by a little more
# than a step of its ladder, and the cap of a column is that of records times 1 to 1.5 standard
# deviations of a record.
_CAUTION = 1.2
_UNIT = 1.5
# No more than this is ever said to be lost.
_LEAST = 1e-3


@dataclass(frozen=True, kw_only=True)
class CountTask(PlanTask):
    """How many people there are, as in :class:`~quorate.tabulate.UserCount`.

    The error is a share of all people; a count of records is planned as a sum.

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
        """Return a bound on the noise; there is no sampling error, because people are counted."""
        mechanism = NoisyCount(epsilon=epsilon, relation=self.relation)
        return min(
            self.largest_error, max(_EXACT_BELOW, float(mechanism.error_bound(self.beta))) / users
        )

    def way(self, users: int, epsilon: float) -> tuple[str, str]:
        """Return the only algorithm there is."""
        del users, epsilon
        return "laplace", "every person counts once."

    def baselines(self) -> dict[str, ErrorModel]:
        """Return nothing: a person counts once, however many records there are."""
        return {}

    def upper(self, *, epsilon: float, error: float) -> PublishedBound:
        """Return the users for whom the law of the noise suffices, which is exact."""
        users = smallest_users(lambda n: self.error(n, epsilon), error)
        return PublishedBound(
            users=None if users is None else float(users),
            theorem="law of the noise",
            holds=True,
            note="whoever the people are",
        )

    def lower(self, *, epsilon: float, error: float) -> PublishedBound:
        """Return the floor for two crowds: all people count, or nobody."""
        del error
        return self.two_crowds(epsilon)


@dataclass(frozen=True, kw_only=True)
class SumTask(HeldTask):
    """The sum of columns, as in :class:`~quorate.tabulate.UserSum`; or a count of records.

    The error of each sum is a share of it, what is missing beyond the cap included.

    Parameters
    ----------
    dimension : int, default=1
        Columns, each with an equal part of the budget.
    scale : float, default=4.0
        How many times the average total one person in a hundred has; 1 if all have the same.

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

    def error(self, users: int, epsilon: float) -> float:
        """Return the error of one sum: noise, and the loss from the cap."""
        return min(self.largest_error, _CAUTION * super().error(users, epsilon))

    def baselines(self) -> dict[str, ErrorModel]:
        """Return nothing: to cap what a person holds is what group privacy comes to here."""
        return {}

    def _seen(self, users: int, epsilon: float) -> Outlook:
        known = users, epsilon, self.delta, self.relation
        return seen_before(*known, groups=1, columns=self.dimension, records=False, held=1.0)

    @property
    def _parts(self) -> int:
        return self.dimension

    def way(self, users: int, epsilon: float) -> tuple[str, str]:
        """Return which noise the sums have."""
        name = "laplace" if self._seen(users, epsilon).norm == 1 else "gaussian"
        return name, "the cap was found privately."


@dataclass(frozen=True, kw_only=True)
class RecordMeanTask(HeldTask):
    """The mean of columns over all records, as in :class:`~quorate.tabulate.RecordMean`.

    The error is that of one mean, for the people who are there.

    Parameters
    ----------
    dimension : int, default=1
        Columns.
    scale : float, default=4.0
        How many times the average number of records one person in a hundred holds.
    bounds : float, default=10.0
        Half of the public range, in standard deviations of one record; it matters where people
        are too few to say how much values differ.

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
        """Return the error of one mean, in the units that sums are counted in."""
        unit = _UNIT if self._seen(users, epsilon).measured else max(_UNIT, self.bounds)
        # Who is replaced may take a sum from one side of the centre to the other.
        unit *= 2.0 if self.relation is Relation.REPLACE else 1.0
        return min(self.largest_error, unit * super().error(users, epsilon))

    def _joined(self, noise: float, lost: float) -> float:
        """Return the error of a mean when a share ``lost`` of the records is left out by caps."""
        return noise / max(1.0 - lost, _LEAST)

    def baselines(self) -> dict[str, ErrorModel]:
        """Return nothing: to cap what a person holds is what group privacy comes to here."""
        return {}

    def _seen(self, users: int, epsilon: float) -> Outlook:
        known = users, epsilon, self.delta, self.relation
        return seen_before(*known, groups=1, columns=self.dimension, records=True, held=1.0)

    @property
    def _parts(self) -> int:
        return self.dimension + 1

    def way(self, users: int, epsilon: float) -> tuple[str, str]:
        """Return which noise the means have."""
        name = "laplace" if self._seen(users, epsilon).norm == 1 else "gaussian"
        return name, "the cap was found privately."
