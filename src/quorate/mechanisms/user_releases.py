"""The private releases of a fit: radii, clipped means, numbers of users and records.

Everything a model learns about people passes through :class:`UserReleases`. It has the budget of
the run: a step that needs more than is left raises an error, so no branch can spend more than was
declared. Radii are chosen among the powers of the square root of two from 2^-32 to 2^32, so no
scale has to be stated.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import lru_cache, partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from quorate.core.account.account import Account
from quorate.core.bounds.grid import Ball, Bound, Grid, Interval
from quorate.core.guarantees import Relation
from quorate.core.people import People
from quorate.core.users import UserData
from quorate.core.users.crowd import Statistic, encode_users
from quorate.core.users.store import row_lengths
from quorate.mechanisms.search.rough_records import RECORD_LADDER
from quorate.mechanisms.sums import GaussianSum, NoisySearch, choose_grid, looks_needed
from quorate.mechanisms.user_sample import UserSample

__all__ = [
    "LARGEST_SEARCH",
    "NARROW",
    "WIDE",
    "BoundedVectors",
    "ReleasedMean",
    "UserReleases",
    "UserVectors",
    "bounded_mean",
    "cut_share",
    "search_square",
    "typical_records",
]

Vector = NDArray[np.float64]
# One vector a user, (n_users, dimension); nobody needs to bound it.
UserVectors = Callable[[UserData], NDArray[Any]]

WIDE = np.arange(-32.0, 32.0, 0.5)
"""Candidates, as powers of two, when nothing is known about a scale."""

NARROW = np.arange(-5.5, 0.75, 0.25)
"""Candidates relative to a radius that was released before."""

# Candidates when a public guess is at hand, and how many looks at them there are at most.
_WIDENING = np.arange(-32.0, 33.0, 2.0)
_MOST_LOOKS = 9

_LOG_GRID = Grid(Interval(-64.0, 64.0), step=2.0**-10)
_COUNT_SHARE = Fraction(3, 100)
LARGEST_SEARCH = 0.08
"""Share of the squared budget that a search may cost, however few the users."""
_LARGEST_SHARE = 0.04
_ALWAYS_ROOM = 2**27


@dataclass(frozen=True)
class BoundedVectors:
    """Vectors that are clipped to ``bound``.

    >>> BoundedVectors(UserData.user_means, Ball(1.0, dimension=2)).bound.dimension
    2
    """

    vectors: UserVectors
    bound: Bound

    def __call__(self, users: UserData) -> NDArray[Any]:
        """Return the vectors before clipping."""
        return self.vectors(users)


@dataclass(frozen=True)
class _LogNorms:
    """The exponent of the power of two near each user's L2 norm; NaN and zero get the smallest."""

    vectors: UserVectors
    bound: Bound = _LOG_GRID.bound

    def __call__(self, users: UserData) -> Vector:
        norms = row_lengths(self.vectors(users))
        norms = np.where(np.isnan(norms), 0.0, norms)
        return np.asarray(np.log2(np.clip(norms, 2.0**-64, 2.0**64)))[:, None]


def cut_share(n_users: float, mu: float) -> float:
    """Return the fraction of users outside of the clipping radius, from public numbers.

    For few users it is one half: then the quantile can be estimated in spite of the noise, and a
    smaller radius means less noise. For many users it is a tenth, because clipping causes bias.

    >>> cut_share(500, 0.24), round(cut_share(2000, 0.24), 3), cut_share(100_000, 0.24)
    (0.5, 0.25, 0.1)
    """
    return min(0.5, max(0.1, 120.0 / (max(n_users, 1.0) * mu)))


def search_square(
    candidates: int, *, n_users: float, mu: float, outside: float | None = None
) -> float:
    """Return the part of ``mu`` squared that a search among ``candidates`` radii costs.

    The noise of one comparison is a quarter of the fraction left outside (by default
    :func:`cut_share`). For few users it is limited by 8 % of the budget.

    >>> share = search_square(128, n_users=5000, mu=0.24) / 0.24**2
    >>> round(share, 4)
    0.0078
    """
    looks = looks_needed(candidates)
    cut = cut_share(n_users, mu) if outside is None else outside
    noise = max(n_users, 1.0) * cut / 4.0
    return min(looks / noise**2, LARGEST_SEARCH * mu**2)


