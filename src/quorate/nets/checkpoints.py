"""Checkpoints: where a training stands, so that it goes on after the program was killed.

A checkpoint holds released numbers only: weights, what the optimizer remembers, radii. A step is
*claimed* before its noise is drawn, durably, and its result is written afterwards. So whatever
ends the program, at any point:

* before the claim nothing was drawn;
* between claim and result the step is lost: it stays paid for, and its noise is never drawn again;
* after the result the training goes on from there.

Once means once: each claim names the one before it, and a program that does not hold the last one
is refused, so of two that go on from one file one stops. With a ledger the claims stand there too,
and a copy of the file that was put back, or carried elsewhere, is refused as well. Without a ledger
nobody can notice a copy.
"""

from __future__ import annotations

import io
import os
import sqlite3
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import Any, NoReturn

import numpy as np
from numpy.typing import NDArray

from quorate.accounting.ledger import Charge, Ledger, Settlement
from quorate.exceptions import CheckpointError, LedgerError, ParameterError
from quorate.guarantees import Guarantee

__all__ = ["Checkpoint"]

Arrays = Mapping[str, NDArray[Any]]

_APPLICATION_ID = 0x51524E54  # "QRNT"
_SCHEMA = (
    "CREATE TABLE training (id TEXT NOT NULL, design TEXT NOT NULL, facts TEXT, seed INTEGER)",
    "CREATE TABLE claims (step INTEGER PRIMARY KEY, word TEXT NOT NULL, multiplier REAL NOT NULL)",
    "CREATE TABLE state (step INTEGER NOT NULL, arrays BLOB NOT NULL)",
)
# How many seconds to wait for another writer.
_PATIENCE = 60.0


