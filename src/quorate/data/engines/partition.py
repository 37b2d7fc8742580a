"""Writing records to the files of their parts.

Threads convert batches of a table to records and divide each batch into parts. One more thread
writes the finished pieces while the next batches are converted.
"""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextvars import copy_context
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np

from quorate.data.engines.layout import Layout, Records, split_records
from quorate.data.engines.part_files import PartFiles
from quorate.data.engines.progress import Progress
from quorate.exceptions import QuorateError, SchemaError

__all__ = ["ahead", "partition"]

Result = TypeVar("Result")

# What is gathered before it goes to the files of the parts; as much again is being written.
_BUFFER_BYTES = 2**25


def ahead(work: Callable[[Any], Result], items: Iterable[Any], threads: int) -> Iterator[Result]:
    """Yield results in the order of the items; only a few at a time are in memory.

    >>> list(ahead(len, ["a", "bc"], threads=2))
    [1, 2]
    """
    with ThreadPoolExecutor(threads) as pool:
        running: deque[Future[Result]] = deque()
        for item in items:
            running.append(pool.submit(copy_context().run, work, item))
            if len(running) > threads:
                yield running.popleft().result()
        while running:
            yield running.popleft().result()


def partition(
    batches: Iterable[Any],
    layout: Layout,
    files: Sequence[PartFiles],
    *,
    threads: int,
    bar: Progress,
) -> None:
    """Write the records of Arrow batches to the files of their parts.

    Examples
    --------
    >>> import pyarrow as pa
    >>> from quorate.data.engines.spool import Spool
    >>> table = pa.table({"id": [7, 5, 7], "age": [30.0, 61.0, 32.0]})
    >>> layout, spool = Layout.of(table.schema, user="id"), Spool()
    >>> files = [PartFiles(spool, str(i), layout.schema, layout) for i in range(2)]
    >>> with Progress(3, label="grouping", show=False) as bar:
    ...     partition(table.to_batches(), layout, files, threads=2, bar=bar)
    >>> sum(part.load().n_users for part in files)
    2
    """
    room = _Room(layout.dtype)

    def cut(batch: Any) -> _Piece:
        draft = room.take(batch.num_rows)
        place = room.take(batch.num_rows)
        records, cuts = split_records(layout.records(batch, out=draft), len(files), out=place)
        room.give(draft)
        return _Piece(records, cuts.tolist(), place, batch.num_rows)

    waiting: list[_Piece] = []
    with ThreadPoolExecutor(1) as writer:
        written = writer.submit(_write, [], files, room)
        for piece in _quietly(ahead(cut, batches, threads)):
            waiting.append(piece)
            bar.advance(piece.rows)
            if sum(one.place.nbytes for one in waiting) >= _BUFFER_BYTES:
                written.result()
                written = writer.submit(_write, waiting, files, room)
                waiting = []
        written.result()
    _write(waiting, files, room)


@dataclass(frozen=True)
class _Piece:
    """The records of a batch sorted by part: the array, and the position of each part in it."""

    records: Records
    cuts: list[int]
    place: Records
    rows: int


class _Room:
    """Arrays for records that are reused. Allocating memory takes longer than filling it."""

    def __init__(self, dtype: np.dtype[np.void]) -> None:
        self._dtype = dtype
        self._free: defaultdict[int, list[Records]] = defaultdict(list)

    def take(self, rows: int) -> Records:
        """Return an array with room for this many records, at most twice as long as needed."""
        size = 1 << max(0, rows - 1).bit_length()
        try:
            return self._free[size].pop()
        except IndexError:
            return np.empty(size, self._dtype)

    def give(self, array: Records) -> None:
        """Take back an array that is no longer used."""
        self._free[len(array)].append(array)


def _write(pieces: Sequence[_Piece], files: Sequence[PartFiles], room: _Room) -> None:
    for number, file in enumerate(files):
        own = [piece.records[piece.cuts[number] : piece.cuts[number + 1]] for piece in pieces]
        if any(map(len, own)):
            file.append(own)
    for piece in pieces:
        room.give(piece.place)


def _quietly(pieces: Iterator[Result]) -> Iterator[Result]:
    """Yield the items that are read; replace an error that may quote records by a fixed one."""
    while True:
        piece = None
        try:
            piece = next(pieces, None)
        except (QuorateError, OSError):
            raise
        except Exception:
            failed = True
        else:
            failed = False
        if failed:
            raise SchemaError("The table could not be read; why is withheld: it may quote records.")
        if piece is None:
            return
        yield piece
