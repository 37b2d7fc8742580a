"""Planning a linear or logistic regression: its excess risk."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache
from typing import ClassVar

from quorate import _validate
from quorate.accounting.calibrate import gdp_mu
from quorate.guarantees import Relation
from quorate.planning.limits import two_point_users
from quorate.planning.plan import PublishedBound
from quorate.planning.tasks.base import Task

__all__ = ["LinearTask", "LogisticTask"]

# A run with delta = 0 is planned with this one: models need Gaussian noise.
_DEFAULT_DELTA = 1e-6


@lru_cache(maxsize=4096)
def _mu(epsilon: float, delta: float) -> float:
    return gdp_mu(epsilon, delta)


@dataclass(frozen=True, kw_only=True)
class _ModelTask(Task):
    """What the planning of linear models has in common."""

    dimension: int = 10

    _privacy: ClassVar[float]
    _sampling: ClassVar[float]
    _first: ClassVar[float]

    def __post_init__(self) -> None:
        super().__post_init__()
        _validate.positive_integer(dimension=self.dimension)

    @property
    def noise(self) -> float:
        """Excess risk of a model that is off by one standard error of one record."""
        raise NotImplementedError

    def error(self, users: int, epsilon: float) -> float:
        """Return the excess risk: sampling, and the noise of descent on users' gradients."""
        mu = _mu(epsilon, self.delta or _DEFAULT_DELTA)
        if self.relation is Relation.ADD_REMOVE:
            mu *= 2.0
        d = self.dimension
        quantile = 1.0 + math.sqrt(2.0 * math.log(1.0 / self.beta) / d)
        sampling = self._sampling * d * quantile**2 / (users * self.records)
        signal = users * mu / d
        privacy = self._privacy * quantile / (self.records * signal * signal)
        return min(self.noise * (sampling + privacy), self.largest_error)

    def way(self, users: int, epsilon: float) -> tuple[str, str]:
        """Return the algorithm that the estimator would take."""
        del users, epsilon
        return "descent", "full gradient descent on users' clipped gradients."

    def upper(self, *, epsilon: float, error: float) -> PublishedBound:
        """Return Theorem 5 of Levy et al. with constants 1, for a unit ball and unit gradients."""
        gradient = math.sqrt(self.dimension / self.records)
        users = (gradient / error) ** 2 + gradient * math.sqrt(self.dimension) / (error * epsilon)
        return PublishedBound(
            users=users,
            theorem="Theorem 5 of Levy et al. (2021)",
            holds=False,
            note="stated up to constants and logarithms, constants 1 here",
        )

    def lower(self, *, epsilon: float, error: float) -> PublishedBound:
        """Return Le Cam's or Fano's bound for the model with normal features."""
        users = two_point_users(
            divergence=self._divergence(error),
            records=self.records,
            epsilon=epsilon,
            delta=self.delta or _DEFAULT_DELTA,
            beta=self.beta,
        )
        return PublishedBound(
            users=max(1.0, users),
            theorem="Theorem 1 of Acharya et al. (2021), users of m records",
            holds=True,
            note="already for one coefficient that is unknown",
        )

    def _divergence(self, error: float) -> float:
        """Return the divergence, a record, of two models with this excess risk half way."""
        raise NotImplementedError


@dataclass(frozen=True, kw_only=True)
class LinearTask(_ModelTask):
    """Linear regression; the error is the excess of half the mean squared residual."""

    scale: float = 1.0

    name: ClassVar[str] = "linear"
    error_meaning: ClassVar[str] = "excess over the smallest half mean squared residual"
    _privacy: ClassVar[float] = 4.0
    _sampling: ClassVar[float] = 0.5
    _first: ClassVar[float] = 1.0

    @property
    def noise(self) -> float:
        """Variance of the residual."""
        return self.scale**2

    @property
    def largest_error(self) -> float:
        """Coefficients of length one are ignored."""
        return 0.5

    def _divergence(self, error: float) -> float:
        return 4.0 * error / self.scale**2


@dataclass(frozen=True, kw_only=True)
class LogisticTask(_ModelTask):
    """Logistic regression; the error is the excess of the mean logarithmic loss."""

    name: ClassVar[str] = "logistic"
    error_meaning: ClassVar[str] = "excess over the smallest mean logarithmic loss"
    _privacy: ClassVar[float] = 4.0
    _sampling: ClassVar[float] = 0.5
    _first: ClassVar[float] = 1.0

    @property
    def noise(self) -> float:
        """One."""
        return 1.0

    @property
    def largest_error(self) -> float:
        """A coin's loss."""
        return math.log(2.0)

    def _divergence(self, error: float) -> float:
        return 4.0 * error
