"""Checkpoints of a training, so that it can continue after the program was killed.

A checkpoint holds released numbers only: weights, the state of the optimizer, radii. A step is
*claimed* before its noise is drawn, durably, and its result is written afterwards. So if the
program is killed, one of three things is true:

* before the claim, nothing was drawn;
* between claim and result, the step is lost: it stays paid for, and its noise is never drawn again;
* after the result, the training continues from there.

No step is taken twice: each claim names the one before it, and a program that does not hold the
last claim is refused. So if two programs continue from one file, one of them stops. With a ledger
the claims are also written there. Then an old copy of the file, or a copy on another machine, is
refused as well. Without a ledger such a copy cannot be detected.

When a training is resumed, the budget of every claim counts as spent. The identifier of each claim
is a hash of the claim, of the training and of the identifier before it, and the ledger knows the
last one. So with a ledger no claim can be changed or removed afterwards. Everything else in the
file can be edited by hand, which may spoil the result but not the privacy: the account never draws
more than was charged minus what was claimed.
"""

from __future__ import annotations

import hashlib
import io
import os
import sqlite3
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, NoReturn

import numpy as np
from numpy.typing import NDArray

from quorate.core.guarantees import Guarantee
from quorate.data.files.one_writer import born_whole, database, failure, one_writer
from quorate.exceptions import CheckpointError, LedgerError
from quorate.ledger.ledger import Charge, Ledger, Settlement

__all__ = ["Checkpoint"]

Arrays = Mapping[str, NDArray[Any]]

_APPLICATION_ID = 0x51524E54  # public: "QRNT", by which a file is known
_SCHEMA = (
    "CREATE TABLE training (id TEXT NOT NULL, design TEXT NOT NULL, facts TEXT, seed INTEGER)",
    "CREATE TABLE claims (step INTEGER PRIMARY KEY, word TEXT NOT NULL, multiplier REAL NOT NULL)",
    "CREATE TABLE state (step INTEGER NOT NULL, arrays BLOB NOT NULL)",
)


class Checkpoint:
    """The file of one training, and what this program last wrote to it.

    Parameters
    ----------
    path : path
    design : str
        A hash of all public parameters; a file of another training is refused.

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

    In this example the program is killed here. The second step is lost, and the next run continues
    with the third:

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
        self.path, self._design = Path(path), design
        self._paid: tuple[Ledger, Charge] | None = None
        if not os.path.lexists(self.path):
            row = (os.urandom(8).hex(), design, None, None)
            born_whole(self.path, database(_APPLICATION_ID, _SCHEMA, row))
        with self._page() as run:
            self.id, known = run("SELECT id, design FROM training").fetchone()
            if known != design:
                self._refuse("belongs to a training with other parameters")
            rows = run("SELECT step, word, multiplier FROM claims ORDER BY step").fetchall()
            held = run("SELECT arrays FROM state").fetchone()
        self._words = [""]
        self.claims: dict[int, float] = {}
        for step, word, noise in rows:
            salt = str(word).partition(".")[0]
            before = self._words[-1]
            if word != _word(salt, design, before, step=step, multiplier=noise):
                self._refuse("was changed by hand")
            self._words.append(word)
            self.claims[step] = noise
        self.arrays: dict[str, NDArray[Any]] = {} if held is None else _read(held[0])

    def pay(self, ledger: Ledger, promise: Guarantee, name: str, *, purpose: str) -> Charge | None:
        """Charge the ledger, unless this training was charged before.

        Return None if nothing remains to be settled.

        A file that is not the latest one known to the ledger is refused.
        """
        purpose = f"{purpose} {self.id}"
        entries = ledger.history(name)
        own = [each for each in entries if isinstance(each, Charge) and each.purpose == purpose]
        if not own and self.claims:
            self._refuse("was charged to another ledger, or to none")
        charge = own[0] if own else ledger.charge(name, promise, purpose=purpose)
        if charge.guarantee.to_dict() != promise.charged_to(name).to_dict():
            self._refuse("was charged for another guarantee")
        try:
            if len(self._words) > 1:
                ledger.advance(charge, after=self._words[-2], state=self._words[-1])
                fits = True
            else:
                fits = ledger.progress(charge) == ""
        except LedgerError:
            fits = False
        if not fits:
            self._refuse("is older than the ledger says, such as a restored copy")
        self._paid = ledger, charge
        settled = [each.charge for each in entries if isinstance(each, Settlement)]
        return None if charge.id in settled else charge

    def begin(self, facts: str, *, seed: int) -> int:
        """Compare a hash of public facts with that of the first run; return the public seed."""
        with self._page() as run:
            known, held = run("SELECT facts, seed FROM training").fetchone()
            if known is None:
                run("UPDATE training SET facts = ?, seed = ?", (facts, seed))
                known, held = facts, seed
        if known != facts:
            self._refuse("belongs to a training of another network, or of other people")
        return int(held)

    def refuse_lost(self, step: int) -> None:
        """Refuse to continue if a step was lost that cannot be repeated."""
        if step in self.claims:
            self._refuse("ended while it counted the users, which is done once")

    def claim(self, step: int, *, multiplier: float) -> None:
        """Record, before noise is drawn, that this step is taken; from then on it is paid."""
        salt = os.urandom(16).hex()  # a word without a meaning, not noise
        word = _word(salt, self._design, self._words[-1], step=step, multiplier=multiplier)
        with self._page() as run:
            self._check_last(run)
            run("INSERT INTO claims VALUES (?, ?, ?)", (step, word, multiplier))
        self._words.append(word)
        if self._paid is not None:
            ledger, charge = self._paid
            with suppress(LedgerError):
                ledger.advance(charge, after=self._words[-2], state=word)
                return
            self._refuse("is continued elsewhere, from a copy")

    def write(self, step: int, arrays: Arrays) -> None:
        """Record the state of the training after a step; only then may its result be used."""
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

    @contextmanager
    def _page(self) -> Iterator[Any]:
        """Open the file for one writer at a time; commit durably at the end, roll back on error."""
        try:
            with one_writer(self.path, application_id=_APPLICATION_ID) as connection:
                if connection is None:
                    self._refuse("is not a checkpoint")
                yield connection.execute
        except sqlite3.Error as error:
            self._refuse(failure(error))

    def _refuse(self, what: str) -> NoReturn:
        raise CheckpointError(
            f"The checkpoint {self.path} {what}. Nothing was released: continue from the latest "
            f"file with the same data, or start again with a new file and a budget of its own."
        )


def _word(salt: str, design: str, before: str, *, step: int, multiplier: float) -> str:
    """Return the identifier of a claim: a hash of it, its training and all claims before it.

    >>> one, other = (_word("ab", "a design", "", step=step, multiplier=9.0) for step in (0, 1))
    >>> one == other, one[:3]
    (False, 'ab.')
    """
    said = repr((salt, design, before, step, multiplier)).encode()
    return f"{salt}.{hashlib.sha256(said).hexdigest()}"


def _read(blob: bytes) -> dict[str, NDArray[Any]]:
    with np.load(io.BytesIO(blob), allow_pickle=False) as held:
        return {name: held[name] for name in held.files}
