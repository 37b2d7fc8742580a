"""One user's contribution to a comparison (*duel*) of two densities, and its sensitivity."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from quorate import _validate
from quorate.core.guarantees import Relation
from quorate.core.moves import Limit
from quorate.exceptions import ParameterError

__all__ = ["WEIGHT_UNIT", "Clip", "Votes"]

Integers = NDArray[np.int64]

WEIGHT_UNIT = 2**12
"""A user's own scale 1/sqrt(m) is rounded to multiples of its reciprocal."""

VOTE_UNIT = 2**20
"""Log likelihoods of a record are rounded to multiples of its reciprocal."""


@dataclass(frozen=True)
class Clip:
    r"""The clipping of a user's contribution to a duel.

    Parameters
    ----------
    tau : float
        A user's contribution is clipped to [-tau, tau].
    own_scale : bool, default=True
        Whether the contribution is first divided by the square root of the user's number of
        records, which is its standard deviation by chance. Then a tau of about 1/2 suits all users,
        and no public number of records is needed. ``False`` clips the count itself, as published.
    records : int or None, default=None
        The largest number of records that count per user; further records are ignored. It helps if
        it is smaller than the clip tau.

    Examples
    --------
    >>> Clip(0.5).tau
    0.5
    >>> Clip.published(64, alpha=0.05)
    Clip(tau=17.04..., own_scale=False, records=None)
    """

    tau: float
    own_scale: bool = True
    records: int | None = None

    def __post_init__(self) -> None:
        _validate.positive(tau=self.tau)
        _validate.one_of((True, False), own_scale=self.own_scale)
        if self.records is not None:
            _validate.positive_integer(records=self.records)
        highest = 2**8 if self.own_scale else 2**20
        if not 2**-10 <= self.tau <= highest:
            raise ParameterError(f"Expected tau from 2**-10 to {highest}, got tau={self.tau!r}.")

    @classmethod
    def published(cls, m: int, *, alpha: float) -> Clip:
        r"""Return the order of Theorem 37's clip: :math:`\alpha m + \sqrt{m \ln(1/\alpha)}`."""
        _validate.positive_integer(m=m)
        _validate.probability(alpha=alpha)
        return cls(alpha * m + math.sqrt(m * math.log(1 / alpha)), own_scale=False)

    @classmethod
    def none(cls, m: int) -> Clip:
        """Return the clip of group privacy: at most m records of a user, all of which count."""
        return cls(float(m), own_scale=False, records=m)

    def weights(self, held: Integers) -> Integers:
        """Return the integer weight of each user's contribution, given the number of records."""
        if not self.own_scale:
            return np.ones(held.shape, dtype=np.int64)
        scaled = np.rint(WEIGHT_UNIT / np.sqrt(np.maximum(held, 1)))
        return np.maximum(scaled, 1).astype(np.int64)

    def limit(self, unit: int) -> int:
        """Return the largest absolute contribution, for masses in multiples of 1 / unit."""
        return math.floor(self.tau * unit * (WEIGHT_UNIT if self.own_scale else 1))

    def width(self, unit: int) -> int:
        """Return the largest difference between two users' contributions to the same duel.

        Before clipping a contribution lies between -m (1 - P(W)) and m P(W), an interval of length
        m.
        """
        width = 2 * self.limit(unit)
        return width if self.records is None else min(width, self._widest(self.records) * unit)

    def _widest(self, records: int) -> int:
        """Return the largest product of a user's number of records and weight."""
        if not self.own_scale:
            return records
        if records <= 2**16:
            counts = np.arange(1, records + 1)
            return int((counts * self.weights(counts)).max())
        # m w <= sqrt(m) / unit of w + m / 2, as w is rounded
        return WEIGHT_UNIT * (math.isqrt(records) + 1) + records

    def limits(self, unit: int, promised: Integers) -> tuple[Limit, Limit]:
        """Return the smallest and the largest contribution, over all duels or for each.

        ``promised`` is the mass of each duel's set, which determines the smallest and the largest
        difference for m records.

        >>> Clip.none(2).limits(4, np.array([1, 3]))
        (array([-6, -2]), array([2, 6]))
        """
        limit = self.limit(unit)
        if self.records is None:
            return -limit, limit
        # More than ``limit`` is cut off anyway; so much fits into 64 bits.
        widest = min(self._widest(self.records), limit)
        low, high = widest * (promised - unit), widest * promised
        return np.maximum(low, -limit), np.minimum(high, limit)

    def sensitivity(self, unit: int, relation: Relation) -> int:
        """Return how far one user can move the worst duel of any member."""
        width = self.width(unit)
        return width if relation is Relation.REPLACE else min(width, self.limit(unit))


@dataclass(frozen=True)
class Votes:
    r"""One vote per user and duel: for the member under which the user's records are likelier.

    Each member P is mixed with the mean Q of the family, :math:`(1-\gamma)P + \gamma Q`, so that no
    single record can rule out a member. A vote is 1, 0 or -1 whatever the records are. So it moves
    a duel by at most 2 if the user is replaced and by 1 if one is added; no clipping is needed.
    With tens of records per user it is more accurate than a clipped Scheffe count, and about as
    accurate as maximum likelihood without privacy. If the true distribution may be far from every
    member, or users have only a few records, use :class:`Clip`, for which the theorem is proved.

    Parameters
    ----------
    mixed : float, default=0.2
        The share gamma of the mean of the family.

    Examples
    --------
    >>> [Votes().sensitivity(2**20, relation) for relation in Relation]
    [2, 1]
    """

    mixed: float = 0.2

    def __post_init__(self) -> None:
        _validate.probability(mixed=self.mixed)

    def limits(self, unit: int, promised: Integers) -> tuple[Limit, Limit]:
        """Return the smallest and the largest vote in any duel."""
        del unit, promised
        return -1, 1

    def sensitivity(self, unit: int, relation: Relation) -> int:
        """Return how far one user can move the worst duel of any member."""
        del unit
        return 2 if relation is Relation.REPLACE else 1

    def marks(self, heights: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the log likelihood ratios of all members to the best one, in whole steps.

        ``heights`` are log densities, a column per member. Every row is computed separately; a row
        with NaN, or with no density under any member, counts the same for all members.

        >>> Votes().marks(np.log([[0.5, 0.5], [0.9, 0.3]])).round(-4)
        array([[      0.,       0.],
               [ -70000., -960000.]])
        """
        with np.errstate(all="ignore"):
            shares = np.exp(heights - heights.max(axis=1, keepdims=True))
            shares /= heights.shape[1]
            means = np.vecdot(shares, np.ones(shares.shape[1]))
            shares *= heights.shape[1] * (1.0 - self.mixed)
            logs = np.log(shares + self.mixed * means[:, None])
        return np.asarray(np.rint(VOTE_UNIT * np.where(np.isfinite(logs), logs, 0.0)))
