"""The rank error of a released quantile, in users: one noisy measurement after the release.

The worst-case rank error of a choice among 10^12 numbers is ten times the typical one, and the
error is zero if many people share the number. A noisy measurement of the rank shows how large the
error is.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

from quorate import _validate
from quorate._validate import exact, float_up
from quorate.core.account.account import Account
from quorate.core.guarantees import Relation
from quorate.core.noise.exact_decisions import LARGEST_SCALE
from quorate.core.questions.ranks import rank_of, rank_sensitivity
from quorate.core.sealed import SealedRows, check_rows, check_sealed
from quorate.exceptions import ParameterError
from quorate.mechanisms.pure import PureMechanism

__all__ = ["NoisyRank"]


@dataclass(frozen=True, kw_only=True)
class NoisyRank(PureMechanism):
    r"""Release a public point's rank error as a quantile, in users, with noise.

    Privacy
    -------
    guarantee : :math:`\varepsilon`-DP, with :math:`\varepsilon` = ``epsilon``
    neighbours : ``relation``: replace all records of one user, or add or remove all records of one
        user
    trust : central
    public : the point, ``quantile``, ``epsilon``; under ``Relation.REPLACE`` the number of users
    numerics : exact
    proof : The loss of one point is an integer that one user changes by at most ``sensitivity``, by
        the proof in :mod:`quorate.core.questions.ranks`; the sealed loss carries this sensitivity.
        Discrete Laplace noise of scale at least ``sensitivity`` / :math:`\varepsilon` is added to
        it.

    Utility
    -------
    With probability at least :math:`1 - \beta` the rank is off by at most ``upper_bound(released,
    beta)`` users, for every point and all data. The bound exceeds the true error by about :math:`2
    \ln(1/2\beta)/\varepsilon` users. It is negative if the point remains a quantile even if some
    users change.

    Complexity
    ----------
    Time :math:`O(n)`, one draw.

    Parameters
    ----------
    epsilon : float or Fraction
    quantile : Fraction
    relation : Relation, default=Relation.REPLACE

    References
    ----------
    .. [1] Ghosh, Roughgarden, Sundararajan. Universally utility-maximizing privacy mechanisms.
       SIAM J. Comput. 41(6), 2012.

    Examples
    --------
    >>> look = NoisyRank(epsilon=1.0, quantile=Fraction(1, 2))
    >>> import numpy as np
    >>> from quorate.core.by_hand import rows_by_hand
    >>> values = rows_by_hand(np.arange(1001))
    >>> 60 < look.upper_bound(look.release(values, values, point=600), beta=1e-3) < 140
    True
    >>> shared = rows_by_hand(np.full(1001, 7))
    >>> look.upper_bound(look.release(shared, shared, point=7), beta=1e-3)
    0.0
    """

    epsilon: float | Fraction
    quantile: Fraction
    relation: Relation = Relation.REPLACE

    def __post_init__(self) -> None:
        _validate.positive(epsilon=self.epsilon)
        _validate.probability(quantile=self.quantile)
        _validate.one_of(tuple(Relation), relation=self.relation)
        if not self.scale <= LARGEST_SCALE:
            raise ParameterError(
                f"Expected an epsilon of at least {self.sensitivity / LARGEST_SCALE:.3g} for this "
                f"quantile, got epsilon={float(self.epsilon)!r}."
            )

    @property
    def sensitivity(self) -> int:
        """The largest change of the loss by one user."""
        return rank_sensitivity(self.quantile, self.relation)

    @property
    def scale(self) -> float:
        """Scale of the noise, rounded up; one user is counted as the quantile's denominator."""
        return float_up(Fraction(self.sensitivity) / exact(self.epsilon))

    def release(
        self,
        lower: SealedRows,
        upper: SealedRows,
        *,
        point: int,
        account: Account | None = None,
    ) -> int:
        """Return the noisy loss of a point for users with the intervals [``lower``, ``upper``].

        It is in fractions of a user, with the quantile's denominator. It is negative if users would
        have to change before the point is no longer a quantile.
        """
        for each in (lower, upper):
            check_sealed(each, SealedRows)
            check_rows(each, self.relation)
        loss = rank_of(lower, upper, point=point, quantile=self.quantile)
        return int(Account.of_release(account, self).laplace(loss, scale=self.scale)[0])

    def upper_bound(self, released: int, beta: float) -> float:
        """Bound the error of the rank, in users, except with probability ``beta``.

        >>> NoisyRank(epsilon=0.2, quantile=Fraction(1, 2)).upper_bound(0, 0.05)
        11.5
        """
        _validate.probability(beta=beta)
        # P(Z < -t) = exp(-(t + 1) / scale) / (1 + exp(-1 / scale)) for an integer t >= 0.
        tail = self.scale * -math.log(beta * (1 + math.exp(-1 / self.scale)))
        reach = max(0, math.ceil(tail - 1))
        return max(0.0, float(Fraction(released + reach, self.quantile.denominator)))
