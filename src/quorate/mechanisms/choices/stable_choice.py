r"""Popular keys among unknown ones, never naming a key that nobody holds (G9).

Only keys with votes are touched: each count gets truncated discrete Laplace noise, and what comes
out above the truncation is published. A key without votes can never appear, a key with one vote
almost never; this is what delta pays for. Keys may be anything that can be written as an integer,
a text or bytes, from a universe nobody can list.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from quorate import _validate
from quorate._validate import exact, float_down, float_up
from quorate.accounting.account import Account, noise_for
from quorate.core.questions.ballots import SealedVotes, opened_votes
from quorate.core.questions.votes import Key, count_votes, sorted_votes
from quorate.exceptions import ParameterError, SealedError
from quorate.guarantees import Approximate, Guarantee, Relation
from quorate.mechanisms.choices.exponential import exp_enclosure
from quorate.noise import NoiseSource, ambient_noise

__all__ = ["StableChoice", "StableHistogram", "largest_mass", "truncated_laplace_mass"]

# Digits of the enclosures beside those that the mass itself needs.
_BITS = 128


def largest_mass(reach: int, *, scale: float) -> Fraction:
    r"""Return the chance, rounded up, that truncated noise takes its largest value ``reach``.

    With :math:`q = e^{-1/s}` it is :math:`q^A (1-q) / (1 + q - 2 q^{A+1})`.

    >>> round(float(largest_mass(14, scale=1.0)), 9)
    3.84e-07
    """
    rate = 1 / exact(scale)
    bits = _BITS + math.ceil(rate * reach * 3 / 2)
    one = 1 << bits
    q_low = exp_enclosure(rate, bits=bits)[0]
    above = exp_enclosure(rate * (reach + 1), bits=bits)[1]
    at = exp_enclosure(rate * reach, bits=bits)[1]
    return Fraction(at * (one - q_low), one * (one + q_low - 2 * above))


def truncated_laplace_mass(reach: int, *, scale: float) -> NDArray[np.float64]:
    """Return the chances of -reach, ..., reach in floating point; for audits and plans.

    >>> truncated_laplace_mass(1, scale=1.0).round(4).tolist()
    [0.2119, 0.5761, 0.2119]
    """
    weights = np.exp(-np.abs(np.arange(-reach, reach + 1)) / scale)
    return np.asarray(weights / weights.sum())


@dataclass(frozen=True, kw_only=True)
class StableHistogram:
    r"""Release the keys with many votes and their noisy counts, hiding any one user.

    Every key with votes gets discrete Laplace noise that is cut off at plus and minus ``reach``;
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
    proof : Let :math:`A` = ``reach``, :math:`s` = ``scale`` and :math:`\delta_1 = P(Z = A)`. If a
        count moves by one, the densities of its noisy value differ by at most :math:`e^{1/s}`
        except at one end of the range of the noise, whose mass is :math:`\delta_1`; a count of 1
        that was 0 is above :math:`A` only if :math:`Z = A`, again with :math:`\delta_1`; not being
        published is a set of values (or, for 0, certain). So the parts of the two laws that are
        within :math:`e^{1/s}` of each other have mass at least :math:`1-\delta_1`. Addition and
        removal move one count: :math:`\varepsilon = 1/s`, :math:`\delta = \delta_1`. Replacement
        moves two, with independent noise: :math:`\varepsilon = 2/s` and
        :math:`\delta = 1 - (1 - \delta_1)^2`. Both are attained: by a count of 0 or more against
        one more, and by one count that rises while another falls to :math:`2A + 1` or more.
        ``reach`` is the smallest with that :math:`\delta` at most ``delta``. [1]_ [2]_

    Utility
    -------
    Certain: a key with :math:`2A + 1` votes is published, and counts of published keys are off by
    at most :math:`A`; with probability at least :math:`1 - \beta` by at most
    ``error_bound(beta, keys)``. :math:`A = O(\ln(1/\delta)/\varepsilon)`, whatever the keys.

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
    >>> list(popular.release_keys(["tea"] * 200 + ["mate"] * 3 + ["coffee"] * 90))
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
                "Expected delta > 0: without a chance of failure keys that nobody holds must be "
                "possible. Use ChooseKey or UniverseHistogram for delta = 0."
            )

    @property
    def sensitivity(self) -> int:
        """How many counts one user moves by one."""
        return 2 if self.relation is Relation.REPLACE else 1

    @property
    def scale(self) -> float:
        """Scale of the noise before it is cut off, rounded up."""
        return float_up(self.sensitivity / Fraction(float_down(self.epsilon)))

    @property
    def reach(self) -> int:
        """The largest noise A; noisy counts above it are published."""
        return _smallest_reach(self.scale, float_down(self.delta), self.sensitivity)

    @property
    def event(self) -> Approximate:
        """What the accountant prices: the delta that is attained, not more than ``delta``."""
        attained = _failure(self.reach, scale=self.scale, moved=self.sensitivity)
        return Approximate(float_down(self.epsilon), float_up(attained))

    @property
    def guarantee(self) -> Guarantee:
        """The promise of one release."""
        return Guarantee(
            epsilon=float_down(self.epsilon),
            delta=float_up(self.delta),
            relation=self.relation,
            numerics=ambient_noise().numerics,
            events=(self.event,),
        )

    def release_keys(
        self, keys: NDArray[Any] | Iterable[Any], *, account: Account | None = None
    ) -> Any:
        """Release, given the key of each user; what is no key is no vote."""
        return self.release(count_votes(keys), account=account)

    def release(
        self, votes: SealedVotes | Mapping[Any, int], *, account: Account | None = None
    ) -> Any:
        """Return popular keys, in the order of keys, with their noisy counts."""
        paying = Account.of_release(account, self)
        if isinstance(votes, SealedVotes):
            paying.check_seal(votes)
            if votes.moves.l1 > self.sensitivity:
                raise SealedError(
                    f"Expected votes of which one user moves {self.sensitivity}, got "
                    f"{votes.moves.l1}: users have one vote each."
                )
            votes = opened_votes(votes)
        return self._popular(votes, noise_for(paying, self.event))

    def error_bound(self, beta: float, keys: int = 1) -> int:
        """Return how far the counts of so many published keys are off, except with ``beta``."""
        _validate.probability(beta=beta)
        _validate.positive_integer(keys=keys)
        masses = truncated_laplace_mass(self.reach, scale=self.scale)[self.reach :]
        beyond = 2.0 * keys * (np.cumsum(masses[::-1])[::-1] - masses)
        return int(np.argmax(beyond <= beta))

    def _popular(self, votes: Mapping[Any, int], noise: NoiseSource) -> dict[Key, int]:
        counts = sorted_votes(votes)
        values = np.array(list(counts.values()), dtype=np.int64)
        noisy = noise.truncated_laplace(values, scale=self.scale, reach=self.reach)
        pairs = zip(counts, noisy.tolist(), strict=True)
        return {key: count for key, count in pairs if count > self.reach}


