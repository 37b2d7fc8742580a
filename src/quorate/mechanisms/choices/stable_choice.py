r"""Popular keys among unknown ones; a key that nobody has is never released (G9).

Only keys with votes are considered: each count gets truncated discrete Laplace noise, and noisy
counts above the truncation are published. A key without votes can never be released, and a key with
one vote almost never; this is what delta pays for. Keys may be integers, text or bytes, from a
universe that cannot be listed.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from quorate import _validate
from quorate._validate import float_down, float_up
from quorate.core.account.account import Account
from quorate.core.account.among_keys import cut_off_scale, popular_event, popular_keys
from quorate.core.guarantees import Approximate, Guarantee, Relation
from quorate.core.noise import ambient_noise
from quorate.core.questions.ballots import SealedVotes
from quorate.core.sealed import check_sealed
from quorate.exceptions import ParameterError, SealedError

__all__ = ["StableChoice", "StableHistogram", "truncated_laplace_mass"]


def truncated_laplace_mass(reach: int, *, scale: float) -> NDArray[np.float64]:
    """Return the probabilities of -reach, ..., reach in floating point; for audits and plans.

    >>> truncated_laplace_mass(1, scale=1.0).round(4).tolist()
    [0.2119, 0.5761, 0.2119]
    """
    weights = np.exp(-np.abs(np.arange(-reach, reach + 1)) / scale)
    return np.asarray(weights / weights.sum())


@dataclass(frozen=True, kw_only=True)
class StableHistogram:
    r"""Release the keys with many votes and their noisy counts, hiding any one user.

    Every key with votes gets discrete Laplace noise that is truncated at plus and minus ``reach``;
    keys whose noisy count is above ``reach`` are published with it. A key without votes is never
    published.

    Privacy
    -------
    guarantee : :math:`(\varepsilon, \delta)`-DP, with the given ``epsilon`` and ``delta``
    neighbours : ``relation``: replace all records of one user, or add or remove all records of one
        user
    trust : central
    public : all parameters; keys are private until they are published
    numerics : exact
    proof : :mod:`quorate.core.account.among_keys`, with A = ``reach`` and s = ``scale``, for votes
        of which one user changes one (add or remove) or two (replacement). Both numbers are
        attained: by a count of 0 or more against one more, and by one count that rises while
        another falls to :math:`2A + 1` or more. ``reach`` is the smallest with that :math:`\delta`
        at most ``delta``. [1]_ [2]_

    Utility
    -------
    The following is certain: a key with :math:`2A + 1` votes is published, and counts of published
    keys are off by at most :math:`A`. With probability at least :math:`1 - \beta` they are off by
    at most ``error_bound(beta, keys)``. :math:`A = O(\ln(1/\delta)/\varepsilon)`, whatever the
    keys.

    Complexity
    ----------
    Time and memory :math:`O(k \log k)` for k keys with votes.

    Parameters
    ----------
    epsilon : float
    delta : float
        Positive.
    relation : Relation, default=Relation.REPLACE

    References
    ----------
    .. [1] Korolova, Kenthapadi, Mishra, Ntoulas. Releasing search queries and clicks privately. WWW
       2009. Bun, Nissim, Stemmer. Simultaneous private learning of multiple concepts. JMLR 2019.
    .. [2] Ghazi, Kumar, Manurangsi. User-level private learning via correlated sampling. NeurIPS
       2021, Lemma 11.

    Examples
    --------
    >>> popular = StableHistogram(epsilon=1.0, delta=1e-6)
    >>> popular.reach
    27
    >>> from quorate.core.by_hand import votes_by_hand
    >>> votes = votes_by_hand(["tea"] * 200 + ["mate"] * 3 + ["coffee"] * 90)
    >>> list(popular.release(votes))
    ['coffee', 'tea']
    """

    epsilon: float | Fraction
    delta: float | Fraction
    relation: Relation = Relation.REPLACE

    def __post_init__(self) -> None:
        _validate.positive(epsilon=self.epsilon)
        _validate.delta(delta=self.delta)
        _validate.one_of(tuple(Relation), relation=self.relation)
        if self.delta == 0:
            raise ParameterError(
                "Expected delta > 0: with delta=0 keys that nobody has would have to be "
                "possible. Use ChooseKey for delta = 0."
            )

    @property
    def sensitivity(self) -> int:
        """The number of counts that one user changes by one."""
        return 2 if self.relation is Relation.REPLACE else 1

    @property
    def scale(self) -> float:
        """Scale of the noise before truncation, rounded up."""
        return cut_off_scale(self.epsilon, moved=self.sensitivity)

    @property
    def reach(self) -> int:
        """The largest noise A; noisy counts above it are published."""
        return _smallest_reach(float_down(self.epsilon), float_down(self.delta), self.sensitivity)

    @property
    def event(self) -> Approximate:
        """The event for the accountant, with the exact delta, which is at most ``delta``."""
        return popular_event(self.epsilon, self.reach, moved=self.sensitivity)

    @property
    def guarantee(self) -> Guarantee:
        """The guarantee of one release."""
        return Guarantee(
            epsilon=float_down(self.epsilon),
            delta=float_up(self.delta),
            relation=self.relation,
            numerics=ambient_noise().numerics,
            events=(self.event,),
        )

    def release(self, votes: SealedVotes, *, account: Account | None = None) -> Any:
        """Return popular keys, in the order of keys, with their noisy counts."""
        check_sealed(votes, SealedVotes)
        if votes.moves.l1 > self.sensitivity:
            raise SealedError(
                f"Expected votes of which one user changes {self.sensitivity}, got "
                f"{votes.moves.l1}: users have one vote each."
            )
        paying = Account.of_release(account, self)
        return popular_keys(votes, epsilon=self.epsilon, reach=self.reach, account=paying)

    def error_bound(self, beta: float, keys: int = 1) -> int:
        """Bound the errors of this many published counts, except with probability ``beta``."""
        _validate.probability(beta=beta)
        _validate.positive_integer(keys=keys)
        masses = truncated_laplace_mass(self.reach, scale=self.scale)[self.reach :]
        beyond = 2.0 * keys * (np.cumsum(masses[::-1])[::-1] - masses)
        return int(np.argmax(beyond <= beta))


@dataclass(frozen=True, kw_only=True)
class StableChoice(StableHistogram):
    r"""Choose a key with nearly the most votes, or none, hiding any one user.

    It is the key with the largest noisy count of :class:`StableHistogram` (of several, the first in
    the order of keys), or ``None`` if no key is popular enough.

    Privacy
    -------
    guarantee : :math:`(\varepsilon, \delta)`-DP, with the given ``epsilon`` and ``delta``
    neighbours : ``relation``: replace all records of one user, or add or remove all records of one
        user
    trust : central
    public : all parameters; keys are private until they are published
    numerics : exact
    proof : Post-processing of :class:`StableHistogram`. [1]_

    Utility
    -------
    The following is certain: if the leader has :math:`2A + 1` votes or more, a key is released, and
    it has at most :math:`2A` votes fewer. With probability at least :math:`1 - \beta` it has at
    most ``error_bound(beta, keys)`` fewer.

    Complexity
    ----------
    Time and memory :math:`O(k \log k)` for k keys with votes.

    Parameters
    ----------
    epsilon : float
    delta : float
        Positive.
    relation : Relation, default=Relation.REPLACE

    References
    ----------
    .. [1] Ghazi, Kumar, Manurangsi. User-level private learning via correlated sampling. NeurIPS
       2021, Lemma 11.

    Examples
    --------
    >>> choice = StableChoice(epsilon=1.0, delta=1e-6)
    >>> from quorate.core.by_hand import votes_by_hand
    >>> choice.release(votes_by_hand(["tea"] * 200 + ["coffee"] * 90))
    'tea'
    >>> choice.release(votes_by_hand(["tea", "coffee"])) is None
    True
    """

    def release(self, votes: SealedVotes, *, account: Account | None = None) -> Any:
        """Return the key with the largest noisy count, or ``None``."""
        popular = super().release(votes, account=account)
        return max(popular, key=popular.__getitem__, default=None)

    def error_bound(self, beta: float, keys: int = 2) -> int:
        """Bound by how many votes the key trails the leader, except with probability ``beta``.

        ``keys`` is the number of different keys with votes.
        """
        _validate.probability(beta=beta)
        _validate.positive_integer(keys=keys)
        masses = truncated_laplace_mass(self.reach, scale=self.scale)
        # The difference of two noises, from 0 on; it is symmetric.
        differences = np.convolve(masses, masses)[2 * self.reach :]
        beyond = max(1, keys - 1) * (np.cumsum(differences[::-1])[::-1] - differences)
        return int(np.argmax(beyond <= beta))


@lru_cache(maxsize=1024)
def _smallest_reach(epsilon: float, delta: float, moved: int) -> int:
    """Return the smallest reach whose delta is at most ``delta``, which falls with the reach."""
    low, high = 0, 1
    while popular_event(epsilon, high, moved=moved).delta > delta:
        low, high = high, 2 * high
    while high - low > 1:
        middle = (low + high) // 2
        if popular_event(epsilon, middle, moved=moved).delta > delta:
            low = middle
        else:
            high = middle
    return high
