"""Cells of users and groups, computed from records in exact integers.

A *cell* is one user in one group: the number of records, and the sum of each value over them.
Values are clipped to their public range and rounded to whole steps of it before they are added up.
So the sums are exact, in whatever order records arrive and wherever they are stored. A crowd of
records becomes a crowd of cells, which stays where the records are stored; everything that a table
releases is computed from cells.

These are the public rules: a record whose group is not among the keys is in no cell; a value
outside its range is replaced by the nearest end, and NaN, if a crowd has one, by the middle.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np
from numpy.typing import NDArray

from quorate.core.users.crowd import Crowd
from quorate.core.users.data import UserData, numbered_records, ordered_users
from quorate.core.users.store import offsets_of
from quorate.data.by_group.background import in_background

__all__ = [
    "STEPS",
    "Cells",
    "GroupColumn",
    "GroupNumbers",
    "ToCells",
    "ValueColumn",
    "cells_of",
    "holders_of",
]

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]

STEPS = 2.0**36
"""A range has this many from its middle to its ends; 2^27 records of a cell stay below 2^63."""
# Floats about this one are whole numbers.
_WHOLE = np.float64(1.5 * 2.0**52)
# Sums of floats are exact up to here.
_EXACT = 2.0**53
# Up to this many cells per record a table of all cells is quicker than sorting the records.
_DENSE = 4
# This many rows at once stay in a processor's cache.
_BLOCK = 1 << 16

# What was read of the parts that are still there.
_SEEN_LAST: WeakKeyDictionary[UserData, Cells] = WeakKeyDictionary()

GroupNumbers = Callable[[Floats], Integers]
"""From rows of records to the number of each record's group, or -1 for none."""


@dataclass(frozen=True)
class GroupColumn:
    """Reads a column that already holds group numbers 0, 1, ...

    >>> GroupColumn(groups=3)(np.array([[1.0], [0.5], [7.0], [np.nan]])).tolist()
    [1, -1, -1, -1]
    """

    groups: int
    column: int = 0

    def __call__(self, rows: Floats) -> Integers:
        """Return the numbers; -1 for a value that is not a group number."""
        values = rows[:, self.column]
        known = (values >= 0) & (values < self.groups)
        numbers = np.where(known, values, -1.0).astype(np.int64)
        return np.where(numbers == values, numbers, -1)


@dataclass(frozen=True)
class ValueColumn:
    """A column of numbers with its public range.

    >>> column = ValueColumn(column=0, lower=0.0, upper=8.0)
    >>> (column.steps(np.array([8.0, 4.0, -5.0, 1e308])) * column.step).tolist()
    [4.0, 0.0, -4.0, 4.0]
    """

    column: int
    lower: float
    upper: float

    @property
    def middle(self) -> float:
        """The middle of the range, from which values are measured."""
        return self.lower / 2 + self.upper / 2

    @property
    def half_width(self) -> float:
        """The largest distance of a value from the middle."""
        return self.upper / 2 - self.lower / 2

    @property
    def step(self) -> float:
        """The step to which values are rounded."""
        return self.half_width / STEPS

    def steps(self, values: Floats) -> Floats:
        """Return each value's distance from the middle, rounded to whole steps."""
        found = np.empty(len(values))
        for start in range(0, len(values), _BLOCK):
            scaled = self._scaled(values[start : start + _BLOCK])
            np.rint(scaled, out=found[start : start + _BLOCK])
        return found

    def whole_steps(self, values: Floats) -> Integers:
        """Return the same as integers.

        Neighbouring floats between 2^52 and 2^53 differ by 1: adding a number there rounds it to
        the nearest integer (to even for ties), which is then read from the bits.
        """
        scaled = self._scaled(values)
        scaled += _WHOLE
        found = scaled.view(np.int64)
        found -= _WHOLE.view(np.int64)
        return found

    def _scaled(self, values: Floats) -> Floats:
        with np.errstate(all="ignore"):
            scaled = values - self.middle
            scaled /= self.step
            # Nothing to cut is by far the most usual; a NaN is not in any range.
            if not (scaled.min(initial=0.0) >= -STEPS and scaled.max(initial=0.0) <= STEPS):
                np.clip(scaled, -STEPS, STEPS, out=scaled)
                scaled[np.isnan(scaled)] = 0.0
            return scaled


