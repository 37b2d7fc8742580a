"""Plans of private means: the length of the error, including sampling error."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any, ClassVar

from quorate import _validate
from quorate.accounting.costs import gdp_mu
from quorate.exceptions import ParameterError
from quorate.guarantees import Relation
from quorate.means.measuring import can_shrink
from quorate.means.routes.ways import (
    CORE_DIMENSIONS,
    CORE_USERS,
    NEAR,
    QUANTILE_SHARES,
    QUANTILE_SIZE_SHARE,
    QUANTILE_USERS,
    WORTHWHILE,
    ball_is_worthwhile,
    core_is_worthwhile,
    core_reserve,
    corners,
    cube_gain,
    first_way,
    interval_radius,
    is_paired,
    is_tested,
    present_cost,
    search_costs,
    users_to_search,
    widening,
)
from quorate.planning.limits import fano_users, mean_floor, packing_users, two_point_users
from quorate.planning.mean_noise import ball_noise, core_noise, read_noise
from quorate.planning.plan import PublishedBound
from quorate.planning.solve import smallest_users
from quorate.planning.tasks.base import ErrorModel, PeopleTask
from quorate.ranges import half_width

__all__ = ["MeanTask"]

# Measured: the share of the failure probability to plan with.
_CAUTION = 0.6
# Measured: the final radius leaves a little more room than the plan says.
_NOISE_FACTOR = 1.25
# Measured: noise of a ball that shrinks to measured distances, in spread x sqrt(d) / (n mu).
_MEASURED_BALL = 2.3
# Measured: to pass its tests 9 times in 10 a route needs a little more than to be planned.
_ROUTE_RESERVE = 1.15
# Measured on real tables (the choose part of benchmarks/people_tables.py, 2,000 and 10,000 people):
# people who differ are skewed, and up to this factor above the forecast for normal ones.
_SKEW = 1.2

# Intervals: the released spread of normal users in standard deviations, and what is left of the
# last step where the number of users is private.
_TYPICAL = 0.9
_LEFT_OF_SUM = 0.7

# Pure route: how far the range reaches before it is widened, in standard deviations (a power of two
# above the distance that holds 60 % of the users).
_REACH = 2.0 * 0.84


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
    the units of the data. The noise of each route comes from the functions by which the estimator
    itself splits its budget (:mod:`quorate.means.routes.budget_split`).

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
    >>> task.way(1000, 1.0)[0], task.way(50, 1.0)[0]
    ('core', 'clip')
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
        """The answer is one corner of the range, the mean the opposite one."""
        return 2.0 * self.half_width * math.sqrt(self.dimension)

    @property
    def deviation(self) -> float:
        """Standard deviation of one user's mean record, in each coordinate."""
        # Values inside the range cannot deviate by more.
        return min(self._total * math.sqrt(self.shrunk), self.half_width)

    @property
    def between_deviation(self) -> float:
        """Standard deviation of the users' own means, however many records they hold."""
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
        """Assumptions behind the figures that the caller did not state."""
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
        """Return the distance kept by the route that the estimator takes."""
        mu = self._mu(epsilon)
        begins = math.ceil(users_to_search(dimension=self.dimension, mu=mu) / epsilon)
        if self._first(max(users, begins), epsilon) == "interval":
            found = self._interval(max(users, begins), epsilon)
            if users < begins:
                # No way promises less error than a later one where that begins.
                found = max(found, self._without_search(users, epsilon))
        else:
            found = self._without_search(users, epsilon)
        return min(found, self.largest_error)

    def _without_search(self, users: int, epsilon: float) -> float:
        return self._pure(users, epsilon) if self.delta == 0 else self._gaussian(users, epsilon)

    def _mu(self, epsilon: float) -> float:
        """Return what the budget is worth as Gaussian privacy, after what is set aside."""
        kept = float(core_reserve(self.delta, self.relation))
        return _mu(epsilon, self.delta - kept) if self.delta else 0.0

    def _first(self, users: int, epsilon: float) -> str:
        """Return the algorithm that the estimator starts with."""
        mu = self._mu(epsilon)
        return first_way(users=users, dimension=self.dimension, epsilon=epsilon, mu=mu).name

    def _interval(self, users: int, epsilon: float) -> float:
        """Return the distance for Laplace noise on an interval or an L1 ball, or on the range.

        What a search costs and how far the users reach are the estimator's own figures; it clips to
        the range where that costs less.
        """
        spread = max(_TYPICAL * self.deviation / self.half_width, 1e-6)
        public: dict[str, Any] = {"users": users, "dimension": self.dimension, "epsilon": epsilon}
        costs = search_costs(spread=spread, **public)
        paid = costs.spread + costs.after_spread
        left = epsilon - paid - present_cost(users=users, epsilon=epsilon)
        clipped = self.clip_error(users, epsilon)
        if left <= 0:
            return clipped
        if self.relation is Relation.ADD_REMOVE:
            left *= _LEFT_OF_SUM
        reach = min(1.0, interval_radius(spread, dimension=self.dimension)) * self.half_width
        found = self._laplace(users, self._diameter * reach * self.dimension / (left * users))
        return min(clipped, found * (_SKEW if self.share_between else 1.0))

    def clip_error(self, users: int, epsilon: float) -> float:
        """Return the distance when everybody is clipped to the public range."""
        share = 1.0 if self.relation is Relation.REPLACE else 1.0 - QUANTILE_SIZE_SHARE
        one = self._diameter * self.half_width / (share * epsilon * users)
        scale = one * self.dimension * cube_gain(self.dimension)
        found = min(self._laplace(users, scale), self.largest_error)
        if self.delta == 0:
            return found
        noise = self._clip_noise(users, _mu(epsilon, self.delta))
        return min(self._normal(users, noise), found)

    def _clip_noise(self, users: int, mu: float) -> float:
        return self._diameter * self.reach * math.sqrt(self.dimension) / (users * mu)

    def _normal(self, users: int, noise: float) -> float:
        """Return the distance for Gaussian noise of this root mean square length."""
        variance = self.deviation**2 / users + noise**2 / self.dimension
        return math.sqrt(variance * _chi_square(self.dimension, 1.0 - _CAUTION * self.beta))

    def _laplace(self, users: int, scale: float) -> float:
        """Return the distance for Laplace noise of this scale in every coordinate."""
        tail = math.log(1.0 / (_CAUTION * self.beta)) ** 2
        noise = scale**2 * (2.0 * self.dimension + max(0.0, tail - 2.0) * math.sqrt(self.dimension))
        sampling = (
            self.deviation**2 / users * _chi_square(self.dimension, 1.0 - _CAUTION * self.beta)
        )
        return math.sqrt(sampling + noise)

    def _routes(self, users: int, epsilon: float, *, reserve: float) -> dict[str, float]:
        """Return the noise of every route of a Gaussian budget."""
        set_aside = float(core_reserve(self.delta, self.relation))
        mu = _mu(epsilon, self.delta - set_aside)
        routes = {"clip": self._clip_noise(users, mu)}
        if self.relation is Relation.ADD_REMOVE:
            seen = can_shrink(
                n_users=users / reserve,
                dimension=self.dimension,
                square=mu * mu,
                diameter=self._diameter,
            )
            if seen:
                length = self.spread * math.sqrt(self.dimension)
                routes["ball"] = _MEASURED_BALL * length / (users * mu)
            return routes
        signal = users * mu / reserve
        ball = ball_noise(self.dimension, self.reach / self.spread)
        routes["ball"] = _NOISE_FACTOR * self.spread * read_noise(ball, signal)
        if self.dimension < CORE_DIMENSIONS:
            return routes
        core = core_noise(self.dimension, set_aside)
        signal = min(users, CORE_USERS) * mu / reserve
        routes["core"] = _NOISE_FACTOR * self.spread * read_noise(core, signal)
        return routes

    def _gaussian(self, users: int, epsilon: float) -> float:
        routes = self._routes(users, epsilon, reserve=_ROUTE_RESERVE)
        found = self._normal(users, min(routes.values()))
        # Nothing has to be found out for clipping to the range, so skewed people do it no harm.
        return min(_SKEW * found, self.clip_error(users, epsilon)) if self.share_between else found

    def _pure(self, users: int, epsilon: float) -> float:
        first = math.ceil(QUANTILE_USERS * self.dimension / epsilon)
        if users >= first:
            return self._quantile_error(users, epsilon)
        # Where finding a range is worse than clipping, the estimator still does it from here on.
        return max(self.clip_error(users, epsilon), self._quantile_error(first, epsilon))

    def _quantile_error(self, users: int, epsilon: float) -> float:
        share = 1.0 if self.relation is Relation.REPLACE else 1.0 - QUANTILE_SIZE_SHARE
        each = QUANTILE_SHARES[-1] * share * epsilon / self.dimension
        widen = widening(users=users, epsilon=each)
        radius = min(widen * _REACH * self.deviation, 2.0 * self.half_width)
        return self._laplace(users, self._diameter * radius / (each * users))

    def group_error(self, users: int, epsilon: float) -> float:
        """Return the error of group privacy: single records are hidden so well that all are."""
        return self._of_people(users, super().group_error(users, epsilon))

    def item_to_user_error(self, users: int, epsilon: float) -> float:
        """Return the error of Algorithm 1 of Ghazi et al. around a method for single records."""
        return self._of_people(users, super().item_to_user_error(users, epsilon))

    def _of_people(self, users: int, error: float) -> float:
        """Return an error for single records, with what those of one user have in common."""
        single = self.with_records(1).deviation ** 2 / self.records
        common = max(0.0, self.deviation**2 - single) / users
        sampling = common * _chi_square(self.dimension, 1.0 - _CAUTION * self.beta)
        return min(math.sqrt(error**2 + sampling), self.largest_error)

    def baselines(self) -> dict[str, ErrorModel]:
        """Return the error of simpler methods, by name."""
        return {**super().baselines(), "clip to range": self.clip_error}

    def way(self, users: int, epsilon: float) -> tuple[str, str]:
        """Return the route that the estimator takes."""
        mu = self._mu(epsilon)
        first = first_way(users=users, dimension=self.dimension, epsilon=epsilon, mu=mu)
        if first.name != "ball":
            if first.name != "clip" and not self._leaves_the_range(first.name, users, epsilon):
                return "clip", "the range is not much wider than the users."
            return first.name, first.reason
        routes = self._routes(users, epsilon, reserve=1.0)
        if "core" in routes and core_is_worthwhile(routes["core"], ball=routes["ball"]):
            return "core", "almost all users have most of the others nearby."
        promised = routes.get("ball", math.inf) / _NOISE_FACTOR
        if ball_is_worthwhile(promised, clipping=routes["clip"]):
            return "ball", "a ball can shrink from the bound to where the users are."
        return "drift", "every other route would need more users for this spread."

    def _leaves_the_range(self, first: str, users: int, epsilon: float) -> bool:
        """Whether the estimator would see that normal users are in a small part of the range."""
        situation: dict[str, Any] = {
            "users": users,
            "dimension": self.dimension,
            "epsilon": epsilon,
        }
        spread = max(self.deviation / self.half_width, 1e-6)
        if is_tested(**situation):
            inside = {
                corner: math.erf(corner.width / math.sqrt(8.0) / spread)
                for corner in corners(mu=self._mu(epsilon), **situation)
            }
            if all(share**self.dimension < corner.share for corner, share in inside.items()):
                return False
        elif is_paired(way=first, relation=self.relation, **situation):
            return spread <= NEAR[first].width
        if first != "interval":
            return True
        costs = search_costs(spread=_TYPICAL * spread, **situation)
        paid = costs.spread + costs.after_spread + present_cost(users=users, epsilon=epsilon)
        reach = interval_radius(_TYPICAL * spread, dimension=self.dimension)
        return reach < WORTHWHILE * cube_gain(self.dimension) * (1.0 - paid / epsilon)

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