@dataclass(frozen=True, kw_only=True)
class StableChoice(StableHistogram):
    r"""Choose a key with nearly the most votes, or none, hiding any one user.

    The key with the largest noisy count of :class:`StableHistogram`, the first of equal ones in the
    order of keys; ``None`` if no key is popular enough.

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
    Certain: if the leader has :math:`2A + 1` votes or more, a key is released, and it has at most
    :math:`2A` votes fewer; with probability at least :math:`1 - \beta` at most
    ``error_bound(beta, keys)`` fewer.

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
    >>> choice.release_keys(["tea"] * 200 + ["coffee"] * 90)
    'tea'
    >>> choice.release_keys(["tea", "coffee"]) is None
    True
    """

    def release(
        self, votes: SealedVotes | Mapping[Any, int], *, account: Account | None = None
    ) -> Any:
        """Return the key with the largest noisy count, or ``None``."""
        popular = super().release(votes, account=account)
        return max(popular, key=popular.__getitem__, default=None)

    def error_bound(self, beta: float, keys: int = 2) -> int:
        """Return how many votes fewer than the leader's, except with probability ``beta``.

        ``keys`` is how many different keys have votes.
        """
        _validate.probability(beta=beta)
        _validate.positive_integer(keys=keys)
        masses = truncated_laplace_mass(self.reach, scale=self.scale)
        # The difference of two noises, from 0 on; it is symmetric.
        differences = np.convolve(masses, masses)[2 * self.reach :]
        beyond = max(1, keys - 1) * (np.cumsum(differences[::-1])[::-1] - differences)
        return int(np.argmax(beyond <= beta))


@lru_cache(maxsize=1024)
def _failure(reach: int, *, scale: float, moved: int) -> Fraction:
    return 1 - (1 - largest_mass(reach, scale=scale)) ** moved


@lru_cache(maxsize=1024)
def _smallest_reach(scale: float, delta: float, moved: int) -> int:
    """Return the smallest reach whose delta is at most ``delta``, which falls with the reach."""
    low, high = 0, 1
    while _failure(high, scale=scale, moved=moved) > delta:
        low, high = high, 2 * high
    while high - low > 1:
        middle = (low + high) // 2
        if _failure(middle, scale=scale, moved=moved) > delta:
            low = middle
        else:
            high = middle
    return high
