"""Plans of distributions: total variation, distribution functions, normal means."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any, ClassVar

from quorate import _validate
from quorate.core.account.costs import gdp_mu
from quorate.core.guarantees import Relation
from quorate.distributions.categories.expected_errors import ExpectedErrors
from quorate.distributions.normal.gaussian import decide_mean
from quorate.distributions.numeric.hierarchy import choose_hierarchy
from quorate.estimators import Route
from quorate.planning.packings import (
    Packing,
    covariance_packing,
    discrete_packing,
    normal_packing,
    packing_floor,
)
from quorate.planning.plan import PublishedBound
from quorate.planning.solve import EPSILONS, smallest_users
from quorate.planning.tasks.base import PeopleTask
from quorate.planning.tasks.mean import MeanTask
from quorate.planning.tasks.median import MedianTask

__all__ = ["CdfTask", "HistogramTask", "NormalTask", "SharesTask"]

# Measured on Zipf distributions: from noise before shares are made a distribution to what is left.
_CUT_AWAY = 1.5
# From the mean to a quantile at the planned confidence, times 1/sqrt(categories).
_TAIL = 1.5


@lru_cache(maxsize=4096)
def gaussian_mu(epsilon: float, delta: float) -> float:
    """Return the parameter of Gaussian differential privacy that a budget is worth.

    >>> round(gaussian_mu(1.0, 1e-6), 3)
    0.237
    """
    return gdp_mu(epsilon, delta)


@dataclass(frozen=True, kw_only=True)
class _DistributionTask(PeopleTask):
    """What the tasks of distributions share: users' own distributions differ by ``between``."""

    @property
    def largest_error(self) -> float:
        """The distance of distributions with disjoint supports."""
        return 1.0

    def group_error(self, users: int, epsilon: float) -> float:
        """Return the error of group privacy, at least the sampling error of this many users."""
        return max(super().group_error(users, epsilon), self.error(users, EPSILONS[1]))

    def item_to_user_error(self, users: int, epsilon: float) -> float:
        """Return the error of Algorithm 1 of Ghazi et al., at least the sampling error."""
        return max(super().item_to_user_error(users, epsilon), self.error(users, EPSILONS[1]))

    def _floor(self, packing: Packing | None, epsilon: float, theorem: str) -> PublishedBound:
        """Return the packing bound, or with delta the lower bound for any answer at all."""
        least = self.two_crowds(epsilon)
        if self.delta > 0 or packing is None:
            return least
        users = packing_floor(
            packing,
            records=self.records,
            epsilon=epsilon,
            beta=self.beta,
            relation=self.relation,
        )
        return PublishedBound(
            users=max(users, least.users or 0.0),
            theorem=theorem,
            holds=True,
            note="a packing with all constants worked out; people who are alike",
        )

    def _order(self, size: float, *, epsilon: float, error: float, theorem: str) -> PublishedBound:
        """Return the order of the published upper bound; its constant and logarithms are 1."""
        users = size / epsilon
        users += size / (error * epsilon * math.sqrt(self.records))
        users += size / (error**2 * self.records)
        return PublishedBound(
            users=users,
            theorem=theorem,
            holds=False,
            note="the theorem's order with constant 1 and no logarithms; pure privacy",
        )


