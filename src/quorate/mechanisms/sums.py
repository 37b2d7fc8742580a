"""Noisy sums and counts of one bounded contribution per user, with Gaussian noise.

The contributions are clipped and rounded by a public :class:`~quorate.core.bounds.grid.Grid`, so
their sum is an integer vector with an exact integer sensitivity. :func:`choose_grid` finds the
finest grid that has room for the sum and the noise. Noise is discrete and exact. Gaussian noise is
smaller than Laplace noise (:mod:`quorate.mechanisms.laplace`) in many dimensions and composes well.
Private radii are found by a search with noisy counts of distances, one per user or per pair of
users.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike, NDArray

from quorate import _validate
from quorate._validate import exact_ratio, float_down, ratio_root_up, root_up
from quorate.core.account.account import Account
from quorate.core.bounds.grid import MAX_STEPS, SUM_LIMIT, Bound, Grid
from quorate.core.by_hand import rows_by_hand
from quorate.core.guarantees import DISCRETENESS, Event, Gaussian, Relation, Repeated
from quorate.core.sealed import Sealed, SealedRows, check_sealed
from quorate.exceptions import GridOverflowError, ParameterError, SchemaError
from quorate.mechanisms.calibrate import gaussian_multiplier
from quorate.mechanisms.gaussian import GaussianMechanism
from quorate.mechanisms.stated_error import chance_of_each

__all__ = [
    "LARGEST_NOISE",
    "GaussianSum",
    "NoisySearch",
    "NoisySum",
    "choose_grid",
    "fitting_grid",
    "looks_needed",
    "pay_again",
    "public_size",
]

# A sum is below 2^62; noise of this scale stays below 2^61 but for a probability of 1e-27.
LARGEST_NOISE = 2.0**55
# Priced as continuous noise of variance sigma^2 - 4, a discrete Gaussian wastes 6% at 8 steps.
_SMALLEST_SIGMA = 8.0
# Counts are multiplied by this: even little discrete noise is then close to continuous noise.
_FINENESS = 16
# Under add/remove the number of users is private, so grids are made for this many.
_MANY_USERS = 2**31
_HEAD_ROOM = 2**10


class NoisySum:
    """Base of all noisy sums: from contributions to a decoded release."""

    grid: Grid
    relation: Relation

    def release(
        self, totals: Sealed, *, count: float, account: Account | None = None
    ) -> NDArray[np.float64]:
        """Release a noisy sum, given the exact one.

        Parameters
        ----------
        totals : Sealed
            Sum over users of ``grid.encode``, as returned by ``people.total``.
        count : float
            How many times the centre was subtracted: the number of users under ``REPLACE``, where
            it is public; a *private* estimate of it under ``ADD_REMOVE``. It is not used if the
            centre is 0.
        account : Account, optional
            The account to charge; by default a new one for this release.
        """
        check_sealed(totals, Sealed)
        if totals.shape != (self.grid.bound.dimension,):
            raise SchemaError(
                f"Expected one total for each of {self.grid.bound.dimension} coordinates, got an "
                f"array of shape {totals.shape}."
            )
        if self.relation is Relation.REPLACE and 0 < count < math.inf:
            self.grid.check_sum(math.ceil(count))
        paying = Account.of_release(account, self)
        return self.grid.decode(self._add_noise(totals, paying), count=count)

    def release_values(
        self,
        values: ArrayLike,
        *,
        count: float | None = None,
        account: Account | None = None,
    ) -> NDArray[np.float64]:
        """Clip, round and add up one row per user, and release the noisy sum.

        Under ``ADD_REMOVE`` the number of rows is private; ``count`` is then needed unless the
        centre of the bound is 0.
        """
        if count is None and self.relation is Relation.ADD_REMOVE and self.grid.bound.centre.any():
            raise ParameterError(
                "Under ADD_REMOVE the number of users is private, and this bound has a centre "
                "other than 0. Give a private count=, or a bound with centre 0."
            )
        rows = np.asarray(values)
        known = len(rows) if count is None else count
        totals = rows_by_hand(rows, self.relation).total(self.grid)
        return self.release(totals, count=known, account=account)

    def _add_noise(self, sums: Sealed, account: Account) -> NDArray[np.int64]:
        raise NotImplementedError

    def _check(self, name: str) -> None:
        if not isinstance(self.grid, Grid):
            raise ParameterError(f"Expected grid to be a Grid, got grid={self.grid!r}.")
        scale = getattr(self, name)
        if not scale <= LARGEST_NOISE:
            raise GridOverflowError(
                f"Noise of {name} = {scale:.3g} steps may not fit into 62 bits; use "
                "choose_grid(bound, n_users=..., noise_scale=...) for a coarser grid."
            )


@dataclass(frozen=True, kw_only=True)
class GaussianSum(NoisySum, GaussianMechanism):
    r"""Release a sum of bounded contributions with discrete Gaussian noise.

    Every user's contribution is clipped and rounded towards the centre by ``grid``; the integers
    are added up over the users; each total gets independent discrete Gaussian noise whose standard
    deviation is slightly above ``noise_multiplier`` times the L2 sensitivity.

    Privacy
    -------
    guarantee : Gaussian DP with :math:`\mu` = 1 / ``noise_multiplier``, hence
        :math:`(\varepsilon, \delta)`-DP with the :math:`\varepsilon` of ``guarantee_at(delta)``
    neighbours : ``relation``: replace all records of one user, or add or remove all records of one
        user
    trust : central
    public : ``grid``, ``noise_multiplier``, ``relation``, ``count``
    numerics : exact
    proof : Let :math:`x, x'` be the integer totals of neighbours; :math:`\|x-x'\|_2^2 \le \Delta^2`
        = ``sensitivity_squared`` for every input, by the proof in ``docs/proofs/grid.md``. Discrete
        Gaussian noise of parameter :math:`\sigma` is a post-processing of continuous noise of
        variance :math:`\sigma^2 - 4`, up to a factor that the accountant includes
        (``docs/proofs/discrete_gaussian.md``). :math:`\sigma` is the smallest float, found in
        rational arithmetic, with :math:`\sigma^2 - 4 \ge` ``noise_multiplier``:math:`^2 \Delta^2`.
        [1]_

    Utility
    -------
    With probability at least :math:`1-\beta` the L2 norm of the error, relative to the sum of the
    *clipped* contributions, is at most ``norm_bound(beta)``, about :math:`\sigma(\sqrt d +
    \sqrt{2\log(1/\beta)})`, and no coordinate is off by more than ``error_bound(beta)``. Rounding
    adds at most ``grid.rounding_error(n)`` per coordinate.

    Complexity
    ----------
    Time :math:`O(nd)` for n users, :math:`O(d)` draws; memory :math:`O(d)` beside the
    contributions; one message of d integers per engine worker.

    Parameters
    ----------
    grid : Grid
        Bound and resolution of a contribution; the noise must be at least 8 steps wide.
    noise_multiplier : float
        Standard deviation of the noise divided by the L2 sensitivity.
    relation : Relation, default=Relation.REPLACE
    delta : float, default=0.0
        The delta of ``guarantee``; with 0 there is no guarantee, because Gaussian noise is not
        pure.

    References
    ----------
    .. [1] Canonne, Kamath, Steinke. The discrete Gaussian for differential privacy.
       arXiv:2004.00010v5; Proposition 25 for the tail.

    Examples
    --------
    >>> from quorate.core.bounds.grid import Ball
    >>> grid = choose_grid(Ball(1.0, dimension=3), n_users=1000)
    >>> total = GaussianSum.calibrated(grid, epsilon=1.0, delta=1e-6)
    >>> round(total.noise_multiplier, 4), total.guarantee.epsilon
    (4.2247, 1.0)
    >>> bool(np.linalg.norm(total.release_values(np.full((1000, 3), 0.5)) - 500) < 100)
    True
    >>> round(total.norm_bound(0.05), 1)
    23.6
    """

    grid: Grid
    noise_multiplier: float
    relation: Relation = Relation.REPLACE
    delta: float = 0.0

    def __post_init__(self) -> None:
        _validate.positive(noise_multiplier=self.noise_multiplier)
        _validate.delta(delta=self.delta)
        self._check("sigma")
        if self.sigma < _SMALLEST_SIGMA:
            raise ParameterError(
                f"Expected noise of at least 8 steps, got {self.sigma:.3g}: discrete and "
                "continuous noise differ too much below. Use a finer grid: choose_grid."
            )

    @classmethod
    def calibrated(
        cls, grid: Grid, *, epsilon: float, delta: float, relation: Relation = Relation.REPLACE
    ) -> GaussianSum:
        """Return the sum with the smallest noise that satisfies (epsilon, delta)."""
        multiplier = gaussian_multiplier(epsilon, delta)
        return cls(grid=grid, noise_multiplier=multiplier, relation=relation, delta=delta)

    @property
    def sensitivity_squared(self) -> int:
        """Largest squared L2 distance, in steps, between the totals of neighbours."""
        return self.grid.l2_sensitivity_squared(self.relation)

    @property
    def sensitivity(self) -> float:
        """Largest L2 distance, in steps, between the totals of neighbours, rounded up."""
        return root_up(Fraction(self.sensitivity_squared))

    @cached_property
    def sigma(self) -> float:
        """Parameter of the noise in steps, rounded up."""
        top, bottom = exact_ratio(self.noise_multiplier)
        variance = top * top * self.sensitivity_squared + DISCRETENESS * bottom * bottom
        return ratio_root_up(variance, bottom * bottom)

    @property
    def event(self) -> Gaussian:
        """The event for the accountant."""
        return Gaussian(float_down(self.noise_multiplier))

    def error_bound(self, beta: float) -> float:
        """Return a bound on the error of every coordinate, except with probability ``beta``."""
        from scipy.special import ndtri

        # P(|Z| >= m) <= P(|N| >= m - 1) for integers m >= 1: Proposition 25 of [1], both sides.
        tail = chance_of_each(beta, self.grid.bound.dimension)
        return self.grid.step * math.ceil(-self.sigma * float(ndtri(tail / 2)))

    def norm_bound(self, beta: float) -> float:
        """Bound the L2 norm of the error, except with probability ``beta``."""
        from scipy.special import chdtri

        # The same inequality bounds each |Z| by |N| + 1 in law, hence ||Z|| by ||N|| + sqrt(d).
        _validate.probability(beta=beta)
        dimension = self.grid.bound.dimension
        quantile = math.sqrt(float(chdtri(dimension, beta)))
        return self.grid.step * (self.sigma * quantile + math.sqrt(dimension))

    @property
    def standard_error(self) -> float:
        """Standard deviation of the noise in one coordinate, from above."""
        return self.grid.step * self.sigma

    def _add_noise(self, sums: Sealed, account: Account) -> NDArray[np.int64]:
        return account.gaussian(sums, sigma=self.sigma)


def pay_again(account: Account, multiplier: float) -> None:
    """Charge a Gaussian release that an earlier process drew, or may have drawn, without drawing.

    >>> account = Account.open(epsilon=1.0, delta=1e-6)
    >>> pay_again(account, 20.0)
    >>> account.event
    Gaussian(noise_multiplier=20.0)
    """
    account.pay(Gaussian(multiplier))


def looks_needed(candidates: int) -> int:
    """Return the number of noisy counts of a search among ``candidates`` thresholds.

    >>> looks_needed(128), looks_needed(1)
    (7, 0)
    """
    return max(0, math.ceil(math.log2(candidates)))


@dataclass(frozen=True, kw_only=True, eq=False)
class NoisySearch(GaussianMechanism):
    r"""Find the smallest threshold below which about ``target`` values lie.

    Each step counts the values up to one threshold, adds discrete Gaussian noise and compares the
    result with ``target``. The largest threshold is not tested; it is the result if all others
    fail.

    Privacy
    -------
    guarantee : Gaussian DP with parameter :math:`\sqrt{L} / z`, for :math:`L` steps and
        :math:`z` = ``noise_multiplier``; hence :math:`(\varepsilon, \delta)`-DP with the
        :math:`\varepsilon` of ``guarantee_at(delta)``
    neighbours : ``relation``: replace all records of one user, or add or remove all records of one
        user
    trust : central
    public : the thresholds, the target
    numerics : exact
    proof : Each user has one value (or half of the one value of a pair; see
        :mod:`quorate.core.account.secret_pairs`), so each count changes by at most 1. A comparison
        is a Gaussian mechanism of sensitivity 1 (for the discrete noise see
        ``docs/proofs/discrete_gaussian.md``). Later thresholds depend on noisy answers only, so
        adaptive composition applies, and the index is computed from the noisy answers.

    Utility
    -------
    With probability at least :math:`1-\beta` no noise exceeds ``error_bound(beta)``. Then at least
    ``target`` minus that many values are at most the released threshold, and fewer than ``target``
    plus that many are at most the threshold before it.

    Complexity
    ----------
    Time :math:`O(n L)`.

    Parameters
    ----------
    thresholds : array of float
        Increasing candidates.
    target : float
    noise_multiplier : float
        Standard deviation of the noise of each count.
    relation : Relation, default=Relation.REPLACE
    delta : float, default=0.0
        The delta of ``guarantee``; with 0 there is no guarantee, because Gaussian noise is not
        pure.

    References
    ----------
    .. [1] Amin, Kulesza, Munoz, Vassilvitskii. Bounding user contributions: a bias-variance
       trade-off in differential privacy. ICML 2019. (Why a quantile is the radius to search for.)

    Examples
    --------
    >>> from quorate.core.by_hand import rows_by_hand
    >>> search = NoisySearch(thresholds=2.0 ** np.arange(8), target=50, noise_multiplier=1.0)
    >>> search.release(rows_by_hand(np.arange(100.0)))
    6
    """

    thresholds: NDArray[np.float64]
    target: float
    noise_multiplier: float
    relation: Relation = Relation.REPLACE
    delta: float = 0.0

    def __post_init__(self) -> None:
        _validate.positive(noise_multiplier=self.noise_multiplier)
        _validate.one_of(tuple(Relation), relation=self.relation)
        _validate.delta(delta=self.delta)
        _validate.finite(target=self.target)
        thresholds = np.array(self.thresholds, dtype=np.float64)
        if thresholds.ndim != 1 or not thresholds.size or not np.all(np.diff(thresholds) > 0):
            raise ParameterError("Expected increasing thresholds, at least one.")
        thresholds.flags.writeable = False
        object.__setattr__(self, "thresholds", thresholds)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, NoisySearch) and self._key() == other._key()

    def __hash__(self) -> int:
        return hash(self._key())

    def _key(self) -> tuple[object, ...]:
        known = self.target, self.noise_multiplier, self.relation, self.delta
        return (self.thresholds.tobytes(), *known)

    @property
    def looks(self) -> int:
        """Largest number of noisy counts."""
        return looks_needed(self.thresholds.size)

    @property
    def sensitivity(self) -> int:
        """The largest change of a count by one user."""
        return 1

    @property
    def event(self) -> Event:
        """The event for the accountant."""
        return Repeated(Gaussian(self.noise_multiplier), self.looks)

    @property
    def sigma(self) -> float:
        """Standard deviation of the integer noise on ``16 x count``, rounded up."""
        noise, unit = exact_ratio(self.noise_multiplier)
        return ratio_root_up((_FINENESS * noise) ** 2 + DISCRETENESS * unit**2, unit**2)

    def release(self, values: SealedRows, *, account: Account | None = None) -> int:
        """Return the index of the threshold found; NaN counts as infinitely far."""
        check_sealed(values, SealedRows)
        return self.release_counts(values.counts(self.thresholds), account=account)

    def release_counts(self, counts: Sealed, *, account: Account | None = None) -> int:
        """Return the index of the threshold found, from the counts at all thresholds.

        If the values are in parts, each part counts all thresholds in one pass; the search uses few
        of the counts.
        """
        check_sealed(counts, Sealed)
        if counts.shape != self.thresholds.shape:
            raise ParameterError("Expected one count for each threshold.")
        paying = Account.of_release(account, self)
        low, high, sigma = -1, self.thresholds.size - 1, self.sigma
        while high - low > 1:
            middle = (low + high) // 2
            noisy = paying.gaussian(_FINENESS * counts[middle], sigma=sigma)[0] / _FINENESS
            low, high = (low, middle) if noisy >= self.target else (middle, high)
        return high

    def error_bound(self, beta: float) -> float:
        """Bound the noise of all steps, except with probability ``beta``."""
        _validate.probability(beta=beta)
        tail = math.sqrt(2.0 * math.log(2.0 * max(1, self.looks) / beta))
        return tail * self.sigma / _FINENESS


def choose_grid(
    bound: Bound, *, n_users: int, noise_scale: float | None = None, max_steps: int = 2**40
) -> Grid:
    """Return the finest grid on which a noisy sum over ``n_users`` cannot overflow.

    The step is the smallest power of two for which the largest offset has at most ``max_steps``
    steps, and the sum plus 64 noise scales stays 2^10 times below 2^62. (Noise beyond 64 scales has
    a probability below 1e-27.)

    Parameters
    ----------
    n_users : int
        Public: the number of users, or an upper bound of it.
    noise_scale : float, default=the L1 diameter of the bound
        Scale of the noise that will be added, in the units of the data. The default is suitable for
        Laplace noise with every epsilon of at least 1/500, because of the reserve.
    max_steps : int, default=2**40

    Examples
    --------
    >>> from quorate.core.bounds.grid import Ball
    >>> choose_grid(Ball(1.0, dimension=3), n_users=1000).step == 2.0**-40
    True
    """
    _validate.non_negative_integer(n_users=n_users)
    if not (isinstance(max_steps, int) and 2 <= max_steps <= MAX_STEPS):
        raise ParameterError(f"Expected 2 <= max_steps <= 2^52, got max_steps={max_steps!r}.")
    if not isinstance(bound, Bound):
        raise ParameterError(f"Expected bound to be a Bound, got bound={bound!r}.")
    if noise_scale is None:
        noise_scale = bound.l1_diameter
    _validate.non_negative(noise_scale=noise_scale)
    # In integers: every step of a descent chooses a grid, and fractions reduce after each sum.
    top, bottom = exact_ratio(bound.largest_offset)
    noise, unit = exact_ratio(noise_scale)
    reach = int(n_users) * top * unit + 64 * noise * bottom
    step = max(
        _power_of_two_at_least(top, bottom * max_steps),
        _power_of_two_at_least(reach * _HEAD_ROOM, bottom * unit * SUM_LIMIT),
    )
    if not step <= bound.largest_offset:
        raise GridOverflowError(
            f"A sum over n_users={n_users} with noise_scale={noise_scale!r} needs steps larger "
            "than the bound itself; split the users or reduce the noise."
        )
    return Grid(bound, step)


def _power_of_two_at_least(numerator: int, denominator: int) -> float:
    # Half of this power is too small, and its double is not.
    exponent = numerator.bit_length() - denominator.bit_length()
    if numerator << max(0, -exponent) > denominator << max(0, exponent):
        exponent += 1
    return math.ldexp(1.0, exponent) if exponent < 1024 else math.inf


def public_size(n_users: int, relation: Relation) -> int:
    """Return a public upper bound on the number of users, from which grids are computed.

    >>> public_size(100, Relation.REPLACE)
    100
    >>> public_size(100, Relation.ADD_REMOVE) == public_size(101, Relation.ADD_REMOVE)
    True
    """
    return n_users if relation is Relation.REPLACE else _MANY_USERS


def fitting_grid(bound: Bound, *, n_users: int, relation: Relation, noise: float) -> Grid:
    """Return the finest grid for a sum over the users with noise of size ``noise``.

    >>> from quorate.core.bounds.grid import Interval
    >>> known = {"n_users": 10, "relation": Relation.REPLACE}
    >>> fitting_grid(Interval(-1.0, 1.0), noise=1e9, **known).step > 1e-6
    True
    """
    scale = max(bound.l1_diameter, noise)
    return choose_grid(bound, n_users=public_size(n_users, relation), noise_scale=scale)
