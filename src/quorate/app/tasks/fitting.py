"""From a request to a fitted estimator: checks first, then the charge, then the data.

Mistakes that public knowledge alone shows are refused first: a wrong parameter, a missing budget, a
column that does not exist. Then the estimator gets a table that is not opened yet
(:class:`~quorate.app.tasks.unread.UnreadUsers`), and opening it begins with the charge. So whatever
an estimator does, the ledger is charged exactly once, before any row is read.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, fields, replace
from functools import partial
from pathlib import Path
from typing import Any

from quorate.app.catalogue import TASKS, LeftOut, Wish
from quorate.app.tasks.crowds import Place, UnreadCrowd
from quorate.app.tasks.frames import UnreadTable
from quorate.app.tasks.readable import (
    ReadableShare,
    count_rows,
    held_by_users,
    needs_count,
    release_readable_share,
    split_epsilon,
)
from quorate.app.tasks.unread import UnreadUsers
from quorate.core.account.parts import SharedAccount
from quorate.core.guarantees import Guarantee, Relation
from quorate.core.noise import ambient_noise
from quorate.core.users import UserData
from quorate.core.users.closed import closed
from quorate.core.users.crowd import Crowd
from quorate.data.by_group.keys import as_keys
from quorate.data.engines.base import Schema
from quorate.data.files.dialects import PLAIN, Dialect
from quorate.data.files.table_files import Columns, TableFile
from quorate.exceptions import BudgetExceededError, LedgerError, ParameterError, QuorateError
from quorate.ledger.ledger import Budget, Ledger
from quorate.ranges import Limit

__all__ = ["Fit", "FitRequest", "LedgerState", "default_relation", "fit"]


def default_relation(
    task: str, ledger: Path | None = None, data_name: str | None = None
) -> Relation:
    """Return the default relation of a task: that of its budget, if there is one.

    >>> default_relation("table").name, default_relation("mean").name
    ('ADD_REMOVE', 'REPLACE')
    """
    if ledger is not None and data_name is not None and ledger.exists():
        # What is wrong with the ledger is said when it is charged.
        with suppress(QuorateError):
            return Ledger(ledger).budget(data_name).relation
    return TASKS[task].default_relation if task in TASKS else Relation.REPLACE


@dataclass(frozen=True, kw_only=True)
class FitRequest:
    """All information for a fit; all of it is public.

    >>> columns = Columns(user=("id",), features=("age", "bmi"))
    >>> request = FitRequest(task="mean", columns=columns, epsilon=1.0,
    ...                      limits=(Limit(0, 120, "age"), Limit(0, 99)))
    >>> request.wish(columns).ranges()
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
    options: Mapping[str, str] = field(default_factory=dict)
    counted: bool = True
    dialect: Dialect = PLAIN

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

    @property
    def names_its_columns(self) -> bool:
        """Whether the options of the task name all columns except that of the user."""
        return TASKS[self.task].frame is not None

    def wish(self, columns: Columns) -> Wish:
        """Return the wish from which parameters are made, once all columns are named."""
        return Wish(
            features=columns.features,
            target=columns.target,
            classes=columns.classes,
            limits=self.limits,
            records=self.records,
            options=self.options,
            categories={} if TASKS[self.task].labels_option else columns.categories,
        )

    def declared_columns(self) -> Columns:
        """Return the columns, completed by the types that bounds and options imply."""
        dates = {str(each.column): (each.lower, each.upper) for each in self.limits if each.is_date}
        dates = {name: pair for name, pair in dates.items() if name != self.columns.target}
        categories = dict(self.columns.categories)
        option = TASKS[self.task].labels_option
        if option is not None and option in self.options and len(self.columns.features) == 1:
            labels = TASKS[self.task].options[option](self.options[option])
            if all(isinstance(label, str) for label in labels):
                categories[self.columns.features[0]] = labels
        return replace(self.columns, categories=categories, dates=dates)

    def build(self, columns: Columns) -> Any:
        """Return the requested estimator, without fitting it."""
        given: dict[str, Any] = {"epsilon": self.epsilon, "relation": self.relation}
        descriptor = TASKS[self.task]
        if "delta" in descriptor.kind._get_param_names() or self.delta > 0:
            given["delta"] = self.delta
        if self.algorithm != "auto":
            given["algorithm"] = self.algorithm
        return descriptor.build(self.wish(columns), **given)


