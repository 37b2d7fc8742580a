"""Group numbers of the records of a data frame or a crowd.

A data frame may have keys of any kind; they become numbers row by row, before records are grouped
by user. In a crowd, in memory or elsewhere, keys are numbers already. In both cases all mistakes
are found from names and types, before anything is paid.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from quorate._validate import all_finite, is_frame
from quorate.core.users.crowd import Crowd
from quorate.data.by_group.background import in_background
from quorate.data.by_group.coded_columns import Combined, condition_on, key_column
from quorate.data.by_group.conditions import Condition
from quorate.data.by_group.frames import FrameRecords
from quorate.data.by_group.keys import (
    LabelNumbers,
    Labels,
    NumberKeys,
    Row,
    column_places,
    key_rows,
)
from quorate.data.by_group.person_cells import GroupNumbers, ToCells
from quorate.data.columns.id_forms import check_same_rows
from quorate.data.columns.ids import group
from quorate.data.columns.marks import as_marks
from quorate.data.columns.seats import Seats
from quorate.data.frames import check_columns, check_features, floats, open_frame
from quorate.data.labels import PrivateLabels, check_labelled
from quorate.data.tables import (
    as_feature_matrix,
    check_lengths,
    check_missing,
    column_names,
    without_rows,
)
from quorate.exceptions import ParameterError, SchemaError

__all__ = [
    "Reading",
    "Records",
    "checked_names",
    "ids_of",
    "names_of",
    "order_of",
    "read_records",
    "schema_of",
    "with_names",
]

Floats = NDArray[np.float64]
Holds = Callable[[Floats], NDArray[np.bool_]]
"""Tells for each row whether it fulfils a condition."""


def names_of(X: Any) -> tuple[str, ...]:
    """Return the column names of a data frame or a crowd; refuse tables without names.

    >>> import pyarrow as pa
    >>> names_of(pa.table({"city": ["Bonn"]}))
    ('city',)
    """
    names = None
    if isinstance(X, Crowd):
        names = X.feature_names or tuple(f"x{place}" for place in range(X.n_features))
    if is_frame(X):
        names = column_names(X)
        if names is None or len(set(names)) < len(names):
            empty = without_rows(X)
            names = tuple(open_frame(X if empty is None else empty).column_names)
    if names is None:
        raise SchemaError(
            "Expected a table with names of columns (pandas, polars, duckdb, pyarrow), or a crowd, "
            f"got {type(X).__name__}."
        )
    return names


@dataclass(frozen=True)
class _Selected:
    """Numbers the groups of the records that satisfy all conditions."""

    conditions: tuple[Holds, ...]
    numbers: GroupNumbers

    def __call__(self, rows: Floats) -> NDArray[np.int64]:
        found = self.numbers(rows)
        for holds in self.conditions:
            found = np.where(holds(rows), found, -1)
        return found


@dataclass(frozen=True)
class _OneGroup:
    def __call__(self, rows: Floats) -> NDArray[np.int64]:
        return np.zeros(len(rows), dtype=np.int64)


@dataclass(frozen=True, eq=False)
class _Renumbered:
    """Renumbers groups: those of rows, or those of a table together with its values."""

    numbers: Callable[..., Any]
    places: NDArray[np.int64]

    none: int = -1

    def __call__(self, *read: Any) -> Any:
        found = self.numbers(*read)
        groups, *values = found if isinstance(found, tuple) else (found,)
        # The last place serves -1, which is no group.
        renumbered = np.append(self.places, self.none)[groups]
        return (renumbered, *values) if isinstance(found, tuple) else renumbered


@dataclass(frozen=True)
class Records:
    """Records with numeric keys: their users, and the functions that find their groups.

    Attributes
    ----------
    source : Crowd or FrameRecords
        The records; a data frame whose groups are known is read only when its cells are needed.
    values : dict
        The column index of each value.
    by : tuple of int
        The column indices of the parts of a key, if keys still have to be found.
    labels : list of LabelNumbers or PrivateLabels
        The labels that the numbers of these columns stand for.
    numbers : callable
        Finds the groups of records, once ``keys`` are known.
    keys : tuple
        One row per group.
    conditions : tuple
    """

    source: Crowd | FrameRecords
    values: dict[str, int]
    by: tuple[int, ...] = ()
    labels: list[LabelNumbers | PrivateLabels] = field(default_factory=list)
    numbers: GroupNumbers = field(default_factory=_OneGroup)
    keys: tuple[Row, ...] = ((),)
    conditions: tuple[Holds, ...] = ()

    @property
    def crowd(self) -> Crowd:
        """The users, and those of their records that were already read."""
        return self.source.people() if isinstance(self.source, FrameRecords) else self.source

    def cells(self, change: ToCells) -> Crowd:
        """Return the cells of each person in each group, wherever the records are stored."""
        return self.cells_in_turn(change)[1]()

    def cells_in_turn(self, change: ToCells) -> tuple[Crowd, Callable[[], Crowd]]:
        """Return cells with counts only, and a function that waits for cells with all sums."""
        if isinstance(self.source, FrameRecords):
            return self.source.cells_in_turn(change)
        cells = self.source.derive(change, keep=True)
        return cells, lambda: cells

    def with_groups(self, chosen: Sequence[int]) -> Records:
        """Return the same records in some of their groups, with one more group for all others.

        The labels of the group of all others are None.
        """
        places = np.full(len(self.keys), len(chosen), dtype=np.int64)
        places[list(chosen)] = np.arange(len(chosen))
        keys = (*(self.keys[group] for group in chosen), (None,) * len(self.keys[0]))
        if isinstance(self.source, FrameRecords):
            source = replace(self.source, numbers=_Renumbered(self.source.numbers, places))
            return replace(self, source=source, keys=keys)
        return replace(self, numbers=_Renumbered(self.numbers, places), keys=keys)

    def with_keys(self, keys: tuple[Row, ...], *, others: bool = False) -> Records:
        """Return the same records in the groups of ``keys``, one label per column of ``by``.

        With ``others`` all other keys form one more group, whose labels are None.
        """
        rows = tuple(
            tuple(of.number(label) for of, label in zip(self.labels, key, strict=True))
            for key in keys
        )
        columns = tuple(tuple(dict.fromkeys(row[i] for row in rows)) for i in range(len(self.by)))
        numbers = _Selected(self.conditions, NumberKeys(self.by, columns, rows, others))
        keys = (*keys, (None,) * len(self.by)) if others else keys
        return Records(
            self.crowd, self.values, self.by, self.labels, numbers, keys, self.conditions
        )


@dataclass(frozen=True, kw_only=True)
class Reading:
    """Which columns of a table are read, and how.

    Parameters
    ----------
    by : tuple of str
    keys : tuple of tuples, or None
        Public labels of each column of ``by``; None if they still have to be found.
    rows : tuple of rows, optional
        The combinations of labels that are groups, if not all of them are.
    others : bool, default=False
        Whether all other records, including those with missing keys, form an additional last group.
    values : tuple of str
    where : tuple of Condition
    missing : "drop" or float
        ``"drop"`` drops a record with a missing value; a number replaces the missing value.
    """

    by: tuple[str, ...] = ()
    keys: tuple[Labels, ...] | None = ()
    rows: tuple[Row, ...] | None = None
    others: bool = False
    values: tuple[str, ...] = ()
    where: tuple[Condition, ...] = ()
    missing: str | float = "drop"

    @property
    def columns(self) -> list[str]:
        """All columns that are read."""
        others = [condition.column for condition in self.where]
        return list(dict.fromkeys([*self.by, *self.values, *others]))

    @property
    def _plain(self) -> bool:
        return self.rows is None and not self.others

    @property
    def groups(self) -> tuple[Row, ...]:
        """The keys of all groups; the group of all others has None in each column."""
        listed = key_rows(self.keys or ()) if self.rows is None else self.rows
        return (*listed, (None,) * len(self.by)) if self.others else listed

    def _places(self) -> NDArray[np.int64]:
        """Return the group of each combination of labels, and that of records without one."""
        sizes = [len(labels) for labels in self.keys or ()]
        rest = len(self.groups) - 1 if self.others else -1
        if self.rows is None:
            return np.append(np.arange(math.prod(sizes)), rest)
        found = np.full(math.prod(sizes) + 1, rest, dtype=np.int64)
        at = [{label: place for place, label in enumerate(labels)} for labels in self.keys or ()]
        for place, row in enumerate(self.rows):
            number = 0
            for places, size, label in zip(at, sizes, row, strict=True):
                number = number * size + places[label]
            found[number] = place
        return found

    def check(self, X: Any) -> None:
        """Refuse invalid names and types; no record is read."""
        check_missing(self.missing)
        if not self.columns:
            return
        known = names_of(X)
        if isinstance(X, Crowd):
            check_columns([*self.values, *(self.by if self.keys is None else ())], known)
            self._crowd_columns(known)
            return
        check_columns(self.columns, known)
        empty = without_rows(X)
        if empty is not None:
            self._columns(open_frame(empty, self.columns), 0)

    def read(self, X: Any, grouped: Callable[[Floats, Any], Crowd], ids: Any = None) -> Records:
        """Return the records; ``grouped`` puts rows of numbers under their users' ``ids``."""
        if isinstance(X, Crowd):
            return self._of_crowd(X)
        table = open_frame(X, self.columns) if self.columns else None
        length = len(X) if table is None else table.num_rows
        if self.keys is None:
            waiting = in_background(lambda: self._columns(table, length), rows=length)
            people = group(ids)
            columns, labels = waiting()
            first = len(self.by)
            matrix = np.column_stack([*columns, np.empty((length, 0))])
            values = {name: first + place for place, name in enumerate(self.values)}
            return Records(grouped(matrix, people), values, tuple(range(first)), [*labels])
        seats = Seats.of(ids)
        if len(seats) != length:
            raise SchemaError("Expected X and users with one entry per row, got several lengths.")
        return Records(
            FrameRecords(table, seats, len(self.values), self._numbers, grouped),
            {name: place for place, name in enumerate(self.values)},
            keys=self.groups,
        )

    def _numbers(self, table: Any, length: int) -> tuple[NDArray[np.int64], list[Floats]]:
        """Return the group number of each record (-1 for none), and its values."""
        (groups, *values), _ = self._columns(table, length)
        return groups, values

    def _columns(self, table: Any, length: int) -> tuple[list[NDArray[Any]], list[PrivateLabels]]:
        """Return the keys as numbers, NaN or -1 for none, then the values."""
        if self.values:
            check_features(table.schema, features=self.values, others=[])
        columns, labels = self._key_columns(table, length)
        for condition in self.where:
            chosen = _chosen(table.column(condition.column), condition)
            for column in columns:
                column[~chosen] = -1 if column.dtype == np.int64 else np.nan
        for name in self.values:
            values = _floats_of(table.column(name))
            if not all_finite(values):
                known = np.isfinite(values)
                if self.missing != "drop":
                    values = np.where(known, values, float(self.missing))
                elif self.keys is not None:
                    columns[0] = np.where(known, columns[0], -1)
            columns.append(values)
        return columns, labels

    def _key_columns(
        self, table: Any, length: int
    ) -> tuple[list[NDArray[Any]], list[PrivateLabels]]:
        if self.keys is None:
            for name in self.by:
                check_labelled(name, table.schema.field(name).type)
            codes = [PrivateLabels.of_arrow(table.column(name)) for name in self.by]
            # Conditions take away numbers of their own.
            return [code.numbers.copy() for code in codes], codes
        if not self.by:
            return [np.zeros(length, dtype=np.int64)], []
        places = [
            column_places(table.column(name), labels, name=name)
            for name, labels in zip(self.by, self.keys, strict=True)
        ]
        return [self.numbered(places)], []

    def numbered(self, places: Sequence[NDArray[np.int64]]) -> NDArray[np.int64]:
        """Return each record's group (-1 for none), given its label indices in each column."""
        found, *others = places
        for labels, each in zip((self.keys or ())[1:], others, strict=True):
            outside = (found < 0) | (each < 0)
            found = found * len(labels) + each
            found[outside] = -1
        return found if self._plain else self._places()[found]

    def _crowd_columns(self, names: Sequence[str]) -> tuple[GroupNumbers, tuple[Holds, ...]]:
        """Return functions that find the groups of a crowd's records, and their conditions."""
        found = [key_column(names, *each) for each in zip(self.by, self.keys or (), strict=False)]
        conditions = tuple(condition_on(names, condition) for condition in self.where)
        if not found:
            return _OneGroup(), conditions
        columns, labels = zip(*found, strict=True)
        numbers = Combined(tuple(columns), tuple(map(len, labels)))
        if self._plain:
            return numbers, conditions
        *places, none = self._places().tolist()
        return _Renumbered(numbers, np.array(places, dtype=np.int64), none), conditions

    def _of_crowd(self, crowd: Crowd) -> Records:
        names = names_of(crowd)
        numbers, conditions = self._crowd_columns(names)
        return Records(
            crowd,
            {name: names.index(name) for name in self.values},
            tuple(names.index(name) for name in self.by) if self.keys is None else (),
            [LabelNumbers() for _ in self.by],
            _Selected(conditions, numbers),
            self.groups if self.keys else ((),),
            conditions,
        )


