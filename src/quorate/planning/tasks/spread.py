"""Plans of statistics of variation: scales, covariances, variation between users."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar

from quorate import _validate
from quorate.core.guarantees import Relation
from quorate.exceptions import ParameterError
from quorate.means.covariance import MEAN_SHARE
from quorate.means.scaler import CENTRE_SHARE, QUARTILES_APART, scaler_route
from quorate.means.variation import ROUTE, expected_half_width
from quorate.planning.plan import PublishedBound
from quorate.planning.solve import smallest_users
from quorate.planning.tasks.base import PeopleTask
from quorate.planning.tasks.distribution import gaussian_mu
from quorate.planning.tasks.quantiles import level_error
from quorate.ranges import half_width

__all__ = ["CovarianceTask", "ScaleTask", "VariationTask", "moment_error"]

# Values beyond this many standard deviations are outside of every crowd.
_FARTHEST = 8.0
# Measured: the share of the failure probability to plan with.
_CAUTION = 0.4
# Measured on normal crowds of 300 to 4,000: how many people it takes to look for a radius.
_ANSWERING = 60.0
# Measured: the range that few people get varies by itself.
_FEW = 100.0
# derived: squares of normal values deviate by this many variances.
_OF_SQUARES = math.sqrt(2.0)


def _radius(dimension: int) -> float:
    """Return the largest distance of users, in deviations, and the cost of the search for it.

    It was measured for both parts: single squares are more skewed than sums of many.
    """
    return 3.0 + 7.0 / dimension


def moment_error(
    *,
    users: int,
    mu: float,
    dimension: int,
    deviation: float,
    reach: float,
    beta: float,
    relation: Relation,
) -> float:
    """Return the error of a mean over people with this deviation in each coordinate.

    The noise depends on the public range or, with enough users, on the distance between them.

    >>> known = {"mu": 0.2, "dimension": 1, "deviation": 1.0, "reach": 100.0, "beta": 0.1}
    >>> errors = [moment_error(users=n, relation=Relation.REPLACE, **known) for n in (50, 5000)]
    >>> errors[0] > 10, errors[1] < 0.1
    (True, True)
    """
    from scipy.special import chdtri

    width = 2.0 if relation is Relation.REPLACE else 1.0
    noise = width * reach * math.sqrt(dimension) / (users * mu)
    if users * mu >= _ANSWERING * math.sqrt(dimension):
        noise = min(noise, width * _radius(dimension) * deviation * dimension / (users * mu))
    sampling = deviation * math.sqrt(dimension / users)
    tail = math.sqrt(float(chdtri(dimension, beta)) / dimension)
    return tail * math.hypot(noise, sampling)


@dataclass(frozen=True, kw_only=True)
class _SpreadTask(PeopleTask):
    """Base of the tasks of this module; no theorem bounds the number of users that they need."""

    def upper(self, *, epsilon: float, error: float) -> PublishedBound:
        """Return the plan's own number of users; no theorem is known."""
        users = smallest_users(lambda n: self.error(n, epsilon), error)
        return PublishedBound(
            users=None if users is None else float(users),
            theorem="no theorem",
            holds=False,
            note="the forecast itself",
        )

    def lower(self, *, epsilon: float, error: float) -> PublishedBound:
        """Return the lower bound from two populations with disjoint supports."""
        del error
        return self.two_crowds(epsilon)


