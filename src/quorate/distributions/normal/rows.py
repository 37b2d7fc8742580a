"""One row per user for a normal distribution: a whitened mean, or a covariance."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from quorate.core.users.data import UserData
from quorate.distributions.shares import one_each

__all__ = ["WhitenedMeans", "WithinCovariances", "matrix_of", "own_row", "vector_of"]

Rows = tuple[tuple[float, ...], ...]


def vector_of(matrix: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return a symmetric matrix as a vector whose length is the Frobenius norm of the matrix.

    >>> vector_of(np.array([[1.0, 3.0], [3.0, 2.0]])).round(6)
    array([1.      , 4.242641, 2.      ])
    """
    rows, columns = np.triu_indices(len(matrix))
    return np.asarray(matrix[rows, columns] * np.where(rows == columns, 1.0, math.sqrt(2.0)))


def matrix_of(vector: NDArray[np.float64], dimension: int) -> NDArray[np.float64]:
    """Return the symmetric matrix of a vector.

    >>> matrix_of(vector_of(np.array([[1.0, 3.0], [3.0, 2.0]])), 2)
    array([[1., 3.],
           [3., 2.]])
    """
    rows, columns = np.triu_indices(dimension)
    matrix = np.zeros((dimension, dimension))
    matrix[rows, columns] = vector / np.where(rows == columns, 1.0, math.sqrt(2.0))
    return np.asarray(matrix + np.triu(matrix, 1).T).round(12)


def own_row(part: UserData) -> NDArray[np.float64]:
    """Return the one row of each user, NaN for those without.

    >>> own_row(UserData([[7.0]], offsets=[0, 0, 1])).tolist()
    [[nan], [7.0]]
    """
    rows = np.full((part.n_users, part.n_features), np.nan)
    rows[part.record_counts() > 0] = part.X
    return rows


@dataclass(frozen=True)
class WhitenedMeans:
    """Reduces each user to one row: the mean of the clipped records, in whitened coordinates.

    A user without records is absent. Each row is computed from that user's records alone: sums are
    exact, and the product with the matrix is computed row by row.

    >>> people = UserData.from_arrays([[1.0], [50.0], [3.0]], users=[4, 9, 4])
    >>> WhitenedMeans(((0.5,),), lower=(0.0,), upper=(10.0,))(people).X
    array([[1.],
           [5.]])
    """

    whitening: Rows
    lower: tuple[float, ...]
    upper: tuple[float, ...]

    def __call__(self, part: UserData) -> UserData:
        """Return the users with one record each, or none."""
        counts = part.record_counts()
        there = counts > 0
        clipped = np.clip(part.X, self.lower, self.upper)
        means = part.user_sums(clipped)[there] / counts[there, None]
        return one_each(part, np.einsum("ij,kj->ik", means, np.array(self.whitening)), there)


@dataclass(frozen=True)
class WithinCovariances:
    """Reduces each user to one row: the covariance of their own records, as a vector.

    A user with fewer than two records has no row. Differences between users do not affect it.

    >>> people = UserData.from_arrays([[1.0], [50.0], [3.0]], users=[4, 9, 4])
    >>> WithinCovariances(lower=(0.0,), upper=(10.0,))(people).X
    array([[2.]])
    """

    lower: tuple[float, ...]
    upper: tuple[float, ...]

    def __call__(self, part: UserData) -> UserData:
        """Return the users with one record each, or none."""
        counts = part.record_counts()
        enough = counts > 1
        clipped = np.clip(part.X, self.lower, self.upper)
        means = part.user_sums(clipped) / np.maximum(counts, 1)[:, None]
        offsets = clipped - means[part.user_index()]
        rows, columns = np.triu_indices(part.n_features)
        products = offsets[:, rows] * offsets[:, columns]
        sums = part.user_sums(np.ascontiguousarray(products))[enough]
        factors = np.where(rows == columns, 1.0, math.sqrt(2.0))
        return one_each(part, sums * factors / (counts[enough, None] - 1), enough)
