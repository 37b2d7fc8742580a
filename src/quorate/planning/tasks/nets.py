r"""Planning a neural network: its excess over a linear model.

The default network contains a linear model, so the noise of further weights is added to the excess
risk of a linear model. An average over the later steps has about the noise of one step with the
whole budget, :math:`2C/(n\mu)` in each of W weights, for gradients clipped to C; with C and the
curvature about one this is :math:`2W/(n\mu)^2` in the loss. The gain of a network over a linear
model is not included, because it is not known beforehand. A network for regression starts at a
linear model with half of the budget, and drops its steps if they found nothing
(:mod:`quorate.nets.linear_ends`).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

from quorate import _validate
from quorate.nets.linear_ends import LinearEnds
from quorate.nets.small import small_size
from quorate.planning.tasks.models import LinearTask, LogisticTask

__all__ = ["NetNumberTask", "NetTask"]


def _added(weights: int, *, signal: float) -> float:
    """Return the excess loss from the noise of the weights; ``signal`` is n mu."""
    return 2.0 * weights / signal**2


def _reason(weights: int, *, signal: float) -> str:
    if signal < 2.0 * math.sqrt(weights):
        return (
            f"noisy steps of {weights:,} weights, longer noise than any gradient: a linear model "
            "does better."
        )
    return f"noisy steps of {weights:,} weights on users' clipped gradients."


@dataclass(frozen=True, kw_only=True)
class NetTask(LogisticTask):
    """A network that predicts a label, as in :class:`~quorate.nets.NeuralClassifier`.

    Parameters
    ----------
    dimension, records, between, delta, relation
        As for a logistic regression.
    hidden : int, default=32
        Hidden units of the default network.

    Examples
    --------
    >>> NetTask(delta=1e-6).error(5000, 1.0) > LogisticTask(delta=1e-6).error(5000, 1.0)
    True
    """

    name: ClassVar[str] = "net"
    error_meaning: ClassVar[str] = "excess over the smallest mean log-loss of a linear rule"
    hidden: int = 32

    def __post_init__(self) -> None:
        super().__post_init__()
        _validate.positive_integer(hidden=self.hidden)

    @property
    def weights(self) -> int:
        """Number of weights of the default network, for two classes."""
        return small_size(features=self.dimension, outputs=2, hidden=self.hidden)

    def error(self, users: int, epsilon: float) -> float:
        """Return the excess of a linear model plus the effect of noise on more weights."""
        added = _added(self.weights, signal=users * self.mu(epsilon))
        return min(self.largest_error, super().error(users, epsilon) + added)

    def algorithm(self, users: int, epsilon: float) -> tuple[str, str]:
        """Return the algorithm, and whether a linear model would be better."""
        return "training", _reason(self.weights, signal=users * self.mu(epsilon))


@dataclass(frozen=True, kw_only=True)
class NetNumberTask(LinearTask):
    """A network that predicts a number, as in :class:`~quorate.nets.NeuralRegressor`.

    Parameters
    ----------
    dimension, records, between, delta, relation
        As for a linear regression.
    hidden : int, default=32
        Hidden units of the default network.

    Examples
    --------
    >>> NetNumberTask(delta=1e-6).error(5000, 1.0) > LinearTask(delta=1e-6).error(5000, 1.0)
    True
    """

    name: ClassVar[str] = "net-number"
    error_meaning: ClassVar[str] = "excess over the smallest half mean squared residual of a line"
    hidden: int = 32

    def __post_init__(self) -> None:
        super().__post_init__()
        _validate.positive_integer(hidden=self.hidden)

    @property
    def weights(self) -> int:
        """Number of weights of the default network."""
        return small_size(features=self.dimension, outputs=1, hidden=self.hidden)

    def error(self, users: int, epsilon: float) -> float:
        """Return the excess of a linear model for its part of the budget.

        It is computed as if there were fewer users.
        """
        fewer = max(1, int(users * math.sqrt(LinearEnds.first)))
        return super().error(fewer, epsilon)

    def algorithm(self, users: int, epsilon: float) -> tuple[str, str]:
        """Return the algorithm, and whether a linear model would be better."""
        return "training", _reason(self.weights, signal=users * self.mu(epsilon))
