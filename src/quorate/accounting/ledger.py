"""The ledger: who spent how much of which data set's privacy budget, and what is left.

A charge is on disk before :meth:`Ledger.charge` returns, so before any data are touched: a crash
may cost budget, it never gives a release away for free. How the file keeps its promises is told in
:mod:`quorate.accounting.append_only`; here is what the numbers mean.
"""

from __future__ import annotations

import getpass
import json
import math
import numbers
import os
from collections import Counter
from collections.abc import Iterable
from dataclasses import asdict, dataclass, replace
from fractions import Fraction
from pathlib import Path
from typing import Any, NamedTuple

from quorate import _validate
from quorate.accounting.append_only import AppendOnlyFile, Entry, Transaction
from quorate.exceptions import (
    BudgetExceededError,
    LedgerError,
    LedgerFileError,
    ParameterError,
    RelationMismatchError,
    UnknownDatasetError,
)
from quorate.guarantees import Guarantee, Relation

__all__ = ["Budget", "BudgetChange", "Charge", "Ledger"]


@dataclass(frozen=True, kw_only=True)
class Budget:
    """An amount of privacy loss.

    >>> Budget(epsilon=0.3, delta=0.0)
    Budget(epsilon=0.3, delta=0.0)
    """

    epsilon: float
    delta: float


@dataclass(frozen=True, kw_only=True)
class BudgetChange:
    """An entry that sets, raises or lowers the budget of a data set.

    >>> BudgetChange(id=1, when="2026-01-01T00:00:00.000000+00:00", who="officer",
    ...              data_name="visits", epsilon=1.0, delta=0.0,
    ...              relation=Relation.REPLACE, unit="patient").epsilon
    1.0
    """

    id: int
    when: str
    who: str
    data_name: str
    epsilon: float
    delta: float
    relation: Relation
    unit: str


@dataclass(frozen=True, kw_only=True)
class Charge:
    """An entry that spends; ``guarantee.events`` holds the events as they were written down.

    >>> Charge(id=2, when="2026-01-01T00:00:00.000000+00:00", who="analyst", data_name="visits",
    ...        purpose="mean age", guarantee=Guarantee(epsilon=0.5)).guarantee.epsilon
    0.5
    """

    id: int
    when: str
    who: str
    data_name: str
    purpose: str
    guarantee: Guarantee


