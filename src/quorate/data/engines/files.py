"""A crowd in files, for more records than fit into memory: the default on one machine.

The source is read once, piece by piece; each record is written to the file of its user's part. A
part is small enough for memory. When a part is first needed in the order of its users, it is
rewritten in that order, and from then on memory-mapped. Everything is stored in a
:class:`~quorate.data.engines.spool.Spool`: a private folder, removed together with the crowd or,
after a crash, by the next process. The number of parts of a crowd is public. The number of files in
use depends on the records, so it is not shown.
"""

from __future__ import annotations

import math
import os
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict
from functools import cached_property
from pathlib import Path
from typing import Any, Self

from quorate import _validate
from quorate.core.public_randomness import RandomState
from quorate.core.users.closed import closed
from quorate.core.users.data import UserData
from quorate.data import frames
from quorate.data.engines.base import Arguments, Outcome, PartedCrowd, PartWork, Schema, results_of
from quorate.data.engines.layout import Layout
from quorate.data.engines.part_files import PartFiles
from quorate.data.engines.partition import ahead, partition
from quorate.data.engines.progress import Progress
from quorate.data.engines.spool import Spool, disk_errors

__all__ = ["FileCrowd", "about_file"]

# A public number, whatever the records are: 16 gigabytes of them lie in parts of 32 megabytes.
_PARTS = 512
# Small parts lie together: in one file up to the first of these sizes where they are as they came,
# up to the second where they are kept beside others, since rounds then cost less.
_PART_BYTES = 2**25
_KEPT_BYTES = 2**23
_BATCH_ROWS = 2**17