def read_records(
    reading: Reading,
    X: Any,
    users: Any,
    crowd_of: Callable[[Any, Any, tuple[str, ...], bool], Crowd],
) -> Records:
    """Return the records of ``X`` under their users; ``crowd_of`` groups rows by ids.

    ``crowd_of`` also gets the other columns, and whether ``X`` has column names.
    """
    named = with_names(X)
    names = tuple(
        name for name in names_of(named) if not (isinstance(users, str) and name == users)
    )
    has_names = is_frame(X) or (isinstance(X, Crowd) and X.feature_names is not None)

    def grouped(rows: Any, ids: Any = None) -> Crowd:
        return crowd_of(rows, ids, names, has_names)

    if isinstance(X, Crowd):
        return reading.read(grouped(X), grouped)
    return reading.read(named, grouped, ids_of(X, users))


def _chosen(column: Any, condition: Condition) -> NDArray[np.bool_]:
    if condition.labels is not None:
        return column_places(column, condition.labels, name=condition.column) >= 0
    _numeric(column, condition.column)
    return condition.holds(_floats_of(column))


def _floats_of(column: Any) -> Floats:
    """Return a numeric column as floats, NaN for null; it is copied only if necessary."""
    if column.num_chunks == 1:
        return floats(column.chunk(0))
    return np.concatenate([np.empty(0), *map(floats, column.chunks)])


