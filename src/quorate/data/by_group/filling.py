r"""All cells of all people as one table, filled block by block in one pass over the records.

If users and groups are so few that the table of all cells is about as large as the records, it is
filled directly. Nothing is sorted, and no array of the length of the records is written. Two
threads process blocks in turn, each with a table of its own, and the tables are added up. All
entries are integers, so it does not matter which thread processed which block.

Counts share a table with the sums of the first column. A record with the value s, in whole steps
from -S to S, adds :math:`2^{50} + S + s`, with :math:`S = 2^{36}`. So a cell of c records contains
:math:`2^{50} c + u` with :math:`0 \le u \le 2^{37} c`, and count and sum can be extracted unless
:math:`c \ge 2^{13}`.

Why this is seen
----------------
Arithmetic is modulo :math:`2^{64}`. The extracted count is :math:`c + \lfloor u/2^{50} \rfloor`,
modulo :math:`2^{14}`. If the counts of all cells add up to the number N of records, the count is c
for every cell. Otherwise some cell would be too small by :math:`2^{14}`, and other cells together
too large by as much. But all cells together are too large by at most :math:`2^{-13} N`, which is
less if :math:`N < 2^{27}`. So a table whose counts add up to N is exact; any other is discarded,
and the sums are computed in another way. Both ways give the same cells; only the time differs.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from quorate.core.users.store import offsets_of
from quorate.data.by_group.background import with_a_thread
from quorate.data.by_group.person_cells import STEPS, ValueColumn
from quorate.data.by_group.reused_memory import keep_freed_memory

__all__ = ["Filled", "add_into", "fill"]

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]
Block = tuple[Integers, Sequence[Floats]]

_COUNT = 50
_MOST_ROWS = 1 << 27
# This many rows at once: fewer would stay in a processor's cache, and keep threads waiting for
# turns.
_BLOCK = 1 << 17


@dataclass(frozen=True, eq=False)
class Filled:
    """The records of every person in each group, counted and summed.

    Attributes
    ----------
    taken : array of bool, one per possible person
        Whether the person has any record, in any group.
    owners : array of integers
        The index of each cell's person, among persons with records.
    groups : array of integers
    starts : array of integers
        The index of the first cell of each person, followed by the end.
    counts : array of integers
    sums : list of arrays of integers
        In whole grid steps.
    """

    taken: NDArray[np.bool_]
    owners: Integers
    groups: Integers
    starts: Integers
    counts: Integers
    sums: list[Integers]


def add_into(table: Integers, rows: Integers, columns: Integers, values: Integers) -> None:
    """Add ``values`` to the cells (row, column) of a table; all of them must be inside it.

    >>> table = np.zeros((2, 3), dtype=np.int64)
    >>> add_into(table, np.array([0, 1, 0]), np.array([2, 0, 2]), np.array([5, 7, 1]))
    >>> table.tolist()
    [[0, 0, 6], [7, 0, 0]]
    """
    try:
        # What scipy makes dense arrays with; unlike numpy's it lets other threads work meanwhile.
        from scipy.sparse._sparsetools import coo_todense
    except ImportError:
        np.add.at(table, (rows, columns), values)
        return
    coo_todense(*table.shape, len(rows), rows, columns, values, table.ravel(), 0)


def fill(
    seat: Callable[[slice], Integers],
    read: Callable[[slice], Block],
    *,
    rows: int,
    seats: int,
    groups: int,
    sums: tuple[ValueColumn, ...],
) -> Filled | None:
    """Return the cells of records, read block by block; None if some cell would overflow.

    Parameters
    ----------
    seat : callable
        Returns the table row of each record in a slice; ``seats`` for records without a user.
    read : callable
        Returns the group numbers of records (``groups`` for none) and their values, column by
        column.
    rows : int
        The number of records.
    seats, groups : int
    sums : tuple of ValueColumn
        The columns to add up.

    Examples
    --------
    >>> seats, groups = np.array([0, 2, 2, 1]), np.array([1, 0, 0, 2])
    >>> found = fill(
    ...     seats.__getitem__, lambda at: (groups[at], []), rows=4, seats=3, groups=2, sums=()
    ... )
    >>> found.owners.tolist(), found.groups.tolist(), found.counts.tolist()
    ([0, 2], [1, 0], [1, 2])
    """
    if rows >= _MOST_ROWS:
        return None
    # One value a record adds to each table: what is added up, or else nothing but the record.
    columns = sums or (None,)

    def added(block: slice) -> tuple[Integers, list[Integers]]:
        held, values = read(block)
        return held, [
            _added(column, values, len(held), counted=place == 0)
            for place, column in enumerate(columns)
        ]

    blocks = [slice(start, min(start + _BLOCK, rows)) for start in range(0, rows, _BLOCK)]
    keep_freed_memory()
    waiting = with_a_thread(added, blocks, rows=rows)
    tables = [np.zeros((seats + 1, groups + 1), dtype=np.int64) for _ in columns]
    for block, (held, steps) in waiting:
        for table, each in zip(tables, steps, strict=True):
            add_into(table, seat(block), held, each)
    return _read_off(tables, rows, seats, groups, sums=bool(sums))


def _added(
    column: ValueColumn | None, values: Sequence[Floats], size: int, *, counted: bool
) -> Integers:
    """Return the number that each record adds to a table."""
    if column is None:
        return np.full(size, 1 << _COUNT, dtype=np.int64)
    steps = column.whole_steps(values[column.column])
    if counted:
        steps += (1 << _COUNT) + int(STEPS)
    return steps


def _read_off(
    tables: list[Integers], rows: int, seats: int, groups: int, *, sums: bool
) -> Filled | None:
    flat = [table.ravel() for table in tables]
    # Nobody's records come last.
    end, width = seats * (groups + 1), groups + 1
    cells = np.flatnonzero(flat[0][:end] != 0)
    # Every cell is in the table, so nothing is clipped: it is the quickest way to look up.
    first, *found = (np.take(table, cells, mode="clip") for table in flat)
    counts = (first.view(np.uint64) >> np.uint64(_COUNT)).view(np.int64)
    nobody = int((flat[0][end:].view(np.uint64) >> np.uint64(_COUNT)).sum())
    if int(counts.sum()) + nobody != rows:
        return None
    if sums:
        room = np.multiply(counts, (1 << _COUNT) + int(STEPS))
        first -= room
        found.insert(0, first)
    owners = cells // width
    held = np.subtract(cells, np.multiply(owners, width, out=room if sums else None), out=cells)
    sizes = np.bincount(owners, minlength=seats)
    taken = sizes > 0
    if tables[0][:seats, groups].any():
        known = np.flatnonzero(held < groups)
        owners, held, counts = owners[known], held[known], counts[known]
        found = [each[known] for each in found]
        sizes = np.bincount(owners, minlength=seats)
    if not taken.all():
        owners, sizes = np.take(np.cumsum(taken) - 1, owners), sizes[taken]
    return Filled(taken, owners, held, offsets_of(sizes), counts, found)
