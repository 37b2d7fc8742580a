"""Short labels in a column of texts, found by the 16 bytes that Arrow keeps of each.

A view of a text is its length and, up to 12 bytes, the text itself, filled up with zeros. So a text
is one of a few short labels exactly if its 16 bytes are those of the label, and a long one, whose
length says so, is none. Mostly labels differ in one of the four pieces of 4 bytes, and otherwise in
the 8 bytes that scramble all of them: a public multiplier spreads these over a small table without
a collision. Then a column is looked up without a hash of its own and without being copied.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from quorate.users.grouping import mix

__all__ = ["ShortTexts"]

Pieces = NDArray[np.uint32]

_LONGEST = 12
_MOST = 256
_PIECES, _PIECE = 4, 2**32 - 1
_TRIES = 64
# So many rows at once stay in a processor's cache.
_BLOCK = 1 << 16


@dataclass(frozen=True, eq=False)
class ShortTexts:
    """Labels with the piece and the multiplier that keep them apart.

    >>> import pyarrow as pa
    >>> labels = ShortTexts.of(("north", "south"))
    >>> texts = pa.array(["south", None, "somewhere else", "north"], pa.string_view())
    >>> labels.places(texts).tolist()
    [1, -1, -1, 0]
    """

    slots: _Slots
    table: NDArray[np.int64]
    pairs: NDArray[np.complex128]

    @classmethod
    @lru_cache(maxsize=32)
    def of(cls, labels: tuple[str, ...]) -> ShortTexts | None:
        """Return the labels ready to be looked up; None if they are long, many or not different."""
        import pyarrow as pa

        octets = [label.encode("utf-8", "surrogatepass") for label in labels]
        if not 0 < len(labels) <= _MOST or max(map(len, octets)) > _LONGEST:
            return None
        views = _views(pa.array(octets, pa.binary_view()))
        bits = 2 * max(3, (len(labels) - 1).bit_length())
        apart = [p for p in range(_PIECES) if len(set(views[:, p].tolist())) == len(labels)]
        for piece in (*apart[:1], None):
            for multiplier in mix(np.arange(_TRIES, dtype=np.uint64)) | np.uint64(1):
                slots = _Slots(piece, int(multiplier), bits)
                numbers = slots(views, np.empty(len(labels), np.int64))
                if len(set(numbers.tolist())) == len(labels):
                    table = np.zeros(1 << bits, dtype=np.int64)
                    table[numbers] = np.arange(len(labels))
                    # All pieces of the label behind each slot, as one item of 16 bytes.
                    pairs = views[table].view(np.complex128).ravel()
                    return cls(slots, table, pairs)
        return None

    def places(self, column: Any) -> NDArray[np.int64]:
        """Return the place of each text of a column of views among the labels, or -1."""
        import pyarrow as pa

        chunks = column.chunks if isinstance(column, pa.ChunkedArray) else [column]
        found = np.empty(sum(map(len, chunks)), dtype=np.int64)
        size = min(_BLOCK, len(found))
        room = np.empty(size, np.int64), np.empty(size, np.complex128)
        start = 0
        for chunk in chunks:
            for begin in range(0, len(chunk), _BLOCK):
                block = chunk.slice(begin, _BLOCK)
                self._block(block, found[start : start + len(block)], *room)
                start += len(block)
        return found

    def _block(
        self,
        block: Any,
        places: NDArray[np.int64],
        numbers: NDArray[np.int64],
        room: NDArray[np.complex128],
    ) -> None:
        views = _views(block)
        numbers = self.slots(views, numbers[: len(block)])
        # A slot is always in the table, so nothing is clipped: it is the quickest way to look up.
        np.take(self.table, numbers, out=places, mode="clip")
        pairs = np.take(self.pairs, numbers, out=room[: len(block)], mode="clip")
        other = pairs.view(np.uint64) != views.view(np.uint64).ravel()
        if other.any():
            places[other.view(np.uint16) != 0] = -1
        if block.null_count:
            places[block.is_null().to_numpy(zero_copy_only=False)] = -1


@dataclass(frozen=True)
class _Slots:
    """Where views of texts stand in a table of 2^bits slots: by one piece, or by all of them."""

    piece: int | None
    multiplier: int
    bits: int

    def __call__(self, views: Pieces, out: NDArray[np.int64]) -> NDArray[np.int64]:
        if self.piece is not None:
            spread = views[:, self.piece] * np.uint32(self.multiplier & _PIECE)
            np.right_shift(spread, np.uint32(32 - self.bits), out=out)
            return out
        words, spread = views.view(np.uint64), out.view(np.uint64)
        np.multiply(words[:, 0], np.uint64(self.multiplier), out=spread)
        spread ^= words[:, 1]
        spread *= np.uint64(self.multiplier)
        spread >>= np.uint64(64 - self.bits)
        return out


def _views(texts: Any) -> Pieces:
    """Return the pieces of each view: length and text, or what stands in for a long one."""
    pieces = np.frombuffer(texts.buffers()[1], np.uint32).reshape(-1, _PIECES)
    return pieces[texts.offset : texts.offset + len(texts)]