@dataclass(frozen=True)
class ReleasedMean:
    """A released mean over users and the standard deviation of its noise in each coordinate."""

    value: Vector
    noise: float


@dataclass(frozen=True, kw_only=True)
class UserReleases:
    """Releases about the users of one data set, through one account.

    Parameters
    ----------
    data : People
    account : Account
        The account of all draws.
    n_users : float
        Public under ``Relation.REPLACE``; a released count under add/remove. See :meth:`start`.
    sample : UserSample, optional
        The minibatches that the account is reserved for, if any.

    Examples
    --------
    >>> people = UserData(np.arange(4000.0)[:, None] % 2, offsets=np.arange(4001))
    >>> account = Account.open(epsilon=5.0, delta=1e-6)
    >>> run = UserReleases.start(People(people, account.relation), account)
    >>> radius = run.radius(UserData.user_means, WIDE, dimension=1)
    >>> 0.9 < radius < 1.5
    True
    >>> mean = run.mean(UserData.user_means, dimension=1, radius=radius, square=0.5)
    >>> bool(abs(mean.value[0] - 0.5) < 0.03)
    True
    """

    data: People = field(repr=False)
    account: Account
    n_users: float
    sample: UserSample | None = None

    @classmethod
    def start(
        cls, data: People, account: Account, *, sample: UserSample | None = None
    ) -> UserReleases:
        """Begin a run; under add/remove the number of users is released first."""
        if account.relation is Relation.REPLACE:
            n_users = max(1.0, float(data.n_users))
        else:
            grid = Grid(Interval(0.0, 1.0, centre=0.0), step=2.0**-28)
            multiplier = account.multiplier(_COUNT_SHARE * account.square)
            count = GaussianSum(grid=grid, noise_multiplier=multiplier, relation=account.relation)
            totals = data.total(BoundedVectors(_ones, grid.bound), grid)
            n_users = max(1.0, float(count.release(totals, count=0.0, account=account)[0]))
        return cls(data=data, account=account, n_users=n_users, sample=sample)

    @property
    def relation(self) -> Relation:
        """The neighbouring relation of the account."""
        return self.account.relation

    def radius(
        self,
        vectors: UserVectors,
        exponents: Vector,
        *,
        dimension: int,
        unit: float = 1.0,
        outside: float | None = None,
    ) -> float:
        """Release a radius that contains all users' vectors except about a share ``outside``.

        By default this is :func:`cut_share`. ``exponents`` are the candidates as powers of two,
        times ``unit``.
        """
        mu = self.account.mu
        cut = cut_share(self.n_users, mu) if outside is None else outside
        square = search_square(exponents.size, n_users=self.n_users, mu=mu, outside=cut)
        looks = max(1, looks_needed(exponents.size))
        shifted = exponents + math.log2(unit)
        search = NoisySearch(
            thresholds=shifted / _LOG_GRID.step,
            target=(1.0 - cut) * self.n_users,
            noise_multiplier=self.account.multiplier(square, count=looks),
            relation=self.relation,
        )
        counts = self.data.counts(
            partial(_log_steps, vectors=vectors), search.thresholds, dimension=dimension
        )
        found = search.release_counts(counts, account=self.account)
        return float(2.0 ** shifted[found])

    def widen(self, vectors: UserVectors, *, guess: float, dimension: int, square: float) -> float:
        """Release a radius that contains about half of the users' vectors, up to a factor of four.

        It is a doubling search from ``guess``, then a bisection, with few private comparisons if
        the guess is good. Each costs ``square``; there are at most nine.

        >>> people = UserData(np.full((900, 1), 300.0), offsets=np.arange(901))
        >>> account = Account.open(epsilon=5.0, delta=1e-6)
        >>> run = UserReleases.start(People(people, account.relation), account)
        >>> run.widen(UserData.user_means, guess=1.0, dimension=1, square=0.02)
        1024.0
        """
        exponents = _WIDENING + math.log2(guess)
        thresholds = exponents / _LOG_GRID.step
        counts = self.data.counts(
            partial(_log_steps, vectors=vectors), thresholds, dimension=dimension
        )
        low, high = -1, exponents.size - 1
        place, stride = exponents.size // 2, 1
        for _ in range(_MOST_LOOKS):
            # One look is a search between this radius and the next one, which holds by default.
            look = NoisySearch(
                thresholds=thresholds[place : place + 2],
                target=self.n_users / 2.0,
                noise_multiplier=self.account.multiplier(square),
                relation=self.relation,
            )
            if look.release_counts(counts[place : place + 2], account=self.account) == 0:
                high = place
            else:
                low = place
            if high - low <= 1:
                break
            if high == exponents.size - 1:
                place = min(low + stride, high - 1)
            else:
                place = max(high - stride, 0) if low < 0 else (low + high) // 2
            stride *= 2
        return float(2.0 ** exponents[high])

    def once(self, vectors: UserVectors, *, dimension: int) -> tuple[UserReleases, UserVectors]:
        """Return a run on the same vectors, which are computed once if they fit into memory.

        >>> people = UserData([[1.0], [5.0], [6.0]], offsets=[0, 1, 3])
        >>> account = Account.open(epsilon=1.0, delta=1e-6)
        >>> run = UserReleases.start(People(people, account.relation), account)
        >>> held, vectors = run.once(UserData.user_means, dimension=1)
        >>> held.data.each(vectors)
        SealedRows(shape of a row=(1,), one row a user)
        """
        people, kept = self.data.keeping(vectors, dimension=dimension)
        return replace(self, data=people), kept

    def mean(
        self, vectors: UserVectors, *, dimension: int, radius: float, square: float
    ) -> ReleasedMean:
        """Release the mean of the users' vectors, clipped to ``radius``, at the cost ``square``."""
        return self.mean_by(
            self.noisy_sum(dimension=dimension, radius=radius, square=square), vectors
        )

    def mean_by(self, mechanism: GaussianSum, vectors: UserVectors) -> ReleasedMean:
        """Release the mean of the users' vectors by a mechanism of :meth:`noisy_sum`."""
        clipped = BoundedVectors(vectors, mechanism.grid.bound)
        return _mean_by(mechanism, self.data, clipped, self.account, self.n_users)

    def noisy_sum(self, *, dimension: int, radius: float, square: float) -> GaussianSum:
        """Return the mechanism for a mean of vectors clipped to ``radius``; it costs ``square``."""
        multiplier = self.account.multiplier(square)
        return _noisy_sum(_ball(radius, dimension), multiplier, self.n_users, self.relation)

    def draw_ahead(
        self, squares: Iterable[float], *, dimension: int, radius: float
    ) -> list[GaussianSum]:
        """Return the mechanisms of later means; their noise is drawn now and charged when used.

        >>> people = UserData(np.zeros((900, 1)), offsets=np.arange(901))
        >>> account = Account.open(epsilon=5.0, delta=1e-6)
        >>> run = UserReleases.start(People(people, account.relation), account)
        >>> first, second = run.draw_ahead([0.1, 0.2], dimension=1, radius=1.0)
        >>> bool(abs(run.mean_by(second, UserData.user_means).value[0]) < 0.1)
        True
        >>> run.account.event.noise_multiplier == second.noise_multiplier
        True
        """
        known = partial(self.noisy_sum, dimension=dimension, radius=radius)
        sums = [known(square=square) for square in squares]
        self.account.draw_ahead([each.sigma for each in sums], size=dimension)
        return sums


