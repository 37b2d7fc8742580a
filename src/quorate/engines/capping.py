"""Giant users: a public cap on each user's records, kept while the records stream by.

A part must fit into memory, and one user may hold more than that. With a cap nobody's records are
ever held all at once: those of a part pass piece by piece in the order of the source, and what is
kept between two pieces is at most the cap of each user. The records that stay are those of
:meth:`~quorate.users.crowd.Crowd.cap` for the same seed, to the last one.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from quorate.users import grouping
from quorate.users.public_choices import keep_smallest

if TYPE_CHECKING:
    from quorate.engines.layout import Layout, Records

__all__ = ["CappedRecords"]


class CappedRecords:
    """At most so many random records of each user, of all that were added so far.

    Parameters
    ----------
    layout : Layout
        Its ``cap`` and its ``word``, which stands for the public seed.

    Examples
    --------
    >>> import pyarrow as pa
    >>> from quorate.engines.layout import Layout
    >>> table = pa.table({"id": [7, 5, 7, 7], "age": [30.0, 61.0, 32.0, 33.0]})
    >>> layout = Layout.of(table.schema, user="id", cap=2, random_state=0)
    >>> kept = CappedRecords(layout)
    >>> for batch in table.to_batches(max_chunksize=1):
    ...     kept.add(layout.records(batch))
    >>> len(kept.records)
    3
    """

    def __init__(self, layout: Layout) -> None:
        self._layout = layout
        self.records: Records = np.empty(0, layout.dtype)
        self._numbers = np.empty(0, np.uint64)
        self._keys, self._counts = np.empty(0, np.uint64), np.empty(0, np.int64)

    def add(self, piece: Records) -> None:
        """Take the next records, in the order of the source."""
        held = ~np.isnan(piece["x"][:, 0])
        # Whoever holds nothing but missing values keeps a place, so all keys are counted.
        keys, codes = np.unique(np.concatenate([self._keys, piece["key"]]), return_inverse=True)
        counts = np.zeros(len(keys), np.int64)
        counts[codes[: len(self._keys)]] = self._counts
        owners = codes[len(self._keys) :][held]
        numbers = self._random_numbers(keys[owners], counts[owners] + _ranks(owners))
        counts += np.bincount(owners, minlength=len(keys))
        self._keys, self._counts = keys, counts
        self._keep(
            np.concatenate([self.records, piece[held]]), np.concatenate([self._numbers, numbers])
        )

    def with_places(self) -> Records:
        """Return the records that are kept, and one without numbers for users who have none."""
        absent = np.zeros(np.count_nonzero(self._counts == 0), self._layout.dtype)
        absent["key"], absent["x"] = self._keys[self._counts == 0], np.nan
        return np.concatenate([self.records, absent])

    def _random_numbers(
        self, keys: NDArray[np.uint64], ranks: NDArray[np.int64]
    ) -> NDArray[np.uint64]:
        own = grouping.mix(keys + np.uint64(self._layout.word))
        return grouping.mix(own + ranks.astype(np.uint64))

    def _keep(self, records: Records, numbers: NDArray[np.uint64]) -> None:
        order = np.argsort(records["key"], kind="stable")
        records, numbers = records[order], numbers[order]
        counts = np.unique(records["key"], return_counts=True)[1]
        stay = keep_smallest(numbers, counts, int(self._layout.cap or 0))
        self.records, self._numbers = records[stay], numbers[stay]


def _ranks(owners: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return how many earlier entries have the same owner.

    >>> _ranks(np.array([3, 5, 3, 3]))
    array([0, 0, 1, 2])
    """
    order = np.argsort(owners, kind="stable")
    counts = np.unique(owners, return_counts=True)[1]
    ranks = np.empty(len(owners), np.int64)
    ranks[order] = grouping.ranges(np.zeros(len(counts), np.int64), counts)
    return ranks
