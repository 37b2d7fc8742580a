"""A short interval that contains the users' values, found privately (U1: Levy et al., Alg. 6)."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from quorate import _validate
from quorate.core.account.account import Account
from quorate.core.guarantees import Guarantee, Pure, Relation
from quorate.core.sealed import SealedRows, check_sealed
from quorate.exceptions import ParameterError
from quorate.mechanisms.choices.quantiles import PrivateQuantile

__all__ = ["CONSTANTS", "PrivateRange"]

CONSTANTS = ("calibrated", "published")


@dataclass(frozen=True, kw_only=True)
class PrivateRange:
    r"""Release an interval of a given width around the users' values (U1).

    The public range is divided into bins of width :math:`2\tau`, and each user is counted in the
    bin of their value. A bin is chosen with probability proportional to :math:`e^{-\varepsilon
    c/2}`, where :math:`c` is the larger of the numbers of users to its left and to its right.

    Privacy
    -------
    guarantee : :math:`\varepsilon`-DP, with :math:`\varepsilon` = ``epsilon``
    neighbours : ``relation``: replace all records of one user, or add or remove all records of one
        user
    trust : central
    public : ``lower``, ``upper``, ``radius``; under ``Relation.REPLACE`` the number of users
    numerics : exact
    proof : A user's bin is a function of that user alone. With quantile 1/2 the loss of
        :class:`~quorate.mechanisms.choices.quantiles.PrivateQuantile` is :math:`2c - n` and its
        sensitivity 2, so its weights are proportional to :math:`e^{-\varepsilon c/2}`. This is the
        published mechanism, and its proof. A user without a value (NaN) is left out, and :math:`n`
        counts the other users. So replacing a value by none changes :math:`c` by at most 1 and
        :math:`2c - n` by 1.

    Utility
    -------
    If all values lie within ``radius`` of a point and in the range, the released interval contains
    all of them except with probability at most ``failure(n_users)`` = :math:`l e^{-\varepsilon
    n/4}` for :math:`l` bins: a bin outside the users' bins has all of them on one side, a loss of
    :math:`n`, and some bin has at most :math:`n/2`. This needs the calibrated half-width of
    :math:`3\tau`. The published :math:`2\tau` can clip users: a value may lie :math:`3\tau` from
    the middle of the bin at the other end of its cluster.

    Complexity
    ----------
    Time :math:`O(n \log n)`, whatever the number of bins.

    Parameters
    ----------
    lower, upper : float
        Public range of the values.
    radius : float
        :math:`\tau`: how far users lie from their centre.
    epsilon : float
    relation : Relation, default=Relation.REPLACE
    constants : {"calibrated", "published"}, default="calibrated"
        Half-width :math:`3\tau`, or :math:`2\tau` as published.

    References
    ----------
    .. [1] Levy, Sun, Amin, Kale, Kulesza, Mohri, Suresh. Learning with user-level privacy.
       NeurIPS 2021, arXiv:2102.11845, Algorithm 6.
    .. [2] Feldman, Steinke. Generalization for adaptively-chosen estimators via stable median.
       COLT 2017, Theorem 3.1.

    Examples
    --------
    >>> from quorate.core.by_hand import rows_by_hand
    >>> search = PrivateRange(lower=-1e6, upper=1e6, radius=1.0, epsilon=1.0)
    >>> low, high = search.release(rows_by_hand(np.linspace(41.2, 42.8, 200)))
    >>> low <= 41.2 and 42.8 <= high, round(high - low, 6)
    (True, 6.0)
    """

    lower: float
    upper: float
    radius: float
    epsilon: float | Fraction
    relation: Relation = Relation.REPLACE
    constants: str = "calibrated"

    def __post_init__(self) -> None:
        _validate.ordered(self.lower, self.upper, name="range")
        _validate.positive(radius=self.radius)
        _validate.one_of(CONSTANTS, constants=self.constants)
        if not self.bins < 2**50:
            raise ParameterError(
                f"Expected a radius of which fewer than 2^50 fit into the range, got "
                f"radius={self.radius!r}."
            )
        _ = self.choice

    @property
    def bins(self) -> int:
        """Number of bins."""
        return max(1, math.ceil((self.upper - self.lower) / (2.0 * self.radius)))

    @property
    def half_width(self) -> float:
        """Half of the width of the released interval."""
        return (3.0 if self.constants == "calibrated" else 2.0) * self.radius

    @property
    def choice(self) -> PrivateQuantile:
        """The underlying mechanism: a median of bin numbers."""
        return PrivateQuantile(
            domain=(0, self.bins - 1),
            epsilon=self.epsilon,
            relation=self.relation,
        )

    @property
    def event(self) -> Pure:
        """The event for the accountant."""
        return self.choice.event

    @property
    def guarantee(self) -> Guarantee:
        """The guarantee of one call of :meth:`release`."""
        return self.choice.guarantee

    def bin_of(self, values: NDArray[np.float64]) -> NDArray[np.int64]:
        """Return the bin number of each value; NaN for NaN."""
        with np.errstate(all="ignore"):
            numbers = np.floor((np.asarray(values, np.float64) - self.lower) / (2 * self.radius))
        numbers = numbers[~np.isnan(numbers)]
        last = float(self.bins - 1)
        return np.minimum(np.clip(numbers, 0.0, last).astype(np.int64), self.bins - 1)

    def release(self, values: SealedRows, *, account: Account | None = None) -> tuple[float, float]:
        """Return the ends of an interval around most of one value per user."""
        check_sealed(values, SealedRows)
        bins = values.present().map(self.bin_of)
        place = self.choice.release(bins, account=account)
        middle = self.lower + (2 * place + 1) * self.radius
        return middle - self.half_width, middle + self.half_width

    def failure(self, n_users: int) -> float:
        """Bound the probability of missing values that lie within ``radius`` of a point."""
        _validate.positive_integer(n_users=n_users)
        return min(1.0, self.bins * math.exp(-float(self.epsilon) * n_users / 4.0))

    def error_bound(self, beta: float) -> float:
        """Bound by how many users the bin misses the median, except with probability ``beta``."""
        return self.choice.error_bound(beta)
