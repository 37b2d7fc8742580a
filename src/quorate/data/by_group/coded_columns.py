"""Groups and conditions on columns of a crowd: numbers, or encoded categories.

A crowd has numbers only. A column of labels that was read with ``categories={"clinic": ["north",
"south"]}`` became one column of zeros and ones for each label, ``clinic=north`` and
``clinic=south`` (:mod:`quorate.data.coding`). A table can still be grouped by ``clinic``.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from quorate.data.by_group.conditions import Condition
from quorate.data.by_group.keys import Labels, NumberKeys
from quorate.exceptions import SchemaError

__all__ = ["CategoryColumns", "ColumnHolds", "Combined", "condition_on", "key_column"]

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]


@dataclass(frozen=True)
class CategoryColumns:
    """Finds which of several columns of zeros and ones has the one.

    >>> CategoryColumns((1, 2))(np.array([[5.0, 0.0, 1.0], [5.0, 0.0, 0.0]])).tolist()
    [1, -1]
    """

    columns: tuple[int, ...]

    def __call__(self, rows: Floats) -> Integers:
        """Return the index of the first column with a one in each row, or -1."""
        found = np.full(len(rows), -1, dtype=np.int64)
        for place, column in reversed(list(enumerate(self.columns))):
            found[rows[:, column] == 1.0] = place
        return found


@dataclass(frozen=True)
class Combined:
    """Numbers all combinations of the labels of several columns; the last column varies fastest.

    >>> both = Combined((CategoryColumns((0, 1)), CategoryColumns((2, 3, 4))), (2, 3))
    >>> both(np.array([[0.0, 1.0, 0.0, 0.0, 1.0], [0.0, 0.0, 1.0, 0.0, 0.0]])).tolist()
    [5, -1]
    """

    columns: tuple[CategoryColumns | NumberKeys, ...]
    sizes: tuple[int, ...]

    def __call__(self, rows: Floats) -> Integers:
        """Return the number of each row's combination, or -1."""
        found, known = np.zeros(len(rows), np.int64), np.ones(len(rows), np.bool_)
        for column, size in zip(self.columns, self.sizes, strict=True):
            place = column(rows)
            known &= place >= 0
            found = found * size + place
        return np.where(known, found, -1)


@dataclass(frozen=True)
class ColumnHolds:
    """Returns which rows satisfy a condition on a numeric column.

    >>> ColumnHolds(0, Condition("age", lower=18.0))(np.array([[17.0], [18.0]])).tolist()
    [False, True]
    """

    column: int
    condition: Condition

    def __call__(self, rows: Floats) -> NDArray[np.bool_]:
        """Return whether each row satisfies the condition."""
        return self.condition.holds(rows[:, self.column])


@dataclass(frozen=True)
class _InCategories:
    """Returns which rows have one of several labels of an encoded column."""

    columns: CategoryColumns

    def __call__(self, rows: Floats) -> NDArray[np.bool_]:
        return self.columns(rows) >= 0


def key_column(
    names: Sequence[str], column: str, labels: Labels
) -> tuple[CategoryColumns | NumberKeys, tuple[Any, ...]]:
    """Return the labels of a column of a crowd, and a function that finds each row's label.

    >>> key_column(["age", "clinic=north"], "clinic", ("north",))[0]
    CategoryColumns(columns=(1,))
    """
    if column not in names:
        return _categories(names, column, labels), labels
    _refuse_texts(column, labels)
    numbers = tuple(float(label) for label in labels)
    place = names.index(column)
    return NumberKeys((place,), (numbers,), tuple((n,) for n in numbers)), labels


def condition_on(names: Sequence[str], condition: Condition) -> ColumnHolds | _InCategories:
    """Return a function that returns which rows of a crowd fulfil a condition.

    >>> condition_on(["age"], Condition("age", lower=18.0)).column
    0
    """
    labels = condition.labels or ()
    if condition.column not in names:
        return _InCategories(_categories(names, condition.column, labels))
    _refuse_texts(condition.column, labels)
    return ColumnHolds(names.index(condition.column), condition)


def _categories(names: Sequence[str], column: str, labels: Labels) -> CategoryColumns:
    wanted = [f"{column}={label}" for label in labels]
    absent = [label for label, name in zip(labels, wanted, strict=True) if name not in names]
    if absent or not labels:
        raise SchemaError(
            f"Expected a column {column!r}, or its categories, among {sorted(names)}. A UserData "
            f"holds numbers; to group it by labels, read the table with categories="
            f"{{{column!r}: {list(labels) or ['...']}}}."
        )
    return CategoryColumns(tuple(names.index(name) for name in wanted))


def _refuse_texts(column: str, labels: Labels) -> None:
    if any(isinstance(label, str) for label in labels):
        raise SchemaError(
            f"The column {column!r} of a UserData holds numbers: expected numbers as its keys and "
            f"conditions, got text. To group by labels, read the table with categories="
            f"{{{column!r}: {list(labels)}}}, or pass the table itself with users=."
        )
