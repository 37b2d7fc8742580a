"""The entries of a ledger: budgets, charges, settlements and progress."""

from __future__ import annotations

import json
import math
import numbers
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from fractions import Fraction
from typing import Any, NamedTuple

from quorate._validate import exact, float_up
from quorate.core.guarantees import (
    Approximate,
    Composed,
    Event,
    Gaussian,
    Guarantee,
    Nothing,
    Numerics,
    Pure,
    Relation,
    Repeated,
    Subsampled,
    Trust,
)
from quorate.exceptions import UnsupportedEventError
from quorate.ledger.append_only import Entry

__all__ = [
    "Amount",
    "Budget",
    "BudgetChange",
    "Charge",
    "PlannedRelease",
    "ProgressEntry",
    "Settlement",
    "decimal_reading",
    "entry_for_people",
    "plain_amount",
    "plain_number",
    "read_entry",
    "read_guarantee",
    "times",
]


@dataclass(frozen=True, kw_only=True)
class Budget:
    """An amount of privacy loss; ``buys`` lists in words what the remaining amount can pay for.

    >>> Budget(epsilon=0.3, delta=0.0)
    Budget(epsilon=0.3, delta=0.0)
    """

    epsilon: float
    delta: float
    buys: tuple[str, ...] = field(default=(), compare=False, repr=False)


@dataclass(frozen=True, kw_only=True)
class PlannedRelease:
    """A planned release, which may happen ``count`` times, in a budget that is a list of releases.

    ``events`` is a JSON list; an empty list stands for any release with at most the declared cost.

    >>> PlannedRelease(name="a count", count=52, epsilon=0.05, delta=0.0, events="[]").count
    52
    """

    name: str
    count: int
    epsilon: float
    delta: float
    events: str


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
    composition: str = "basic"
    period: str | None = None
    plan: tuple[PlannedRelease, ...] = ()


