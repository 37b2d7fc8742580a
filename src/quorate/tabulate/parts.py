"""What a cell of a table is made of, how long it makes a person, and what a cap cuts of them.

A *part* is one number a cell: its records, its people, or the sum of a column. What somebody adds
to a part is one vector over all groups; how long it is, in the sum of its absolute values (L1, for
Laplace noise) or the root of the sum of their squares (L2, for Gaussian noise), is what a cap is
about. Each part has a cap of its own: somebody with a thousand records is still one person.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from quorate.grid import Grid
from quorate.mechanisms.choices.private_cap import PrivateCap
from quorate.tabulate.budget import TOP
from quorate.tabulate.gathering.cells import Cells, ValueColumn, cells_of, totals_by_group
from quorate.tabulate.lengths import Lengths, capped_steps, lengths_of
from quorate.users.data import UserData

__all__ = [
    "Boxed",
    "Cut",
    "Excess",
    "Holders",
    "Part",
    "Totals",
    "ladder",
    "record_ladder",
    "value_ladder",
]

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]

# Ten round numbers from one power of ten to the next.
_ROUND = (1.0, 1.2, 1.5, 2.0, 2.5, 3.0, 4.0, 5.0, 6.0, 8.0)
# Sums may be so many times smaller than a range says.
_FINEST = 1e-4
_EVENLY, _HALVINGS = 64, 12


def ladder(low: float, high: float) -> tuple[float, ...]:
    """Return round numbers from ``low`` to ``high``, which is one of them.

    >>> ladder(1.0, 7.0)
    (1.0, 1.2, 1.5, 2.0, 2.5, 3.0, 4.0, 5.0, 6.0, 7.0)
    """
    first, last = math.floor(math.log10(low)), math.ceil(math.log10(high))
    points = [factor * 10.0**power for power in range(first, last + 1) for factor in _ROUND]
    return (*(c for c in points if low * (1 - 1e-9) <= c < high * (1 - 1e-9)), high)


def record_ladder(high: float = TOP) -> tuple[float, ...]:
    """Return round whole numbers up to ``high``: caps of records, or of groups.

    >>> record_ladder(12.0)
    (1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0, 9.0, 10.0, 12.0)
    """
    small = [float(c) for c in range(1, 10) if c < high]
    return (*small, *(c for c in ladder(10.0, high) if c >= 10.0)) if high > 10 else (*small, high)


def value_ladder(lower: float, upper: float) -> Floats:
    """Return public candidates in a range: evenly spaced, and closer and closer towards zero.

    >>> points = value_ladder(0.0, 1024.0)
    >>> points[0], points[-1], int(np.sum(points < 16.0))
    (np.float64(0.0), np.float64(1024.0), 7)
    """
    anchor, width = min(max(0.0, lower), upper), upper - lower
    steps = 2.0 ** -np.arange(1, _HALVINGS + 1) * width
    evenly = np.linspace(lower, upper, _EVENLY + 1)
    points = np.concatenate([evenly, np.array([anchor]), anchor + steps, anchor - steps])
    return np.unique(np.clip(points, lower, upper))


@dataclass(frozen=True)
class Part:
    """One number a cell: records, people, or the sum of a column about a centre.

    >>> column = ValueColumn(column=1, lower=0.0, upper=8.0)
    >>> cells = cells_of(UserData([[1.0, 3.0, 2.0 / column.step]], offsets=[0, 1]))
    >>> Part("sums", column, centre=5.0).values(cells), Part("people").values(cells)
    (array([-1.]), array([1.]))
    """

    kind: str
    column: ValueColumn | None = None
    place: int = 0
    centre: float = 0.0

    @property
    def signed(self) -> bool:
        """Whether it can be negative."""
        return self.column is not None and self.column.lower < self.centre

    @property
    def entry(self) -> float:
        """A bound on every cell of every user."""
        return 1.0 if self.kind == "people" else math.inf

    def values(self, cells: Cells) -> Floats:
        """Return what each cell holds."""
        if self.kind == "people":
            return np.ones(len(cells.X))
        counts = cells.X[:, 1]
        if self.column is None:
            return counts
        column = self.column
        return cells.X[:, 2 + self.place] * column.step + counts * (column.middle - self.centre)

    def lengths(self, cells: Cells, norm: int) -> Floats:
        """Return the norm of each user's contribution; computed once."""

        def found() -> Floats:
            return lengths_of(self.values(cells)[None], cells.owners, cells.n_users, norm=norm)

        return cells.known((self, norm), found)

    def caps(self, records: float | None) -> tuple[float, ...]:
        """Return caps to look among; those of sums follow the cap of records, if there is one."""
        if self.column is None:
            return record_ladder()
        column = self.column
        if records is None:
            reach = max(abs(column.lower), abs(column.upper))
            return tuple(reach * c for c in ladder(_FINEST, TOP))
        reach = max(column.upper - self.centre, self.centre - column.lower)
        return tuple(reach * records * c for c in ladder(_FINEST, 1.0))

    def usual(self, caps: tuple[float, ...]) -> float:
        """Return the cap around which few people look: of one record, or all that is possible."""
        if self.column is None:
            return caps[0]
        reach = max(abs(self.column.lower), abs(self.column.upper))
        return caps[-1] if caps[-1] < TOP * reach else reach

    def bound(self, cap: float, groups: int, norm: int) -> Lengths:
        """Return where what one person adds to all groups must lie."""
        return Lengths(cap, groups, norm=norm, signed=self.signed, entry=self.entry)


