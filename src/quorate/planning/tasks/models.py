r"""Planning a linear or logistic regression: its excess risk.

With p parameters, n users of m records and :math:`\mu` = ``gdp_mu(epsilon, delta)`` the excess risk
is half a chi-square variable with p degrees of freedom times

.. math:: \frac{1}{nm} + \frac{c\,p}{m (n\mu)^2} \left(1 + \frac{s^3}{(n\mu)^3}\right),

where the terms are sampling, and the noise of gradient descent on users' clipped gradients. The
noise is larger if searches for clipping radii use most of the budget. A term :math:`r/(n\mu)^3` is
added for descent that does not converge when users are few. Features are assumed to have comparable
scales, and coefficients a length of about one. If people differ, gradients of one person replace
those of others only in part, so 1/m is replaced by the variance of a mean of m of their records. r
is larger for correlated features. Skewed targets multiply the noise and add a clipping bias,
:math:`a/(n\mu)`.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from dataclasses import dataclass
from functools import lru_cache
from typing import ClassVar

from quorate import _validate
from quorate.core.account.costs import gdp_mu
from quorate.core.guarantees import Relation
from quorate.exceptions import ParameterError
from quorate.models.optimization.gradients import model_feasibility
from quorate.planning.first_order import FirstOrder, first_order_error
from quorate.planning.limits import convex_floor, two_point_users
from quorate.planning.plan import PublishedBound
from quorate.planning.solve import smallest_users
from quorate.planning.tasks.base import PeopleTask

__all__ = ["LinearTask", "LogisticTask", "ModelTask"]

# Measured: the share of the failure probability to plan with.
_CAUTION = 0.4


@lru_cache(maxsize=4096)
def _mu(epsilon: float, delta: float) -> float:
    return gdp_mu(epsilon, delta)


@lru_cache(maxsize=4096)
def _users_needed(
    parameters: int, epsilon: float, delta: float, *, records: int, relation: Relation
) -> int:
    feasible = model_feasibility(
        n_users=0,
        dimension=parameters,
        epsilon=epsilon,
        delta=delta,
        records=records,
        relation=relation,
    )
    return feasible.users_needed


@lru_cache(maxsize=256)
def _half_chi_square(parameters: int, beta: float) -> float:
    from scipy.special import chdtri

    return float(chdtri(parameters, beta)) / 2.0


@dataclass(frozen=True, kw_only=True)
class ModelTask(PeopleTask):
    """Base of the plans of linear models.

    Parameters
    ----------
    dimension : int, default=10
        Number of features; an intercept is added.
    between : float, optional
        Share for gradients; by default one half, because records of one person are similar.
    """

    dimension: int = 10

    _unreached: ClassVar[float]
    # The measured s of the formula above.
    _searched: ClassVar[float] = 0.0
    # Measured on real tables (the choose part of benchmarks/people_tables.py, 2,000 and 5,000
    # people), as cautious as asks for no more than 2.5 times the users in the middle: features of
    # people who differ are so correlated that descent leaves more; linear targets are skewed, and
    # clips that follow noise cut some of that away.
    _unreached_of_people: ClassVar[float] = 4e6
    _skew: ClassVar[float] = 1.0
    _cut_away: ClassVar[float] = 0.0
    # Largest and smallest second derivative for features of variance 1.
    _curvature: ClassVar[float] = 1.0
    _strength: ClassVar[float] = 0.0

    def __post_init__(self) -> None:
        super().__post_init__()
        _validate.positive_integer(dimension=self.dimension)
        if self.delta == 0:
            raise ParameterError(
                "Expected delta > 0, got delta=0.0: models use Gaussian noise, which has no pure "
                "guarantee. Choose delta well below one over the number of users, such as 1e-6."
            )

    @property
    def parameters(self) -> int:
        """Number of features, plus one for the intercept."""
        return self.dimension + 1

    @property
    @abstractmethod
    def unit(self) -> float:
        """The excess risk that corresponds to 1 in the formula above."""

    @property
    @abstractmethod
    def descent(self) -> float:
        """The measured constant c of the formula above."""

    def error(self, users: int, epsilon: float) -> float:
        """Return the excess risk due to sampling, noise and incomplete descent."""
        if users < self._first(epsilon):
            return self.largest_error
        p, m, mu = self.parameters, 1.0 / self.shrunk, self.mu(epsilon)
        noise = self.descent * (1.0 + (self._searched / (users * mu)) ** 3)
        spread = 1.0 / (users * m) + noise * p / (m * (users * mu) ** 2)
        found = self.unit * _half_chi_square(p, _CAUTION * self.beta) * spread
        unreached = self._unreached
        if self.share_between:
            found = self._skew * found + self._cut_away / (users * mu)
            unreached += self._unreached_of_people
        return min(found + unreached / (users * mu) ** 3, self.largest_error)

    def mu(self, epsilon: float) -> float:
        """Return the Gaussian-DP parameter of the budget, for the replacement of a user."""
        worth = _mu(epsilon, self.delta)
        return worth if self.relation is Relation.REPLACE else 2.0 * worth

    def _first(self, epsilon: float) -> int:
        """Return the number of users below which the estimator refuses."""
        return _users_needed(
            self.parameters, epsilon, self.delta, records=self.records, relation=self.relation
        )

    def algorithm(self, users: int, epsilon: float) -> tuple[str, str]:
        """Return the algorithm of the estimator, or the reason why it would refuse."""
        first = self._first(epsilon)
        if users < first:
            return "refuse", f"below {first:,} users the noise exceeds any gradient."
        return "descent", "clipped mean gradients and their posterior."

    def upper(self, *, epsilon: float, error: float) -> PublishedBound:
        """Return Theorem 5 of Levy et al. with constants 1, for a unit ball and unit gradients."""
        gradient = math.sqrt(self.parameters / self.records)
        users = (gradient / error) ** 2
        users += gradient * math.sqrt(self.parameters) / (error * epsilon)
        return PublishedBound(
            users=users,
            theorem="Theorem 5 of Levy et al. (2021)",
            holds=False,
            note="stated up to constants and logarithms, constants 1 here",
        )

    def sufficient(self, *, epsilon: float, error: float) -> tuple[PublishedBound, ...]:
        """Return also Theorem 4 of Levy et al.: gradient descent on the empirical risk.

        For a strongly convex loss the squared gradient is at least 2 ``strength`` times the excess,
        so the bound for non-convex losses also bounds the excess.
        """
        loss = FirstOrder(
            dimension=self.parameters,
            curvature=self._curvature,
            strength=self._strength,
            failure=self.beta,
        )
        targets = {"convex": error}
        if self._strength:
            targets |= {"strongly convex": error, "non-convex": 2.0 * self._strength * error}
        return (
            *super().sufficient(epsilon=epsilon, error=error),
            *(self._by_descent(loss, kind, epsilon, target) for kind, target in targets.items()),
        )

    def _by_descent(
        self, loss: FirstOrder, kind: str, epsilon: float, target: float
    ) -> PublishedBound:
        # The theorem is stated for epsilon up to 1; who promises 1 promises more.
        known = {"records": self.records, "epsilon": min(epsilon, 1.0), "delta": self.delta}
        users = smallest_users(
            lambda n: first_order_error(loss, kind, users=n, **known),  # type: ignore[arg-type]
            target,
        )
        open_constant = ", constant 1" if kind == "strongly convex" else ""
        return PublishedBound(
            users=None if users is None else float(users),
            theorem=f"Theorem 4 ({kind}) of Levy et al. (2021)",
            holds=False,
            note=f"printed constants{open_constant}; people who are alike, and their own risk",
        )

    def lower(self, *, epsilon: float, error: float) -> PublishedBound:
        """Return Le Cam's bound for one coefficient, if everything else is known."""
        users = two_point_users(
            divergence=self.divergence(error),
            records=self.records,
            epsilon=epsilon,
            delta=self.delta,
            beta=self.beta,
            relation=self.relation,
        )
        return PublishedBound(
            users=max(1.0, users),
            theorem="Theorem 1 of Acharya et al. (2021)",
            holds=self.divergence_holds(error),
            note="already for one unknown coefficient of a normal feature",
        )

    def necessary(self, *, epsilon: float, error: float) -> tuple[PublishedBound, ...]:
        """Return also Theorem 6 of Levy et al., the counterpart of Theorem 5."""
        users = smallest_users(
            lambda n: convex_floor(
                dimension=self.parameters,
                gradient_bound=math.sqrt(self.parameters),
                gradient_spread=1.0,
                radius=1.0,
                users=n,
                records=self.records,
                epsilon=epsilon,
                delta=self.delta,
                relation=self.relation,
            ),
            error,
        )
        hardest = PublishedBound(
            users=None if users is None else float(users),
            theorem="Theorem 6 of Levy et al. (2021)",
            holds=False,
            note="for the hardest convex loss of Theorem 5; regressions are easier",
        )
        return (*super().necessary(epsilon=epsilon, error=error), hardest)

    @abstractmethod
    def divergence(self, error: float) -> float:
        """Return the divergence per record of two models with this excess at the midpoint."""

    def divergence_holds(self, error: float) -> bool:
        """Whether :meth:`divergence` is valid for this excess risk."""
        return error > 0


