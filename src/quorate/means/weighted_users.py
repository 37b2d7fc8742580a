"""One vector and one bounded weight a user: what every route of the mean works on.

Vectors are offsets from the centre of the public bound, finite and inside it, or rows of NaN for
users without usable records, who are *absent*; weights lie in [0, 1]. Each method treats users one
by one, or in disjoint pairs, in blocks that stay in the cache.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from quorate.bounds import Ball, Bound
from quorate.grid import Grid, fitting_grid
from quorate.guarantees import Relation
from quorate.means.absence import OrAbsent, gaussian_vote, marked

__all__ = ["WeightedUsers", "bounded_vectors", "record_weights"]

# A megabyte of floats.
_BLOCK = 2**17


def bounded_vectors(values: NDArray[np.float64], bound: Bound) -> NDArray[np.float64]:
    """Return the offsets of ``values`` from the centre of ``bound``, clipped into it.

    A row without a finite number is nobody's and becomes NaN. Otherwise a coordinate (in a box) or
    a row (in a ball) that is NaN or infinite becomes the centre.

    >>> from quorate.bounds import Box
    >>> bounded_vectors(np.array([[3.0, np.nan], [np.nan, np.nan]]), Box([0.0, 0.0], [2.0, 2.0]))
    array([[ 1.,  0.],
           [nan, nan]])
    """
    rows = np.asarray(values, dtype=np.float64).reshape(-1, bound.dimension)
    offsets = np.empty(rows.shape)
    size = max(1, _BLOCK // bound.dimension)
    for start in range(0, len(rows), size):
        part = slice(start, start + size)
        bound.offsets_in_steps(rows[part], 1.0, out=offsets[part])
        offsets[part][~np.isfinite(rows[part]).any(axis=1)] = np.nan
    return offsets


def record_weights(counts: NDArray[np.int64], *, records: float) -> NDArray[np.float64]:
    """Return min(1, sqrt(count / records)): the weight that makes every user equally noisy.

    The mean of m records has a standard error of 1/sqrt(m); multiplied by sqrt(m) all users differ
    from the centre by about the same, so one radius fits all and no one's weight exceeds 1.

    >>> record_weights(np.array([1, 25, 100, 10_000]), records=100)
    array([0.1, 0.5, 1. , 1. ])
    """
    return np.sqrt(np.minimum(1.0, counts / records))


@dataclass(frozen=True)
class WeightedUsers:
    """Offsets of the users' means from the public centre, with weights in [0, 1].

    Parameters
    ----------
    vectors : array of shape (n, d)
        Rows of NaN for absent users.
    weights : array of shape (n,) or None
        ``None`` means that everybody has weight 1.

    Examples
    --------
    >>> users = WeightedUsers(np.array([[0.0, 0.0], [3.0, 4.0]]), np.array([1.0, 0.5]))
    >>> users.distances(np.zeros(2), Relation.REPLACE)
    array([0. , 2.5])
    """

    vectors: NDArray[np.float64]
    weights: NDArray[np.float64] | None = None

    @property
    def n_users(self) -> int:
        """Number of users."""
        return len(self.vectors)

    @property
    def dimension(self) -> int:
        """Number of coordinates."""
        return int(self.vectors.shape[1])

    @property
    def present(self) -> NDArray[np.bool_]:
        """Who holds usable records."""
        return np.asarray(~np.isnan(self.vectors[:, 0]))

    def equally(self) -> WeightedUsers:
        """Return the same users, all with weight 1."""
        return WeightedUsers(self.vectors)

    def distances(self, centre: NDArray[np.float64], relation: Relation) -> NDArray[np.float64]:
        """Return how far each user's weighted offset from ``centre`` reaches.

        Absent users are at the centre if everybody is counted, which is public under replacement;
        nowhere (NaN) if only those who are present are.
        """
        result = np.empty(self.n_users)
        for part, block in self._offsets(centre):
            np.sqrt(np.vecdot(block, block), out=result[part])
        if relation is Relation.REPLACE:
            result[np.isnan(result)] = 0.0
        return result

    def pair_distances(self, pairs: NDArray[np.int64]) -> NDArray[np.float64]:
        """Return, for disjoint ``pairs`` of places, the distance in units of one user's spread.

        Two independent users who each deviate by s / weight from a common centre are
        s * sqrt(1/w^2 + 1/v^2) apart; the result is their distance divided by that root. A pair
        with an absent user counts as 0 in an even place and as infinity in an odd one, so that
        such pairs hardly move the median.
        """
        result = np.empty(len(pairs))
        size = max(1, _BLOCK // self.dimension)
        for start in range(0, len(pairs), size):
            left, right = pairs[start : start + size].T
            apart = self.vectors[left] - self.vectors[right]
            length = np.sqrt(np.vecdot(apart, apart))
            if self.weights is None:
                result[start : start + size] = length * np.sqrt(0.5)
            else:
                w, v = self.weights[left], self.weights[right]
                together = np.sqrt(np.maximum(w * w + v * v, 1e-300))
                result[start : start + size] = length * (w * v / together)
        unknown = np.flatnonzero(np.isnan(result))
        result[unknown] = np.where(unknown % 2 == 0, 0.0, np.inf)
        return result

    def clipped_total(
        self,
        centre: NDArray[np.float64],
        radius: float,
        relation: Relation,
        *,
        noise_multiplier: float = 1.0,
    ) -> tuple[Grid, NDArray[np.int64]]:
        """Return the exact sum of weighted offsets from ``centre``, each clipped to ``radius``.

        An absent user has no offset.
        """
        equal = self.weights is None
        bound = Ball(radius, centre=centre if equal else np.zeros(self.dimension))
        noise = noise_multiplier * bound.l2_diameter
        grid = fitting_grid(bound, n_users=self.n_users, relation=relation, noise=noise)
        if equal:
            return grid, grid.encode_sum(self.vectors)
        totals = np.zeros(self.dimension, dtype=np.int64)
        for _, block in self._offsets(centre):
            totals += grid.encode_sum(block)
        return grid, totals

    def clipped_total_and_absent(
        self, centre: NDArray[np.float64], radius: float, *, noise_multiplier: float = 1.0
    ) -> tuple[Grid, NDArray[np.int64]]:
        """Return the sum of unweighted offsets, and votes of absent users in a last coordinate.

        For replacement, where it costs what :meth:`clipped_total` costs.
        """
        ball = Ball(radius, centre=centre)
        bound = OrAbsent(ball, gaussian_vote(ball))
        noise = noise_multiplier * bound.l2_diameter
        grid = fitting_grid(bound, n_users=self.n_users, relation=Relation.REPLACE, noise=noise)
        totals = np.zeros(self.dimension + 1, dtype=np.int64)
        size = max(1, _BLOCK // self.dimension)
        for start in range(0, self.n_users, size):
            totals += grid.encode_sum(marked(self.vectors[start : start + size]))
        return grid, totals

    def _offsets(self, centre: NDArray[np.float64]) -> Iterator[tuple[slice, NDArray[np.float64]]]:
        size = max(1, _BLOCK // self.dimension)
        buffer = np.empty((min(size, self.n_users), self.dimension))
        for start in range(0, self.n_users, size):
            part = slice(start, min(start + size, self.n_users))
            block = np.subtract(self.vectors[part], centre, out=buffer[: part.stop - start])
            if self.weights is not None:
                block *= self.weights[part, None]
            yield part, block
