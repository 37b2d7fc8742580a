"""Gradients whose clip is adapted on the way, at no cost: the release for few users.

A search for a radius costs a part of the budget that few users do not have. Here each user's
clipped gradient carries its lift (:mod:`quorate.core.bounds.lifted_ball`), which one user moves no
farther than the gradient alone: every step also shows how the clip sits, and the next radius
follows from that.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from quorate import _validate
from quorate.core.bounds.lifted_ball import LiftedBall
from quorate.exceptions import ParameterError
from quorate.guarantees import Relation
from quorate.means.spread_belief import SpreadBelief
from quorate.models.coordinates.preconditioned import PreconditionedLoss
from quorate.models.losses import Loss
from quorate.models.optimization.gradients import (
    GradientRelease,
    GradientRun,
    ReleasedGradient,
    gradients_at,
    signal_of,
)
from quorate.releases.user_releases import BoundedVectors, UserReleases, UserVectors, bounded_mean
from quorate.users import UserData
from quorate.users.store import row_lengths

__all__ = ["LiftedGradients", "LocalSteps"]

Vector = NDArray[np.float64]

# The radius is this part of the norm that lifts show, and changes by at most the factor in a step.
_TIGHT, _FASTEST = 0.65, 2.0
# From so many users on, n mu over the root of the parameters, what a clip cuts away costs more than
# its noise, and it is roomier in proportion; at most so many times.
_TELLING, _ROOMIEST = 26.0, 1.8
# By how much it is a larger one where one label is all there is.
_RARE = 2.0
# Numbers that are multiplied at once: eight megabytes.
_BLOCK = 2**20
# Norms of gradients are taken for at most so many first radii.
_REACH = 20.0


@dataclass(frozen=True, kw_only=True)
class LiftedGradients(GradientRelease):
    """Clip user gradients to a ball around zero, add Gaussian noise, and learn the ball's size.

    Parameters
    ----------
    radius : float
        Where to begin: public, or released before.

    Examples
    --------
    >>> from quorate.accounting.account import Account
    >>> from quorate.core.people import People
    >>> from quorate.models.regression_losses import SquaredLoss
    >>> people = UserData(np.ones((4000, 1)), np.ones(4000), offsets=np.arange(4001))
    >>> account = Account.open(epsilon=4.0, delta=1e-6)
    >>> run = UserReleases.start(People(people, account.relation), account)
    >>> gradients = LiftedGradients(radius=8.0).start(run, SquaredLoss(), steps=6)
    >>> radii = [gradients.release(np.zeros(2), step).radius for step in range(6)]
    >>> radii[0], radii[-1] < 2.0
    (8.0, True)
    """

    radius: float

    def __post_init__(self) -> None:
        _validate.positive(radius=self.radius)

    def start(self, run: UserReleases, loss: Loss, *, steps: int) -> GradientRun:
        """Divide what is left evenly among the steps: the first ones decide how the clip sits."""
        if run.sample is not None:
            raise ParameterError("LiftedGradients needs full batches; use ClippedGradients.")
        squares = np.full(steps, float(run.account.square_left) / steps)
        return _LiftedRun(run, loss, self.radius, squares)


class _LiftedRun(GradientRun):
    def __init__(self, run: UserReleases, loss: Loss, radius: float, squares: Vector) -> None:
        self._run, self._loss, self._radius, self._squares = run, loss, radius, squares
        self._cone = run.relation is not Relation.REPLACE
        signal = signal_of(n_users=run.n_users, mu=run.account.mu, relation=run.relation)
        telling = signal / math.sqrt(loss.dimension(run.data.n_features)) / _TELLING
        self._tight = _TIGHT * min(max(telling, 1.0), _ROOMIEST)
        self._belief = SpreadBelief.at_most(_REACH * radius, cone=self._cone)

    def release(self, theta: Vector, step: int) -> ReleasedGradient:
        run, radius = self._run, self._radius
        gradients = gradients_at(self._loss, theta)
        ball = LiftedBall(radius, centre=np.zeros(theta.size), cone=self._cone)
        last = step == len(self._squares) - 1
        square = float(run.account.square_left) if last else float(self._squares[step])
        noisy = bounded_mean(
            run.data,
            BoundedVectors(_WithPlace(gradients), ball),
            multiplier=run.account.multiplier(square),
            account=run.account,
            n_users=run.n_users,
        )
        self._belief = self._belief.after(
            float(noisy.value[-1]) / radius,
            radius=radius,
            around=0.0,
            noise=noisy.noise / radius,
            users=run.n_users,
        )
        uneven = self._loss.unevenness(theta) if isinstance(self._loss, LocalSteps) else 0.0
        wanted = (self._tight + _RARE * uneven**2) * self._belief.spread[0]
        self._radius = min(_FASTEST * radius, max(radius / _FASTEST, wanted))
        whole = noisy.noise * math.sqrt(square / float(self._squares.sum()))
        return ReleasedGradient(noisy.value[:-1], noisy.noise, whole, radius)


@dataclass(frozen=True)
class _WithPlace:
    """Gradients with one more column, in which the lift will stand."""

    gradients: UserVectors

    def __call__(self, users: UserData) -> Vector:
        rows = self.gradients(users)
        return np.concatenate([rows, np.zeros((len(rows), 1))], axis=1)


@dataclass(frozen=True)
class LocalSteps(PreconditionedLoss):
    """The mean of the gradients that a user meets on a few steps of their own.

    With few users every noisy step counts. Each user first takes ``count`` gradient steps on their
    own records and returns the mean step. Close to the start this is a gradient; with more steps it
    points towards the user's own optimum. Slopes of the loss must be bounded, or own steps may run
    away.

    Examples
    --------
    >>> from quorate.models.coordinates.geometry import Geometry
    >>> from quorate.models.losses import LogisticLoss
    >>> geometry = Geometry(centre=np.zeros(1), whitening=np.asarray(1.0))
    >>> people = UserData([[1.0], [1.0]], [1.0, 1.0], offsets=[0, 1, 2])
    >>> LocalSteps(LogisticLoss(), geometry).user_gradients(people, np.zeros(2)).round(3)
    array([[-0.352, -0.352],
           [-0.352, -0.352]])
    """

    count: int = 4

    def unevenness(self, theta: Vector) -> float:
        """Return how much longer gradients of a rare label are than those of a common one.

        At the centre of the features, where the constant alone tells how rare they are: 0 if labels
        are alike, 1 if one of them is certain.
        """
        loss = self.inner
        if not loss.intercept:
            return 0.0
        labels = np.arange(max(2, loss.outputs), dtype=np.float64)
        constant = theta.reshape(loss.outputs, -1)[:, -1]
        sizes = row_lengths(loss.slopes(np.tile(constant, (labels.size, 1)), labels))
        return float((sizes.max() - sizes.min()) / max(sizes.max() + sizes.min(), 1e-300))

    def user_gradients(self, batch: UserData, theta: Vector) -> Vector:
        """Return the mean way per step of each user; zeros for a user without records."""
        found = np.empty((batch.n_users, theta.size))
        start = 0
        for part in batch.batches(max(1, _BLOCK // max(1, batch.n_features))):
            found[start : start + part.n_users] = self._ways(part, theta)
            start += part.n_users
        return found

    def _ways(self, batch: UserData, theta: Vector) -> Vector:
        loss, features = self.inner, batch.n_features
        with np.errstate(all="ignore"):  # a warning about an overflow would tell of a value
            rows = (batch.X - self.geometry.centre) * self.geometry.whitening
        targets = np.zeros(len(rows)) if batch.y is None else batch.y
        counts = np.maximum(batch.record_counts(), 1)[:, None]
        owners = batch.user_index()
        own = np.tile(theta.reshape(1, loss.outputs, -1), (batch.n_users, 1, 1))
        # A user with few records would run to where they are all fitted; their own steps are short.
        safe = np.minimum(1.0, counts / (features + 1.0))
        rates = (0.25 / loss.curvature) * safe
        with np.errstate(all="ignore"):
            for _ in range(self.count):
                predictions = np.empty((len(rows), loss.outputs))
                for output in range(loss.outputs):
                    weights = own[:, output, :features].take(owners, axis=0)
                    predictions[:, output] = np.vecdot(rows, weights)
                    if loss.intercept:
                        predictions[:, output] += own[:, output, features].take(owners)
                slopes = loss.slopes(predictions, targets)
                for output in range(loss.outputs):
                    column = np.ascontiguousarray(slopes[:, output])
                    way = batch.user_sums(rows, weights=column) / counts
                    own[:, output, :features] -= rates * way
                if loss.intercept:
                    own[:, :, features] -= rates * (batch.user_sums(slopes) / counts)
            ways = (theta - own.reshape(batch.n_users, -1)) / (rates * self.count)
        return np.asarray(ways)