def _numeric(column: Any, name: str) -> None:
    import pyarrow as pa

    check_features(pa.schema([(name, column.type)]), features=[name], others=[])


def with_names(X: Any) -> Any:
    """Return an array as a table with the columns x0, x1, ...; other tables unchanged.

    >>> with_names(np.zeros((3, 2))).column_names
    ['x0', 'x1']
    """
    if isinstance(X, Crowd) or is_frame(X):
        return X
    import pyarrow as pa

    rows, _ = as_feature_matrix(X, single=True)
    columns = {f"x{place}": rows[:, place] for place in range(rows.shape[1])}
    return pa.table(columns)


def schema_of(X: Any) -> Any:
    """Return the columns of ``X`` without its records, as far as they have declared types.

    >>> schema_of(np.zeros((3, 2))).num_rows
    0
    """
    empty = None if isinstance(X, Crowd) or is_frame(X) else without_rows(X)
    return with_names(X if empty is None else empty)


def order_of(X: Any, order: Any) -> Any:
    """Return the order of a frame's records: the column of this name, or the argument itself.

    It is checked by type and length only; no entry is read.

    >>> import pyarrow as pa
    >>> order_of(pa.table({"day": [2, 1]}), "day").to_pylist()
    [2, 1]
    """
    if isinstance(X, Crowd):
        raise ParameterError("A crowd has its own order: pass order= where it is made.")
    if isinstance(order, str):
        order = open_frame(X, [order]).column(0)
    empty = without_rows(order)
    as_marks(order if empty is None else empty)
    check_lengths(X=X, order=order)
    check_same_rows(X=X, order=order)
    return order


def ids_of(X: Any, users: Any) -> Any:
    """Return the ids of a frame's records: the column of this name, or the argument itself.

    >>> import pyarrow as pa
    >>> ids_of(pa.table({"who": [7, 8]}), "who").to_pylist()
    [7, 8]
    """
    return open_frame(X, [users]).column(0) if isinstance(users, str) else users


def checked_names(by: Any, *, reserved: Sequence[str] = ()) -> tuple[str, ...]:
    """Return the columns of ``by=`` as a tuple; None for one group of all records.

    >>> checked_names("city"), checked_names(["city", "year"]), checked_names(None)
    (('city',), ('city', 'year'), ())
    """
    names = () if by is None else (by,) if isinstance(by, str) else by
    valid = isinstance(names, list | tuple) and all(isinstance(n, str) and n for n in names)
    if not valid or len({*names, *reserved}) < len(names) + len(reserved):
        raise ParameterError(
            "Expected by to be a name of a column or a list of different ones, none of them the "
            "name of a statistic."
        )
    return tuple(names)
