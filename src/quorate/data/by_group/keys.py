"""The groups of a table: a public list of keys, or popular keys found privately.

The groups of a table are an output like its cells. They are listed beforehand (one list for each
column; all combinations are in the table, also empty ones) or found privately
(:mod:`quorate.tabulate.popular_keys`). They are never taken from the records directly. A record
whose key is missing, or not in the list, belongs to no group.
"""

from __future__ import annotations

import datetime
import itertools
import math
import numbers
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from quorate._validate import described
from quorate.data.by_group.short_texts import ShortTexts
from quorate.data.columns import kinds
from quorate.data.columns.id_forms import is_array
from quorate.exceptions import ParameterError, SchemaError, UnboundedContributionError

__all__ = [
    "LabelNumbers",
    "NumberKeys",
    "as_keys",
    "as_rows",
    "column_places",
    "key_rows",
]

Floats = NDArray[np.float64]
Labels = tuple[Any, ...]
Row = tuple[Any, ...]

_MOST_GROUPS = 2**24


def as_keys(keys: Any, by: tuple[str, ...]) -> tuple[Labels, ...]:
    """Return the public labels of each column of ``by``.

    >>> as_keys(["a", "b"], ("city",))
    (('a', 'b'),)
    >>> as_keys({"year": range(2020, 2022), "city": ["a"]}, ("city", "year"))
    (('a',), (2020, 2021))
    """
    if keys is None:
        raise UnboundedContributionError(
            "A table needs keys=, the public list of its groups; it must not be taken from the "
            "data. With delta > 0 popular ones can be found privately: pass keys='popular'."
        )
    if isinstance(keys, Mapping):
        if set(keys) != set(by):
            raise ParameterError(
                f"Expected keys for the columns {', '.join(by)}, got keys for "
                f"{', '.join(sorted(map(str, keys)))}."
            )
        lists = [keys[name] for name in by]
    elif len(by) == 1:
        lists = [keys]
    elif (rows := as_rows(keys, by)) is not None:
        lists = [list(dict.fromkeys(column)) for column in zip(*rows, strict=True)]
    else:
        raise ParameterError(
            f"Expected keys as a dictionary with one list for each of {', '.join(by)}, or as rows, "
            f"got {described(keys)}."
        )
    found = tuple(_labels(labels) for labels in lists)
    if math.prod(map(len, found)) > _MOST_GROUPS:
        raise ParameterError(f"Expected at most {_MOST_GROUPS} groups; name fewer keys.")
    return found


def as_rows(keys: Any, by: tuple[str, ...]) -> tuple[Row, ...] | None:
    """Return the combinations of labels if ``keys`` lists them; None if it lists labels.

    >>> as_rows([("de", "Bonn"), ("fr", "Lyon")], ("country", "city"))
    (('de', 'Bonn'), ('fr', 'Lyon'))
    >>> as_rows(["de", "fr"], ("country",)) is None
    True
    """
    if len(by) < 2 or not isinstance(keys, list | tuple):
        return None
    right = all(isinstance(row, list | tuple) and len(row) == len(by) for row in keys)
    rows = tuple(tuple(_plain(label) for label in row) for row in keys) if right else ()
    strange = [label for row in rows for label in row if label is None or label != label]
    if not rows or len(set(rows)) < len(rows) or strange:
        raise ParameterError(
            f"Expected keys to be different rows of {len(by)} labels, one for each of "
            f"{', '.join(by)}, none missing; or a dictionary with one list for each column."
        )
    return rows


def _plain(label: Any) -> Any:
    return label.item() if isinstance(label, np.generic) else label


def _labels(labels: Any) -> Labels:
    if not isinstance(labels, list | tuple | range) and is_array(labels):
        labels = _listed(labels)
    if not isinstance(labels, list | tuple | range):
        raise ParameterError(
            "Expected keys to be a list of labels, or an array, a Series or an Index of them, got "
            f"{described(labels)}."
        )
    plain = tuple(map(_plain, labels))
    strange = [label for label in plain if label is None or label != label]
    if not plain or len(set(plain)) < len(plain) or strange:
        raise ParameterError("Expected keys to be different labels, at least one, none missing.")
    return plain


