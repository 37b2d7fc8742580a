"""The message store of a collector: a file that survives ``kill -9`` and counts nobody twice.

An acknowledged message is on disk before the acknowledgement leaves (SQLite, write-ahead log,
``synchronous = FULL``), and its admission token with it in the same transaction. So a client that
got no answer sends the same message with the same token again, and the message is stored once,
however often the process was killed in between.

A shuffler's store deletes: when a batch is made, the messages move from the table to the outbox in
a random order in one transaction, and deleted rows are overwritten (``secure_delete``). The tokens
are kept, so that nobody is counted again later. A batch is final: later messages wait for a batch
of their own.
"""

from __future__ import annotations

import sqlite3
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from enum import Enum
from pathlib import Path

from quorate.core.once import OnceOnly
from quorate.exceptions import NotEnoughUsersError, ParameterError, SchemaError
from quorate.local.device_memory import close_to_others, create_for_owner, new_token
from quorate.local.messages import Reason
from quorate.local.shuffler import random_order
from quorate.local.task import Task

__all__ = ["Kept", "MessageStore"]

_PATIENCE = 100  # machine: time
_APPLICATION_ID = 0x51524D53  # public: the letters "QRMS", which mark the file
_SCHEMA = """
CREATE TABLE tasks (id TEXT PRIMARY KEY, seed TEXT NOT NULL UNIQUE, document TEXT NOT NULL,
    opened TEXT NOT NULL);
CREATE TABLE messages (task TEXT NOT NULL, token BLOB NOT NULL, message BLOB,
    PRIMARY KEY (task, token)) WITHOUT ROWID;
CREATE TABLE batches (task TEXT NOT NULL, token BLOB NOT NULL, messages BLOB NOT NULL,
    outgoing INTEGER NOT NULL, PRIMARY KEY (task, token)) WITHOUT ROWID;
CREATE TABLE drops (task TEXT NOT NULL, reason TEXT NOT NULL, count INTEGER NOT NULL,
    PRIMARY KEY (task, reason)) WITHOUT ROWID;
"""


class Kept(Enum):
    """The outcome of storing a message with a token.

    >>> Kept.NEW.value
    'kept'
    """

    NEW = "kept"
    ALREADY = "kept already"
    OTHER = "another message was kept for this token"


