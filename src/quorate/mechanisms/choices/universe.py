"""Private choice among very many keys without an order (G8).

Users vote for keys of a public universe, of which nearly all have no vote. The draw is a closed
operation (:mod:`quorate.core.account.among_keys`); its cost does not grow with the universe, except
for the length of the numbers.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from quorate import _validate
from quorate.core.account.account import Account
from quorate.core.account.among_keys import draw_key, listed
from quorate.core.guarantees import Relation
from quorate.core.questions.ballots import SealedVotes
from quorate.exceptions import ParameterError
from quorate.mechanisms.choices.choose import exponential_rate
from quorate.mechanisms.laws import key_law
from quorate.mechanisms.pure import PureMechanism

__all__ = ["LARGEST_UNIVERSE", "ChooseKey"]

LARGEST_UNIVERSE = 2**256
"""Keys of 32 bytes, such as cryptographic hashes."""


def _check_universe(size: int) -> None:
    _validate.positive_integer(size=size)
    if size > LARGEST_UNIVERSE:
        raise ParameterError("Expected a universe of at most 2**256 keys; hash the keys first.")


@dataclass(frozen=True, kw_only=True)
class ChooseKey(PureMechanism):
    r"""Choose a key of a huge universe with nearly the most votes, hiding any one user.

    Every user has one vote. Key u with :math:`c_u` votes is released with probability proportional
    to :math:`e^{\lambda c_u}`; keys without votes may be chosen too.

    Privacy
    -------
    guarantee : :math:`\varepsilon`-DP, with :math:`\varepsilon` = ``epsilon``
    neighbours : ``relation``: replace all records of one user, or add or remove all records of one
        user
    trust : central
    public : the universe {0, ..., ``size`` - 1} and all parameters
    numerics : exact
    proof : Changing a vote moves one count up and one down, so a weight and the sum of all weights
        change by factors of at most :math:`e^{\lambda}` each: :math:`\lambda = \varepsilon/2`
        under replacement. Adding or removing a vote moves all weights in the same direction:
        :math:`\lambda = \varepsilon` under addition and removal. The law is that of the exponential
        mechanism on the whole universe, and the cost is the rate times the sensitivity of the
        sealed votes: :mod:`quorate.core.account.among_keys`. [1]_ [2]_

    Utility
    -------
    With probability at least :math:`1 - \beta` the released key has at most ``error_bound(beta)``
    votes fewer than the leader: :math:`\ln(|U|/\beta)/\lambda`, the smallest integer for which
    this holds for all votes.

    Complexity
    ----------
    Time and memory :math:`O(k \log k)` for k keys with votes, :math:`O(\sqrt{n})` enclosures of
    exponentials for n users; hundreds of random bits.

    Parameters
    ----------
    size : int
        Number of keys, at most 2^256.
    epsilon : float
    relation : Relation, default=Relation.REPLACE

    References
    ----------
    .. [1] McSherry, Talwar. Mechanism design via differential privacy. FOCS 2007.
    .. [2] Ghazi, Kumar, Manurangsi. User-level private learning via correlated sampling. NeurIPS
       2021, Lemma 12.

    Examples
    --------
    >>> choice = ChooseKey(size=2**64, epsilon=4.0)
    >>> from quorate.core.by_hand import votes_by_hand
    >>> choice.release(votes_by_hand([10**18] * 60 + [3, 4]))
    1000000000000000000
    >>> choice.error_bound(1e-3)
    25
    """

    size: int
    epsilon: float | Fraction
    relation: Relation = Relation.REPLACE

    def __post_init__(self) -> None:
        _check_universe(self.size)
        _ = self.rate

    @property
    def rate(self) -> Fraction:
        """Logarithm of the factor by which one vote multiplies the weight of a key."""
        one_sided = self.relation is Relation.ADD_REMOVE
        return exponential_rate(
            self.epsilon, sensitivity=1, relation=self.relation, one_sided=one_sided
        )

    @property
    def sensitivity(self) -> int:
        """The largest change of any one count by one user."""
        return 1

    def release(self, votes: SealedVotes, *, account: Account | None = None) -> int:
        """Return a key, given the number of users who vote for each."""
        paying = Account.of_release(account, self)
        return draw_key(votes, size=self.size, rate=self.rate, account=paying)

    def probabilities(self, votes: Mapping[Any, int]) -> NDArray[np.float64]:
        """Return the law of :meth:`release` over a small universe, for audits.

        >>> ChooseKey(size=3, epsilon=2.0).probabilities({1: 1}).round(4).tolist()
        [0.2119, 0.5761, 0.2119]
        """
        law = key_law(listed(votes, self.size), size=self.size, rate=self.rate)
        return np.repeat(law.probabilities / law.lengths.astype(float), law.lengths.astype(int))

    def error_bound(self, beta: float) -> int:
        """Bound by how many votes the key trails the leader, except with probability ``beta``."""
        _validate.probability(beta=beta)
        if self.size == 1:
            return 0
        # Worst case: all others have t + 1 votes fewer; they win with chance at most beta if
        # exp(-rate (t + 1)) (size - 1) <= beta / (1 - beta).
        odds = math.log(self.size - 1) + math.log1p(-beta) - math.log(beta)
        return max(0, math.ceil(Fraction(odds) / self.rate) - 1)