def _listed(labels: Any) -> list[Any] | None:
    """Return public labels in an array, a Series or an Index as a list; None for a matrix."""
    import pyarrow as pa

    if isinstance(labels, np.ndarray) and labels.dtype.kind not in "mM":
        return list(labels.tolist()) if labels.ndim == 1 else None
    found = None
    with suppress(Exception):
        found = pa.array(labels)
    if found is None or isinstance(found.type, pa.BaseExtensionType):
        raise ParameterError(
            f"Expected keys= as text, numbers or dates, got a {type(labels).__name__} of something "
            "else; convert periods with .to_timestamp()."
        )
    # NumPy gives dates in nanoseconds as integers, Arrow as dates.
    return list(found.to_pylist())


def key_rows(labels: tuple[Labels, ...]) -> tuple[Row, ...]:
    """Return all combinations of labels; the last column varies fastest.

    >>> key_rows((("a", "b"), (1, 2)))
    (('a', 1), ('a', 2), ('b', 1), ('b', 2))
    """
    return tuple(itertools.product(*labels))


def column_places(column: Any, labels: Labels, *, name: str) -> NDArray[np.int64]:
    """Return the index of each entry of an Arrow column among ``labels``, or -1.

    Whether labels fit the column is decided by declared types, never by an entry.

    >>> import pyarrow as pa
    >>> column_places(pa.array(["b", None, "z", "a"]), ("a", "b"), name="city").tolist()
    [1, -1, -1, 0]
    """
    import pyarrow as pa

    if pa.types.is_string_view(column.type):
        short = ShortTexts.of(tuple(map(str, labels)))
        if short is not None:
            return short.places(column)
    chunks = column.chunks if isinstance(column, pa.ChunkedArray) else [column]
    kind = column.type.value_type if pa.types.is_dictionary(column.type) else column.type
    known = _known(labels, kind)
    if known is None or _found(pa.array([], kind), known) is None:
        word = kinds.kind_of(kind)
        remedy = "pass keys of that type"
        if isinstance(kind, pa.BaseExtensionType):
            remedy = "convert the column to dates (.dt.start_time) or to text (.astype(str))"
        raise SchemaError(
            f"Expected keys= of the type of the column {name!r}, which holds {word}; {remedy}."
        )
    return np.concatenate([np.empty(0, np.int64), *(_places(chunk, known) for chunk in chunks)])


def _known(labels: Labels, kind: Any) -> Any:
    """Return public labels as an Arrow array of a type, texts as bytes; None if they do not fit.

    >>> import pyarrow as pa
    >>> _known(("a", 7), pa.string()).to_pylist(), _known(("a",), pa.int64())
    ([b'a', b'7'], None)
    """
    import pyarrow as pa

    if kinds.is_text(kind):
        octets = [
            x if isinstance(x, bytes) else str(x).encode("utf-8", "surrogatepass") for x in labels
        ]
        return pa.array(octets, pa.large_binary())
    known = [_moment(label) for label in labels] if pa.types.is_temporal(kind) else list(labels)
    if any(label is None for label in known):
        return None
    with suppress(pa.ArrowException, TypeError, ValueError, OverflowError):
        return pa.array(known, kind)
    return None


def _moment(label: Any) -> Any:
    """Return a date as a date and time; None for a number, which Arrow would read as ticks.

    >>> _moment("2020-01-02"), _moment(7)
    (datetime.datetime(2020, 1, 2, 0, 0), None)
    """
    if isinstance(label, numbers.Real):
        return None
    if isinstance(label, str):
        with suppress(ValueError):
            return datetime.datetime.fromisoformat(label)
        return None
    if isinstance(label, datetime.date) and not isinstance(label, datetime.datetime):
        return datetime.datetime.combine(label, datetime.time())
    return label