@dataclass(frozen=True, kw_only=True)
class SharesTask(_DistributionTask):
    """A distribution over categories, as in :class:`~quorate.distributions.DiscreteDistribution`.

    The error is the total variation distance from the population's distribution.

    Parameters
    ----------
    size : int, default=10
        Categories.
    alike : bool, default=False
        Whether all users are alike, as stated to the estimator.

    Examples
    --------
    >>> task = SharesTask(size=100, records=256, delta=1e-6, between=0.0)
    >>> task.algorithm(3000, 1.0)[0], task.algorithm(200, 1.0)[0]
    ('ball', 'laplace')
    >>> task.error(3000, 1.0) < 0.03
    True
    """

    size: int = 10
    alike: bool = False

    name: ClassVar[str] = "shares"
    error_meaning: ClassVar[str] = "total variation distance from the population's distribution"

    def __post_init__(self) -> None:
        super().__post_init__()
        _validate.positive_integer(size=self.size)

    def error(self, users: int, epsilon: float) -> float:
        """Return the error bound of the algorithm that the estimator would choose."""
        return min(1.0, self._distance(users, self._expected(users, epsilon)[1]))

    @property
    def _spread(self) -> float:
        """Root mean square distance between similar users with a Zipf distribution."""
        return math.sqrt(0.9 * self.shrunk)

    def _expected(self, users: int, epsilon: float) -> tuple[Route, float]:
        """Return the algorithm that the estimator would choose, and its error per share."""
        mu = gaussian_mu(epsilon, self.delta) if self.delta else 0.0
        errors = ExpectedErrors(users=users, categories=self.size, epsilon=epsilon, mu=mu)
        decided = errors.decide(relation=self.relation, alike=self.alike)
        route, noise = errors.expected(decided, self._spread)
        # Who comes or goes moves the shares half as far as who is replaced.
        return route, noise if self.relation is Relation.REPLACE else 0.5 * noise

    def _distance(self, users: int, noise: float) -> float:
        # Half of the sum of k absolute values, of Laplace or normal noise; what the nearest
        # distribution cuts away; and the sampling of people.
        raw = 0.5 * self.size * noise * math.sqrt(0.5)
        cut = raw / (1.0 + _CUT_AWAY * raw)
        sampling = 0.4 * math.sqrt(self.size * self.shrunk / users) * 0.8
        tail = 1.0 + _TAIL * math.sqrt(-2.0 * math.log(self.beta)) / (2.0 * math.sqrt(self.size))
        return tail * math.hypot(cut, sampling)

    def algorithm(self, users: int, epsilon: float) -> tuple[str, str]:
        """Return the algorithm of the estimator for people who differ by the stated amount."""
        route, _ = self._expected(users, epsilon)
        return route.name, route.reason

    def upper(self, *, epsilon: float, error: float) -> PublishedBound:
        """Return the number of users required by Theorem 43."""
        theorem = "Theorem 43 of Ghazi et al. (2023)"
        return self._order(float(self.size), epsilon=epsilon, error=error, theorem=theorem)

    def lower(self, *, epsilon: float, error: float) -> PublishedBound:
        """Return the packing bound of Theorem 43, with the factor 1/k."""
        theorem = "Theorem 43 (packing) of Ghazi et al. (2023)"
        packing = discrete_packing(self.size, error) if error < 0.5 else None
        return self._floor(packing, epsilon, theorem)


@dataclass(frozen=True, kw_only=True)
class HistogramTask(SharesTask):
    """Shares of people's records in public cells, as in :class:`~quorate.distributions.Histogram`.

    Parameters
    ----------
    size : int, default=20
        Cells.

    Examples
    --------
    >>> HistogramTask(delta=1e-6).error(3000, 1.0) == SharesTask(size=20, delta=1e-6).error(3000, 1)
    True
    """

    size: int = 20

    name: ClassVar[str] = "histogram"


@dataclass(frozen=True, kw_only=True)
class CdfTask(_DistributionTask):
    """A distribution function over cells, as in :class:`~quorate.distributions.EmpiricalCDF`.

    The error is the largest distance of the distribution functions (Kolmogorov's).

    Parameters
    ----------
    size : int, default=1024
        Cells.

    Examples
    --------
    >>> CdfTask(records=4).error(3000, 1.0) < 0.06
    True
    """

    size: int = 1024

    name: ClassVar[str] = "cdf"
    error_meaning: ClassVar[str] = "largest distance from the population's distribution function"

    def __post_init__(self) -> None:
        super().__post_init__()
        _validate.positive_integer(size=self.size)

    def error(self, users: int, epsilon: float) -> float:
        """Return the bound on the distance, including sampling."""
        hierarchy = choose_hierarchy(self.size)
        width = 2.0 if self.relation is Relation.REPLACE else 1.0
        scale = width * hierarchy.levels / (users * epsilon)
        noise = hierarchy.largest_error(scale=scale, beta=0.8 * self.beta)
        # Kolmogorov's law: the largest distance of n records exceeds s / sqrt(n) with 2 e^(-2 s^2).
        sampling = math.sqrt(-0.5 * math.log(0.5 * self.beta)) * math.sqrt(self.shrunk / users)
        return min(1.0, math.hypot(noise, sampling))

    def algorithm(self, users: int, epsilon: float) -> tuple[str, str]:
        """Return the algorithm; there is only one."""
        del users, epsilon
        levels = choose_hierarchy(self.size).levels
        name = "hierarchy" if levels > 1 else "cells"
        return name, f"{levels} level(s) of nested intervals are best for {self.size} cells."

    def upper(self, *, epsilon: float, error: float) -> PublishedBound:
        """Return the users that suffice by the exact law of the mechanism and sampling."""
        worst = CdfTask(
            size=self.size,
            between=1.0,
            confidence=self.confidence,
            relation=self.relation,
        )
        users = smallest_users(lambda n: worst.error(n, epsilon), error)
        return PublishedBound(
            users=None if users is None else float(users),
            theorem="Dvoretzky, Kiefer, Wolfowitz; law of the mechanism",
            holds=True,
            note="whoever the people are; the law of the noise is read off public draws",
        )

    def lower(self, *, epsilon: float, error: float) -> PublishedBound:
        """Return the lower bound from two populations with disjoint supports."""
        del error
        return self._floor(None, epsilon, "")


