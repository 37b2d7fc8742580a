"""The spread of the features in one round, if there are too few users for several rounds.

One round can measure spreads down to a hundredth of the largest, not less. So records are rounded
to 32 bits before anything is known about them, which saves a pass in 64 bits. If all records lie
far from zero, the rounding error is proportional to their distance from zero. But with so few users
the noise of the released centre is at least about a twentieth of that distance. This part of the
distance remains after centring and counts as spread. It is some 400,000 times the rounding error.

Beyond :data:`~quorate.models.coordinates.geometry.MOST_FEATURES` features only one number is
released, the typical squared distance from the centre.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from quorate.core.people import People
from quorate.core.users import UserData
from quorate.core.users.store import minus_row, records_at, rounded_users, row_lengths
from quorate.mechanisms.user_releases import WIDE, UserReleases
from quorate.models.coordinates.geometry import (
    MOST_FEATURES,
    SMALLEST_SPREAD,
    VECTOR,
    Geometry,
    Room,
    SecondMoments,
    Whitened,
    release_centre,
)
from quorate.models.coordinates.many_features import release_of_many
from quorate.models.losses import alike_users, in_one_thread

__all__ = ["Centred", "MeanSquares", "release_in_one_round"]

Vector = NDArray[np.float64]

_CENTRE_SHARE = 0.02
_SPREAD_SHARE = 0.06
# Part of the noise (in spectral norm) below which a released spread is not trusted.
_FLOOR = 0.25
# Numbers that are centred at once: they stay in the cache.
_AT_ONCE = 2**18


def release_in_one_round(
    run: UserReleases, *, centred: bool, by_count: bool = False
) -> tuple[Geometry, People]:
    """Release the centre (if ``centred``) and the spread of the features.

    Also return the users in these coordinates.

    Examples
    --------
    >>> from quorate.core.account.account import Account
    >>> rows = np.random.default_rng(0).normal(5.0, 0.5, size=(20_000, 2))
    >>> people = UserData(rows, offsets=np.arange(0, 20_001, 2))
    >>> account = Account.open(epsilon=20.0, delta=1e-6)
    >>> run = UserReleases.start(People(people, account.relation), account)
    >>> geometry, turned = release_in_one_round(run, centred=True)
    >>> bool(np.abs(geometry.centre - 5.0).max() < 0.1), turned.n_features
    (True, 2)
    """
    features, budget = run.data.n_features, float(run.account.square)
    if features > MOST_FEATURES:
        return release_of_many(run, centred=centred, by_count=by_count)
    around, centre = run.data.derive(Centred(None)), np.zeros(features)
    if centred:
        found = release_centre(replace(run, data=around), share=_CENTRE_SHARE, means=_own_means)
        centre = found.astype(np.float32).astype(np.float64)  # by which 32 bits can be moved
        around = around.derive(_Moved(centre))
    moments = SecondMoments(np.zeros(features))
    held, triangles = replace(run, data=around).once(moments, dimension=moments.dimension)
    radius = held.radius(triangles, WIDE, dimension=moments.dimension)
    noisy = held.mean(
        triangles, dimension=moments.dimension, radius=radius, square=_SPREAD_SHARE * budget
    )
    whitening, doubt = _whitening(moments.matrix(noisy.value), noisy.noise)
    turned = around.derive(Whitened(None, whitening, by_count=by_count))
    return Geometry(centre, whitening, doubt), turned


def _whitening(matrix: Vector, noise: float) -> tuple[Vector, Vector]:
    """Return the inverse root of a noisy second moment, with small spreads raised to a floor.

    Also return the directions of the spreads, each with its relative noise as its length.
    """
    size = len(matrix)
    spreads, axes = np.linalg.eigh(matrix)
    # Entries beside the diagonal have noise of variance noise^2 / 2: the spectral norm of a
    # symmetric noise matrix is then about noise x sqrt(2 x size).
    reach = noise * math.sqrt(2.0 * size)
    typical = abs(float(np.trace(matrix))) / size
    floor = max(_FLOOR * reach, min(reach, typical), SMALLEST_SPREAD * float(np.abs(spreads).max()))
    seen = np.maximum(spreads, floor)
    return axes / np.sqrt(seen) @ axes.T, (reach / seen)[:, None] * axes.T


@dataclass(frozen=True)
class Centred:
    """The same users with the records x - centre (or x without a centre), in 32 bits.

    This precision is enough, because noise hides whatever is a thousand times smaller than the
    largest spread. It halves the time of later passes.

    Examples
    --------
    >>> people = UserData([[2.0], [5.0]], offsets=[0, 1, 2])
    >>> Centred(np.array([1.0]))(people).X
    array([[1.],
           [4.]], dtype=float32)
    """

    centre: Vector | None

    def __call__(self, users: UserData) -> UserData:
        """Return the users, with as many numbers as before."""
        whole, room = np.empty((users.n_records, users.n_features), dtype=np.float32), Room()
        few = max(1, _AT_ONCE // max(1, users.n_features))
        with np.errstate(all="ignore"):  # a warning about an overflow would tell of a value
            # Number by number: nothing depends on whose records are seen together.
            for first in range(0, users.n_records, few):
                some = slice(first, first + few)
                into = whole[some]
                if self.centre is not None:
                    own = np.ascontiguousarray(records_at(users, some, room.like))
                    into[...] = minus_row(own, self.centre, room.like(own.shape))
                elif not np.may_share_memory(own := records_at(users, some, into.reshape), into):
                    into[...] = own
        return rounded_users(users, whole)


@dataclass(frozen=True)
class _Moved:
    """Users of :class:`Centred`, used by no other code, around a centre in 32 bits."""

    centre: Vector

    def __call__(self, users: UserData) -> UserData:
        whole = records_at(users, slice(None))
        with np.errstate(all="ignore"):  # a warning about an overflow would tell of a value
            minus_row(whole, self.centre.astype(np.float32), whole)
        return rounded_users(users, whole)


def _own_means(users: UserData) -> Vector:
    """Return each user's mean record: a product over the user's records, in 32 bits like these.

    Partial sums, each small enough for one BLAS thread, are added up in 64 bits.
    """
    means = np.zeros((users.n_users, users.n_features))
    for alike, held in alike_users(users):
        many = held.shape[1]
        ones = np.ones(many, dtype=held.dtype)
        for some in in_one_thread(many, VECTOR * users.n_features):
            means[alike.owners] += np.matmul(ones[some], held[:, some])
        means[alike.owners] /= many
    return np.nan_to_num(means)


@dataclass(frozen=True)
class MeanSquares:
    """Each user's mean of the squared distance from the centre."""

    centre: Vector

    def __call__(self, users: UserData) -> Vector:
        """Return one number per user."""
        squares = row_lengths(users.X - self.centre) ** 2
        return users.user_sums(squares[:, None]) / np.maximum(users.record_counts(), 1)[:, None]