@dataclass(frozen=True, kw_only=True)
class LinearTask(ModelTask):
    """Linear regression, as in :class:`~quorate.models.LinearRegression`.

    The error is the excess of half the mean squared residual over the smallest possible.

    Parameters
    ----------
    dimension : int, default=10
    scale : float, default=1.0
        Standard deviation of the residuals, relative to the length of the coefficients.

    Examples
    --------
    >>> task = LinearTask(dimension=5, records=20, delta=1e-6, between=0.0)
    >>> task.error(2000, 1.0) < 0.001 < task.error(300, 1.0)
    True

    If people differ, which is the default, the error is larger for the same number of records.

    >>> LinearTask(dimension=5, records=20, delta=1e-6).error(2000, 1.0) > 0.005
    True
    """

    scale: float = 1.0

    name: ClassVar[str] = "linear"
    error_meaning: ClassVar[str] = "excess over the smallest half mean squared residual"
    _unreached: ClassVar[float] = 4000.0
    _searched: ClassVar[float] = 110.0
    _skew: ClassVar[float] = 3.0
    _cut_away: ClassVar[float] = 2.0
    _strength: ClassVar[float] = 1.0

    def __post_init__(self) -> None:
        super().__post_init__()
        _validate.positive(scale=self.scale)

    @property
    def unit(self) -> float:
        """Variance of the residuals."""
        return self.scale**2

    @property
    def descent(self) -> float:
        """The constant is a little larger if users have few records, because of clipping."""
        return 10.5 * (1.0 + 1.6 / math.sqrt(self.records))

    @property
    def largest_error(self) -> float:
        """The excess loss of a constant model if the coefficients have length one."""
        return 0.5

    def divergence(self, error: float) -> float:
        """Return the divergence of two models with coefficients 2 sqrt(2 error) apart."""
        return 4.0 * error / self.scale**2


