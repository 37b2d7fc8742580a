"""Records as they lie in memory, and how they are put into the order of the users."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from quorate.users.grouping import order_by_user
from quorate.users.sums import order_of_addition

__all__ = ["RecordStore", "offsets_of"]


def offsets_of(counts: NDArray[Any]) -> NDArray[np.int64]:
    """Return where each user's records begin, and the end, from how many each user holds.

    >>> offsets_of(np.array([2, 0, 3]))
    array([0, 2, 2, 5])
    """
    return np.concatenate([np.zeros(1, np.int64), np.cumsum(counts, dtype=np.int64)])


def _index_type(size: int) -> type[np.signedinteger[Any]]:
    return np.int32 if size < 2**31 else np.int64


@dataclass(frozen=True)
class RecordStore:
    """Records as they lie in memory; ``codes`` is None if they lie user by user.

    Examples
    --------
    >>> store = RecordStore(np.array([[1.0], [5.0], [3.0]]), None, np.array([0, 1, 0]))
    >>> store.gather(np.arange(3), n_users=2).rows
    array([[1.],
           [3.],
           [5.]])
    """

    rows: NDArray[np.float64]
    targets: NDArray[np.float64] | None
    codes: NDArray[Any] | None
    _order: NDArray[Any] | None = field(default=None, repr=False, compare=False)

    @classmethod
    def numbered(
        cls,
        rows: NDArray[np.float64],
        targets: NDArray[np.float64] | None,
        codes: NDArray[Any],
    ) -> RecordStore:
        """Return records under the numbers of their users, which may lie in order already."""
        in_order = bool(np.all(codes[1:] >= codes[:-1]))
        return cls(rows, targets, None if in_order else codes)

    def order(self, offsets: NDArray[np.int64]) -> NDArray[Any]:
        """Return the order in which records are added up; found once."""
        if self._order is None:
            found = order_of_addition(self.rows, self.targets, offsets, self.codes)
            object.__setattr__(self, "_order", found)
            return found
        return self._order

    def settled(self, offsets: NDArray[np.int64]) -> RecordStore:
        """Return the records as they are added up, one behind the other: quicker to pass over."""
        order = self.order(offsets)
        places = np.arange(len(order), dtype=_index_type(len(order)))
        if self.codes is None and np.array_equal(order, places):
            return RecordStore(self.rows, self.targets, None, places)
        targets = None if self.targets is None else self.targets.take(order)
        return RecordStore(self.rows.take(order, axis=0), targets, None, places)

    def part(self, places: slice, offsets: NDArray[np.int64]) -> RecordStore:
        """Return whole users of records that lie user by user, with their order of addition."""
        targets = None if self.targets is None else self.targets[places]
        order = self.order(offsets)[places] - int(places.start)
        return RecordStore(self.rows[places], targets, None, order)

    def gather(self, places: NDArray[Any], *, n_users: int) -> RecordStore:
        """Return the records at these places of the order by user."""
        if self.codes is not None:
            places = order_by_user(self.codes, n_users)[places]
        targets = None if self.targets is None else self.targets.take(places)
        return RecordStore(self.rows.take(places, axis=0), targets, None)
