"""One period, from rows to a release: the only module of a series where rows meet noise.

It is private, like :mod:`quorate.series.spending` and :mod:`quorate.series.store`, which it
connects. Rows are converted to entries, entries are clipped to what people have left, their totals
get noise, and the store records both. Nothing is returned directly; public results are read from
the store afterwards.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from quorate.core.account.account import Account
from quorate.core.sealed import seal_total
from quorate.core.users.closed import closed
from quorate.core.users.crowd import Crowd
from quorate.core.users.data import UserData
from quorate.data.by_group.person_cells import Cells, ToCells, ValueColumn, cells_of
from quorate.data.by_group.reading import Reading, ids_of
from quorate.series.design import Design, SeriesPart
from quorate.series.spending import Bounded, Entries, bounded_period
from quorate.series.store import SeriesTransaction

__all__ = ["Rows", "release_period"]

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]


@dataclass(frozen=True)
class Rows:
    """The rows of one period, and how they are read; a period without a table has no rows.

    Attributes
    ----------
    table : frame or None
    users : array or str
    ids : {"integers", "text"}
    reading : Reading
        How groups and values are read.
    ranges : dict
        Maps columns of values to their public ranges.
    labelled : dict
        Maps columns of labels to how groups and labels are read together.
    """

    table: Any
    users: Any
    ids: str
    reading: Reading
    ranges: dict[str, tuple[float, float]] = field(default_factory=dict)
    labelled: dict[str, Reading] = field(default_factory=dict)


@closed
def release_period(page: SeriesTransaction, number: int, rows: Rows, design: Design) -> None:
    """Clip and add up the rows of a period, draw its noise, and record all of it."""
    factor, place = design.factor, number - 1
    earlier = tuple(page.lengths(n) for n in range(1, number)) if not factor.independent else ()
    bounded = bounded_period(
        _entries(rows, design, page),
        page.spent(),
        earlier,
        gram=factor.gram(place),
        ball=design.ball,
    )
    account = Account.for_event(design.mechanism.event, relation=design.relation)
    # How far one person changes it is what the ball of the horizon proves.
    grid = design.mechanism.grid
    total = seal_total(_combined(bounded, page, design, place), grid, design.relation)
    noisy = design.mechanism.release(total, count=0.0, account=account)
    page.write(
        number,
        np.rint(noisy).astype(np.int64),
        bounded,
        ids=rows.ids,
        numerics=account.declared.numerics,
        keep=not factor.independent,
    )


def _combined(bounded: Bounded, page: SeriesTransaction, design: Design, place: int) -> Integers:
    """Return the vector that gets noise: this period, or its combination with all earlier ones."""
    coefficients = design.factor.coefficients
    own = int(coefficients[0]) * bounded.totals
    if design.factor.independent or place == 0:
        return own
    return np.asarray(own + coefficients[place:0:-1] @ page.totals())


def _entries(rows: Rows, design: Design, page: SeriesTransaction) -> Entries:
    """Return people's contributions in steps, one entry for each person and cell."""
    people, owners, cells, values = [], [], [], []
    seen, ids = 0, None
    if rows.table is not None:
        ids = ids_of(rows.table, rows.users)
        ids = page.numbers(ids) if rows.ids == "text" else ids
    for reading, parts in _readings(rows, design):
        found, who = _cells(rows, reading, ids)
        for start, part in parts:
            owners.append(found.owners + seen)
            cells.append(found.groups + start)
            values.append(_held(part, found, reading, rows) / design.step(part))
        people.append(page.hashes(who))
        seen += len(who)
    return Entries(
        np.concatenate([np.empty(0, np.uint64), *people]),
        np.concatenate([np.empty(0, np.int64), *owners]),
        np.concatenate([np.empty(0, np.int64), *cells]),
        np.concatenate([np.empty(0), *values]),
    )


def _readings(rows: Rows, design: Design) -> list[tuple[Reading, list[tuple[int, SeriesPart]]]]:
    """Return the parts of a period grouped by how they are read, each with its first cell."""
    placed = list(zip(design.starts, design.parts, strict=True))
    found = [(rows.reading, [(s, p) for s, p in placed if p.kind != "labels"])]
    found += [
        (reading, [(s, p) for s, p in placed if p.kind == "labels" and p.column == column])
        for column, reading in rows.labelled.items()
    ]
    return [each for each in found if each[1] and rows.table is not None]


def _cells(rows: Rows, reading: Reading, ids: Any) -> tuple[Cells, NDArray[np.uint64]]:
    """Return each person's records by group, and the hashes of the ids."""

    def grouped(matrix: Floats, ids: Any) -> Crowd:
        return UserData.from_arrays(matrix, users=ids)

    records = reading.read(rows.table, grouped, ids)
    columns = tuple(
        ValueColumn(records.values[name], *rows.ranges[name]) for name in reading.values
    )
    found = records.cells(ToCells(records.numbers, len(records.keys), columns))
    return cells_of(found), found.keys()  # type: ignore[arg-type]


def _held(part: SeriesPart, cells: Cells, reading: Reading, rows: Rows) -> Floats:
    """Return the value of each cell for a part."""
    if part.kind == "people":
        return np.ones(len(cells.X))
    counts = cells.X[:, 1]
    if part.kind in ("records", "labels"):
        return counts
    place = reading.values.index(str(part.column))
    column = ValueColumn(place, *rows.ranges[str(part.column)])
    return np.asarray(cells.X[:, 2 + place] * column.step + counts * (column.middle - part.centre))
