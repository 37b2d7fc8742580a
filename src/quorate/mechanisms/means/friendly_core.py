"""A friendly core: the mean of users who all have more than half of the others nearby.

When almost all users lie in one small ball whose place is unknown, the mean of those with enough
near neighbours hardly moves when one user changes, *wherever* the ball lies. A noisy test first
makes sure that the data are like that; only then is the mean released. This finds a centre in one
step where shrinking a ball from the whole range would need more users than there are.

Everything that carries the proof is a whole number: users are first rounded to an integer grid,
squared distances and weighted sums are sums of integers below 2^53, which floating point computes
exactly in any order. The proof is in ``docs/proofs/friendly_core.md``.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from statistics import NormalDist

import numpy as np
from numpy.typing import NDArray

from quorate import _validate
from quorate._validate import exact, root_up
from quorate.accounting.account import Account
from quorate.core.moves import Moves
from quorate.core.sealed import (
    Closed,
    Sealed,
    SealedRows,
    check_rows,
    opened_rows,
    seal,
)
from quorate.exceptions import ParameterError, SealedError
from quorate.guarantees import DISCRETENESS, Approximate, Composed, Event, Gaussian, Relation

__all__ = [
    "CoreMean",
    "CoreTest",
    "Friends",
    "IntegerUsers",
    "friends_within",
    "unfriendly_distance",
]

# Integers up to here are exact as floats.
_EXACT = 2.0**53
# The core's mean is rounded to this fraction of the users' grid.
_FINENESS = 2**8
# A block of rows of the matrix of distances: 32 megabytes.
_BLOCK = 2**22


@dataclass(frozen=True)
class IntegerUsers:
    """Users rounded to multiples of ``step``: ``steps`` holds whole numbers as floats.

    Examples
    --------
    >>> users = IntegerUsers.rounded(np.array([[0.26, -0.6]]), radius=1.0, step=0.125)
    >>> users.steps
    array([[ 2., -5.]])
    >>> IntegerUsers.largest_radius(step=0.125, dimension=2) > 1e6
    True
    """

    steps: NDArray[np.float64]
    step: float

    @classmethod
    def rounded(cls, vectors: NDArray[np.float64], *, radius: float, step: float) -> IntegerUsers:
        """Round ``vectors``; each coordinate is first cut to ``radius``, NaN counts as 0."""
        if not radius <= cls.largest_radius(step=step, dimension=vectors.shape[1]):
            raise ParameterError(
                f"Expected a step of which at most {math.sqrt(_EXACT / vectors.shape[1]) / 4:.3g} "
                f"fit into radius={radius!r}, got step={step!r}."
            )
        steps = np.divide(vectors, step)
        np.clip(steps, -radius / step, radius / step, out=steps)
        steps[np.isnan(steps)] = 0.0
        return cls(np.rint(steps, out=steps), step)

    @staticmethod
    def largest_radius(*, step: float, dimension: int) -> float:
        """Return the largest radius at which all sums of squares are exact."""
        return step * (math.sqrt(_EXACT / dimension) / 4 - 1)


def friends_within(
    users: IntegerUsers, radii: tuple[float, ...] | NDArray[np.float64]
) -> NDArray[np.int64]:
    """Count, for each user and each radius, who lies within the radius (oneself included).

    The comparison is exact: squared distances in steps are integers below 2^53.

    >>> users = IntegerUsers(np.array([[0.0], [3.0], [8.0]]), step=0.5)
    >>> friends_within(users, (1.5, 4.0))
    array([[2, 2, 1],
           [3, 3, 3]])
    """
    q = users.steps
    n = len(q)
    squares = np.vecdot(q, q)
    limits = [float(_squared_limit(radius, users.step)) for radius in radii]
    counts = np.empty((len(limits), n), dtype=np.int64)
    size = max(1, _BLOCK // n)
    for start in range(0, n, size):
        rows = slice(start, min(start + size, n))
        apart = q[rows] @ q.T
        apart *= -2.0
        apart += squares[rows, None]
        apart += squares
        for row, limit in zip(counts, limits, strict=True):
            row[rows] = np.count_nonzero(apart <= limit, axis=1)
    return counts


def unfriendly_distance(friends: NDArray[np.int64], *, top: int, few: int) -> int:
    """Return how many users must change before more than ``few`` lack ``top + 1`` friends.

    Precisely: the largest t >= 0 such that t plus the number of users with fewer than
    ``top + 1 + t`` friends is at most ``few``; -1 if there is none.

    >>> unfriendly_distance(np.array([9, 9, 9, 9, 9, 9, 9, 9, 9, 1]), top=6, few=3)
    2
    >>> unfriendly_distance(np.array([5, 5, 5, 5, 5, 5, 5, 5, 5, 5]), top=6, few=3)
    -1
    """
    t = np.arange(few + 1)
    lacking = np.searchsorted(np.sort(friends), top + 1 + t, side="left")
    kept = np.flatnonzero(lacking + t <= few)
    return int(kept[-1]) if kept.size else -1


class Friends(Closed):
    """Users on a grid, and how many each of them has within one radius; nobody outside reads them.

    One user moves everybody's number of friends, so these are no rows of which each user owns one:
    only a test and a mean of the core, whose proof says what they tell, see them.

    Examples
    --------
    >>> from quorate.core.sealed import seal_rows
    >>> rows = seal_rows(np.zeros((1000, 2)), Relation.REPLACE)
    >>> (friends,) = Friends.within((1.0,), rows, reach=4.0, step=0.25)
    >>> CoreTest(top=800, few=100, noise_multiplier=5.0, delta=1e-7).release(friends)
    True
    """

    __slots__ = ("__counts", "__passed", "__users", "among", "radius", "step")
    _how = "Give it to a CoreTest and, if that passes, to a CoreMean."

    def __init__(
        self,
        users: IntegerUsers,
        counts: NDArray[np.int64],
        *,
        radius: float,
        among: object | None = None,
    ) -> None:
        self.__users, self.__counts = users, counts
        self.__passed: set[tuple[int, int]] = set()
        self.radius, self.step, self.among = radius, users.step, among

    @classmethod
    def within(
        cls, radii: tuple[float, ...], rows: SealedRows, *, reach: float, step: float
    ) -> list[Friends]:
        """Round one vector a user, cut to ``reach``, to the grid; count friends for each radius."""
        check_rows(rows, Relation.REPLACE)
        if rows.paired:
            raise SealedError("Expected one row a user, got one a pair.")
        users = IntegerUsers.rounded(opened_rows(rows), radius=reach, step=step)
        counts = friends_within(users, radii)
        return [
            cls(users, each, radius=radius, among=rows.among)
            for radius, each in zip(radii, counts, strict=True)
        ]

    def distance(self, *, top: int, few: int) -> Sealed:
        """Return :func:`unfriendly_distance`, which one user moves by at most 1."""
        found = unfriendly_distance(self.__counts, top=top, few=few)
        return seal([found], Moves.of_counts(1), Relation.REPLACE, self.among)

    def _passed(self, top: int, few: int) -> None:
        self.__passed.add((top, few))

    def mean(self, core: CoreMean) -> Sealed:
        """Return the mean of the core, which moves as ``core`` proves: after a passed test."""
        if (core.top, core.few) not in self.__passed or (core.radius, core.step) != (
            self.radius,
            self.step,
        ):
            raise SealedError(
                "The mean of a core is released after a test of the same users, radius and "
                "numbers of friends has passed, and not otherwise."
            )
        if len(self.__counts) != core.n_users:
            raise ParameterError(f"Expected {core.n_users} users, got another number.")
        return core.sealed(core.rounded_mean(self.__users, self.__counts), self.among)

    def __repr__(self) -> str:
        return f"Friends(radius={self.radius!r})"


@dataclass(frozen=True, kw_only=True)
class CoreTest:
    r"""Test whether almost all users have many friends, so that the core may be averaged.

    Privacy
    -------
    guarantee : Gaussian DP with parameter :math:`1/z` for :math:`z` = ``noise_multiplier``; passes
        with probability at most ``delta`` if the distance is -1
    neighbours : replace all records of one user
    trust : central
    public : ``n_users``, ``top``, ``few``
    numerics : exact
    proof : ``docs/proofs/friendly_core.md``: replacing one user moves every other user's number of
        friends by at most 1, hence :func:`unfriendly_distance` by at most 1. The threshold is
        :math:`\lceil \sigma z_\delta \rceil`, and
        :math:`P(Z \ge k) \le Q((k-1)/\sigma)` for the discrete Gaussian.

    Utility
    -------
    Passes with probability at least :math:`1-\beta` once the distance is ``needed(beta)``.

    Complexity
    ----------
    Time :math:`O(n \log n)` after :func:`friends_within`, which takes :math:`O(n^2 d)`.

    Parameters
    ----------
    top : int
        Users with this many friends have full weight.
    few : int
        How many users may have less.
    noise_multiplier : float
    delta : float
        Probability of passing wrongly.

    References
    ----------
    .. [1] Tsfadia, Cohen, Kaplan, Mansour, Stemmer. FriendlyCore: practical differentially private
       aggregation. ICML 2022. (The idea; weights, test and constants here are different.)
    .. [2] Dwork, Lei. Differential privacy and robust statistics. STOC 2009. (Propose, test,
       release.)

    Examples
    --------
    >>> test = CoreTest(top=700, few=150, noise_multiplier=5.0, delta=1e-7)
    >>> test.release_values(np.full(1000, 990)), test.release_values(np.full(1000, 600))
    (True, False)
    """

    top: int
    few: int
    noise_multiplier: float
    delta: float

    def __post_init__(self) -> None:
        _validate.positive_integer(top=self.top)
        _validate.non_negative_integer(few=self.few)
        _validate.positive(noise_multiplier=self.noise_multiplier)
        _validate.probability(delta=self.delta)

    @property
    def relation(self) -> Relation:
        """The neighbours for which the distance moves by at most 1."""
        return Relation.REPLACE

    @property
    def sensitivity(self) -> int:
        """How far one user moves the distance."""
        return 1

    @property
    def event(self) -> Event:
        """What the accountant prices."""
        return Composed((Gaussian(self.noise_multiplier), Approximate(0.0, self.delta)))

    @property
    def sigma(self) -> float:
        """Parameter of the discrete Gaussian noise, rounded up."""
        return root_up(exact(self.noise_multiplier) ** 2 + DISCRETENESS)

    @property
    def threshold(self) -> int:
        """Noisy distance from which on the test passes."""
        return passing_threshold(self.sigma, self.delta)

    def release(self, friends: Friends, *, account: Account | None = None) -> bool:
        """Return whether the noisy distance reaches the threshold."""
        passed = self._release(friends.distance(top=self.top, few=self.few), account)
        if passed:
            friends._passed(self.top, self.few)
        return passed

    def release_values(self, friends: NDArray[np.int64], *, account: Account | None = None) -> bool:
        """Return the same for numbers of friends of one's own."""
        distance = unfriendly_distance(friends, top=self.top, few=self.few)
        return self._release(seal([distance], Moves.of_counts(1), self.relation), account)

    def _release(self, distance: Sealed, account: Account | None) -> bool:
        paying = Account.of_release(account, self)
        paying.pay(Approximate(0.0, self.delta))
        return bool(paying.gaussian(distance, sigma=self.sigma)[0] >= self.threshold)

    def needed(self, beta: float) -> int:
        """Return the distance at which the test passes with probability ``1 - beta``."""
        _validate.probability(beta=beta)
        return self.threshold + math.ceil(1 - self.sigma * NormalDist().inv_cdf(beta))


