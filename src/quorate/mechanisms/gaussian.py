"""Event and guarantee of every mechanism with Gaussian noise."""

from __future__ import annotations

from quorate.core.account.compose import price
from quorate.core.guarantees import Event, Guarantee, Relation
from quorate.core.noise import ambient_noise

__all__ = ["GaussianMechanism"]


class GaussianMechanism:
    """Base of sums and searches with Gaussian noise: the guarantee at a given delta.

    >>> from quorate.mechanisms.sums import NoisySearch
    >>> search = NoisySearch(thresholds=[1.0, 2.0], target=5.0, noise_multiplier=4.0)
    >>> search.guarantee.holds, search.guarantee_at(1e-6).holds
    (False, True)
    """

    relation: Relation
    delta: float

    @property
    def event(self) -> Event:
        """The event for the accountant."""
        raise NotImplementedError

    @property
    def guarantee(self) -> Guarantee:
        """The guarantee of one release at ``delta``."""
        return self.guarantee_at(self.delta)

    def guarantee_at(self, delta: float) -> Guarantee:
        """Return the guarantee of one release at another delta."""
        return Guarantee(
            epsilon=price(self.event, delta=delta, relation=self.relation),
            delta=delta,
            relation=self.relation,
            numerics=ambient_noise().numerics,
            events=(self.event,),
        )
