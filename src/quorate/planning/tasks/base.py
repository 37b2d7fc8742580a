"""What every task defines for the planner: how its error falls with users and epsilon."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, fields, replace
from functools import cached_property
from typing import Any, ClassVar, Self

from quorate import _validate
from quorate.core.guarantees import Relation
from quorate.papers.conversion.translation import deletion_reach
from quorate.planning.limits import (
    fixed_users_floor,
    group_privacy,
    item_to_user,
    item_to_user_users,
    super_users,
    theorem_11_users,
    utility_budget,
)
from quorate.planning.plan import PublishedBound
from quorate.planning.solve import smallest_users

__all__ = ["ASSUMED_BETWEEN", "ErrorModel", "PeopleTask", "PlanTask"]

ASSUMED_BETWEEN = 0.5
"""Share of the variance between people where none is stated: more than most tables show."""

ErrorModel = Callable[[int, float], float]
"""From users and epsilon to the error that is kept with the confidence of the task."""


@dataclass(frozen=True, kw_only=True)
class PlanTask(ABC):
    """Public numbers that describe a task, and its expected error.

    Parameters
    ----------
    records : int, default=1
        Records per user; if users have different numbers of records, the harmonic mean.
    delta : float, default=0.0
    confidence : float, default=0.9
        Probability with which the error bound should hold.
    relation : Relation, default=Relation.REPLACE
    """

    records: int = 1
    delta: float = 0.0
    confidence: float = 0.9
    relation: Relation = Relation.REPLACE

    name: ClassVar[str]
    error_meaning: ClassVar[str]

    def __post_init__(self) -> None:
        _validate.positive_integer(records=self.records)
        _validate.delta(delta=self.delta)
        _validate.probability(confidence=self.confidence)
        _validate.one_of(tuple(Relation), relation=self.relation)

    @property
    def beta(self) -> float:
        """Probability of exceeding the error bound."""
        return 1.0 - self.confidence

    @property
    def description(self) -> tuple[tuple[str, float], ...]:
        """The numbers that describe the task besides the common parameters."""
        shared = {field.name for field in fields(PlanTask)}
        names = (field.name for field in fields(self) if field.name not in shared)
        values = ((name, getattr(self, name)) for name in names)
        return tuple((name, value) for name, value in values if value is not None)

    @property
    def share_between(self) -> float:
        """Share of the variance of single records that lies between people."""
        return 0.0

    @property
    def assumptions(self) -> tuple[str, ...]:
        """Assumptions about numbers that the caller did not state."""
        return ()

    @property
    @abstractmethod
    def largest_error(self) -> float:
        """Return the error of an answer that ignores the data."""

    @abstractmethod
    def error(self, users: int, epsilon: float) -> float:
        """Return the error bound at ``confidence``; it does not increase in either argument."""

    @abstractmethod
    def algorithm(self, users: int, epsilon: float) -> tuple[str, str]:
        """Return the algorithm that ``auto`` would use, and why."""

    @abstractmethod
    def upper(self, *, epsilon: float, error: float) -> PublishedBound:
        """Return the number of users that a published theorem proves to suffice."""

    @abstractmethod
    def lower(self, *, epsilon: float, error: float) -> PublishedBound:
        """Return a lower bound on the number of users of any method."""

    def two_crowds(self, epsilon: float) -> PublishedBound:
        """Return the lower bound from two populations with disjoint supports, for any task.

        >>> from quorate.planning.tasks.everyday import CountTask
        >>> CountTask().two_crowds(1.0).holds
        True
        """
        floor = fixed_users_floor(
            epsilon=epsilon, delta=self.delta, beta=self.beta, relation=self.relation
        )
        return PublishedBound(
            users=float(floor),
            theorem="Theorem 9 of Levy et al. (2021)",
            holds=True,
            note="two crowds that have nothing in common",
        )

    def sufficient(self, *, epsilon: float, error: float) -> tuple[PublishedBound, ...]:
        """Return further theorems about how many users suffice.

        Theorems 10 and 11 of Ghazi et al. (2023), applied to this task's method for single records.
        """
        if self.records == 1 or self.delta == 0:
            return ()

        def needed(each: float, delta: float) -> float:
            single = self._variant(1, delta)
            found = smallest_users(lambda n: single.error(n, each), error)
            return math.inf if found is None else float(found)

        known: dict[str, Any] = {
            "epsilon": epsilon,
            "delta": self.delta,
            "records": self.records,
        }
        inner = needed(*item_to_user(**known))
        different = item_to_user_users(item_records=inner, **known) if inner < math.inf else None
        return tuple(
            PublishedBound(
                users=users,
                theorem=f"Theorem {number} of Ghazi et al. (2023)",
                holds=False,
                note="this library's way with single records inside; constants 1",
            )
            for number, users in ((10, different), (11, theorem_11_users(needed, **known)))
        )

    def necessary(self, *, epsilon: float, error: float) -> tuple[PublishedBound, ...]:
        """Return further lower bounds on the number of users.

        Observation 28 of Ghazi et al. (2023): m single records make a user.
        """
        if self.records == 1:
            return ()
        single = self.with_records(1).lower(epsilon=epsilon, error=error)
        if single.users is None:
            return ()
        return (
            PublishedBound(
                users=float(super_users(single.users, records=self.records)),
                theorem="Observation 28 of Ghazi et al. (2023)",
                holds=single.holds and self.share_between == 0,
                note=f"users who are alike, made of single records; {single.theorem}",
            ),
        )

    def with_records(self, records: int) -> Self:
        """Return the same task with another number of records per user."""
        return self._variant(records, self.delta)

    @cached_property
    def _variants(self) -> dict[tuple[int, float], Self]:
        return {}

    def _variant(self, records: int, delta: float) -> Self:
        """Return the same task with other records and delta; results are cached."""
        if (records, delta) not in self._variants:
            self._variants[records, delta] = replace(self, records=records, delta=delta)
        return self._variants[records, delta]

    def baselines(self) -> dict[str, ErrorModel]:
        """Return the error of simpler methods, by name."""
        if self.records == 1:
            return {}
        simple: dict[str, ErrorModel] = {
            "group privacy": self.best_group_error,
            "one record per user": self.one_record_error,
        }
        if self.delta > 0:
            simple["item to user (constants 1)"] = self.item_to_user_error
        return simple

    def group_error(self, users: int, epsilon: float) -> float:
        """Return the error of group privacy around a method that protects single records.

        n users of m records become n m users of one record with the privacy of
        :func:`~quorate.planning.limits.group_privacy`.
        """
        each, delta = group_privacy(epsilon=epsilon, delta=self.delta, size=self.records)
        if self.delta > 0 and delta == 0:  # smaller than any float
            return self.largest_error
        single = self._variant(1, delta)
        return single.error(users * self.records, each)

    def best_group_error(self, users: int, epsilon: float) -> float:
        """Return the error of group privacy when users keep the best number of their records.

        The numbers tried are powers of two, and all records; anybody who used group privacy would
        also cap records.
        """
        caps = {2**power for power in range(self.records.bit_length())} | {self.records}
        return min(self.with_records(cap).group_error(users, epsilon) for cap in caps)

    def item_to_user_error(self, users: int, epsilon: float) -> float:
        """Return the error of Algorithm 1 of Ghazi et al. around a method for single records.

        The open constants of its theorems are set to 1
        (:func:`~quorate.papers.conversion.translation.utility_budget`), which makes it look better
        than it is.
        """
        budget = {"epsilon": epsilon, "delta": self.delta}
        kept = users - 4 * deletion_reach(**budget)
        if kept < 1:
            return self.largest_error
        each, delta = utility_budget(users=users, records=self.records, **budget)
        single = self._variant(1, delta)
        return single.error(kept * self.records, each)

    def one_record_error(self, users: int, epsilon: float) -> float:
        """Return the error when every user gives one record."""
        return self.with_records(1).error(users, epsilon)


@dataclass(frozen=True, kw_only=True)
class PeopleTask(PlanTask):
    """A task whose people may differ, so more records only partly replace more people.

    The variance of a user's mean record is ``between + (1 - between) / records`` times that of a
    single record.

    Parameters
    ----------
    between : float, optional
        Share of the variance of single records that lies between people (the intraclass
        correlation), from 0 (people are alike) to 1; by default ``ASSUMED_BETWEEN``, and the plan
        says so.
    """

    between: float | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.between is not None:
            _validate.fraction(between=self.between)

    @property
    def share_between(self) -> float:
        """Share of the variance of single records that lies between people."""
        return ASSUMED_BETWEEN if self.between is None else self.between

    @property
    def shrunk(self) -> float:
        """Variance of a user's mean record, in units of that of one record."""
        return self.share_between + (1.0 - self.share_between) / self.records

    @property
    def assumptions(self) -> tuple[str, ...]:
        """Assumptions about numbers that the caller did not state."""
        if self.between is not None:
            return ()
        return (
            "Assumes that half of the variance of records lies between people: state between= "
            "(0 if people are alike), or measure it with UserVariation.",
        )


@dataclass(frozen=True, kw_only=True)
class LearningTask(PeopleTask):
    """A task of learners that may rely on users being alike.

    Parameters
    ----------
    alike : bool, default=False
        Whether users are alike, as stated to the learner; then ``between`` is zero.
    """

    alike: bool = False

    def __post_init__(self) -> None:
        super().__post_init__()
        _validate.one_of((False, True), alike=self.alike)

    @property
    def share_between(self) -> float:
        """Share of the variance of single records that lies between people."""
        return 0.0 if self.alike else super().share_between

    @property
    def assumptions(self) -> tuple[str, ...]:
        """Assumptions about numbers that the caller did not state."""
        return () if self.alike else super().assumptions
