r"""The spread of many features: each feature's own, and the few directions shared by many.

A user's whole second moment is a vector of :math:`d^2/2` numbers. From a hundred features on it
takes long to compute, and its noise hides all but the largest spreads. So only its important parts
are released. First come the mean squares of all features (d numbers), which bring them to one
scale. Then come the directions in which many features move together, for example because of a
common factor. They are found by two rounds of the power method on a few public directions (d
numbers each). The noise of a direction grows with d, that of the matrix with :math:`d^{3/2}`.

A spread that noise alone could explain is treated as that of a single feature, so that an error of
the estimate never makes a step too large.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from quorate.core.people import People
from quorate.core.public_randomness import public_generator
from quorate.core.users import UserData
from quorate.mechanisms.user_releases import WIDE, UserReleases
from quorate.models.coordinates.geometry import (
    SMALLEST_SPREAD,
    VECTOR,
    Geometry,
    Whitened,
    release_centre,
    symmetric,
)
from quorate.models.losses import alike_users, in_one_thread

__all__ = ["AlongDirections", "MeanSquares", "release_of_many"]

Vector = NDArray[np.float64]

# Shares of the account: the three releases of a spread take together what one matrix takes.
_CENTRE_SHARE = 0.02
_SPREAD_SHARE = 0.02
# Directions that are looked for at once.
_DIRECTIONS = 4
# The first round turns public directions towards the large spreads, the second measures them.
_ROUNDS = 2


def release_of_many(
    run: UserReleases, *, centred: bool, by_count: bool = False
) -> tuple[Geometry, People]:
    """Release the centre (if ``centred``) and the spread of the features.

    Also return the users in these coordinates.

    Examples
    --------
    >>> from quorate.core.account.account import Account
    >>> rng = np.random.default_rng(0)
    >>> rows = rng.normal(size=(20_000, 100)) + rng.normal(size=(20_000, 1))
    >>> people = UserData(rows, offsets=np.arange(0, 20_001, 2))
    >>> account = Account.open(epsilon=5.0, delta=1e-6)
    >>> run = UserReleases.start(People(people, account.relation), account)
    >>> geometry, turned = release_of_many(run, centred=True)
    >>> spreads = np.linalg.eigvalsh(geometry.whitening @ np.cov(rows.T) @ geometry.whitening)
    >>> bool(spreads.max() < 2.5), turned.n_features
    (True, 100)
    """
    features, square = run.data.n_features, _SPREAD_SHARE * float(run.account.square)
    centre = release_centre(run, share=_CENTRE_SHARE) if centred else np.zeros(features)
    held, squares = run.once(MeanSquares(centre), dimension=features)
    radius = held.radius(squares, WIDE, dimension=features)
    noisy = held.mean(squares, dimension=features, radius=radius, square=square)
    floor = max(noisy.noise, SMALLEST_SPREAD * float(np.abs(noisy.value).max()))
    scales = 1.0 / np.sqrt(np.maximum(noisy.value, floor))
    scaled = replace(run, data=run.data.derive(Whitened(centre, scales)))
    directions, spreads = _large_spreads(scaled, square=square)
    shorter = 1.0 / np.sqrt(spreads) - 1.0
    whitening = symmetric(np.diag(scales) + (directions * shorter) @ (directions.T * scales))
    turned = run.data.derive(Whitened(centre, whitening, by_count=by_count))
    seen = np.maximum(noisy.value, floor)
    return Geometry(centre, whitening, np.diag(noisy.noise / seen)), turned


def _large_spreads(run: UserReleases, *, square: float) -> tuple[Vector, Vector]:
    """Return orthonormal directions and how far features spread along each, at least 1."""
    features = run.data.n_features
    start = public_generator(0).standard_normal((features, min(_DIRECTIONS, features)))
    directions, spreads = np.linalg.qr(start)[0], np.ones(start.shape[1])
    for _ in range(_ROUNDS):
        along = AlongDirections(directions)
        held, products = run.once(along, dimension=directions.size)
        radius = held.radius(products, WIDE, dimension=directions.size)
        noisy = held.mean(products, dimension=directions.size, radius=radius, square=square)
        found = noisy.value.reshape(directions.shape)
        directions, spreads, _ = np.linalg.svd(found, full_matrices=False)
        # The spectral norm of so many independent noises, which may all lie along the spread.
        reach = noisy.noise * (math.sqrt(features) + math.sqrt(directions.shape[1]))
        spreads = np.maximum(spreads - reach, 1.0)
    return directions, spreads


@dataclass(frozen=True)
class MeanSquares:
    """Each user's mean of the squared distance from the centre, feature by feature."""

    centre: Vector

    def __call__(self, users: UserData) -> Vector:
        """Return one row per user."""
        squares = (users.X - self.centre) ** 2
        return users.user_sums(squares) / np.maximum(users.record_counts(), 1)[:, None]


@dataclass(frozen=True)
class AlongDirections:
    """Each user's second moment times some directions, in 32 bits like the records.

    Examples
    --------
    >>> people = UserData([[2.0, 0.0], [0.0, 1.0]], offsets=[0, 2])
    >>> AlongDirections(np.eye(2))(people)
    array([[2. , 0. , 0. , 0.5]])
    """

    directions: Vector

    def __call__(self, users: UserData) -> Vector:
        """Return one row per user: the products, feature by feature."""
        size = self.directions.size
        found = np.zeros((users.n_users, size))
        for alike, held in alike_users(users):
            people, many = held.shape[:2]
            directions = self.directions.astype(held.dtype)
            # Products of one user's records, so small that each takes one thread.
            for some in in_one_thread(many, max(size, VECTOR * users.n_features)):
                part = np.ascontiguousarray(held[:, some])
                product = np.matmul(part.transpose(0, 2, 1), np.matmul(part, directions))
                found[alike.owners] += product.reshape(people, size)
            found[alike.owners] /= many
        return found
