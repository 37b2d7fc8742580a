r"""Budgets that are a list of releases, fixed in advance and priced as a whole.

A filter (:mod:`quorate.ledger.spending`) allows the noise of the next release to depend on earlier
answers, and this freedom costs budget. If the releases and their numbers are known in advance, the
cost is lower: all of them together are one chain, priced exactly or by privacy loss distributions
(:func:`~quorate.core.account.compose.price`), secret samples included. The queries, and the order
in which releases of the list are taken, may still depend on all earlier answers;
``docs/proofs/account.md`` (*Ledgers*) has the proof.
"""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import Any

from quorate import _validate
from quorate._validate import exact, float_down, float_up
from quorate.core.account.compose import price
from quorate.core.account.costs import cheapest_cover, elementary
from quorate.core.guarantees import (
    Approximate,
    Event,
    Gaussian,
    Guarantee,
    Nothing,
    Pure,
    Relation,
    Repeated,
    compose_events,
)
from quorate.exceptions import BudgetExceededError, ParameterError, UnsupportedEventError
from quorate.ledger.append_only import Entry
from quorate.ledger.entries import (
    Amount,
    BudgetChange,
    PlannedRelease,
    decimal_reading,
    read_event,
    times,
)

__all__ = ["PlannedSpending", "check_plan", "covers_release", "read_plan"]


def read_plan(
    plan: Mapping[str, tuple[Guarantee, int]] | None, *, relation: Relation, unit: str
) -> tuple[PlannedRelease, ...]:
    """Return the releases of a plan; refuse one that is invalid or does not suit the budget.

    >>> counts = {"a weekly count": (Guarantee(epsilon=0.05), 52)}
    >>> read_plan(counts, relation=Relation.REPLACE, unit="user")[0].count
    52
    """
    if not plan:
        raise ParameterError(
            "Expected a plan for composition='pld': the releases that there will be, each with how "
            "often, such as plan={'a weekly count': (Guarantee(epsilon=0.05), 52)}."
        )
    found = []
    for name, held in plan.items():
        if not (isinstance(held, tuple) and len(held) == 2 and isinstance(held[0], Guarantee)):
            raise ParameterError(f"Expected (Guarantee, count) for {name!r} in a plan.")
        promise, count = held
        _validate.positive_integer(count=count)
        if not (isinstance(name, str) and name.strip() and name.isprintable()):
            raise ParameterError(f"Expected names of releases to be one line, got {name!r}.")
        if not promise.holds or (promise.relation, promise.unit) != (relation, unit):
            raise ParameterError(
                f"Expected {name!r} to hold for {relation.name} of one {unit}, as the budget does."
            )
        found.append(
            PlannedRelease(
                name=name,
                count=count,
                epsilon=float(promise.epsilon),
                delta=float(promise.delta),
                events=json.dumps([event.to_dict() for event in promise.events]),
            )
        )
    return tuple(found)


def check_plan(plan: tuple[PlannedRelease, ...], limit: Amount, relation: Relation) -> None:
    """Refuse a plan above the budget, and planned releases whose events exceed their cost."""
    for each in plan:
        alone = _price(((each, 1),), each.delta, relation)
        if json.loads(each.events) and not alone <= each.epsilon:
            raise ParameterError(
                f"Expected events of {each.name!r} that cost at most epsilon={each.epsilon!r}, got "
                f"some that cost {alone!r}."
            )
    cost = _price(tuple((each, each.count) for each in plan), float_down(limit.delta), relation)
    if not _is_within(cost, limit):
        raise BudgetExceededError(
            f"All planned releases together cost epsilon={cost:.6g} at delta="
            f"{float(limit.delta):g}, more than the budget of epsilon={float(limit.epsilon):g}. "
            "Nothing was written: plan fewer, or more noise."
        )


def covers_release(planned: PlannedRelease, guarantee: Guarantee) -> bool:
    """Return whether a release with this guarantee may take the place of the planned one.

    A planned release without stated events covers any release with at most the same declared cost.
    One with events covers events that match one by one and cost no more. Gaussian noise on all
    users may be divided differently, up to the same sum of squares.

    >>> noise = json.dumps([Gaussian(4.0).to_dict()])
    >>> planned = PlannedRelease(name="a mean", count=9, epsilon=2.0, delta=1e-6, events=noise)
    >>> covers_release(planned, Guarantee(epsilon=1.0, delta=1e-6, events=(Gaussian(5.0),)))
    True
    >>> covers_release(planned, Guarantee(epsilon=1.0, delta=1e-6))
    False
    """
    if not json.loads(planned.events):
        amounts = decimal_reading(guarantee.epsilon), decimal_reading(guarantee.delta)
        return amounts[0] <= decimal_reading(planned.epsilon) and amounts[1] <= decimal_reading(
            planned.delta
        )
    if not guarantee.events:
        return False
    try:
        drawn = elementary(compose_events(read_event(e.to_dict()) for e in guarantee.events))
    except UnsupportedEventError:
        return False
    left = elementary(_event(planned))
    if _square(drawn) > _square(left):
        return False
    for event, count in drawn.items():
        if isinstance(event, Gaussian | Nothing):
            continue
        for _ in range(count):
            cover = cheapest_cover(left, event)
            if cover is None:
                return False
            left[cover] -= 1
    return True


