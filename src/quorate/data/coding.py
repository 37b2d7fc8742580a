"""Encodings of columns as numbers: categories, dates, booleans.

A model works on numbers. How a column is encoded depends on public knowledge alone:

* a **category** of a public list becomes a column of zeros and ones, ``region=north``;
* a **date** becomes the days since the first day of its public range, ``visit (days since
  2020-01-01)``; the time of day counts as a part of a day, and times with a zone are taken in UTC;
* a **boolean** becomes 0 or 1, and a number does not change.

Public rules cover all values. A category that is not on the list has zero in every column of the
list. Null, and text that is not a date, are *missing* in every encoded column, and the rule for
missing values applies (the record is dropped, or gets a public number). Which columns there are and
of which types is the schema, which is public and may raise.

Every row is encoded by itself and does not depend on other people's rows.
"""

from __future__ import annotations

import math
import numbers
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from quorate._validate import described
from quorate.data import frames
from quorate.data.columns import kinds
from quorate.data.dates import days_of, days_written, written
from quorate.exceptions import ParameterError, SchemaError

__all__ = [
    "Category",
    "CodedTable",
    "Coding",
    "Days",
    "Plain",
    "coded_columns",
    "coding_of",
    "days_of",
    "names_given",
]

Floats = NDArray[np.float64]

_TICKS_A_DAY = {"s": 86_400.0, "ms": 86_400e3, "us": 86_400e6, "ns": 86_400e9}


@dataclass(frozen=True)
class Plain:
    """A column of numbers or booleans, which is not encoded.

    >>> Plain("age").names
    ('age',)
    """

    name: str

    @property
    def names(self) -> tuple[str, ...]:
        """The numeric columns that it is encoded as."""
        return (self.name,)

    @property
    def is_text(self) -> bool:
        """Whether it is read from text if a source declares no types."""
        return False

    def check(self, kind: Any) -> None:
        """Refuse a declared type that is not numeric."""
        kinds.check_numeric(self.name, kind)

    def encode(self, column: Any) -> Floats:
        """Return the numbers of an Arrow array: one row for each, NaN for null."""
        return frames.floats(column)[:, None]


@dataclass(frozen=True)
class Category:
    """A column whose public values are known: one column of zeros and ones for each of them.

    Values are texts or numbers, and are compared as such.

    >>> import pyarrow as pa
    >>> region = Category("region", ("north", "south"))
    >>> region.names
    ('region=north', 'region=south')
    >>> region.encode(pa.array(["south", "east", None]))
    array([[ 0.,  1.],
           [ 0.,  0.],
           [nan, nan]])
    """

    name: str
    values: tuple[Any, ...]

    def __post_init__(self) -> None:
        texts = all(isinstance(value, str) for value in self.values)
        plain = all(isinstance(v, numbers.Real) and math.isfinite(v) for v in self.values)
        if not self.values or not (texts or plain) or len(set(self.values)) < len(self.values):
            raise ParameterError(
                f"Expected different texts, or different finite numbers, as the public categories "
                f"of {self.name!r}, got {described(list(self.values))}. They must not be taken "
                "from the data."
            )

    @property
    def names(self) -> tuple[str, ...]:
        """The numeric columns that it is encoded as."""
        return tuple(f"{self.name}={value}" for value in self.values)

    @property
    def is_text(self) -> bool:
        """Whether the categories are texts."""
        return isinstance(self.values[0], str)

    def check(self, kind: Any) -> None:
        """Refuse a declared type in which the categories cannot be found."""
        import pyarrow as pa

        held = kind.value_type if pa.types.is_dictionary(kind) else kind
        fits = kinds.is_text(held) if self.is_text else kinds.is_numeric(held)
        if not fits:
            raise SchemaError(
                f"Expected {'text' if self.is_text else 'numbers'} in the column {self.name!r}, "
                f"as its categories are, got {kinds.kind_of(held)}."
            )

    def encode(self, column: Any) -> Floats:
        """Return a row of zeros and ones for each value of an Arrow array; NaN for null."""
        import pyarrow as pa
        import pyarrow.compute as pc

        column = kinds.decoded(column)
        if self.is_text:
            known = pa.array([value.encode() for value in self.values], type=pa.large_binary())
            octets = kinds.as_octets(column)
            missing = octets.is_null().to_numpy(zero_copy_only=False)
            places = frames.floats(pc.index_in(octets, value_set=known))
        else:
            held = frames.floats(column)
            missing = ~np.isfinite(held)
            places = np.full(len(held), np.nan)
            for place, value in enumerate(self.values):
                places[held == float(value)] = place
        rows = np.zeros((len(places), len(self.values)))
        found = np.flatnonzero(~np.isnan(places))
        rows[found, places[found].astype(np.int64)] = 1.0
        rows[missing] = np.nan
        return rows