@dataclass(frozen=True, kw_only=True)
class Charge:
    """An entry that spends; ``guarantee.events`` holds the events as they were recorded.

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


@dataclass(frozen=True, kw_only=True)
class Settlement:
    """An entry that lowers an earlier charge to what was really used.

    >>> Settlement(id=3, when="2026-01-01T00:00:00.000000+00:00", who="analyst",
    ...            data_name="visits", charge=2, events=()).charge
    2
    """

    id: int
    when: str
    who: str
    data_name: str
    charge: int
    events: tuple[Event, ...]


@dataclass(frozen=True, kw_only=True)
class ProgressEntry:
    """An entry that records the progress of a long release under one charge; it costs nothing.

    >>> ProgressEntry(id=3, when="2026-01-01T00:00:00.000000+00:00", who="analyst",
    ...          data_name="visits", charge=2, state="period 1 ab12").state
    'period 1 ab12'
    """

    id: int
    when: str
    who: str
    data_name: str
    charge: int
    state: str


class Amount(NamedTuple):
    """An exact amount of privacy loss.

    >>> Amount(Fraction(1, 3), Fraction(0)).rounded_up().epsilon > 1 / 3
    True
    """

    epsilon: Fraction
    delta: Fraction

    def rounded_up(self) -> Budget:
        """Return floats that are at least this amount."""
        return Budget(epsilon=_float_above(self.epsilon), delta=_float_above(self.delta))

    def rounded_down(self) -> Budget:
        """Return floats that are at most this amount."""
        return Budget(epsilon=_float_below(self.epsilon), delta=_float_below(self.delta))

    def in_words(self, new: Amount | None = None) -> str:
        """Return the amounts as text, or the change from them to ``new``.

        >>> Amount(Fraction(2), Fraction(1, 10**5)).in_words(Amount(Fraction(3), Fraction(0)))
        'epsilon 2 -> 3, delta 1e-5 -> 0'
        """
        old = [plain_amount(part) for part in self]
        if new is not None:
            old = [f"{was} -> {plain_amount(now)}" for was, now in zip(old, new, strict=True)]
        return f"epsilon {old[0]}, delta {old[1]}"


def plain_amount(amount: Fraction | float | str) -> str:
    """Return an amount as a decimal, or with an exponent if it is small.

    >>> [plain_amount(amount) for amount in ("1/4", "1/100000", 0.30000000000000004, 2.0)]
    ['0.25', '1e-5', '0.3', '2']
    """
    digits, exponent, power = f"{float(Fraction(amount)):.12g}".partition("e")
    return f"{digits}e{int(power)}" if exponent else digits


def times(count: int) -> str:
    """Return a number of times in words.

    >>> times(1), times(9)
    ('1 time', '9 times')
    """
    return f"{count:,} time{'' if count == 1 else 's'}"


def entry_for_people(entry: Mapping[str, Any]) -> dict[str, Any]:
    """Return an exported entry with decimal amounts and a time in seconds.

    The export itself keeps the exact amounts and times, because its digests cover them.

    >>> entry_for_people({"time": "2026-01-02T03:04:05.678901+00:00", "epsilon": "1/10",
    ...                   "delta": "0"})
    {'time': '2026-01-02 03:04:05 UTC', 'epsilon': '0.1', 'delta': '0'}
    """
    moment = datetime.fromisoformat(entry["time"]).astimezone(UTC)
    return {
        **entry,
        "time": f"{moment:%Y-%m-%d %H:%M:%S} UTC",
        "epsilon": plain_amount(entry["epsilon"]),
        "delta": plain_amount(entry["delta"]),
    }


def decimal_reading(value: float) -> Fraction:
    """Return the exact amount that a number stands for; see ``Ledger``.

    >>> decimal_reading(0.1)
    Fraction(1, 10)
    """
    if isinstance(value, numbers.Rational):
        return Fraction(int(value.numerator), int(value.denominator))
    return Fraction(repr(float(value)))


def _float_above(amount: Fraction) -> float:
    value = float(amount)
    return value if decimal_reading(value) >= amount else math.nextafter(value, math.inf)


def _float_below(amount: Fraction) -> float:
    value = float(amount)
    return value if decimal_reading(value) <= amount else math.nextafter(value, 0.0)


@dataclass(frozen=True)
class _RecordedEvent(Event):
    """An event as it was recorded; it cannot be priced, and is written back unchanged."""

    text: str

    def to_dict(self) -> dict[str, Any]:
        document: dict[str, Any] = json.loads(self.text)
        return document


def read_guarantee(document: Mapping[str, Any]) -> Guarantee:
    """Return the guarantee that a document states; its events are kept as they were written.

    >>> read_guarantee(Guarantee(epsilon=2.0).to_dict()).epsilon
    2.0
    """
    epsilon = document["epsilon"]
    return Guarantee(
        epsilon=math.inf if epsilon == "infinity" else float(epsilon),
        delta=float(document["delta"]),
        unit=str(document["unit"]),
        relation=Relation[str(document["relation"]).upper()],
        trust=Trust[str(document["trust"]).upper()],
        numerics=Numerics(document["numerics"]),
        events=_event_text(document),
        data_name=document["data_name"],
        caveat=document.get("caveat"),
    )


def _event_text(document: Mapping[str, Any]) -> tuple[Event, ...]:
    """Return the events of a JSON document, as they were recorded.

    >>> _event_text({"events": [{"event": "nothing"}]})[0].to_dict()
    {'event': 'nothing'}
    """
    return tuple(_RecordedEvent(json.dumps(event)) for event in document["events"])


def read_event(document: Mapping[str, Any]) -> Event:
    """Return the event that was recorded as ``document``.

    >>> read_event(Subsampled(Repeated(Gaussian(2.0), 3), rate=0.5).to_dict())
    Subsampled(event=Repeated(event=Gaussian(noise_multiplier=2.0), count=3), rate=0.5)
    """
    match document:
        case {"event": "nothing"}:
            return Nothing()
        case {"event": "pure", "epsilon": epsilon}:
            return Pure(epsilon)
        case {"event": "approximate", "epsilon": epsilon, "delta": delta}:
            return Approximate(epsilon, delta)
        case {"event": "laplace", "noise_multiplier": multiplier}:
            # Written by older versions: continuous noise, whose pure cost is an upper bound.
            return Pure(float_up(1 / exact(multiplier)))
        case {"event": "gaussian", "noise_multiplier": multiplier}:
            return Gaussian(multiplier)
        case {"event": "subsampled", "rate": rate, "of": part}:
            return Subsampled(read_event(part), rate)
        case {"event": "repeated", "count": count, "of": part}:
            return Repeated(read_event(part), count)
        case {"event": "composed", "of": parts}:
            return Composed(tuple(read_event(part) for part in parts))
    raise UnsupportedEventError(
        f"Expected an event as Event.to_dict writes it, got {document!r}. Was it written by a "
        "newer Quorate?"
    )


def read_entry(entry: Entry) -> BudgetChange | Charge | ProgressEntry | Settlement:
    """Return a row of the file as an entry object.

    >>> text = '{"epsilon": 1.0, "delta": 0.0, "relation": "replace", "unit": "user"}'
    >>> read_entry(Entry(1, "budget", "", "me", "visits", "", "1", "0", text, "")).unit
    'user'
    """
    document = json.loads(entry.document)
    match entry.kind:
        case "budget":
            return BudgetChange(
                id=entry.id,
                when=entry.time,
                who=entry.who,
                data_name=entry.data_name,
                epsilon=document["epsilon"],
                delta=document["delta"],
                relation=Relation[document["relation"].upper()],
                unit=document["unit"],
                composition=document.get("composition", "basic"),
                period=document.get("period"),
                plan=tuple(PlannedRelease(**each) for each in document.get("plan", ())),
            )
        case "settlement":
            return Settlement(
                id=entry.id,
                when=entry.time,
                who=entry.who,
                data_name=entry.data_name,
                charge=document["charge"],
                events=_event_text(document),
            )
        case "progress":
            return ProgressEntry(
                id=entry.id,
                when=entry.time,
                who=entry.who,
                data_name=entry.data_name,
                charge=document["charge"],
                state=document["state"],
            )
        case _:
            return Charge(
                id=entry.id,
                when=entry.time,
                who=entry.who,
                data_name=entry.data_name,
                purpose=entry.purpose,
                guarantee=read_guarantee(document),
            )


def plain_number(value: Any) -> float:
    """Convert a number for JSON: events may contain numpy integers or fractions.

    >>> plain_number(Fraction(1, 2))
    0.5
    """
    return int(value) if isinstance(value, numbers.Integral) else float(value)
