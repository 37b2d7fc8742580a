"""Noisy sums of one bounded contribution per user, and noisy counts.

The contributions are clipped and rounded by a public :class:`~quorate.grid.Grid`, so their sum is
an integer vector and its sensitivity an exact integer. Noise is discrete and exact. Laplace noise
gives pure privacy at a cost that grows with the L1 norm; Gaussian noise costs less in many
dimensions and composes well.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike, NDArray

from quorate import _validate
from quorate.accounting.account import Account
from quorate.accounting.calibrate import gaussian_multiplier
from quorate.accounting.compose import guarantee
from quorate.accounting.costs import DISCRETENESS
from quorate.accounting.events import Gaussian
from quorate.accounting.rounding import exact, float_down, float_up, ratio_root_up, root_up
from quorate.exceptions import GridOverflowError, ParameterError, SchemaError
from quorate.grid import Grid
from quorate.guarantees import Guarantee, Relation
from quorate.mechanisms.pure import PureMechanism
from quorate.noise import ambient_noise

__all__ = ["GaussianSum", "LaplaceSum", "NoisyCount"]

# A sum is below 2^62; noise of this scale stays below 2^61 but for a probability of 1e-27.
_LARGEST_SCALE = 2.0**55
# Priced as continuous noise of variance sigma^2 - 4, a discrete Gaussian wastes 6% at 8 steps.
_SMALLEST_SIGMA = 8.0


class _Sum:
    """What both noisy sums share: the way from contributions to a decoded release."""

    grid: Grid
    relation: Relation

    def release(
        self, totals: ArrayLike, *, count: float, account: Account | None = None
    ) -> NDArray[np.float64]:
        """Release a noisy sum, given the exact one.

        Parameters
        ----------
        totals : integers, one per coordinate
            Sum over users of ``grid.encode``, as an engine returns it.
        count : float
            How often the centre was subtracted: the number of users under ``REPLACE``, where it is
            public; a *private* estimate of it under ``ADD_REMOVE``. Irrelevant if the centre is 0.
        account : Account, optional
            What pays for the noise; by default one that holds just this release.
        """
        sums = np.asarray(totals)
        _validate.integer_dtype(totals=sums.dtype)
        if sums.shape != (self.grid.bound.dimension,):
            raise SchemaError(
                f"Expected one total for each of {self.grid.bound.dimension} coordinates, got an "
                f"array of shape {sums.shape}."
            )
        if self.relation is Relation.REPLACE and math.isfinite(count):
            self.grid.check_sum(max(0, math.ceil(count)))
        paying = Account.of_release(account, self)
        return self.grid.decode(self._add_noise(sums, paying), count=count)

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
        return self.release(self.grid.encode_sum(rows), count=known, account=account)

    def _add_noise(self, sums: NDArray[np.int64], account: Account) -> NDArray[np.int64]:
        raise NotImplementedError

    def _check_grid(self) -> None:
        if not isinstance(self.grid, Grid):
            raise ParameterError(f"Expected grid to be a Grid, got grid={self.grid!r}.")

    def _check_scale(self, scale: float, name: str) -> None:
        if not scale <= _LARGEST_SCALE:
            raise GridOverflowError(
                f"Noise of {name} = {scale:.3g} steps may not fit into 62 bits; use "
                "choose_grid(bound, n_users=..., noise_scale=...) for a coarser grid."
            )


class _Laplace(PureMechanism):
    """What a sum and a count with Laplace noise share."""

    @property
    def sensitivity(self) -> int:
        """How far one user moves what the noise is added to."""
        raise NotImplementedError

    @property
    def scale(self) -> float:
        """Scale of the noise (of a sum: in steps), rounded up."""
        return float_up(Fraction(self.sensitivity) / exact(self.epsilon))


@dataclass(frozen=True, kw_only=True)
class LaplaceSum(_Sum, _Laplace):
    r"""Release a sum of bounded contributions with discrete Laplace noise.

    Every user's contribution is clipped and rounded towards the centre by ``grid``; the integers
    are added up over the users; each total gets independent discrete Laplace noise of scale
    L1 sensitivity / ``epsilon``.

    Privacy
    -------
    guarantee : :math:`\varepsilon`-DP, with :math:`\varepsilon` = ``epsilon``
    neighbours : ``relation``: replace all records of one user, or add or remove all records of one
        user
    trust : central
    public : ``grid``, ``epsilon``, ``relation``, ``count``
    numerics : exact
    proof : Let :math:`x, x'` be the integer totals of neighbours and :math:`\Delta` =
        ``sensitivity``; :math:`\|x - x'\|_1 \le \Delta` for every input, by the proof at the top of
        :mod:`quorate.bounds`. The noise has mass proportional to :math:`e^{-|z|/s}`, so the ratio
        of the two probabilities of any output is at most :math:`e^{\Delta/s}` [1]_, and
        :math:`s = \Delta/\varepsilon` is rounded up to a float whose exact value the sampler
        uses. Decoding is post-processing.

    Utility
    -------
    With probability at least :math:`1-\beta` every coordinate is within ``error_bound(beta)``,
    which is :math:`O(\frac{\Delta}{\varepsilon}\log\frac{d}{\beta})`, of the sum of the *clipped*
    contributions. Rounding adds at most ``grid.rounding_error(n)``.

    Complexity
    ----------
    Time :math:`O(nd)` for n users, :math:`O(d)` draws; memory :math:`O(d)` beside the
    contributions; one message of d integers per engine worker.

    Parameters
    ----------
    grid : Grid
        Bound and resolution of a contribution.
    epsilon : float
    relation : Relation, default=Relation.REPLACE

    References
    ----------
    .. [1] Ghosh, Roughgarden, Sundararajan. Universally utility-maximizing privacy mechanisms.
       SIAM J. Comput. 41(6), 2012.

    Examples
    --------
    >>> from quorate.grid import Interval, choose_grid
    >>> grid = choose_grid(Interval(0.0, 10.0), n_users=1000)
    >>> total = LaplaceSum(grid=grid, epsilon=1.0)
    >>> bool(abs(total.release_values(np.full(1000, 4.0))[0] - 4000) < 500)
    True
    >>> round(total.error_bound(0.05), 1), total.guarantee.epsilon
    (30.0, 1.0)
    """

    grid: Grid
    epsilon: float | Fraction
    relation: Relation = Relation.REPLACE

    def __post_init__(self) -> None:
        _validate.positive(epsilon=self.epsilon)
        self._check_grid()
        self._check_scale(self.scale, "scale")

    @property
    def sensitivity(self) -> int:
        """Largest L1 distance, in steps, between the totals of neighbours."""
        return self.grid.l1_sensitivity(self.relation)

    def error_bound(self, beta: float) -> float:
        """Return what no coordinate's error exceeds, except with chance ``beta``.

        The smallest multiple of the step for which this holds: the tail is exact, the coordinates
        are independent.
        """
        return self.grid.step * _laplace_quantile(
            self.scale, _each(beta, self.grid.bound.dimension)
        )

    @property
    def standard_error(self) -> float:
        """Standard deviation of the noise in one coordinate."""
        return self.grid.step * _laplace_deviation(self.scale)

    def _add_noise(self, sums: NDArray[np.int64], account: Account) -> NDArray[np.int64]:
        return account.laplace(sums, sensitivity=self.sensitivity, scale=self.scale)


@dataclass(frozen=True, kw_only=True)
class GaussianSum(_Sum):
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
        = ``sensitivity_squared`` for every input, by the proof at the top of
        :mod:`quorate.bounds`. Discrete Gaussian noise of parameter :math:`\sigma` is a
        post-processing of continuous noise of variance :math:`\sigma^2 - 4`, up to a factor that
        the accountant includes (``docs/proofs/discrete_gaussian.md``). :math:`\sigma` is the
        smallest float, found in rational arithmetic, with
        :math:`\sigma^2 - 4 \ge` ``noise_multiplier``:math:`^2 \Delta^2`. [1]_

    Utility
    -------
    With probability at least :math:`1-\beta` the L2 norm of the error is at most
    ``norm_bound(beta)``, about :math:`\sigma(\sqrt d + \sqrt{2\log(1/\beta)})`, and no coordinate
    errs by more than ``error_bound(beta)``, against the sum of the *clipped* contributions.
    Rounding adds at most ``grid.rounding_error(n)`` per coordinate.

    Complexity
    ----------
    Time :math:`O(nd)` for n users, :math:`O(d)` draws; memory :math:`O(d)` beside the
    contributions; one message of d integers per engine worker.

    Parameters
    ----------
    grid : Grid
        Bound and resolution of a contribution; the noise must be at least 8 steps wide.
    noise_multiplier : float
        Standard deviation of the noise over the L2 sensitivity.
    relation : Relation, default=Relation.REPLACE
    delta : float, default=0.0
        At which ``guarantee`` is stated; with 0 it is "no guarantee", as Gaussian noise has no
        pure one.

    References
    ----------
    .. [1] Canonne, Kamath, Steinke. The discrete Gaussian for differential privacy.
       arXiv:2004.00010v5; Proposition 25 for the tail.

    Examples
    --------
    >>> from quorate.grid import Ball, choose_grid
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
        self._check_grid()
        self._check_scale(self.sigma, "sigma")
        if self.sigma < _SMALLEST_SIGMA:
            raise ParameterError(
                f"Expected noise of at least 8 steps, got {self.sigma:.3g}: discrete and "
                "continuous noise differ too much below. Use a finer grid: choose_grid, or for "
                "votes Grid(Vote(...), step=2.0**-20)."
            )

    @classmethod
    def calibrated(
        cls, grid: Grid, *, epsilon: float, delta: float, relation: Relation = Relation.REPLACE
    ) -> GaussianSum:
        """Return the sum with the smallest noise that keeps (epsilon, delta)."""
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
        top, bottom = exact(self.noise_multiplier).as_integer_ratio()
        variance = top * top * self.sensitivity_squared + DISCRETENESS * bottom * bottom
        return ratio_root_up(variance, bottom * bottom)

    @property
    def event(self) -> Gaussian:
        """What the accountant prices."""
        return Gaussian(float_down(self.noise_multiplier))

    @property
    def guarantee(self) -> Guarantee:
        """The promise of one release at ``delta``."""
        return self.guarantee_at(self.delta)

    def guarantee_at(self, delta: float) -> Guarantee:
        """Return the promise of one release at another delta."""
        return guarantee(
            self.event, delta=delta, relation=self.relation, numerics=ambient_noise().numerics
        )

    def error_bound(self, beta: float) -> float:
        """Return what no coordinate's error exceeds, except with chance ``beta``."""
        from scipy.special import ndtri

        # P(|Z| >= m) <= P(|N| >= m - 1) for integers m >= 1: Proposition 25 of [1], both sides.
        tail = _each(beta, self.grid.bound.dimension)
        return self.grid.step * math.ceil(-self.sigma * float(ndtri(tail / 2)))

    def norm_bound(self, beta: float) -> float:
        """Return what the L2 norm of the error does not exceed, except with chance ``beta``."""
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

    def _add_noise(self, sums: NDArray[np.int64], account: Account) -> NDArray[np.int64]:
        return account.gaussian(
            sums, sensitivity_squared=self.sensitivity_squared, sigma=self.sigma
        )


