"""The centre and spread of the features, released once, so that step sizes need no tuning.

Gradient descent is slow and noisy if features differ in scale, are correlated, or lie far from
zero. Two releases solve this: the mean of the users' mean records, and the mean over users of each
user's second moment about that centre. In the coordinates that they define, the second moment of
the features is nearly the identity. Then the curvature of a loss is known up to a small factor, and
no step size has to be guessed. Directions whose spread is within the noise are scaled as if their
spread were the noise; they are learned more slowly.

The noise of a round is proportional to the largest spread, so one round can measure spreads down to
a tenth or a hundredth of the largest. With enough users there are up to three rounds. Each round
uses the coordinates found by the last one, in which the large spreads are gone; it also improves
the mean. Rounds end when no spread is near the noise any more; the unused budget goes to the
descent. With fewer users there is one round (:mod:`quorate.models.coordinates.one_round`).

Gradient steps pass over all records many times. So records are converted to these coordinates once,
in 32 bits. The rounding is far below the noise, and memory and time are halved. The converted
records of a user depend only on the user's own records and on released numbers.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from quorate._validate import readonly
from quorate.core.people import People
from quorate.core.users import UserData
from quorate.core.users.store import is_settled, minus_row, records_at, rounded_users
from quorate.mechanisms.user_releases import WIDE, ReleasedMean, UserReleases, UserVectors
from quorate.models.losses import (
    LinearLoss,
    Loss,
    alike_users,
    by_products,
    in_one_thread,
    multiplied,
)

__all__ = [
    "MOST_FEATURES",
    "SMALLEST_SPREAD",
    "VECTOR",
    "Geometry",
    "Room",
    "SecondMoments",
    "Whitened",
    "WhitenedLoss",
    "inward",
    "release_centre",
    "release_in_rounds",
    "symmetric",
    "whitens_in_rounds",
]

Vector = NDArray[np.float64]

# With so many users for each parameter, n mu / (d + 1), there are rounds, with these shares; the
# first centre may then be rough, because every round moves it.
_ENOUGH_FOR_ROUNDS = 15.0
_ROUGH_CENTRE_SHARE = 0.01
_ROUND_SHARES = (0.03, 0.05, 0.08)
# Users whose moments are larger than those of this share are clipped to it.
_ROUND_QUANTILE = 0.75
# A spread that is this many times the noise needs no further round.
_SEEN = 4.0
# Candidates for the radius of later rounds, in which moments have about the size of the identity.
_KNOWN_SIZE = np.arange(-4.0, 6.0, 0.5)
MOST_FEATURES = 96
"""Beyond it a user's second moment is too long a vector; its trace is bought instead."""
# Up to here a pass over all users for each feature is quicker than a product for each user.
_FEW_FEATURES = 16
# Rows of a second moment that are the quickest to multiply at once.
_STRIP = 16
VECTOR = 32
"""A product with a vector takes one thread up to a smaller size than one of matrices, so often."""
# Part of the noise (in spectral norm) below which a released spread is not trusted.
_ROUND_FLOOR = 0.5
SMALLEST_SPREAD = 1e-6
"""Spreads are not taken for less than this part of the largest one."""
# Numbers that are multiplied at once: they stay in the cache.
_BLOCK = 2**17


@dataclass(frozen=True)
class Geometry:
    """New coordinates of the features: ``whitening @ (x - centre)``.

    ``whitening`` is a symmetric matrix, or a number if all directions are scaled alike. ``doubt``
    is the relative noise of the spreads: one number per feature, or one row per direction.

    Examples
    --------
    >>> geometry = Geometry(centre=np.array([1.0]), whitening=np.array([[2.0]]))
    >>> from quorate.models.regression_losses import SquaredLoss
    >>> geometry.outward(np.array([3.0, 0.5]), SquaredLoss())
    array([ 6. , -5.5])
    """

    centre: Vector
    whitening: Vector
    doubt: Vector | None = None
    hidden: Vector | None = None

    @cached_property
    def _spectrum(self) -> tuple[Vector, Vector]:
        sizes, axes = np.linalg.eigh(self.whitening)
        return np.asarray(sizes), np.asarray(axes)

    @property
    def axes(self) -> Vector | None:
        """The directions whose spreads have independent errors; None if these are the features."""
        return self._spectrum[1] if self.whitening.ndim == 2 else None

    @property
    def stretched(self) -> Vector:
        """The factor by which each of these directions was stretched."""
        if self.whitening.ndim == 2:
            return self._spectrum[0]
        return np.broadcast_to(self.whitening, self.centre.shape)

    @property
    def unsure(self) -> Vector:
        """Relative noise of the spread in each of these directions, as far as it is known."""
        if self.doubt is None:
            return np.zeros(self.centre.size)
        axes = self.axes
        squares = self.doubt**2
        return np.sqrt(squares if axes is None else np.sum((self.doubt @ axes) ** 2, axis=0))

    def outward(self, theta: Vector, loss: LinearLoss) -> Vector:
        """Return the parameters that act on the original features."""
        rows = theta.reshape(loss.outputs, -1)
        features = self.centre.size
        weights = self._turned(rows[:, :features])
        if not loss.intercept:
            return np.ascontiguousarray(weights).ravel()
        offsets = rows[:, features] - weights @ self.centre
        return np.column_stack([weights, offsets]).ravel()

    def _turned(self, rows: Vector) -> Vector:
        """Return released vectors (never records of people) in the new coordinates."""
        return rows @ self.whitening if self.whitening.ndim else rows * self.whitening


