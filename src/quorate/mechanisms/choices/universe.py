"""Private choice among very many keys that stand in no order (G8).

Users vote for keys of a public universe, of which nearly all have no vote. The keys with votes are
few and all others are alike, so the exponential mechanism over 2^256 keys falls into a handful of
pieces. The same holds for a histogram with noise on every key, of which only the keys above a
threshold are published. Nothing here grows with the universe but the length of its numbers.
"""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from quorate import _validate
from quorate._validate import float_down, float_up
from quorate.accounting.account import Account, noise_for, sample_for
from quorate.core.questions.ballots import SealedVotes, opened_votes
from quorate.core.questions.votes import count_votes, sorted_votes
from quorate.exceptions import ParameterError
from quorate.guarantees import Pure, Relation
from quorate.mechanisms.choices.binomial import MOST_EXPECTED, RareSuccesses
from quorate.mechanisms.choices.choose import exponential_rate
from quorate.mechanisms.choices.exponential import choose_heavy, exp_enclosure
from quorate.mechanisms.pure import PureMechanism
from quorate.noise import NoiseSource
from quorate.noise.composed_laws import PiecewiseLaw

__all__ = ["LARGEST_UNIVERSE", "ChooseKey", "UniverseHistogram"]

LARGEST_UNIVERSE = 2**256
"""Keys of 32 bytes, such as cryptographic hashes."""


def _check_universe(size: int) -> None:
    _validate.positive_integer(size=size)
    if size > LARGEST_UNIVERSE:
        raise ParameterError("Expected a universe of at most 2**256 keys; hash the keys first.")


def _unseen_key(rank: int, seen: list[int]) -> int:
    """Return the unseen key with ``rank`` smaller unseen ones; ``seen`` is sorted."""
    return rank + bisect_right([key - place for place, key in enumerate(seen)], rank)


