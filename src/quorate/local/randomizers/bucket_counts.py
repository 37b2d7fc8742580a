"""Counts of buckets from anonymous messages: each user adds a little noise (G11).

It is the protocol of the paper (Algorithms 7 and 8 in every bucket). It sends about mean x buckets
/ users messages per user and, with ``complement``, one more for every bucket. So learners use the
single hashed report by default; the counts here have a proved error. A message is the name of a
bucket and nothing else; only the shuffled messages of all users together are private.
"""

from __future__ import annotations

import decimal
import math
from dataclasses import dataclass
from decimal import Decimal
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from quorate import _validate
from quorate.core.account.account import Account, noise_for
from quorate.core.guarantees import Approximate, Guarantee, Relation, Trust
from quorate.core.noise import NoiseSource, ambient_noise
from quorate.exceptions import NotEnoughUsersError, ParameterError
from quorate.local.randomizers.hashed import candidates_of
from quorate.local.shuffling.count_noise import (
    CountNoise,
    calibrated_noise,
    noise_delta,
    published_noise,
)

__all__ = ["BucketCounts", "noise_table"]

_WORDS = 1 << 64
_DIGITS = 70
_TABLE = 1 << 12
"""Entries of a table that are planned for; longer ones are rare and planned for again."""


def noise_table(r: float, p: float) -> NDArray[np.uint64]:
    """Return the thresholds of a 64-bit word below which at most k = 0, 1, ... messages are added.

    The table *is* the law: k messages are added with probability (table[k] - table[k - 1]) / 2^64.
    Its entries are those of NB(r, p) rounded down, computed with 70 digits, up to where less than
    2^-64 is left; so the two laws differ by at most (len(table) + 2) / 2^64.

    >>> noise_table(1.0, 0.5)[:2].tolist() == [2**63, 2**63 + 2**62]
    True
    """
    CountNoise(r, p)  # refuses parameters out of range
    with decimal.localcontext(decimal.Context(prec=_DIGITS)):
        shape, more = Decimal(float(r)), Decimal(float(p))
        mass = (shape * (1 - more).ln()).exp()
        total, k, table = Decimal(0), 0, []
        while True:
            total += mass
            entry = int(total * _WORDS)
            table.append(min(entry, _WORDS - 1))
            if entry >= _WORDS - 1 or (mass * _WORDS < 1 and 1 - total < Decimal(2) ** -64):
                break
            mass = mass * (shape + k) / (k + 1) * more
            k += 1
    return np.array(table, dtype=np.uint64)