def inward(geometry: Geometry, theta: Vector, loss: LinearLoss) -> Vector:
    """Return parameters in the coordinates of a geometry; inverts :meth:`Geometry.outward`."""
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


@dataclass(frozen=True)
class WhitenedLoss(Loss):
    """A linear loss as a function of parameters in the coordinates of a geometry.

    It is evaluated on users whose records are already in these coordinates (:class:`Whitened`).

    Examples
    --------
    >>> from quorate.models.regression_losses import SquaredLoss
    >>> centre, whitening = np.array([1.0]), np.array([[2.0]])
    >>> geometry = Geometry(centre=centre, whitening=whitening)
    >>> people = Whitened(centre, whitening)(UserData([[2.0]], [0.0], offsets=[0, 1]))
    >>> WhitenedLoss(SquaredLoss(), geometry).user_gradients(people, np.array([1.0, 0.0]))
    array([[4., 2.]])
    """

    inner: LinearLoss
    geometry: Geometry

    def dimension(self, n_features: int) -> int:
        """Return the dimension of the inner loss."""
        return self.inner.dimension(n_features)

    def unpenalized(self, n_features: int) -> NDArray[np.bool_]:
        """Return the indices of the intercepts."""
        return self.inner.unpenalized(n_features)

    def user_gradients(self, batch: UserData, theta: Vector) -> Vector:
        """Return the gradients of the inner loss."""
        return self.inner.user_gradients(batch, theta)


@dataclass(frozen=True)
class SecondMoments:
    """Each user's mean of z z', z = x - centre, as the upper triangle of a matrix.

    Off-diagonal entries are multiplied by the root of two, so that the vector has the length of the
    whole matrix. If ``mean`` is true, z = (x - centre, 1), so that the last column is the mean. Its
    last entry is the same for everybody and is set to 0.

    Examples
    --------
    >>> people = UserData([[1.0, 2.0]], offsets=[0, 1])
    >>> SecondMoments(np.zeros(2))(people).round(3)
    array([[1.   , 2.828, 4.   ]])
    >>> SecondMoments(np.zeros(2), mean=True)(people).round(3)
    array([[1.   , 2.828, 1.414, 4.   , 2.828, 0.   ]])
    """

    centre: Vector
    mean: bool = False

    @property
    def size(self) -> int:
        """Length of z."""
        return self.centre.size + self.mean

    @property
    def dimension(self) -> int:
        """Length of the triangle."""
        return self.size * (self.size + 1) // 2

    def __call__(self, users: UserData) -> Vector:
        """Return one triangle per user; zeros for a user without records."""
        features = self.centre.size
        counts = np.maximum(users.record_counts(), 1)
        if features <= _FEW_FEATURES:
            centred = users.X - self.centre
            # One row of the triangle at a time: no more memory than the records take.
            sums = [
                users.user_sums(centred[:, first:], weights=centred[:, first])
                for first in range(features)
            ]
            return self._with_means(
                users, np.concatenate(sums, axis=1) * (_places(features).lengths / counts[:, None])
            )
        # A product over one user's records at a time, in an order that no arrival can change.
        triangles = np.zeros((users.n_users, self.dimension))
        room, lengths = Room(), _places(self.size).lengths
        for places, held in alike_users(users, room.like):
            z = np.ascontiguousarray(held)
            if held.dtype != np.float32 or self.mean or self.centre.any():
                z = minus_row(z, self.centre, room.like(held.shape))
            triangles[places.owners] = _own_triangles(z, self.size) * (lengths / held.shape[1])
        if self.mean:
            triangles[:, -1] = 0.0
        return triangles

    def _with_means(self, users: UserData, triangles: Vector) -> Vector:
        if not self.mean:
            return triangles
        rows, columns = np.triu_indices(self.size)
        last = columns == self.centre.size
        whole = np.empty((users.n_users, self.dimension))
        whole[:, ~last] = triangles
        whole[:, last & (rows < columns)] = (_user_means(users) - self.centre) * math.sqrt(2.0)
        whole[:, -1] = 0.0
        whole[users.record_counts() == 0] = 0.0
        return whole

    def matrix(self, triangle: Vector) -> Vector:
        """Return the symmetric matrix of one triangle."""
        return np.asarray(self.matrices(triangle[np.newaxis])[0])

    def matrices(self, triangles: Vector) -> Vector:
        """Return the symmetric matrices of many triangles."""
        whole = np.empty((len(triangles), self.size, self.size))
        flat = whole.reshape(len(triangles), -1)
        given = triangles / _places(self.size).lengths
        given.take(_places(self.size).both, axis=1, out=flat, mode="clip")
        return whole

    def triangles(self, matrices: Vector) -> Vector:
        """Return the triangles of symmetric matrices; the inverse of :meth:`matrices`."""
        flat = matrices.reshape(len(matrices), -1).take(_places(self.size).upper, axis=1)
        flat *= _places(self.size).lengths
        return flat


