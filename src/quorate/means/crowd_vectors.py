"""One bounded vector for each user of a crowd, kept where the crowd lies.

The vectors are a crowd themselves: every user who is present has one record, an absent user none.
They are made once and stay with their parts; what comes back are sums of integers, counts at public
thresholds, and the vectors of few users.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from quorate.bounds import Bound
from quorate.means.weighted_users import VectorUsers, WeightedUsers, bounded_vectors
from quorate.users import UserData
from quorate.users.assembly import ordered_users
from quorate.users.crowd import Crowd
from quorate.users.store import offsets_of

__all__ = ["CrowdVectors"]

Integers = NDArray[np.int64]


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
    >>> from quorate.bounds import Box
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
