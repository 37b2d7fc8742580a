"""A table every week: counts, people, sums, means and shares by group, period after period."""

from __future__ import annotations

import inspect
import math
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from quorate import _validate
from quorate._validate import described, is_frame
from quorate.core.account.account import Account
from quorate.core.guarantees import Guarantee, Numerics, Relation
from quorate.core.users.crowd import Crowd
from quorate.data.by_group.conditions import as_conditions
from quorate.data.by_group.keys import as_keys, key_rows
from quorate.data.by_group.reading import Reading, checked_names, names_of
from quorate.data.frames import open_frame
from quorate.data.tables import check_rows, without_rows
from quorate.estimators import NotFitted
from quorate.exceptions import (
    LedgerError,
    ParameterError,
    SchemaError,
    SeriesStoreError,
    UnboundedContributionError,
)
from quorate.ledger.ledger import Charge, Ledger
from quorate.series.calendar import Calendar
from quorate.series.curves import Asked, SeriesError, curves, people_cut
from quorate.series.design import Design, SeriesPart
from quorate.series.factors import NAMES, VIEWS, Factor, best_factor
from quorate.series.id_hashes import SHARED, kind_of_ids
from quorate.series.period import Rows, release_period
from quorate.series.store import SeriesStore, SeriesTransaction
from quorate.tabulate.base import stated
from quorate.tabulate.requests import TableRequest, as_request

__all__ = ["UserSeries"]

# Squares of one person's cells are added up in floats: exactly so many.
_MOST_CELLS = 2**22


@dataclass(frozen=True)
class _Plan:
    """The checked parameters and everything that follows from them."""

    calendar: Calendar
    design: Design
    asked: Asked
    reading: Reading
    labelled: dict[str, Reading]


