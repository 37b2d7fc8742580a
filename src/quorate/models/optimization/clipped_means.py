"""Clipped means whose radius follows the lifts of those before: for steps and for coordinates."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from quorate.core.bounds.lifted_ball import LiftedBall
from quorate.core.guarantees import Relation
from quorate.core.users import UserData
from quorate.mechanisms.user_releases import (
    BoundedVectors,
    ReleasedMean,
    UserReleases,
    UserVectors,
    bounded_mean,
)
from quorate.models.optimization.clips import Lengths
from quorate.models.optimization.gradients import signal_of
from quorate.models.optimization.minibatches import sampled_mean

__all__ = ["Lifted", "clipped_mean", "lifted_mean", "takes_cone"]

Vector = NDArray[np.float64]


@dataclass(frozen=True)
class Lifted:
    """Vectors with one more column, in which the lift will stand.

    >>> people = UserData([[1.0, 2.0]], offsets=[0, 1])
    >>> Lifted(UserData.user_means, (1,))(people)
    array([[2., 0.]])
    """

    vectors: UserVectors
    places: tuple[int, ...] | None = None

    def __call__(self, users: UserData) -> Vector:
        """Return one row per user."""
        rows = self.vectors(users)
        rows = rows if self.places is None else rows[:, list(self.places)]
        return np.concatenate([rows, np.zeros((len(rows), 1))], axis=1)


def takes_cone(run: UserReleases) -> bool:
    """Whether lifts have to be those that cost nothing when somebody comes or stays away."""
    return run.relation is not Relation.REPLACE or run.sample is not None


def lifted_mean(
    run: UserReleases, vectors: Lifted, radius: float, *, size: int, square: float
) -> ReleasedMean:
    """Release the mean of vectors that are clipped to a radius, and their mean lift."""
    cone = takes_cone(run)
    bounded = BoundedVectors(vectors, LiftedBall(radius, centre=np.zeros(size), cone=cone))
    if run.sample is not None:
        return sampled_mean(run, bounded)
    return bounded_mean(
        run.data,
        bounded,
        multiplier=run.account.multiplier(square),
        account=run.account,
        n_users=run.n_users,
    )


def clipped_mean(
    run: UserReleases,
    vectors: Lifted,
    lengths: Lengths,
    *,
    size: int,
    square: float,
    whole: float,
    drift: float,
    least: float = 0.0,
) -> tuple[ReleasedMean, float, float, Lengths]:
    """Release a clipped mean; return it, its radius, what clipping left, and what is believed now.

    It pays ``square`` of what all steps together pay, ``whole``. No radius is below ``least``, and
    log lengths change by ``drift`` until the next release.
    """
    noise = (
        2.0
        * math.sqrt(size / whole)
        / signal_of(n_users=run.n_users, mu=1.0, relation=run.relation)
    )
    radius = max(least, lengths.radius(noise, size))
    noisy = lifted_mean(run, vectors, radius, size=size, square=square)
    height, error = float(noisy.value[-1]) / radius, noisy.noise / radius
    lengths, kept = lengths.after(height, radius=radius, noise=error, drift=drift)
    return ReleasedMean(noisy.value[:-1], noisy.noise), radius, kept, lengths
