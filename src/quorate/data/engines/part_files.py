"""The records of one part of a crowd, in files: first unsorted, later sorted by user.

In their order of arrival they are a sequence of :attr:`~quorate.data.engines.layout.Layout.dtype`
records. In the order of the users they are memory-mapped arrays: features, targets, and where each
user begins.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from quorate.core.users.data import UserData, ordered_users
from quorate.data.columns.keys import count_keys
from quorate.data.engines.base import Arguments, Outcome, PartWork, Schema
from quorate.data.engines.layout import Layout, Records
from quorate.data.engines.spool import Spool

__all__ = ["PartFiles"]

_KINDS = {
    "x": np.float64,
    "y": np.float64,
    "keys": np.uint64,
    "marks": np.int64,
    "offsets": np.int64,
}
# What is read at once where a cap does not let a part be held whole.
_PIECE_BYTES = 2**24
# How many pieces go to the system in one call; POSIX promises 16, Linux takes 1024.
_AT_ONCE = 1024


class PartFiles:
    """One part of a crowd in a spool.

    >>> import pyarrow as pa
    >>> table = pa.table({"id": [7, 5, 7], "age": [30.0, 61.0, 32.0]})
    >>> layout = Layout.of(table.schema, user="id")
    >>> part = PartFiles(Spool(), "00000", layout.schema, layout)
    >>> part.append([layout.records(table.to_batches()[0])])
    >>> part.load().n_users
    2
    """

    def __init__(
        self, spool: Spool, name: str, schema: Schema, layout: Layout | None = None
    ) -> None:
        self.spool, self._name, self._schema, self._layout = spool, name, schema, layout
        self._lock = threading.Lock()

    def append(self, pieces: Sequence[Records]) -> None:
        """Append records, in their order."""
        file = _private(str(self._path("raw")), os.O_WRONLY | os.O_APPEND | os.O_CREAT)
        try:
            for start in range(0, len(pieces), _AT_ONCE):
                _write(file, pieces[start : start + _AT_ONCE])
        finally:
            os.close(file)

    @property
    def has_arrivals(self) -> bool:
        """Whether some records are not sorted yet."""
        path = self._path("raw")
        return path.exists() and path.stat().st_size > 0

    def count_users(self) -> int:
        """Count the users; of unsorted records only the keys are read."""
        with self._lock:
            if self._layout is None or not self.has_arrivals:
                return self.load().n_users
            return count_keys(np.ascontiguousarray(self._arrivals(self._layout)["key"]))

    def _arrivals(self, layout: Layout) -> Records:
        """Return the records in their order of arrival, memory-mapped; at least one must exist."""
        return np.asarray(np.memmap(self._path("raw"), layout.dtype, mode="r"))

    def load(self) -> UserData:
        """Return the users of the part: memory-mapped if sorted by user, read otherwise."""
        if self._path("offsets.npy").exists():
            return self._mapped()
        if self._layout is None or not self.has_arrivals:
            return self._schema.nobody()
        if self._layout.cap is None:
            return self._layout.users(self._arrivals(self._layout))
        return self._layout.together(_pieces(self._path("raw"), self._layout.dtype))

    def run(self, task: PartWork, arguments: Arguments) -> Outcome:
        """Run a task on the part; store the sorted order of the users if it was computed."""
        with self._lock:
            data = self.load()
            raw = self._path("raw").exists()
        outcome = task(data, arguments)
        if raw and data.in_order:
            self.settle(data)
        return outcome

    def settle(self, data: UserData | None = None) -> None:
        """Rewrite the part sorted by user; leave it unchanged if the disk is full."""
        with self._lock:
            if not self._path("raw").exists():
                return
            try:
                self.write(self.load() if data is None else data)
            except OSError:
                for file in self._ordered_files():
                    file.unlink(missing_ok=True)
            else:
                self._path("raw").unlink()

    def write(self, data: UserData) -> None:
        """Write users in their order; the file that marks the part as complete is written last."""
        single = self._layout is not None and self._layout.single
        arrays: dict[str, NDArray[Any]] = {
            "x": data.X.astype(np.float32) if single else data.X,
            "keys": data.keys(),
        }
        if data.y is not None:
            arrays["y"] = data.y
        if data.marks is not None:
            arrays["marks"] = data.marks
        for name, array in arrays.items():
            self._save(name, array)
        self._save("offsets", data.offsets)

    def _save(self, name: str, array: NDArray[Any]) -> None:
        with open(self._path(f"{name}.npy"), "wb", opener=_private) as file:
            np.lib.format.write_array(file, array, allow_pickle=False)

    def _mapped(self) -> UserData:
        found = {name: self._map(name) for name in ("x", "keys", "offsets")}
        return ordered_users(
            np.asarray(found["x"]),
            self._map("y") if self._schema.has_target else None,
            found["offsets"],
            found["keys"],
            self._schema.unit,
            self._schema.feature_names,
            self._map("marks") if self._path("marks.npy").exists() else None,
        )

    def _map(self, name: str) -> NDArray[Any]:
        """Map an array; its header is parsed here, because numpy's parser is not safe in threads.

        It parses the header as Python code, which fails now and then in CPython 3.11 when several
        threads do so at once.
        """
        path = self._path(f"{name}.npy")
        with path.open("rb") as file:
            start = 10 + int.from_bytes(file.read(10)[8:], "little")
            described = file.read(start - 10)
        dtype = np.dtype(np.float32 if b"'<f4'" in described else _KINDS[name])
        size = (path.stat().st_size - start) // dtype.itemsize
        # An empty array cannot be mapped.
        mapped: NDArray[Any] = (
            np.memmap(path, dtype, mode="r", offset=start, shape=(size,))
            if size
            else np.empty(0, dtype)
        )
        return mapped.reshape(-1, self._schema.n_features) if name == "x" else mapped

    def _path(self, ending: str) -> Path:
        return self.spool.path(f"{self._name}.{ending}")

    def _ordered_files(self) -> list[Path]:
        return [self._path(f"{name}.npy") for name in ("offsets", "x", "y", "keys", "marks")]


def _pieces(path: Path, dtype: np.dtype[np.void]) -> Iterator[Records]:
    """Yield the records of a file in order, few at a time."""
    with path.open("rb") as file:
        while len(piece := np.fromfile(file, dtype, count=max(1, _PIECE_BYTES // dtype.itemsize))):
            yield piece


def _write(file: int, pieces: Sequence[Records]) -> None:
    """Write pieces one after the other; the system may accept only some of the bytes at a time."""
    waiting: list[Any] = [np.ascontiguousarray(piece) for piece in pieces if len(piece)]
    while waiting:
        taken = os.writev(file, waiting)
        while waiting and taken >= waiting[0].nbytes:
            taken -= waiting.pop(0).nbytes
        if taken:
            waiting[0] = waiting[0].view(np.uint8)[taken:]


def _private(path: str, flags: int) -> int:
    return os.open(path, flags, 0o600)
