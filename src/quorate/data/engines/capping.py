"""A public cap on each user's records, applied while records are streamed, for giant users.

A part must fit into memory, but the records of one user may not. With a cap no user's records are
ever all in memory. Those of a part are read piece by piece, in any order. For each user only the
different records that may still be chosen are stored, with the number of their copies
(:mod:`quorate.core.users.own_order`). These are at most 2^16, or the cap. The kept records are
those of :meth:`~quorate.core.users.crowd.Crowd.cap` for the same seed.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from quorate.core.users import own_order
from quorate.core.users.public_choices import chosen_words

if TYPE_CHECKING:
    from quorate.core.users.own_order import Contents
    from quorate.data.engines.layout import Layout, Records

__all__ = ["CappedRecords"]

# New records wait until there are so many, or as many as are remembered: sorting costs less so.
_WAITING = 2**16


class CappedRecords:
    """A bounded random sample of each user's records, from all records added so far.

    Parameters
    ----------
    layout : Layout
        The layout with its ``cap`` and its ``word``, which is derived from the public seed.

    Examples
    --------
    >>> import pyarrow as pa
    >>> from quorate.data.engines.layout import Layout
    >>> table = pa.table({"id": [7, 5, 7, 7], "age": [30.0, 61.0, 32.0, 33.0]})
    >>> layout = Layout.of(table.schema, user="id", cap=2, random_state=0)
    >>> kept = CappedRecords(layout)
    >>> for batch in table.to_batches(max_chunksize=1):
    ...     kept.add(layout.records(batch))
    >>> len(kept.with_places())
    3
    """

    def __init__(self, layout: Layout) -> None:
        self._layout = layout
        self._different: Records = np.empty(0, layout.dtype)
        self._copies = np.empty(0, np.int64)
        self._keys = np.empty(0, np.uint64)
        self._waiting: tuple[Records, ...] = ()

    def add(self, piece: Records) -> None:
        """Add some more records."""
        self._waiting = (*self._waiting, piece)
        if sum(map(len, self._waiting)) >= max(_WAITING, len(self._different)):
            self._remember()

    def with_places(self) -> Records:
        """Return the kept records, and one row without numbers for each user without records."""
        found = self._remember()
        chosen = self._different[found.chosen(self._layout.cap)]
        keys = np.setdiff1d(self._keys, self._different["key"])
        absent = np.zeros(len(keys), self._layout.dtype)
        absent["key"], absent["x"] = keys, np.nan
        return np.concatenate([chosen, absent])

    def _remember(self) -> Contents:
        """Merge waiting records into the stored different records; return these."""
        new = np.concatenate([np.empty(0, self._layout.dtype), *self._waiting])
        # Whoever holds nothing but missing values keeps a place, so all keys are remembered.
        self._keys = np.unique(np.concatenate([self._keys, new["key"]]))
        new = new[~np.isnan(new["x"][:, 0])]
        records = np.concatenate([self._different, new])
        copies = np.concatenate([self._copies, np.ones(len(new), np.int64)])
        found = self._contents(records, copies).remembered(int(self._layout.cap or 0))
        self._different, self._copies = records[found.places], found.copies
        self._waiting = ()
        return found

    def _contents(self, records: Records, copies: NDArray[np.int64]) -> Contents:
        rows, targets = records["x"], records["y"] if self._layout.target is not None else None
        held = np.argsort(records["key"], kind="stable")
        _, first = np.unique(records["key"][held], return_index=True)
        offsets = np.append(first, len(held))
        words = chosen_words(
            rows, targets, held, records["key"][held], np.uint64(self._layout.word)
        )
        marks = None if self._layout.order is None else records["order"][held]
        return own_order.contents_of(
            rows, targets, held, offsets, words, marks=marks, copies=copies[held]
        )
