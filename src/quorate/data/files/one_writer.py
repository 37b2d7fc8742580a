"""SQLite files of one owner that appear completely, and have one writer at a time.

They record things that may be done only once: the steps of a training, the periods of a series.
The changes of a transaction are on disk when it ends, whatever interrupts the program or the
machine.
"""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import Any

from quorate.exceptions import ParameterError

__all__ = ["born_whole", "database", "failure", "one_writer"]

# machine: seconds that another writer may need until its page is on disk.
_PATIENCE = 60.0


def database(application_id: int, tables: Sequence[str], row: Sequence[Any]) -> bytes:
    """Return the bytes of a new database with these tables, and one row in the first of them.

    >>> database(1, ["CREATE TABLE series (id TEXT)"], ["ab12"])[:15]
    b'SQLite format 3'
    """
    with closing(sqlite3.connect(":memory:", isolation_level=None)) as made:
        made.execute(f"PRAGMA application_id = {application_id}")
        for statement in tables:
            made.execute(statement)
        first = made.execute("SELECT name FROM sqlite_schema").fetchone()[0]
        made.execute(f"INSERT INTO {first} VALUES ({', '.join('?' * len(row))})", tuple(row))
        return made.serialize()


def born_whole(path: Path, content: bytes) -> None:
    """Write a file of one owner that appears completely, unless one exists already.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     for content in (b"first", b"second"):
    ...         born_whole(Path(folder) / "store", content)
    ...     (Path(folder) / "store").read_bytes()
    b'first'
    """
    draft = path.with_name(f".{path.name}.{os.urandom(8).hex()}.new")
    try:
        file = os.open(draft, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600)
        with open(file, "wb") as stream:
            stream.write(content)
            stream.flush()
            os.fsync(file)
        with suppress(FileExistsError):
            os.link(draft, path)
    except OSError as error:
        raise ParameterError(
            f"Expected a place where a file can be made, got {path} ({error.strerror})."
        ) from None
    finally:
        draft.unlink(missing_ok=True)
    if os.name == "posix":
        folder = os.open(path.parent, os.O_RDONLY)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)


@contextmanager
def one_writer(path: Path, *, application_id: int) -> Iterator[sqlite3.Connection | None]:
    """Open a file for one writer at a time; commit durably at the end, roll back on error.

    It yields None for a database of another kind.
    """
    with closing(
        sqlite3.connect(
            f"{path.resolve().as_uri()}?mode=rw", uri=True, timeout=_PATIENCE, isolation_level=None
        )
    ) as connection:
        connection.execute("PRAGMA journal_mode = DELETE")
        connection.execute("PRAGMA synchronous = EXTRA")
        connection.execute("PRAGMA fullfsync = ON")  # macOS; no effect elsewhere
        connection.execute("PRAGMA secure_delete = ON")
        connection.execute("BEGIN IMMEDIATE")
        known = connection.execute("PRAGMA application_id").fetchone()[0] == application_id
        yield connection if known else None
        connection.execute("COMMIT")


def failure(error: sqlite3.Error) -> str:
    """Return a description of a failure, without the text of the error, which may quote data.

    >>> failure(sqlite3.OperationalError("no such table: visits"))
    'could not be read or written (SQLite says 0)'
    """
    code = getattr(error, "sqlite_errorcode", 0) & 0xFF
    return f"could not be read or written (SQLite says {code})"
