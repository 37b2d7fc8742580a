"""Each user's shares of categories: statistics that are evaluated in the core.

Exact totals of shares are in :mod:`quorate.core.questions.shares`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from quorate.core.bounds.grid import Bound
from quorate.core.questions.shares import Coder, held
from quorate.core.users.data import UserData

__all__ = [
    "CategoryCodes",
    "IntervalCodes",
    "ShareRows",
    "Weights",
    "dense_shares",
    "one_each",
]

# Rows of shares are made for this many cells at once.
_BLOCK = 2**20


@dataclass(frozen=True)
class CategoryCodes:
    """Reads a column that already holds category numbers 0, 1, ...

    >>> people = UserData.from_arrays([[1.0], [0.5], [7.0]], users=[4, 9, 4])
    >>> CategoryCodes(3)(people).tolist()
    [1, -1, -1]
    """

    categories: int
    column: int = 0

    def __call__(self, part: UserData) -> NDArray[np.int64]:
        """Return the category numbers; -1 for a value that is not a category."""
        values = part.X[:, self.column]
        known = (values >= 0) & (values < self.categories) & (np.floor(values) == values)
        return np.where(known, values, -1.0).astype(np.int64)


@dataclass(frozen=True)
class IntervalCodes:
    """Numbers the intervals between increasing public edges; the outer intervals are unbounded.

    >>> people = UserData.from_arrays([[1.0], [5.0], [-3.0], [2.0]], users=[4, 9, 4, 4])
    >>> IntervalCodes((0.0, 1.0, 2.0, 4.0))(people).tolist()
    [1, 0, 2, 2]
    """

    edges: tuple[float, ...]
    column: int = 0

    def __call__(self, part: UserData) -> NDArray[np.int64]:
        """Return the interval of each record.

        Intervals include their left end, and the last one also its right end.
        """
        inner = np.array(self.edges[1:-1])
        return np.asarray(np.searchsorted(inner, part.X[:, self.column], side="right"), np.int64)


def dense_shares(
    part: UserData, coder: Coder, categories: int
) -> Iterator[tuple[slice, NDArray[np.float64], NDArray[np.bool_]]]:
    """Yield blocks of users: their rows of shares, and which users are absent.

    A share is one division of two integers, so it does not depend on other users.

    >>> people = UserData.from_arrays([[1.0], [0.0], [1.0]], users=[4, 9, 4])
    >>> [shares.tolist() for _, shares, _ in dense_shares(people, CategoryCodes(2), 2)]
    [[[0.0, 1.0], [1.0, 0.0]]]
    """
    users, places, counts, records = held(part, coder, categories)
    shares = counts / records[users]
    size = max(1, _BLOCK // categories)
    starts = np.searchsorted(users, np.arange(0, part.n_users + size, size))
    for number, first in enumerate(range(0, part.n_users, size)):
        rows = slice(first, min(first + size, part.n_users))
        cells = slice(starts[number], starts[number + 1])
        block = np.zeros((rows.stop - first, categories))
        block[users[cells] - first, places[cells]] = shares[cells]
        yield rows, block, records[rows] == 0


def one_each(part: UserData, rows: NDArray[np.float64], there: NDArray[np.bool_]) -> UserData:
    """Return the users with one row each, and absent users without a row.

    >>> people = UserData.from_arrays([[1.0], [0.0], [1.0]], users=[4, 9, 4])
    >>> one_each(people, np.array([[7.0]]), np.array([False, True])).record_counts().tolist()
    [0, 1]
    """
    offsets = np.concatenate([[0], np.cumsum(there, dtype=np.int64)])
    ids = np.arange(part.n_users)
    made = UserData(rows, offsets=offsets.astype(np.int64), unit=part.unit, ids=ids)
    return made.with_keys(part.keys())


@dataclass(frozen=True)
class Weights:
    """The weight of each user: the number of records divided by ``cap``, at most 1.

    It is rounded to whole steps, so the grid of these steps does not change it.

    Parameters
    ----------
    coder : Coder
    bound : Bound
    steps : int
        A power of two.
    cap : int, default=1
    up : bool, default=False

    Examples
    --------
    >>> from quorate.core.bounds.grid import Interval
    >>> people = UserData.from_arrays([[1.0], [0.0], [7.0]], users=[4, 9, 3])
    >>> Weights(CategoryCodes(2), Interval(0.0, 1.0), steps=4, cap=3)(people).ravel()
    array([0.  , 0.25, 0.25])
    """

    coder: Coder
    bound: Bound
    steps: int
    cap: int = 1
    up: bool = False

    def __call__(self, users: UserData) -> NDArray[np.float64]:
        """Return one weight per user."""
        known = self.coder(users) >= 0
        records = np.bincount(users.user_index()[known], minlength=users.n_users).astype(np.int64)
        wholes = np.maximum(records, self.cap)
        if self.up:
            whole_steps = self.steps - (wholes - records) * self.steps // wholes
        else:
            whole_steps = records * self.steps // wholes
        return np.asarray(whole_steps[:, None] / self.steps)


@dataclass(frozen=True)
class ShareRows:
    """Reduces each user to one row: the shares of all sets of categories, side by side.

    A user without a record in one of the sets has no row. A share is one division of two integers.

    >>> people = UserData.from_arrays([[1.0, 0.0], [0.0, 2.0], [1.0, 1.0]], users=[4, 9, 4])
    >>> coders = (CategoryCodes(2, column=0), CategoryCodes(3, column=1))
    >>> ShareRows(coders, (2, 3))(people).X
    array([[0. , 1. , 0.5, 0.5, 0. ],
           [1. , 0. , 0. , 0. , 1. ]])
    """

    coders: Sequence[Coder]
    categories: Sequence[int]

    def __call__(self, part: UserData) -> UserData:
        """Return the users with one record each, or none."""
        rows = np.zeros((part.n_users, sum(self.categories)))
        there = np.ones(part.n_users, dtype=np.bool_)
        start = 0
        for coder, categories in zip(self.coders, self.categories, strict=True):
            users, places, counts, records = held(part, coder, categories)
            rows[users, start + places] = counts / records[users]
            there &= records > 0
            start += categories
        return one_each(part, rows[there], there)