def _square(events: Counter[Event]) -> Fraction:
    found = (
        count / exact(event.noise_multiplier) ** 2
        for event, count in events.items()
        if isinstance(event, Gaussian)
    )
    return sum(found, Fraction(0))


def _event(planned: PlannedRelease) -> Event:
    """Return the event by which one planned release is priced."""
    documents = json.loads(planned.events)
    if documents:
        return compose_events(read_event(document) for document in documents)
    # What is declared counts as its decimal, which may be a little more than the float.
    epsilon, delta = (
        float_up(decimal_reading(value)) for value in (planned.epsilon, planned.delta)
    )
    return Approximate(epsilon, delta) if delta else Pure(epsilon)


@lru_cache(maxsize=256)
def _price(used: tuple[tuple[PlannedRelease, int], ...], delta: float, relation: Relation) -> float:
    events = [Repeated(_event(each), count) for each, count in used if count]
    return price(compose_events(events), delta=delta, relation=relation) if events else 0.0


def _is_within(cost: float, limit: Amount) -> bool:
    """Return whether a price, which may be infinite, is at most the epsilon of a budget."""
    return math.isfinite(cost) and exact(cost) <= limit.epsilon


@dataclass(frozen=True)
class PlannedSpending:
    """A budget that is a list of releases, and how many of each were taken.

    >>> weekly = PlannedRelease(name="a count", count=2, epsilon=0.5, delta=0.0, events="[]")
    >>> change = BudgetChange(id=1, when="", who="", data_name="visits", epsilon=1.0, delta=1e-6,
    ...                       relation=Relation.REPLACE, unit="user", composition="pld",
    ...                       plan=(weekly,))
    >>> spending = PlannedSpending(change, Amount(Fraction(1), Fraction(1, 10**6)), Counter())
    >>> spending.fits(Guarantee(epsilon=0.5)), spending.fits(Guarantee(epsilon=0.6))
    (2, 0)
    """

    change: BudgetChange
    limit: Amount
    taken: Counter[str]

    @classmethod
    def of(cls, change: BudgetChange, limit: Amount, entries: Sequence[Entry]) -> PlannedSpending:
        """Return which planned releases ``entries`` have taken.

        All entries belong to one budget, and each took the cheapest release.
        """
        spending = cls(change, limit, Counter())
        for entry in entries:
            if entry.kind == "charge":
                document: dict[str, Any] = json.loads(entry.document)
                spending.taken[document["planned"]] += 1
        return spending

    def take(self, guarantee: Guarantee) -> str:
        """Return the name of the planned release that a charge takes, or refuse."""
        able = self._able(guarantee)
        if able:
            return min(able, key=lambda each: (each.epsilon, each.delta)).name
        left = "; ".join(self.buys) or "nothing"
        raise BudgetExceededError(
            f"Requested epsilon={guarantee.epsilon!r}, delta={guarantee.delta!r}, which no release "
            f"that is left of the plan of {self.change.data_name!r} covers: {left}. Nothing was "
            "charged."
        )

    def fits(self, guarantee: Guarantee) -> int:
        """Return how many releases with this guarantee the plan still holds."""
        return sum(each.count - self.taken[each.name] for each in self._able(guarantee))

    @property
    def buys(self) -> tuple[str, ...]:
        """What can still be released, in words."""
        return tuple(
            f"{each.name} at epsilon {each.epsilon:g} still fits {times(left)}"
            for each, left in self._left()
        )

    @property
    def spent(self) -> Amount:
        """The joint cost of the releases that were taken.

        If the delta of the budget was lowered so far that no joint guarantee exists for it, the sum
        of the declared costs is returned.
        """
        used = tuple((each, self.taken[each.name]) for each in self.change.plan)
        if not any(count for _, count in used):
            return Amount(Fraction(0), Fraction(0))
        cost = _price(used, float_down(self.limit.delta), self.change.relation)
        if math.isfinite(cost):
            return Amount(exact(cost), self.limit.delta)
        return Amount(
            sum((count * decimal_reading(each.epsilon) for each, count in used), Fraction(0)),
            sum((count * decimal_reading(each.delta) for each, count in used), Fraction(0)),
        )

    @property
    def left(self) -> Amount:
        """The largest planned release that is still available."""
        amounts = [
            Amount(decimal_reading(each.epsilon), decimal_reading(each.delta))
            for each, _ in self._left()
        ]
        return max(amounts, default=Amount(Fraction(0), Fraction(0)))

    def _able(self, guarantee: Guarantee) -> list[PlannedRelease]:
        return [each for each, _ in self._left() if covers_release(each, guarantee)]

    def _left(self) -> list[tuple[PlannedRelease, int]]:
        """Return what is left of the plan; nothing if the budget was lowered below its price."""
        whole = tuple((each, each.count) for each in self.change.plan)
        cost = _price(whole, float_down(self.limit.delta), self.change.relation)
        if not _is_within(cost, self.limit):
            return []
        pairs = ((each, each.count - self.taken[each.name]) for each in self.change.plan)
        return [(each, left) for each, left in pairs if left > 0]
