"""The state of a series between periods: one private file, and a key beside it.

Private. The file holds how much of their length people have used, by keyed hashes of their ids
(:mod:`quorate.series.id_hashes`), and the releases so far. With correlated noise it also holds the
exact totals that later releases need. Only its owner can read it. The key is in a separate file, so
that a copy of only one of them reveals nothing about an id.

A period is written in one transaction (SQLite, rollback journal, ``synchronous = EXTRA``) together
with the lengths that people used in it and a random identifier, its *state*. Then the state is
entered in the ledger, and only after that the release is shown. So if the program is killed, one of
three things is true:

* before the transaction, nothing happened, and the noise drawn was never shown;
* after it, the release is stored and will be shown unchanged by the next run;
* if the file is missing or older than the ledger, it does not know the ledger's last state and is
  refused, because it would record less use than there was.
"""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NoReturn

import numpy as np
from numpy.typing import NDArray

from quorate.core.guarantees import Numerics
from quorate.data.files.one_writer import born_whole, database, failure, one_writer
from quorate.exceptions import SeriesStoreError
from quorate.local.device_memory import close_to_others
from quorate.series.id_hashes import KEY_BYTES, numbers_for_texts, siphash
from quorate.series.spending import Bounded, Lookup

__all__ = ["Period", "SeriesStore", "SeriesTransaction"]

Integers = NDArray[np.int64]
Words = NDArray[np.uint64]

_APPLICATION_ID = 0x51525345  # public: the mark of the file format, "QRSE"
_SCHEMA = (
    "CREATE TABLE series (id TEXT NOT NULL, design TEXT NOT NULL, ids TEXT NOT NULL, "
    "check_word INTEGER NOT NULL, charge INTEGER)",
    "CREATE TABLE periods (number INTEGER PRIMARY KEY, state TEXT NOT NULL, "
    "shown INTEGER NOT NULL, released BLOB NOT NULL, totals BLOB, numerics TEXT NOT NULL)",
    "CREATE TABLE spent (period INTEGER PRIMARY KEY, people BLOB NOT NULL, numbers BLOB NOT NULL)",
)
# The row of squares spent so far; lengths of single periods stand under the periods.
_SO_FAR = 0


@dataclass(frozen=True)
class Period:
    """One release: its number, its state, whether it was shown, and the noisy integers."""

    number: int
    state: str
    shown: bool
    released: Integers


class SeriesTransaction:
    """An open transaction on a store; what was written takes effect when it ends."""

    def __init__(self, connection: sqlite3.Connection, key: bytes) -> None:
        self._run = connection.execute
        self._key = key

    @property
    def id(self) -> str:
        """A random identifier of the series."""
        return str(self._run("SELECT id FROM series").fetchone()[0])

    @property
    def charge(self) -> int | None:
        """The number of the charge in the ledger, if there is one."""
        found: int | None = self._run("SELECT charge FROM series").fetchone()[0]
        return found

    @charge.setter
    def charge(self, charge: int) -> None:
        self._run("UPDATE series SET charge = ?", (charge,))

    @property
    def kind_of_ids(self) -> str:
        """Whether ids are integers or text; empty before the first period."""
        return str(self._run("SELECT ids FROM series").fetchone()[0])

    def last(self) -> Period:
        """Return the last period that was written; number 0 if there is none."""
        row = self._run(
            "SELECT number, state, shown, released FROM periods ORDER BY number DESC"
        ).fetchone()
        return Period(0, "", shown=True, released=_numbers(b"")) if row is None else _period(row)

    def state_before(self, number: int) -> str:
        """Return the state of the period before this one, empty for the first."""
        query = "SELECT state FROM periods WHERE number = ?"
        row = self._run(query, (number - 1,)).fetchone()
        return "" if row is None else str(row[0])

    def shown(self) -> list[Integers]:
        """Return what was released and shown, period by period."""
        query = "SELECT number, state, shown, released FROM periods WHERE shown ORDER BY number"
        return [_period(row).released for row in self._run(query)]

    def numerics(self) -> set[Numerics]:
        """Return the kinds of arithmetic (exact or idealized) of the releases' noise."""
        return {Numerics(row[0]) for row in self._run("SELECT DISTINCT numerics FROM periods")}

    def show(self, number: int) -> None:
        """Record that a release may be shown."""
        self._run("UPDATE periods SET shown = 1 WHERE number = ?", (number,))

    def hashes(self, words: Words) -> Words:
        """Return the store's keyed hashes of ids, given as 64-bit words."""
        return siphash(words, self._key)

    def numbers(self, texts: Any) -> Any:
        """Return ids that are text as integers that nobody can guess."""
        return numbers_for_texts(texts, self._key)

    def spent(self) -> Lookup:
        """Return the squared lengths that people have used so far."""
        return self._lookup(_SO_FAR)

    def lengths(self, number: int) -> Lookup:
        """Return the lengths of people in an earlier period."""
        return self._lookup(number)

    def totals(self) -> Integers:
        """Return the exact totals of all periods so far, one row per period."""
        rows = self._run("SELECT totals FROM periods ORDER BY number").fetchall()
        return np.array([_numbers(row[0]) for row in rows], dtype=np.int64)

    def write(
        self,
        number: int,
        released: Integers,
        bounded: Bounded,
        *,
        ids: str,
        numerics: Numerics,
        keep: bool,
    ) -> None:
        """Record a period; with ``keep`` also what later releases with correlated noise need."""
        state = os.urandom(16).hex()  # a word without a meaning, not noise
        totals = _bytes(bounded.totals) if keep else None
        row = (number, state, _bytes(released), totals, numerics.value)
        self._run("INSERT INTO periods VALUES (?, ?, 0, ?, ?, ?)", row)
        self._run("UPDATE series SET ids = ?", (ids,))
        self._replace(_SO_FAR, bounded.spent)
        if keep:
            self._replace(number, bounded.lengths)

    def _lookup(self, period: int) -> Lookup:
        query = "SELECT people, numbers FROM spent WHERE period = ?"
        row = self._run(query, (period,)).fetchone()
        if row is None:
            return Lookup.empty()
        return Lookup(np.frombuffer(row[0], "<u8").astype(np.uint64), _numbers(row[1]))

    def _replace(self, period: int, found: Lookup) -> None:
        people = np.ascontiguousarray(found.people, dtype="<u8").tobytes()
        row = (period, people, _bytes(found.values))
        self._run("INSERT OR REPLACE INTO spent VALUES (?, ?, ?)", row)