@dataclass(frozen=True, kw_only=True)
class LedgerState:
    """The state of a data set's budget after a fit."""

    name: str
    budget: Budget
    spent: Budget
    left: Budget

    @classmethod
    def of(cls, ledger: Ledger, name: str) -> LedgerState:
        """Read the state of the budget of ``name``."""
        change = ledger.budget(name)
        return cls(
            name=name,
            budget=Budget(epsilon=change.epsilon, delta=change.delta),
            spent=ledger.spent(name),
            left=ledger.remaining(name),
        )


@dataclass(frozen=True, kw_only=True)
class Fit:
    """A fitted estimator, its request, and what may be reported about it.

    ``n_users`` is None if the number of users is private.
    """

    request: FitRequest
    columns: Columns
    estimator: Any
    n_users: int | None
    account: LedgerState | None
    readable: ReadableShare | None = None

    @property
    def nothing(self) -> str | None:
        """The message that replaces the answer if the released count shows that nothing matched."""
        if self.readable is None or not self.readable.is_nothing:
            return None
        what = "matched a listed key" if self.readable.listed else "could be read"
        return (
            f"Almost no row {what}. {self.readable} No other number is shown or written: it would "
            "be computed from almost no rows. If so few rows are what you expect, ask again with "
            "--uncounted."
        )

    @property
    def error_with_rows_left_out(self) -> tuple[float, float] | None:
        """The stated error including the rows that could not be read, and its confidence.

        None if no count was released, or if it does not bound the effect of such rows.
        """
        if self.readable is None or not self.readable.moves:
            return None
        error = self.estimator.error_
        if not isinstance(error.bound, int | float) or not math.isfinite(error.bound):
            return None  # columns and cells have bounds of their own
        return self.readable.stated_with(float(error.bound), float(error.confidence))

    @property
    def labels(self) -> tuple[Any, ...] | None:
        """The labels for the predictions 0 and 1, if the estimator does not store them."""
        named = TASKS[self.request.task].named_classes or not hasattr(self.estimator, "predict")
        return None if named else self.columns.classes