class UserSeries:
    r"""A table by group for every period, hiding everything one person does over the horizon.

    Call :meth:`update` once per period with the rows that have arrived. Each person has one total
    *length* for the whole horizon. It limits what the person adds to all cells of all periods
    together. A private store records how much each person has used, and contributions to a period
    are scaled down to what is left. So one guarantee covers a person for the whole horizon, and the
    noise need not grow with periods in which a person is absent.

    A record counts in the period in which it arrives, even if it is late. A period is released
    once. A second call returns the first release, whatever rows are passed; rows that were missing
    then belong to the next period.

    Privacy
    -------
    guarantee : ``guarantee_``: (``epsilon``, ``delta``)-DP for all releases of the horizon
    neighbours : ``relation``: add or remove all records of one user, or replace all records of one
        user, in all periods
    trust : central
    public : all parameters, names and types of columns, and the times of updates; not ``store`` and
         its key, because both together reveal how much people contributed; released: ``table_``,
         ``running_``, ``cut_``
    numerics : exact
    proof : ``docs/proofs/series.md``. A person's contributions to all periods are a function of
        that person's records and of public numbers, and move all releases together by at most
        ``radius`` steps (:mod:`quorate.series.spending`). So all releases are one
        :class:`~quorate.mechanisms.sums.GaussianSum`, even if later records depend on earlier
        releases.

    Utility
    -------
    Every number comes with a standard error and a 95 % bound, both for the noise alone.
    Contributions beyond a person's length are missing from the numbers, first from later periods;
    ``cut_`` says how many people are affected. Choose ``touched`` and ``caps`` so that most people
    stay below their length.

    Complexity
    ----------
    An update of N rows takes time :math:`O(N)` and one pass over the store, which has 16 bytes per
    person (with correlated noise, for each period in which the person was present).

    Parameters
    ----------
    epsilon : float
        The epsilon of the whole horizon.
    delta : float
    horizon : int
        Number of periods.
    every : {"day", "week", "month", "quarter", "year"}, default="week"
    start : str, optional
        The label of the first period, such as ``"2026-W01"``; without it they are numbered from 1.
    by : str or list of str, optional
        Columns of the key; with None there is one row for all records of a period.
    keys : list or dict
        Public labels of the groups: a list, or for several columns a dictionary of lists.
    statistics : dict
        Maps names to ``"count"`` (of records), ``"users"`` (with a record in the period),
        ``"sum"``, ``"mean"`` (over records) or ``"distribution"`` (shares of the labels of a
        column). The name is also the column; for another name give a pair such as ``("price",
        "mean")``.
    bounds : dict, pair or float
        Public ranges of the values, by column.
    labels : dict
        Maps each column with a distribution to its public labels.
    touched : int
        Number of periods in which a person counts fully.
    caps : dict, optional
        The largest contribution of a person that counts fully in one period: ``records`` (default
        1), ``groups`` (default 1), and summed columns (by default ``records`` times the largest
        value).
    view : {"periods", "running"}, default="periods"
        Which of the two tables should have the least noise.
    noise : {"auto", "independent", "square-root"}, default="auto"
        ``"auto"`` uses correlated noise if this gives less noise in the ``view``.
    count_cut : bool, default=True
        Whether ``cut_`` says how many people were clipped because they exceeded their length. A
        tenth of a person's length is reserved for this count, so all noise is larger by a
        twentieth.
    where : dict, optional
        Condition on records; see :mod:`quorate.data.by_group.conditions`.
    missing : "drop" or float, default="drop"
        ``"drop"`` drops a record with a missing value; a number replaces the missing value.
    relation : Relation, default=Relation.ADD_REMOVE
    unit : str, default="user"
        The word for the protected unit, such as ``"patient"``.
    store : path
        The file of the private state; its key is stored beside it. Its file name is the name of the
        series in the ledger.
    ledger : Ledger, optional
        It is charged once for the horizon and knows the latest state of the store, so that a store
        that was lost or restored to an older state is refused. Without a ledger this cannot be
        noticed.
    data_name : str, optional
        The name under which the budget was set.

    Attributes
    ----------
    table_ : pyarrow.Table
        One row for each period and group; for each statistic ``name``, ``name_error`` (standard
        error) and ``name_bound``.
    running_ : pyarrow.Table
        The same with running totals from the first period on: sums of counts, of sums, and of the
        people in each period (a person in two periods counts twice), and means and shares of these.
    cut_ : pyarrow.Table or None
        One row per period: how many people were clipped up to then because they exceeded their
        length; each person counts once. Contributions beyond the length are missing from the
        numbers.
    periods_ : tuple of str
        The periods that were released.
    error_ : SeriesError
    guarantee_ : Guarantee

    References
    ----------
    .. [1] Feldman, Zrnic. Individual privacy accounting via a Renyi filter. NeurIPS 2021.
    .. [2] Dwork, Naor, Pitassi, Rothblum. Differential privacy under continual observation. STOC
       2010. (Which protects a record, where this protects a person.)

    Examples
    --------
    >>> import tempfile
    >>> import numpy as np
    >>> import pyarrow as pa
    >>> rng = np.random.default_rng(0)
    >>> folder = tempfile.TemporaryDirectory()
    >>> series = UserSeries(
    ...     epsilon=1.0,
    ...     delta=1e-6,
    ...     horizon=52,
    ...     start="2026-W01",
    ...     by="shop",
    ...     keys=["north", "south"],
    ...     statistics={"buyers": "users", "spent": "sum"},
    ...     bounds={"spent": (0, 100)},
    ...     touched=4,
    ...     store=f"{folder.name}/sales.sqlite",
    ... )
    >>> for week in ("2026-W01", "2026-W02"):
    ...     rows = pa.table(
    ...         {
    ...             "customer": rng.integers(0, 5000, 1000),
    ...             "shop": rng.choice(["north", "south"], 1000),
    ...             "spent": rng.uniform(0, 100, 1000),
    ...         }
    ...     )
    ...     _ = series.update(rows, users="customer", period=week)
    >>> last = series.table_.to_pylist()[-1]
    >>> last["period"], last["shop"], round(last["buyers_error"], 1)
    ('2026-W02', 'south', 12.5)
    >>> abs(last["buyers"] - 475) < 75
    True
    >>> series.guarantee_.epsilon
    1.0
    >>> folder.cleanup()
    """

    def __init__(  # noqa: PLR0913 - a table, a calendar and a store
        self,
        epsilon: float = 1.0,
        delta: float = 1e-6,
        *,
        horizon: int,
        every: str = "week",
        start: str | None = None,
        by: str | Sequence[str] | None = None,
        keys: Any = None,
        statistics: Mapping[str, Any] | None = None,
        bounds: Any = None,
        labels: Mapping[str, Sequence[Any]] | None = None,
        touched: int | None = None,
        caps: Mapping[str, float] | None = None,
        view: str = "periods",
        noise: str = "auto",
        count_cut: bool = True,
        where: Mapping[str, Any] | None = None,
        missing: str | float = "drop",
        relation: Relation = Relation.ADD_REMOVE,
        unit: str = "user",
        store: str | os.PathLike[str] = "series.sqlite",
        ledger: Ledger | None = None,
        data_name: str | None = None,
    ) -> None:
        self.epsilon = epsilon
        self.delta = delta
        self.horizon = horizon
        self.every = every
        self.start = start
        self.by = by
        self.keys = keys
        self.statistics = statistics
        self.bounds = bounds
        self.labels = labels
        self.touched = touched
        self.caps = caps
        self.view = view
        self.noise = noise
        self.count_cut = count_cut
        self.where = where
        self.missing = missing
        self.relation = relation
        self.unit = unit
        self.store = store
        self.ledger = ledger
        self.data_name = data_name

    def __repr__(self) -> str:
        return f"UserSeries({str(self.store)!r})"

    def __getattr__(self, name: str) -> Any:
        if name.endswith("_") and not name.startswith("_"):
            raise NotFitted(f"This series has released nothing yet: call update, then ask {name}.")
        raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")

    @property
    def design(self) -> Design:
        """Units, radius and noise, which depend on parameters only; no data are read."""
        return self._plan().design

    @property
    def columns(self) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """The numeric columns and the label columns that an update reads."""
        plan = self._plan()
        numbers = dict.fromkeys(plan.reading.values)
        conditions = [c.column for c in plan.reading.where]
        listed = {c.column for c in plan.reading.where if c.labels is not None}
        numbers |= dict.fromkeys(name for name in conditions if name not in listed)
        labels = dict.fromkeys([*plan.reading.by, *plan.labelled, *sorted(listed)])
        return tuple(name for name in numbers if name not in labels), tuple(labels)

    def update(self, X: Any, *, users: Any, period: Any = None) -> UserSeries:
        """Release a period from the rows that have arrived.

        Parameters
        ----------
        X : frame with named columns
        users : array of shape (records,) or str
            The user id of each row, or the name of the column with the ids.
        period : str or int, optional
            The label or number of the period; by default the one after the last release. A period
            that was released before is not released again, and the rows are not read. Skipped
            periods before it are released without rows.
        """
        plan = self._plan()
        kind = self._check_use(X, users, plan)
        number = None if period is None else plan.calendar.number(period)
        store = self._store(plan)
        store.create()
        with store.page() as page:
            charge = self._paid(page, plan)
            self._check_kind(page, kind)
        rows = Rows(X, users, kind, plan.reading, plan.asked.ranges, plan.labelled)
        waiting = True
        while waiting:
            with store.page() as page:
                self._check_kind(page, kind)  # another program may have been the first
                self._finish(page, charge)
                waiting = self._release_next(page, number, rows, plan.design)
            with store.page() as page:
                self._finish(page, charge)
        return self.read()

    def _check_kind(self, page: SeriesTransaction, kind: str) -> None:
        if page.kind_of_ids not in ("", kind):
            raise SchemaError(
                f"Expected ids that are {page.kind_of_ids}, as in earlier periods, got "
                f"{kind}: one person would be two. Convert the column."
            )

    def _release_next(
        self, page: SeriesTransaction, number: int | None, rows: Rows, design: Design
    ) -> bool:
        """Release the period after the last; return whether more follow before ``number``."""
        now = page.last().number + 1
        goal = now if number is None else number
        if goal > self.horizon:
            raise ParameterError(
                f"The horizon of {self.horizon} periods is over: start another series, with a "
                "store and a budget of its own."
            )
        if now <= goal:
            release_period(page, now, rows if now == goal else replace(rows, table=None), design)
        return now < goal

    def read(self) -> UserSeries:
        """Read what was released so far; nothing is drawn."""
        plan = self._plan()
        with self._store(plan).page() as page:
            charge = self._paid(page, plan)
            self._finish(page, charge)
            released, numerics = page.shown(), page.numerics()
        self.periods_ = tuple(plan.calendar.label(n + 1) for n in range(len(released)))
        shown = list(self.periods_)
        self.table_ = curves(released, shown, plan.asked, plan.design, "periods")
        self.running_ = curves(released, shown, plan.asked, plan.design, "running")
        self.cut_, cut = None, None
        if self.count_cut and released:
            self.cut_ = people_cut(released, shown, plan.design)
            last = self.cut_.slice(len(released) - 1).to_pylist()[0]
            cut = last["people"], last["people_bound"]
        self.error_ = SeriesError(
            cut=cut,
            standard_error={
                part.column or part.kind: (
                    float(plan.design.errors(part, "periods")[0]),
                    float(plan.design.errors(part, "running")[-1]),
                )
                for part in plan.design.parts
            },
        )
        promise = plan.design.guarantee(self._declared())
        if numerics - {Numerics.EXACT}:
            promise = replace(promise, numerics=max(numerics, key=list(Numerics).index))
        self.guarantee_ = promise if charge is None else promise.charged_to(str(self.data_name))
        return self

    # What parameters fix.

    def _plan(self) -> _Plan:
        """Refuse invalid parameters; no file and no row is read."""
        _validate.useful_epsilon(epsilon=self.epsilon)
        _validate.delta(delta=self.delta)
        if not self.delta > 2 * SHARED:
            raise ParameterError(
                "A series has Gaussian noise, and knows people by hashes: expected delta > 1e-10, "
                f"such as 1e-6, got delta={self.delta!r}."
            )
        _validate.one_of(tuple(Relation), relation=self.relation)
        _validate.one_of(VIEWS, view=self.view)
        _validate.one_of(("auto", *NAMES), noise=self.noise)
        _validate.boolean(count_cut=self.count_cut)
        self._declared()  # which refuses a unit that is no word
        calendar = Calendar(self.every, self.horizon, self.start)
        touched = self._touched()
        request, distributions = self._requests()
        names = [r.name for r in request.requests] if request else []
        by = checked_names(self.by, reserved=[*names, *distributions, "period"])
        if not by and self.keys is not None:
            raise ParameterError("Expected by=, the columns that keys= is about.")
        keys = as_keys(self.keys, by) if by else ()
        ranges = request.ranges(self.bounds) if request else {}
        reading = Reading(
            by=by,
            keys=keys,
            values=request.values if request else (),
            where=as_conditions(self.where),
            missing=self.missing,
        )
        columns = {column: self._labels_of(column) for column in distributions.values()}
        labelled = {
            column: replace(reading, by=(*by, column), keys=(*keys, known), values=())
            for column, known in columns.items()
        }
        groups = key_rows(keys)
        factor = (
            best_factor(self.view, horizon=self.horizon, touched=touched)
            if self.noise == "auto"
            else Factor(self.noise, self.horizon)
        )
        design = Design(
            parts=self._parts(request, ranges, columns, len(groups)),
            factor=factor,
            touched=touched,
            epsilon=float(self.epsilon),
            delta=float(self.delta),
            relation=self.relation,
            count_cut=bool(self.count_cut),
        )
        if design.dimension > _MOST_CELLS:
            raise ParameterError(f"Expected at most {_MOST_CELLS} cells; name fewer keys.")
        asked = Asked(
            by,
            groups,
            request.requests if request else (),
            {name: (column, columns[column]) for name, column in distributions.items()},
            ranges,
        )
        return _Plan(calendar, design, asked, reading, labelled)

    def _touched(self) -> int:
        if self.touched is None:
            raise UnboundedContributionError(
                "A series needs touched=, in how many periods a person counts fully; it must not "
                "be taken from the data. Choose it from public knowledge."
            )
        _validate.positive_integer(touched=self.touched)
        if self.touched > self.horizon:
            raise ParameterError(
                f"Expected touched <= horizon={self.horizon}, got touched={self.touched}."
            )
        return int(self.touched)

    def _requests(self) -> tuple[TableRequest | None, dict[str, str]]:
        """Return the numeric statistics, and a mapping from names to label columns."""
        if not (isinstance(self.statistics, Mapping) and self.statistics):
            as_request(self.statistics)  # which refuses
        plain, distributions = {}, {}
        for name, asked in (self.statistics or {}).items():
            word = asked if isinstance(asked, str) else list(asked)[-1]
            if word == "distribution":
                distributions[name] = name if isinstance(asked, str) else str(next(iter(asked)))
            elif word == "median" or "quantile" in asked:
                raise ParameterError(
                    "A series has no quantiles: ask for a mean, or for a distribution over labels."
                )
            else:
                plain[name] = asked
        return (as_request(plain) if plain else None), distributions

    def _labels_of(self, column: str) -> tuple[Any, ...]:
        known = (self.labels or {}).get(column)
        if known is None:
            raise UnboundedContributionError(
                f"The distribution of {column!r} needs labels={{{column!r}: [...]}}, its public "
                "labels; they must not be taken from the data."
            )
        return as_keys(list(known), (column,))[0]

    def _parts(
        self,
        request: TableRequest | None,
        ranges: Mapping[str, tuple[float, float]],
        columns: Mapping[str, tuple[Any, ...]],
        groups: int,
    ) -> tuple[SeriesPart, ...]:
        added = request.added_up if request else ()
        known = {"records", "groups", *added}
        given = dict(self.caps or {})
        if not set(given) <= known:
            raise ParameterError(
                f"Expected caps of {', '.join(sorted(known))}, got {described(sorted(given))}."
            )
        caps = {name: stated(cap, name=f"caps[{name!r}]") for name, cap in given.items()}
        records = caps.get("records") or 1.0
        parts = []
        if request and request.counted:
            parts.append(SeriesPart("records", records, groups))
        if request and request.people:
            parts.append(SeriesPart("people", math.sqrt(caps.get("groups") or 1.0), groups))
        averaged = [r.column for r in request.requests if r.statistic == "mean"] if request else []
        for column in added:
            lower, upper = ranges[column]
            # Where records are counted too, sums about the middle have the least to hide.
            centre = lower / 2 + upper / 2 if column in averaged else 0.0
            reach = max(abs(upper - centre), abs(lower - centre))
            unit = caps.get(column) or reach * records
            parts.append(SeriesPart("sum", unit, groups, column, centre, signed=lower < centre))
        parts += [
            SeriesPart("labels", records, groups * len(known), column)
            for column, known in columns.items()
        ]
        return tuple(parts)

    def _check_use(self, X: Any, users: Any, plan: _Plan) -> str:
        """Refuse unsuitable names and types; return the kind of the ids."""
        if isinstance(X, Crowd) or not is_frame(X):
            raise SchemaError(
                "Expected a table with names of columns (pandas, polars, duckdb, pyarrow): a "
                f"series has to know ids from one period to the next, got {type(X).__name__}."
            )
        ids = users
        if isinstance(users, str):
            if users not in names_of(X):
                raise SchemaError(
                    f"Expected a column {users!r}, the table has {sorted(names_of(X))}."
                )
            empty = without_rows(X)
            ids = open_frame(X if empty is None else empty, [users]).column(0)
        else:
            check_rows(
                X,
                None,
                users,
                asked_by="UserSeries",
                single=True,
                of_numbers=False,
                classes=None,
            )
        for reading in (plan.reading, *plan.labelled.values()):
            reading.check(X)
        return kind_of_ids(ids)

    def _store(self, plan: _Plan) -> SeriesStore:
        """Return the store of a series with exactly these parameters."""
        path = Path(self.store)
        if not path.name.isprintable() or " " in path.name:
            raise ParameterError(f"Expected a plain name of a file, got store={path.name!r}.")
        settings = {
            name: repr(getattr(self, name))
            for name, each in inspect.signature(type(self)).parameters.items()
            if name not in ("store", "ledger", "data_name")
            and repr(getattr(self, name)) != repr(each.default)
        }
        return SeriesStore(path, plan.design.digest(settings))

    # The ledger.

    def _declared(self) -> Guarantee:
        return Account.open(
            epsilon=self.epsilon, delta=self.delta, relation=self.relation, unit=self.unit
        ).declared

    def _paid(self, page: SeriesTransaction, plan: _Plan) -> Charge | None:
        """Return the charge of this series; charge the ledger if there is none yet."""
        if self.ledger is None:
            if page.charge is not None:
                raise SeriesStoreError(
                    "This series was charged to a ledger: pass ledger= and data_name= as before."
                )
            return None
        if not isinstance(self.ledger, Ledger):
            raise ParameterError(
                f"Expected ledger to be a quorate.Ledger, got {type(self.ledger).__name__}."
            )
        if self.data_name is None:
            raise ParameterError(
                "Expected data_name= beside ledger=: the name under which the data set's budget "
                "was set with Ledger.set_budget."
            )
        name = f"UserSeries {Path(self.store).name} "
        charges = [
            entry
            for entry in self.ledger.history(self.data_name)
            if isinstance(entry, Charge) and entry.purpose.startswith(name)
        ]
        own = [entry for entry in charges if entry.purpose == name + page.id]
        if page.charge is not None or own:
            found = [entry for entry in own if page.charge in (None, entry.id)]
            if not found:
                raise SeriesStoreError("This series was charged to another ledger: pass that one.")
            page.charge = found[0].id
            return found[0]
        if charges or page.last().number:
            raise SeriesStoreError(
                f"The ledger knows a series {Path(self.store).name!r} of {self.data_name!r} that "
                "this store is not: it was lost, or replaced by a new one. Put the latest copy of "
                "the store and its key back, or start another series with a store of another name."
            )
        promise = plan.design.guarantee(self._declared())
        paid = self.ledger.charge(self.data_name, promise, purpose=name + page.id)
        page.charge = paid.id
        return paid

    def _finish(self, page: SeriesTransaction, charge: Charge | None) -> None:
        """Publish a written release that was not shown yet; refuse an outdated store."""
        last = page.last()
        if charge is not None and self.ledger is not None:
            try:
                if last.shown:
                    fits = self.ledger.progress(charge) == last.state
                else:
                    before = page.state_before(last.number)
                    self.ledger.advance(charge, after=before, state=last.state)
                    fits = True
            except LedgerError:
                fits = False
            if not fits:
                raise SeriesStoreError(
                    f"The store {self.store} is older than the ledger says: people have used more "
                    "of their length than it knows. Nothing was released: put the latest copy back."
                )
        if not last.shown:
            page.show(last.number)
