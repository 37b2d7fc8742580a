r"""The price of a chain of events: epsilon for a delta, delta for an epsilon.

There are three rules, in order of increasing computing time:

1. *Pure sum.* Pure losses add up, exactly, as rational numbers.
2. *Gaussian differential privacy* for Gaussian noise, exact under composition; all other
   events are added by basic composition.
3. *Privacy loss distributions* for all other events; see
   :mod:`quorate.core.account.loss_distributions`.

Each is an upper bound, so the smallest is used. Events are relative to their sensitivity, so both
neighbouring relations are priced alike: noise of multiplier :math:`z` hides a shift by the
sensitivity *of its own relation*. The worst pair is that noise and the same noise shifted by
:math:`1/z`, whichever neighbours cause the shift. Only ``Subsampled`` depends on the relation.

The events of a chain are counted first, so that order, nesting and notation of repetitions cannot
change its price. Proofs: ``docs/proofs/composition.md``.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache

from quorate import _validate
from quorate._validate import exact, float_down, float_up
from quorate.core.account import gaussian_dp
from quorate.core.account.costs import elementary
from quorate.core.account.loss_distributions import LossDistribution, loss_distribution
from quorate.core.account.rounding import decimal_up
from quorate.core.guarantees import (
    Approximate,
    Event,
    Gaussian,
    Nothing,
    Pure,
    Relation,
    Subsampled,
)
from quorate.exceptions import ParameterError, UnsupportedEventError

__all__ = ["delta_of", "price"]

_Stated = Pure | Approximate


def price(event: Event, *, delta: float = 0.0, relation: Relation = Relation.REPLACE) -> float:
    """Return the smallest epsilon that can be proved for ``event`` at ``delta``, rounded up.

    It is infinite if there is none: Gaussian noise has no pure epsilon.

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
    >>> from quorate.core.guarantees import Composed, Repeated
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
    """Return the smallest delta that can be proved for ``event`` at ``epsilon``, rounded up.

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
        """All events except plain Gaussian noise."""
        return {e: count for e, count in self.counts.items() if not isinstance(e, Gaussian)}

    @property
    def mu(self) -> float:
        """The parameter of all Gaussian releases together."""
        return _mu_of(self.counts)

    @property
    def is_sampled(self) -> bool:
        """Whether some noise is on secret samples.

        The (epsilon, delta) of such noise cannot be given directly.
        """
        return any(isinstance(e, Subsampled) for e in self.counts)

    @property
    def losses(self) -> Fraction:
        """The sum of the epsilons of all events that have one."""
        parts = (n * exact(e.epsilon) for e, n in self.counts.items() if isinstance(e, _Stated))
        return sum(parts, Fraction(0))

    @property
    def reserve(self) -> Fraction:
        """The part of delta that does not depend on epsilon, by the union bound."""
        parts = (n * exact(e.delta) for e, n in self.counts.items() if isinstance(e, Approximate))
        return sum(parts, Fraction(0))

    @property
    def is_gaussian(self) -> bool:
        """Whether only Gaussian noise contributes to epsilon."""
        return not self.is_sampled and self.losses == 0

    @property
    def is_mixed(self) -> bool:
        """Whether a loss distribution can be better than the simple rules.

        A single event costs what it states, so that an epsilon of 1 is not printed as 0.999999.
        """
        if not self.is_sampled and self.mu == 0:
            return sum(self.counts.values()) > 1 and not self.is_gaussian
        return not self.is_gaussian

    def simple_epsilon(self, delta: Fraction) -> float:
        """Epsilon by basic composition of the pure sum and Gaussian differential privacy."""
        left = delta - self.reserve
        if self.is_sampled or left < 0:
            return math.inf
        gaussian = gaussian_dp.epsilon_bound(float_down(left), self.mu)
        return float_up(self.losses + Fraction(gaussian)) if gaussian < math.inf else math.inf

    def simple_delta(self, epsilon: Fraction) -> float:
        """Return the delta of the same bound."""
        left = epsilon - self.losses
        if self.is_sampled or left < 0:
            return 1.0
        gaussian = 0.0
        if self.mu > 0:
            covered = left - gaussian_dp.DISCRETE_SLACK
            gaussian = gaussian_dp.delta_bound(float_down(covered), self.mu) if covered > 0 else 1.0
        return min(1.0, float_up(self.reserve + exact(gaussian)))

    def loss(self) -> LossDistribution | None:
        """Return the loss distribution, with all Gaussian releases merged into one."""
        counts = dict(sorted(self.others.items(), key=lambda item: repr(item[0])))
        mu = self.mu
        if mu == math.inf:
            return None
        if mu > 0:
            counts[Gaussian(float_down(1 / Fraction(mu)))] = 1
        return _loss(tuple(counts.items()), self.relation)


@lru_cache(maxsize=8)
def _loss(counts: tuple[tuple[Event, int], ...], relation: Relation) -> LossDistribution | None:
    """Return a cached loss distribution; a release needs its price several times."""
    return loss_distribution(dict(counts), relation=relation)


def _count(event: Event, relation: Relation) -> Counter[Event]:
    """Return the elementary events in ``event`` that have a cost."""
    counts: Counter[Event] = Counter()
    for each, count in elementary(event).items():
        match each:
            case Nothing():
                pass
            case Pure() | Approximate() | Gaussian():
                counts[each] += count
            case Subsampled():
                for sampled, times in _count_sampled(each, relation).items():
                    counts[sampled] += times * count
            case _:
                raise UnsupportedEventError(
                    f"Expected an event of quorate.core.account, got {each!r}. Describe the "
                    "mechanism by its (epsilon, delta) instead."
                )
    free = Pure(0.0), Approximate(0.0, 0.0)
    return Counter({e: count for e, count in counts.items() if count and e not in free})


def _count_sampled(event: Subsampled, relation: Relation) -> Counter[Event]:
    """Return the elementary events of Gaussian noise on one Poisson sample of the users."""
    counts = _count(event.event, relation)
    if event.rate == 0 or not counts:
        return Counter()
    mu = _mu_of(counts)
    if not all(isinstance(e, Gaussian) for e in counts) or not mu < math.inf:
        raise UnsupportedEventError(
            "Expected Subsampled to hold only Gaussian noise, got "
            f"{sorted(type(e).__name__ for e in counts)}. Describe other mechanisms, with their "
            "sample, by their (epsilon, delta)."
        )
    if event.rate < 1:
        return Counter({Subsampled(Gaussian(float_down(1 / Fraction(mu))), event.rate): 1})
    # A sample of everybody hides nobody: who is replaced moves the noise twice.
    users = 1 if relation is Relation.ADD_REMOVE else 2
    return Counter(
        {
            Gaussian(e.noise_multiplier / users): count
            for e, count in counts.items()
            if isinstance(e, Gaussian)
        }
    )


def _mu_of(counts: Mapping[Event, int]) -> float:
    """Return the parameter of Gaussian differential privacy of all plain Gaussian noise."""
    gaussian = ((e.noise_multiplier, n) for e, n in counts.items() if isinstance(e, Gaussian))
    return gaussian_dp.total_mu(gaussian)