@dataclass(frozen=True)
class ToCells:
    """Turns the records of a part into its cells: a change for ``Crowd.derive``.

    Each user's records become one row for each group of the user, in the order of the groups: the
    group, the number of records, the sum in steps of each column of ``sums``, and the user's own
    median in the group of each column of ``medians``.

    Examples
    --------
    >>> people = UserData.from_arrays([[0, 5.0], [1, 8.0], [1, 6.0]], users=["ann", "bob", "bob"])
    >>> value = ValueColumn(column=1, lower=0.0, upper=8.0)
    >>> cells = ToCells(GroupColumn(2), 2, sums=(value,))(people)
    >>> (cells.X * [1.0, 1.0, value.step]).tolist()
    [[0.0, 1.0, 1.0], [1.0, 2.0, 6.0]]
    """

    numbers: GroupNumbers
    groups: int
    sums: tuple[ValueColumn, ...] = ()
    medians: tuple[ValueColumn, ...] = ()

    def __call__(self, part: UserData) -> UserData:
        """Return the cells of the users of a part, under their keys."""
        rows, users = numbered_records(part)
        groups = self.numbers(rows)
        places = np.multiply(users, self.groups, dtype=np.int64)
        places += groups
        places[groups < 0] = -1
        columns = [rows[:, j] for j in range(rows.shape[1])]
        return self.in_turn(part, places, columns)[1]()

    def in_turn(
        self, people: Crowd, places: Integers, columns: Sequence[Floats]
    ) -> tuple[UserData, Callable[[], UserData]]:
        """Return cells with counts only, and a function that waits for the complete cells.

        Sums are computed in the background, so the counts can be used at once.

        Parameters
        ----------
        people : Crowd
            The users; their records are not read.
        places : array of integers
            The index of each record's user times the number of groups, plus the number of its
            group; -1 for a record without a group.
        columns : sequence of arrays
            The columns to which ``column`` of a :class:`ValueColumn` refers.
        """
        rows, size = len(places), people.n_users * self.groups
        steps = in_background(lambda: [c.steps(columns[c.column]) for c in self.sums], rows=rows)
        known: Any = slice(None)
        if places.min(initial=0) < 0:
            known = np.flatnonzero(places >= 0)
            places = places[known]
        cells: Integers | None = None
        if size > _DENSE * len(places):
            cells, places = np.unique(places, return_inverse=True)
            size = len(cells)
        sums = in_background(
            lambda: [_Sums.of(places, size, each[known]) for each in steps()], rows=rows
        )
        table = np.bincount(places, minlength=size)
        chosen: Any = slice(None)
        if cells is None:
            cells = chosen = np.flatnonzero(table > 0)
        counts = table[chosen]
        most = int(counts.max(initial=0))
        owners, held = np.divmod(cells, self.groups)
        offsets = offsets_of(np.bincount(owners, minlength=people.n_users))

        width = 2 + len(self.sums)
        matrix = np.empty((len(cells), width + len(self.medians)), order="F")
        matrix[:, 0], matrix[:, 1] = held, counts

        def made(matrix: Floats) -> UserData:
            return holders_of(Cells(owners, held, matrix, offsets), people)

        def whole() -> UserData:
            for place, each in enumerate(sums(), start=2):
                matrix[:, place] = each.exact(places, most)[chosen]
            for place, column in enumerate(self.medians, start=width):
                matrix[:, place] = _medians(places, counts, column, columns[column.column][known])
            return made(matrix)

        return made(matrix[:, :2]), whole


