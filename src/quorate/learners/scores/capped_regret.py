"""Sum of the users' regrets, each up to a cap.

A regret is how many more mistakes a hypothesis makes than the user's own best one.

It minimises the total error of all users, so they may differ. If they do, :class:`OwnBest` and
:class:`Duels` find what most users would choose for themselves, which may have a larger total
error. Subtracting each user's fewest mistakes removes the errors that no hypothesis avoids. The cap
(half of the records plus one) nearly doubles the weight of the small differences that matter.
Beyond the cap further mistakes of a user are ignored, so with very many users no cap is used
(``share=1``): see :mod:`quorate.learners.automatic`.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from quorate.exceptions import ParameterError
from quorate.learners.scores.base import AdditiveScore, Integers

__all__ = ["FULL_REGRET", "CappedRegret"]

FULL_REGRET = 1024
"""The largest term of one user, in integer steps fine enough for any number of records."""

# machine: times this and a number of records that fits into memory, a regret stays below 2^63.
_FINEST = 100


@dataclass(frozen=True, kw_only=True)
class CappedRegret(AdditiveScore):
    """Loss: the sum over users of 1024 min(1, (mistakes - own fewest) / cap), rounded down.

    The cap of a user with m records is min(m, ``share`` m + 1), so few records are hardly capped.

    Privacy
    -------
    sensitivity : 1024, under both relations; one more user only adds
    proof : A user's term is an integer in {0, ..., 1024}, computed by integer division from that
        user's own mistakes, fewest mistakes and number of records; the class and ``share`` are
        public. Replacing a user exchanges one such term, adding a user adds one that is not
        negative.

    Complexity
    ----------
    Time O(n |H|) and memory O(|H|) over a finite class; O(N) along a line.

    Parameters
    ----------
    share : Fraction, default=1/2
        The cap as a share of a user's records; 1 means no cap.

    Examples
    --------
    >>> mistakes, held = np.array([[2, 1, 1], [0, 3, 0]]), np.array([4, 4])
    >>> CappedRegret().judged(mistakes, held).tolist()
    [[341, 0, 0], [0, 1024, 0]]
    >>> CappedRegret(share=Fraction(1)).judged(mistakes, held).tolist()
    [[256, 0, 0], [0, 768, 0]]
    """

    share: Fraction = Fraction(1, 2)
    name = "capped_regret"
    beyond_own_best = True

    def __post_init__(self) -> None:
        fine = isinstance(self.share, Fraction) and self.share.denominator <= _FINEST
        if not (fine and 0 <= self.share <= 1):
            raise ParameterError(
                f"Expected a Fraction from 0 to 1 in at most {_FINEST} parts, got "
                f"share={self.share!r}."
            )

    @property
    def bound(self) -> int:
        """The largest capped regret."""
        return FULL_REGRET

    def contribution(self, mistakes: NDArray[np.integer], held: Integers) -> Integers:
        """Return the mistakes beyond the user's own fewest, as a share of the cap."""
        return capped(mistakes, held, share=self.share)


def capped(
    regret: NDArray[np.integer], held: Integers, *, share: Fraction = Fraction(1, 2)
) -> Integers:
    """Return 1024 min(1, regret / min(held, share held + 1)), rounded down; 0 without records.

    >>> capped(np.array([0, 1, 1, 5, -1]), np.array([0, 1, 3, 7, 2]))
    array([   0, 1024,  409, 1024,    0])
    """
    a, b = share.numerator, share.denominator
    # b times the cap, so that everything stays an integer.
    cap = np.maximum(np.minimum(b * held, a * held + b), 1)
    steps = b * FULL_REGRET * regret.astype(np.int64) // cap
    return np.clip(steps, 0, FULL_REGRET)
