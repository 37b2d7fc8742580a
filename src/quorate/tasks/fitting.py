"""From a request in words and numbers to a fitted estimator, in the order that protects people.

What can be refused from public knowledge alone is refused first: a wrong parameter, a budget that
is not there, a column that does not exist. The estimator then gets a table that nobody has opened
yet (:class:`~quorate.tasks.unread.UnreadUsers`), and opening it begins with the charge: whatever
an estimator does, the ledger is charged exactly once, and before a row is read.
"""

from __future__ import annotations

import importlib
import math
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

from quorate.accounting.ledger import Budget, Ledger
from quorate.engines.base import Schema
from quorate.exceptions import (
    BudgetExceededError,
    LedgerError,
    ParameterError,
)
from quorate.files.table_files import Columns, TableFile
from quorate.guarantees import Guarantee, Relation
from quorate.noise import ambient_noise
from quorate.ranges import Limit, limits_by_name
from quorate.tasks.crowds import Place, UnreadCrowd
from quorate.tasks.unread import UnreadUsers
from quorate.users import UserData
from quorate.users.crowd import Crowd

__all__ = ["TASKS", "Account", "Fit", "FitRequest", "fit"]

Number = int | float


@dataclass(frozen=True, kw_only=True)
class FitRequest:
    """Everything a fit needs to know; all of it is public.

    >>> request = FitRequest(task="mean", columns=Columns(user=("id",), features=("age", "bmi")),
    ...                      limits=(Limit(0, 120, "age"), Limit(0, 99)), epsilon=1.0)
    >>> request.ranges(("age", "bmi"))
    ([0, 0], [120, 99])
    """

    task: str
    columns: Columns
    limits: tuple[Limit, ...] = ()
    epsilon: float
    delta: float = 0.0
    relation: Relation = Relation.REPLACE
    records: int | None = None
    algorithm: str = "auto"
    engine: str = "local"
    ledger: Path | None = None
    data_name: str | None = None

    def __post_init__(self) -> None:
        if self.task not in TASKS:
            raise ParameterError(f"Expected a task among {', '.join(TASKS)}, got {self.task!r}.")
        Place(self.engine)
        if (self.ledger is None) != (self.data_name is None):
            raise ParameterError(
                "Expected a ledger and a data name together: the budget belongs to the name of a "
                "data set."
            )
        if TASKS[self.task].supervised and self.columns.target is None:
            raise ParameterError(f"The task {self.task!r} needs the name of a target column.")
        self._check_classes()

    def _check_classes(self) -> None:
        labels, most = self.columns.classes, TASKS[self.task].most_classes
        if labels is None:
            return
        if most == 0:
            raise ParameterError(f"The task {self.task!r} has no classes: leave them out.")
        if not 2 <= len(set(labels)) == len(labels) <= most:
            raise ParameterError(
                "Expected at least two different classes"
                f"{', and no more,' if most == 2 else ''} for the task {self.task!r}."
            )

    def ranges(self, names: tuple[str, ...]) -> tuple[list[Number], list[Number]]:
        """Return the lower and upper limits of columns."""
        own = {limit.column: limit for limit in self.limits}
        target = () if self.columns.target is None else (self.columns.target,)
        found = limits_by_name(own, names, others=target)
        return [limit.lower for limit in found], [limit.upper for limit in found]


@dataclass(frozen=True, kw_only=True)
class Account:
    """What a ledger says about a data set after a fit."""

    name: str
    budget: Budget
    spent: Budget
    left: Budget

    @classmethod
    def of(cls, ledger: Ledger, name: str) -> Account:
        """Read the account of ``name``."""
        change = ledger.budget(name)
        return cls(
            name=name,
            budget=Budget(epsilon=change.epsilon, delta=change.delta),
            spent=ledger.spent(name),
            left=ledger.remaining(name),
        )


@dataclass(frozen=True, kw_only=True)
class Fit:
    """A fitted estimator with what was asked, and what may be said about it.

    ``n_users`` is None where the number of users is private.
    """

    request: FitRequest
    columns: Columns
    estimator: Any
    n_users: int | None
    account: Account | None

    @property
    def labels(self) -> tuple[Any, ...] | None:
        """What the predictions 0 and 1 mean, where the estimator was not told so itself."""
        return None if TASKS[self.request.task].classifies else self.columns.classes


@dataclass(frozen=True, kw_only=True)
class _Task:
    """How a request becomes an estimator: the class, and the parameters that depend on columns."""

    home: str
    name: str
    describe: Callable[[FitRequest, Columns], dict[str, Any]]
    supervised: bool = False
    classifies: bool = False
    most_classes: float = 0

    @property
    def kind(self) -> Any:
        return getattr(importlib.import_module(self.home), self.name)

    def build(self, request: FitRequest, columns: Columns) -> Any:
        """Return the estimator; an option that it does not have is refused."""
        known = set(self.kind._get_param_names())
        given: dict[str, Any] = {"epsilon": request.epsilon, "relation": request.relation}
        if "delta" in known or request.delta > 0:
            given["delta"] = request.delta
        if request.algorithm != "auto":
            given["algorithm"] = request.algorithm
        for name in given:
            if name not in known:
                raise ParameterError(f"The task {request.task!r} has no {name}: leave it out.")
        if request.records is not None and self.supervised:
            given["records"] = request.records
        if "progress" in known:
            given["progress"] = False  # whoever asked for the fit shows that it is going on
        return self.kind(**given, **self.describe(request, columns))


def _ranges_as_bounds(request: FitRequest, columns: Columns) -> dict[str, Any]:
    return {"bounds": request.ranges(columns.features)}