@dataclass(frozen=True, kw_only=True)
class BucketCounts:
    r"""Count how many users name each bucket, by anonymous messages that name buckets.

    Every user sends one message for their own bucket and, for every bucket, a few more: the user's
    part of the negative binomial noise. The server counts messages. With ``complement`` users send
    one message for every bucket they do *not* name and the server subtracts, so that no count is
    ever above the truth.

    Privacy
    -------
    guarantee : :math:`(\varepsilon, \delta)`-DP with ``epsilon`` and ``delta`` for the shuffled
        messages; nothing is claimed about the messages of one user
    neighbours : replace all records of one user, including by those of somebody without a bucket
    trust : shuffle
    public : all parameters, and that all ``users`` take part
    numerics : exact
    proof : Honest users together add NB(r, p) to a bucket up to the rounding of their tables, which
        moves each of two buckets' laws by at most ``users`` (len(table) + 2) / 2^64 in total
        variation and costs :math:`1 + e^\varepsilon` times that; the rest is
        :mod:`~quorate.local.shuffling.count_noise`. All other buckets have the same law for both
        neighbours. ``published=True`` takes half of the budget for each of two buckets, as the
        paper does (Lemmas 36 and 38); more noise, by ``beta``, only improves privacy. The users add
        the noise. If one stays away, *every* bucket has less of it, so the number of messages would
        reveal this, and ``Relation.ADD_REMOVE`` is refused. A user without a value sends noise
        only.

    Utility
    -------
    ``counts`` are unbiased with deviation ``noise.deviation`` if all users are honest; ``bounds``
    are never below the truth (never above with ``complement``), and with probability
    :math:`1 - \beta` no further from it than ``error_bound(beta)``, in each bucket. With
    ``complement`` this is also how far ``choose`` may fall short of the best bucket (Lemma 36), and
    ``histogram_bound(beta)`` holds for all buckets of ``histogram`` at once (Lemma 37), however
    many there are.

    Complexity
    ----------
    One word of random bits for each bucket and user; ``noise.mean`` x ``buckets`` messages in all.

    Parameters
    ----------
    buckets : int
    users : int
        The number of participants.
    epsilon, delta : float
    honest : float, default=1.0
        Share of the users who add their noise.
    relation : Relation, default=Relation.REPLACE
        The only supported relation.
    complement : bool, default=False
    published : bool, default=False
        Use the constants of the paper instead of the exact calculation.
    beta : float or None, default=None
        With ``published``: use the larger r of Corollary 40, for which its error bound fails with
        this probability; ``None`` uses that of Theorem 39, which is enough for privacy.

    Examples
    --------
    >>> counts = BucketCounts(buckets=8, users=50, epsilon=1.0, delta=1e-6)
    >>> totals = counts.messages(np.full(50, 3))
    >>> bool(totals[3] >= 50), counts.choose(totals)
    (True, 3)
    """

    buckets: int
    users: int
    epsilon: float
    delta: float
    honest: float = 1.0
    relation: Relation = Relation.REPLACE
    complement: bool = False
    published: bool = False
    beta: float | None = None

    def __post_init__(self) -> None:
        _validate.positive_integer(buckets=self.buckets, users=self.users)
        _validate.positive(epsilon=self.epsilon)
        _validate.probability(delta=self.delta)
        _validate.fraction(honest=self.honest)
        _validate.one_of(tuple(Relation), relation=self.relation)
        if self.relation is not Relation.REPLACE:
            raise ParameterError(
                "Expected relation=Relation.REPLACE, because every user adds a part of the "
                "noise, so the noise would be too small if a user stayed away. Include all "
                "users, with the value -1 for users without a bucket; or use "
                "quorate.tabulate.UserTable under Relation.ADD_REMOVE, "
                "where a trusted server adds the noise."
            )
        if self.beta is not None:
            _validate.probability(beta=self.beta)
            if not self.published:
                raise ParameterError(
                    f"Expected published=True where beta is given, got beta={self.beta!r}."
                )
        if self.honest_users < 1:
            raise NotEnoughUsersError(
                f"Expected at least one honest user, got honest={self.honest!r} of {self.users}."
            )

    @property
    def honest_users(self) -> int:
        """How many users add their noise."""
        return math.floor(self.honest * self.users)

    @cached_property
    def noise(self) -> CountNoise:
        """The noise that honest users together add to one bucket."""
        return self._law[0]

    @cached_property
    def table(self) -> NDArray[np.uint64]:
        """The law of the noise that one user adds to one bucket; see :func:`noise_table`."""
        return self._law[1]

    @cached_property
    def _law(self) -> tuple[CountNoise, NDArray[np.uint64]]:
        """Return the noise and its table.

        A longer table has more rounding, which leaves a smaller part of delta for the noise.
        """
        length = _TABLE
        while (left := self.delta - self._rounding_cost(length)) > 0:
            noise = self._noise(left)
            table = noise_table(noise.r / self.honest_users, noise.p)
            if len(table) <= length:
                return noise, table
            length *= 4
        raise ParameterError(
            f"Expected a larger delta for {self.users} users, got delta={self.delta!r}."
        )

    def _noise(self, delta: float) -> CountNoise:
        if not self.published:
            return calibrated_noise(float(self.epsilon), delta)
        return published_noise(self.epsilon / 2, delta / 2, beta=self.beta)

    def _rounding_cost(self, length: int) -> float:
        return 2 * self.users * (length + 2) / _WORDS * (1 + math.exp(self.epsilon))

    @property
    def exact_delta(self) -> float:
        """The delta of the exact calculation for this noise, including its rounding."""
        computed = noise_delta(self.epsilon, self.noise)
        return computed + self._rounding_cost(len(self.table))

    @property
    def guarantee(self) -> Guarantee:
        """The guarantee of the shuffled messages."""
        return Guarantee(
            epsilon=self.epsilon,
            delta=self.delta,
            relation=self.relation,
            trust=Trust.SHUFFLE,
            numerics=ambient_noise().numerics,
            events=(self.event,),
        )

    @property
    def event(self) -> Approximate:
        """The privacy cost of the shuffled messages for each user."""
        return Approximate(self.epsilon, self.delta)

    def respond(self, value: int, *, noise: NoiseSource) -> NDArray[np.int64]:
        """Return how many messages one user sends per bucket; they need a shuffler."""
        sent = np.searchsorted(self.table, noise.uniform_words(self.buckets), side="right")
        sent = np.minimum(sent, len(self.table) - 1).astype(np.int64)
        named = 0 <= value < self.buckets
        if self.complement:
            sent += 1
        if named:
            sent[value] += -1 if self.complement else 1
        return sent

    def messages(
        self, values: NDArray[np.int64], *, account: Account | None = None
    ) -> NDArray[np.int64]:
        """Return how many messages all users send for each bucket; the shuffler passes them on."""
        values = candidates_of(values)
        if len(values) != self.users:
            raise NotEnoughUsersError(
                f"Expected {self.users} users, which is part of the promise, got {len(values)}."
            )
        noise = noise_for(Account.of_release(account, self), self.event)
        totals = np.zeros(self.buckets, dtype=np.int64)
        for value in values.tolist():
            totals += self.respond(value, noise=noise)
        return totals

    def counts(self, totals: NDArray[np.int64]) -> NDArray[np.float64]:
        """Return unbiased counts of the users who name each bucket."""
        added = self.noise.mean * self.users / self.honest_users
        counts = np.asarray(totals - added, dtype=np.float64)
        return self.users - counts if self.complement else counts

    def bounds(self, totals: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return counts that are never below the truth, or never above it with ``complement``."""
        return self.users - totals if self.complement else totals

    def histogram(self, totals: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return ``bounds`` without negative counts: with ``complement`` the paper's histogram."""
        return np.maximum(self.bounds(totals), 0)

    def error_bound(self, beta: float) -> int:
        """Return the error of a bucket's bound, exceeded with probability at most ``beta``."""
        whole = CountNoise(self.noise.r * self.users / self.honest_users, self.noise.p)
        return whole.quantile(beta)

    def histogram_bound(self, beta: float) -> int:
        """Return how far all of ``histogram`` is from the truth at once, by Lemma 37.

        With ``complement`` an empty bucket is exact, and at most ``users`` are not empty.
        """
        _validate.probability(beta=beta)
        return self.error_bound(beta / (self.users if self.complement else self.buckets))

    def choose(self, totals: NDArray[np.int64]) -> int:
        """Return the bucket with the largest count among *all* buckets; the first one of several.

        All buckets are compared, because leaving out empty ones would reveal which buckets are not
        empty.
        """
        return int(np.argmax(self.counts(totals)))