def typical_records(run: UserReleases, records: int | str) -> float:
    """Return the public number, or release the power of two that about half of the users reach.

    Examples
    --------
    >>> people = UserData(np.zeros((30_000, 1)), offsets=np.arange(0, 30_001, 6))
    >>> account = Account.open(epsilon=5.0, delta=1e-6)
    >>> run = UserReleases.start(People(people, account.relation), account)
    >>> typical_records(run, "auto"), typical_records(run, 7)
    (8.0, 7.0)
    """
    if not isinstance(records, str):
        return float(records)
    looks = looks_needed(len(RECORD_LADDER))
    square = min(looks / (run.n_users / 8.0) ** 2, _LARGEST_SHARE * float(run.account.square))
    search = NoisySearch(
        thresholds=np.array(RECORD_LADDER, dtype=np.float64),
        target=run.n_users / 2.0,
        noise_multiplier=run.account.multiplier(square, count=looks),
        relation=run.relation,
    )
    counts = run.data.counts(UserData.record_counts, search.thresholds)
    return float(RECORD_LADDER[search.release_counts(counts, account=run.account)])


def bounded_mean(
    data: People,
    statistic: Statistic,
    *,
    multiplier: float,
    account: Account,
    n_users: float,
) -> ReleasedMean:
    """Release the sum of a bounded statistic over ``n_users``, with Gaussian noise.

    >>> from quorate.data.engines import UserMeans
    >>> people = UserData(np.ones((1000, 1)), offsets=np.arange(1001))
    >>> statistic = UserMeans(Ball(1.0, dimension=1))
    >>> mean = bounded_mean(
    ...     People(people, Relation.REPLACE),
    ...     statistic,
    ...     multiplier=1.0,
    ...     account=Account.open(epsilon=9.0, delta=1e-6),
    ...     n_users=1000.0,
    ... )
    >>> bool(abs(mean.value[0] - 1.0) < 0.02), round(mean.noise, 6)
    (True, 0.002)
    """
    mechanism = _noisy_sum(statistic.bound, multiplier, n_users, account.relation)
    return _mean_by(mechanism, data, statistic, account, n_users)


