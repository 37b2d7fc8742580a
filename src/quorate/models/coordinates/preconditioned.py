"""Transform gradients and parameters to released coordinates instead of the records.

If transforming all records once (:class:`~quorate.models.coordinates.geometry.Whitened`) is not
worth its cost, each gradient is transformed instead, and so are the parameters of an earlier fit.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from quorate.models.coordinates.geometry import Geometry, WhitenedLoss
from quorate.models.losses import LinearLoss
from quorate.users import UserData

__all__ = ["PreconditionedLoss", "inward", "pull_back"]

Vector = NDArray[np.float64]

# Numbers that are multiplied at once: they stay in the cache.
_BLOCK = 2**17


@dataclass(frozen=True)
class PreconditionedLoss(WhitenedLoss):
    """A linear loss as a function of parameters in the coordinates of a geometry.

    Examples
    --------
    >>> from quorate.models.regression_losses import SquaredLoss
    >>> geometry = Geometry(centre=np.array([1.0]), whitening=np.array([[2.0]]))
    >>> people = UserData([[2.0]], [0.0], offsets=[0, 1])
    >>> PreconditionedLoss(SquaredLoss(), geometry).user_gradients(people, np.array([1.0, 0.0]))
    array([[4., 2.]])
    """

    def user_gradients(self, batch: UserData, theta: Vector) -> Vector:
        """Return the gradients of the loss inside, pulled back."""
        outer = self.geometry.outward(theta, self.inner)
        gradients = self.inner.user_gradients(batch, outer)
        return pull_back(self.geometry, gradients, self.inner)


def inward(geometry: Geometry, theta: Vector, loss: LinearLoss) -> Vector:
    """Return parameters in the coordinates of a geometry: undo :meth:`Geometry.outward`."""
    rows = theta.reshape(loss.outputs, -1)
    features = geometry.centre.size
    inner = rows[:, :features]
    weights = (
        np.linalg.solve(geometry.whitening, inner.T).T
        if geometry.whitening.ndim
        else inner / geometry.whitening
    )
    if not loss.intercept:
        return np.ascontiguousarray(weights).ravel()
    offsets = rows[:, features] + rows[:, :features] @ geometry.centre
    return np.column_stack([weights, offsets]).ravel()


def pull_back(geometry: Geometry, gradients: Vector, loss: LinearLoss) -> Vector:
    """Return gradients in the coordinates of a geometry, one row per user."""
    features = geometry.centre.size
    shaped = gradients.reshape(-1, features + loss.intercept)
    result = np.empty_like(shaped)
    few = max(1, _BLOCK // shaped.shape[1])
    for start in range(0, len(shaped), few):
        given, found = shaped[start : start + few], result[start : start + few]
        inner = given[:, :features]
        if loss.intercept:
            inner = inner - given[:, features:] * geometry.centre
            found[:, features] = given[:, features]
        if geometry.whitening.ndim:
            # One product for each row: no user's bits depend on another's.
            alone, into = inner[:, np.newaxis], found[:, np.newaxis, :features]
            np.matmul(alone, geometry.whitening, out=into)
        else:
            np.multiply(inner, geometry.whitening, out=found[:, :features])
    return result.reshape(gradients.shape)
