"""Finite tables of predictions: any class that can be listed on a listed domain.

Mistakes of all hypotheses are computed by one histogram of a user's records over the domain and one
matrix product. Counts stay below 2**53, so the product is exact.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from quorate.exceptions import ParameterError
from quorate.learners.concepts.base import (
    Concept,
    ConceptClass,
    LabelledRecords,
    as_features,
    check_enumerable,
)
from quorate.learners.concepts.dimensions import Dimension, littlestone_or_bound, vc_or_bound

__all__ = ["FiniteTable", "TableRow", "votes_for"]

# Columns of the table that are converted to floats at a time.
_CHUNK_CELLS = 2**22

# machine: points that a sentence lists before it says "and so many more".
_LISTED = 6


def votes_for(votes: NDArray[np.int64], table: NDArray[np.int8]) -> NDArray[np.int64]:
    """Add up ``votes`` (users x points) where each row of ``table`` (hypotheses x points) is 1.

    >>> votes_for(np.array([[5, -1, 2]]), np.array([[1, 0, 1], [0, 1, 0]], dtype=np.int8))
    array([[ 7, -1]])
    """
    sums = np.empty((len(votes), len(table)), dtype=np.int64)
    weights = votes.astype(np.float64)
    step = max(1, _CHUNK_CELLS // max(1, table.shape[1]))
    for start in range(0, len(table), step):
        chunk = table[start : start + step].astype(np.float64)
        sums[:, start : start + step] = weights @ chunk.T
    return sums


@dataclass(frozen=True)
class TableRow(Concept):
    """One row of a table: 1 on some points of its domain, 0 on the others and outside.

    >>> print(FiniteTable([[0, 1, 0, 1]]).concept(0))
    Predict 1 if x is 1 or 3, else 0.
    """

    table: FiniteTable
    index: int

    def predict(self, X: ArrayLike) -> NDArray[np.int64]:
        """Predict 0 or 1 for every row of ``X``."""
        place = self.table.locate(as_features(X, n_features=self.table.n_features))
        labels = self.table.table[self.index].astype(np.int64)
        return np.where(place >= 0, labels[place], 0)

    def __str__(self) -> str:
        if self.table.names is not None:
            return f"Predict as {self.table.names[self.index]} does."
        ones = np.flatnonzero(self.table.table[self.index])
        if ones.size in (0, self.table.table.shape[1]):
            return f"Always predict {int(ones.size > 0)}."
        points = self.table.points[ones[:_LISTED]]
        words = [
            f"{row[0]:g}" if row.size == 1 else "(" + ", ".join(f"{v:g}" for v in row) + ")"
            for row in points
        ]
        if ones.size > _LISTED:
            words.append(f"one of {ones.size - _LISTED} more points")
        return f"Predict 1 if x is {' or '.join(words)}, else 0."


@dataclass(frozen=True, eq=False)
class FiniteTable(ConceptClass):
    """A class given by all its predictions on a finite public domain.

    A record whose features are not a point of the domain is ignored for all hypotheses.

    The dimensions are computed if this is within the limits of
    :func:`~quorate.learners.concepts.dimensions.vc_dimension`; otherwise both are bounded by log2
    of the size.

    Complexity
    ----------
    O(N log |X| + n |X| |H|) time, one matrix product.

    Parameters
    ----------
    table : array of 0 and 1
        Hypotheses in rows, points of the domain in columns.
    domain : array, optional
        One row of features per point; all rows are different. By default there is one feature with
        the points 0, 1, 2, ...
    names : sequence of str, optional
        One name per hypothesis.

    Examples
    --------
    >>> votes = FiniteTable([[0, 0, 1], [1, 0, 1], [1, 1, 0]], names=["a", "b", "c"])
    >>> votes.size, votes.vc_dimension, votes.littlestone_dimension
    (3, 1, 1)
    >>> votes.predict(1, [0, 1, 2])
    array([1, 0, 1])
    >>> print(votes.concept(1))
    Predict as b does.
    """

    table: NDArray[np.int8]
    domain: NDArray[np.float64] | None = field(default=None, kw_only=True)
    names: Sequence[str] | None = field(default=None, kw_only=True)

    def __post_init__(self) -> None:
        table = np.asarray(self.table)
        if table.ndim != 2 or 0 in table.shape:
            raise ParameterError(
                f"Expected a table with hypotheses in rows and points in columns, got "
                f"shape={table.shape}."
            )
        if not np.isin(table, (0, 1)).all():
            raise ParameterError("Expected a table of 0 and 1, got other predictions.")
        check_enumerable(len(table), name="this table", instead="Keep only its distinct labelings.")
        object.__setattr__(self, "table", _frozen(table.astype(np.int8)))
        if self.domain is not None:
            object.__setattr__(
                self, "domain", _frozen(_checked_domain(self.domain, table.shape[1]))
            )
        if self.names is not None:
            if isinstance(self.names, str) or len(self.names) != len(table):
                raise ParameterError(f"Expected {len(table)} names, one a hypothesis.")
            object.__setattr__(self, "names", tuple(self.names))

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, FiniteTable):
            return NotImplemented
        return (
            self.names == other.names
            and np.array_equal(self.table, other.table)
            and np.array_equal(self.points, other.points)
        )

    def __hash__(self) -> int:
        return hash((self.names, self.table.tobytes(), self.points.tobytes()))

    @cached_property
    def errs_at_most_half(self) -> bool:
        """Whether the table contains a row and its opposite."""
        rows = {row.tobytes() for row in self.table}
        return any((1 - row).astype(row.dtype).tobytes() in rows for row in self.table)

    @cached_property
    def points(self) -> NDArray[np.float64]:
        """The domain: one row of features per point."""
        if self.domain is not None:
            return self.domain
        return _frozen(np.arange(self.table.shape[1], dtype=np.float64)[:, np.newaxis])

    @property
    def size(self) -> int:
        """The number of hypotheses; equal rows are counted separately."""
        return len(self.table)

    @property
    def n_features(self) -> int:
        """The number of features of a point."""
        return int(self.points.shape[1])

    @cached_property
    def _vc(self) -> Dimension:
        return vc_or_bound(self.table, size=self.size)

    @cached_property
    def _littlestone(self) -> Dimension:
        return littlestone_or_bound(self.table, size=self.size)

    def concept(self, index: int) -> Concept:
        """Return the rule in row ``index``."""
        return TableRow(table=self, index=self._check_index(index))

    def locate(self, X: NDArray[Any]) -> NDArray[np.int64]:
        """Return the index of each row of ``X`` in the domain, or -1.

        >>> FiniteTable([[0, 1]], domain=[[5.0, 1.0], [5.0, 2.0]]).locate(
        ...     np.array([[5.0, 2.0], [6.0, 1.0]])
        ... )
        array([ 1, -1])
        """
        # Column by column, (what the columns so far are) and (this value) become one number.
        known = np.zeros(len(self.points), dtype=np.int64)
        place = np.zeros(len(X), dtype=np.int64)
        for column in range(self.points.shape[1]):
            values, code = np.unique(self.points[:, column], return_inverse=True)
            pairs, known = np.unique(known * len(values) + code, return_inverse=True)
            found, value = _look_up(values, X[:, column])
            here, place = _look_up(pairs, np.where(found, place * len(values) + value, -1))
            place = np.where(here, place, -len(self.points) * len(self.points))
        order = np.argsort(known)
        return np.where(place >= 0, order[np.maximum(place, 0)], -1)

    def _count_mistakes(self, records: LabelledRecords) -> NDArray[np.int64]:
        place = self.locate(records.X)
        inside = place >= 0
        if not inside.all():
            records = LabelledRecords(
                X=records.X[inside],
                y=records.y[inside],
                user=records.user[inside],
                n_users=records.n_users,
            )
            place = place[inside]
        votes = records.count_by_cell(place, n_cells=self.table.shape[1])
        # Wrong: label 1 where the table has 0, label 0 where it has 1.
        return records.positives()[:, np.newaxis] - votes_for(votes, self.table)


def _frozen(array: NDArray[Any]) -> NDArray[Any]:
    copy = np.array(array)
    copy.setflags(write=False)
    return copy


def _checked_domain(domain: ArrayLike, points: int) -> NDArray[np.float64]:
    """Return the domain as a table of different finite rows; everything here is public."""
    rows = np.asarray(domain, dtype=np.float64)
    rows = rows[:, np.newaxis] if rows.ndim == 1 else rows
    if rows.ndim != 2 or len(rows) != points or rows.shape[1] == 0:
        raise ParameterError(
            f"Expected a domain with one row a point ({points} points), got shape={rows.shape}."
        )
    if not np.isfinite(rows).all():
        raise ParameterError("Expected finite features in domain, got NaN or infinity.")
    if len(np.unique(rows, axis=0)) != points:
        raise ParameterError("Expected different points in domain, got duplicates; drop them.")
    # Adding zero turns -0.0 into 0.0, so that equal numbers have equal bytes.
    return rows + 0.0


def _look_up(
    values: NDArray[Any], wanted: NDArray[Any]
) -> tuple[NDArray[np.bool_], NDArray[np.int64]]:
    """Return whether each wanted number is among the sorted values, and where."""
    place = np.minimum(np.searchsorted(values, wanted), len(values) - 1)
    return values[place] == wanted, place.astype(np.int64)