@dataclass(frozen=True)
class SeriesStore:
    """The store at ``path`` of the series with a design.

    Parameters
    ----------
    path : path
    design : str
        A hash of all public parameters; the store of another series is refused.

    Examples
    --------
    >>> import tempfile
    >>> folder = tempfile.TemporaryDirectory()
    >>> store = SeriesStore(Path(folder.name) / "series.sqlite", "a design")
    >>> store.create()
    >>> with store.page() as page:
    ...     page.last().number, page.spent().people.size
    (0, 0)
    >>> [oct(path.stat().st_mode & 0o777) for path in sorted(Path(folder.name).iterdir())]
    ['0o600', '0o600']
    >>> folder.cleanup()
    """

    path: Path
    design: str

    @property
    def key_path(self) -> Path:
        """The path of the key of the hashes."""
        return self.path.with_name(f"{self.path.name}.key")

    def exists(self) -> bool:
        """Return whether the file exists."""
        return os.path.lexists(self.path)

    def create(self) -> None:
        """Create the key and the file, each atomically, unless they exist."""
        if self.exists():
            return
        born_whole(self.key_path, os.urandom(KEY_BYTES))
        key = self._key()
        row = (os.urandom(8).hex(), self.design, "", _check_word(key), None)
        born_whole(self.path, database(_APPLICATION_ID, _SCHEMA, row))

    @contextmanager
    def page(self) -> Iterator[SeriesTransaction]:
        """Open the file for one writer at a time; commit durably at the end, roll back on error."""
        if not self.exists():
            self._refuse("is not there")
        close_to_others(self.path)
        key = self._key()
        try:
            with one_writer(self.path, application_id=_APPLICATION_ID) as connection:
                if connection is None:
                    self._refuse("is not the store of a series")
                self._check(connection, key)
                yield SeriesTransaction(connection, key)
        except sqlite3.Error as error:
            reason = failure(error)
        else:
            return
        # Outside of the handler, so that nothing leads from the error to what was bound.
        self._refuse(reason)

    def _check(self, connection: sqlite3.Connection, key: bytes) -> None:
        design, word = connection.execute("SELECT design, check_word FROM series").fetchone()
        if word != _check_word(key):
            self._refuse(f"does not go with the key {self.key_path}")
        if design != self.design:
            self._refuse(
                "belongs to a series with other parameters; those of a series are fixed before its "
                "first period"
            )

    def _key(self) -> bytes:
        try:
            key = self.key_path.read_bytes()
        except OSError:
            key = b""
        if len(key) != KEY_BYTES:
            self._refuse(f"has lost its key {self.key_path}")
        close_to_others(self.key_path)
        return key

    def _refuse(self, what: str) -> NoReturn:
        raise SeriesStoreError(
            f"The store {self.path} {what}. Nothing was released: put the latest copy back, or "
            "start another series, with a store of another name and a budget of its own."
        )


def _check_word(key: bytes) -> int:
    """Return a number by which a store recognises its key."""
    return int(siphash(np.zeros(1, np.uint64), key).view(np.int64)[0])


def _period(row: tuple[Any, ...]) -> Period:
    return Period(int(row[0]), str(row[1]), bool(row[2]), _numbers(row[3]))


def _numbers(blob: bytes | None) -> Integers:
    return np.frombuffer(blob or b"", "<i8").astype(np.int64)


def _bytes(numbers: Integers) -> bytes:
    return np.ascontiguousarray(numbers, dtype="<i8").tobytes()
