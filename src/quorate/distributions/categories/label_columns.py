"""Columns of labels of any type, and the indices of their values among public categories.

A list and an array of objects declare no type: they are read cell by cell. Other arrays, and tables
with the Arrow interface, declare a type. Errors depend on shapes and types, never on the value of a
cell.
"""

from __future__ import annotations

import numbers
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from quorate._validate import described
from quorate.data.columns import cells, kinds
from quorate.data.columns.id_forms import arrow_columns
from quorate.data.frames import floats, open_frame
from quorate.data.tables import as_labels, column_names, without_rows
from quorate.exceptions import SchemaError

__all__ = ["are_numbers", "check_columns", "label_columns", "label_places", "number_places"]

Floats = NDArray[np.float64]


def label_columns(X: Any) -> list[Any]:
    """Return the columns of a table, or a vector as its only column; no cell is read.

    >>> label_columns([["a", 1], ["b", 2]])
    [array(['a', 'b'], dtype=object), array([1, 2], dtype=object)]
    """
    if cells.is_list(X):
        return cells.columns_of_rows(X)
    if column_names(X) is not None:
        return list(open_frame(X).columns)
    declared = arrow_columns(X)
    if declared is not None:
        return declared
    array = np.asarray(X)
    if array.ndim not in (1, 2):
        raise SchemaError(f"Expected columns of labels, got {described(X)}.")
    return [array] if array.ndim == 1 else list(array.T)


def check_columns(X: Any, categories: Sequence[tuple[Any, ...]]) -> None:
    """Refuse a wrong number of columns or an unsuitable type; no cell is read.

    >>> check_columns(np.array(["a", "b"]), [("a", "b")])
    """
    empty = without_rows(X)
    found = label_columns(X if empty is None else empty)
    if len(found) != len(categories):
        several = "one column" if len(categories) == 1 else f"{len(categories)} columns"
        raise SchemaError(f"Expected {several} of labels, got another number of them.")
    if empty is not None:
        for column, labels in zip(found, categories, strict=True):
            label_places(column, labels)


def are_numbers(labels: Sequence[Any]) -> bool:
    """Return whether all labels are numbers, so that a column of numbers can hold them.

    >>> are_numbers([1, 2.5]), are_numbers(["1", 2])
    (True, False)
    """
    return all(isinstance(c, numbers.Real) and not isinstance(c, bool) for c in labels)


def label_places(column: Any, labels: tuple[Any, ...]) -> Floats:
    """Return the index of each entry of a column among public labels; NaN for other entries.

    >>> label_places(np.array(["b", "z"]), ("a", "b")).tolist()
    [1.0, nan]
    """
    if not are_numbers(labels):
        return as_labels(column, labels)
    places = number_places(_as_numbers(column), np.array(labels, dtype=np.float64))
    return np.where(places < 0, np.nan, places)


def number_places(values: Floats, labels: Floats) -> NDArray[np.int64]:
    """Return the index of each value among ``labels``, or -1.

    >>> number_places(np.array([2.0, np.nan, 7.0]), np.array([7.0, 2.0])).tolist()
    [1, -1, 0]
    """
    order = np.argsort(labels, kind="stable")
    found = np.minimum(np.searchsorted(labels[order], values), labels.size - 1)
    places = order[found]
    return np.where(labels[places] == values, places, -1).astype(np.int64)


def _as_numbers(column: Any) -> Floats:
    """Return a column of any type as floats; NaN for a value that is not a number."""
    if not isinstance(column, np.ndarray):
        return np.concatenate([np.empty(0), *map(_of_arrow, column.chunks)])
    if isinstance(column, np.ma.MaskedArray) and column.dtype.kind in "fiub":
        return np.asarray(cells.as_array(column), dtype=np.float64)
    if column.dtype.kind in "fiub":
        return column.astype(np.float64)
    return cells.numbers(column.astype(object))


def _of_arrow(chunk: Any) -> Floats:
    chunk = kinds.decoded(chunk)
    if kinds.is_numeric(chunk.type):
        return floats(chunk)
    if not kinds.is_text(chunk.type):
        raise SchemaError(
            f"Expected numbers, as the categories are, or text, got {kinds.kind_of(chunk.type)}."
        )
    return cells.numbers(cells.objects(kinds.held(kinds.as_octets(chunk))))