@dataclass(frozen=True, eq=False)
class Cells:
    """Cells of people, stored person by person.

    Attributes
    ----------
    owners : array of integers
        The number of each cell's person, in order.
    groups : array of integers
    X : array of shape (cells, columns)
        All columns, each contiguous in memory.
    starts : array of shape (people + 1,)
        The index of the first cell of each person, and the end.
    """

    owners: Integers
    groups: Integers
    X: Floats
    starts: Integers
    _known: dict[Hashable, Floats] = field(default_factory=dict)

    def weighed(self, values: Floats, weights: Floats) -> Floats:
        """Return each person's sum of ``values``, times the weights of their groups.

        A person's cells are added one after the other, so the sum does not depend on other people,
        to the last bit.

        >>> cells = cells_of(UserData([[1.0], [0.0], [2.0]], offsets=[0, 1, 3]))
        >>> cells.weighed(np.array([1.0, 2.0, 3.0]), np.array([1.0, 10.0, 100.0])).tolist()
        [10.0, 302.0]
        """
        from scipy import sparse

        shape = self.n_users, len(weights)
        return np.asarray(sparse.csr_array((values, *self._places), shape) @ weights)

    def totals(self, place: int) -> Floats:
        """Return each person's sum of a column of whole numbers over all their cells.

        They are computed as differences of running sums. These are integers, so the result is exact
        and does not depend on other people.

        >>> cells_of(UserData([[1.0, 5.0], [0.0, 2.0]], offsets=[0, 2])).totals(1).tolist()
        [7.0]
        """
        return self.known(place, lambda: self._running(place))

    def _running(self, place: int) -> Floats:
        running = np.zeros(len(self.X) + 1, dtype=np.int64)
        np.cumsum(self.X[:, place].astype(np.int64), out=running[1:])
        return np.diff(running[self.starts]).astype(np.float64)

    @property
    def n_users(self) -> int:
        """The number of users, including those without a cell."""
        return len(self.starts) - 1

    @cached_property
    def _places(self) -> tuple[NDArray[Any], NDArray[Any]]:
        kind = np.int32 if self.starts[-1] < 2**31 else np.int64
        return self.groups.astype(kind), self.starts.astype(kind)

    def known(self, what: Hashable, find: Callable[[], Floats]) -> Floats:
        """Return a cached number per person, or compute it now."""
        if what not in self._known:
            self._known[what] = find()
        return self._known[what]


def cells_of(part: UserData) -> Cells:
    """Return the user, the group and all columns of the cells of a part.

    >>> cells = cells_of(UserData([[1.0, 3.0], [0.0, 2.0]], offsets=[0, 1, 2]))
    >>> cells.owners.tolist(), cells.groups.tolist(), cells.X.tolist()
    ([0, 1], [1, 0], [[1.0, 3.0], [0.0, 2.0]])
    """
    found = _SEEN_LAST.get(part)
    if found is None:
        # A table looks at its cells half a dozen times, column by column.
        owners, groups = part.user_index().astype(np.int64), part.X[:, 0].astype(np.int64)
        found = Cells(owners, groups, np.asfortranarray(part.X), part.offsets)
        _SEEN_LAST[part] = found
    return found


def holders_of(cells: Cells, people: Crowd) -> UserData:
    """Return the people with their cells as records.

    >>> people = UserData.from_arrays([[5.0], [8.0]], users=["ann", "bob"])
    >>> cells = Cells(np.array([1]), np.array([0]), np.array([[0.0, 3.0]]), np.array([0, 0, 1]))
    >>> holders_of(cells, people).record_counts()
    array([0, 1])
    """
    found = ordered_users(cells.X, None, cells.starts, people.keys(), people.unit, None)
    _SEEN_LAST[found] = cells
    return found


@dataclass(frozen=True, eq=False)
class _Sums:
    """Sums of whole steps at each place, in floats: exact unless a place holds very many."""

    steps: Floats
    totals: Floats

    @classmethod
    def of(cls, places: Integers, size: int, steps: Floats) -> _Sums:
        totals = np.bincount(places, weights=steps, minlength=size)
        return cls(steps, np.asarray(totals, dtype=np.float64))

    def exact(self, places: Integers, most: int) -> NDArray[Any]:
        """Return the exact sums, if no position has more than ``most`` records."""
        if most * STEPS < _EXACT:
            return self.totals
        totals = np.zeros(len(self.totals), dtype=np.int64)
        np.add.at(totals, places, self.steps.astype(np.int64))
        return totals


def _medians(places: Integers, counts: Integers, column: ValueColumn, values: Floats) -> Floats:
    """Return the median of each cell: the midpoint of the two middle values if there are two."""
    values = np.clip(values, column.lower, column.upper)
    values[np.isnan(values)] = column.middle
    ordered = values[np.lexsort((values, places))]
    starts = np.cumsum(counts) - counts
    low, high = ordered[starts + (counts - 1) // 2], ordered[starts + counts // 2]
    return np.asarray(np.where(low == high, low, low / 2 + high / 2))
