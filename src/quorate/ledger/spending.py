r"""Composition of charges: basic, or by a filter of Gaussian differential privacy.

*Basic*: the epsilons and the deltas of all charges are added.

*Gaussian*: every charge is recorded in two ways, and the next one is admitted if either total fits.

* :math:`(\varepsilon_i, \delta_i)` as it was declared: the epsilons may add up to
  :math:`\varepsilon`, the deltas to :math:`\delta/4`;
* a square :math:`\mu_i^2` with a failure probability, from the events that were drawn: the squares
  may add up to :math:`\mu^2`, the failure probabilities to :math:`\delta/4`, where :math:`\mu`-GDP
  is :math:`(\varepsilon, \delta/2)`-DP.

The next query and its noise may depend on all earlier answers: both totals are filters, and
``docs/proofs/account.md`` (*Ledgers*) proves that the history is :math:`(\varepsilon, \delta)`-DP.
Numerical composition (by privacy loss distributions) of adaptively chosen releases has no such
proof. It is used within one release, and for budgets that are a list of releases
(:mod:`quorate.ledger.planned_spending`).
"""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import NamedTuple

from quorate._validate import exact, float_down, root_up
from quorate.core.account.compose import price
from quorate.core.account.costs import as_gaussian, costs_of, gdp_mu, pure_costs, rounded_square
from quorate.core.account.gaussian_dp import epsilon_bound
from quorate.core.guarantees import Guarantee, Relation, compose_events
from quorate.exceptions import (
    BudgetExceededError,
    LedgerError,
    RelationMismatchError,
    UnsupportedEventError,
)
from quorate.ledger.append_only import Entry
from quorate.ledger.entries import Amount, BudgetChange, decimal_reading, plain_number, read_event

__all__ = [
    "COMPOSITIONS",
    "Cost",
    "Spending",
    "admit",
    "check_same_kind",
    "cost_of",
    "cost_of_guarantee",
]

COMPOSITIONS = ("basic", "gaussian", "pld")
_DECLARED = Fraction(1, 4)
_FAILURES = Fraction(1, 4)
_STEPS = 60


class Cost(NamedTuple):
    """The cost of a charge in both compositions; ``square`` is None without the Gaussian one.

    >>> Cost(Fraction(1, 2), Fraction(0), None, Fraction(0)).times(2).epsilon
    Fraction(1, 1)
    """

    epsilon: Fraction
    delta: Fraction
    square: Fraction | None
    failures: Fraction

    def is_within(self, other: Cost) -> bool:
        """Return whether the Gaussian cost is at most that of ``other``, in both numbers."""
        if self.square is None or self.failures > other.failures:
            return False
        return other.square is None or self.square <= other.square

    def times(self, count: int) -> Cost:
        """Return the cost of ``count`` such charges."""
        return Cost(
            count * self.epsilon,
            count * self.delta,
            None if self.square is None else count * self.square,
            count * self.failures,
        )

    def plus(self, other: Cost) -> Cost:
        """Return the sum of two costs."""
        squares = self.square, other.square
        return Cost(
            self.epsilon + other.epsilon,
            self.delta + other.delta,
            None if squares[0] is None or squares[1] is None else squares[0] + squares[1],
            self.failures + other.failures,
        )


def cost_of(epsilon: Fraction, delta: Fraction, events: str) -> Cost:
    """Return the cost in both compositions of a charge with these events (a list in JSON).

    Without events, or with events that have no square (secret samples), the Gaussian cost follows
    from the declared cost: an (epsilon, delta)-DP release is epsilon-DP except with a failure
    probability.

    >>> events = '[{"event": "gaussian", "noise_multiplier": 9}]'
    >>> cost = cost_of(Fraction(1, 10), Fraction(0), events)
    >>> cost.square == Fraction(1, 81), cost.failures
    (False, Fraction(0, 1))
    >>> 0 < cost.square - Fraction(1, 81) < 1e-40
    True
    """
    square, failures = _second_reading(epsilon, delta, events)
    return Cost(epsilon, delta, square, failures)


@lru_cache(maxsize=4096)
def _second_reading(
    epsilon: Fraction, delta: Fraction, events: str
) -> tuple[Fraction | None, Fraction]:
    documents = json.loads(events)
    _, square, failures = pure_costs(epsilon, delta)
    if documents:
        try:
            _, drawn, failed = costs_of(compose_events(read_event(each) for each in documents))
        except UnsupportedEventError:
            drawn = None
        if drawn is not None and (square is None or drawn < square or failed < failures):
            square, failures = drawn, failed
    return None if square is None else rounded_square(square), failures