def _own_triangles(z: Vector, size: int) -> Vector:
    """Return each user's triangle of z'z, in products small enough for one BLAS thread each."""
    parts = in_one_thread(z.shape[1], size * max(size, VECTOR))
    found = (_own_triangle(z[:, some], size) for some in parts)
    total: Vector = next(found)  # in 64 bits where there are several
    return sum((each.astype(np.float64) for each in found), start=total)


def _own_triangle(z: Vector, size: int) -> Vector:
    """Return the upper triangle of z'z, with the sum of z as a last column if ``size`` allows.

    It is computed in strips of rows, without most of the entries below the diagonal. A strip begins
    a few columns early: for a square matrix BLAS would compute only half of the product, and more
    slowly.
    """
    turned, features = z.transpose(0, 2, 1), z.shape[2]
    whole, high = np.empty((len(z), size, size), z.dtype), min(_STRIP, 4 * math.ceil(features / 8))
    product = whole[:, :features, :features]
    for first in range(0, features, high):
        rows, columns = slice(first, first + high), slice(max(0, first - 4), None)
        np.matmul(turned[:, rows], z[:, :, columns], out=product[:, rows, columns])
    if size > features:
        whole[:, -1, -1] = 0.0
        np.matmul(turned, np.ones(z.shape[1], z.dtype), out=whole[:, :features, -1])
    return whole.reshape(len(z), -1).take(_places(size).upper, axis=1)


class _Places(NamedTuple):
    """Positions, row by row: from a matrix to its upper triangle, and back.

    Entries of a triangle are multiplied by ``lengths``: the root of two off the diagonal.
    """

    both: NDArray[np.int64]
    upper: NDArray[np.int64]
    lengths: Vector


@lru_cache(maxsize=8)
def _places(size: int) -> _Places:
    rows, columns = np.triu_indices(size)
    both = np.empty((size, size), dtype=np.int64)
    both[rows, columns] = both[columns, rows] = np.arange(len(rows))
    lengths = np.where(rows == columns, 1.0, math.sqrt(2.0))
    return _Places(*map(readonly, (both.ravel(), rows * size + columns, lengths)))


