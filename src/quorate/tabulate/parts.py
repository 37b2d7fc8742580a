"""The parts of a cell, and the length of a person's contribution to a part.

A *part* is one number of each cell: its records, its users, or the sum of a column. What a person
adds to a part is one vector over all groups. A cap limits its length: the sum of absolute values
(L1) for Laplace noise, or the root of the sum of squares (L2) for Gaussian noise. Each part has its
own cap, so a person with a thousand records still counts as one user.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from quorate.core.bounds.grid import Ball
from quorate.core.bounds.lengths import lengths_of
from quorate.core.guarantees import Relation
from quorate.core.users.data import UserData
from quorate.data.by_group.person_cells import Cells, ValueColumn, cells_of
from quorate.tabulate.quantiles import LOOKS

__all__ = ["Held", "HeldOften", "LengthLabels", "OwnMeans", "Part", "value_ladder"]

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]

# Values are told apart evenly, and around zero down to the finest step of a search for a quantile.
_EVENLY = 64


def value_ladder(lower: float, upper: float) -> Floats:
    """Return public candidates in a range: evenly spaced, and closer together towards zero.

    >>> points = value_ladder(0.0, 1024.0)
    >>> points[0], points[-1], int(np.sum(points < 16.0))
    (np.float64(0.0), np.float64(1024.0), 7)
    """
    anchor, width = min(max(0.0, lower), upper), upper - lower
    steps = 2.0 ** -np.arange(1, LOOKS + 1) * width
    evenly = np.linspace(lower, upper, _EVENLY + 1)
    points = np.concatenate([evenly, np.array([anchor]), anchor + steps, anchor - steps])
    return np.unique(np.clip(points, lower, upper))


@dataclass(frozen=True)
class Part:
    """One number of each cell: records, users, or the sum of a column relative to a centre.

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
        """Whether the value of a cell can be negative."""
        return self.column is not None and self.column.lower < self.centre

    def values(self, cells: Cells) -> Floats:
        """Return the value of each cell."""
        if self.kind == "people":
            return np.ones(len(cells.X))
        counts = cells.X[:, 1]
        if self.column is None:
            return counts
        column = self.column
        return cells.X[:, 2 + self.place] * column.step + counts * (column.middle - self.centre)

    def bound(self, cap: float, groups: int, norm: int, relation: Relation) -> tuple[Ball, float]:
        """Return the bound of a contribution in units of the sensitivity, and this unit."""
        entry = 1.0 if self.kind == "people" else math.inf
        whole = Ball(cap, dimension=groups, norm=norm, signed=self.signed, entry=entry)
        unit = whole.change(relation)[norm - 1]
        return replace(whole, radius=cap / unit, entry=entry / unit), unit


@dataclass(frozen=True)
class LengthLabels:
    """For each user the index of the first edge that is at least the length of the contribution.

    The label is -1 (none) for a user without records.
    """

    part: Part
    norm: int
    edges: tuple[float, ...]

    def __call__(self, people: UserData) -> Integers:
        """Return one label per user."""
        cells = cells_of(people)
        values = self.part.values(cells)[None]
        lengths = lengths_of(values, cells.owners, cells.n_users, norm=self.norm)
        # A whole length stays at its edge, although it is computed as a rounded root.
        found = np.searchsorted(np.array(self.edges) * (1 + 2.0**-40), lengths)
        return np.where(lengths > 0, np.minimum(found, len(self.edges) - 1), -1)


@dataclass(frozen=True)
class HeldOften:
    """Label 0 for every user with a record, -1 for the others."""

    def __call__(self, people: UserData) -> Integers:
        """Return one label per user."""
        return np.where(people.record_counts() > 0, 0, -1)


@dataclass(frozen=True)
class OwnMeans:
    """Position of each person's own mean among public candidates; NaN without a record."""

    part: Part
    points: tuple[float, ...]

    def __call__(self, people: UserData) -> Floats:
        """Return one number per user."""
        cells = cells_of(people)
        counts = cells.totals(1)
        # The sum in whole steps is exact, so no other person's records reach a last bit.
        column = self.part.column
        with np.errstate(all="ignore"):
            means = cells.totals(2 + self.part.place) / counts
            if column is not None:
                means = means * column.step + column.middle
        ladder = np.array(self.points)
        places = np.searchsorted((ladder[:-1] + ladder[1:]) / 2, means).astype(np.float64)
        return np.where(counts > 0, places, np.nan)


@dataclass(frozen=True)
class Held:
    """The value of each cell for some parts, each in its own unit."""

    parts: tuple[Part, ...]
    units: tuple[float, ...]

    def __call__(self, people: UserData) -> tuple[Integers, Integers, list[Floats]]:
        """Return the user, the group and the values of each cell."""
        cells = cells_of(people)
        pairs = zip(self.parts, self.units, strict=True)
        return cells.owners, cells.groups, [part.values(cells) / unit for part, unit in pairs]