def _total(costs: Iterable[Cost]) -> Cost:
    # Most charges repeat a few amounts; counting first keeps a long history cheap.
    zero = Cost(Fraction(0), Fraction(0), Fraction(0), Fraction(0))
    for cost, count in Counter(costs).items():
        zero = zero.plus(cost.times(count))
    return zero


@dataclass(frozen=True)
class Spending:
    """A budget and all that was charged to it.

    >>> change = BudgetChange(id=1, when="", who="", data_name="visits", epsilon=1.0, delta=1e-5,
    ...                       relation=Relation.REPLACE, unit="user", composition="gaussian")
    >>> spending = Spending(change, Amount(Fraction(1), Fraction(1, 100000)), total=_total([]))
    >>> small = cost_of(Fraction(1, 10), Fraction(1, 10**8),
    ...                 '[{"event": "gaussian", "noise_multiplier": 55}]')
    >>> spending.times(small) > 100
    True
    """

    change: BudgetChange
    limit: Amount
    total: Cost

    @classmethod
    def of(cls, change: BudgetChange, limit: Amount, entries: Sequence[Entry]) -> Spending:
        """Return the total of ``entries``, all of one budget.

        A settlement replaces the charge it names if its Gaussian cost is lower. It cannot raise a
        total under which an earlier charge was admitted.
        """
        settled = {}
        for entry in entries:
            if entry.kind == "settlement":
                document = json.loads(entry.document)
                settled[document["charge"]] = json.dumps(document["events"])
        tight = change.composition == "gaussian"
        costs = []
        for entry in entries:
            if entry.kind == "charge":
                amounts = Fraction(entry.epsilon), Fraction(entry.delta)
                if not tight:
                    costs.append(Cost(*amounts, None, amounts[1]))
                    continue
                charged = cost_of(*amounts, json.dumps(json.loads(entry.document)["events"]))
                drawn = cost_of(*amounts, settled.get(entry.id, "[]"))
                costs.append(drawn if drawn.is_within(charged) else charged)
        return cls(change, limit, _total(costs))

    def admits(self, cost: Cost) -> bool:
        """Return whether a charge of ``cost`` still fits."""
        total = self.total.plus(cost)
        declared = total.epsilon <= self.limit.epsilon and total.delta <= self._declared_delta
        return declared or (
            total.square is not None
            and total.square <= self._square
            and total.failures <= _FAILURES * self.limit.delta
        )

    def fits(self, guarantee: Guarantee) -> int:
        """Return how many releases with this guarantee still fit."""
        return self.times(cost_of_guarantee(guarantee))

    def times(self, cost: Cost) -> int:
        """Return how many charges of ``cost`` still fit."""
        declared = _quotient(
            (self.limit.epsilon - self.total.epsilon, cost.epsilon),
            (self._declared_delta - self.total.delta, cost.delta),
        )
        if self.total.square is None or cost.square is None:
            return declared
        squares = _quotient(
            (self._square - self.total.square, cost.square),
            (_FAILURES * self.limit.delta - self.total.failures, cost.failures),
        )
        return max(declared, squares)

    @property
    def spent(self) -> Amount:
        """The smallest total over all ways to compose the charges."""
        total = self.total
        declared = Amount(total.epsilon, total.delta)
        if self.change.composition == "basic" or not total.square:
            return declared
        half = float_down(self.limit.delta / 2)
        epsilon = exact(epsilon_bound(half, root_up(total.square)))
        if total.delta <= self._declared_delta and total.epsilon <= epsilon:
            return declared
        return Amount(epsilon, self.limit.delta / 2 + total.failures)

    @property
    def left(self) -> Amount:
        """An amount that can still be charged, whatever its events."""
        zero = Fraction(0)
        declared = Amount(
            max(zero, self.limit.epsilon - self.total.epsilon),
            max(zero, self._declared_delta - self.total.delta),
        )
        if self.total.square is None:
            return declared
        squares = Amount(
            _pure_epsilon(self._square - self.total.square),
            max(zero, _FAILURES * self.limit.delta - self.total.failures),
        )
        return max(declared, squares)

    @property
    def _declared_delta(self) -> Fraction:
        return self.limit.delta * (1 if self.change.composition == "basic" else _DECLARED)

    @property
    def _square(self) -> Fraction:
        if self.change.composition == "basic" or not (self.limit.epsilon and self.limit.delta):
            return Fraction(0)
        return _square_of(self.limit)


@lru_cache(maxsize=256)
def _square_of(limit: Amount) -> Fraction:
    return exact(gdp_mu(float_down(limit.epsilon), float_down(limit.delta / 2))) ** 2


