"""An append-only file of entries, in which the ledger stores its records.

This module knows nothing about privacy. An acknowledged entry is on disk and stays there, even with
several processes, threads, forks and ``kill -9``. A file that is not a ledger, or that is damaged,
is refused and not changed.

Why it is built this way:

* *SQLite with a rollback journal, not a write-ahead log.* Between two entries one file holds
  everything, so a copy of it misses nothing. ``synchronous = EXTRA`` also flushes the folder after
  the journal is removed, so a power cut cannot roll an acknowledged entry back.
* *A file appears complete*: it is written under a temporary name, flushed, then linked to its final
  name. So an empty or half-written file must be damaged; it cannot be a new one.
* *The header is read as plain bytes* before SQLite opens the file, because SQLite would replay a
  journal that lies beside a foreign database. POSIX drops a process's locks on a file when any of
  its descriptors is closed, hence a process makes one call at a time. For the same reason a program
  must not open the file by other means while it writes.
"""

from __future__ import annotations

import functools
import hashlib
import json
import os
import sqlite3
import threading
from collections.abc import Iterable, Iterator, Mapping
from contextlib import closing, contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple, NoReturn

from quorate.exceptions import LedgerError, LedgerFileError

__all__ = ["AppendOnlyFile", "Entry", "Transaction", "read_chain"]

_APPLICATION_ID = 0x51554F52  # public: "QUOR", the mark of the file format (byte 68 of the header)
_FORMAT_VERSION = 1  # SQLite's user_version, at byte 60

_SCHEMA = (
    "CREATE TABLE entries (id INTEGER PRIMARY KEY, kind TEXT NOT NULL, time TEXT NOT NULL, "
    "who TEXT NOT NULL, data_name TEXT NOT NULL, purpose TEXT NOT NULL, epsilon TEXT NOT NULL, "
    "delta TEXT NOT NULL, document TEXT NOT NULL, digest TEXT NOT NULL)",
    "CREATE TRIGGER entries_stay BEFORE DELETE ON entries "
    "BEGIN SELECT RAISE(ABORT, 'the ledger is append-only'); END",
    "CREATE TRIGGER entries_do_not_change BEFORE UPDATE ON entries "
    "BEGIN SELECT RAISE(ABORT, 'the ledger is append-only'); END",
    # INSERT OR REPLACE would delete without waking the first trigger.
    "CREATE TRIGGER entries_come_last BEFORE INSERT ON entries "
    "WHEN NEW.id IS NOT (SELECT coalesce(max(id), 0) + 1 FROM entries) "
    "BEGIN SELECT RAISE(ABORT, 'the ledger is append-only'); END",
)
_SELECT_SCHEMA = (
    "SELECT type, name, sql FROM sqlite_master WHERE name NOT LIKE 'sqlite~_%' ESCAPE '~'"
)

_one_call_at_a_time = threading.Lock()
if hasattr(os, "register_at_fork"):
    # A child forked in the middle of a call would inherit SQLite's memory of locks it has not got.
    os.register_at_fork(
        before=_one_call_at_a_time.acquire,
        after_in_parent=_one_call_at_a_time.release,
        after_in_child=_one_call_at_a_time.release,
    )


class Entry(NamedTuple):
    """One entry of the file; ``digest`` covers all other fields and the digest before.

    >>> Entry(1, "charge", "2026-01-01T00:00:00+00:00", "me", "visits", "mean", "1/2", "0", "{}",
    ...       digest="").epsilon
    '1/2'
    """

    id: int
    kind: str
    time: str
    who: str
    data_name: str
    purpose: str
    epsilon: str
    delta: str
    document: str
    digest: str