@dataclass(frozen=True)
class Excess:
    """The total amount that caps cut from users."""

    part: Part
    norm: int
    look: PrivateCap

    def __call__(self, people: UserData) -> Integers:
        """Return the sum over the users of a part."""
        return self.look.excess(self.part.lengths(cells_of(people), self.norm))


@dataclass(frozen=True)
class Holders:
    """How many people hold anything of a part."""

    part: Part

    def __call__(self, people: UserData) -> Integers:
        """Return the number of users of a part who do."""
        lengths = self.part.lengths(cells_of(people), 1)
        return np.array([np.count_nonzero(lengths > 0)], dtype=np.int64)


@dataclass(frozen=True)
class Totals:
    """The exact sum of everybody's capped vector, in steps, by group."""

    part: Part
    bound: Lengths
    step: float

    def __call__(self, people: UserData) -> Integers:
        """Return the sum over the users of a part."""
        cells = cells_of(people)
        values = self.part.values(cells)[None]
        steps = capped_steps(values, cells.owners, cells.n_users, bound=self.bound, step=self.step)
        return totals_by_group(cells.groups, steps[0], self.bound.dimension)


@dataclass(frozen=True)
class Boxed:
    """The exact sum of everybody's parts in one group, each in units of its own."""

    parts: tuple[Part, ...]
    units: tuple[float, ...]
    grid: Grid

    def __call__(self, people: UserData) -> Integers:
        """Return the sum over the users of a part."""
        cells = cells_of(people)
        rows = np.zeros((cells.n_users, len(self.parts)))
        for place, (part, unit) in enumerate(zip(self.parts, self.units, strict=True)):
            rows[cells.owners, place] = part.values(cells) / unit
        return np.asarray(self.grid.encode(rows).sum(axis=0))


@dataclass(frozen=True)
class Cut:
    """What caps cut of people, added up: a number from 0 to 1 a person and part, and a tail.

    A person is cut by what their L1 length loses, in units of a cap, 1 at most; the tail is what
    lies between two and four units of the first part.
    """

    parts: tuple[Part, ...]
    caps: tuple[float, ...]
    units: tuple[float, ...]
    norm: int
    grid: Grid

    def __call__(self, people: UserData) -> Integers:
        """Return the sum over the users of a part."""
        cells, rows = cells_of(people), []
        for part, cap, unit in zip(self.parts, self.caps, self.units, strict=True):
            whole, long = part.lengths(cells, 1), part.lengths(cells, self.norm)
            rows.append(whole * (1 - cap / np.maximum(long, cap)) / unit)
        tail = np.clip(rows[0] / 2 - 0.5, 0.0, 1.0)
        return np.asarray(self.grid.encode(np.column_stack([*rows, tail])).sum(axis=0))
