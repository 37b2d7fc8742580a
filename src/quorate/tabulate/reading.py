"""From a frame or a crowd to records under the numbers of their groups.

A frame may hold keys of any kind; they become numbers row by row, before records are grouped by
user. A crowd holds numbers already, wherever it lies. In both cases everything that can be wrong is
seen from names and types, before anything is paid.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from quorate.estimators import as_feature_matrix
from quorate.exceptions import ParameterError, SchemaError
from quorate.tabulate.cells import GroupNumbers, KnownGroups
from quorate.tabulate.conditions import Condition
from quorate.tabulate.keys import (
    LabelNumbers,
    Labels,
    NumberKeys,
    PrivateLabels,
    Row,
    column_places,
    key_rows,
)
from quorate.users.crowd import Crowd
from quorate.users.schema import without_rows
from quorate.users.tables import check_features, check_missing, floats, is_frame, open_frame

__all__ = ["Reading", "Records", "checked_names", "ids_of", "names_of", "schema_of", "with_names"]

Floats = NDArray[np.float64]


def names_of(X: Any) -> tuple[str, ...]:
    """Return the names of the columns of a frame or a crowd; refuse what has none.

    >>> import pyarrow as pa
    >>> names_of(pa.table({"city": ["Bonn"]}))
    ('city',)
    """
    names = None
    if isinstance(X, Crowd):
        names = X.feature_names or tuple(f"x{place}" for place in range(X.n_features))
    if is_frame(X):
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
    """Numbers the groups of the records that fulfil all conditions."""

    conditions: tuple[tuple[int, Condition], ...]
    numbers: GroupNumbers

    def __call__(self, rows: Floats) -> NDArray[np.int64]:
        found = self.numbers(rows)
        for column, condition in self.conditions:
            found = np.where(condition.holds(rows[:, column]), found, -1)
        return found


@dataclass(frozen=True)
class _OneGroup:
    def __call__(self, rows: Floats) -> NDArray[np.int64]:
        return np.zeros(len(rows), dtype=np.int64)


@dataclass(frozen=True)
class Records:
    """Records with numbers for keys: who they are, and how their groups are found.

    Attributes
    ----------
    crowd : Crowd
    values : dict
        In which column each value stands.
    by : tuple of int
        In which columns the parts of a key stand, if keys are yet to be found.
    labels : list of LabelNumbers
        What the numbers of these columns mean.
    numbers : callable
        Finds the groups of records, once ``keys`` are known.
    keys : tuple
        One row a group.
    conditions : tuple
    """

    crowd: Crowd
    values: dict[str, int]
    by: tuple[int, ...] = ()
    labels: list[LabelNumbers] = field(default_factory=list)
    numbers: GroupNumbers = field(default_factory=_OneGroup)
    keys: tuple[Row, ...] = ((),)
    conditions: tuple[tuple[int, Condition], ...] = ()

    def with_keys(self, keys: tuple[Row, ...]) -> Records:
        """Return the same records in the groups of ``keys``, one label a column of ``by``."""
        rows = tuple(
            tuple(of.number(label) for of, label in zip(self.labels, key, strict=True))
            for key in keys
        )
        columns = tuple(tuple(dict.fromkeys(row[i] for row in rows)) for i in range(len(self.by)))
        numbers = _Selected(self.conditions, NumberKeys(self.by, columns, rows))
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
        Public labels of each column of ``by``; None if they are yet to be found.
    values : tuple of str
    where : tuple of Condition
    missing : "drop" or float
        A record without one of its values is dropped, or this number stands in for it.
    """

    by: tuple[str, ...] = ()
    keys: tuple[Labels, ...] | None = ()
    values: tuple[str, ...] = ()
    where: tuple[Condition, ...] = ()
    missing: str | float = "drop"

    @property
    def columns(self) -> list[str]:
        """All columns that are read."""
        others = [condition.column for condition in self.where]
        return list(dict.fromkeys([*self.by, *self.values, *others]))

    def check(self, X: Any) -> None:
        """Refuse what names and types show to be wrong; no record is read."""
        check_missing(self.missing)
        if not self.columns:
            return
        known = names_of(X)
        for name in self.columns:
            if name not in known:
                raise SchemaError(f"Expected a column {name!r}, the table has {sorted(known)}.")
        if isinstance(X, Crowd):
            self._crowd_keys()
            return
        empty = without_rows(X)
        if empty is not None:
            self._matrix(open_frame(empty, self.columns))

    def read(self, X: Any, grouped: Callable[[Floats], Crowd]) -> Records:
        """Return the records; ``grouped`` puts rows of numbers under their users."""
        if isinstance(X, Crowd):
            return self._of_crowd(X)
        table = open_frame(X, self.columns) if self.columns else None
        matrix, labels = self._matrix(table, len(X))
        first = matrix.shape[1] - len(self.values)
        records = Records(
            grouped(matrix),
            {name: first + place for place, name in enumerate(self.values)},
            tuple(range(len(self.by))) if self.keys is None else (),
            labels,
        )
        if self.keys is None:
            return records
        keys = key_rows(self.keys)
        return Records(records.crowd, records.values, numbers=KnownGroups(), keys=keys)

    def _matrix(self, table: Any, length: int = 0) -> tuple[Floats, list[LabelNumbers]]:
        """Return the numbers of the keys, NaN for none, then the values."""
        length = length if table is None else table.num_rows
        if self.values:
            check_features(table.schema, features=self.values, others=[])
        columns, labels = self._key_columns(table, length)
        matrix = np.empty((length, len(columns) + len(self.values)))
        for place, column in enumerate(columns):
            matrix[:, place] = column
        for condition in self.where:
            chosen = _chosen(table.column(condition.column), condition)
            matrix[~chosen, : len(columns)] = np.nan
        for place, name in enumerate(self.values, start=len(columns)):
            values = np.concatenate([np.empty(0), *map(floats, table.column(name).chunks)])
            if self.missing != "drop":
                values = np.where(np.isfinite(values), values, float(self.missing))
            matrix[:, place] = values
        return matrix, labels

    def _key_columns(self, table: Any, length: int) -> tuple[list[Floats], list[LabelNumbers]]:
        if self.keys is None:
            codes = [PrivateLabels(table.column(name)) for name in self.by]
            return [code.numbers for code in codes], list[LabelNumbers](codes)
        found = np.zeros(length)
        for name, labels in zip(self.by, self.keys, strict=True):
            places = column_places(table.column(name), labels, name=name)
            found *= len(labels)
            found += places
            found[places < 0] = np.nan
        return [found], []

    def _crowd_keys(self) -> tuple[Labels, ...]:
        keys = self.keys or ()
        wanted = [*keys, *(c.labels for c in self.where if c.labels is not None)]
        for label in (label for labels in wanted for label in labels):
            if isinstance(label, str):
                raise SchemaError(
                    "A crowd holds numbers: expected keys and values of conditions to be numbers, "
                    "too. Pass a frame, with users=, for others."
                )
        return keys

    def _of_crowd(self, crowd: Crowd) -> Records:
        place = {name: i for i, name in enumerate(names_of(crowd))}
        conditions = tuple((place[c.column], c) for c in self.where)
        records = Records(
            crowd,
            {name: place[name] for name in self.values},
            tuple(place[name] for name in self.by),
            [LabelNumbers() for _ in self.by],
            _Selected(conditions, _OneGroup()),
            conditions=conditions,
        )
        if self.keys is None or not self.by:
            return records
        return records.with_keys(key_rows(self._crowd_keys()))


def _chosen(column: Any, condition: Condition) -> NDArray[np.bool_]:
    if condition.labels is not None:
        return column_places(column, condition.labels, name=condition.column) >= 0
    _numeric(column, condition.column)
    return condition.holds(np.concatenate([np.empty(0), *map(floats, column.chunks)]))


def _numeric(column: Any, name: str) -> None:
    import pyarrow as pa

    check_features(pa.schema([(name, column.type)]), features=[name], others=[])


def with_names(X: Any) -> Any:
    """Return an array as a table with the columns x0, x1, ...; frames and crowds as they are.

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
    """Return the columns of ``X`` without its records, as far as they declare a type.

    >>> schema_of(np.zeros((3, 2))).num_rows
    0
    """
    empty = None if isinstance(X, Crowd) or is_frame(X) else without_rows(X)
    return with_names(X if empty is None else empty)


def ids_of(X: Any, users: Any) -> Any:
    """Return the ids of a frame's records: a column by its name, or whatever was given.

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
