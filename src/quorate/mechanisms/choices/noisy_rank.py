"""By how many users a released quantile is off: one noisy look after the release.

What a choice among 10^12 numbers may miss in the worst case is ten times what it misses among most
people, and nothing at all where many share a number. One noisy measurement of the rank tells which
it was.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

from quorate import _validate
from quorate._validate import exact, float_up
from quorate.accounting.account import Account
from quorate.core.moves import Moves
from quorate.core.sealed import SealedRows, check_rows, check_sealed, opened_rows, seal
from quorate.exceptions import ParameterError, SchemaError
from quorate.guarantees import Relation
from quorate.mechanisms.choices.quantiles import check_denominator, rank_loss, rank_sensitivity
from quorate.mechanisms.pure import PureMechanism
from quorate.noise.exact_decisions import LARGEST_SCALE

__all__ = ["NoisyRank"]


@dataclass(frozen=True, kw_only=True)
class NoisyRank(PureMechanism):
    r"""Release by how many users a public point misses a quantile of their values, with noise.

    Privacy
    -------
    guarantee : :math:`\varepsilon`-DP, with :math:`\varepsilon` = ``epsilon``
    neighbours : ``relation``: replace all records of one user, or add or remove all records of one
        user
    trust : central
    public : the point, ``quantile``, ``epsilon``; under ``Relation.REPLACE`` the number of users
    numerics : exact
    proof : The loss of one point is an integer that one user moves by at most ``sensitivity``, by
        the proof of :class:`~quorate.mechanisms.choices.quantiles.PrivateQuantile`. Discrete
        Laplace noise of scale at least ``sensitivity`` / :math:`\varepsilon` is added to it.

    Utility
    -------
    With probability at least :math:`1 - \beta` the rank is off by at most
    ``upper_bound(released, beta)`` users, for every point and all data. The bound exceeds the true
    error by about :math:`2 \ln(1/2\beta)/\varepsilon` users. It is zero if more users than that
    would have to change before the point is no longer a quantile.

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
        # Losses are then integers of 64 bits whatever people hold, as they are for the quantile.
        check_denominator(self.quantile)
        if not self.scale <= LARGEST_SCALE:
            raise ParameterError(
                f"Expected an epsilon of at least {self.sensitivity / LARGEST_SCALE:.3g} for this "
                f"quantile, got epsilon={float(self.epsilon)!r}."
            )

    @property
    def sensitivity(self) -> int:
        """How far one user moves the loss."""
        return rank_sensitivity(self.quantile, self.relation)

    @property
    def scale(self) -> float:
        """Scale of the noise, rounded up; a user counts as many as the quantile's denominator."""
        return float_up(Fraction(self.sensitivity) / exact(self.epsilon))

    def release(
        self,
        lower: SealedRows,
        upper: SealedRows,
        *,
        point: int,
        account: Account | None = None,
    ) -> int:
        """Return the noisy loss of a point for users who are content from ``lower`` to ``upper``.

        It is in parts of a user, and negative where users would have to move before the point
        misses the quantile.
        """
        for each in (lower, upper):
            check_sealed(each, SealedRows)
            check_rows(each, self.relation)
        low, high = opened_rows(lower), opened_rows(upper)
        _validate.integer_dtype(lower=low.dtype, upper=high.dtype)
        if low.ndim != 1 or low.shape != high.shape:
            raise SchemaError("Expected one lower and one upper limit of each user, in one axis.")
        loss = rank_loss(low, high, point=point, quantile=self.quantile)
        reach = self.sensitivity
        sealed = seal([loss], Moves(reach, reach**2, reach, reach), self.relation, lower.among)
        return int(Account.of_release(account, self).laplace(sealed, scale=self.scale)[0])

    def upper_bound(self, released: int, beta: float) -> float:
        """Return by how many users the rank is off at most, except with probability ``beta``.

        >>> NoisyRank(epsilon=0.2, quantile=Fraction(1, 2)).upper_bound(0, 0.05)
        11.5
        """
        _validate.probability(beta=beta)
        # P(Z < -t) = exp(-(t + 1) / scale) / (1 + exp(-1 / scale)) for an integer t >= 0.
        tail = self.scale * -math.log(beta * (1 + math.exp(-1 / self.scale)))
        reach = max(0, math.ceil(tail - 1))
        return max(0.0, float(Fraction(released + reach, self.quantile.denominator)))