def _one_domain(request: FitRequest, columns: Columns) -> dict[str, Any]:
    features = columns.features
    if len(features) != 1:
        raise ParameterError(
            f"A cut-off is learned on one feature, got {len(features)}: {', '.join(features)}."
        )
    lower, upper = request.ranges(features)
    return {"domain": (lower[0], upper[0])} | _step(lower[0], upper[0])


def _ranges_and_classes(request: FitRequest, columns: Columns) -> dict[str, Any]:
    return {"bounds": request.ranges(columns.features), "classes": columns.classes}


def _ranges_and_target(request: FitRequest, columns: Columns) -> dict[str, Any]:
    lower, upper = request.ranges((str(columns.target),))
    bounds = request.ranges(columns.features)
    return {"bounds": bounds, "target_bounds": (lower[0], upper[0])}


def _step(lower: Number, upper: Number) -> dict[str, Any]:
    """Return the distance of cut-offs: 1 between integers, otherwise a 2^32-th of the range."""
    whole = isinstance(lower, int) and isinstance(upper, int)
    return {} if whole else {"step": (upper - lower) * 2.0**-32}


def _regression(name: str) -> _Task:
    home = "quorate.models.regression"
    return _Task(home=home, name=name, describe=_ranges_and_target, supervised=True)


def _classifier(name: str, *, most_classes: float = math.inf) -> _Task:
    return _Task(
        home="quorate.models.classification",
        name=name,
        describe=_ranges_and_classes,
        supervised=True,
        classifies=True,
        most_classes=most_classes,
    )


TASKS: dict[str, _Task] = {
    "mean": _Task(home="quorate.means.user_mean", name="UserMean", describe=_ranges_as_bounds),
    "median": _Task(home="quorate.means.median", name="PrivateMedian", describe=_ranges_as_bounds),
    "threshold": _Task(
        home="quorate.learners.threshold",
        name="ThresholdLearner",
        describe=_one_domain,
        supervised=True,
        most_classes=2,
    ),
    "logistic": _classifier("LogisticRegression"),
    "svc": _classifier("LinearSVC", most_classes=2),
    "linear": _regression("LinearRegression"),
    "ridge": _regression("Ridge"),
    "huber": _regression("HuberRegression"),
}
"""What can be fitted from a table, by name."""


def fit(request: FitRequest, table: TableFile) -> Fit:
    r"""Fit what was asked for; charge the ledger before a row is read.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder) / "steps.csv"
    ...     rows = "\n".join(f"{i % 500},{70 + i % 7}" for i in range(4000))
    ...     _ = path.write_text("person,steps\n" + rows)
    ...     columns = Columns(user=("person",), features=("steps",))
    ...     request = FitRequest(task="mean", columns=columns, limits=(Limit(0, 1000),),
    ...                          epsilon=2.0, delta=1e-6)
    ...     result = fit(request, TableFile(path))
    >>> bool(abs(result.estimator.mean_[0] - 73.0) < 8.0), result.n_users
    (True, 500)
    """
    task = TASKS[request.task]
    ledger = None if request.ledger is None else Ledger(request.ledger, must_exist=True)
    name = request.data_name
    if ledger is not None and name is not None:
        _check_affordable(ledger, name, request)
    columns = table.resolve(request.columns)
    if task.classifies and columns.classes is None:
        columns = replace(columns, classes=(0, 1))
    estimator = task.build(request, columns)
    is_public = request.relation is Relation.REPLACE

    def charge() -> None:
        if ledger is not None and name is not None:
            ledger.charge(name, _declared(request, columns), purpose=f"fit {request.task}")

    people = _people(table, columns, Place(request.engine), charge, public=is_public)
    estimator.fit(people)
    account = None
    if ledger is not None and name is not None:
        estimator.guarantee_ = estimator.guarantee_.charged_to(name)
        # The release is paid for: a ledger that is busy now must not take it away.
        with suppress(LedgerError):
            account = Account.of(ledger, name)
    return Fit(
        request=request,
        columns=columns,
        estimator=estimator,
        n_users=people.n_users if is_public else None,
        account=account,
    )


def _people(
    table: TableFile, columns: Columns, place: Place, charge: Callable[[], None], *, public: bool
) -> Crowd:
    """Return users whom nobody has read yet; reading them begins with the charge."""
    if place.is_in_memory(table):

        def read() -> UserData:
            charge()
            return table.read(columns)

        return UnreadUsers(
            read,
            unit=columns.protected,
            names=columns.features,
            target=columns.target is not None,
            # The ids are public where their number is: a hopeless fit is refused for free.
            count=partial(table.count_users, columns) if public else None,
        )

    def group() -> Crowd:
        charge()
        return place.crowd(table, columns)

    width, target = len(columns.features), columns.target is not None
    return UnreadCrowd(group, Schema(width, target, columns.protected, columns.features))


def _declared(request: FitRequest, columns: Columns) -> Guarantee:
    """Return what the estimator will promise; it refuses to promise more than it was given."""
    return Guarantee(
        epsilon=request.epsilon,
        delta=request.delta,
        unit=columns.protected,
        relation=request.relation,
        numerics=ambient_noise().numerics,
    )


def _check_affordable(ledger: Ledger, name: str, request: FitRequest) -> None:
    """Refuse before even the first line of the file is looked at; the charge itself comes later."""
    left = ledger.remaining(name)
    if request.epsilon > left.epsilon or request.delta > left.delta:
        raise BudgetExceededError(
            f"Requested epsilon={request.epsilon:g}, delta={request.delta:g} but epsilon="
            f"{left.epsilon:g} and delta={left.delta:g} are left for {name!r}. Nothing was charged "
            "and no table was read: ask for less, or have the budget raised."
        )
