"""A person's contribution to tables of counts, its length, and how often values repeat.

Records are encoded as integers, their codes (:mod:`quorate.synth.columns`). A table counts records
by the codes of one or more *nodes*. A node is a column or, as the last one, the bin of the person's
number of records. What a person adds to several tables together is one vector, which the core clips
to a bounded length.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from quorate.core.bounds.grid import Ball
from quorate.core.bounds.lengths import lengths_of
from quorate.core.users.data import UserData

__all__ = ["Contrasts", "Lengths", "RecordBins", "Repeats", "Tables"]

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]


@dataclass(frozen=True)
class Tables:
    """Several tables of counts in one vector, one after the other.

    Parameters
    ----------
    tables : tuple of tuples of int
        The nodes of each table.
    levels : tuple of tuples of int
        For each node, the level that each of its codes belongs to.
    edges : tuple of float
        The bins of people's numbers of records; they are the codes of the last node.
    weights : tuple of float, optional
        The weight of each table's counts, a power of two; 1 by default.

    Examples
    --------
    >>> people = UserData([[0.0, 1.0], [1.0, 1.0], [1.0, 0.0]], offsets=[0, 2, 3])
    >>> tables = Tables(((0, 1), (2,)), ((0, 1), (0, 1), (0, 1)), (1.0, 2.0))
    >>> [found.tolist() for found in tables.held(people)]
    [[0, 0, 0, 1, 1], [1, 3, 5, 2, 4], [1.0, 1.0, 2.0, 1.0, 1.0]]
    """

    tables: tuple[tuple[int, ...], ...]
    levels: tuple[tuple[int, ...], ...]
    edges: tuple[float, ...]
    weights: tuple[float, ...] = ()

    def shape(self, table: tuple[int, ...]) -> tuple[int, ...]:
        """Return the number of levels of each node of a table."""
        return tuple(max(self.levels[node]) + 1 for node in table)

    @property
    def sizes(self) -> tuple[int, ...]:
        """Number of cells of each table."""
        return tuple(math.prod(self.shape(table)) for table in self.tables)

    @property
    def size(self) -> int:
        """Number of cells in all tables."""
        return sum(self.sizes)

    def split(self, values: Floats) -> list[Floats]:
        """Return the tables that one vector of all cells contains."""
        ends = itertools.accumulate(self.sizes)
        parts = np.split(values / self._each, list(ends)[:-1])
        return [p.reshape(self.shape(t)) for p, t in zip(parts, self.tables, strict=True)]

    @property
    def _each(self) -> Floats:
        """The weight of each cell."""
        return np.repeat(self.weights or np.ones(len(self.tables)), self.sizes)

    def held(self, people: UserData) -> tuple[Integers, Integers, Floats]:
        """Return the cells of each person: the person, the cell's index, its weighted records."""
        owners = people.user_index().astype(np.int64)
        codes = [*people.X.astype(np.int64).T]
        if any(len(self.levels) - 1 in table for table in self.tables):
            codes.append(np.searchsorted(self.edges, people.record_counts())[owners])
        level = {
            node: np.array(self.levels[node])[np.minimum(codes[node], len(self.levels[node]) - 1)]
            for node in {node for table in self.tables for node in table}
        }
        starts, places = 0, []
        for table, size in zip(self.tables, self.sizes, strict=True):
            place = np.zeros(len(owners), dtype=np.int64)
            for node, width in zip(table, self.shape(table), strict=True):
                place = place * width + level[node]
            places.append(place + starts)
            starts += size
        everywhere = np.tile(owners, len(places)) * self.size + np.concatenate(places)
        cells, counts = np.unique(everywhere, return_counts=True)
        return cells // self.size, cells % self.size, counts * self._each[cells % self.size]

    def __call__(self, people: UserData) -> tuple[Integers, Integers, list[Floats]]:
        """Return the cells as :meth:`~quorate.core.people.People.cell_totals` needs them."""
        owners, places, counts = self.held(people)
        return owners, places, [counts]

    def lengths(self, people: UserData) -> Floats:
        """Return the length of each person's contribution."""
        owners, _, counts = self.held(people)
        return lengths_of(counts[None], owners, people.n_users, norm=2)


