"""Short labels in a column of texts, found by the 16 bytes that Arrow keeps of each.

A view of a text is its length and, up to 12 bytes, the text itself, filled up with zeros. So a text
is one of a few short labels exactly if its two words of 8 bytes are those of the label, and a long
one, whose length says so, is none. A public multiplier spreads the labels over a small table
without a collision; then a column is looked up without a hash of its own and without being copied.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from quorate.users.grouping import mix

__all__ = ["ShortTexts"]

Words = NDArray[np.uint64]

_LONGEST = 12
_MOST = 256
_TRIES = 64
# So many rows at once stay in a processor's cache.
_BLOCK = 1 << 16


@dataclass(frozen=True, eq=False)
class ShortTexts:
    """Labels with the multiplier that keeps them apart.

    >>> import pyarrow as pa
    >>> labels = ShortTexts.of(["north", "south"])
    >>> texts = pa.array(["south", None, "somewhere else", "north"], pa.string_view())
    >>> labels.places(texts).tolist()
    [1, -1, -1, 0]
    """

    multiplier: np.uint64
    shift: np.uint64
    table: NDArray[np.int64]
    pairs: NDArray[np.complex128]

    @classmethod
    def of(cls, labels: list[str]) -> ShortTexts | None:
        """Return the labels ready to be looked up; None if they are long, many or not different."""
        import pyarrow as pa

        octets = [label.encode("utf-8", "surrogatepass") for label in labels]
        if not 0 < len(labels) <= _MOST or max(map(len, octets)) > _LONGEST:
            return None
        words = _words(pa.array(octets, pa.binary_view()))
        bits = 2 * max(3, (len(labels) - 1).bit_length())
        shift = np.uint64(64 - bits)
        for multiplier in mix(np.arange(_TRIES, dtype=np.uint64)) | np.uint64(1):
            slots = np.empty(len(labels), np.uint64)
            _slots(words, multiplier, shift, out=slots)
            if len(set(slots.tolist())) == len(labels):
                table = np.zeros(1 << bits, dtype=np.int64)
                table[slots] = np.arange(len(labels))
                # Both words of the label behind each slot, as one item of 16 bytes.
                pairs = words[table].view(np.complex128).ravel()
                return cls(multiplier, shift, table, pairs)
        return None

    def places(self, column: Any) -> NDArray[np.int64]:
        """Return the place of each text of a column of views among the labels, or -1."""
        import pyarrow as pa

        chunks = column.chunks if isinstance(column, pa.ChunkedArray) else [column]
        found = np.empty(sum(map(len, chunks)), dtype=np.int64)
        size = min(_BLOCK, len(found))
        room = _Room(np.empty(size, np.uint64), np.empty(size, np.complex128))
        start = 0
        for chunk in chunks:
            for begin in range(0, len(chunk), _BLOCK):
                block = chunk.slice(begin, _BLOCK)
                self._block(block, found[start : start + len(block)], room)
                start += len(block)
        return found

    def _block(self, block: Any, places: NDArray[np.int64], room: _Room) -> None:
        words, slots = _words(block), room.slots[: len(block)]
        _slots(words, self.multiplier, self.shift, out=slots)
        numbers = slots.view(np.int64)
        # A slot is always in the table, so nothing is clipped: it is the quickest way to look up.
        np.take(self.table, numbers, out=places, mode="clip")
        pairs = np.take(self.pairs, numbers, out=room.pairs[: len(block)], mode="clip")
        other = (pairs.view(np.uint64) != words.ravel()).view(np.uint16) != 0
        if block.null_count:
            other |= block.is_null().to_numpy(zero_copy_only=False)
        if other.any():
            places[other] = -1


@dataclass(frozen=True, eq=False)
class _Room:
    """Where a block is worked on."""

    slots: Words
    pairs: NDArray[np.complex128]


def _words(views: Any) -> Words:
    """Return the two words of each view: length and text, or what stands in for a long one."""
    words = np.frombuffer(views.buffers()[1], np.uint64).reshape(-1, 2)
    return words[views.offset : views.offset + len(views)]


def _slots(words: Words, multiplier: np.uint64, shift: np.uint64, *, out: Words) -> None:
    np.multiply(words[:, 0], multiplier, out=out)
    out ^= words[:, 1]
    out *= multiplier
    out >>= shift
