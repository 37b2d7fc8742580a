r"""What a secret sample of the users saves: amplification by Poisson sampling.

Each user takes part with probability :math:`q`. An event inside ``Subsampled`` is stated for a user
who comes or stays away. Here it becomes a cost under the relation that a chain is priced under: for
pure and approximate events directly, for noise through its profile
(:mod:`quorate.accounting.profiles`). Proofs: ``docs/proofs/composition.md``.

References
----------
.. [1] Balle, Barthe, Gaboardi. Privacy amplification by subsampling: tight analyses via couplings
   and divergences. NeurIPS 2018, arXiv:1807.01647v2.
"""

from __future__ import annotations

import math
from fractions import Fraction

from quorate._validate import exact, float_up
from quorate.exceptions import UnsupportedEventError
from quorate.guarantees import Approximate, Event, Gaussian, Laplace, Pure, Relation

__all__ = ["amplified", "amplified_epsilon", "doubled"]

_ROUNDING = 1 + Fraction(1, 2**48)
_LARGEST = 700.0


def amplified_epsilon(epsilon: float, *, rate: float, relation: Relation) -> float:
    r"""Return the pure cost of an ``epsilon``-DP mechanism on a sample, rounded up.

    Under add/remove :math:`\log(1+q(e^\varepsilon-1))`. Under replacement the old record can raise
    a probability to :math:`1-q+qe^{\varepsilon}` and the new one lower it to
    :math:`1-q+qe^{-\varepsilon}`, relative to nobody; the cost is the log of their ratio.

    >>> round(amplified_epsilon(1.0, rate=0.1, relation=Relation.ADD_REMOVE), 6)
    0.158565
    >>> round(amplified_epsilon(1.0, rate=0.1, relation=Relation.REPLACE), 6)
    0.223863
    """
    whole = exact(epsilon)
    if not epsilon < _LARGEST:
        return float_up(whole if relation is Relation.ADD_REMOVE else 2 * whole)
    raised = exact(math.log1p(rate * math.expm1(epsilon))) * _ROUNDING
    up = min(whole, raised)
    match relation:
        case Relation.ADD_REMOVE:
            return float_up(up)
        case Relation.REPLACE:
            return float_up(up + min(whole, _lowered(epsilon, rate)))


def _lowered(epsilon: float, rate: float) -> Fraction:
    """Return -log(1 - rate + rate exp(-epsilon)), rounded up, without cancellation."""
    missing = -rate * math.expm1(-epsilon)
    if missing < 0.5:
        return exact(-math.log1p(-missing)) * _ROUNDING
    return exact(-math.log((1 - rate) + rate * math.exp(-epsilon))) * _ROUNDING


def amplified(epsilon: float, delta: float, *, rate: float, relation: Relation) -> Event:
    r"""Return the cost of an (``epsilon``, ``delta``)-DP mechanism on a sample.

    Under add/remove :math:`(\varepsilon',q\delta)` [1]_; under replacement a group of two of it,
    :math:`(2\varepsilon',(1+e^{\varepsilon'})q\delta)`.

    >>> amplified(1.0, 0.0, rate=0.1, relation=Relation.ADD_REMOVE)
    Pure(epsilon=0.15856...)
    """
    if delta == 0:
        return Pure(amplified_epsilon(epsilon, rate=rate, relation=relation))
    raised = amplified_epsilon(epsilon, rate=rate, relation=Relation.ADD_REMOVE)
    reduced = Approximate(raised, float_up(exact(rate) * exact(delta)))
    return reduced if relation is Relation.ADD_REMOVE else doubled(reduced)


def doubled(event: Event) -> Event:
    r"""Return what ``event`` means for two users instead of one, or for one replaced.

    >>> doubled(Gaussian(4.0))
    Gaussian(noise_multiplier=2.0)
    """
    match event:
        case Gaussian(noise_multiplier=multiplier):
            return Gaussian(multiplier / 2)
        case Laplace(noise_multiplier=multiplier):
            return Laplace(multiplier / 2)
        case Pure(epsilon=epsilon):
            return Pure(2 * epsilon)
        case Approximate(epsilon=epsilon, delta=delta) if epsilon < _LARGEST:
            both = float_up((1 + exact(math.exp(epsilon)) * _ROUNDING) * exact(delta))
            if both < 1:
                return Approximate(2 * epsilon, both)
    raise UnsupportedEventError(
        f"No rule prices {event!r} for a replaced user. Price the chain under add/remove, or give "
        "the sampled mechanism a smaller delta."
    )