@dataclass(frozen=True, kw_only=True)
class ChooseKey(PureMechanism):
    r"""Choose a key of a huge universe with nearly the most votes, hiding any one user.

    Every user has one vote. Key u with :math:`c_u` votes is released with probability proportional
    to :math:`e^{\lambda c_u}`; keys without votes are in the lottery too.

    Privacy
    -------
    guarantee : :math:`\varepsilon`-DP, with :math:`\varepsilon` = ``epsilon``
    neighbours : ``relation``: replace all records of one user, or add or remove all records of one
        user
    trust : central
    public : the universe {0, ..., ``size`` - 1} and all parameters
    numerics : exact
    proof : Another vote moves one count up and one down, so a weight and the sum of all weights
        change by factors of at most :math:`e^{\lambda}` each: :math:`\lambda = \varepsilon/2`
        under replacement. One more or one vote fewer moves all weights the same way:
        :math:`\lambda = \varepsilon` under addition and removal. The law is that of the
        exponential mechanism on the whole universe: keys with equal counts form a piece, keys
        without votes one piece of the remaining length, and within a piece all are equally likely.
        Exact sampling: ``docs/proofs/ordered_choice.md``. [1]_ [2]_

    Utility
    -------
    With probability at least :math:`1 - \beta` the released key has at most ``error_bound(beta)``
    votes fewer than the leader: :math:`\ln(|U|/\beta)/\lambda`, the smallest integer for which
    this holds for all votes.

    Complexity
    ----------
    Time and memory :math:`O(k \log k)` for k keys with votes, :math:`O(\sqrt{n})` enclosures of
    exponentials for n users; some hundreds of random bits.

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
    >>> choice.release_keys([10**18] * 60 + [3, 4])
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
        """What a vote multiplies the weight of a key by, as a logarithm."""
        one_sided = self.relation is Relation.ADD_REMOVE
        return exponential_rate(
            self.epsilon, sensitivity=1, relation=self.relation, one_sided=one_sided
        )

    @property
    def sensitivity(self) -> int:
        """How far one user moves any one count."""
        return 1

    def release_keys(
        self, keys: NDArray[Any] | Iterable[Any], *, account: Account | None = None
    ) -> int:
        """Return a key, given that of each user; what is no key of the universe is no vote."""
        return self.release(count_votes(keys, size=self.size), account=account)

    def release(
        self, votes: SealedVotes | Mapping[Any, int], *, account: Account | None = None
    ) -> int:
        """Return a key, given the number of users who vote for each."""
        paying = Account.of_release(account, self)
        spread: int | Fraction = 1 if self.relation is Relation.ADD_REMOVE else 2
        if isinstance(votes, SealedVotes):
            paying.check_seal(votes)
            spread, votes = votes.moves.spread, opened_votes(votes)
        counts = self._counts(votes)
        seen = list(counts)

        def draw(noise: NoiseSource) -> int:
            # Keys with equally many votes share a piece; those without votes come first.
            groups: dict[int, list[int]] = {}
            for key, count in counts.items():
                groups.setdefault(count, []).append(key)
            lengths = [self.size - len(seen), *(len(keys) for keys in groups.values())]
            losses = [0, *(-count for count in groups)]
            piece = choose_heavy(lengths, losses, rate=self.rate, noise=noise)
            place = noise.uniform_below(lengths[piece])
            if piece == 0:
                return _unseen_key(place, seen)
            return groups[-losses[piece]][place]

        return sample_for(
            paying,
            "universe_choice",
            draw,
            law=lambda: self._law(counts),
            loss=self.rate * spread,
            rate=self.rate,
            size=self.size,
        )

    def probabilities(self, votes: Mapping[Any, int]) -> NDArray[np.float64]:
        """Return the law of :meth:`release` over a small universe, for audits.

        >>> ChooseKey(size=3, epsilon=2.0).probabilities({1: 1}).round(4).tolist()
        [0.2119, 0.5761, 0.2119]
        """
        law = self._law(self._counts(votes))
        return np.repeat(law.probabilities / law.lengths.astype(float), law.lengths.astype(int))

    def error_bound(self, beta: float) -> int:
        """Return how many votes fewer than the leader, except with probability ``beta``."""
        _validate.probability(beta=beta)
        if self.size == 1:
            return 0
        # Worst case: all others have t + 1 votes fewer; they win with chance at most beta if
        # exp(-rate (t + 1)) (size - 1) <= beta / (1 - beta).
        odds = math.log(self.size - 1) + math.log1p(-beta) - math.log(beta)
        return max(0, math.ceil(Fraction(odds) / self.rate) - 1)

    def _counts(self, votes: Mapping[Any, int]) -> dict[int, int]:
        return {int(key): count for key, count in sorted_votes(votes, size=self.size).items()}

    def _law(self, counts: dict[int, int]) -> PiecewiseLaw:
        """Cut the universe at the keys with votes: runs of unseen keys, and single seen ones."""
        lengths: list[int] = []
        exponents: list[float] = []
        most = max(counts.values(), default=0)
        rate, after = float(self.rate), 0
        for key, count in [*counts.items(), (self.size, None)]:
            if key > after:
                lengths.append(key - after)
                exponents.append(math.log(key - after) - rate * most)
            if count is not None:
                lengths.append(1)
                exponents.append(rate * (count - most))
            after = key + 1
        weights = np.exp(np.array(exponents) - max(exponents))
        return PiecewiseLaw(0, np.array(lengths, dtype=object), weights / weights.sum())


@dataclass(frozen=True, kw_only=True)
class UniverseHistogram(PureMechanism):
    r"""Release the keys with many votes and their noisy counts, hiding any one user.

    Every key of the universe gets discrete Laplace noise, with or without votes; those whose noisy
    count reaches ``cut`` are published. The keys without votes are never listed: how many of them
    rise above the cut is a binomial number, which ones a uniform draw, and by how much a geometric
    one.

    Privacy
    -------
    guarantee : :math:`\varepsilon`-DP, with :math:`\varepsilon` = ``epsilon``
    neighbours : ``relation``: replace all records of one user, or add or remove all records of one
        user
    trust : central
    public : the universe {0, ..., ``size`` - 1} and all parameters
    numerics : exact
    proof : A user has one vote, so the histogram over the universe moves by at most
        :math:`\Delta` = ``sensitivity`` in L1, which is 2 under replacement and 1 otherwise, and
        discrete Laplace noise of scale :math:`\Delta/\varepsilon` on all of it costs
        :math:`\varepsilon`; the cut is post-processing. What is sampled has this law: the unseen
        keys are independent and alike, each passes with probability
        :math:`P(Z \ge t) = q^t/(1+q)`, and the excess of one that passes is geometric. [1]_ [2]_

    Utility
    -------
    With probability :math:`1 - \beta` every key with at least ``cut + error_bound(beta)`` votes is
    published. The count of a published key is off by at most ``error_bound(beta, keys)``. At most
    ``false_keys`` keys without votes are published in the mean.

    Complexity
    ----------
    Time and memory :math:`O(k)` for k keys with votes.

    Parameters
    ----------
    size : int
        Number of keys, at most 2^256.
    epsilon : float
    false_keys : float, default=0.05
        Keys without votes that may be published, in the mean; sets ``cut``.
    relation : Relation, default=Relation.REPLACE

    References
    ----------
    .. [1] Dwork, McSherry, Nissim, Smith. Calibrating noise to sensitivity. TCC 2006.
    .. [2] Cormode, Procopiuc, Srivastava, Tran. Differentially private summaries for sparse data.
       ICDT 2012.

    Examples
    --------
    >>> popular = UniverseHistogram(size=2**32, epsilon=2.0)
    >>> popular.cut
    25
    >>> found = popular.release_keys([7] * 200 + [8] * 150 + [9])
    >>> 7 in found and 8 in found
    True
    """

    size: int
    epsilon: float | Fraction
    false_keys: float = 0.05
    relation: Relation = Relation.REPLACE

    def __post_init__(self) -> None:
        _check_universe(self.size)
        _validate.positive(epsilon=self.epsilon, false_keys=self.false_keys)
        _validate.one_of(tuple(Relation), relation=self.relation)
        if self.false_keys > MOST_EXPECTED:
            raise ParameterError(
                f"Expected false_keys <= {MOST_EXPECTED}, got false_keys={self.false_keys!r}."
            )

    @property
    def sensitivity(self) -> int:
        """Largest L1 distance between the histograms of neighbours."""
        return 2 if self.relation is Relation.REPLACE else 1

    @property
    def event(self) -> Pure:
        """What the accountant prices."""
        return Pure(float_down(self.epsilon))

    @property
    def scale(self) -> float:
        """Scale of the noise, rounded up."""
        return float_up(self.sensitivity / Fraction(float_down(self.epsilon)))

    @property
    def cut(self) -> int:
        """The smallest noisy count that is published; public."""
        # size q^t / (1 + q) <= false_keys; a count below 1 is never published.
        q = math.exp(-1.0 / self.scale)
        return max(
            1,
            math.ceil(
                self.scale * (math.log(self.size) - math.log(self.false_keys) - math.log1p(q))
            ),
        )

    def release_keys(
        self, keys: NDArray[Any] | Iterable[Any], *, account: Account | None = None
    ) -> dict[int, int]:
        """Return popular keys with noisy counts, given the key of each user."""
        return self.release(count_votes(keys, size=self.size), account=account)

    def release(
        self, votes: Mapping[Any, int], *, account: Account | None = None
    ) -> dict[int, int]:
        """Return popular keys with noisy counts, given the number of votes for each."""
        counts = sorted_votes(votes, size=self.size)
        seen = [int(key) for key in counts]
        noise = noise_for(Account.of_release(account, self), self.event)
        exact_counts = np.array(list(counts.values()), dtype=np.int64)
        noisy = noise.discrete_laplace(exact_counts, scale=self.scale)
        found = dict(zip(seen, noisy.tolist(), strict=True))
        found |= self._unseen(seen, noise)
        return {key: found[key] for key in sorted(found) if found[key] >= self.cut}

    def error_bound(self, beta: float, keys: int = 1) -> int:
        """Return how far the counts of so many keys are off, except with probability ``beta``."""
        _validate.probability(beta=beta)
        _validate.positive_integer(keys=keys)
        # P(|Z| > t) = 2 q^(t + 1) / (1 + q).
        q = math.exp(-1.0 / self.scale)
        return max(0, math.ceil(self.scale * math.log(2 * keys / (beta * (1 + q))) - 1))

    def _unseen(self, seen: list[int], noise: NoiseSource) -> dict[int, int]:
        """Return keys without votes that rise above the cut, and their noisy counts."""
        left = self.size - len(seen)
        rising = RareSuccesses(left, self._chance)
        number = noise.sample(
            "rising_keys", rising.draw, law=rising.law, scale=self.scale, cut=self.cut
        )
        ranks: list[int] = []
        while len(ranks) < number:
            rank = noise.uniform_below(left)
            if rank not in ranks:
                ranks.append(rank)
        # Beyond the cut the noise forgets how far it has come.
        start = np.full(number, self.cut, dtype=np.int64)
        counts = noise.geometric(start, scale=self.scale)
        keys = (_unseen_key(rank, seen) for rank in ranks)
        return dict(zip(keys, counts.tolist(), strict=True))

    def _chance(self, bits: int) -> tuple[int, int]:
        """Enclose P(Z >= cut) = q^cut / (1 + q) for q = exp(-1 / scale)."""
        rate = 1 / Fraction(self.scale)
        q_low, q_high = exp_enclosure(rate, bits=bits)
        low, high = exp_enclosure(rate * self.cut, bits=bits)
        one = 1 << bits
        return (low << bits) // (one + q_high), -((-high << bits) // (one + q_low))