@dataclass(frozen=True, kw_only=True)
class ScaleTask(_SpreadTask):
    """A centre and a scale of each feature, as in :class:`~quorate.means.UserScaler`.

    The error is that of the worse of the two, over all features together. With delta = 0 it is that
    of the quartiles over people of their own quartiles, from which the estimator computes a scale.

    Parameters
    ----------
    dimension : int, default=1
    bounds : float or pair, default=100.0
        Public range of every feature, in standard deviations of one record.

    Examples
    --------
    >>> ScaleTask(delta=1e-6).error(5000, 1.0) < 0.1 < ScaleTask().error(500, 1.0)
    True
    """

    dimension: int = 1
    bounds: Any = 100.0

    name: ClassVar[str] = "scale"
    error_meaning: ClassVar[str] = (
        "error of the centre, or of the scale, in standard deviations of one record"
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        _validate.positive_integer(dimension=self.dimension)
        _validate.positive(half_width=self.half_width)

    @cached_property
    def half_width(self) -> float:
        """Half of the width of the public range."""
        return half_width(self.bounds)

    @property
    def largest_error(self) -> float:
        """The width of the public range."""
        return 2.0 * self.half_width * math.sqrt(self.dimension)

    def error(self, users: int, epsilon: float) -> float:
        """Return the error bound of the algorithm that the estimator would choose."""
        found = self._moments if self.delta else self._quartiles
        return min(self.largest_error, found(users, epsilon))

    def _moments(self, users: int, epsilon: float) -> float:
        known: dict[str, Any] = {"users": users, "beta": self.beta / 2, "relation": self.relation}
        mu, d = gaussian_mu(epsilon, self.delta), self.dimension
        first = moment_error(
            mu=math.sqrt(CENTRE_SHARE) * mu,
            dimension=d,
            deviation=math.sqrt(self.shrunk),
            reach=self.half_width * math.sqrt(d),
            **known,
        )
        second = moment_error(
            mu=math.sqrt(1 - CENTRE_SHARE) * mu,
            dimension=d,
            deviation=_OF_SQUARES * math.sqrt(self.shrunk),
            reach=2.0 * self.half_width**2 * math.sqrt(d),
            **known,
        )
        return max(first, second / 2.0)

    def _quartiles(self, users: int, epsilon: float) -> float:
        from scipy.special import ndtri

        answers = 3 * self.dimension
        outside = max(0.0, self.half_width - _FARTHEST)
        errors = []
        for level in (0.25, 0.5):
            half = 0.5 if self.relation is Relation.REPLACE else 0.5 / (1.0 - level)
            rank = level_error(
                level,
                users=users,
                rate=half * epsilon / answers,
                outside=outside,
                beta=_CAUTION * self.beta / answers,
            )
            if rank >= level:
                return self.largest_error
            # The farther side of the quartile is the wider one.
            errors.append(float(ndtri(level) - ndtri(level - rank)))
        # Two quartiles, each with noise of its own.
        scale = math.sqrt(2.0) * errors[0] / QUARTILES_APART
        return math.sqrt(self.dimension) * max(errors[1], scale)

    def algorithm(self, users: int, epsilon: float) -> tuple[str, str]:
        """Return whether moments or quartiles are used."""
        del users, epsilon
        route = scaler_route(self.delta)
        return route.name, route.reason


@dataclass(frozen=True, kw_only=True)
class CovarianceTask(_SpreadTask):
    """A covariance over users, as in :class:`~quorate.means.UserCovariance`.

    The error is the Euclidean distance of the second moments.

    Parameters
    ----------
    dimension : int, default=2
    bounds : float or pair, default=100.0
        Public range of every feature, in standard deviations of one record.

    Examples
    --------
    >>> CovarianceTask(delta=1e-6, bounds=10.0).error(20_000, 1.0) < 0.5
    True
    """

    dimension: int = 2
    bounds: Any = 100.0

    name: ClassVar[str] = "covariance"
    error_meaning: ClassVar[str] = (
        "distance of the second moments of people's means, in variances of one record"
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        _validate.positive_integer(dimension=self.dimension)
        _validate.positive(half_width=self.half_width)
        if self.delta == 0:
            raise ParameterError(
                "Expected delta > 0, got delta=0.0: covariances use Gaussian noise, which has no "
                "pure guarantee."
            )

    @cached_property
    def half_width(self) -> float:
        """Half of the width of the public range."""
        return half_width(self.bounds)

    @property
    def products(self) -> int:
        """The number of second moments."""
        return self.dimension * (self.dimension + 1) // 2

    @property
    def reach(self) -> float:
        """The largest possible norm of a person's second moments."""
        return 4.0 * (self.half_width * self.dimension) ** 2

    @property
    def largest_error(self) -> float:
        """The error of the worst possible answer."""
        return 2.0 * self.reach

    def error(self, users: int, epsilon: float) -> float:
        """Return the error bound of the algorithm that the estimator would choose."""
        found = moment_error(
            users=users,
            mu=math.sqrt(1 - MEAN_SHARE) * gaussian_mu(epsilon, self.delta),
            dimension=self.products,
            deviation=_OF_SQUARES * self.shrunk,
            reach=self.reach,
            beta=self.beta,
            relation=self.relation,
        )
        return min(self.largest_error, found)

    def algorithm(self, users: int, epsilon: float) -> tuple[str, str]:
        """Return the most likely algorithm for a mean of vectors; a release decides."""
        mu = math.sqrt(1 - MEAN_SHARE) * gaussian_mu(epsilon, self.delta)
        if users * mu >= _ANSWERING * math.sqrt(self.products):
            return "ball", "noise follows how far people's products are apart."
        return "clip", "too few people answer how far their products are apart."


@dataclass(frozen=True, kw_only=True)
class VariationTask(_SpreadTask):
    """How different people are, as in :class:`~quorate.means.UserVariation`.

    The error is half the width of the 95 % confidence interval of the share of variance between
    people.

    Parameters
    ----------
    dimension : int, default=1
    between : float, optional
        The true share of the variance of single records between people.

    Examples
    --------
    >>> VariationTask(records=10).error(5000, 1.0) < 0.15
    True
    """

    dimension: int = 1

    name: ClassVar[str] = "variation"
    error_meaning: ClassVar[str] = (
        "half of the range that is stated for the share of variance between people, with 95 %"
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        _validate.positive_integer(dimension=self.dimension)
        if self.relation is not Relation.REPLACE:
            raise ParameterError(
                "Expected Relation.REPLACE: pairs of users change when somebody joins."
            )

    @property
    def largest_error(self) -> float:
        """One, because the share may be anything from 0 to 1."""
        return 0.5

    def error(self, users: int, epsilon: float) -> float:
        """Return half of the expected confidence interval, at the true share."""
        share = self.share_between / self.shrunk
        found = expected_half_width(share, users=users, epsilon=epsilon, dimension=self.dimension)
        return min(self.largest_error, (1.0 + _FEW / users) * found)

    def algorithm(self, users: int, epsilon: float) -> tuple[str, str]:
        """Return the only algorithm."""
        del users, epsilon
        return ROUTE.name, ROUTE.reason
