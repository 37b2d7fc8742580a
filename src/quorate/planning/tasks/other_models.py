"""Planning linear models with other losses than squares or logarithms, or with a penalty."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

from quorate.planning.tasks.models import LinearTask, LogisticTask

__all__ = ["HuberTask", "MarginTask", "RidgeTask"]

# Measured with 600 to 6,000 people, a penalty that takes two fifths of the coefficients.
_HELD_BACK = 200.0


@dataclass(frozen=True, kw_only=True)
class RidgeTask(LinearTask):
    """Least squares with a penalty, as in :class:`~quorate.models.Ridge`.

    It is planned as :class:`~quorate.planning.tasks.models.LinearTask`, with an additional term: a
    strong penalty keeps users' gradients long, and clipping them adds bias.

    Examples
    --------
    >>> RidgeTask(delta=1e-6).error(5000, 1.0) >= LinearTask(delta=1e-6).error(5000, 1.0)
    True
    """

    name: ClassVar[str] = "ridge"
    error_meaning: ClassVar[str] = "excess over the smallest penalised half mean squared residual"

    def error(self, users: int, epsilon: float) -> float:
        """Return the excess risk of least squares, plus the effect of the penalty."""
        added = _HELD_BACK * math.sqrt(self.parameters) / (users * self.mu(epsilon)) ** 2
        return min(self.largest_error, super().error(users, epsilon) + added)


@dataclass(frozen=True, kw_only=True)
class HuberTask(LinearTask):
    """Regression that is robust to outliers in the target, as in ``HuberRegression``.

    It is planned as :class:`~quorate.planning.tasks.models.LinearTask`, whose loss is nowhere
    flatter or less steep.

    Examples
    --------
    >>> HuberTask(delta=1e-6).error(5000, 1.0) < 0.5
    True
    """

    name: ClassVar[str] = "huber"
    error_meaning: ClassVar[str] = "excess over the smallest mean loss of Huber"
    # Far off the loss is straight.
    _strength: ClassVar[float] = 0.0


@dataclass(frozen=True, kw_only=True)
class MarginTask(LogisticTask):
    """A linear rule with a wide margin, as in :class:`~quorate.models.LinearSVC`.

    Examples
    --------
    >>> MarginTask(delta=1e-6).error(5000, 1.0) < 0.5
    True
    """

    name: ClassVar[str] = "svc"
    error_meaning: ClassVar[str] = "excess over the smallest mean smoothed hinge loss"