@dataclass(frozen=True)
class Days:
    """A column of dates in a public range, as days since its first day.

    >>> import pyarrow as pa
    >>> visit = Days("visit", "2020-01-01", "2020-12-31")
    >>> visit.names, visit.length
    (('visit (days since 2020-01-01)',), 365.0)
    >>> visit.encode(pa.array(["2020-01-03", "3.1.2020", None])).ravel()
    array([ 2., nan, nan])
    """

    name: str
    first: Any
    last: Any

    def __post_init__(self) -> None:
        first, last = days_of(self.first), days_of(self.last)
        if first is None or last is None or not first < last:
            raise ParameterError(
                f"Expected a public range of dates for {self.name!r}, such as ('2020-01-01', "
                f"'2024-12-31'), got {described((self.first, self.last))}."
            )

    @property
    def start(self) -> float:
        """The first day of the range, in days since 1970."""
        return float(days_of(self.first) or 0.0)

    @property
    def length(self) -> float:
        """The days from the first to the last day of the range."""
        return float(days_of(self.last) or 0.0) - self.start

    @property
    def names(self) -> tuple[str, ...]:
        """The numeric column that it is encoded as."""
        return (f"{self.name} (days since {written(self.start)})",)

    @property
    def is_text(self) -> bool:
        """Whether it is read from text if a source declares no types; always true here."""
        return True

    def check(self, kind: Any) -> None:
        """Refuse a declared type that cannot represent dates."""
        import pyarrow as pa

        held = kind.value_type if pa.types.is_dictionary(kind) else kind
        if not (pa.types.is_date(held) or pa.types.is_timestamp(held) or kinds.is_text(held)):
            raise SchemaError(
                f"Expected dates in the column {self.name!r}, as its bounds are dates, got "
                f"{kinds.kind_of(held)}."
            )

    def encode(self, column: Any) -> Floats:
        """Return the days since the first day of the range.

        There is one row for each value; NaN for text that is not a date.
        """
        import pyarrow as pa

        column = kinds.decoded(column)
        kind = column.type
        if kinds.is_text(kind):
            days = days_written(column)
        elif pa.types.is_date32(kind):
            days = frames.floats(column.cast(pa.int32()))
        else:
            unit = "ms" if pa.types.is_date64(kind) else kind.unit
            days = frames.floats(column.cast(pa.int64())) / _TICKS_A_DAY[unit]
        return np.asarray(days - self.start)[:, None]


Column = Plain | Category | Days


def coded_columns(
    categories: Mapping[str, Sequence[Any]] | None,
    dates: Mapping[str, tuple[Any, Any]] | None = None,
) -> dict[str, Column]:
    """Return the columns to be encoded, by name; refuse invalid descriptions.

    >>> sorted(coded_columns({"region": ["n", "s"]}, {"visit": ("2020-01-01", "2021-01-01")}))
    ['region', 'visit']
    """
    found: dict[str, Column] = {}
    for word, given in (("categories", categories), ("dates", dates)):
        if given is None:
            continue
        if not isinstance(given, Mapping) or not all(isinstance(name, str) for name in given):
            raise ParameterError(
                f"Expected {word} as a dictionary from names of columns, got {described(given)}."
            )
        for name, held in given.items():
            if name in found:
                raise ParameterError(f"Expected {name!r} as a category or as a date, got both.")
            if isinstance(held, str | bytes) or not isinstance(held, Sequence | np.ndarray):
                raise ParameterError(
                    f"Expected a list of {word} for the column {name!r}, got {described(held)}."
                )
            values = held.tolist() if isinstance(held, np.ndarray) else list(held)
            if word == "categories":
                found[name] = Category(name, tuple(_plain_value(value) for value in values))
            else:
                found[name] = Days(name, *(values if len(values) == 2 else (None, None)))
    return found


