"""The ledger: how much of each data set's privacy budget was spent, by whom, and what is left.

A charge is on disk before :meth:`Ledger.charge` returns, and so before any data are touched. A
crash may cost budget, but never gives a release away for free. The file format and its guarantees
are in :mod:`quorate.ledger.append_only`; this module defines what the numbers mean.
"""

from __future__ import annotations

import getpass
import json
import os
from collections.abc import Iterable, Mapping
from dataclasses import asdict, replace
from fractions import Fraction
from pathlib import Path
from typing import Any, NoReturn, cast

from quorate import _validate
from quorate.core.guarantees import Event, Guarantee, Relation
from quorate.exceptions import LedgerError, LedgerFileError, ParameterError, UnknownDatasetError
from quorate.ledger.append_only import AppendOnlyFile, Entry, Transaction, read_chain
from quorate.ledger.calendars import PERIODS, check_period, divide_name
from quorate.ledger.entries import (
    Amount,
    Budget,
    BudgetChange,
    Charge,
    PlannedRelease,
    ProgressEntry,
    Settlement,
    decimal_reading,
    plain_number,
    read_entry,
    times,
)
from quorate.ledger.planned_spending import PlannedSpending, check_plan, read_plan
from quorate.ledger.spending import COMPOSITIONS, Spending, admit, check_same_kind

__all__ = ["Budget", "BudgetChange", "Charge", "Ledger", "ProgressEntry", "Settlement"]

_KINDS = 12  # machine: what a person reads at a glance
"""The number of kinds of releases that a budget lists; the latest ones are listed."""


