"""The records of a table whose groups are known; they are read when cells are needed.

Mostly they are counted as they are read, block by block
(:mod:`quorate.data.by_group.filling`). If the table of all cells would be much longer than the
records, or if medians are needed, all records are read first.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from quorate.core.users.crowd import Crowd
from quorate.core.users.data import UserData
from quorate.data.by_group.background import in_background
from quorate.data.by_group.filling import Block, Filled, fill
from quorate.data.by_group.person_cells import Cells, ToCells, holders_of
from quorate.data.columns.ids import Groups
from quorate.data.columns.seats import Seats

__all__ = ["FrameRecords"]

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]

# A table of all cells is filled if it has at most this many cells per record.
_ROOMY = 2


@dataclass(frozen=True, eq=False)
class FrameRecords:
    """Records of a data frame, and the functions that read them.

    Parameters
    ----------
    table : Arrow table or None
        None if no column is read.
    seats : Seats
        The user of each row, as an array index.
    width : int
        The number of value columns.
    numbers : callable
        Returns the group number of each row (-1 for none) and the values, column by column, for
        this many rows of an Arrow table.
    grouped : callable
        Groups ids into people, and refuses invalid ids.
    """

    table: Any
    seats: Seats
    width: int
    numbers: Callable[[Any, int], tuple[Integers, list[Floats]]]
    grouped: Callable[[Floats, Groups], Crowd]

    def people(self) -> Crowd:
        """Return the users, without their records."""
        return self._under(self.seats.numbered()[1])

    def cells_in_turn(self, change: ToCells) -> tuple[UserData, Callable[[], UserData]]:
        """Return cells with counts only, and a function that waits for cells with all sums."""
        size = (self.seats.size + 1) * (change.groups + 1)
        filled = None
        if not change.medians and size <= _ROOMY * len(self.seats):
            filled = self._filled(change)
        if filled is not None:
            cells = self._made(filled)
            return cells, lambda: cells
        return self._one_by_one(change)

    def _under(self, people: Groups) -> Crowd:
        # Who there is does not depend on which of their records are of any use.
        return self.grouped(np.empty((0, max(1, self.width))), people)

    def _filled(self, change: ToCells) -> Filled | None:
        def read(rows: slice) -> Block:
            length = rows.stop - rows.start
            part = None if self.table is None else self.table.slice(rows.start, length)
            groups, values = self.numbers(part, length)
            if groups.min(initial=0) < 0:
                groups = np.where(groups < 0, change.groups, groups)
            return groups, values

        return fill(
            self.seats.at,
            read,
            rows=len(self.seats),
            seats=self.seats.size,
            groups=change.groups,
            sums=change.sums,
        )

    def _made(self, filled: Filled) -> UserData:
        people = self._under(self.seats.people(filled.taken))
        matrix = np.empty((len(filled.owners), 2 + len(filled.sums)), order="F")
        for place, column in enumerate((filled.groups, filled.counts, *filled.sums)):
            matrix[:, place] = column
        return holders_of(Cells(filled.owners, filled.groups, matrix, filled.starts), people)

    def _one_by_one(self, change: ToCells) -> tuple[UserData, Callable[[], UserData]]:
        rows = len(self.seats)
        waiting = in_background(lambda: self.numbers(self.table, rows), rows=rows)
        places, people = self.seats.numbered()
        places *= change.groups
        groups, values = waiting()
        # Without a person a place is negative and stays so: a group's number is less than a step.
        places += groups
        if groups.min(initial=0) < 0:
            places[groups < 0] = -1
        return change.in_turn(self._under(people), places, values)
