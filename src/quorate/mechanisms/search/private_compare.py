"""Whether a count exceeds its share of the users: one noisy comparison (L3)."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

from quorate import _validate
from quorate._validate import exact, float_up
from quorate.core.account.account import Account
from quorate.core.guarantees import Relation
from quorate.core.sealed import Sealed
from quorate.mechanisms.pure import PureMechanism

__all__ = ["PrivateCompare"]

# Shares are rounded to this many parts, so that sums over users are integers.
_PARTS = 2**20


@dataclass(frozen=True, kw_only=True)
class PrivateCompare(PureMechanism):
    r"""Release whether more than a given share of the users is counted, hiding any one user.

    Privacy
    -------
    guarantee : :math:`\varepsilon`-DP, with :math:`\varepsilon` = ``epsilon``
    neighbours : ``relation``: replace all records of one user, or add or remove all records of one
        user
    trust : central
    public : ``share`` and all other parameters
    numerics : exact
    proof : With P = round(2^20 share) the compared number is 2^20 k - P n for the count k, which is
        a minimum over concepts of sums of 0 or 1 per user. Replacing a user changes k by at most 1:
        sensitivity 2^20. Adding one moves k by 0 or 1 and n by 1: sensitivity max(P, 2^20 - P).
        Discrete Laplace noise of scale sensitivity/epsilon, then post-processing by the sign.

    Utility
    -------
    The answer is right with probability at least :math:`1 - \beta` if the count differs from the
    share by more than ``error_bound(beta)`` users: :math:`\ln(1/2\beta)/\varepsilon` under
    replacement.

    Complexity
    ----------
    One draw.

    Parameters
    ----------
    share : float
    epsilon : float
    relation : Relation, default=Relation.REPLACE

    References
    ----------
    .. [1] Li, Wang, Ye. Improved bounds for pure private agnostic learning: item-level and
       user-level privacy. ICML 2024, Lemma C.1.

    Examples
    --------
    >>> from quorate.core.by_hand import sealed_by_hand
    >>> from quorate.core.moves import Moves
    >>> more = PrivateCompare(share=0.5, epsilon=1.0)
    >>> without, counted = more.weights
    >>> more.release(sealed_by_hand([90 * counted + 10 * without], Moves.of_counts(1).times(2**20)))
    True
    """

    share: float
    epsilon: float | Fraction
    relation: Relation = Relation.REPLACE

    def __post_init__(self) -> None:
        _validate.fraction(share=self.share)
        _validate.positive(epsilon=self.epsilon)
        _validate.one_of(tuple(Relation), relation=self.relation)

    @property
    def sensitivity(self) -> int:
        """The largest change of 2^20 k - P n by one user."""
        if self.relation is Relation.REPLACE:
            return _PARTS
        return max(self._parts, _PARTS - self._parts)

    @property
    def _parts(self) -> int:
        return round(self.share * _PARTS)

    @property
    def scale(self) -> float:
        """Scale of the noise, rounded up."""
        return float_up(Fraction(self.sensitivity) / exact(self.epsilon))

    @property
    def weights(self) -> tuple[int, int]:
        """The terms of 2^20 k - P n for a user who is not counted, and for one who is."""
        return -self._parts, _PARTS - self._parts

    def release(self, excess: Sealed, *, account: Account | None = None) -> bool:
        """Return whether 2^20 k - P n, the sum of one of ``weights`` per user, is positive."""
        noisy = Account.of_release(account, self).laplace(excess, scale=self.scale)
        return bool(noisy[0] > 0)

    def error_bound(self, beta: float) -> float:
        """Bound the distance from the share, in users, beyond which the answer is correct."""
        _validate.probability(beta=beta)
        return max(0.0, math.log(1 / (2 * beta))) * self.scale / _PARTS