@dataclass(frozen=True, kw_only=True)
class NoisyCount(_Laplace):
    r"""Release how many users there are, or how many of them have a property.

    Every user counts 0 or 1; the count gets discrete Laplace noise of scale 1 / ``epsilon``.

    Privacy
    -------
    guarantee : :math:`\varepsilon`-DP, with :math:`\varepsilon` = ``epsilon``
    neighbours : ``relation``: replace all records of one user, or add or remove all records of one
        user
    trust : central
    public : ``epsilon``, ``relation``
    numerics : exact
    proof : One user changes the count by at most 1 under either relation: joining or leaving moves
        it by one indicator, replacing by the difference of two. The noise has mass proportional to
        :math:`e^{-|z|/s}` with :math:`s \ge 1/\varepsilon`, so the ratio of the two probabilities
        of any output is at most :math:`e^\varepsilon`. [1]_

    Utility
    -------
    With probability at least :math:`1-\beta` the count is within ``error_bound(beta)``, which is
    :math:`O(\frac{1}{\varepsilon}\log\frac{1}{\beta})` and exact.

    Complexity
    ----------
    Time :math:`O(n)`, one draw.

    Parameters
    ----------
    epsilon : float
    relation : Relation, default=Relation.REPLACE
        Under ``REPLACE`` the number of all users is public and needs no mechanism.

    References
    ----------
    .. [1] Ghosh, Roughgarden, Sundararajan. Universally utility-maximizing privacy mechanisms.
       SIAM J. Comput. 41(6), 2012.

    Examples
    --------
    >>> smokers = NoisyCount(epsilon=1.0)
    >>> abs(smokers.release_values(np.array([True] * 300 + [False] * 700)) - 300) < 60
    True
    >>> smokers.error_bound(0.05)
    3
    """

    epsilon: float | Fraction
    relation: Relation = Relation.REPLACE

    def __post_init__(self) -> None:
        _validate.positive(epsilon=self.epsilon)
        _validate.one_of(tuple(Relation), relation=self.relation)
        if not self.scale <= _LARGEST_SCALE:
            raise ParameterError(f"Expected epsilon >= 2^-55, got epsilon={self.epsilon!r}.")

    @property
    def sensitivity(self) -> int:
        """How far one user moves the count."""
        return 1

    def release(self, count: int, *, account: Account | None = None) -> int:
        """Release a noisy count, given the exact one; it may be negative."""
        if not isinstance(count, int | np.integer) or isinstance(count, bool):
            raise SchemaError(f"Expected an integer count, got {type(count).__name__}.")
        # Cutting brings no two counts further apart.
        counted = np.array([min(max(int(count), -(2**62)), 2**62)], np.int64)
        paying = Account.of_release(account, self)
        return int(paying.laplace(counted, sensitivity=self.sensitivity, scale=self.scale)[0])

    def release_values(self, indicators: ArrayLike, *, account: Account | None = None) -> int:
        """Count the users whose indicator is 1; every other value counts as 0."""
        values = np.asarray(indicators)
        if values.ndim != 1 or values.dtype.kind not in "fiub":
            raise SchemaError("Expected one indicator, 0 or 1, for each user.")
        return self.release(int(np.count_nonzero(values == 1)), account=account)

    def error_bound(self, beta: float) -> int:
        """Return what the error does not exceed, except with chance ``beta``: the smallest such."""
        return _laplace_quantile(self.scale, _each(beta, 1))

    @property
    def standard_error(self) -> float:
        """Standard deviation of the noise."""
        return _laplace_deviation(self.scale)


def _each(beta: float, dimension: int) -> float:
    """Return the chance each of independent coordinates may fail, if one in all may with beta."""
    _validate.probability(beta=beta)
    return -math.expm1(math.log1p(-beta) / dimension)


def _laplace_quantile(scale: float, tail: float) -> int:
    """Return the smallest integer t >= 0 with P(|Z| > t) <= ``tail``."""
    # P(|Z| > t) = 2 exp(-(t + 1) / scale) / (1 + exp(-1 / scale)) for an integer t >= 0.
    return max(0, math.ceil(scale * math.log(2 / (tail * (1 + math.exp(-1 / scale)))) - 1))


def _laplace_deviation(scale: float) -> float:
    """Return the root of the variance 2 p / (1 - p)^2 with p = exp(-1 / scale)."""
    return math.sqrt(2 * math.exp(-1 / scale)) / -math.expm1(-1 / scale)
