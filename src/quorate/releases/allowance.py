"""A budget of Gaussian differential privacy that is spent step by step.

Steps may be chosen after seeing what earlier steps released: as long as the squares of their
parameters never add up to more than the square of the whole, the run costs no more than one
Gaussian mechanism with the whole parameter, whichever way it went. [1]_ Hence an
:class:`Allowance` has one price, and so has every branch of an algorithm that stays inside it.

References
----------
.. [1] Smith, Thakurta. Fully adaptive composition for Gaussian differential privacy.
   arXiv:2210.17520.
"""

from __future__ import annotations

import math

from quorate import _validate
from quorate.accounting.events import Gaussian
from quorate.exceptions import NumericalFailure

__all__ = ["Allowance"]

# Far more than the rounding errors of the few dozen additions and roots of one run.
_ROUNDING = 1e-12


class Allowance:
    """What is left of a Gaussian budget ``mu``; asking for more is refused.

    Parameters
    ----------
    mu : float
        Parameter of Gaussian differential privacy of the whole run.

    Examples
    --------
    >>> allowance = Allowance(0.5)
    >>> round(allowance.take(0.16), 3)
    2.5
    >>> round(allowance.left, 6)
    0.09
    >>> allowance.take(0.2)
    Traceback (most recent call last):
        ...
    quorate.exceptions.NumericalFailure: A step asked for 0.2 of a squared budget of which 0.09 is
    left: no guarantee is claimed. Please report this.
    """

    def __init__(self, mu: float) -> None:
        _validate.positive(mu=mu)
        self.mu = float(mu)
        self.left = self.mu**2 * (1.0 - _ROUNDING)

    @property
    def event(self) -> Gaussian:
        """What the whole run costs, however much of it was used."""
        return Gaussian(math.nextafter(1.0 / self.mu, math.inf))

    def take(self, square: float) -> float:
        """Spend ``square`` (the squared parameter of a step); return its noise multiplier."""
        if not 0 < square <= self.left * (1.0 + _ROUNDING / 100):
            raise NumericalFailure(
                f"A step asked for {square:.6g} of a squared budget of which {self.left:.6g} is "
                "left: no guarantee is claimed. Please report this."
            )
        self.left = max(0.0, self.left - square)
        return (1.0 + _ROUNDING / 100) / math.sqrt(square)