@dataclass(frozen=True)
class Transaction:
    """All entries so far, with an exclusive lock for appending.

    >>> Transaction(None, []).last_digest
    ''
    """

    connection: sqlite3.Connection | None
    entries: list[Entry]

    @property
    def last_digest(self) -> str:
        """Digest of the last entry; it covers the whole history."""
        return self.entries[-1].digest if self.entries else ""

    def append(self, **fields: str) -> Entry:
        """Add an entry with the given fields; it takes effect when the transaction ends."""
        if self.connection is None:
            raise LedgerError("Expected a transaction with write=True, got one that only reads.")
        time = datetime.now(UTC).isoformat(timespec="microseconds")
        entry = Entry(id=len(self.entries) + 1, time=time, digest="", **fields)
        entry = entry._replace(digest=_digest(self.last_digest, entry))
        marks = ", ".join("?" * len(entry))
        self.connection.execute(f"INSERT INTO entries VALUES ({marks})", entry)
        self.entries.append(entry)
        return entry


@dataclass(frozen=True)
class AppendOnlyFile:
    """The file at ``path``; ``timeout`` is how many seconds to wait for other writers.

    >>> import tempfile
    >>> folder = tempfile.TemporaryDirectory()
    >>> file = AppendOnlyFile(Path(folder.name) / "entries.db")
    >>> file.create()
    >>> with file.transaction(write=True) as page:
    ...     _ = page.append(kind="charge", who="me", data_name="visits", purpose="mean",
    ...                     epsilon="1/2", delta="0", document="{}")
    >>> with file.transaction(write=False) as page:
    ...     print([entry.purpose for entry in page.entries])
    ['mean']
    >>> folder.cleanup()
    """

    path: Path
    timeout: float = 30.0

    def create(self) -> None:
        """Create an empty file, unless it exists (another process may have created it)."""
        if os.path.lexists(self.path):
            return
        draft = self.path.with_name(f"{self.path.name}.{os.urandom(8).hex()}.new")
        try:
            try:
                with open(draft, "xb") as stream:
                    stream.write(_blank()[0])
                    stream.flush()
                    os.fsync(stream.fileno())
                os.link(draft, self.path)
            finally:
                draft.unlink(missing_ok=True)
        except FileExistsError:
            return
        except OSError as error:
            raise LedgerFileError(
                f"The ledger file {self.path} could not be created ({error.strerror}). Choose a "
                "folder that exists, is writable and allows hard links."
            ) from error
        if os.name == "posix":
            folder = os.open(self.path.parent, os.O_RDONLY)
            try:
                os.fsync(folder)
            finally:
                os.close(folder)

    @contextmanager
    def transaction(self, *, write: bool) -> Iterator[Transaction]:
        """Check the file and yield its entries; commit durably at the end, roll back on error."""
        if not _one_call_at_a_time.acquire(timeout=self.timeout):
            self._refuse_to_wait(cause=None)
        try:
            self._check_header()
            uri = f"{self.path.as_uri()}?mode=rw"
            with closing(
                sqlite3.connect(uri, uri=True, timeout=self.timeout, isolation_level=None)
            ) as connection:
                connection.execute("PRAGMA journal_mode = DELETE")
                connection.execute("PRAGMA synchronous = EXTRA")
                connection.execute("PRAGMA fullfsync = ON")  # macOS; no effect elsewhere
                connection.execute(f"PRAGMA query_only = {'OFF' if write else 'ON'}")
                connection.execute("BEGIN IMMEDIATE" if write else "BEGIN")
                yield Transaction(connection if write else None, self._checked_entries(connection))
                connection.execute("COMMIT")
        # A message that quotes damaged bytes fails to decode before it becomes an sqlite3.Error.
        except UnicodeDecodeError as error:
            self._reject("is damaged (its text is not Unicode)", cause=error)
        except sqlite3.Error as error:
            code = getattr(error, "sqlite_errorcode", 0) & 0xFF
            if code in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED):
                self._refuse_to_wait(cause=error)
            if code in (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB):
                self._reject(f"is damaged ({error})", cause=error)
            raise LedgerFileError(
                f"The ledger file {self.path} could not be read or written ({error}). Check disk, "
                "folder and permissions, then the history: an entry may be there already."
            ) from error
        finally:
            _one_call_at_a_time.release()

    def _check_header(self) -> None:
        try:
            with open(self.path, "rb") as stream:
                header = stream.read(100)
        except OSError as error:
            self._reject(f"could not be opened ({error.strerror})", cause=error)
        if len(header) < 100 or not header.startswith(b"SQLite format 3\0"):
            self._reject("is not a ledger, or its beginning is damaged")
        if int.from_bytes(header[68:72]) != _APPLICATION_ID:
            self._reject("is an SQLite database of another program")
        version = int.from_bytes(header[60:64])
        if version > _FORMAT_VERSION:
            self._reject(
                f"has format {version} of a newer Quorate; this one reads format "
                f"{_FORMAT_VERSION}, so install the newer one"
            )
        if version != _FORMAT_VERSION:
            self._reject(f"is damaged (format {version} never existed)")
        if header[18:20] != b"\1\1":
            self._reject(
                "was switched to a write-ahead log; turn it back with PRAGMA journal_mode = DELETE"
            )

    def _checked_entries(self, connection: sqlite3.Connection) -> list[Entry]:
        found = connection.execute("PRAGMA quick_check(1)").fetchone()[0]
        if found != "ok":
            self._reject(f"is damaged ({found})")
        if frozenset(connection.execute(_SELECT_SCHEMA)) != _blank()[1]:
            self._reject(
                "is damaged or was tampered with: its tables or triggers are not those of a ledger"
            )
        columns = ", ".join(Entry._fields)
        rows = connection.execute(f"SELECT {columns} FROM entries ORDER BY id")
        entries: list[Entry] = []
        digest = ""
        for row in rows:
            entry = Entry(*row)
            digest = _digest(digest, entry)
            if entry.id != len(entries) + 1 or entry.digest != digest:
                self._reject(
                    f"is damaged or was tampered with: the chain breaks at entry {len(entries) + 1}"
                )
            entries.append(entry)
        return entries

    def _refuse_to_wait(self, *, cause: Exception | None) -> NoReturn:
        raise LedgerError(
            f"The ledger {self.path} stayed locked by another writer for {self.timeout:g} s. "
            "Nothing was written: try again, or allow a longer timeout."
        ) from cause

    def _reject(self, what: str, *, cause: Exception | None = None) -> NoReturn:
        raise LedgerFileError(
            f"The ledger file {self.path} {what}. It was left as it is: check the path, or restore "
            "the last good copy and enter by hand what was charged since."
        ) from cause


