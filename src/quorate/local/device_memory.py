"""The answers of a device, in one small file that survives restarts of the program.

A message is written here before it leaves the device. After a restart the program gets the same
bytes with the same admission token, so a lost connection costs no privacy and no user counts twice.
After the message was acknowledged, a further attempt is refused. The privacy losses of all messages
of the file together stay below the limit of the client.
"""

from __future__ import annotations

import os
import sqlite3
import stat
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path

from quorate._validate import exact
from quorate.core.noise import ambient_noise
from quorate.exceptions import BudgetExceededError, ParameterError, SchemaError

__all__ = ["DeviceMemory", "StoredAnswer", "close_to_others", "create_for_owner", "new_token"]

_APPLICATION_ID = 0x51524456  # public: the mark of the file format, "QRDV"
_SCHEMA = """CREATE TABLE answers (task TEXT PRIMARY KEY, message BLOB NOT NULL,
    token TEXT NOT NULL, epsilon TEXT NOT NULL, acknowledged INTEGER NOT NULL)"""


def new_token() -> str:
    """Return a random admission token; keep it with the message until it is acknowledged.

    >>> len(new_token())
    32
    """
    return ambient_noise().uniform_words(2).tobytes().hex()


def create_for_owner(path: Path) -> None:
    """Create an empty file that only its owner can read, unless it exists.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     create_for_owner(Path(folder) / "messages.db")
    ...     oct((Path(folder) / "messages.db").stat().st_mode & 0o777)
    '0o600'
    """
    try:
        # Not made and then closed to others: somebody could have opened it in between.
        os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o600))
    except FileExistsError:
        return
    except OSError:
        raise ParameterError(f"Expected a place where a file can be made, got {path}.") from None


def close_to_others(path: Path) -> None:
    """Remove all other users' rights to a database and to the files that SQLite creates beside it.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     old = Path(folder) / "messages.db"
    ...     old.touch(0o644)
    ...     close_to_others(old)
    ...     oct(old.stat().st_mode & 0o777)
    '0o600'
    """
    for end in ("", "-wal", "-shm", "-journal"):
        file = path.with_name(path.name + end)
        with suppress(FileNotFoundError):
            mode = stat.S_IMODE(file.stat().st_mode)
            if mode & 0o077 == 0:
                continue
            try:
                file.chmod(mode & 0o700)
            except PermissionError:
                raise ParameterError(
                    f"Expected a file that nobody else can read, got {file} with mode {mode:o}, "
                    "which belongs to another user."
                ) from None


@dataclass(frozen=True)
class StoredAnswer:
    """A message with the token that admits it once, and whether it was acknowledged.

    >>> StoredAnswer(b"message", "00" * 16).acknowledged
    False
    """

    message: bytes
    token: str
    acknowledged: bool = False


class DeviceMemory:
    """The answers of one device, by task, in a file of its owner.

    Parameters
    ----------
    path : path
        Created if it does not exist; a file of another program is refused.

    Examples
    --------
    >>> import tempfile
    >>> folder = tempfile.TemporaryDirectory()
    >>> memory = DeviceMemory(Path(folder.name) / "answers.db")
    >>> made = memory.first("task", 1.0, limit=1.5, make=lambda: StoredAnswer(b"yes", "00" * 16))
    >>> memory.first("task", 1.0, limit=1.5, make=lambda: StoredAnswer(b"no", "11" * 16)) == made
    True
    >>> memory.first("another", 1.0, limit=1.5, make=lambda: made)
    Traceback (most recent call last):
        ...
    quorate.exceptions.BudgetExceededError: Expected messages of at most epsilon=1.5 together, ...
    >>> folder.cleanup()
    """

    def __init__(self, path: Path | str) -> None:
        self.path = Path(path)
        create_for_owner(self.path)
        with self._opened() as run:
            if run("SELECT count(*) FROM sqlite_master").fetchone()[0] == 0:
                run(_SCHEMA)
                run(f"PRAGMA application_id = {_APPLICATION_ID}")
            elif run("PRAGMA application_id").fetchone()[0] != _APPLICATION_ID:
                raise SchemaError(
                    f"Expected the answers of a device at {self.path}, got another database."
                )
        close_to_others(self.path)

    @contextmanager
    def _opened(self) -> Iterator[Callable[..., sqlite3.Cursor]]:
        """Let one process at a time read and write; afterwards everything written is on disk."""
        connection = sqlite3.connect(self.path, timeout=30.0, isolation_level=None)
        try:
            connection.execute("PRAGMA synchronous = FULL")
            connection.execute("BEGIN IMMEDIATE")
            yield connection.execute
            connection.execute("COMMIT")
        except sqlite3.DatabaseError as problem:
            raise SchemaError(
                f"Expected the answers of a device at {self.path}, got something else ({problem})."
            ) from None
        finally:
            connection.close()

    def recall(self, task: str) -> StoredAnswer | None:
        """Return this device's answer to the task with this id, or None."""
        with self._opened() as run:
            return _found(run, task)

    def first(
        self, task: str, epsilon: float, *, limit: float, make: Callable[[], StoredAnswer]
    ) -> StoredAnswer:
        """Return the answer to a task; if there is none, create and store one first.

        Raise an error if all messages of this device together would exceed ``limit``.
        """
        with self._opened() as run:
            known = _found(run, task)
            if known is not None:
                return known
            held = run("SELECT epsilon FROM answers").fetchall()
            spent = sum((Fraction(each) for (each,) in held), Fraction(0))
            if spent + exact(epsilon) > exact(limit):
                raise BudgetExceededError(
                    f"Expected messages of at most epsilon={limit!r} together, the limit of this "
                    f"client, got one of epsilon={epsilon!r} beside others of epsilon="
                    f"{float(spent)!r}."
                )
            made = make()
            row = (task, made.message, made.token, str(exact(epsilon)), int(made.acknowledged))
            run("INSERT INTO answers VALUES (?, ?, ?, ?, ?)", row)
            return made

    def acknowledge(self, task: str) -> None:
        """Remember that the answer to a task has arrived."""
        with self._opened() as run:
            run("UPDATE answers SET acknowledged = 1 WHERE task = ?", (task,))


def _found(run: Callable[..., sqlite3.Cursor], task: str) -> StoredAnswer | None:
    query = "SELECT message, token, acknowledged FROM answers WHERE task = ?"
    row = run(query, (task,)).fetchone()
    return None if row is None else StoredAnswer(bytes(row[0]), str(row[1]), bool(row[2]))
