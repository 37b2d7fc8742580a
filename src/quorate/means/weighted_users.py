"""One vector and one bounded weight a user: what every route of the mean works on.

Vectors are offsets from the centre of the public bound, finite and inside it, or rows of NaN for
users without usable records, who are *absent*; weights lie in [0, 1]. Each method treats users one
by one, or in disjoint pairs, in blocks that stay in the cache.

:class:`WeightedUsers` holds them as arrays: all users, or those of one part. :class:`CrowdVectors`
leaves them with a crowd, whose users then have one record each, or none if they are absent. Both
answer alike: sums of integers, counts at public thresholds, the distances of some pairs.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from quorate.grid import Ball, Bound, Grid
from quorate.guarantees import Relation
from quorate.mechanisms.sums import fitting_grid
from quorate.users import UserData
from quorate.users.crowd import Crowd, counts_up_to
from quorate.users.data import ordered_users
from quorate.users.store import offsets_of

__all__ = ["CrowdVectors", "VectorUsers", "WeightedUsers", "bounded_vectors", "record_weights"]

Integers = NDArray[np.int64]

# A megabyte of floats.
_BLOCK = 2**17


def bounded_vectors(values: NDArray[np.float64], bound: Bound) -> NDArray[np.float64]:
    """Return the offsets of ``values`` from the centre of ``bound``, clipped into it.

    A row without a finite number is nobody's and becomes NaN. Otherwise a coordinate (in a box) or
    a row (in a ball) that is NaN or infinite becomes the centre.

    >>> from quorate.grid import Box
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


class VectorUsers(ABC):
    """One vector per user, with a weight in [0, 1] if users are weighted by their records."""

    @property
    @abstractmethod
    def n_users(self) -> int:
        """Number of users."""

    @property
    @abstractmethod
    def dimension(self) -> int:
        """Number of coordinates."""

    @property
    @abstractmethod
    def weighted(self) -> bool:
        """Whether users have weights."""

    @property
    @abstractmethod
    def counted(self) -> bool:
        """Whether it is known how many records users hold, so that they can be weighed."""

    @abstractmethod
    def add_up(self, work: Callable[[WeightedUsers], Integers]) -> Integers:
        """Return the sum of what ``work`` makes of the users, or of those of each part."""

    @abstractmethod
    def equally(self) -> VectorUsers:
        """Return the same users, all with weight 1."""

    @abstractmethod
    def weighed(self, records: float) -> VectorUsers:
        """Return the same users, weighed by their records up to ``records``."""

    @abstractmethod
    def some(self, ranks: Integers) -> WeightedUsers:
        """Return a few users, numbered in an order that does not depend on the parts."""

    @abstractmethod
    def column(self, coordinate: int) -> NDArray[np.float64]:
        """Return one coordinate of those who are present: one number per user."""

    def everybody(self) -> WeightedUsers:
        """Return all users; for algorithms that compare them with each other."""
        return self.some(np.arange(self.n_users))

    def count_records(self, thresholds: NDArray[np.float64]) -> Integers:
        """Count the users who hold at most each number of records."""
        return self.add_up(lambda users: counts_up_to(users.held, thresholds))

    def count_within(
        self, thresholds: NDArray[np.float64], centre: NDArray[np.float64], relation: Relation
    ) -> Integers:
        """Count the users whose weighted offset from ``centre`` reaches at most each distance."""
        return self.add_up(
            lambda users: counts_up_to(users.distances(centre, relation), thresholds)
        )

    def total_weight(self, grid: Grid) -> Integers:
        """Return the exact sum of the weights."""
        return grid.join(self.add_up(lambda users: grid.encode_halves(users.own_weights)))

    def total_present(self, grid: Grid) -> Integers:
        """Return the exact number of users who hold usable records."""
        return grid.join(
            self.add_up(lambda users: grid.encode_halves(users.present.astype(np.float64)))
        )

    def pair_distances(self, pairs: Integers) -> NDArray[np.float64]:
        """Return, for disjoint ``pairs`` of ranks, the distance in units of one user's spread.

        Two independent users who each deviate by s / weight from a common centre are
        s * sqrt(1/w^2 + 1/v^2) apart; the result is their distance divided by that root. A pair
        with an absent user counts as 0 in an even place and as infinity in an odd one, so that
        such pairs hardly move the median.
        """
        found = self.some(pairs.ravel()).neighbour_distances()
        unknown = np.flatnonzero(np.isnan(found))
        found[unknown] = np.where(unknown % 2 == 0, 0.0, np.inf)
        return found

    def clipped_total(
        self,
        centre: NDArray[np.float64],
        radius: float,
        relation: Relation,
        *,
        noise_multiplier: float = 1.0,
    ) -> tuple[Grid, Integers]:
        """Return the exact sum of weighted offsets from ``centre``, each clipped to ``radius``.

        An absent user has no offset.
        """
        bound = Ball(radius, centre=np.zeros(self.dimension) if self.weighted else centre)
        noise = noise_multiplier * bound.l2_diameter
        grid = fitting_grid(bound, n_users=self.n_users, relation=relation, noise=noise)
        return grid, grid.join(self.add_up(lambda users: users.halves(grid, centre)))


