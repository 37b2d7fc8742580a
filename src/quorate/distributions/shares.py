"""The shares of each user as exact integers that do not depend on other users.

A user with m records, c of them in a category, holds the share c / m of it. Shares are whole
numbers of steps, rounded down, so that the shares of one user never add up to more than a whole,
and a crowd's totals are exact. What is missing to a whole counts as *absent*: a user without
records is absent, and where records are weighed up to a cap, a user with fewer is partly so.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from quorate.users.data import UserData

__all__ = [
    "CategoryCodes",
    "Coder",
    "IntervalCodes",
    "ShareTotals",
    "dense_shares",
    "held",
    "one_each",
]

Coder = Callable[[UserData], NDArray[np.int64]]
"""From the records of a part to the number of each record's category, or -1 for none."""

# Rows of shares are made for so many cells at once.
_BLOCK = 2**20
# Up to so many cells a record a table of all cells is quicker than sorting the records.
_DENSE = 4


@dataclass(frozen=True)
class CategoryCodes:
    """Reads a column that already holds numbers of categories, from 0 on.

    >>> people = UserData.from_arrays([[1.0], [0.5], [7.0]], users=[4, 9, 4])
    >>> CategoryCodes(3)(people).tolist()
    [1, -1, -1]
    """

    categories: int
    column: int = 0

    def __call__(self, part: UserData) -> NDArray[np.int64]:
        """Return the numbers; what is no number of a category is none."""
        values = part.X[:, self.column]
        known = (values >= 0) & (values < self.categories) & (np.floor(values) == values)
        return np.where(known, values, -1.0).astype(np.int64)


@dataclass(frozen=True)
class IntervalCodes:
    """Numbers the intervals between increasing public edges; the ends take what lies beyond.

    >>> people = UserData.from_arrays([[1.0], [5.0], [-3.0], [2.0]], users=[4, 9, 4, 4])
    >>> IntervalCodes((0.0, 1.0, 2.0, 4.0))(people).tolist()
    [1, 0, 2, 2]
    """

    edges: tuple[float, ...]
    column: int = 0

    def __call__(self, part: UserData) -> NDArray[np.int64]:
        """Return the interval of each record: closed on the left, the last one on both sides."""
        inner = np.array(self.edges[1:-1])
        return np.asarray(np.searchsorted(inner, part.X[:, self.column], side="right"), np.int64)


def held(
    part: UserData, coder: Coder, categories: int
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
    """Return who holds which category how often, and how many known records each user has.

    >>> people = UserData.from_arrays([[1.0], [0.0], [1.0]], users=[4, 9, 4])
    >>> [found.tolist() for found in held(people, CategoryCodes(2), 2)]
    [[0, 1], [1, 0], [2, 1], [2, 1]]
    """
    codes = coder(part)
    known = codes >= 0
    users = part.user_index()[known].astype(np.int64)
    numbers = users * categories + codes[known]
    if part.n_users * categories <= _DENSE * len(codes):
        table = np.bincount(numbers, minlength=part.n_users * categories)
        cells = np.flatnonzero(table)
        counts = table[cells]
    else:
        cells, counts = np.unique(numbers, return_counts=True)
    records = np.bincount(users, minlength=part.n_users).astype(np.int64)
    return cells // categories, cells % categories, counts.astype(np.int64), records


@dataclass(frozen=True)
class ShareTotals:
    """The sum over users of their shares in steps, what is missing to a whole last.

    Privacy: one user adds numbers >= 0 that add up to at most ``steps``: each is the integer part
    of a term, and the terms add up to ``steps``. So a user is a point of the simplex of
    ``categories`` + 1 vertices, in whole steps, and the sensitivities are those of
    :class:`~quorate.simplex.Simplex` on a grid of step 1 / ``steps``.

    Parameters
    ----------
    coder : Coder
    categories : int
    steps : int
        A whole is so many steps.
    cap : int, default=1
        A user with m records has the weight min(1, m / cap): with 1 everybody who holds a record
        counts once, with M every record counts once, up to M of a user.

    Examples
    --------
    >>> people = UserData.from_arrays([[1.0], [0.0], [1.0], [0.0]], users=[4, 9, 4, 4])
    >>> ShareTotals(CategoryCodes(2), 2, steps=300)(people).tolist()
    [400, 200, 0]
    >>> ShareTotals(CategoryCodes(2), 2, steps=300, cap=3)(people).tolist()
    [200, 200, 200]
    """

    coder: Coder
    categories: int
    steps: int
    cap: int = 1

    def __call__(self, part: UserData) -> NDArray[np.int64]:
        """Return the totals of a part."""
        users, categories, counts, records = held(part, self.coder, self.categories)
        wholes = np.maximum(records, self.cap)
        totals = np.zeros(self.categories + 1, dtype=np.int64)
        np.add.at(totals, categories, counts * self.steps // wholes[users])
        totals[-1] = ((wholes - records) * self.steps // wholes).sum()
        return totals


def dense_shares(
    part: UserData, coder: Coder, categories: int
) -> Iterator[tuple[slice, NDArray[np.float64], NDArray[np.bool_]]]:
    """Yield blocks of users: their rows of shares, and who of them is absent.

    A share is one division of two integers, so it is the same in every company.

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
    """Return the users with one row each, those who are not ``there`` with none.

    >>> people = UserData.from_arrays([[1.0], [0.0], [1.0]], users=[4, 9, 4])
    >>> one_each(people, np.array([[7.0]]), np.array([False, True])).record_counts().tolist()
    [0, 1]
    """
    offsets = np.concatenate([[0], np.cumsum(there, dtype=np.int64)])
    ids = np.arange(part.n_users)
    made = UserData(rows, offsets=offsets.astype(np.int64), unit=part.unit, ids=ids)
    return made.with_keys(part.keys())
