"""What all mechanisms with a pure guarantee share: their price and their promise."""

from __future__ import annotations

from fractions import Fraction

from quorate._validate import float_up
from quorate.core.guarantees import Guarantee, Pure, Relation
from quorate.core.noise import ambient_noise

__all__ = ["PureMechanism"]


class PureMechanism:
    """A release that is epsilon-DP: the base class of frozen dataclasses with these two fields.

    The noise follows the exact ``epsilon``, which may be a ``Fraction``; the guarantee states the
    smallest float that is not below it.

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
        """What the accountant prices."""
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
