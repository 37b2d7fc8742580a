"""One vector and one bounded weight per user: the input of every route of the mean.

Vectors are finite offsets from the centre of the public bound and lie inside it. A user without
readable records is *absent* and has a row of NaN. Weights lie in [0, 1]. :class:`PeopleVectors`
turns each user's records into one record, the vector (none for absent users); its answers are
sealed. :class:`WeightedUsers` holds the vectors and weights of one part of the data as arrays. Each
user is processed separately, in blocks that fit the cache.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from quorate.core.account.account import Account
from quorate.core.account.secret_pairs import secret_pairs
from quorate.core.bounds.grid import Bound, Grid
from quorate.core.guarantees import Relation
from quorate.core.people import People
from quorate.core.sealed import Sealed, SealedRows
from quorate.core.users import UserData
from quorate.core.users.data import ordered_users
from quorate.core.users.store import offsets_of

__all__ = ["PeopleVectors", "WeightedUsers", "bounded_vectors", "record_weights"]

Rows = NDArray[np.float64]
# One number, or one row of them, for each user of a part.
OfUsers = Callable[["WeightedUsers"], NDArray[Any]]

# A megabyte of floats.
_BLOCK = 2**17


def bounded_vectors(values: NDArray[np.float64], bound: Bound) -> NDArray[np.float64]:
    """Return the offsets of ``values`` from the centre of ``bound``, clipped into it.

    A row without any finite number stands for an absent user and becomes NaN. In other rows a
    coordinate (in a box) or the whole row (in a ball) that is NaN or infinite becomes the centre.

    >>> from quorate.core.bounds.grid import Box
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

    The mean of m records has a standard error of 1/sqrt(m). After multiplication by sqrt(m) all
    users are about equally far from the centre, so one radius suits all of them.

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
    counts : array of shape (n,) or None
        Number of records of each user, if weights may be used.

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
    def own_weights(self) -> NDArray[np.float64]:
        """The weights; 1 for every user if users are not weighted."""
        return np.ones(self.n_users) if self.weights is None else self.weights

    @property
    def held(self) -> NDArray[Any]:
        """The number of records of each user; 0 for every user if it is not known."""
        return np.zeros(self.n_users, np.int64) if self.counts is None else self.counts

    @property
    def present(self) -> NDArray[np.bool_]:
        """Which users have usable records."""
        return np.asarray(~np.isnan(self.vectors[:, 0]))

    def weighed(self, records: float) -> WeightedUsers:
        """Return the same users, weighted by their numbers of records up to ``records``."""
        weights = np.where(self.present, record_weights(self.held, records=records), 0.0)
        return replace(self, weights=weights)

    def distances(self, centre: NDArray[np.float64], relation: Relation) -> NDArray[np.float64]:
        """Return the length of each user's weighted offset from ``centre``.

        An absent user has length 0 under replacement, where all users count; otherwise NaN.
        """
        result = np.empty(self.n_users)
        for part, block in self._offsets(centre):
            np.sqrt(np.vecdot(block, block), out=result[part])
        if relation is Relation.REPLACE:
            result[np.isnan(result)] = 0.0
        return result

    def offsets(self, centre: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the weighted offsets from ``centre``; without weights, the vectors themselves.

        The bound of a sum of vectors keeps its centre; the bound of a sum of offsets is centred at
        0.
        """
        if self.weights is None:
            return self.vectors
        result = np.empty(self.vectors.shape)
        for part, block in self._offsets(centre):
            result[part] = block
        return result

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
class PeopleVectors:
    """One bounded vector per user, stored where the user's records are.

    Parameters
    ----------
    people : People
        One record for each present user: the vector. The target is the number of records if users
        may be weighted. Made by :meth:`of`.
    records : float or None
        Number of records from which on a user has full weight.

    Examples
    --------
    >>> from quorate.core.bounds.grid import Box
    >>> data = UserData.from_arrays([[1.0], [9.0], [3.0]], users=["ann", "bob", "ann"])
    >>> people = People(data, Relation.REPLACE)
    >>> users = PeopleVectors.of(people, UserData.user_means, Box([0.0], [8.0]))
    >>> users.column(0)
    SealedRows(shape of a row=(), one row a user)
    """

    people: People
    records: float | None = None

    @classmethod
    def of(
        cls,
        people: People,
        vectors: Callable[[UserData], Rows],
        bound: Bound,
        *,
        counted: bool = False,
    ) -> PeopleVectors:
        """Return the users' ``vectors`` as bounded offsets from the centre of ``bound``."""
        return cls(people.derive(_AsRecord(vectors, bound, counted=counted), keep=True))

    @property
    def n_users(self) -> int:
        """Number of users, where it is public."""
        return self.people.n_users

    @property
    def size_bound(self) -> int:
        """A public upper bound on the number of users, which determines the grid of sums."""
        return self.people.size_bound

    @property
    def relation(self) -> Relation:
        """The neighbouring relation of answers."""
        return self.people.relation

    @property
    def dimension(self) -> int:
        """Number of coordinates."""
        return self.people.n_features

    @property
    def weighted(self) -> bool:
        """Whether users have weights."""
        return self.records is not None

    @property
    def counted(self) -> bool:
        """Whether the number of records of each user is known, so that weights can be used."""
        return self.people.has_target

    def equally(self) -> PeopleVectors:
        """Return the same users, all with weight 1."""
        return replace(self, records=None)

    def weighed(self, records: float) -> PeopleVectors:
        """Return the same users, weighted by their numbers of records up to ``records``."""
        return replace(self, records=records)

    def total(self, contributions: OfUsers, grid: Grid) -> Sealed:
        """Add up what users contribute, clipped and rounded by ``grid``."""
        return self.people.total(_Contributions(self._on(contributions), grid.bound), grid)

    def counts(self, values: OfUsers, thresholds: Rows) -> Sealed:
        """Count the users at or below each public threshold; NaN counts as above all thresholds."""
        return self.people.counts(self._on(values), thresholds, dimension=self.dimension)

    def each(self, values: OfUsers) -> SealedRows:
        """Return one number or row for each user; NaN is allowed for absent users."""
        return self.people.each(self._on(values))

    def tally(self, labels: OfUsers, size: int, *, labellings: int = 1) -> Sealed:
        """Count the users with each label below ``size``; see :meth:`People.tally`."""
        return self.people.tally(self._on(labels), size, labellings=labellings)

    def rows(self) -> SealedRows:
        """Return the vectors, for mechanisms that need one row per user."""
        return self.each(_vectors)

    def column(self, coordinate: int) -> SealedRows:
        """Return one coordinate of the vectors of present users."""
        return self.each(_Column(coordinate)).present()

    def count_records(self, thresholds: Rows) -> Sealed:
        """Count the users who have at most each number of records."""
        return self.counts(_held, thresholds)

    def count_within(self, thresholds: Rows, centre: Rows) -> Sealed:
        """Count the users whose weighted offset from ``centre`` is within each distance."""
        return self.counts(_Distances(centre, self.relation), thresholds)

    def pair_distances(
        self, account: Account, *, most: int, only_present: bool = False
    ) -> SealedRows:
        """Return the distances of random disjoint pairs, in units of one user's spread.

        Two independent users who each deviate by s / weight from a common centre are s * sqrt(1/w^2
        + 1/v^2) apart; the result is their distance divided by that root. A pair with an absent
        user counts alternately as 0 and as infinity, so such pairs hardly move the median. Under
        add or remove only present users are paired.
        """
        return secret_pairs(
            self.people,
            _vectors_and_counts,
            account=account,
            most=most,
            only_present=only_present,
            made=_Apart(self.dimension, self.records),
        )

    def _on(self, work: OfUsers) -> _OnVectors:
        return _OnVectors(work, self.records)


@dataclass(frozen=True)
class _AsRecord:
    """Users with their bounded vector as their only record; an absent user has none."""

    vectors: Callable[[UserData], Rows]
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
    """A function that applies ``work`` to the users of one part of the data."""

    work: OfUsers
    records: float | None

    def __call__(self, part: UserData) -> NDArray[Any]:
        users = _weighted(part)
        return self.work(users if self.records is None else users.weighed(self.records))


@dataclass(frozen=True)
class _Contributions:
    """The users' weighted vectors as a statistic, processed in batches that fit the cache."""

    work: _OnVectors
    bound: Bound
    batched: ClassVar[bool] = True

    def __call__(self, users: UserData) -> NDArray[Any]:
        return self.work(users)


@dataclass(frozen=True)
class _Column:
    coordinate: int

    def __call__(self, users: WeightedUsers) -> Rows:
        return np.ascontiguousarray(users.vectors[:, self.coordinate])


@dataclass(frozen=True)
class _Distances:
    centre: Rows
    relation: Relation

    def __call__(self, users: WeightedUsers) -> Rows:
        return users.distances(self.centre, self.relation)


def _vectors(users: WeightedUsers) -> Rows:
    return users.vectors


def _held(users: WeightedUsers) -> NDArray[Any]:
    return users.held


@dataclass(frozen=True)
class _Apart:
    """The distance of the two users of each pair; see :meth:`PeopleVectors.pair_distances`."""

    dimension: int
    records: float | None

    def __call__(self, pairs: Rows) -> Rows:
        result = np.empty(len(pairs))
        size = max(1, _BLOCK // self.dimension)
        for start in range(0, len(pairs), size):
            part = slice(start, min(start + size, len(pairs)))
            left, right = (
                _of_rows(pairs[part, side], self.dimension, self.records) for side in (0, 1)
            )
            apart = left.vectors - right.vectors
            length = np.sqrt(np.vecdot(apart, apart))
            if left.weights is None or right.weights is None:
                result[part] = length * np.sqrt(0.5)
            else:
                w, v = left.weights, right.weights
                together = np.sqrt(np.maximum(w * w + v * v, 1e-300))
                result[part] = length * (w * v / together)
        unknown = np.flatnonzero(np.isnan(result))
        result[unknown] = np.where(unknown % 2 == 0, 0.0, np.inf)
        return result


def _weighted(part: UserData) -> WeightedUsers:
    return _of_rows(_vectors_and_counts(part), part.n_features)


def _of_rows(rows: Rows, dimension: int, records: float | None = None) -> WeightedUsers:
    if rows.shape[1] == dimension:
        return WeightedUsers(rows)
    users = WeightedUsers(np.ascontiguousarray(rows[:, :dimension]), counts=rows[:, dimension])
    return users if records is None else users.weighed(records)


def _vectors_and_counts(part: UserData) -> Rows:
    """Return the vector of each user (NaN if absent) and the number of records, if known."""
    held = part.X if part.y is None else np.column_stack([part.X, part.y])
    present = part.record_counts() > 0
    if present.all():
        return held
    rows = np.full((part.n_users, held.shape[1]), np.nan)
    rows[present] = held
    if part.y is not None:
        rows[~present, -1] = 0.0
    return rows