@dataclass(frozen=True, kw_only=True)
class NormalTask(_DistributionTask):
    """A normal mean, as in :class:`~quorate.distributions.GaussianDistribution`.

    The error is the distance from the population's mean in standard deviations of one record.

    Parameters
    ----------
    dimension : int, default=1
    bounds : float or pair, default=1000.0
        Public range of every coordinate, in standard deviations of one record.

    Examples
    --------
    >>> NormalTask(records=16, between=0.0).error(100, 1.0) < 0.12
    True
    """

    dimension: int = 1
    bounds: Any = 1000.0

    name: ClassVar[str] = "normal"
    error_meaning: ClassVar[str] = (
        "distance from the population's mean, in standard deviations of one record"
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        _validate.positive_integer(dimension=self.dimension)

    @property
    def largest_error(self) -> float:
        """The width of the public range."""
        return self._mean().largest_error

    def _mean(self) -> MeanTask:
        return MeanTask(
            dimension=self.dimension,
            bounds=self.bounds,
            scale=math.sqrt(self.shrunk * self.records),
            between=0.0,
            records=self.records,
            delta=self.delta,
            confidence=self.confidence,
            relation=self.relation,
        )

    def error(self, users: int, epsilon: float) -> float:
        """Return the error bound of the algorithm that the estimator would choose."""
        from scipy.special import ndtri

        medians = MedianTask(
            dimension=self.dimension,
            bounds=self.bounds,
            scale=math.sqrt(self.shrunk),
            confidence=self.confidence,
            relation=self.relation,
        )
        rank, error = medians.error(users, epsilon), self.largest_error
        if rank < 0.5:
            each = float(ndtri(0.5 + rank)) * math.sqrt(self.shrunk)
            error = min(error, math.sqrt(self.dimension) * each)
        if self.algorithm(users, epsilon)[0] == "mean":
            # A private radius is looked for only where it is worth it.
            return min(error, self._mean().error(users, epsilon))
        return error

    def algorithm(self, users: int, epsilon: float) -> tuple[str, str]:
        """Return the algorithm, medians or a mean, and the reason."""
        route = decide_mean(
            users=users,
            epsilon=epsilon,
            delta=self.delta,
            relation=self.relation,
            dimension=self.dimension,
        )
        return route.name, route.reason

    def upper(self, *, epsilon: float, error: float) -> PublishedBound:
        """Return the users required by Theorem 45; total variation is 0.4 times the distance."""
        theorem = "Theorem 45 of Ghazi et al. (2023)"
        size = float(self.dimension)
        return self._order(size, epsilon=epsilon, error=min(1.0, 0.4 * error), theorem=theorem)

    def lower(self, *, epsilon: float, error: float) -> PublishedBound:
        """Return the packing bound of Theorem 45."""
        from scipy.special import ndtr

        close = 2.0 * float(ndtr(0.5 * error)) - 1.0
        packing = normal_packing(self.dimension, close) if 0 < close < 0.49 else None
        theorem = "Theorem 45 (packing) of Ghazi et al. (2023)"
        return self._floor(packing, epsilon, theorem)

    def necessary(self, *, epsilon: float, error: float) -> tuple[PublishedBound, ...]:
        """Return also the packing bound of Theorem 46, for an unknown covariance."""
        others = super().necessary(epsilon=epsilon, error=error)
        packing = covariance_packing(self.dimension, min(1.0, 0.4 * error))
        if packing is None or self.delta > 0:
            return others
        theorem = "Theorem 46 (packing) of Ghazi et al. (2023)"
        both = self._floor(packing, epsilon, theorem)
        note = "if the covariance is unknown and is to be as near, in total variation"
        return (*others, replace(both, holds=False, note=note))
