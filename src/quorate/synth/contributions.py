"""What a person adds to tables of counts, how long that is, and how often own values repeat.

People hold codes (:mod:`quorate.synth.columns`). A table counts records by the codes of one or more
*nodes*: the columns, and last of all in which bin a person's own number of records is. What a
person adds to several tables together is one vector; the core pulls it in to a bounded length.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from quorate.core.bounds.lengths import Lengths as Bounded
from quorate.core.bounds.lengths import lengths_of
from quorate.core.users.data import UserData

__all__ = ["Lengths", "RecordBins", "Repeats", "Tables"]

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]


@dataclass(frozen=True)
class Tables:
    """Several tables of counts, one after the other.

    Parameters
    ----------
    tables : tuple of tuples of int
        The nodes of each table.
    levels : tuple of tuples of int
        Of each node, the level of each of its codes.
    edges : tuple of float
        The bins of people's numbers of records, which are the codes of the last node.

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

    def shape(self, table: tuple[int, ...]) -> tuple[int, ...]:
        """Return how many levels each node of a table has."""
        return tuple(max(self.levels[node]) + 1 for node in table)

    @property
    def sizes(self) -> tuple[int, ...]:
        """How many cells each table has."""
        return tuple(math.prod(self.shape(table)) for table in self.tables)

    @property
    def size(self) -> int:
        """How many cells there are."""
        return sum(self.sizes)

    def split(self, values: Floats) -> list[Floats]:
        """Return each table of a vector of all."""
        ends = itertools.accumulate(self.sizes)
        parts = np.split(values, list(ends)[:-1])
        return [p.reshape(self.shape(t)) for p, t in zip(parts, self.tables, strict=True)]

    def held(self, people: UserData) -> tuple[Integers, Integers, Floats]:
        """Return whose each cell is, which it is, and how many records are in it."""
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
        return cells // self.size, cells % self.size, counts.astype(np.float64)

    def __call__(self, people: UserData) -> tuple[Integers, Integers, list[Floats]]:
        """Return the cells as :meth:`~quorate.core.people.People.cell_totals` asks for them."""
        owners, places, counts = self.held(people)
        return owners, places, [counts]


@dataclass(frozen=True)
class Lengths:
    """Up to which edge a person's contribution to all tables is long; none without a record.

    >>> people = UserData([[0.0], [0.0], [1.0]], offsets=[0, 2, 2, 3])
    >>> Lengths(Tables(((0,),), ((0, 1), (0,)), (1.0,)), (1.0, 2.0))(people).tolist()
    [1, -1, 0]
    """

    tables: Tables
    edges: tuple[float, ...]

    def __call__(self, people: UserData) -> Integers:
        """Return one label a user."""
        owners, _, counts = self.tables.held(people)
        lengths = lengths_of(counts[None], owners, people.n_users, norm=2)
        return _labels(lengths, self.edges)


@dataclass(frozen=True)
class RecordBins:
    """Up to which edge a person's number of records is; none without a record.

    >>> RecordBins((1.0, 2.0, 4.0))(UserData(np.zeros((4, 1)), offsets=[0, 1, 4, 4])).tolist()
    [0, 2, -1]
    """

    edges: tuple[float, ...]

    def __call__(self, people: UserData) -> Integers:
        """Return one label a user."""
        return _labels(people.record_counts().astype(np.float64), self.edges)


def _labels(lengths: Floats, edges: Sequence[float]) -> Integers:
    # A whole number that is computed as a root stays at its edge.
    found = np.searchsorted(np.array(edges) * (1 + 2.0**-40), lengths)
    return np.where(lengths > 0, np.minimum(found, len(edges) - 1), -1)


@dataclass(frozen=True)
class Repeats:
    """How often two records of a person agree in each column, and 1 for who has two records.

    The share of all pairs of own records with the same code; 0 for everybody else.

    >>> people = UserData([[0.0, 3.0], [0.0, 2.0], [1.0, 2.0], [5.0, 5.0]], offsets=[0, 3, 4])
    >>> Repeats(columns=2)(people).round(3).tolist()
    [[0.333, 0.333, 1.0], [0.0, 0.0, 0.0]]
    """

    columns: int

    @property
    def bound(self) -> Bounded:
        """Where a user's row lies."""
        size = self.columns + 1
        return Bounded(math.sqrt(size), size, norm=2, signed=False, entry=1.0)

    def __call__(self, users: UserData) -> Floats:
        """Return one row a user: a number for each column, and the last."""
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
