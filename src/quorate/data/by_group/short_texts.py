"""Short labels in a text column, found by the 16 bytes that Arrow stores for each text.

A view of a text consists of its length and, for up to 12 bytes, the text itself, padded with zeros.
So a text equals one of a few short labels exactly if its 16 bytes are those of the label; a long
text has another length and never matches. Usually labels differ in one of the eight pairs of bytes,
which can directly be used as a table index; or in one of the four pieces of 4 bytes; or in an
8-byte hash of all bytes, which a public multiplier maps to a small table without collisions. Then a
column is looked up without hashing or copying every text.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from quorate.core.users.grouping import mix

__all__ = ["ShortTexts"]

Pieces = NDArray[np.uint32]

_LONGEST = 12
_MOST = 256
_PIECES, _PIECE = 4, 2**32 - 1
_TRIES = 64
# This many rows at once stay in a processor's cache.
_BLOCK = 1 << 16


@dataclass(frozen=True, eq=False)
class ShortTexts:
    """Labels with the bytes that distinguish them.

    >>> import pyarrow as pa
    >>> labels = ShortTexts.of(("north", "south"))
    >>> texts = pa.array(["south", None, "somewhere else", "north"], pa.string_view())
    >>> labels.places(texts).tolist()
    [1, -1, -1, 0]
    """

    slots: _Pair | _Slots
    table: NDArray[np.int64]
    views: NDArray[np.complex128]

    @classmethod
    @lru_cache(maxsize=8)
    def of(cls, labels: tuple[str, ...]) -> ShortTexts | None:
        """Return the labels with a lookup table; None if they are long, many or not distinct."""
        import pyarrow as pa

        octets = [label.encode("utf-8", "surrogatepass") for label in labels]
        if not 0 < len(labels) <= _MOST or max(map(len, octets)) > _LONGEST:
            return None
        views = np.ascontiguousarray(_views(pa.array(octets, pa.binary_view())))
        for slots in _ways(views):
            numbers = slots(views, np.empty(len(labels), np.int64))
            if len(set(numbers.tolist())) == len(labels):
                table = np.zeros(1 << slots.bits, dtype=np.int64)
                table[numbers] = np.arange(len(labels))
                # All bytes of a label as one item.
                return cls(slots, table, views.view(np.complex128).ravel())
        return None

    def places(self, column: Any) -> NDArray[np.int64]:
        """Return the index of each text of a column of views among the labels, or -1."""
        import pyarrow as pa

        chunks = column.chunks if isinstance(column, pa.ChunkedArray) else [column]
        found = np.empty(sum(map(len, chunks)), dtype=np.int64)
        room = _Room(min(_BLOCK, len(found)))
        start = 0
        for chunk in chunks:
            views, places = _views(chunk), found[start : start + len(chunk)]
            for begin in range(0, len(chunk), _BLOCK):
                end = min(begin + _BLOCK, len(chunk))
                self._block(views[begin:end], places[begin:end], room)
            if chunk.null_count:
                places[chunk.is_null().to_numpy(zero_copy_only=False)] = -1
            start += len(chunk)
        return found

    def _block(self, views: Pieces, places: NDArray[np.int64], room: _Room) -> None:
        size = len(views)
        numbers = self.slots(views, room.numbers[:size])
        # A slot is always in the table, so nothing is clipped: it is the quickest way to look up.
        np.take(self.table, numbers, out=places, mode="clip")
        np.take(self.views, places, out=room.views[:size], mode="clip")
        words, found = views.view(np.uint64).ravel(), room.views.view(np.uint64)[: 2 * size]
        other = np.not_equal(found, words, out=room.other[: 2 * size])
        if other.any():
            places[other.view(np.uint16) != 0] = -1


class _Room:
    """Working memory for a block of texts."""

    def __init__(self, size: int) -> None:
        self.numbers = np.empty(size, np.int64)
        self.views = np.empty(size, np.complex128)
        self.other = np.empty(2 * size, np.bool_)


@dataclass(frozen=True)
class _Pair:
    """A lookup table indexed by two of the bytes of a view."""

    pair: int

    bits: ClassVar[int] = 16

    def __call__(self, views: Pieces, out: NDArray[np.int64]) -> NDArray[np.int64]:
        out[...] = views.view(np.uint16)[:, self.pair]
        return out


@dataclass(frozen=True)
class _Slots:
    """A lookup table with 2^bits slots, indexed by one piece of a view or by all of them."""

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


def _ways(views: Pieces) -> Iterator[_Pair | _Slots]:
    """Yield possible lookup tables for labels, the quickest first."""
    pairs = views.view(np.uint16)
    yield from (_Pair(p) for p in range(2 * _PIECES) if _differ(pairs[:, p]))
    bits = 2 * max(3, (len(views) - 1).bit_length())
    apart = [p for p in range(_PIECES) if _differ(views[:, p])]
    for piece in (*apart[:1], None):
        for multiplier in mix(np.arange(_TRIES, dtype=np.uint64)) | np.uint64(1):
            yield _Slots(piece, int(multiplier), bits)


def _differ(values: NDArray[Any]) -> bool:
    return len(set(values.tolist())) == len(values)


def _views(texts: Any) -> Pieces:
    """Return the fields of each string view: length, and the text or a reference to it."""
    pieces = np.frombuffer(texts.buffers()[1], np.uint32).reshape(-1, _PIECES)
    return pieces[texts.offset : texts.offset + len(texts)]
