"""What all pure mechanisms share: their event and their guarantee."""

from __future__ import annotations

from fractions import Fraction

from quorate._validate import float_up
from quorate.core.guarantees import Guarantee, Pure, Relation
from quorate.core.noise import ambient_noise

__all__ = ["PureMechanism"]


class PureMechanism:
    """Base of pure mechanisms: frozen dataclasses with ``epsilon`` and ``relation``.

    The noise is calibrated to the exact ``epsilon``, which may be a ``Fraction``; the guarantee
    states the smallest float that is at least ``epsilon``.

    >>> from dataclasses import dataclass
    >>> from fractions import Fraction
    >>> @dataclass(frozen=True)
    ... class Coin(PureMechanism):
    ...     epsilon = Fraction(1, 3)
    ...     relation = Relation.REPLACE
    >>> Coin().guarantee.epsilon >= Fraction(1, 3)
    True
    """

    epsilon: float | Fraction
    relation: Relation

    @property
    def event(self) -> Pure:
        """The event for the accountant."""
        return Pure(float_up(self.epsilon))

    @property
    def guarantee(self) -> Guarantee:
        """The guarantee of one release."""
        return Guarantee(
            epsilon=self.event.epsilon,
            relation=self.relation,
            numerics=ambient_noise().numerics,
            events=(self.event,),
        )
