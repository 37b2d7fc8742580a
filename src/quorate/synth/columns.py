"""The columns of a synthetic table: public labels, or numbers in public bins.

Each column of a record is encoded as an integer, its *code*: the index of its label or of its bin.
A record with an unlisted label or a missing value is dropped as a whole; a number outside its range
is clipped. The encoding depends on public parameters only, so a record's codes are a function of
that record.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from quorate import _validate
from quorate._validate import described
from quorate.core.users.crowd import Crowd
from quorate.core.users.data import UserData, numbered_records, ordered_users
from quorate.core.users.store import offsets_of
from quorate.data.by_group.coded_columns import key_column
from quorate.data.by_group.keys import as_keys, column_places
from quorate.data.by_group.reading import names_of
from quorate.data.frames import check_columns, check_features, floats, open_frame
from quorate.data.tables import check_missing, without_rows
from quorate.exceptions import ParameterError, UnboundedContributionError
from quorate.ranges import as_bound, as_limits, dates_among
from quorate.tabulate.released import label_array

__all__ = ["Coded", "SynthColumn", "as_columns", "coder_of_crowd", "codes_of_table", "of_type"]

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]

_MOST_COLUMNS, _MOST_CODES = 32, 1024


@dataclass(frozen=True, kw_only=True)
class SynthColumn:
    """A column: its public labels, or the edges of the bins of its numbers.

    ``whole``: numbers are integers; ``missing`` replaces NaN.

    >>> age = SynthColumn(name="age", edges=(0.0, 50.0, 100.0))
    >>> age.size, age.codes(np.array([-3.0, 50.0, 100.0, np.nan])).tolist()
    (2, [0, 1, 1, -1])
    """

    name: str
    labels: tuple[Any, ...] | None = None
    edges: tuple[float, ...] | None = None
    whole: bool = False
    missing: float = math.nan

    @property
    def size(self) -> int:
        """Number of codes."""
        return len(self.labels) if self.labels is not None else len(self.edges or ()) - 1

    @property
    def ordered(self) -> bool:
        """Whether codes are in an order: those of bins, and of labels that are rising numbers.

        >>> SynthColumn(name="decade", labels=(1990, 2000, 2010)).ordered
        True
        """
        if self.labels is None:
            return True
        numbers = all(isinstance(each, int | float) for each in self.labels)
        return numbers and all(low < high for low, high in pairwise(self.labels))

    def codes(self, values: Floats) -> Integers:
        """Return the bin of each number; -1 for NaN."""
        inner = np.array(self.edges)[1:-1]
        values = np.where(np.isnan(values), self.missing, values)
        return np.where(np.isnan(values), -1, np.searchsorted(inner, values, side="right"))

    def values(self, codes: Integers, uniforms: Floats) -> Any:
        """Return a label or a number for each code; numbers are uniform within their bins.

        >>> year = SynthColumn(name="year", edges=(2000.0, 2001.0, 2003.0), whole=True)
        >>> year.values(np.array([0, 1, 1]), np.array([0.9, 0.2, 0.9])).tolist()
        [2000, 2001, 2002]
        """
        if self.labels is not None:
            return label_array(list(self.labels)).take(codes)
        edges = np.array(self.edges)
        found = edges[codes] + uniforms * (edges[codes + 1] - edges[codes])
        if not self.whole:
            return np.clip(found, edges[codes], edges[codes + 1])
        # Bins of whole numbers begin at one and end before one.
        return np.clip(np.floor(found), edges[codes], edges[codes + 1] - 1).astype(np.int64)


def as_columns(
    names: Sequence[str], categories: Any, bounds: Any, bins: Any, missing: Any = "drop"
) -> tuple[SynthColumn, ...]:
    """Return the declared columns, in the order of a table with these names.

    >>> [column.size for column in as_columns(["age", "city"], {"city": ["a", "b"]}, (0, 90), 30)]
    [30, 2]
    """
    valid = categories is None or isinstance(categories, Mapping)
    if not valid or not all(isinstance(key, str) and key for key in categories or ()):
        raise ParameterError(
            f"Expected categories as a dictionary from names of columns, got "
            f"{described(categories)}."
        )
    labelled = dict(categories or {})
    by_name = isinstance(bounds, Mapping) and None not in bounds
    ranged = [n for n in (bounds if by_name else names) if n not in labelled or by_name]
    ranged = [] if bounds is None else ranged
    check_columns([*labelled, *ranged], names)
    if not labelled and not ranged:
        raise UnboundedContributionError(
            "UserSynthesizer needs categories=, the public labels of columns, or bounds=, the "
            "public ranges of numbers, or both; they must not be taken from the data."
        )
    if labelled.keys() & set(ranged):
        raise ParameterError("Expected each column either in categories= or in bounds=.")
    if not 2 <= len(labelled) + len(ranged) <= _MOST_COLUMNS:
        raise ParameterError(
            f"Expected 2 to {_MOST_COLUMNS} columns in categories= and bounds=. For a single one "
            "there are DiscreteDistribution and Histogram."
        )
    found: dict[str, SynthColumn] = {}
    if labelled:
        # One by one: how many combinations there are does not matter.
        found = {
            name: SynthColumn(name=name, labels=as_keys(each, (name,))[0])
            for name, each in labelled.items()
        }
    if ranged:
        found |= _binned(bounds, tuple(ranged), bins, missing)
    if any(column.size > _MOST_CODES for column in found.values()):
        raise ParameterError(f"Expected at most {_MOST_CODES} labels or bins in each column.")
    return tuple(found[name] for name in names if name in found)


def _binned(bounds: Any, names: tuple[str, ...], bins: Any, missing: Any) -> dict[str, SynthColumn]:
    if dates_among(bounds):
        raise ParameterError("Expected ranges of numbers in bounds=; write dates as numbers.")
    check_missing(missing)
    number, fill = _bins(bins, names), math.nan if missing == "drop" else float(missing)
    as_bound(bounds, len(names), names)
    lower, upper = as_limits(bounds, len(names), names)
    found = {}
    for name, low, high in zip(names, lower.tolist(), upper.tolist(), strict=True):
        edges = np.linspace(low, high, number[name] + 1)
        if not np.all(np.diff(edges) > 0):
            raise ParameterError(f"Expected a range that has {number[name]} bins: {name!r}.")
        found[name] = SynthColumn(name=name, edges=tuple(edges.tolist()), missing=fill)
    return found


def _bins(bins: Any, names: Sequence[str]) -> dict[str, int]:
    given = bins if isinstance(bins, Mapping) else dict.fromkeys(names, bins)
    found = {name: given.get(name, 32) for name in names}
    if isinstance(bins, Mapping) and bins.keys() - set(names):
        raise ParameterError("Expected bins= of columns that are in bounds=.")
    for each in found.values():
        _validate.positive_integer(bins=each)
        if each > _MOST_CODES:
            raise ParameterError(f"Expected at most {_MOST_CODES} bins, got bins={each}.")
    return {name: int(each) for name, each in found.items()}


def of_type(columns: Sequence[SynthColumn], X: Any) -> tuple[SynthColumn, ...]:
    """Refuse columns that are missing or of another type; no record is read.

    A column of integers gets bins whose ends are integers.
    """
    if isinstance(X, Crowd):
        coder_of_crowd(columns, names_of(X))
        return tuple(columns)
    wanted = [column.name for column in columns]
    empty = without_rows(X)
    if empty is None:
        return tuple(columns)
    table = open_frame(empty, wanted)
    codes_of_table(columns, table)
    import pyarrow as pa

    whole = {field.name for field in table.schema if pa.types.is_integer(field.type)}
    return tuple(_whole(column) if column.name in whole else column for column in columns)


def _whole(column: SynthColumn) -> SynthColumn:
    """Return bins of integers; no more bins than there are integers in the range.

    >>> _whole(SynthColumn(name="k", edges=(0.0, 0.75, 1.5, 2.25, 3.0))).edges
    (0.0, 1.0, 2.0, 3.0, 4.0)
    """
    if column.edges is None or abs(column.edges[0]) + abs(column.edges[-1]) > 2.0**52:
        return column
    low, high = float(np.ceil(column.edges[0])), float(np.floor(column.edges[-1]))
    if high < low:
        return column
    edges = np.unique(np.floor(np.linspace(low, high + 1, column.size + 1)))
    return replace(column, edges=tuple(edges.tolist()), whole=True)


def codes_of_table(columns: Sequence[SynthColumn], table: Any) -> Floats:
    """Return the codes of an Arrow table's rows; -1 for a value without a code."""
    found = np.empty((table.num_rows, len(columns)))
    for place, column in enumerate(columns):
        cells = table.column(column.name)
        if column.labels is not None:
            found[:, place] = column_places(cells, column.labels, name=column.name)
            continue
        check_features(table.schema, features=[column.name], others=[])
        values = np.concatenate([np.empty(0), *map(floats, cells.chunks)])
        found[:, place] = column.codes(values)
    return found