@lru_cache(maxsize=256)
def _pure_epsilon(square: Fraction) -> Fraction:
    """Return an epsilon whose pure releases cost at most this square, rounded down."""
    low, high = Fraction(0), Fraction(64)
    if square <= 0:
        return low
    for _ in range(_STEPS):
        middle = (low + high) / 2
        fits = rounded_square(as_gaussian(middle)) <= square
        low, high = (middle, high) if fits else (low, middle)
    # A charge counts as the decimal that its float prints.
    value = float(low)
    while rounded_square(as_gaussian(decimal_reading(value))) > square:
        value = math.nextafter(value, 0.0)
    return decimal_reading(value)


def _quotient(*pairs: tuple[Fraction, Fraction]) -> int:
    counts = [left // one if left > 0 else Fraction(0) for left, one in pairs if one > 0]
    if any(left < 0 for left, _ in pairs) or not counts:
        return 0
    return int(min(counts))


def cost_of_guarantee(guarantee: Guarantee) -> Cost:
    """Return the cost of a charge with this guarantee in both compositions.

    >>> cost_of_guarantee(Guarantee(epsilon=0.5)).epsilon
    Fraction(1, 2)
    """
    amounts = decimal_reading(guarantee.epsilon), decimal_reading(guarantee.delta)
    events = [event.to_dict() for event in guarantee.events]
    return cost_of(*amounts, json.dumps(events, default=plain_number))


def _check_events(guarantee: Guarantee) -> None:
    """Refuse events that cost more than the declared guarantee."""
    try:
        event = compose_events(read_event(event.to_dict()) for event in guarantee.events)
        cost = price(event, delta=guarantee.delta, relation=guarantee.relation)
    except UnsupportedEventError:
        return
    if not cost <= guarantee.epsilon:
        raise LedgerError(
            f"Expected events that cost at most epsilon={guarantee.epsilon!r} at "
            f"delta={guarantee.delta!r}, got some that cost {cost!r}: no budget covers them. Use "
            "the guarantee of the mechanism itself."
        )


def check_same_kind(change: BudgetChange, relation: Relation, unit: str) -> None:
    """Refuse a relation or unit other than that of the budget.

    >>> change = BudgetChange(id=1, when="", who="", data_name="visits", epsilon=1.0, delta=0.0,
    ...                       relation=Relation.REPLACE, unit="user")
    >>> check_same_kind(change, Relation.REPLACE, "user")
    """
    name, mine = change.data_name, change.relation
    if relation is not mine:
        # Add/remove implies replace only at twice the epsilon and more than twice the delta;
        # replace implies nothing about add/remove. Converting silently would surprise.
        raise RelationMismatchError(
            f"Expected a cost under {mine.name} for {name!r}, got one under {relation.name}; "
            f"the ledger does not convert. Use relation=Relation.{mine.name}, or give these "
            "releases a data set name and a budget of their own."
        )
    if unit != change.unit:
        raise RelationMismatchError(
            f"Expected a cost for each {change.unit!r} for {name!r}, got one for each "
            f"{unit!r}; the ledger does not convert. Use unit={change.unit!r} if the same "
            "people are meant, otherwise a data set name and a budget of their own."
        )


def admit(spending: Spending, guarantee: Guarantee) -> None:
    """Refuse a guarantee of another kind, or one that costs more than what is left.

    >>> change = BudgetChange(id=1, when="", who="", data_name="visits", epsilon=1.0, delta=0.0,
    ...                       relation=Relation.REPLACE, unit="user")
    >>> admit(Spending(change, Amount(Fraction(1), Fraction(0)), total=_total([])),
    ...       Guarantee(epsilon=0.5))
    """
    change = spending.change
    check_same_kind(change, guarantee.relation, guarantee.unit)
    if change.composition == "gaussian":
        _check_events(guarantee)
    if spending.admits(cost_of_guarantee(guarantee)):
        return
    left = spending.left.rounded_down()
    words = {Relation.REPLACE: "replace", Relation.ADD_REMOVE: "add or remove"}
    raise BudgetExceededError(
        f"Requested epsilon={_digits(guarantee.epsilon)}, delta={_digits(guarantee.delta)} but "
        f"epsilon={_digits(left.epsilon)} of {_digits(change.epsilon)} and "
        f"delta={_digits(left.delta)} of {_digits(change.delta)} are left for "
        f"{change.data_name!r} ({words[change.relation]} one {change.unit}). Nothing was "
        "charged: ask for less, or have the budget raised (set_budget, or quorate ledger change)."
    )


def _digits(value: float) -> str:
    return "0" if value == 0 else repr(float(value))