def _places(chunk: Any, known: Any) -> NDArray[np.int64]:
    """Return the index of each entry of an Arrow array among ``known``, or -1."""
    import pyarrow as pa

    if pa.types.is_dictionary(chunk.type) and len(chunk.dictionary) <= len(chunk):
        # A short dictionary holds each label once: look these up, and follow the indices.
        table = np.append(_places(chunk.dictionary, known), -1)
        last = len(table) - 1
        at = chunk.indices.cast(pa.int64(), safe=False).fill_null(last).to_numpy()
        return table[np.where((at < 0) | (at > last), last, at)]
    found = _found(kinds.decoded(chunk), known).fill_null(-1).to_numpy(zero_copy_only=False)
    return np.asarray(found, dtype=np.int64)


def _found(column: Any, known: Any) -> Any:
    """Return the index of each entry among ``known``; None if Arrow cannot compare the type.

    Texts are compared as bytes: they need not be valid UTF-8, and this is not checked.
    """
    import pyarrow as pa
    import pyarrow.compute as pc

    with suppress(pa.ArrowNotImplementedError):
        return pc.index_in(
            kinds.as_octets(column) if kinds.is_text(column.type) else column, value_set=known
        )
    return None


@dataclass(frozen=True)
class NumberKeys:
    """Finds the group of each row of numbers by looking up its labels in a table.

    Parameters
    ----------
    columns : tuple of int
    labels : tuple of tuples of float
        The labels of each column.
    rows : tuple of tuples of float
        The groups in their order, with one label for each column.
    others : bool, default=False
        Whether all other keys, which must be numbers, form an additional last group.

    Examples
    --------
    >>> keys = NumberKeys((0, 1), ((3.0, 5.0), (1.0, 2.0)), ((3.0, 2.0), (5.0, 1.0)))
    >>> keys(np.array([[3.0, 2.0], [3.0, 1.0], [5.0, 1.0], [4.0, 1.0], [np.nan, 1.0]])).tolist()
    [0, -1, 1, -1, -1]
    """

    columns: tuple[int, ...]
    labels: tuple[tuple[float, ...], ...]
    rows: tuple[tuple[float, ...], ...]
    others: bool = False

    def __call__(self, rows: Floats) -> NDArray[np.int64]:
        """Return the number of the group of each row, or -1."""
        found = self._named(rows)
        if self.others:
            # Labels are whole numbers; all else is missing.
            keys = rows[:, self.columns]
            known = (np.isfinite(keys) & (np.rint(keys) == keys)).all(axis=1)
            found = np.where((found < 0) & known, len(self.rows), found)
        return found

    def _named(self, rows: Floats) -> NDArray[np.int64]:
        sizes = [len(labels) for labels in self.labels]
        table = np.full(sizes, -1, dtype=np.int64)
        places = [{label: i for i, label in enumerate(labels)} for labels in self.labels]
        for number, row in enumerate(self.rows):
            table[tuple(at[label] for at, label in zip(places, row, strict=True))] = number
        found, known = np.zeros(len(rows), np.int64), np.ones(len(rows), np.bool_)
        for column, labels in zip(self.columns, self.labels, strict=True):
            if not labels:
                return np.full(len(rows), -1, dtype=np.int64)
            order = np.argsort(labels, kind="stable")
            values = rows[:, column]
            at = np.minimum(np.searchsorted(np.array(labels)[order], values), len(labels) - 1)
            place = order[at]
            known &= np.array(labels)[place] == values
            found = found * len(labels) + place
        return np.where(known, table.ravel()[found], -1)


class LabelNumbers:
    """Labels that are stored as numbers: whole numbers are labels, other numbers are not.

    >>> LabelNumbers().label(3.0), LabelNumbers().label(2.5)
    (3, None)
    """

    def label(self, number: float) -> Any:
        """Return the label that a number in the column stands for."""
        return int(number) if float(number).is_integer() and abs(number) < 2**53 else None

    def number(self, label: Any) -> float:
        """Return the number of a label."""
        return float(label)

    def words(self) -> NDArray[np.uint64] | None:
        """Return the text of each label; None if the numbers are the labels themselves."""
        return None
