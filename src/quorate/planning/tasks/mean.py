"""Plans of private means: the length of the error, including sampling error."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any, ClassVar

from quorate import _validate
from quorate.core.account.costs import gdp_mu
from quorate.core.guarantees import Relation
from quorate.exceptions import ParameterError
from quorate.means.routes.expected_errors import ExpectedErrors
from quorate.planning.limits import fano_users, mean_floor, packing_users, two_point_users
from quorate.planning.plan import PublishedBound
from quorate.planning.solve import smallest_users
from quorate.planning.tasks.base import ErrorModel, PeopleTask
from quorate.ranges import half_width

__all__ = ["MeanTask"]

# Measured: the share of the failure probability to plan with.
_CAUTION = 0.6
# Measured on real tables (the choose part of benchmarks/people_tables.py, 2,000 and 10,000 people):
# people who differ are skewed, and up to this factor above the forecast for normal ones.
_SKEW = 1.2
# Nobody is closer to others than one in a million parts of the range.
_FINEST = 2.0**-20

_REASONS = {
    "clip": "users fill most of the public range, or are too few to find a smaller one.",
    "interval": "most users are in a small part of the range, which is found privately.",
    "ball": "a ball drifts from the range to where the users are.",
}


@lru_cache(maxsize=4096)
def _mu(epsilon: float, delta: float) -> float:
    return gdp_mu(epsilon, delta)


@lru_cache(maxsize=256)
def _chi_square(dimension: int, confidence: float) -> float:
    """Return a quantile of the squared length of a standard normal vector."""
    from scipy.special import chdtri

    return float(chdtri(dimension, 1.0 - confidence))


@dataclass(frozen=True, kw_only=True)
class MeanTask(PeopleTask):
    """The mean over users, as in :class:`~quorate.means.UserMean`.

    The error is the Euclidean distance of the released mean from the mean of the population, in
    the units of the data. The noise of each route is the estimator's own forecast
    (:mod:`quorate.means.routes.expected_errors`).

    Parameters
    ----------
    dimension : int, default=1
    bounds : float or pair, default=100.0
        Public range of every coordinate: b for [-b, b], or (lower, upper).
    scale : float, default=1.0
        Standard deviation of single records in each coordinate: of all of them, or around their
        user's mean if ``heterogeneity`` is given.
    between : float, optional
        Share of the variance of single records that lies between people, from 0 (people are alike)
        to 1; by default a half.
    heterogeneity : float, optional
        The same in the units of the data: the standard deviation of the users' own means. Give one
        of the two.

    Examples
    --------
    >>> task = MeanTask(dimension=100, records=100, delta=1e-6, between=0.0)
    >>> task.error(1000, 1.0) < 0.3
    True
    >>> task.algorithm(1000, 1.0)[0], task.algorithm(50, 1.0)[0]
    ('ball', 'clip')
    """

    dimension: int = 1
    bounds: Any = 100.0
    scale: float = 1.0
    heterogeneity: float | None = None

    name: ClassVar[str] = "mean"
    error_meaning: ClassVar[str] = "Euclidean distance from the population's mean, in data units"

    def __post_init__(self) -> None:
        super().__post_init__()
        _validate.positive_integer(dimension=self.dimension)
        _validate.positive(half_width=self.half_width, scale=self.scale)
        if self.heterogeneity is not None:
            _validate.non_negative(heterogeneity=self.heterogeneity)
            if self.between is not None:
                raise ParameterError(
                    "Expected one of between and heterogeneity, got both: the share of the "
                    "variance that lies between people, or their standard deviation."
                )

    @cached_property
    def half_width(self) -> float:
        """Half of the width of the public range."""
        return half_width(self.bounds)

    @property
    def largest_error(self) -> float:
        """The distance between opposite corners of the range."""
        return 2.0 * self.half_width * math.sqrt(self.dimension)

    @property
    def deviation(self) -> float:
        """Standard deviation of one user's mean record, in each coordinate."""
        # Values inside the range cannot deviate by more.
        return min(self._total * math.sqrt(self.shrunk), self.half_width)

    @property
    def between_deviation(self) -> float:
        """Standard deviation of the users' own means, however many records they have."""
        return min(self._total * math.sqrt(self.share_between), self.half_width)

    @property
    def _total(self) -> float:
        """Standard deviation of single records over all users."""
        return math.hypot(self.scale, self.heterogeneity or 0.0)

    @property
    def share_between(self) -> float:
        """Share of the variance of single records that lies between people."""
        if self.heterogeneity is None:
            return super().share_between
        return (self.heterogeneity / self._total) ** 2

    @property
    def assumptions(self) -> tuple[str, ...]:
        """Assumptions about numbers that the caller did not state."""
        return super().assumptions if self.heterogeneity is None else ()

    @property
    def spread(self) -> float:
        """Distance of a typical user's mean record from the common mean."""
        return self.deviation * math.sqrt(self.dimension)

    @property
    def reach(self) -> float:
        """Radius of the public bound."""
        return self.half_width * math.sqrt(self.dimension)

    @property
    def _diameter(self) -> float:
        return 2.0 if self.relation is Relation.REPLACE else 1.0

    def error(self, users: int, epsilon: float) -> float:
        """Return the bound on the distance for the route of the estimator."""
        way, noise = self._expected(users, epsilon)
        found = self._of_way(way, users, noise)
        # Nothing has to be found out for clipping to the range, so skewed people do it no harm.
        if way != "clip" and self.share_between:
            found = min(_SKEW * found, self.clip_error(users, epsilon))
        return min(found, self.largest_error)

    def known(self, users: int, epsilon: float) -> ExpectedErrors:
        """Return the numbers by which the estimator chooses its route."""
        return ExpectedErrors(
            users=users,
            dimension=self.dimension,
            epsilon=epsilon,
            mu=_mu(epsilon, self.delta) if self.delta else 0.0,
            diameter=self._diameter,
        )

    def _expected(self, users: int, epsilon: float) -> tuple[str, float]:
        """Return the chosen route and the length of its noise, in the units of the data."""
        spread = max(self.deviation / self.half_width, _FINEST)
        way, noise = self.known(users, epsilon).expected(spread)
        return way, noise * self.half_width

    def _of_way(self, way: str, users: int, noise: float) -> float:
        if way == "ball":
            return self._normal(users, noise)
        return self._laplace(users, noise / math.sqrt(2.0 * self.dimension))

    def clip_error(self, users: int, epsilon: float) -> float:
        """Return the error if everybody is clipped to the public range."""
        known = self.known(users, epsilon)
        normal = known.gaussian_error <= known.range_error
        found = self._of_way(
            "ball" if normal else "clip", users, known.range_error * self.half_width
        )
        return min(found, self.largest_error)

    def _normal(self, users: int, noise: float) -> float:
        """Return the error bound for Gaussian noise of this root mean square length."""
        variance = self.deviation**2 / users + noise**2 / self.dimension
        return math.sqrt(variance * _chi_square(self.dimension, 1.0 - _CAUTION * self.beta))

    def _laplace(self, users: int, scale: float) -> float:
        """Return the error bound for Laplace noise of this scale in every coordinate."""
        tail = math.log(1.0 / (_CAUTION * self.beta)) ** 2
        noise = scale**2 * (2.0 * self.dimension + max(0.0, tail - 2.0) * math.sqrt(self.dimension))
        sampling = (
            self.deviation**2 / users * _chi_square(self.dimension, 1.0 - _CAUTION * self.beta)
        )
        return math.sqrt(sampling + noise)

    def group_error(self, users: int, epsilon: float) -> float:
        """Return the error of group privacy, where records are protected one by one."""
        return self._of_people(users, super().group_error(users, epsilon))

    def item_to_user_error(self, users: int, epsilon: float) -> float:
        """Return the error of Algorithm 1 of Ghazi et al. around a method for single records."""
        return self._of_people(users, super().item_to_user_error(users, epsilon))

    def _of_people(self, users: int, error: float) -> float:
        """Return an error of single records, plus that of differences between people."""
        single = self.with_records(1).deviation ** 2 / self.records
        common = max(0.0, self.deviation**2 - single) / users
        sampling = common * _chi_square(self.dimension, 1.0 - _CAUTION * self.beta)
        return min(math.sqrt(error**2 + sampling), self.largest_error)

    def baselines(self) -> dict[str, ErrorModel]:
        """Return the error of simpler methods, by name."""
        return {**super().baselines(), "clip to range": self.clip_error}

    def algorithm(self, users: int, epsilon: float) -> tuple[str, str]:
        """Return the route that the estimator would use."""
        way, _ = self._expected(users, epsilon)
        return way, _REASONS[way]

    def upper(self, *, epsilon: float, error: float) -> PublishedBound:
        """Return Theorem 2 (one dimension: Theorem 1) of Levy et al. with its constants."""
        beta, d = self.beta / 3.0, self.dimension
        if d > 1 and self.delta == 0:
            return PublishedBound(
                users=None,
                theorem="Theorem 2 of Levy et al. (2021)",
                holds=False,
                note="needs delta > 0",
            )

        def reached(n: int) -> float:
            # Users are sub-Gaussian: all within tau of their centre except with chance beta.
            chance = math.sqrt(2.0 * math.log(2.0 * n / beta))
            tau = self.deviation * (math.sqrt(d) + chance)
            sampling = self.deviation * math.sqrt(_chi_square(d, 1.0 - beta) / n)
            if d == 1:
                found = 2.0 * self.half_width / tau * math.exp(-n * epsilon / 16.0) <= beta
                noise = 8.0 * tau / (n * epsilon) * math.log(1.0 / beta)
                return sampling + noise if found else math.inf
            each = epsilon / math.sqrt(8.0 * d * math.log(1.0 / self.delta))
            wide = d * n * self.half_width / tau * math.exp(-n * each / 16.0)
            variance = 102_400.0 * d * tau**2 * math.log(d * n / beta) * math.log(1.0 / self.delta)
            noise = math.sqrt(variance / beta) / (n * epsilon)
            return sampling + noise if wide <= beta else math.inf

        users = smallest_users(reached, error)
        return PublishedBound(
            users=None if users is None else float(users),
            theorem=f"Theorem {1 if d == 1 else 2} of Levy et al. (2021)",
            holds=epsilon <= 1.0,
            note="sub-Gaussian users, epsilon <= 1, the spread known in advance",
        )

    def lower(self, *, epsilon: float, error: float) -> PublishedBound:
        """Return the best of Fano's, Le Cam's and packing bounds for normal users."""
        # Means 2 x error apart; the divergence of two users' mean records.
        divergence = 2.0 * error**2 / self.deviation**2
        bounds = {
            "Theorem 1 of Acharya et al. (2021)": two_point_users(
                divergence=divergence,
                records=1,
                epsilon=epsilon,
                delta=self.delta,
                beta=self.beta,
                relation=self.relation,
            )
        }
        if self.delta == 0:
            places = self.dimension * math.log1p(math.floor(self.half_width / error))
            bounds["Lemma 39 (packing) of Ghazi et al. (2023)"] = packing_users(
                log_alternatives=places, epsilon=epsilon, beta=self.beta, relation=self.relation
            )
        if self.delta == 0 and self.dimension >= 16:
            # Signs that differ in a quarter of the places: e^(d/8) of them, 4 x as divergent.
            bounds["Lemma 39 of Ghazi et al. (2023)"] = fano_users(
                log_alternatives=self.dimension / 8.0,
                divergence=4.0 * divergence,
                records=1,
                epsilon=epsilon,
                beta=self.beta,
                relation=self.relation,
            )
        theorem = max(bounds, key=bounds.__getitem__)
        return PublishedBound(
            users=max(1.0, bounds[theorem]),
            theorem=theorem,
            holds=True,
            note="already for normally distributed users",
        )

    def necessary(self, *, epsilon: float, error: float) -> tuple[PublishedBound, ...]:
        """Return also Corollary 1 of Levy et al., or Corollary 5 for single records."""
        users = smallest_users(
            lambda n: mean_floor(
                dimension=self.dimension,
                deviation=self.deviation,
                half_width=self.half_width,
                users=n,
                epsilon=epsilon,
                delta=self.delta,
                relation=self.relation,
            ),
            error,
        )
        corollary = PublishedBound(
            users=None if users is None else float(users),
            theorem=f"Corollary {5 if self.records == 1 else 1} of Levy et al. (2021)",
            holds=True,
            note="this root mean squared error, for the hardest of normal crowds",
        )
        known = (*super().necessary(epsilon=epsilon, error=error), corollary)
        if not self.share_between:
            return known
        floor = _chi_square(self.dimension, self.confidence) * (self.between_deviation / error) ** 2
        people = PublishedBound(
            users=max(1.0, floor),
            theorem="sampling of people",
            holds=False,
            note="normal people far inside the range; no number of records and no epsilon beats it",
        )
        return (*known, people)