@dataclass(frozen=True)
class WeightedUsers(VectorUsers):
    """Offsets of the users' means from the public centre, with weights in [0, 1].

    Parameters
    ----------
    vectors : array of shape (n, d)
        Rows of NaN for absent users.
    weights : array of shape (n,) or None
        ``None`` means that everybody has weight 1.
    counts : array of shape (n,) or None
        How many records users hold, if they may be weighed.

    Examples
    --------
    >>> users = WeightedUsers(np.array([[0.0, 0.0], [3.0, 4.0]]), np.array([1.0, 0.5]))
    >>> users.distances(np.zeros(2), Relation.REPLACE)
    array([0. , 2.5])
    """

    vectors: NDArray[np.float64]
    weights: NDArray[np.float64] | None = None
    counts: NDArray[Any] | None = None

    @property
    def n_users(self) -> int:
        """Number of users."""
        return len(self.vectors)

    @property
    def dimension(self) -> int:
        """Number of coordinates."""
        return int(self.vectors.shape[1])

    @property
    def weighted(self) -> bool:
        """Whether users have weights."""
        return self.weights is not None

    @property
    def counted(self) -> bool:
        """Whether it is known how many records users hold."""
        return self.counts is not None

    @property
    def own_weights(self) -> NDArray[np.float64]:
        """The weights, 1 for everybody if there are none."""
        return np.ones(self.n_users) if self.weights is None else self.weights

    @property
    def held(self) -> NDArray[Any]:
        """How many records users hold; 0 for everybody if that is not known."""
        return np.zeros(self.n_users, np.int64) if self.counts is None else self.counts

    @property
    def present(self) -> NDArray[np.bool_]:
        """Who holds usable records."""
        return np.asarray(~np.isnan(self.vectors[:, 0]))

    def add_up(self, work: Callable[[WeightedUsers], Integers]) -> Integers:
        """Return what ``work`` makes of the users: they are one part."""
        return work(self)

    def equally(self) -> WeightedUsers:
        """Return the same users, all with weight 1."""
        return replace(self, weights=None)

    def weighed(self, records: float) -> WeightedUsers:
        """Return the same users, weighed by their records up to ``records``."""
        weights = np.where(self.present, record_weights(self.held, records=records), 0.0)
        return replace(self, weights=weights)

    def some(self, ranks: Integers) -> WeightedUsers:
        """Return a few users, by their places."""
        return WeightedUsers(
            self.vectors[ranks],
            None if self.weights is None else self.weights[ranks],
            None if self.counts is None else self.counts[ranks],
        )

    def column(self, coordinate: int) -> NDArray[np.float64]:
        """Return one coordinate of those who are present."""
        return np.ascontiguousarray(self.vectors[self.present, coordinate])

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

    def neighbour_distances(self) -> NDArray[np.float64]:
        """Return the distance of each user in an even place to the next one; NaN if one is absent.

        In units of one user's spread; see :meth:`pair_distances`.
        """
        result = np.empty(self.n_users // 2)
        size = max(1, _BLOCK // self.dimension)
        for start in range(0, len(result), size):
            part = slice(start, min(start + size, len(result)))
            left = slice(2 * part.start, 2 * part.stop, 2)
            right = slice(2 * part.start + 1, 2 * part.stop, 2)
            apart = self.vectors[left] - self.vectors[right]
            length = np.sqrt(np.vecdot(apart, apart))
            if self.weights is None:
                result[part] = length * np.sqrt(0.5)
            else:
                w, v = self.weights[left], self.weights[right]
                together = np.sqrt(np.maximum(w * w + v * v, 1e-300))
                result[part] = length * (w * v / together)
        return result

    def halves(self, grid: Grid, centre: NDArray[np.float64]) -> Integers:
        """Return the sum of weighted offsets on ``grid``, whose bound has the centre if equal."""
        if self.weights is None:
            return grid.encode_halves(self.vectors)
        totals = np.zeros((2, self.dimension), dtype=np.int64)
        for _, block in self._offsets(centre):
            totals += grid.encode_halves(block)
        return totals

    def _offsets(self, centre: NDArray[np.float64]) -> Iterator[tuple[slice, NDArray[np.float64]]]:
        size = max(1, _BLOCK // self.dimension)
        buffer = np.empty((min(size, self.n_users), self.dimension))
        for start in range(0, self.n_users, size):
            part = slice(start, min(start + size, self.n_users))
            block = np.subtract(self.vectors[part], centre, out=buffer[: part.stop - start])
            if self.weights is not None:
                block *= self.weights[part, None]
            yield part, block


@dataclass(frozen=True)
class CrowdVectors(VectorUsers):
    """One bounded vector for each user of a crowd, kept where the crowd lies.

    Parameters
    ----------
    crowd : Crowd
        One record for each user who is present: the vector; the target is how many records they
        hold, if users may be weighed. Made by :meth:`of`.
    records : float or None
        Up to how many records users are weighed.

    Examples
    --------
    >>> from quorate.grid import Box
    >>> people = UserData.from_arrays([[1.0], [9.0], [3.0]], users=["ann", "bob", "ann"])
    >>> users = CrowdVectors.of(people, UserData.user_means, Box([0.0], [8.0]))
    >>> sorted(users.column(0).tolist())
    [-2.0, 4.0]
    """

    crowd: Crowd
    records: float | None = None

    @classmethod
    def of(
        cls,
        crowd: Crowd,
        vectors: Callable[[UserData], NDArray[np.float64]],
        bound: Bound,
        *,
        counted: bool = False,
    ) -> CrowdVectors:
        """Return the users' ``vectors``, bounded and taken from the centre of ``bound``."""
        return cls(crowd.derive(_AsRecord(vectors, bound, counted=counted), keep=True))

    @property
    def n_users(self) -> int:
        """Number of users."""
        return self.crowd.n_users

    @property
    def dimension(self) -> int:
        """Number of coordinates."""
        return self.crowd.n_features

    @property
    def weighted(self) -> bool:
        """Whether users have weights."""
        return self.records is not None

    @property
    def counted(self) -> bool:
        """Whether it is known how many records users hold."""
        return self.crowd.has_target

    def add_up(self, work: Callable[[WeightedUsers], Integers]) -> Integers:
        """Return the sum of what ``work`` makes of the users of each part."""
        return self.crowd.add_up(_OnVectors(work, self.records), whole=True)

    def equally(self) -> CrowdVectors:
        """Return the same users, all with weight 1."""
        return replace(self, records=None)

    def weighed(self, records: float) -> CrowdVectors:
        """Return the same users, weighed by their records up to ``records``."""
        return replace(self, records=records)

    def some(self, ranks: Integers) -> WeightedUsers:
        """Return a few users, numbered in the order of their keys."""
        rows = self.crowd.gather(_vectors_and_counts, ranks)
        users = WeightedUsers(
            np.ascontiguousarray(rows[:, : self.dimension]),
            counts=rows[:, self.dimension] if self.counted else None,
        )
        return users if self.records is None else users.weighed(self.records)

    def column(self, coordinate: int) -> NDArray[np.float64]:
        """Return one coordinate of those who are present."""
        parts = self.crowd.map(_Column(coordinate))
        return np.concatenate([np.empty(0), *parts])


@dataclass(frozen=True)
class _AsRecord:
    """The users with one record each, their bounded vector; an absent user has none."""

    vectors: Callable[[UserData], NDArray[np.float64]]
    bound: Bound
    counted: bool

    def __call__(self, users: UserData) -> UserData:
        rows = bounded_vectors(self.vectors(users), self.bound)
        present = ~np.isnan(rows[:, 0])
        counts = users.record_counts().astype(np.float64) if self.counted else None
        if not present.all():
            rows, counts = rows[present], None if counts is None else counts[present]
        return ordered_users(rows, counts, offsets_of(present), users.keys(), users.unit, None)


@dataclass(frozen=True)
class _OnVectors:
    work: Callable[[WeightedUsers], Integers]
    records: float | None

    def __call__(self, part: UserData) -> Integers:
        users = _weighted(part)
        return self.work(users if self.records is None else users.weighed(self.records))


@dataclass(frozen=True)
class _Column:
    coordinate: int

    def __call__(self, part: UserData) -> NDArray[np.float64]:
        return np.ascontiguousarray(part.X[:, self.coordinate])


def _weighted(part: UserData) -> WeightedUsers:
    rows = _vectors_and_counts(part)
    d = part.n_features
    if not part.has_target:
        return WeightedUsers(rows)
    return WeightedUsers(np.ascontiguousarray(rows[:, :d]), counts=rows[:, d])


def _vectors_and_counts(part: UserData) -> NDArray[np.float64]:
    """Return a row for each user: the vector, NaN if absent; and the records held, if known."""
    held = part.X if part.y is None else np.column_stack([part.X, part.y])
    present = part.record_counts() > 0
    if present.all():
        return held
    rows = np.full((part.n_users, held.shape[1]), np.nan)
    rows[present] = held
    if part.y is not None:
        rows[~present, -1] = 0.0
    return rows