@closed
def fit(request: FitRequest, table: TableFile) -> Fit:
    r"""Fit the requested estimator; charge the ledger before a row is read.

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
    table = replace(table, dialect=request.dialect).keeping()
    ledger = None if request.ledger is None else Ledger(request.ledger, must_exist=True)
    name = request.data_name
    if ledger is not None and name is not None:
        _check_affordable(ledger, name, request)
    columns = _resolved(request, table)
    if task.frame is None:
        request = _with_flags(request, columns, table)
    if task.named_classes and columns.classes is None:
        columns = replace(columns, classes=(0, 1))
    counted = columns if task.frame is None else _numbers_of(request, columns)
    listed = {} if task.frame is None else _listed_keys(request)
    counts = request.counted and needs_count(table, counted, request.epsilon, listed)
    answer, count = split_epsilon(request.epsilon) if counts else (request.epsilon, 0.0)
    whole = SharedAccount.open(
        epsilon=request.epsilon, delta=request.delta, relation=request.relation
    )
    estimator = replace(request, epsilon=answer).build(columns).draw_from(whole)
    is_public = request.relation is Relation.REPLACE

    receipts = []

    def charge() -> None:
        if ledger is not None and name is not None:
            promise = _declared(request, columns)
            receipts.append(ledger.charge(name, promise, purpose=f"fit {request.task}"))

    if task.frame is not None:
        n_users = _fit_frame(estimator, request, columns, table, charge)
    else:
        people = _people(table, columns, Place(request.engine), charge, public=is_public)
        estimator.fit(people)
        n_users = people.n_users if is_public else None
    readable = None
    if counts:
        in_rows = task.frame is not None or Place(request.engine).is_in_memory
        seen = count_rows(table, counted, listed) if in_rows else people.derive(held_by_users)
        row_cap = None if task.row_cap is None else task.row_cap(estimator, request.wish(columns))
        readable = release_readable_share(
            seen,
            whole,
            epsilon=count,
            weighing=task.weighing,
            row_cap=row_cap,
            listed=bool(listed),
        )
        readable = _with_moves(estimator, request, columns, readable, n_users=n_users)
    estimator.guarantee_ = _promise(estimator.guarantee_, whole)
    account = None
    if ledger is not None and name is not None:
        estimator.guarantee_ = estimator.guarantee_.charged_to(name)
        # The release is paid for: a ledger that is busy now must not take it away.
        with suppress(LedgerError):
            for receipt in receipts:
                ledger.settle(receipt, estimator.guarantee_.events)
            account = LedgerState.of(ledger, name)
    return Fit(
        request=request,
        columns=columns,
        estimator=estimator,
        n_users=n_users,
        account=account,
        readable=readable,
    )


def _with_moves(
    estimator: Any,
    request: FitRequest,
    columns: Columns,
    readable: ReadableShare,
    *,
    n_users: int | None,
) -> ReadableShare:
    """Add to the stated error how much was dropped, and its largest effect on the answer.

    All of it is computed from released numbers. ``worst`` makes no assumptions about the data. So
    it includes the dropped rows, if their effect is limited and ``worst`` is a number of its own.
    """
    moved_by = TASKS[request.task].moved_by
    if readable.left_out == 0 or readable.is_nothing:
        return readable
    if readable.rows and moved_by is not None:
        left_out = LeftOut(
            share=readable.left_out,
            users=readable.users,
            people=readable.people,
            rows=readable.dropped,
            n_users=n_users,
        )
        moves = moved_by(estimator, request.wish(columns), left_out)
        readable = replace(readable, moves=dict(moves))
    error = getattr(estimator, "error_", None)
    if error is None:
        return readable
    said = readable.covered(error.confidence) if readable.moves else readable.not_covered
    given = {"covers": f"{error.covers} {said}"}
    if readable.moves and "worst" in {each.name for each in fields(error)}:
        given["worst"] = error.worst + math.hypot(*readable.moves.values())
    estimator.error_ = replace(error, **given)
    return readable


def _promise(answer: Guarantee, whole: SharedAccount) -> Guarantee:
    """Return the guarantee that the account was opened with, and what was drawn from it.

    The guarantee of the answer also says which unit is protected, and whether it is only idealized.
    """
    return replace(answer, epsilon=whole.declared.epsilon, events=(whole.event,))


def _resolved(request: FitRequest, table: TableFile) -> Columns:
    """Return the columns with all features named; refuse missing columns; read no row."""
    frame = TASKS[request.task].frame
    if frame is None:
        return table.resolve(request.declared_columns())
    if request.engine != "local":
        raise ParameterError(f"The task {request.task!r} reads tables on this machine only.")
    if request.columns.features or request.columns.target is not None:
        raise ParameterError(
            f"The task {request.task!r} names its columns itself: leave features and target out."
        )
    labels, numbers = frame(request.wish(request.columns))
    return replace(request.columns, features=tuple(dict.fromkeys([*labels, *numbers])))


def _listed_keys(request: FitRequest) -> dict[str, tuple[Any, ...]]:
    """Return the public keys of the groups by column; empty if every key has a group."""
    make = TASKS[request.task].parameters
    asked = {} if make is None else make(request.wish(request.columns))
    by, keys = asked.get("by"), asked.get("keys")
    others = request.options.get("others") == "yes"
    if by is None or keys is None or isinstance(keys, str) or others:
        return {}
    return dict(zip(by, as_keys(keys, tuple(by)), strict=True))


def _numbers_of(request: FitRequest, columns: Columns) -> Columns:
    """Return the columns that a table by group reads as numbers; other columns are labels."""
    frame = TASKS[request.task].frame
    numbers = () if frame is None else frame(request.wish(request.columns))[1]
    return replace(columns, features=numbers, categories={}, dates={}, classes=None)


def _with_flags(request: FitRequest, columns: Columns, table: TableFile) -> FitRequest:
    """Return the request with ranges for columns whose type says that they are 0 or 1."""
    flags = [name for name in table.booleans(columns) if name not in columns.categories]
    stated = {limit.column for limit in request.limits}
    if None in stated:
        return request
    more = tuple(Limit(0, 1, name) for name in flags if name not in stated)
    return replace(request, limits=(*request.limits, *more))


def _fit_frame(
    estimator: Any,
    request: FitRequest,
    columns: Columns,
    table: TableFile,
    charge: Callable[[], None],
) -> int | None:
    """Fit on a table that is not read yet; return the number of users, if it is public."""
    frame = TASKS[request.task].frame
    labels = () if frame is None else frame(request.wish(request.columns))[0]
    ids = columns.protected
    while ids in columns.features:
        ids += "'"
    schema = table.label_schema(columns, labels=labels, ids=ids)

    def read() -> Any:
        charge()
        return table.read_labels(columns, labels=labels, ids=ids)

    if "missing" in estimator.get_params():
        estimator.set_params(missing=columns.missing)
    estimator.fit(UnreadTable(read, schema), users=ids)
    estimator.guarantee_ = replace(estimator.guarantee_, unit=columns.protected)
    return table.count_users(columns) if request.relation is Relation.REPLACE else None


def _people(
    table: TableFile, columns: Columns, place: Place, charge: Callable[[], None], *, public: bool
) -> Crowd:
    """Return users whose data are not read yet; reading them begins with the charge."""
    place.check(table)
    if place.is_in_memory:

        def read() -> UserData:
            charge()
            return table.read(columns)

        return UnreadUsers(
            read,
            unit=columns.protected,
            names=columns.coding.names,
            target=columns.target is not None,
            # The ids are public where their number is: a hopeless fit is refused for free.
            count=partial(table.count_users, columns) if public else None,
        )

    cluster = place.connect()

    def group() -> Crowd:
        charge()
        return place.crowd(table, columns, cluster)

    names, target = columns.coding.names, columns.target is not None
    return UnreadCrowd(group, Schema(len(names), target, columns.protected, names))


def _declared(request: FitRequest, columns: Columns) -> Guarantee:
    """Return the guarantee of the estimator; it must not exceed the requested budget."""
    return Guarantee(
        epsilon=request.epsilon,
        delta=request.delta,
        unit=columns.protected,
        relation=request.relation,
        numerics=ambient_noise().numerics,
    )


def _check_affordable(ledger: Ledger, name: str, request: FitRequest) -> None:
    """Refuse an unaffordable fit before the first line of the file is read.

    The charge comes later.
    """
    if ledger.budget(name).composition == "pld":
        # A list of releases has no largest one; the charge says what is left of it.
        ledger.check_fits(name, _declared(request, request.columns))
        return
    left = ledger.remaining(name)
    if request.epsilon > left.epsilon or request.delta > left.delta:
        raise BudgetExceededError(
            f"Requested epsilon={request.epsilon:g}, delta={request.delta:g} but epsilon="
            f"{left.epsilon:g} and delta={left.delta:g} are left for {name!r}. Nothing was charged "
            "and no table was read: request less, or have the budget raised."
        )
