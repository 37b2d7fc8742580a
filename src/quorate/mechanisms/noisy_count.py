"""Noisy counts of users: all users, or users with a property."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import ArrayLike

from quorate import _validate
from quorate.core.account.account import Account
from quorate.core.by_hand import rows_by_hand
from quorate.core.guarantees import Relation
from quorate.core.sealed import Sealed, check_sealed
from quorate.exceptions import ParameterError, SchemaError
from quorate.mechanisms.laplace import LaplaceNoise, laplace_deviation, laplace_quantile
from quorate.mechanisms.stated_error import chance_of_each
from quorate.mechanisms.sums import LARGEST_NOISE

__all__ = ["NoisyCount"]


@dataclass(frozen=True, kw_only=True)
class NoisyCount(LaplaceNoise):
    r"""Release the number of users, or of those with a property.

    Every user counts 0 or 1; the count gets discrete Laplace noise of scale 1 / ``epsilon``.

    Privacy
    -------
    guarantee : :math:`\varepsilon`-DP, with :math:`\varepsilon` = ``epsilon``
    neighbours : ``relation``: replace all records of one user, or add or remove all records of one
        user
    trust : central
    public : ``epsilon``, ``relation``
    numerics : exact
    proof : One user changes the count by at most 1 under either relation: joining or leaving moves
        it by one indicator, replacing by the difference of two. The noise has mass proportional to
        :math:`e^{-|z|/s}` with :math:`s \ge 1/\varepsilon`, so the ratio of the two probabilities
        of any output is at most :math:`e^\varepsilon`. [1]_

    Utility
    -------
    With probability at least :math:`1-\beta` the count is within ``error_bound(beta)``, which is
    :math:`O(\frac{1}{\varepsilon}\log\frac{1}{\beta})` and exact.

    Complexity
    ----------
    Time :math:`O(n)`, one draw.

    Parameters
    ----------
    epsilon : float
    relation : Relation, default=Relation.REPLACE
        Under ``REPLACE`` the number of all users is public and needs no mechanism.

    References
    ----------
    .. [1] Ghosh, Roughgarden, Sundararajan. Universally utility-maximizing privacy mechanisms.
       SIAM J. Comput. 41(6), 2012.

    Examples
    --------
    >>> smokers = NoisyCount(epsilon=1.0)
    >>> abs(smokers.release_values(np.array([True] * 300 + [False] * 700)) - 300) < 60
    True
    >>> smokers.error_bound(0.05)
    3
    """

    epsilon: float | Fraction
    relation: Relation = Relation.REPLACE

    def __post_init__(self) -> None:
        _validate.positive(epsilon=self.epsilon)
        _validate.one_of(tuple(Relation), relation=self.relation)
        if not self.scale <= LARGEST_NOISE:
            raise ParameterError(f"Expected epsilon >= 2^-55, got epsilon={self.epsilon!r}.")

    @property
    def sensitivity(self) -> int:
        """The largest change of the count by one user."""
        return 1

    def release(self, count: Sealed, *, account: Account | None = None) -> int:
        """Release a noisy count, given the exact one; it may be negative."""
        check_sealed(count, Sealed)
        if count.shape != (1,):
            raise SchemaError(f"Expected one count, got an array of shape {count.shape}.")
        paying = Account.of_release(account, self)
        return int(paying.laplace(count, scale=self.scale)[0])

    def release_values(self, indicators: ArrayLike, *, account: Account | None = None) -> int:
        """Count the users whose indicator is 1; every other value counts as 0."""
        values = np.asarray(indicators)
        if values.ndim != 1 or values.dtype.kind not in "fiub":
            raise SchemaError("Expected one indicator, 0 or 1, for each user.")
        count = rows_by_hand(values == 1, self.relation).tally(2)[1]
        return self.release(count, account=account)

    def error_bound(self, beta: float) -> int:
        """Return the smallest bound on the error that fails with probability ``beta`` at most."""
        return laplace_quantile(self.scale, chance_of_each(beta, 1))

    @property
    def standard_error(self) -> float:
        """Standard deviation of the noise."""
        return laplace_deviation(self.scale)