@dataclass(frozen=True, kw_only=True)
class LogisticTask(ModelTask):
    """Logistic regression, as in :class:`~quorate.models.LogisticRegression`.

    The error is the excess of the mean logarithmic loss over the smallest possible.

    Parameters
    ----------
    dimension : int, default=10

    Examples
    --------
    >>> task = LogisticTask(dimension=5, records=20, delta=1e-6, between=0.0)
    >>> task.error(2000, 1.0) < 0.001 < task.error(300, 1.0)
    True

    If people differ, which is the default, the error is larger for the same number of users.

    >>> LogisticTask(dimension=5, records=20, delta=1e-6).error(2000, 1.0) > 0.005
    True
    """

    name: ClassVar[str] = "logistic"
    error_meaning: ClassVar[str] = "excess over the smallest mean logarithmic loss"
    _unreached: ClassVar[float] = 3000.0
    _curvature: ClassVar[float] = 0.25

    @property
    def unit(self) -> float:
        """One, whatever the curvature; a standard error costs half a unit of log-likelihood."""
        return 1.0

    @property
    def descent(self) -> float:
        """The constant of the noise; larger for few records in few dimensions.

        In this case the records of a user agree, and clipping biases them.
        """
        return 15.0 + 5500.0 / math.pow(self.records * self.parameters, 1.5)

    @property
    def largest_error(self) -> float:
        """The log-loss of predicting one half."""
        return math.log(2.0)

    def divergence(self, error: float) -> float:
        """Return the divergence of coefficients +-a with a^2 = 10 error.

        The loss at the midpoint is at least ``error``.

        The excess at the midpoint is at least a^2 / 8 - 3 a^4 / 64, the divergence at most a^2 / 2.
        """
        return 5.0 * error

    def divergence_holds(self, error: float) -> bool:
        """Whether the error is at most 0.05, up to which the expansion holds."""
        return 0 < error <= 0.05