class FileCrowd(PartedCrowd):
    """Users in files; every file contains whole users.

    Built by :meth:`from_parquet` or :meth:`from_batches`.

    Examples
    --------
    >>> import pyarrow as pa
    >>> table = pa.table({"id": ["ann", "bob", "ann"], "age": [30.0, 61.0, 32.0]})
    >>> layout = Layout.of(table.schema, user="id")
    >>> crowd = FileCrowd.from_batches(table.to_batches(), layout, n_parts=4)
    >>> crowd.n_users, crowd
    (2, FileCrowd(n_features=1, target=False, unit='id', n_parts=4))
    """

    def __init__(
        self,
        parts: Sequence[PartFiles],
        schema: Schema,
        changes: tuple[Callable[..., UserData], ...] = (),
        arguments: tuple[Arguments, ...] | None = None,
        *,
        n_parts: int | None = None,
        threads: int = 2,
    ) -> None:
        super().__init__(schema, len(parts), changes, arguments)
        self._parts, self._threads = list(parts), threads
        self._stated_parts = len(parts) if n_parts is None else n_parts

    @property
    def n_parts(self) -> int:
        """The stated number of parts, or 512; it is public, unlike the number of files."""
        return self._stated_parts

    @classmethod
    @closed
    def from_parquet(  # noqa: PLR0913 - those of a table, and where it is to lie
        cls,
        path: str | os.PathLike[str],
        *,
        user: str | Sequence[str],
        features: Sequence[str] | None = None,
        target: str | None = None,
        unit: str | None = None,
        missing: str | float = "drop",
        classes: Sequence[Any] | None = None,
        categories: Mapping[str, Sequence[Any]] | None = None,
        dates: Mapping[str, tuple[Any, Any]] | None = None,
        cap: int | None = None,
        random_state: RandomState = None,
        order: str | None = None,
        spool: str | os.PathLike[str] | None = None,
        n_parts: int | None = None,
        threads: int = 2,
        progress: bool | None = None,
    ) -> FileCrowd:
        """Group the rows of a Parquet file, or of a folder of them, by user, on disk.

        Parameters
        ----------
        path, user, features, target, unit, missing, classes, categories, dates, order
            See :meth:`quorate.UserData.from_frame`.
        cap, random_state : int, optional
            Keep at most this many records of each user, the same as :meth:`cap`, without ever
            having more of them in memory; for giant users.
        spool : path, optional
            A folder for the grouped records that is kept, and reused for the same files and
            columns. By default they are stored in a temporary folder and deleted with the crowd.
        n_parts : int, optional
            A part has to fit into memory once per thread. By default 512, of which small ones are
            stored together. The number is public and must not depend on the records.
        threads : int, default=2
        progress : bool, optional
            Whether to show a progress bar; by default on a terminal only.
        """
        dataset = frames.open_parquet(path)
        layout = Layout.of(
            dataset.schema,
            user=user,
            features=features,
            target=target,
            unit=unit,
            missing=missing,
            classes=classes,
            categories=categories,
            dates=dates,
            cap=cap,
            random_state=random_state,
            order=order,
        )
        rows = dataset.count_rows()
        import pyarrow.dataset as ds

        # Little is read ahead: whole row groups of several files would take a gigabyte.
        frugal = ds.ParquetFragmentScanOptions(pre_buffer=False, use_buffered_stream=True)
        batches = frames.batches_of(
            dataset,
            layout.columns,
            batch_size=_BATCH_ROWS,
            batch_readahead=1,
            fragment_readahead=1,
            fragment_scan_options=frugal,
        )
        return cls.from_batches(
            batches,
            layout,
            rows=rows,
            spool=spool,
            source={"files": [about_file(file) for file in dataset.files]},
            n_parts=n_parts,
            threads=threads,
            progress=progress,
        )

    @classmethod
    @closed
    def from_batches(
        cls,
        batches: Iterable[Any],
        layout: Layout,
        *,
        rows: int | None = None,
        spool: str | os.PathLike[str] | None = None,
        source: dict[str, Any] | None = None,
        n_parts: int | None = None,
        threads: int = 2,
        progress: bool | None = None,
    ) -> FileCrowd:
        """Group the rows of Arrow batches by user, on disk.

        ``rows`` is their number if it is known, for the progress bar and the sizes of files.
        ``source`` identifies them for a ``spool`` that is reused; without it the spool is created
        anew.
        """
        stored = stated = _PARTS if n_parts is None else n_parts
        _validate.positive_integer(threads=threads, n_parts=stated)
        if n_parts is None and rows is not None:
            each = 8 * (len(layout.features) + 2)
            stored = min(max(math.ceil(rows * each / _PART_BYTES), 1), _PARTS)
        place = Spool(spool)
        about = None if source is None else {**source, "n_parts": stored, **_public(layout)}
        files = [PartFiles(place, f"{i:05d}", layout.schema, layout) for i in range(stored)]
        if about is None or not place.is_complete(about):
            with disk_errors(place), Progress(rows, label="grouping by user", show=progress) as bar:
                place.clear()
                partition(batches, layout, files, threads=threads, bar=bar)
                if place.keeps:
                    deque(ahead(PartFiles.settle, files, threads), maxlen=0)
                if about is not None:
                    place.complete(about)
        return cls(files, layout.schema, n_parts=stated, threads=threads)

    @property
    def is_empty(self) -> bool:
        """Whether there are no users; every record that was added belongs to one."""
        if not self._changes and any(part.has_arrivals for part in self._parts):
            return False
        return super().is_empty

    @cached_property
    def sizes(self) -> tuple[int, ...]:
        """Number of users of each part; as public as their sum."""
        if self._changes:
            return super().sizes
        return tuple(ahead(PartFiles.count_users, self._parts, self._threads))

    def _run(self, task: PartWork, arguments: Sequence[Arguments]) -> Iterable[Outcome]:
        def run(pair: tuple[PartFiles, Arguments]) -> Outcome:
            return pair[0].run(task, pair[1])

        yield from ahead(run, zip(self._parts, arguments, strict=True), self._threads)

    def _stored(self, task: PartWork, arguments: Sequence[Arguments], schema: Schema) -> Self:
        place = Spool()
        files: list[PartFiles] = []
        results = (users for out in self._run(task, arguments) for users in results_of([out]))
        with disk_errors(place):
            for few in _joined(results, schema):
                files.append(PartFiles(place, f"{len(files):05d}", schema))
                files[-1].write(few)
        return type(self)(files, schema, n_parts=self.n_parts, threads=self._threads)

    def _changed(
        self,
        schema: Schema,
        changes: tuple[Callable[..., UserData], ...],
        arguments: tuple[Arguments, ...],
    ) -> Self:
        return type(self)(
            self._parts, schema, changes, arguments, n_parts=self.n_parts, threads=self._threads
        )


def _joined(parts: Iterable[UserData], schema: Schema) -> Iterator[UserData]:
    """Yield the users of neighbouring parts together while they are small, for faster rounds.

    Parts are in the order of the keys, and so are the joined parts.
    """
    waiting: list[UserData] = []
    size = 0
    for users in parts:
        own = users.X.nbytes + users.offsets.nbytes
        if waiting and size + own > _KEPT_BYTES:
            yield schema.nobody().joined(waiting)
            waiting, size = [], 0
        waiting.append(users)
        size += own
    yield schema.nobody().joined(waiting)


def about_file(file: str | os.PathLike[str]) -> list[Any]:
    """Return the identity of a file for a kept spool: name, size and time."""
    found = Path(file).stat()
    return [str(Path(file).resolve()), found.st_size, found.st_mtime_ns]


def _public(layout: Layout) -> dict[str, Any]:
    return {name: _shown(value) for name, value in asdict(layout).items()}


def _shown(value: Any) -> Any:
    return list(map(repr, value)) if isinstance(value, tuple) else repr(value)