def passing_threshold(sigma: float, delta: float) -> int:
    """Return k such that -1 plus discrete Gaussian noise reaches k with probability <= delta.

    -1 + Z >= k means Z >= k + 1, which has probability at most Q(k / sigma).

    >>> passing_threshold(10.0, 1e-7)
    52
    """
    # The enlargement is far beyond the error of the inverse, which is below 1e-8.
    return math.ceil(-sigma * NormalDist().inv_cdf(delta) * (1 + 1e-6))


@dataclass(frozen=True, kw_only=True)
class CoreMean:
    r"""Release the mean of the core, weighted by friendliness; only after a passed test.

    A user with ``f`` friends has the weight
    :math:`p = \min(1, \max(0, (f - h)/a))` with :math:`h = \lfloor n/2 \rfloor + 1` and
    :math:`a` = ``top`` :math:`- h`.

    Privacy
    -------
    guarantee : Gaussian DP with parameter :math:`1/z` for :math:`z` = ``noise_multiplier``, on data
        whose distance (or a neighbour's) is at least 0; nothing otherwise
    neighbours : replace all records of one user
    trust : central
    public : ``n_users``, ``radius``, ``step``, ``top``, ``few``, ``dimension``
    numerics : exact
    proof : ``docs/proofs/friendly_core.md``. Two users of positive weight share a friend who is in
        both data sets, so they are within :math:`2r`; at most ``few`` weights besides the replaced
        user's can change, by at most :math:`1/a`; the weights add up to at least
        :math:`n` - ``few``. So the mean moves by at most
        :math:`2r(1 + few/a)/(n - few)`, plus :math:`\sqrt d` units for the rounding of its
        coordinates.

    Utility
    -------
    Noise of standard deviation ``standard_error`` in each coordinate.

    Complexity
    ----------
    Time :math:`O(n d)`.

    Parameters
    ----------
    n_users, dimension : int
    radius : float
        Distance up to which two users are friends.
    step : float
        Grid of :class:`IntegerUsers`.
    top, few : int
        As in :class:`CoreTest`.
    noise_multiplier : float

    References
    ----------
    .. [1] Tsfadia, Cohen, Kaplan, Mansour, Stemmer. FriendlyCore: practical differentially private
       aggregation. ICML 2022.

    Examples
    --------
    >>> users = IntegerUsers(np.full((1000, 2), 40.0), step=0.25)
    >>> core = CoreMean(n_users=1000, dimension=2, radius=1.0, step=0.25, top=800, few=100,
    ...                 noise_multiplier=5.0)
    >>> friends = friends_within(users, (1.0,))[0]
    >>> bool(np.all(abs(core.release_values(users, friends) - 10.0) < 0.5))
    True
    """

    n_users: int
    dimension: int
    radius: float
    step: float
    top: int
    few: int
    noise_multiplier: float

    def __post_init__(self) -> None:
        _validate.positive_integer(n_users=self.n_users, dimension=self.dimension, top=self.top)
        if self.n_users > 2**18:
            raise ParameterError(f"Expected n_users <= 2^18, got n_users={self.n_users!r}.")
        _validate.positive(
            radius=self.radius, step=self.step, noise_multiplier=self.noise_multiplier
        )
        if not (self.half < self.top <= self.n_users and 0 <= 2 * self.few < self.n_users):
            raise ParameterError(
                f"Expected {self.half} < top <= n_users={self.n_users} and 0 <= few < n_users / 2, "
                f"got top={self.top!r} and few={self.few!r}."
            )

    @property
    def relation(self) -> Relation:
        """The neighbours for which the mean moves by at most the sensitivity."""
        return Relation.REPLACE

    @property
    def half(self) -> int:
        """Number of friends up to which a user has weight 0."""
        return self.n_users // 2 + 1

    @property
    def sensitivity(self) -> float:
        """Largest move of the rounded mean, in L2 norm and in units of ``step / 256``; upwards."""
        slope = Fraction(self.few, self.top - self.half)
        reach = Fraction(_squared_limit(self.radius, self.step))
        factor = 2 * _FINENESS * (1 + slope) / (self.n_users - self.few)
        moved = float(factor) * math.sqrt(reach) + math.sqrt(self.dimension)
        return moved * (1 + 1e-12)

    @property
    def event(self) -> Event:
        """What the accountant prices."""
        return Gaussian(self.noise_multiplier)

    @property
    def sigma(self) -> float:
        """Parameter of the discrete Gaussian noise, in units of ``step / 256``."""
        return root_up((exact(self.noise_multiplier) * exact(self.sensitivity)) ** 2 + DISCRETENESS)

    @property
    def standard_error(self) -> float:
        """Standard deviation of the noise in each coordinate."""
        return self.sigma * self.step / _FINENESS

    def release(self, friends: Friends, *, account: Account | None = None) -> NDArray[np.float64]:
        """Return the noisy mean of the core, as an offset in the units of the data."""
        return self._release(friends.mean(self), account)

    def release_values(
        self,
        users: IntegerUsers,
        friends: NDArray[np.int64],
        *,
        account: Account | None = None,
    ) -> NDArray[np.float64]:
        """Return the same for users of one's own, of whom the caller knows that they are close."""
        return self._release(self.sealed(self.rounded_mean(users, friends)), account)

    def _release(self, mean: Sealed, account: Account | None) -> NDArray[np.float64]:
        noisy = Account.of_release(account, self).gaussian(mean, sigma=self.sigma)
        return np.asarray(noisy * (self.step / _FINENESS), dtype=np.float64)

    def sealed(self, mean: NDArray[np.int64], among: object | None = None) -> Sealed:
        """Seal a mean of the core, which one user moves by at most the sensitivity."""
        reach = exact(self.sensitivity)
        moves = Moves(self.dimension * reach, reach**2, reach, 2 * reach)
        return seal(mean, moves, self.relation, among)

    def rounded_mean(self, users: IntegerUsers, friends: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return the core's mean in units of ``step / 256``; an empty core has the mean 0."""
        weights = np.clip(friends - self.half, 0, self.top - self.half)
        total = int(weights.sum())
        if total == 0:
            return np.zeros(self.dimension, dtype=np.int64)
        # Below n^2 / 2 times 2^25 steps: exact in 64 bits for up to 2^18 users.
        sums = weights @ users.steps.astype(np.int64)
        return np.array([_rounded(_FINENESS * int(each), total) for each in sums], dtype=np.int64)


def _squared_limit(radius: float, step: float) -> int:
    """Return the largest integer that is at most (radius / step)^2, computed exactly."""
    return int((Fraction(radius) / Fraction(step)) ** 2)


def _rounded(numerator: int, denominator: int) -> int:
    """Return the nearest integer to a quotient of integers."""
    return (2 * numerator + denominator) // (2 * denominator)