def _mean_by(
    mechanism: GaussianSum, data: People, statistic: Statistic, account: Account, n_users: float
) -> ReleasedMean:
    totals = data.total(statistic, mechanism.grid)
    total = mechanism.release(totals, count=0.0, account=account)
    return ReleasedMean(total / n_users, mechanism.standard_error / n_users)


def _log_steps(users: UserData, vectors: UserVectors) -> NDArray[np.int64]:
    """Return the norm of each user's vector, as a power of two in steps of the grid."""
    return encode_users(users, _LogNorms(vectors), _LOG_GRID)[:, 0]


@lru_cache(maxsize=1)
def _ball(radius: float, dimension: int) -> Ball:
    """Return the ball; it is cached, because most steps of a descent use the same one."""
    return Ball(radius, dimension=dimension)


@lru_cache(maxsize=1)
def _roomy_grid(bound: Bound, n_users: float, power: int) -> Grid:
    """Return a grid with room for multipliers below 2^power; most steps use the same one."""
    noise_scale = 2.0 ** min(power, 1023) * bound.l2_diameter
    return choose_grid(bound, n_users=_room(n_users), noise_scale=noise_scale)


def _noisy_sum(bound: Bound, multiplier: float, n_users: float, relation: Relation) -> GaussianSum:
    grid = _roomy_grid(bound, n_users, math.frexp(multiplier)[1])
    return GaussianSum(grid=grid, noise_multiplier=multiplier, relation=relation)


def _ones(users: UserData) -> Vector:
    return np.ones((users.n_users, 1))


def _room(n_users: float) -> int:
    """Return a public upper bound on the number of users, for which sums cannot overflow.

    Under add/remove the released number may be far too small. Whether a sum fits must not depend on
    the true number, so there is always room for very many users.
    """
    return max(_ALWAYS_ROOM, int(2 ** math.ceil(math.log2(max(n_users, 1.0)) + 1.0)))
