"""Losses for regression: the squared error, and the Huber loss."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from quorate import _validate
from quorate.models.losses import LinearLoss

__all__ = ["HuberLoss", "SquaredLoss"]

Vector = NDArray[np.float64]


@dataclass(frozen=True, kw_only=True)
class SquaredLoss(LinearLoss):
    """Half the squared error.

    Examples
    --------
    >>> from quorate.core.users import UserData
    >>> people = UserData([[1.0], [3.0]], [2.0, 2.0], offsets=[0, 1, 2])
    >>> SquaredLoss().user_gradients(people, np.array([1.0, 0.0]))
    array([[-1., -1.],
           [ 3.,  1.]])
    """

    @property
    def curvature(self) -> float:
        """One."""
        return 1.0

    def slopes(self, predictions: Vector, targets: Vector) -> Vector:
        """Return the errors."""
        return predictions - targets[:, None]


@dataclass(frozen=True, kw_only=True)
class HuberLoss(LinearLoss):
    """Quadratic for errors up to ``width``, linear beyond.

    Examples
    --------
    >>> from quorate.core.users import UserData
    >>> people = UserData([[1.0], [3.0]], [2.0, 2.0], offsets=[0, 1, 2])
    >>> HuberLoss(width=0.5).user_gradients(people, np.array([1.0, 0.0]))
    array([[-0.5, -0.5],
           [ 1.5,  0.5]])
    """

    width: float = 1.0

    def __post_init__(self) -> None:
        _validate.positive(width=self.width)

    @property
    def curvature(self) -> float:
        """One."""
        return 1.0

    def slopes(self, predictions: Vector, targets: Vector) -> Vector:
        """Return the errors, clipped at ``width``."""
        return np.clip(predictions - targets[:, None], -self.width, self.width)