@dataclass(frozen=True)
class Coded:
    """Turns the records of a part into codes, and drops records with a missing code.

    Parameters
    ----------
    columns : tuple of callables, or None
        Functions from rows to the codes of each column; None if rows are codes already.

    Examples
    --------
    >>> people = UserData.from_arrays([[1, 0], [1, -1], [0, 2]], users=["ann", "ann", "bob"])
    >>> codes = Coded()(people)
    >>> codes.X.tolist(), codes.record_counts().tolist()
    ([[1.0, 0.0], [0.0, 2.0]], [1, 1])
    """

    columns: tuple[Any, ...] | None = None

    def __call__(self, part: UserData) -> UserData:
        """Return the users of one part of the data, with their keys, and codes as records."""
        rows, users = numbered_records(part)
        if self.columns is not None:
            codes = [each(rows) for each in self.columns]
            rows = np.stack(codes, axis=1).astype(np.float64)
        known = np.flatnonzero((rows >= 0).all(axis=1))
        owners = users[known].astype(np.int64)
        order = known[np.argsort(owners, kind="stable")]
        starts = offsets_of(np.bincount(owners, minlength=part.n_users))
        return ordered_users(rows[order], None, starts, part.keys(), part.unit, None)


@dataclass(frozen=True)
class _Bins:
    place: int
    column: SynthColumn

    def __call__(self, rows: Floats) -> Integers:
        return self.column.codes(rows[:, self.place])


def coder_of_crowd(columns: Sequence[SynthColumn], names: Sequence[str]) -> Coded:
    """Return the encoder of a crowd's records; refuse columns that the crowd does not have.

    >>> ages = coder_of_crowd([SynthColumn(name="age", edges=(0.0, 50.0, 99.0))], ["age"])
    >>> ages(UserData.from_arrays([[70.0]], users=["ann"])).X.tolist()
    [[1.0]]
    """
    check_columns([column.name for column in columns if column.labels is None], names)
    found: list[Any] = []
    for column in columns:
        if column.labels is None:
            found.append(_Bins(list(names).index(column.name), column))
        else:
            found.append(key_column(names, column.name, column.labels)[0])
    return Coded(tuple(found))