@dataclass(frozen=True)
class Coding:
    """How the columns of a table become numeric columns; all of it is public.

    >>> coding = Coding.of(["age", "region"], coded_columns({"region": ["north", "south"]}))
    >>> coding.names
    ('age', 'region=north', 'region=south')
    >>> coding.sources
    ('age', 'region')
    """

    columns: tuple[Column, ...]

    @classmethod
    def of(cls, names: Sequence[str], coded: Mapping[str, Column]) -> Coding:
        """Return the coding of the columns ``names``; columns without a description are numbers."""
        absent = [name for name in coded if name not in names]
        if absent:
            raise SchemaError(
                f"Expected the columns {absent}, whose categories or dates are stated, among the "
                f"features {list(names)}."
            )
        return cls(tuple(coded.get(name, Plain(name)) for name in names))

    @classmethod
    def recognised(cls, names: Sequence[str], coded: Mapping[str, Column]) -> Coding:
        """Return the coding from which numeric columns got their ``names``.

        >>> region = coded_columns({"region": ["n", "s"]})
        >>> Coding.recognised(["age", "region=n", "region=s"], region).sources
        ('age', 'region')
        """
        columns: list[Column] = []
        openings = {column.names[0]: column for column in coded.values()}
        rest = list(names)
        while rest:
            column = openings.get(rest[0], Plain(rest[0]))
            if tuple(rest[: len(column.names)]) != column.names:
                break
            columns.append(column)
            del rest[: len(column.names)]
        if rest or not set(coded.values()) <= set(columns):
            raise SchemaError(
                f"Expected the columns {[n for c in coded.values() for n in c.names]} among the "
                f"features, got {list(names)}: read the table with the same categories and dates."
            )
        return cls(tuple(columns))

    @property
    def sources(self) -> tuple[str, ...]:
        """The names of the columns of the table."""
        return tuple(column.name for column in self.columns)

    @cached_property
    def names(self) -> tuple[str, ...]:
        """The names of the encoded columns."""
        return tuple(name for column in self.columns for name in column.names)

    @property
    def is_plain(self) -> bool:
        """Whether every column is a number already."""
        return all(isinstance(column, Plain) for column in self.columns)

    def check(self, schema: Any) -> None:
        """Refuse columns by their declared types; an Arrow schema."""
        if len(set(self.names)) < len(self.names):
            raise SchemaError(f"Expected different names of columns, got {list(self.names)}.")
        for column in self.columns:
            column.check(schema.field(column.name).type)

    def blocks(self, batch: Any) -> Iterator[tuple[slice, Floats]]:
        """Yield the encoded numbers of each column of an Arrow batch, with their columns."""
        start = 0
        for column in self.columns:
            width = len(column.names)
            yield slice(start, start + width), column.encode(batch.column(column.name))
            start += width

    def matrix(self, table: Any) -> Floats:
        """Return the numbers of a data frame, one row for each of its rows.

        >>> import pyarrow as pa
        >>> coding = Coding.of(["smokes", "kind"], coded_columns({"kind": [1, 2]}))
        >>> coding.matrix(pa.table({"kind": [2, 1], "smokes": [True, False]}))
        array([[1., 0., 1.],
               [0., 1., 0.]])
        """
        source = frames.open_frame(table, list(dict.fromkeys(self.sources)))
        self.check(source.schema)
        return frames.load(source, users=[], features=self.sources, target=None, coding=self).rows


def coding_of(
    schema: Any,
    *,
    features: Sequence[str] | None,
    others: Sequence[str],
    categories: Mapping[str, Sequence[Any]] | None,
    dates: Mapping[str, tuple[Any, Any]] | None,
) -> Coding | None:
    """Return the coding of the features of an Arrow schema; None if all of them are numbers.

    >>> import pyarrow as pa
    >>> schema = pa.schema([("id", pa.int64()), ("age", pa.int8()), ("region", pa.string())])
    >>> region = {"region": ["n", "s"]}
    >>> coding_of(schema, features=None, others=["id"], categories=region, dates={}).names
    ('age', 'region=n', 'region=s')
    """
    coded = coded_columns(categories, dates)
    if not coded:
        return None
    names = frames.check_features(schema, features=features, others=others, coded=coded)
    coding = Coding.of(names, coded)
    coding.check(schema)
    return coding


def names_given(columns: str | Sequence[str]) -> list[str]:
    """Return names of columns as a list; refuse anything else.

    >>> names_given("age"), names_given(("age", "bmi"))
    (['age'], ['age', 'bmi'])
    """
    names = [columns] if isinstance(columns, str) else columns
    if not (isinstance(names, list | tuple) and names and all(isinstance(n, str) for n in names)):
        raise ParameterError(f"Expected names of columns, got {described(columns)}.")
    return list(names)


class CodedTable:
    """A table whose columns are encoded as numbers lazily, when they are read.

    It has the shape and the names of the encoded columns; rows are read when they are needed.

    >>> import pyarrow as pa
    >>> coding = Coding.of(["region"], coded_columns({"region": ["north", "south"]}))
    >>> table = CodedTable(pa.table({"region": ["south", "south", "north"]}), coding)
    >>> table.column_names, table.shape
    (['region=north', 'region=south'], (3, 2))
    >>> table[:1].matrix()
    array([[0., 1.]])
    """

    def __init__(self, table: Any, coding: Coding) -> None:
        self.table, self.coding = table, coding

    @property
    def column_names(self) -> list[str]:
        """The names of the encoded columns."""
        return list(self.coding.names)

    @property
    def shape(self) -> tuple[int, int]:
        """The number of rows and encoded columns, if the table knows its shape."""
        return int(self.table.shape[0]), len(self.coding.names)

    def __getitem__(self, rows: slice) -> CodedTable:
        import pyarrow as pa

        if isinstance(self.table, pa.Table | pa.RecordBatch):
            start, stop, _ = rows.indices(self.table.num_rows)
            return CodedTable(self.table.slice(start, stop - start), self.coding)
        return CodedTable(self.table[rows], self.coding)

    def matrix(self) -> Floats:
        """Return the numbers."""
        return self.coding.matrix(self.table)

    def __arrow_c_stream__(self, requested_schema: Any = None) -> Any:
        import pyarrow as pa

        columns = [pa.array(column) for column in self.matrix().T]
        return pa.table(columns, names=self.column_names).__arrow_c_stream__(requested_schema)


def _plain_value(value: Any) -> Any:
    return value.item() if isinstance(value, np.generic) else value