def read_chain(exported: Iterable[Mapping[str, Any]]) -> list[Entry]:
    """Return the entries of an exported file; refuse those whose chain is broken.

    >>> read_chain([])
    []
    """
    entries: list[Entry] = []
    digest = ""
    for place, fields in enumerate(exported, start=1):
        text = json.dumps(fields["document"], sort_keys=True)
        entry = Entry(**{**fields, "document": text})
        digest = _digest(digest, entry)
        if entry.id != place or entry.digest != digest:
            raise LedgerFileError(
                f"The export is damaged or was tampered with: the chain breaks at entry {place}."
            )
        entries.append(entry)
    return entries


def _digest(previous: str, entry: Entry) -> str:
    text = json.dumps([previous, *entry[:-1]], default=repr)
    return hashlib.sha256(text.encode()).hexdigest()


@functools.cache
def _blank() -> tuple[bytes, frozenset[tuple[str, str, str]]]:
    """Return the bytes of a file without entries, and its schema as SQLite spells it."""
    with closing(sqlite3.connect(":memory:", isolation_level=None)) as connection:
        connection.execute(f"PRAGMA application_id = {_APPLICATION_ID}")
        connection.execute(f"PRAGMA user_version = {_FORMAT_VERSION}")
        for statement in _SCHEMA:
            connection.execute(statement)
        return connection.serialize(), frozenset(connection.execute(_SELECT_SCHEMA))
