"""Other losses for labels: margins, several classes, and class weights."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from quorate import _validate
from quorate.core.public_randomness import public_generator
from quorate.models.losses import LinearLoss, mean_over_scores

__all__ = ["ClassWeighted", "SmoothedHingeLoss", "SoftmaxLoss"]

Vector = NDArray[np.float64]

# Of a hinge: the share of labels on their side of it, and the least share of records at the bend.
_RIGHT, _BENT_AT_LEAST = 0.75, 0.05
# Points of a normal distribution at which probabilities of several classes are averaged.
_POINTS = 512


@dataclass(frozen=True, kw_only=True)
class SmoothedHingeLoss(LinearLoss):
    """The hinge loss of targets 0 and 1, its corner rounded over ``width``.

    The margin is s = (2 y - 1) z. The loss is zero for s >= 1, linear for s <= 1 - width, and
    quadratic between.

    Examples
    --------
    >>> from quorate.core.users import UserData
    >>> people = UserData([[2.0], [3.0]], [1.0, 0.0], offsets=[0, 1, 2])
    >>> SmoothedHingeLoss().user_gradients(people, np.array([0.4, 0.0]))
    array([[-0.8, -0.4],
           [ 3. ,  1. ]])
    """

    width: float = 0.5

    def __post_init__(self) -> None:
        _validate.positive(width=self.width)

    @property
    def curvature(self) -> float:
        """One over the width."""
        return 1.0 / self.width

    def expected_curvature(self, theta: Vector) -> Vector:
        """Return the mean curvature over normal features."""
        return mean_over_scores(theta, self._bent, intercept=self.intercept)

    def _bent(self, scores: Vector) -> Vector:
        margins = np.abs(scores)
        bent = (margins <= 1.0) & (margins >= 1.0 - self.width)
        return np.asarray(self.curvature * np.where(bent, _RIGHT, _BENT_AT_LEAST))

    def slopes(self, predictions: Vector, targets: Vector) -> Vector:
        """Return minus the sign of the label, times the amount by which the margin is missed."""
        side = 2.0 * targets[:, None] - 1.0
        missed = np.clip((1.0 - side * predictions) / self.width, 0.0, 1.0)
        return np.asarray(-side * missed)


@dataclass(frozen=True, kw_only=True)
class SoftmaxLoss(LinearLoss):
    """The negative log-likelihood of labels 0, 1, ..., ``classes`` - 1.

    A record with any other target is ignored.

    Examples
    --------
    >>> from quorate.core.users import UserData
    >>> people = UserData([[3.0]], [2.0], offsets=[0, 1])
    >>> SoftmaxLoss(classes=3, intercept=False).user_gradients(people, np.zeros(3)).round(6)
    array([[ 1.,  1., -2.]])
    """

    classes: int

    def __post_init__(self) -> None:
        _validate.positive_integer(classes=self.classes)

    @property
    def curvature(self) -> float:
        """A half."""
        return 0.5

    @property
    def outputs(self) -> int:
        """One prediction per class."""
        return self.classes

    def expected_curvature(self, theta: Vector) -> Vector:
        """Return the mean curvature over normal features."""
        rows = theta.reshape(self.outputs, -1)
        features = rows.shape[1] - self.intercept
        weights = rows[:, :features]
        offsets = rows[:, features] if self.intercept else np.zeros(self.outputs)
        spread, axes = np.linalg.eigh(weights @ weights.T)
        normal = public_generator(0).normal(size=(_POINTS, self.outputs))
        scores = normal * np.sqrt(np.maximum(spread, 0.0)) @ axes.T + offsets
        chances = np.exp(scores - scores.max(axis=1, keepdims=True))
        chances /= chances.sum(axis=1, keepdims=True)
        return np.asarray(np.diag(chances.mean(axis=0)) - chances.T @ chances / _POINTS)

    def slopes(self, predictions: Vector, targets: Vector) -> Vector:
        """Return the predicted probabilities minus the label."""
        shifted = np.exp(predictions - predictions.max(axis=1, keepdims=True, initial=-np.inf))
        chances = shifted / shifted.sum(axis=1, keepdims=True)
        chances[targets[:, None] == np.arange(self.classes)] -= 1.0
        return np.asarray(chances)


@dataclass(frozen=True, kw_only=True)
class ClassWeighted(LinearLoss):
    """A loss in which the weight of a record is the public weight of its label.

    Examples
    --------
    >>> from quorate.models.losses import LogisticLoss
    >>> from quorate.core.users import UserData
    >>> people = UserData([[2.0], [2.0]], [1.0, 0.0], offsets=[0, 1, 2])
    >>> loss = ClassWeighted(inner=LogisticLoss(), weights=(0.5, 1.0))
    >>> loss.user_gradients(people, np.zeros(2))
    array([[-1.  , -0.5 ],
           [ 0.5 ,  0.25]])
    """

    inner: LinearLoss
    weights: tuple[float, ...]

    @property
    def curvature(self) -> float:
        """The curvature of the inner loss; it is enough because no weight is above 1."""
        return self.inner.curvature

    @property
    def outputs(self) -> int:
        """The outputs of the inner loss."""
        return self.inner.outputs

    @property
    def bends(self) -> bool:
        """Whether that of the inner loss does."""
        return self.inner.bends

    def expected_curvature(self, theta: Vector) -> Vector:
        """Return the expected curvature of the inner loss."""
        return self.inner.expected_curvature(theta)

    def slopes(self, predictions: Vector, targets: Vector) -> Vector:
        """Return the slopes of the inner loss, each times the weight of its label."""
        held = np.zeros(len(targets))
        for place, weight in enumerate(self.weights):
            held[targets == place] = weight
        return np.asarray(self.inner.slopes(predictions, targets) * held[:, None])
