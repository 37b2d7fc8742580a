"""The budget of each filter of an account, and the cost of an event; never too small.

References
----------
.. [1] Dong, Roth, Su. Gaussian differential privacy. J. R. Stat. Soc. B 84(1), 2022,
   arXiv:1905.02383v3.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from statistics import NormalDist

from quorate import _validate
from quorate._validate import exact, float_up, root_down
from quorate.core.account.gaussian_dp import delta_bound, epsilon_bound
from quorate.core.account.rounding import decimal_down
from quorate.core.guarantees import (
    UNITS,
    Approximate,
    Composed,
    DrawCosts,
    Event,
    Gaussian,
    Guarantee,
    Nothing,
    Numerics,
    Pure,
    Relation,
    Repeated,
    Subsampled,
    compose_events,
)
from quorate.exceptions import NumericalFailure, UnsupportedEventError

__all__ = [
    "Costs",
    "PricedChain",
    "as_gaussian",
    "cheapest_cover",
    "costs_of",
    "covers",
    "covers_of_each",
    "draw_costs",
    "elementary",
    "gdp_mu",
    "promise_of",
    "pure_costs",
    "rounded_square",
    "settled",
    "words",
]

# The inverse normal is good to far better than this, away from 1/2.
_INVERSE = Fraction(1, 2**40)
# Below it mu is at most sqrt(pi / 2) epsilon: the next term of its series is negative.
_SMALL = Fraction(1, 2**10)
_ROOT_OF_HALF_PI = Fraction(12_533_141_373_156, 10**13)  # rounded up
# A fit, and an audit far more, asks about the same few budgets and events again and again; a type
# that would be refused must not be taken for the number that it equals.
_remembered = lru_cache(maxsize=1024, typed=True)
# How much less than the largest mu is promised at least.
_SHRINK = 2.0**-33


@_validate.remembered
def gdp_mu(epsilon: float, delta: float) -> float:
    """Return the largest mu for which mu-GDP is (``epsilon``, ``delta``)-DP, rounded down.

    Gaussian releases whose squared mu's sum to at most ``mu**2`` stay within the budget.

    Parameters
    ----------
    epsilon : float
        Positive and finite.
    delta : float
        In (0, 1).

    Examples
    --------
    >>> round(gdp_mu(1.0, 1e-6), 4)
    0.2367
    """
    _validate.positive(epsilon=epsilon)
    _validate.probability(delta=delta)
    target = decimal_down(epsilon)
    high = 1.0
    while delta_bound(target, high) <= delta:
        high *= 2
    low = high
    while delta_bound(target, low) > delta:
        high, low = low, low / 2
        if low < 1e-300:
            raise _no_noise(epsilon, delta)
    while high - low > 2.0**-50 * high:
        middle = (low + high) / 2
        low, high = (middle, high) if delta_bound(target, middle) <= delta else (low, middle)
    # Far more than rounding can move a delta, far less than anybody notices: whoever rebuilds mu
    # from multipliers and prices it again gets at most the epsilon asked for.
    shrink = _SHRINK
    mu = low * (1 - shrink)
    while epsilon_bound(delta, mu) > epsilon:
        shrink *= 4
        if not shrink < 1:
            raise _no_noise(epsilon, delta)
        mu = low * (1 - shrink)
    return mu


@_remembered
def as_gaussian(epsilon: Fraction) -> Fraction:
    r"""Return the square of a GDP parameter that covers any ``epsilon``-DP release, rounded up.

    The trade-off curve of an :math:`\epsilon`-DP release lies above two chords that meet in
    :math:`1/(1+e^\epsilon)`. The convex curve of :math:`\mu`-GDP that passes through this point
    lies below both chords: :math:`\mu = -2\Phi^{-1}(1/(1+e^\epsilon))`. [1]_

    >>> round(float(as_gaussian(Fraction(1, 10))) ** 0.5 / 0.1, 3)
    1.253
    """
    if epsilon > 600:
        raise OverflowError
    if epsilon < _SMALL:
        return (_ROOT_OF_HALF_PI * epsilon) ** 2
    mu = -2.0 * NormalDist().inv_cdf(1.0 / (1.0 + math.exp(float_up(epsilon))))
    # exp and the quotient are good to a few units in the last place, which moves mu by far less.
    return (exact(mu) * (1 + _INVERSE)) ** 2


Costs = tuple[Fraction | None, Fraction | None, Fraction]
"""Pure loss, square of the GDP parameter (``None`` if there is none), failure probability."""


def _in_units(square: Fraction) -> int:
    return -(-square.numerator * UNITS // square.denominator)


def settled(costs: Costs) -> DrawCosts:
    """Return costs with the square rounded up to the units in which squares are added up.

    >>> settled((None, Fraction(1, 4), Fraction(0)))[1] == UNITS // 4
    True
    """
    pure, square, failures = costs
    return pure, None if square is None else _in_units(square), failures


@_remembered
def costs_of(event: Event) -> Costs:
    """Return the cost of an event for each filter."""
    pure: Fraction | None = Fraction(0)
    square: Fraction | None = Fraction(0)
    failures = Fraction(0)
    for each, count in elementary(event).items():
        more, squared, failed = _costs_of_one(each)
        pure = None if pure is None or more is None else pure + count * more
        square = None if square is None or squared is None else square + count * squared
        failures += count * failed
    return pure, square, failures


def _costs_of_one(event: Event) -> Costs:
    match event:
        case Nothing():
            return Fraction(0), Fraction(0), Fraction(0)
        case Pure(epsilon=epsilon):
            return pure_costs(exact(epsilon), Fraction(0))
        case Approximate(epsilon=epsilon, delta=delta):
            return pure_costs(exact(epsilon), exact(delta))
        case Gaussian(noise_multiplier=multiplier):
            return None, 1 / exact(multiplier) ** 2, Fraction(0)
        case _:
            raise UnsupportedEventError(
                f"Expected a pure, approximate or Gaussian event, got {event!r}. Sampled steps are "
                "planned with Account.reserve_chain."
            )


@_remembered
def draw_costs(event: Event | Fraction) -> tuple[Event, DrawCosts]:
    """Return the event of a draw and its cost for each filter; a fraction is a pure loss.

    >>> draw_costs(Fraction(1, 2))[0]
    Pure(epsilon=0.5)
    """
    if isinstance(event, Fraction):
        return Pure(float_up(event)), settled(pure_costs(event, Fraction(0)))
    return event, settled(costs_of(event))


@_remembered
def promise_of(event: Event, relation: Relation, numerics: Numerics) -> Guarantee:
    """Return the guarantee of a single event.

    It is cached, because an audit needs it in every run.
    """
    pure, _, failures = costs_of(event)
    epsilon, delta = math.inf if pure is None else float_up(pure), float_up(failures)
    return Guarantee(epsilon=epsilon, delta=delta, relation=relation, numerics=numerics)


def pure_costs(epsilon: Fraction, delta: Fraction) -> Costs:
    """Return the cost of an (epsilon, delta)-DP release for each filter."""
    try:
        return epsilon, as_gaussian(epsilon), delta
    except OverflowError:
        return epsilon, None, delta


def elementary(event: Event) -> Counter[Event]:
    """Return the elementary events of a chain; a sampled one stays as it is."""
    counts: Counter[Event] = Counter()
    match event:
        case Composed(events=parts):
            for part in parts:
                counts.update(elementary(part))
        case Repeated(event=part, count=count):
            for each, times in elementary(part).items():
                counts[each] += times * count
        case _:
            counts[event] += 1
    return counts


def covers(planned: Event, drawn: Event) -> bool:
    """Return whether the form of two events alone shows that one costs no more.

    This is the case if ``drawn`` costs at most what ``planned`` costs.
    """
    match planned, drawn:
        case Pure(), Pure():
            return drawn.epsilon <= planned.epsilon
        case Gaussian(), Gaussian():
            return drawn.noise_multiplier >= planned.noise_multiplier
        case Subsampled(), Subsampled():
            return drawn.rate <= planned.rate and covers(planned.event, drawn.event)
        case _:
            return False


def covers_of_each(chains: Sequence[Event]) -> list[Event]:
    """Return events each of which covers every one of these chains, whatever else is composed.

    A ledger composes them with other releases, at a delta that nobody knows yet. So it is not
    enough that one chain has the largest epsilon at some delta: its draws have to include those of
    the others, or all chains have to stay below one pure loss, or one parameter of Gaussian
    differential privacy. All of them together always suffice.

    >>> covers_of_each([Repeated(Pure(0.5), 2), Pure(0.5)])
    [Repeated(event=Pure(epsilon=0.5), count=2)]
    >>> covers_of_each([Gaussian(2.0), Pure(0.5)])[1]
    Gaussian(noise_multiplier=1.60...)
    """
    most: list[Event] = []
    for each in chains:
        if not any(_includes(other, each) for other in most):
            most = [other for other in most if not _includes(each, other)] + [each]
    if len(most) == 1:
        return most
    found = [compose_events(most)]
    try:
        costs = [costs_of(each) for each in most]
    except UnsupportedEventError:
        return found
    failed = max(failures for _, _, failures in costs)
    beside = [Approximate(0.0, float_up(failed))] if failed else []
    pure = [loss for loss, _, _ in costs if loss is not None]
    if len(pure) == len(costs):
        found.append(compose_events([Pure(float_up(max(pure))), *beside]))
    squares = [square for _, square, _ in costs if square is not None]
    if len(squares) == len(costs) and max(squares) > 0:
        found.append(compose_events([Gaussian(root_down(1 / max(squares))), *beside]))
    return found


def _includes(chain: Event, other: Event) -> bool:
    """Return whether ``chain`` has the draws of ``other``, and as costly Gaussian noise."""
    mine, theirs = elementary(chain), elementary(other)
    squares = [
        sum(n / exact(e.noise_multiplier) ** 2 for e, n in held.items() if isinstance(e, Gaussian))
        for held in (mine, theirs)
    ]
    return squares[0] >= squares[1] and all(
        isinstance(event, Gaussian) or mine[event] >= count for event, count in theirs.items()
    )


def cheapest_cover(planned: Counter[Event], drawn: Event) -> Event | None:
    """Return the cheapest remaining planned event that costs at least as much as a draw.

    >>> cheapest_cover(Counter([Pure(0.5), Pure(0.2), Pure(0.1)]), Pure(0.2))
    Pure(epsilon=0.2)
    """
    able = [each for each, left in planned.items() if left and covers(each, drawn)]
    return min(able, key=_weight, default=None)


def _weight(event: Event) -> float:
    """Return a number that orders planned events of one kind by their cost."""
    match event:
        case Pure(epsilon=epsilon):
            return epsilon
        case Subsampled(rate=rate):
            return rate
        case _:
            return 0.0


@dataclass
class PricedChain:
    """The remaining events of a chain that was priced as a whole: sampled events, pure losses.

    >>> plan, square = PricedChain.of(Composed((Gaussian(2.0), Pure(0.5))))
    >>> square, plan.take(Pure(0.25), Fraction(1, 4)), plan.losses[Fraction(1, 4)]
    (Fraction(1, 4), True, 1)
    """

    sampled: Counter[Event]
    losses: Counter[Fraction]

    @classmethod
    def of(cls, event: Event) -> tuple[PricedChain, Fraction]:
        """Return a priced chain, and the sum of the squares of its Gaussian noise."""
        sampled, losses, squares = elementary(event), Counter[Fraction](), Fraction(0)
        for each in list(sampled):
            if isinstance(each, Gaussian):
                squares += sampled.pop(each) / exact(each.noise_multiplier) ** 2
            elif isinstance(each, Pure):
                losses[exact(each.epsilon)] += sampled.pop(each)
        return cls(sampled, losses), squares

    def step_for(self, event: Event, pure: Fraction | None) -> Event | Fraction | None:
        """Return the cheapest planned step that costs at least as much as this draw."""
        if pure is not None:
            return min((p for p, n in self.losses.items() if n and pure <= p), default=None)
        return cheapest_cover(self.sampled, event)

    def take(self, event: Event, pure: Fraction | None) -> bool:
        """Use one planned step for this draw; return whether there was one."""
        step = self.step_for(event, pure)
        if isinstance(step, Fraction):
            # What a pure step leaves of its planned loss may go to another one.
            self.losses[step] -= 1
            self.losses[step - (pure or 0)] += 1
        elif step is not None:
            self.sampled[step] -= 1
        return step is not None


def rounded_square(square: Fraction) -> Fraction:
    """Return ``square`` rounded up to few digits, so that exact sums of many squares stay short."""
    return Fraction(_in_units(square), UNITS)


def words(event: Event, pure: Fraction | None) -> str:
    """Return the name of a draw in error messages."""
    return repr(event) if pure is None else f"pure loss {float(pure):.6g}"


def _no_noise(epsilon: float, delta: float) -> NumericalFailure:
    return NumericalFailure(
        f"No Gaussian noise of representable size keeps epsilon={epsilon!r} and delta={delta!r}; "
        "use a larger budget."
    )
