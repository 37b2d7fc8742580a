"""Noisy tallies: how many users have each of several labels, with one label per user."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import ArrayLike, NDArray

from quorate import _validate
from quorate.core.account.account import Account
from quorate.core.by_hand import rows_by_hand
from quorate.core.guarantees import Relation
from quorate.core.sealed import Sealed, check_sealed
from quorate.exceptions import ParameterError, SchemaError
from quorate.mechanisms.laplace import LaplaceNoise, laplace_deviation, laplace_quantile
from quorate.mechanisms.stated_error import chance_of_each
from quorate.mechanisms.sums import LARGEST_NOISE

__all__ = ["NoisyTally"]


@dataclass(frozen=True, kw_only=True)
class NoisyTally(LaplaceNoise):
    r"""Release how many users have each of some public labels.

    Every user has one label or none; each count gets discrete Laplace noise.

    Privacy
    -------
    guarantee : :math:`\varepsilon`-DP, with :math:`\varepsilon` = ``epsilon``
    neighbours : ``relation``: replace all records of one user, or add or remove all records of one
        user
    trust : central
    public : ``size``, ``epsilon``, ``relation``
    numerics : exact
    proof : A user has one label. A user who joins or leaves moves one count by 1. A replaced user
        leaves one count and enters another, so the counts move by 2 in the L1 norm
        (``sensitivity``). The noise has mass proportional to :math:`e^{-|z|/s}` with :math:`s \ge`
        ``sensitivity``:math:`/\varepsilon`, so the ratio of the two probabilities of any output is
        at most :math:`e^\varepsilon`. [1]_

    Utility
    -------
    With probability at least :math:`1-\beta` every count is within ``error_bound(beta)``.

    Complexity
    ----------
    Time :math:`O(n)`, one draw per label.

    Parameters
    ----------
    size : int
        Number of labels, which are 0, 1, ...; other values are no label.
    epsilon : float
    relation : Relation, default=Relation.REPLACE

    References
    ----------
    .. [1] Ghosh, Roughgarden, Sundararajan. Universally utility-maximizing privacy mechanisms.
       SIAM J. Comput. 41(6), 2012.

    Examples
    --------
    >>> tally = NoisyTally(size=3, epsilon=1.0)
    >>> found = tally.release_values(np.repeat([0, 2, 7], [500, 300, 9]))
    >>> bool(np.abs(found - [500, 0, 300]).max() < 60), tally.error_bound(0.05)
    (True, 8)
    """

    size: int
    epsilon: float | Fraction
    relation: Relation = Relation.REPLACE

    def __post_init__(self) -> None:
        _validate.positive_integer(size=self.size)
        _validate.positive(epsilon=self.epsilon)
        _validate.one_of(tuple(Relation), relation=self.relation)
        if not self.scale <= LARGEST_NOISE:
            raise ParameterError(f"Expected epsilon >= 2^-54, got epsilon={self.epsilon!r}.")

    @property
    def sensitivity(self) -> int:
        """The largest change of the counts by one user, in the L1 norm."""
        return 2 if self.relation is Relation.REPLACE else 1

    def release(self, tally: Sealed, *, account: Account | None = None) -> NDArray[np.int64]:
        """Release noisy counts, given the exact ones; they may be negative."""
        check_sealed(tally, Sealed)
        if tally.shape != (self.size,):
            raise SchemaError(f"Expected one count for each of {self.size} labels.")
        return Account.of_release(account, self).laplace(tally, scale=self.scale)

    def release_values(
        self, labels: ArrayLike, *, account: Account | None = None
    ) -> NDArray[np.int64]:
        """Count users by their labels; values that are no label are not counted."""
        values = np.asarray(labels)
        if values.ndim != 1 or values.dtype.kind not in "iu":
            raise SchemaError("Expected one whole number for each user.")
        tally = rows_by_hand(values, self.relation).tally(self.size)
        return self.release(tally, account=account)

    def error_bound(self, beta: float) -> int:
        """Bound the errors of all counts, except with probability ``beta``."""
        return laplace_quantile(self.scale, chance_of_each(beta, self.size))

    @property
    def standard_error(self) -> float:
        """Standard deviation of the noise of a count."""
        return laplace_deviation(self.scale)
