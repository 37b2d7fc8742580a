r"""The price of a chain of events: epsilon for a delta, delta for an epsilon.

Three rules, in the order of what they cost to compute:

1. *Pure sum.* Pure losses add up, exactly, as rational numbers.
2. *Gaussian differential privacy* for Gaussian noise, exact under composition; what else there
   is, is added by basic composition.
3. *Privacy loss distributions* for the rest; see :mod:`quorate.accounting.loss_distributions`.

Each is an upper bound, so the smallest wins. Events have their sensitivity divided out, hence
both neighbouring relations are priced alike: noise of multiplier :math:`z` hides a shift by the
sensitivity *of its own relation*, and the worst pair is that noise against itself shifted by
:math:`1/z`, whichever neighbours cause the shift. Only ``Subsampled`` depends on the relation.

Everything a chain contains is first counted, so that order, nesting and the way of writing a
repetition cannot change its price. Proofs: ``docs/proofs/composition.md``.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import Literal

from quorate import _validate
from quorate._validate import exact, float_down, float_up
from quorate.accounting import gaussian_dp
from quorate.accounting.loss_distributions import LossDistribution, loss_distribution
from quorate.accounting.rounding import decimal_up
from quorate.accounting.sampling import amplified, amplified_epsilon, doubled
from quorate.exceptions import ParameterError, UnsupportedEventError
from quorate.guarantees import (
    Approximate,
    Composed,
    Event,
    Gaussian,
    Guarantee,
    Laplace,
    Nothing,
    Numerics,
    Pure,
    Relation,
    Repeated,
    Subsampled,
    Trust,
)

__all__ = ["delta_of", "guarantee", "price"]


def price(event: Event, *, delta: float = 0.0, relation: Relation = Relation.REPLACE) -> float:
    """Return the smallest epsilon we can prove for ``event`` at ``delta``, rounded up.

    Infinite if there is none: Gaussian noise has no pure epsilon.

    Parameters
    ----------
    event : Event
    delta : float, default=0.0
    relation : Relation, default=Relation.REPLACE

    Raises
    ------
    UnsupportedEventError
        No rule prices the event.
    NumericalFailure
        A computation lost its precision; no guarantee is claimed.

    Examples
    --------
    >>> price(Composed((Pure(0.5), Pure(0.5))))
    1.0
    >>> price(Gaussian(4.2247), delta=1e-6)
    0.999994614
    >>> price(Gaussian(4.2247))
    inf
    >>> price(Repeated(Pure(0.1), 100), delta=1e-6) < 5
    True
    """
    _validate.delta(delta=delta)
    chain = _Chain.of(event, relation)
    simple = chain.simple_epsilon(exact(delta))
    if delta == 0 or not chain.is_mixed or delta < chain.reserve:
        return simple
    loss = chain.loss()
    numeric = math.inf if loss is None else loss.epsilon(delta)
    if numeric == math.inf:
        return simple
    return min(simple, decimal_up(Fraction(numeric) + gaussian_dp.DISCRETE_SLACK))


def delta_of(event: Event, *, epsilon: float, relation: Relation = Relation.REPLACE) -> float:
    """Return the smallest delta we can prove for ``event`` at ``epsilon``, rounded up.

    Examples
    --------
    >>> delta_of(Pure(1.0), epsilon=1.0)
    0.0
    >>> 0.9e-6 < delta_of(Gaussian(4.2247), epsilon=1.0) < 1.1e-6
    True
    """
    _validate.non_negative(epsilon=epsilon)
    chain = _Chain.of(event, relation)
    simple = chain.simple_delta(exact(epsilon))
    if simple == 0 or chain.is_gaussian:
        return simple
    loss = chain.loss()
    return simple if loss is None else min(simple, loss.delta(epsilon))


def guarantee(
    event: Event,
    *,
    delta: float = 0.0,
    unit: str = "user",
    relation: Relation = Relation.REPLACE,
    trust: Trust = Trust.CENTRAL,
    numerics: Numerics = Numerics.EXACT,
) -> Guarantee:
    """Return what ``event`` promises at ``delta``.

    Examples
    --------
    >>> guarantee(Pure(0.5), unit="patient").epsilon
    0.5
    >>> guarantee(Gaussian(3.0)).holds
    False
    """
    return Guarantee(
        epsilon=price(event, delta=delta, relation=relation),
        delta=float(delta),
        unit=unit,
        relation=relation,
        trust=trust,
        numerics=numerics,
        events=(event,),
    )


@dataclass(frozen=True)
class _Chain:
    """A flat chain: every elementary event with its count."""

    counts: Mapping[Event, int]
    relation: Relation

    @classmethod
    def of(cls, event: Event, relation: Relation) -> _Chain:
        if not isinstance(relation, Relation):
            raise ParameterError(f"Expected relation to be a Relation, got relation={relation!r}.")
        return cls(_count(event, relation), relation)

    @property
    def others(self) -> dict[Event, int]:
        """All but plain Gaussian noise."""
        return {e: count for e, count in self.counts.items() if not isinstance(e, Gaussian)}

    @property
    def mu(self) -> float:
        """The parameter of all Gaussian releases together."""
        return gaussian_dp.total_mu(
            (e.noise_multiplier, count)
            for e, count in self.counts.items()
            if isinstance(e, Gaussian)
        )

    @property
    def reserve(self) -> Fraction:
        """The part of delta that does not depend on epsilon, by the union bound."""
        return self._basic_sum(1)

    @property
    def is_gaussian(self) -> bool:
        """Whether basic composition adds no epsilon to Gaussian differential privacy."""
        return all(map(_has_basic, self.others)) and self._basic_sum(0) == 0

    @property
    def is_mixed(self) -> bool:
        """Whether a loss distribution can improve on the simple rules.

        One event alone costs what it says, so that a promise of 1 is not printed as 0.999999.
        """
        if all(map(_has_basic, self.others)) and self.mu == 0:
            return sum(self.counts.values()) > 1 and not self.is_gaussian
        return not self.is_gaussian

    def simple_epsilon(self, delta: Fraction) -> float:
        """Pure sum plus Gaussian differential privacy, by basic composition."""
        if not all(map(_has_basic, self.others)):
            return math.inf
        left = delta - self.reserve
        if left < 0:
            return math.inf
        pure = self._basic_sum(0)
        mu = self.mu
        if mu == 0:
            return float_up(pure)
        gaussian = gaussian_dp.epsilon_bound(float_down(left), mu)
        return float_up(pure + Fraction(gaussian)) if gaussian < math.inf else math.inf

    def simple_delta(self, epsilon: Fraction) -> float:
        """Solve the same bound for delta."""
        if not all(map(_has_basic, self.others)):
            return 1.0
        left = epsilon - self._basic_sum(0)
        if left < 0:
            return 1.0
        mu = self.mu
        gaussian = 0.0
        if mu > 0:
            covered = left - gaussian_dp.DISCRETE_SLACK
            gaussian = gaussian_dp.delta_bound(float_down(covered), mu) if covered > 0 else 1.0
        return min(1.0, float_up(self.reserve + exact(gaussian)))

    def _basic_sum(self, which: Literal[0, 1]) -> Fraction:
        """Sum up the epsilons (0) or the deltas (1) of all events that have them."""
        parts = (
            count * exact(_basic(e, self.relation)[which])
            for e, count in self.others.items()
            if _has_basic(e)
        )
        return sum(parts, Fraction(0))

    def loss(self) -> LossDistribution | None:
        """Apply the numerical rule, with all Gaussian releases merged into one."""
        counts = dict(sorted(self.others.items(), key=lambda item: repr(item[0])))
        mu = self.mu
        if mu == math.inf:
            return None
        if mu > 0:
            counts[Gaussian(float_down(1 / Fraction(mu)))] = 1
        return _loss(tuple(counts.items()), self.relation)


@lru_cache(maxsize=8)
def _loss(counts: tuple[tuple[Event, int], ...], relation: Relation) -> LossDistribution | None:
    """Remember the last few: a release is priced for its guarantee, its ledger and its report."""
    return loss_distribution(dict(counts), relation=relation)


def _count(event: Event, relation: Relation) -> Counter[Event]:
    """Return the elementary events in ``event``."""
    counts: Counter[Event] = Counter()
    match event:
        case Nothing():
            pass
        case Pure() | Approximate() | Laplace() | Gaussian():
            counts[event] += 1
        case Composed(events=parts):
            for part in parts:
                counts.update(_count(part, relation))
        case Repeated(event=part, count=times):
            for elementary, count in _count(part, relation).items():
                counts[elementary] += count * times
        case Subsampled(event=part, rate=rate):
            # What happens inside a sample is stated for a user who comes or stays away.
            counts.update(_count_sampled(_count(part, Relation.ADD_REMOVE), rate, relation))
        case _:
            raise UnsupportedEventError(
                f"Expected an event of quorate.accounting, got {event!r}. Describe the "
                "mechanism by its (epsilon, delta) instead."
            )
    return Counter({e: count for e, count in counts.items() if count and not _is_free(e)})


def _is_free(event: Event) -> bool:
    match event:
        case Pure(epsilon=epsilon):
            return epsilon == 0
        case Approximate(epsilon=epsilon, delta=delta):
            return epsilon == 0 and delta == 0
        case _:
            return False


def _count_sampled(counts: Counter[Event], rate: float, relation: Relation) -> Counter[Event]:
    """Return the elementary events of a chain that runs on one Poisson sample of the users."""
    if rate == 0 or not counts:
        return Counter()
    if counts.total() == 1 and isinstance(event := next(iter(counts)), Subsampled):
        inner: Counter[Event] = Counter({event.event: 1})
        return _count_sampled(inner, float_up(exact(rate) * exact(event.rate)), relation)
    if rate == 1:
        if relation is Relation.ADD_REMOVE:
            return counts
        return Counter({doubled(e): count for e, count in counts.items()})
    if all(isinstance(e, Gaussian) for e in counts):
        mu = _Chain(counts, relation).mu
        if mu < math.inf:
            return Counter({Subsampled(Gaussian(float_down(1 / Fraction(mu))), rate): 1})
    elif counts.total() == 1 and isinstance(event := next(iter(counts)), Laplace):
        return Counter({Subsampled(event, rate): 1})
    elif all(isinstance(e, Pure | Approximate | Laplace) for e in counts):
        parts = [(count, *_basic(e, relation)) for e, count in counts.items()]
        epsilon = float_up(sum(count * exact(part) for count, part, _ in parts))
        delta = float_up(sum(count * exact(part) for count, _, part in parts))
        if epsilon < math.inf and delta < 1:
            return Counter({amplified(epsilon, delta, rate=rate, relation=relation): 1})
    raise UnsupportedEventError(
        "Expected Subsampled to hold one event, only Gaussian noise, or only pure and approximate "
        f"events of a total delta below 1, got {sorted(type(e).__name__ for e in counts)}. Sample "
        "anew for each of them, or describe them together by one (epsilon, delta)."
    )


def _has_basic(event: Event) -> bool:
    """Whether the event alone is (epsilon, delta)-DP for a delta that is fixed in advance."""
    return not (isinstance(event, Subsampled) and isinstance(event.event, Gaussian))


def _basic(event: Event, relation: Relation) -> tuple[float, float]:
    """Return the (epsilon, delta) of an elementary event that has one."""
    match event:
        case Pure(epsilon=epsilon):
            return epsilon, 0.0
        case Approximate(epsilon=epsilon, delta=delta):
            return epsilon, delta
        case Laplace(noise_multiplier=multiplier):
            return float_up(1 / Fraction(multiplier)), 0.0
        case Subsampled(event=Laplace() as inner, rate=rate):
            epsilon, _ = _basic(inner, relation)
            return amplified_epsilon(epsilon, rate=rate, relation=relation), 0.0
        case _:
            raise UnsupportedEventError(f"No (epsilon, delta) is known for {event!r} alone.")