class Ledger:
    """Open the ledger at ``path``, or create it if there is none.

    A budget belongs to the *name* of a data set, which the caller chooses; nothing computed from
    the data is stored. Costs add up by basic composition: the sum of the epsilons and the sum of
    the deltas. Each charge keeps its guarantee with all events, so that a tighter reading of the
    same history remains possible later.

    Sums are exact. A float counts as the shortest decimal that prints it, so ten charges of 0.1
    fill a budget of 1.0 and a history adds up by hand; integers and fractions count as themselves.
    Is that safe if somebody reads the floats as binary numbers? The two readings of a (normal)
    float differ by a relative ``2**-53`` at most. Hence the binary sum of all charges ever admitted
    is at most ``(1 + 2**-53)`` times their decimal sum, which is at most the decimal budget, which
    is at most ``(1 + 2**-53)`` times the binary budget: the excess stays below the resolution of
    the float in which the budget was given, however many charges there are.

    Every entry carries a SHA-256 over itself and the digest before it. The chain is checked at
    each call: an entry that was changed, inserted or removed between others is noticed. Whoever
    may write the file can still cut off its end or forge a whole new chain; keep the digest that
    :meth:`verify` returns at another place to notice that too.

    Safe for several threads and processes at once, after a fork and under ``kill -9``. Pickles as
    its path; unpickling neither creates nor opens a file. Not for file systems without working
    locks (some network shares).

    Parameters
    ----------
    path : str or path
        The file; its folder must exist.
    actor : str or None, default=None
        Who is named in new entries; ``None`` names the user of the operating system.
    timeout : float, default=30.0
        Seconds to wait for other writers before refusing.
    must_exist : bool, default=False
        Refuse to create a file: for programs that only look.

    Raises
    ------
    LedgerFileError
        If the file is damaged, is not a ledger or comes from a newer version. It is not touched.

    Examples
    --------
    >>> import tempfile
    >>> folder = tempfile.TemporaryDirectory()
    >>> ledger = Ledger(Path(folder.name) / "ledger.db", actor="analyst")
    >>> change = ledger.set_budget("visits", epsilon=1.0, unit="patient")
    >>> promise = Guarantee(epsilon=0.7, unit="patient")
    >>> ledger.charge("visits", promise, purpose="mean age").who
    'analyst'
    >>> ledger.remaining("visits")
    Budget(epsilon=0.3, delta=0.0)
    >>> ledger.charge("visits", promise, purpose="mean weight")
    Traceback (most recent call last):
    quorate.exceptions.BudgetExceededError: Requested epsilon=0.7, delta=0 but epsilon=0.3 of 1.0
    and delta=0 of 0 are left for 'visits' (replace one patient). Nothing was charged: ask for less,
    or have the budget raised with set_budget.
    >>> folder.cleanup()
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        *,
        actor: str | None = None,
        timeout: float = 30.0,
        must_exist: bool = False,
    ) -> None:
        _validate.positive(timeout=timeout)
        if actor is not None:
            _check_text(actor=actor)
        self.path = Path(path).resolve()
        self.actor = actor
        self._file = AppendOnlyFile(self.path, float(timeout))
        if not must_exist:
            self._file.create()
        self.verify()

    def __repr__(self) -> str:
        return f"Ledger({str(self.path)!r})"

    def set_budget(
        self,
        name: str,
        *,
        epsilon: float,
        delta: float = 0.0,
        relation: Relation = Relation.REPLACE,
        unit: str = "user",
    ) -> BudgetChange:
        """Set the budget of the data set ``name``, or change it; every change stays on record.

        What is spent stays spent. Lowering the budget below that is allowed and means that
        nothing is left. Relation and unit are those of the first call for ever: costs of two kinds
        have no sum. Repeating the present budget records nothing.
        """
        _check_text(name=name, unit=unit)
        _validate.non_negative(epsilon=epsilon)
        _validate.delta(delta=delta)
        if not isinstance(relation, Relation):
            raise ParameterError(f"Expected relation to be a Relation, got relation={relation!r}.")
        limit = _Amount(_exact(epsilon), _exact(delta))
        document = {
            "epsilon": float(epsilon),
            "delta": float(delta),
            "relation": relation.name.lower(),
            "unit": unit,
        }
        with self._file.transaction(write=True) as page:
            account = _accounts(page.entries).get(name)
            if account is not None:
                account.check_kind(relation, unit)
                if account.limit == limit:
                    return account.change
            entry = self._append(page, "budget", name, amount=limit, document=document)
        return _read_change(entry)

    def charge(self, name: str, guarantee: Guarantee, *, purpose: str) -> Charge:
        """Spend what ``guarantee`` costs from the budget of ``name``, durably, or refuse.

        Call it *before* the data are touched. When it returns, the charge is on disk; when it
        raises, nothing was charged (after a failing disk: at most this charge was).
        """
        _check_text(name=name, purpose=purpose)
        if not isinstance(guarantee, Guarantee):
            raise ParameterError(f"Expected guarantee to be a Guarantee, got {guarantee!r}.")
        if not guarantee.holds:
            raise LedgerError(
                f"Expected a guarantee that holds, got epsilon={guarantee.epsilon!r}, "
                f"delta={guarantee.delta!r}, numerics={guarantee.numerics.value!r}. No budget "
                "covers it: use a finite epsilon and the secure source of noise."
            )
        cost = _Amount(_exact(guarantee.epsilon), _exact(guarantee.delta))
        document = guarantee.charged_to(name).to_dict()
        with self._file.transaction(write=True) as page:
            _account(page.entries, name).admit(guarantee, cost)
            entry = self._append(page, "charge", name, cost, document, purpose=purpose)
        return _read_charge(entry)

    def budget(self, name: str) -> BudgetChange:
        """Return the entry that set the present budget of ``name``."""
        return _account(self._entries(), name).change

    def spent(self, name: str) -> Budget:
        """Return what was spent from the budget of ``name``, rounded up to floats."""
        return _account(self._entries(), name).spent.rounded_up()

    def remaining(self, name: str) -> Budget:
        """Return what is left for ``name``, rounded down to floats, so that it can be charged."""
        return _account(self._entries(), name).left.rounded_down()

    def names(self) -> tuple[str, ...]:
        """Return the names of all data sets that ever had a budget, the oldest first."""
        return tuple(_accounts(self._entries()))

    def history(self, name: str | None = None) -> tuple[BudgetChange | Charge, ...]:
        """Return all entries, or those of one data set, the oldest first."""
        entries = self._entries()
        if name is not None:
            _account(entries, name)
        return tuple(
            _read_change(entry) if entry.kind == "budget" else _read_charge(entry)
            for entry in entries
            if name is None or entry.data_name == name
        )

    def export(self) -> dict[str, Any]:
        """Return the whole ledger as plain data; the exact amounts are text such as ``"1/10"``."""
        with self._file.transaction(write=False) as page:
            entries, digest = page.entries, page.last_digest
        data = {}
        for name, account in _accounts(entries).items():
            data[name] = {
                "epsilon": account.change.epsilon,
                "delta": account.change.delta,
                "relation": account.change.relation.name.lower(),
                "unit": account.change.unit,
                "spent": asdict(account.spent.rounded_up()),
                "remaining": asdict(account.left.rounded_down()),
            }
        return {
            "format": "quorate-ledger",
            "version": 1,
            "digest": digest,
            "data": data,
            "entries": [
                entry._asdict() | {"document": json.loads(entry.document)} for entry in entries
            ],
        }

    def to_json(self) -> str:
        """Return :meth:`export` as a JSON document."""
        return json.dumps(self.export(), ensure_ascii=False, indent=2)

    def verify(self, *, contains: str | None = None) -> str:
        """Check the file and its chain of entries; return the digest of the last entry.

        ``contains`` is such a digest from an earlier day: the ledger must have grown out of it.
        """
        with self._file.transaction(write=False) as page:
            digests = ["", *(entry.digest for entry in page.entries)]
        if contains is not None and contains not in digests:
            raise LedgerFileError(
                f"Expected {self.path} to contain the entry with digest {contains!r}, got a ledger "
                "without it: entries are missing or were forged. Restore the last good copy."
            )
        return digests[-1]

    def _entries(self) -> list[Entry]:
        with self._file.transaction(write=False) as page:
            return page.entries

    def _append(
        self,
        page: Transaction,
        kind: str,
        name: str,
        amount: _Amount,
        document: dict[str, Any],
        purpose: str = "",
    ) -> Entry:
        return page.append(
            kind=kind,
            who=_operating_system_user() if self.actor is None else self.actor,
            data_name=name,
            purpose=purpose,
            epsilon=str(amount.epsilon),
            delta=str(amount.delta),
            document=json.dumps(document, sort_keys=True, default=_plain_number),
        )


class _Amount(NamedTuple):
    epsilon: Fraction
    delta: Fraction

    def rounded_up(self) -> Budget:
        """Return floats that count for at least this amount."""
        return Budget(epsilon=_float_above(self.epsilon), delta=_float_above(self.delta))

    def rounded_down(self) -> Budget:
        """Return floats that count for at most this amount."""
        return Budget(epsilon=_float_below(self.epsilon), delta=_float_below(self.delta))


@dataclass(frozen=True)
class _Account:
    change: BudgetChange
    limit: _Amount
    spent: _Amount

    @property
    def left(self) -> _Amount:
        return _Amount(
            max(Fraction(0), self.limit.epsilon - self.spent.epsilon),
            max(Fraction(0), self.limit.delta - self.spent.delta),
        )

    def check_kind(self, relation: Relation, unit: str) -> None:
        """Refuse another relation or unit than that of the budget."""
        name, mine = self.change.data_name, self.change.relation
        if relation is not mine:
            # Add/remove implies replace only at twice the epsilon and more than twice the delta;
            # replace implies nothing about add/remove. Converting silently would surprise.
            raise RelationMismatchError(
                f"Expected a cost under {mine.name} for {name!r}, got one under {relation.name}; "
                f"the ledger does not convert. Use relation=Relation.{mine.name}, or give these "
                "releases a data set name and a budget of their own."
            )
        if unit != self.change.unit:
            raise RelationMismatchError(
                f"Expected a cost for each {self.change.unit!r} for {name!r}, got one for each "
                f"{unit!r}; the ledger does not convert. Use unit={self.change.unit!r} if the same "
                "people are meant, otherwise a data set name and a budget of their own."
            )

    def admit(self, guarantee: Guarantee, cost: _Amount) -> None:
        """Refuse a guarantee of another kind, and one that costs more than what is left."""
        self.check_kind(guarantee.relation, guarantee.unit)
        if (
            self.spent.epsilon + cost.epsilon <= self.limit.epsilon
            and self.spent.delta + cost.delta <= self.limit.delta
        ):
            return
        change, left = self.change, self.left.rounded_down()
        words = {Relation.REPLACE: "replace", Relation.ADD_REMOVE: "add or remove"}
        raise BudgetExceededError(
            f"Requested epsilon={_digits(guarantee.epsilon)}, delta={_digits(guarantee.delta)} but "
            f"epsilon={_digits(left.epsilon)} of {_digits(change.epsilon)} and "
            f"delta={_digits(left.delta)} of {_digits(change.delta)} are left for "
            f"{change.data_name!r} ({words[change.relation]} one {change.unit}). Nothing was "
            "charged: ask for less, or have the budget raised with set_budget."
        )


@dataclass(frozen=True)
class _RecordedEvent:
    """An event as it was written down; it prices nothing and writes itself back."""

    text: str

    def to_dict(self) -> dict[str, Any]:
        document: dict[str, Any] = json.loads(self.text)
        return document


def _exact(value: float) -> Fraction:
    """Return what a number counts for; :class:`Ledger` argues why."""
    if isinstance(value, numbers.Rational):
        return Fraction(int(value.numerator), int(value.denominator))
    return Fraction(repr(float(value)))


def _float_above(amount: Fraction) -> float:
    value = float(amount)
    return value if _exact(value) >= amount else math.nextafter(value, math.inf)


def _float_below(amount: Fraction) -> float:
    value = float(amount)
    return value if _exact(value) <= amount else math.nextafter(value, 0.0)


def _total(amounts: Iterable[str]) -> Fraction:
    # Most charges repeat a few amounts; counting first keeps a long history cheap.
    counted = Counter(amounts).items()
    return sum((Fraction(amount) * times for amount, times in counted), Fraction(0))


def _accounts(entries: list[Entry]) -> dict[str, _Account]:
    changes = {entry.data_name: entry for entry in entries if entry.kind == "budget"}
    charges: dict[str, list[Entry]] = {name: [] for name in changes}
    for entry in entries:
        if entry.kind == "charge":
            charges[entry.data_name].append(entry)
    return {
        name: _Account(
            change=_read_change(change),
            limit=_Amount(Fraction(change.epsilon), Fraction(change.delta)),
            spent=_Amount(
                _total(entry.epsilon for entry in charges[name]),
                _total(entry.delta for entry in charges[name]),
            ),
        )
        for name, change in changes.items()
    }


def _account(entries: list[Entry], name: str) -> _Account:
    accounts = _accounts([entry for entry in entries if entry.data_name == name])
    if name not in accounts:
        raise UnknownDatasetError(
            f"Expected a data set with a budget, got {name!r}, for which none was ever set. Check "
            "the name, or set a budget with set_budget."
        )
    return accounts[name]


def _read_change(entry: Entry) -> BudgetChange:
    document = json.loads(entry.document)
    return BudgetChange(
        id=entry.id,
        when=entry.time,
        who=entry.who,
        data_name=entry.data_name,
        epsilon=document["epsilon"],
        delta=document["delta"],
        relation=Relation[document["relation"].upper()],
        unit=document["unit"],
    )


def _read_charge(entry: Entry) -> Charge:
    document = json.loads(entry.document)
    events = tuple(_RecordedEvent(json.dumps(event)) for event in document["events"])
    return Charge(
        id=entry.id,
        when=entry.time,
        who=entry.who,
        data_name=entry.data_name,
        purpose=entry.purpose,
        guarantee=replace(Guarantee.from_dict(document), events=events),
    )


def _check_text(**values: str) -> None:
    for name, value in values.items():
        if not (isinstance(value, str) and value.strip() and value.isprintable()):
            raise ParameterError(f"Expected {name} to be one line of text, got {name}={value!r}.")


def _operating_system_user() -> str:
    try:
        return getpass.getuser()
    except (ImportError, KeyError, OSError):
        return "unknown"


def _plain_number(value: Any) -> float:
    """Return a number that JSON can hold: events may carry numpy's integers or fractions."""
    return int(value) if isinstance(value, numbers.Integral) else float(value)


def _digits(value: float) -> str:
    return "0" if value == 0 else repr(float(value))