class Ledger:
    """Open the ledger at ``path``, or create it if there is none.

    A budget belongs to the *name* of a data set, which the caller chooses; nothing computed from
    the data is stored. Costs add up by basic composition, that is by the sum of the epsilons and
    the sum of the deltas. A budget can also be set up with a filter of Gaussian differential
    privacy, under which many small releases cost far less (:mod:`quorate.ledger.spending`), or as a
    list of releases that is priced as a whole (:mod:`quorate.ledger.planned_spending`).

    Sums are exact. A float counts as the shortest decimal that prints it, so ten charges of 0.1
    fill a budget of 1.0 and a history can be added up by hand. Integers and fractions are exact.
    This is safe if the floats are read as binary numbers too. The two readings of a (normal) float
    differ by a relative ``2**-53`` at most. Hence the binary sum of all admitted charges is at most
    ``(1 + 2**-53)`` times their decimal sum, which is at most the decimal budget, which is at most
    ``(1 + 2**-53)`` times the binary budget. The excess stays below the resolution of the float in
    which the budget was given, however many charges there are.

    Every entry carries a SHA-256 over itself and the digest before it. The chain is checked at each
    call: an entry that was changed, inserted or removed between others is noticed. Someone who can
    write the file can still cut off its end or forge a new chain. To detect that too, store the
    digest that :meth:`verify` returns somewhere else.

    It is safe for several threads and processes at once, after a fork and under ``kill -9``.
    It is pickled as its path; unpickling neither creates nor opens a file. It must not be used on
    file systems without working locks (some network shares).

    Parameters
    ----------
    path : str or path
        The file; its folder must exist.
    actor : str or None, default=None
        The name in new entries; by default the user name of the operating system.
    timeout : float, default=30.0
        Seconds to wait for other writers before refusing.
    must_exist : bool, default=False
        Whether to refuse to create a file; for programs that only read.

    Raises
    ------
    LedgerFileError
        The file is damaged, is not a ledger or comes from a newer version. It is not changed.

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
    or have the budget raised (set_budget, or quorate ledger change).
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
        composition: str | None = None,
        period: str | None = None,
        plan: Mapping[str, tuple[Guarantee, int]] | None = None,
        replaces: int | None = None,
    ) -> BudgetChange:
        """Set the budget of the data set ``name``, or change it; every change stays on record.

        A change does not affect what was already spent. If the budget is lowered below that amount,
        nothing is left. Relation, unit, composition and period cannot be changed later, because
        costs of different kinds cannot be added. Repeating the present budget records nothing.

        Parameters
        ----------
        name : str
        epsilon, delta : float
        relation : Relation, default=Relation.REPLACE
        unit : str, default="user"
        composition : {"basic", "gaussian", "pld"} or None, default=None
            ``"basic"`` adds epsilons and deltas; ``"gaussian"`` also adds the squares of Gaussian
            differential privacy and admits a release if either sum admits it; ``"pld"`` prices a
            list of releases as a whole, by privacy loss distributions. ``None`` keeps the
            composition of the budget; a new budget gets ``"basic"``.
        period : {"day", "week", "month", "quarter", "year"} or None, default=None
            Each period gets this budget; charges then name the period, as in ``"visits@2026-11"``,
            and the unit says so: ``"patient x month"``.
        plan : mapping from str to (Guarantee, int), optional
            For ``"pld"``: the planned releases and how often each may happen; it cannot be changed
            later. Charges take them in any order; see :mod:`quorate.ledger.planned_spending`.
        replaces : int or None, default=None
            The ``id`` of the budget that this one replaces; 0 if there must be none yet. It is
            checked under the same lock as the change. ``None`` replaces any budget.

        Raises
        ------
        LedgerError
            The present budget is not ``replaces``, or is of another kind.
        """
        _check_text(name=name, unit=unit)
        _validate.non_negative(epsilon=epsilon)
        _validate.delta(delta=delta)
        if not isinstance(relation, Relation):
            raise ParameterError(f"Expected relation to be a Relation, got relation={relation!r}.")
        _check_kind_of_budget(composition, delta, period, unit)
        limit = Amount(decimal_reading(epsilon), decimal_reading(delta))
        planned: tuple[PlannedRelease, ...] = ()
        if composition == "pld" or plan is not None:
            composition = composition or "pld"
            if composition != "pld":
                raise ParameterError("Expected composition='pld' beside a plan.")
            if plan is not None or name not in self.names():
                planned = read_plan(plan, relation=relation, unit=unit)
        with self._file.transaction(write=True) as page:
            budgets = _budgets(page.entries)
            if replaces is not None:
                _check_replaced(budgets, name, replaces)
            composition = composition or ("basic" if name not in budgets else None)
            if name not in budgets and planned:
                check_plan(planned, limit, relation)
            if name in budgets:
                change = budgets[name][0]
                check_same_kind(change, relation, unit)
                if composition not in (None, change.composition) or period != change.period:
                    raise LedgerError(
                        f"Expected composition={change.composition!r} and period={change.period!r} "
                        f"as when the budget of {name!r} was first set, got {composition!r} and "
                        f"{period!r}. Use another data set name."
                    )
                if planned not in ((), change.plan):
                    raise LedgerError(
                        f"Expected the plan that the budget of {name!r} was first set with: a plan "
                        "is fixed before its first release. Use another data set name."
                    )
                composition, planned = change.composition, change.plan
                if budgets[name][1] == limit:
                    return change
            document = {
                "epsilon": float(epsilon),
                "delta": float(delta),
                "relation": relation.name.lower(),
                "unit": unit,
                "composition": composition,
                "period": period,
            }
            if planned:
                document["plan"] = [asdict(each) for each in planned]
            said = "first budget"
            if name in budgets:
                said = f"budget changed: {budgets[name][1].in_words(limit)}"
            entry = self._append(page, "budget", name, limit, document, purpose=said)
        return cast("BudgetChange", read_entry(entry))

    def charge(self, name: str, guarantee: Guarantee, *, purpose: str) -> Charge:
        """Spend what ``guarantee`` costs from the budget of ``name``, durably, or refuse.

        Call it *before* the data are touched. When it returns, the charge is on disk. When it
        raises, nothing was charged (if the disk failed: at most this charge).
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
        amount = Amount(decimal_reading(guarantee.epsilon), decimal_reading(guarantee.delta))
        document = guarantee.charged_to(name).to_dict()
        with self._file.transaction(write=True) as page:
            document |= _let_through(_spending(page.entries, name), guarantee)
            entry = self._append(page, "charge", name, amount, document, purpose=purpose)
        return cast("Charge", read_entry(entry))

    def settle(self, charge: Charge, events: Iterable[Event]) -> Settlement | None:
        """Record what was drawn under ``charge``; under Gaussian composition this reduces its cost.

        Call it when a release is finished: nothing may be drawn under the charge afterwards. A
        budget with basic composition, or with a list of releases, is not affected, and nothing is
        written.
        """
        document = {"charge": charge.id, "events": [event.to_dict() for event in events]}
        amount = Amount(Fraction(0), Fraction(0))
        with self._file.transaction(write=True) as page:
            if _spending(page.entries, charge.data_name).change.composition != "gaussian":
                return None
            ids = {
                e.id for e in page.entries if (e.kind, e.data_name) == ("charge", charge.data_name)
            }
            done = {
                json.loads(e.document)["charge"] for e in page.entries if e.kind == "settlement"
            }
            if charge.id not in ids - done:
                raise LedgerError(
                    f"Expected a charge of this ledger that is not settled yet, got entry "
                    f"{charge.id} of {charge.data_name!r}."
                )
            entry = self._append(page, "settlement", charge.data_name, amount, document)
        return cast("Settlement", read_entry(entry))

    def advance(self, charge: Charge, *, after: str, state: str) -> None:
        """Record the progress of a release that continues under ``charge``, or refuse.

        ``state`` is any public text, such as a random word that the program stores with its data as
        well. It is written if the last state was ``after`` (empty for the first). After a crash it
        may be written already, which is not an error. Otherwise the program is continuing from
        outdated data, such as a restored copy, and is refused. It costs nothing.
        """
        _check_text(state=state)
        document = {"charge": charge.id, "state": state}
        amount = Amount(Fraction(0), Fraction(0))
        with self._file.transaction(write=True) as page:
            last = _progress(page.entries, charge)
            if last == state:
                return
            if last != after:
                raise LedgerError(
                    f"Expected to continue under charge {charge.id} of {charge.data_name!r} from "
                    f"its latest state, got an older or a different one. Nothing was written."
                )
            self._append(page, "progress", charge.data_name, amount, document)

    def progress(self, charge: Charge) -> str:
        """Return the last state under ``charge``, empty if there is none.

        >>> import tempfile
        >>> folder = tempfile.TemporaryDirectory()
        >>> ledger = Ledger(Path(folder.name) / "ledger.db")
        >>> _ = ledger.set_budget("visits", epsilon=1.0)
        >>> charge = ledger.charge("visits", Guarantee(epsilon=1.0), purpose="a series")
        >>> ledger.advance(charge, after="", state="period 1")
        >>> ledger.progress(charge)
        'period 1'
        >>> folder.cleanup()
        """
        return _progress(self._entries(), charge)

    def fits(self, name: str, guarantee: Guarantee) -> int:
        """Return how many releases with this guarantee the budget of ``name`` can still pay for.

        Examples
        --------
        >>> import tempfile
        >>> from quorate.core.account import Gaussian
        >>> from quorate.mechanisms.calibrate import gaussian_multiplier
        >>> folder = tempfile.TemporaryDirectory()
        >>> ledger = Ledger(Path(folder.name) / "ledger.db")
        >>> _ = ledger.set_budget("visits", epsilon=1, delta=1e-5, composition="gaussian")
        >>> noise = Gaussian(gaussian_multiplier(epsilon=0.3, delta=1e-6))
        >>> ledger.fits("visits", Guarantee(epsilon=0.3, delta=1e-6, events=(noise,)))
        11
        >>> ledger.fits("visits", Guarantee(epsilon=0.3))
        3
        >>> folder.cleanup()
        """
        spending = _spending(self._entries(), name)
        check_same_kind(spending.change, guarantee.relation, guarantee.unit)
        return spending.fits(guarantee)

    def check_fits(self, name: str, guarantee: Guarantee) -> None:
        """Refuse what :meth:`charge` would refuse, and charge nothing."""
        _let_through(_spending(self._entries(), name), guarantee)

    def budget(self, name: str) -> BudgetChange:
        """Return the entry that set the present budget of ``name``."""
        entries = self._entries()
        budgets = _budgets(entries)
        return budgets[name][0] if name in budgets else _spending(entries, name).change

    def spent(self, name: str) -> Budget:
        """Return what was spent from the budget of ``name``, rounded up to floats."""
        return _spending(self._entries(), name).spent.rounded_up()

    def remaining(self, name: str) -> Budget:
        """Return what is left for ``name``, rounded down to floats, so that it can be charged.

        Under Gaussian composition this is the amount for a release whose events are unknown;
        releases with Gaussian noise can get more, see :meth:`fits`. ``buys`` of the result says how
        many more releases of each earlier or planned kind fit.
        """
        return _remaining(self._entries(), name)

    def names(self) -> tuple[str, ...]:
        """Return the names of all data sets that ever had a budget, the oldest first."""
        return tuple(_budgets(self._entries()))

    def history(
        self, name: str | None = None
    ) -> tuple[BudgetChange | Charge | ProgressEntry | Settlement, ...]:
        """Return all entries, or those of one data set, the oldest first."""
        entries = self._entries()
        if name is not None:
            _spending(entries, name)
        return tuple(
            read_entry(entry) for entry in entries if name is None or entry.data_name == name
        )

    def export(self) -> dict[str, Any]:
        """Return the whole ledger as plain data; the exact amounts are text such as ``"1/10"``."""
        with self._file.transaction(write=False) as page:
            return _exported(page.entries)

    def to_json(self) -> str:
        """Return :meth:`export` as a JSON document."""
        return json.dumps(self.export(), ensure_ascii=False, indent=2)

    @staticmethod
    def verify_export(document: Mapping[str, Any], *, contains: str | None = None) -> str:
        """Check the chain of an exported ledger and its summary; return its last digest.

        A line that was changed, inserted or removed breaks the chain. The summary (what was spent,
        what remains, of which unit) is computed again from the entries and must be the same in
        every field. ``contains`` is an earlier digest; it shows whether entries at the end were
        removed or everything was forged.
        """
        entries = read_chain(document["entries"])
        _refuse_another_summary(document, _exported(entries))
        digests = [entry.digest for entry in entries]
        if contains is not None and contains not in ("", *digests):
            raise LedgerFileError(
                f"Expected the export to contain the entry with digest {contains!r}, got one "
                "without it: entries are missing or were forged."
            )
        return digests[-1] if digests else ""

    def verify(self, *, contains: str | None = None) -> str:
        """Check the file and its chain of entries; return the digest of the last entry.

        ``contains`` is an earlier digest, which must be in the history of the ledger.
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
        amount: Amount,
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
            document=json.dumps(document, sort_keys=True, default=plain_number),
        )


def _exported(entries: list[Entry]) -> dict[str, Any]:
    """Return entries as plain data, with a summary computed from them."""
    return {
        "format": "quorate-ledger",
        "version": 1,
        "digest": entries[-1].digest if entries else "",
        "data": {name: _summary(entries, name) for name in _charged_names(entries)},
        "entries": [
            entry._asdict() | {"document": json.loads(entry.document)} for entry in entries
        ],
    }


def _summary(entries: list[Entry], name: str) -> dict[str, Any]:
    spending, left = _spending(entries, name), _remaining(entries, name)
    spent = spending.spent.rounded_up()
    return {
        "epsilon": spending.change.epsilon,
        "delta": spending.change.delta,
        "relation": spending.change.relation.name.lower(),
        "unit": spending.change.unit,
        "composition": spending.change.composition,
        "period": spending.change.period,
        "spent": {"epsilon": spent.epsilon, "delta": spent.delta},
        "remaining": {"epsilon": left.epsilon, "delta": left.delta},
        "buys": list(left.buys),
    }


def _refuse_another_summary(stated: Any, computed: Any, *path: str) -> None:
    """Refuse an export whose summary differs in any field from its entries."""
    if isinstance(stated, Mapping) and isinstance(computed, dict):
        for field in {**computed, **stated}:
            if field not in stated or field not in computed:
                _refuse_field((*path, field), "is missing" if field in computed else "is too many")
            _refuse_another_summary(stated[field], computed[field], *path, field)
    # As text, because True and 1 are equal.
    elif json.dumps(stated, sort_keys=True) != json.dumps(computed, sort_keys=True):
        _refuse_field(path, "does not follow from its entries")


def _refuse_field(path: tuple[str, ...], what: str) -> NoReturn:
    raise LedgerFileError(
        f"The export is damaged or was tampered with: {'.'.join(path)} {what}. Export the ledger "
        "again, with the version of Quorate that verifies."
    )


def _check_kind_of_budget(
    composition: str | None, delta: float, period: str | None, unit: str
) -> None:
    if composition is not None:
        _validate.one_of(COMPOSITIONS, composition=composition)
    if composition in ("gaussian", "pld") and not delta > 0:
        raise ParameterError(
            f"Expected delta > 0 for composition={composition!r}: without it epsilons add up, and "
            "Gaussian noise has no pure guarantee. Use composition='basic'."
        )
    if period is not None:
        _validate.one_of(tuple(PERIODS), period=period)
        if not unit.endswith(f" x {period}"):
            raise ParameterError(
                f"Expected a unit such as 'user x {period}' for a budget per {period}, got "
                f"unit={unit!r}: what a user did in another {period} has a budget of its own."
            )


def _check_replaced(
    budgets: Mapping[str, tuple[BudgetChange, Amount]], name: str, replaces: int
) -> None:
    """Refuse to replace a budget other than the one that the caller has seen."""
    if name not in budgets:
        if replaces:
            raise LedgerError(f"Expected a budget of {name!r} to replace, got none.")
        return
    change, amount = budgets[name]
    if change.id != replaces:
        raise LedgerError(
            f"{name!r} has a budget already: {amount.in_words()}, set by {change.who}. Nothing was "
            "changed. To change it, use 'quorate ledger change'."
        )


def _budgets(entries: list[Entry]) -> dict[str, tuple[BudgetChange, Amount]]:
    """Return the present budget of every name, with its exact amount."""
    return {
        entry.data_name: (
            cast("BudgetChange", read_entry(entry)),
            Amount(Fraction(entry.epsilon), Fraction(entry.delta)),
        )
        for entry in entries
        if entry.kind == "budget"
    }


def _progress(entries: list[Entry], charge: Charge) -> str:
    """Return the last recorded state under a charge; refuse a charge of another ledger."""
    own = (charge.id, "charge", charge.data_name)
    if not any((entry.id, entry.kind, entry.data_name) == own for entry in entries):
        raise LedgerError(
            f"Expected a charge of this ledger, got entry {charge.id} of {charge.data_name!r}."
        )
    states = [json.loads(e.document) for e in entries if e.kind == "progress"]
    return str(next((s["state"] for s in reversed(states) if s["charge"] == charge.id), ""))


def _charged_names(entries: list[Entry]) -> list[str]:
    """Return every name with its own budget: data sets, or their periods so far."""
    budgets = _budgets(entries)
    names = dict.fromkeys(entry.data_name for entry in entries)
    return [n for n in names if n not in budgets or budgets[n][0].period is None]


def _let_through(spending: Spending | PlannedSpending, guarantee: Guarantee) -> dict[str, str]:
    """Refuse a charge that does not fit; return the fields of its entry besides the guarantee."""
    check_same_kind(spending.change, guarantee.relation, guarantee.unit)
    if isinstance(spending, PlannedSpending):
        return {"planned": spending.take(guarantee)}
    admit(spending, guarantee)
    return {}


def _remaining(entries: list[Entry], name: str) -> Budget:
    """Return what is left, with the kinds of releases that it can still pay for."""
    spending = _spending(entries, name)
    left = spending.left.rounded_down()
    if isinstance(spending, PlannedSpending):
        return replace(left, buys=spending.buys)
    kinds: dict[str, Guarantee] = {}
    for entry in entries:
        if entry.kind == "charge" and entry.data_name == name:
            charge = cast("Charge", read_entry(entry))
            promise = charge.guarantee
            kinds.setdefault(f"{charge.purpose} at epsilon {promise.epsilon:g}", promise)
    said = (
        f"{words} still fits {times(spending.fits(promise))}" for words, promise in kinds.items()
    )
    return replace(left, buys=tuple(said))


def _spending(entries: list[Entry], name: str) -> Spending | PlannedSpending:
    budgets = _budgets(entries)
    base, label = divide_name(name)
    if name in budgets:
        base, label = name, ""
    if base not in budgets or (label and budgets[base][0].period is None):
        raise UnknownDatasetError(
            f"Expected a data set with a budget, got {name!r}, for which none was ever set. Check "
            "the name, or set a budget with set_budget."
        )
    change, limit = budgets[base]
    if change.period is not None:
        check_period(change.period, label)
    kind = PlannedSpending if change.composition == "pld" else Spending
    return kind.of(change, limit, [entry for entry in entries if entry.data_name == name])


def _check_text(**values: str) -> None:
    for name, value in values.items():
        if not (isinstance(value, str) and value.strip() and value.isprintable()):
            raise ParameterError(f"Expected {name} to be one line of text, got {name}={value!r}.")


def _operating_system_user() -> str:
    try:
        return getpass.getuser()
    except (ImportError, KeyError, OSError):
        return "unknown"
