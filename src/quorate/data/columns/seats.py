"""Array indices for the users of a table, without sorting if ids are dense integers.

Numbering users in the order of their ids (:mod:`quorate.data.columns.ids`) takes two passes over
all records. If ids are integers that lie close together, they are used directly as array indices
(*seats*); some indices remain unused. After counting it is known which indices are used, and only
those users are numbered.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from quorate.core.users.grouping import mix
from quorate.data.columns.ids import Groups, group
from quorate.data.columns.keys import plain_integers

__all__ = ["Seats"]

Integers = NDArray[np.int64]

# Integers within so many times their number are seats as they are.
_SPAN = 4


@dataclass(frozen=True, eq=False)
class Seats:
    """The array index (seat) of each record's user; the index after the last means no user.

    Attributes
    ----------
    ids : array of integers, one per record
    first : int
        The id that has index 0.
    size : int
        The number of array indices.
    groups : Groups or None
        The numbers of the users at all array indices in order, if they are already known.

    Examples
    --------
    >>> seats = Seats.of(np.array([7, 5, 7]))
    >>> seats.at(slice(None)).tolist(), seats.size
    ([2, 0, 2], 3)
    >>> numbers, people = seats.numbered()
    >>> numbers.tolist(), people.keys.size
    ([1, 0, 1], 2)
    >>> Seats.of(["ann", None]).at(slice(None)).tolist()
    [0, 1]
    """

    ids: NDArray[Any]
    first: int
    size: int
    groups: Groups | None = None

    @classmethod
    def of(cls, users: Any) -> Seats:
        """Return the array indices of ids, given as for :func:`quorate.data.columns.ids.group`."""
        plain, columns = (None, users) if isinstance(users, Groups) else plain_integers(users)
        if plain is not None and len(plain):
            low, high = int(plain.min()), int(plain.max())
            if high - low < min(_SPAN * len(plain), 2**31):
                return cls(plain, low, high - low + 1)
        groups = group(columns)
        return cls(groups.codes, 0, len(groups.keys), groups)

    def __len__(self) -> int:
        """Return how many records there are."""
        return len(self.ids)

    def at(self, rows: slice) -> Integers:
        """Return the array indices of some records."""
        ids = self.ids[rows]
        if self.groups is not None:
            seats = ids.astype(np.int64)
            seats[seats < 0] = self.size
            return seats
        if self.first:
            # Differences wrap around like the integers themselves: unsigned they are right.
            ids = (ids - ids.dtype.type(self.first)).view(f"u{ids.itemsize}")
        return np.ascontiguousarray(ids, dtype=np.int64)

    def people(self, taken: NDArray[np.bool_]) -> Groups:
        """Return the keys of the users at these indices, in order, without their records."""
        if self.groups is not None:
            return Groups(self.groups.codes[:0], self.groups.keys, self.groups.n_columns)
        ids = np.flatnonzero(taken).astype(np.uint64) + np.uint64(self.first % 2**64)
        return Groups(np.empty(0, np.int32), mix(ids))

    def numbered(self) -> tuple[Integers, Groups]:
        """Return the number of each record's user (-1 for none), and all keys.

        The numbers are those that ``group`` would give.
        """
        seats, taken = self.at(slice(None)), np.zeros(self.size + 1, dtype=np.bool_)
        taken[seats] = True
        taken[self.size] = False
        numbers = np.cumsum(taken, dtype=np.int64) - 1
        numbers[self.size] = -1
        # Every seat is in the table, so nothing is clipped: it is the quickest way to look up.
        return np.take(numbers, seats, mode="clip"), self.people(taken[:-1])