class MessageStore(OnceOnly):
    """The messages of one or more tasks in one file.

    Parameters
    ----------
    path : path
        Created if it does not exist; a file of another program is refused.

    Examples
    --------
    >>> import tempfile
    >>> folder = tempfile.TemporaryDirectory()
    >>> store = MessageStore(Path(folder.name) / "messages.db")
    >>> task = Task.local(name="t", candidates=8, epsilon=1.0)
    >>> store.open_task(task)
    >>> store.keep(task, b"token", b"message"), store.keep(task, b"token", b"message")
    (<Kept.NEW: 'kept'>, <Kept.ALREADY: 'kept already'>)
    >>> store.messages(task)
    [b'message']
    >>> store.close(); folder.cleanup()
    """

    def __init__(self, path: Path | str, *, must_exist: bool = False) -> None:
        super().__init__()
        self.path = Path(path)
        if must_exist and not self.path.exists():
            raise ParameterError(f"Expected a store of messages, got no file at {self.path}.")
        self._lock = threading.Lock()
        # Who sent what is nobody's business but the shuffler's.
        create_for_owner(self.path)
        try:
            self._connection = sqlite3.connect(
                self.path, timeout=30.0, isolation_level=None, check_same_thread=False
            )
            self._prepare()
            close_to_others(self.path)
        except sqlite3.DatabaseError as problem:
            raise SchemaError(
                f"Expected a store of messages at {self.path}, got something else ({problem})."
            ) from None

    def _prepare(self) -> None:
        run = self._connection.execute
        found = run("PRAGMA application_id").fetchone()[0]
        tables = run("SELECT count(*) FROM sqlite_master").fetchone()[0]
        if found != _APPLICATION_ID and tables:
            raise SchemaError(f"Expected a store of messages, got another database: {self.path}.")
        run("PRAGMA journal_mode = WAL")
        run("PRAGMA synchronous = FULL")
        run("PRAGMA secure_delete = ON")
        if not tables:
            with self._transaction():
                # Another process may have made the tables while this one waited.
                if not run("SELECT count(*) FROM sqlite_master").fetchone()[0]:
                    for statement in _SCHEMA.split(";"):
                        run(statement)
                    run(f"PRAGMA application_id = {_APPLICATION_ID}")

    @contextmanager
    def _transaction(self) -> Iterator[None]:
        self.refuse_elsewhere()  # and SQLite would not see a lock that a fork shares
        with self._lock:
            self._connection.execute("BEGIN IMMEDIATE")
            try:
                yield
            except BaseException:
                self._connection.execute("ROLLBACK")
                raise
            self._connection.execute("COMMIT")

    def open_task(self, task: Task) -> None:
        """Register a task once; another task with the same seed is refused."""
        with self._transaction():
            row = self._connection.execute(
                "SELECT id FROM tasks WHERE seed = ? OR id = ?", (task.seed, task.id)
            ).fetchone()
            if row is not None:
                if row[0] == task.id:
                    return
                raise ParameterError(
                    f"Expected a seed of its own for task {task.id}, got the seed of task "
                    f"{row[0]}, which this store holds. Write the task with a new seed: shared "
                    "randomness that was seen once is not fixed before the data any more."
                )
            self._connection.execute(
                "INSERT INTO tasks VALUES (?, ?, ?, ?)",
                (task.id, task.seed, task.to_json(), datetime.now(UTC).isoformat()),
            )

    def tasks(self) -> list[Task]:
        """Return all tasks that were opened, the oldest first."""
        with self._lock:
            rows = self._connection.execute("SELECT document FROM tasks ORDER BY opened").fetchall()
        return [Task.from_json(row[0]) for row in rows]

    def keep(self, task: Task, token: bytes, message: bytes) -> Kept:
        """Store a message under its token; when this returns, it is on disk."""
        with self._transaction():
            row = self._connection.execute(
                "SELECT message FROM messages WHERE task = ? AND token = ?", (task.id, token)
            ).fetchone()
            if row is None:
                self._connection.execute(
                    "INSERT INTO messages VALUES (?, ?, ?)", (task.id, token, message)
                )
                return Kept.NEW
        # A batch has left with the message: nothing is known but that the token was used.
        if row[0] is None or bytes(row[0]) == message:
            return Kept.ALREADY
        self.drop(task, Reason.REPEATED)
        return Kept.OTHER

    def drop(self, task: Task, reason: Reason) -> None:
        """Count a message that was not stored."""
        with self._transaction():
            self._connection.execute(
                "INSERT INTO drops VALUES (?, ?, 1) ON CONFLICT DO UPDATE SET count = count + 1",
                (task.id, reason.name),
            )

    def dropped(self, task: Task) -> dict[Reason, int]:
        """Return how many messages were dropped, and why."""
        with self._lock:
            rows = self._connection.execute(
                "SELECT reason, count FROM drops WHERE task = ?", (task.id,)
            ).fetchall()
        return {Reason[reason]: count for reason, count in rows}

    def waiting(self, task: Task) -> int:
        """Return how many single messages are stored."""
        with self._lock:
            row = self._connection.execute(
                "SELECT count(*) FROM messages WHERE task = ? AND message IS NOT NULL", (task.id,)
            ).fetchone()
        return int(row[0])

    def messages(self, task: Task) -> list[bytes]:
        """Return the single messages, in the order of their random tokens."""
        query = "SELECT message FROM messages WHERE task = ? AND message IS NOT NULL"
        with self._lock:
            return [bytes(row[0]) for row in self._connection.execute(query, (task.id,))]

    def batches(self, task: Task, *, outgoing: bool = False) -> list[tuple[bytes, bytes]]:
        """Return (token, messages end to end) of every batch: received ones, or ones to send."""
        query = "SELECT token, messages FROM batches WHERE task = ? AND outgoing = ?"
        with self._lock:
            rows = self._connection.execute(query, (task.id, int(outgoing))).fetchall()
        return [(bytes(token), bytes(messages)) for token, messages in rows]

    def keep_batch(self, task: Task, token: bytes, messages: bytes) -> Kept:
        """Store a batch that a shuffler has sent; when this returns, it is on disk."""
        with self._transaction():
            added = self._connection.execute(
                "INSERT OR IGNORE INTO batches VALUES (?, ?, ?, 0)", (task.id, token, messages)
            ).rowcount
        return Kept.NEW if added else Kept.ALREADY

    def make_batch(self, task: Task, *, outgoing: bool = True) -> bytes:
        """Move all waiting messages into a batch in a random order; return the batch's token.

        It goes to the outbox, or stays here and is counted like a batch from another shuffler.
        Refused if there are fewer messages than the task requires.
        """
        with self._transaction():
            rows = self._connection.execute(
                "SELECT message FROM messages WHERE task = ? AND message IS NOT NULL", (task.id,)
            ).fetchall()
            if len(rows) < task.users:
                raise NotEnoughUsersError(
                    f"Expected {task.users} messages before any is passed on, got {len(rows)}. "
                    "Wait for more users."
                )
            messages = b"".join(bytes(rows[i][0]) for i in random_order(len(rows)))
            token = bytes.fromhex(new_token())
            self._connection.execute(
                "INSERT INTO batches VALUES (?, ?, ?, ?)",
                (task.id, token, messages, int(outgoing)),
            )
            self._connection.execute(
                "UPDATE messages SET message = NULL WHERE task = ?", (task.id,)
            )
        self._empty_the_log()
        return token

    def _empty_the_log(self) -> None:
        """Truncate the write-ahead log, in which overwritten data would remain.

        Readers may wait.
        """
        for _ in range(_PATIENCE):
            with self._lock:
                busy = self._connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()[0]
            if not busy:
                return
            time.sleep(0.05)

    def forget_batch(self, task: Task, token: bytes) -> None:
        """Remove a batch from the outbox after the server has acknowledged it."""
        with self._transaction():
            self._connection.execute(
                "DELETE FROM batches WHERE task = ? AND token = ? AND outgoing = 1",
                (task.id, token),
            )

    def close(self) -> None:
        """Close the file."""
        with self._lock:
            self._connection.close()