@dataclass(frozen=True)
class Contrasts:
    """A person's counts of the codes of each column, minus their mean, and the number of records.

    The tables of d columns contain a person's number of records d times. Without it a person's
    vector is shorter, so the noise is smaller. The number is one coordinate for all columns; its
    error matters about as much as that of one cell of many, so its weight is :attr:`TIMES` only.

    Parameters
    ----------
    sizes : tuple of int
        Number of codes of each column.
    longest : float, default=1.0
        The clipping length of a person's contribution.

    Examples
    --------
    >>> people = UserData([[0.0, 1.0], [1.0, 1.0], [1.0, 0.0]], offsets=[0, 2, 3])
    >>> Contrasts((2, 2))(people).tolist()
    [[0.0, 0.0, -1.0, 1.0, 0.5], [-0.5, 0.5, 0.5, -0.5, 0.25]]
    """

    sizes: tuple[int, ...]
    longest: float = 1.0

    TIMES: ClassVar[float] = 0.25

    @property
    def weights(self) -> Floats:
        """The weights of the columns; their mean square is 1.

        The noise of a table of m codes with weight a is in proportion to m / a. For a given sum of
        squares of the weights, the total noise is least for weights proportional to the cube root
        of m.

        >>> Contrasts((2, 16)).weights.round(2).tolist()
        [0.63, 1.26]
        """
        roots = np.cbrt(np.array(self.sizes, dtype=np.float64))
        return np.asarray(roots / np.sqrt(np.mean(roots**2)))

    @property
    def size(self) -> int:
        """Number of coordinates."""
        return sum(self.sizes) + 1

    @property
    def bound(self) -> Ball:
        """The set that contains a user's row."""
        return Ball(self.longest, dimension=self.size)

    def __call__(self, users: UserData) -> Floats:
        """Return one row per user."""
        owners = users.user_index().astype(np.int64)
        held = users.record_counts().astype(np.float64)
        parts = []
        columns = zip(users.X.astype(np.int64).T, self.sizes, self.weights, strict=True)
        for codes, size, times in columns:
            places = owners * size + np.clip(codes, 0, size - 1)
            counts = np.bincount(places, minlength=users.n_users * size)
            parts.append(times * (counts.reshape(-1, size) - held[:, None] / size))
        return np.concatenate([*parts, self.TIMES * held[:, None]], axis=1)

    def lengths(self, people: UserData) -> Floats:
        """Return the length of each person's contribution."""
        owners = people.user_index().astype(np.int64)
        held = people.record_counts().astype(np.float64) ** 2
        squares = self.TIMES**2 * held
        columns = zip(people.X.astype(np.int64).T, self.sizes, self.weights, strict=True)
        for codes, size, times in columns:
            cells, counts = np.unique(
                owners * size + np.clip(codes, 0, size - 1), return_counts=True
            )
            # Squares of whole numbers are added up exactly, in whatever order.
            own = np.bincount(cells // size, weights=counts**2, minlength=people.n_users)
            squares = squares + times**2 * (own - held / size)
        return np.sqrt(squares)

    def shares(self, totals: Floats, least: float) -> list[Floats]:
        """Return the shares of the codes of each column; ``least`` is the least number of records.

        >>> [x.tolist() for x in Contrasts((2, 2)).shares(np.array([-1, 1, 0, 0, 1.0]), 1.0)]
        [[0.25, 0.75], [0.5, 0.5]]
        """
        records = max(float(totals[-1]) / self.TIMES, least)
        parts = np.split(totals[:-1] / records, list(itertools.accumulate(self.sizes))[:-1])
        return [
            1.0 / len(part) + part / times for part, times in zip(parts, self.weights, strict=True)
        ]


@dataclass(frozen=True)
class Lengths:
    """The first edge that the length of a person's contribution does not exceed.

    People without a record have no label.

    >>> people = UserData([[0.0], [0.0], [1.0]], offsets=[0, 2, 2, 3])
    >>> Lengths(Tables(((0,),), ((0, 1), (0,)), (1.0,)), (1.0, 2.0))(people).tolist()
    [1, -1, 0]
    """

    work: Tables | Contrasts
    edges: tuple[float, ...]

    def __call__(self, people: UserData) -> Integers:
        """Return one label per user."""
        return _labels(self.work.lengths(people), self.edges)


@dataclass(frozen=True)
class RecordBins:
    """The first edge that a person's number of records does not exceed; -1 without a record.

    >>> RecordBins((1.0, 2.0, 4.0))(UserData(np.zeros((4, 1)), offsets=[0, 1, 4, 4])).tolist()
    [0, 2, -1]
    """

    edges: tuple[float, ...]

    def __call__(self, people: UserData) -> Integers:
        """Return one label per user."""
        return _labels(people.record_counts().astype(np.float64), self.edges)


def _labels(lengths: Floats, edges: Sequence[float]) -> Integers:
    # A whole length stays at its edge, although it is computed as a rounded root.
    found = np.searchsorted(np.array(edges) * (1 + 2.0**-40), lengths)
    return np.where(lengths > 0, np.minimum(found, len(edges) - 1), -1)


@dataclass(frozen=True)
class Repeats:
    """How often two records of a person agree in each column; the last entry is 1 or 0.

    Each rate is the share of all pairs of a user's records with the same code, and the
    last entry is 1. Users with fewer than two records contribute zeros.

    >>> people = UserData([[0.0, 3.0], [0.0, 2.0], [1.0, 2.0], [5.0, 5.0]], offsets=[0, 3, 4])
    >>> Repeats(columns=2)(people).round(3).tolist()
    [[0.333, 0.333, 1.0], [0.0, 0.0, 0.0]]
    """

    columns: int

    @property
    def bound(self) -> Ball:
        """The bound of a user's row."""
        size = self.columns + 1
        return Ball(math.sqrt(size), dimension=size, signed=False, entry=1.0)

    def __call__(self, users: UserData) -> Floats:
        """Return one row per user: a rate for each column, then 1 (or 0 below two records)."""
        counts = users.record_counts().astype(np.int64)
        pairs = counts * (counts - 1)
        owners = users.user_index().astype(np.int64)
        found = np.zeros((users.n_users, self.columns + 1))
        for place, codes in enumerate(users.X.astype(np.int64).T):
            width = int(codes.max(initial=0)) + 1
            cells, held = np.unique(owners * width + codes, return_counts=True)
            # Whole numbers below 2^53 are added up exactly, in whatever order.
            again = np.bincount(cells // width, weights=held * (held - 1), minlength=users.n_users)
            found[:, place] = again / np.maximum(pairs, 1)
        found[:, -1] = pairs > 0
        return found