class Checkpoint:
    """The file of one training, and what this program last wrote into it.

    Parameters
    ----------
    path : path
    design : str
        A word for all public parameters: another training is refused.

    Examples
    --------
    >>> import tempfile
    >>> folder = tempfile.TemporaryDirectory()
    >>> path = Path(folder.name) / "training.sqlite"
    >>> first = Checkpoint(path, "a design")
    >>> first.begin("people", seed=7)
    7
    >>> first.claim(0, multiplier=9.0)
    >>> first.write(0, {"theta": np.ones(2)})
    >>> first.claim(1, multiplier=9.0)

    Here the program is killed. The second step is lost, and who goes on takes the third:

    >>> second = Checkpoint(path, "a design")
    >>> second.claims, second.arrays["theta"].tolist()
    ({0: 9.0, 1: 9.0}, [1.0, 1.0])
    >>> second.claim(2, multiplier=9.0)
    >>> first.write(1, {"theta": np.zeros(2)})
    Traceback (most recent call last):
        ...
    quorate.exceptions.CheckpointError: The checkpoint ...training.sqlite is at another step than...
    >>> folder.cleanup()
    """

    def __init__(self, path: str | os.PathLike[str], design: str) -> None:
        self.path = Path(path)
        self._paid: tuple[Ledger, Charge] | None = None
        if not os.path.lexists(self.path):
            self._create(design)
        with self._page() as run:
            if run("PRAGMA application_id").fetchone()[0] != _APPLICATION_ID:
                self._refuse("is not a checkpoint")
            self.id, known = run("SELECT id, design FROM training").fetchone()
            if known != design:
                self._refuse("belongs to a training with other parameters")
            rows = run("SELECT step, word, multiplier FROM claims ORDER BY step").fetchall()
            held = run("SELECT arrays FROM state").fetchone()
        self._words = ["", *(str(word) for _, word, _ in rows)]
        self.claims: dict[int, float] = {int(step): noise for step, _, noise in rows}
        self.arrays: dict[str, NDArray[Any]] = {} if held is None else _read(held[0])

    def pay(self, ledger: Ledger, promise: Guarantee, name: str, *, purpose: str) -> Charge | None:
        """Charge the ledger unless this training was charged before; None if it is settled.

        A file that is not the one that the ledger knows last is refused.
        """
        purpose = f"{purpose} {self.id}"
        entries = ledger.history(name)
        own = [each for each in entries if isinstance(each, Charge) and each.purpose == purpose]
        if not own and self.claims:
            self._refuse("was charged to another ledger, or to none")
        charge = own[0] if own else ledger.charge(name, promise, purpose=purpose)
        try:
            if len(self._words) > 1:
                ledger.advance(charge, after=self._words[-2], state=self._words[-1])
                fits = True
            else:
                fits = ledger.progress(charge) == ""
        except LedgerError:
            fits = False
        if not fits:
            self._refuse("is older than the ledger says, a copy that was put back")
        self._paid = ledger, charge
        settled = [each.charge for each in entries if isinstance(each, Settlement)]
        return None if charge.id in settled else charge

    def begin(self, facts: str, *, seed: int) -> int:
        """Compare a word for public facts with that of the first run; return the public seed."""
        with self._page() as run:
            known, held = run("SELECT facts, seed FROM training").fetchone()
            if known is None:
                run("UPDATE training SET facts = ?, seed = ?", (facts, seed))
                known, held = facts, seed
        if known != facts:
            self._refuse("belongs to a training of another network, or of other people")
        return int(held)

    def refuse_lost(self, step: int) -> None:
        """Refuse to go on if a step was lost that can be taken once only."""
        if step in self.claims:
            self._refuse("ended while it counted the users, which is done once")

    def claim(self, step: int, *, multiplier: float) -> None:
        """Write down, before noise is drawn, that this step is taken: from here on it is paid."""
        word = os.urandom(16).hex()  # a word without a meaning, not noise
        with self._page() as run:
            self._check_last(run)
            run("INSERT INTO claims VALUES (?, ?, ?)", (step, word, multiplier))
        self._words.append(word)
        if self._paid is not None:
            ledger, charge = self._paid
            with suppress(LedgerError):
                ledger.advance(charge, after=self._words[-2], state=word)
                return
            self._refuse("goes on elsewhere, from a copy")

    def write(self, step: int, arrays: Arrays) -> None:
        """Write down where the training stands after a step; only then its result may be used."""
        stream = io.BytesIO()
        np.savez(stream, **dict[str, Any](arrays))
        with self._page() as run:
            self._check_last(run)
            run("DELETE FROM state")
            run("INSERT INTO state VALUES (?, ?)", (step, stream.getvalue()))

    def _check_last(self, run: Any) -> None:
        row = run("SELECT word FROM claims ORDER BY step DESC").fetchone()
        if ("" if row is None else str(row[0])) != self._words[-1]:
            self._refuse("is at another step than this program, as another one went on from it")

    def _create(self, design: str) -> None:
        """Make the file whole, for its owner, unless another one is there by then."""
        with closing(sqlite3.connect(":memory:", isolation_level=None)) as made:
            made.execute(f"PRAGMA application_id = {_APPLICATION_ID}")
            for statement in _SCHEMA:
                made.execute(statement)
            row = (os.urandom(8).hex(), design, None, None)
            made.execute("INSERT INTO training VALUES (?, ?, ?, ?)", row)
            content = made.serialize()
        draft = self.path.with_name(f".{self.path.name}.{os.urandom(8).hex()}.new")
        try:
            file = os.open(draft, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600)
            with open(file, "wb") as stream:
                stream.write(content)
                stream.flush()
                os.fsync(file)
            with suppress(FileExistsError):
                os.link(draft, self.path)
        except OSError as error:
            raise ParameterError(
                f"Expected a place where a checkpoint can be made, got {self.path} "
                f"({error.strerror})."
            ) from None
        finally:
            draft.unlink(missing_ok=True)

    @contextmanager
    def _page(self) -> Iterator[Any]:
        """Open the file for one writer at a time; commit durably at the end, roll back on error."""
        try:
            with closing(
                sqlite3.connect(
                    f"{self.path.resolve().as_uri()}?mode=rw",
                    uri=True,
                    timeout=_PATIENCE,
                    isolation_level=None,
                )
            ) as connection:
                connection.execute("PRAGMA journal_mode = DELETE")
                connection.execute("PRAGMA synchronous = EXTRA")
                connection.execute("PRAGMA fullfsync = ON")  # macOS; no effect elsewhere
                connection.execute("BEGIN IMMEDIATE")
                yield connection.execute
                connection.execute("COMMIT")
        except sqlite3.Error as error:
            code = getattr(error, "sqlite_errorcode", 0) & 0xFF
            self._refuse(f"could not be read or written (SQLite says {code})")

    def _refuse(self, what: str) -> NoReturn:
        raise CheckpointError(
            f"The checkpoint {self.path} {what}. Nothing was released: go on from the latest "
            "file with the same data, or begin anew with a file of another name and a budget of "
            "its own."
        )


def _read(blob: bytes) -> dict[str, NDArray[Any]]:
    with np.load(io.BytesIO(blob), allow_pickle=False) as held:
        return {name: held[name] for name in held.files}