@dataclass(frozen=True)
class _Turned:
    """Triangles of the same users in the coordinates ``turn`` z, computed user by user."""

    moments: SecondMoments
    triangles: UserVectors
    turn: Vector

    def __call__(self, users: UserData) -> Vector:
        turned = np.empty((users.n_users, self.moments.dimension))
        given = self.triangles(users)
        few = max(1, _BLOCK // (2 * self.moments.size**2))
        for start in range(0, users.n_users, few):
            some = slice(start, start + few)
            matrices = self.moments.matrices(given[some])
            # The last entry is 1, but for users without records, who stay at zero.
            matrices[:, -1, -1] = given[some].any(axis=1)
            # One product a user: nobody's depends on who else is there.
            half = multiplied(self.turn, matrices, out=np.empty_like(matrices))
            turned[some] = self.moments.triangles(multiplied(half, self.turn.T, out=matrices))
        turned[:, -1] = 0.0
        return turned


def _user_means(users: UserData) -> Vector:
    return np.nan_to_num(users.user_means())


def whitens_in_rounds(*, n_users: float, mu: float, n_features: int) -> bool:
    """Return, from public numbers, whether the features are whitened in rounds.

    >>> whitens_in_rounds(n_users=4000, mu=0.2367, n_features=14)
    True
    >>> whitens_in_rounds(n_users=1000, mu=0.2367, n_features=20)
    False
    """
    return n_features <= MOST_FEATURES and n_users * mu >= _ENOUGH_FOR_ROUNDS * (n_features + 1)


def release_centre(run: UserReleases, *, share: float, means: UserVectors = _user_means) -> Vector:
    """Release the mean of the users' mean records, for a share of the account."""
    features, square = run.data.n_features, share * float(run.account.square)
    held, found = run.once(means, dimension=features)
    radius = held.radius(found, WIDE, dimension=features)
    return held.mean(found, dimension=features, radius=radius, square=square).value


def release_in_rounds(run: UserReleases, *, by_count: bool = False) -> tuple[Geometry, People]:
    """Release centre and spread in up to three rounds, each in the coordinates of the last.

    Also return the users in these coordinates (:class:`Whitened`).

    Examples
    --------
    >>> from quorate.core.account.account import Account
    >>> rows = np.random.default_rng(0).normal(5.0, 0.5, size=(20_000, 2))
    >>> people = UserData(rows, offsets=np.arange(0, 20_001, 2))
    >>> account = Account.open(epsilon=20.0, delta=1e-6)
    >>> run = UserReleases.start(People(people, account.relation), account)
    >>> geometry, turned = release_in_rounds(run)
    >>> bool(np.abs(geometry.centre - 5.0).max() < 0.1), turned.n_features
    (True, 2)
    >>> bool(np.abs(geometry.whitening - 2.0 * np.eye(2)).max() < 0.2)
    True
    """
    around = release_centre(run, share=_ROUGH_CENTRE_SHARE)
    features, budget = around.size, float(run.account.square)
    moments = SecondMoments(around, mean=True)
    held, triangles = run.once(moments, dimension=moments.dimension)
    moved, whitening, candidates = np.zeros(features), np.eye(features), WIDE
    for share in _ROUND_SHARES:
        turn = np.eye(features + 1)
        turn[:features, :features] = whitening
        turn[:features, features] = -whitening @ moved
        turned = triangles if candidates is WIDE else _Turned(moments, triangles, turn)
        noisy = _mean_of_most(held, turned, candidates, moments.dimension, share * budget)
        joint = moments.matrix(noisy.value)
        mean = joint[:features, features]
        moved = moved + np.linalg.solve(whitening, mean)
        spreads, axes = np.linalg.eigh(joint[:features, :features] - np.outer(mean, mean))
        reach = noisy.noise * math.sqrt(2.0 * moments.size)
        floor = max(_ROUND_FLOOR * reach, SMALLEST_SPREAD * float(np.abs(spreads).max()))
        seen = np.maximum(spreads, floor)
        rows = (axes / np.sqrt(seen)).T @ whitening
        whitening, directions = _rotated(rows)
        if spreads.min() > _SEEN * reach:
            break
        candidates = _KNOWN_SIZE
    # Not seen, and surely less than half as long as the others.
    hidden = (spreads < reach) & (spreads + reach < float(np.median(spreads)) / 4.0)
    if hidden.any():
        whitening, directions = _rotated(_set_apart(rows, hidden))
    people = run.data.derive(Whitened(around + moved, whitening, by_count=by_count))
    doubt = (reach / seen)[:, None] * directions
    return Geometry(around + moved, whitening, doubt, directions[hidden]), people


def _rotated(rows: Vector) -> tuple[Vector, Vector]:
    """Return the symmetric factor of directions, and where they are in its coordinates."""
    whitening = symmetric(rows)
    return whitening, rows @ np.linalg.inv(whitening)


def _set_apart(rows: Vector, hidden: NDArray[np.bool_]) -> Vector:
    """Return directions of which some are as long as others usually are, and apart from them.

    Along a feature that is the same for everybody nothing can be learned, and a coefficient that
    follows noise runs away. Nobody sees how much of it the other directions hold.

    >>> found = _set_apart(np.array([[1.0, 5.0], [0.0, 90.0]]), np.array([False, True]))
    >>> np.abs(found).round(6)
    array([[1., 0.],
           [0., 1.]])
    """
    flat = np.linalg.svd(rows[hidden], full_matrices=False)[2]
    apart = rows.copy()
    apart[~hidden] -= rows[~hidden] @ flat.T @ flat
    apart[hidden] = float(np.median(np.linalg.norm(apart[~hidden], axis=1))) * flat
    return apart


def _mean_of_most(
    run: UserReleases, vectors: UserVectors, candidates: Vector, dimension: int, square: float
) -> ReleasedMean:
    """Release a radius that holds most vectors, and their mean.

    The vectors are deleted on return.
    """
    held, found = run, vectors
    if isinstance(vectors, _Turned):
        held, found = run.once(vectors, dimension=dimension)
    radius = held.radius(found, candidates, dimension=dimension, outside=1.0 - _ROUND_QUANTILE)
    return held.mean(found, dimension=dimension, radius=radius, square=square)


def symmetric(matrix: Vector) -> Vector:
    """Return the symmetric factor of a matrix, (M' M)^(1/2).

    Rotating the coordinates changes nothing, and the callers expect a symmetric matrix.

    >>> symmetric(np.array([[0.0, 2.0], [-3.0, 0.0]])).round(6)
    array([[3., 0.],
           [0., 2.]])
    """
    _, sizes, axes = np.linalg.svd(matrix)
    return np.asarray((axes.T * sizes) @ axes)


class Room:
    """Memory that is reused for one block after another, so that it stays in the cache.

    >>> room = Room()
    >>> np.shares_memory(room.like((2, 3)), room.like((4,)))
    True
    """

    def __init__(self, dtype: type[np.floating[Any]] = np.float64) -> None:
        self._numbers = np.empty(0, dtype=dtype)

    def like(self, shape: tuple[int, ...]) -> NDArray[Any]:
        """Return an array of this shape, in the memory of the last one."""
        size = math.prod(shape)
        if self._numbers.size < size:
            self._numbers = np.empty(size, dtype=self._numbers.dtype)
        return self._numbers[:size].reshape(shape)


def _lie_by_count(users: UserData) -> bool:
    """Return whether users are sorted by number of records, and records are in summation order."""
    counts = users.record_counts()
    return is_settled(users) and bool(np.all(counts[1:] >= counts[:-1]))


@dataclass(frozen=True)
class Whitened:
    """The same users with the records ``whitening @ (x - centre)``, in 32 bits.

    If a user's gradient is a matrix product over all of the user's records, the records are stored
    column by column, which takes four fifths of the time.

    ``whitening`` is a symmetric matrix, a number for each feature, or one for all. With
    ``centre=None`` users are :class:`~quorate.models.coordinates.one_round.Centred` already. They
    are then transformed in place, in 32 bits, so no other code may use them. ``by_count`` says that
    users were sorted by their number of records. It must be a public fact, because the order in
    memory decides the last bits of products.

    Examples
    --------
    >>> people = UserData([[2.0], [5.0]], [0.0, 1.0], offsets=[0, 1, 2])
    >>> Whitened(np.array([1.0]), np.array([[2.0]]))(people).X
    array([[2.],
           [8.]], dtype=float32)
    """

    centre: Vector | None
    whitening: Vector
    by_count: bool = False

    def __call__(self, users: UserData) -> UserData:
        """Return the users, each of whom is transformed separately."""
        features = users.n_features
        if self.centre is None:
            whole = records_at(users, slice(None))
        else:
            whole = np.empty((users.n_records, features), np.float32)
        standing: list[tuple[int, int, int]] = []
        upright = self.by_count and _lie_by_count(users)
        with np.errstate(all="ignore"):  # a warning about an overflow would tell of a value
            for records, turned in self._blocks(users, upright=upright):
                held = turned.shape[1]
                if upright and isinstance(records, slice) and by_products(held, features):
                    into = whole[records].reshape(-1, features, held)
                    into[...] = turned.transpose(0, 2, 1)
                    standing.append((records.start, records.stop, held))
                else:
                    whole[records] = turned.reshape(-1, features)
        return rounded_users(users, whole, tuple(standing))

    def _blocks(
        self, users: UserData, *, upright: bool = False
    ) -> Iterator[tuple[NDArray[np.int64] | slice, NDArray[Any]]]:
        """Yield the positions of records and the transformed records, before they are rounded.

        Those of ``upright`` users, whose gradients are matrix products, are stored feature by
        feature.
        """
        dtype = np.float32 if self.centre is None else np.float64
        before, after, whitening = Room(dtype), Room(dtype), self.whitening.astype(dtype)
        for alike, held in alike_users(users, before.like):
            centred = np.ascontiguousarray(held)
            if self.centre is not None:
                centred = minus_row(centred, self.centre, before.like(held.shape))
            people, many, features = held.shape
            if upright and by_products(many, features):
                turned = after.like((people, features, many)).transpose(0, 2, 1)
            else:
                turned = after.like(held.shape)
            if whitening.ndim == 2:
                multiplied(centred, whitening, out=turned)
            else:
                np.multiply(centred, whitening, out=turned)
            yield alike.records, turned
