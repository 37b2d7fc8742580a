r"""Finite families of densities, and the duels that decide between their members (F7).

For two members P and P' the Scheffe set is :math:`W = \{z : P(z) > P'(z)\}`. For a user with m
records, c of them in W, :math:`m P(W) - c` says how many records fewer than P predicts are in the
set where P is larger. This number is clipped for each user, and summed over users. The loss of P is
its worst duel: a member near the truth loses none of its duels by much (Ghazi et al., Theorem 37
and 41 [1]_).

All numbers are integers: masses are rounded to a public grid, so a user's contribution is a
function of that user's records to the last bit, and a matrix product of integers below 2^53 is
exact in any order. The core clips and adds up the contributions given by :class:`DuelTable`.

References
----------
.. [1] Ghazi, Kamath, Kumar, Manurangsi, Meka, Zhang. User-level differential privacy with few
   examples per user. NeurIPS 2023.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from types import EllipsisType
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from quorate.core.moves import Limit
from quorate.core.public_randomness import RandomState, public_generator
from quorate.core.sealed import Sealed
from quorate.core.users.data import UserData
from quorate.distributions.hypotheses.clip import Clip, Votes
from quorate.exceptions import ParameterError

__all__ = [
    "MAX_MEMBERS",
    "DensityFamily",
    "DiscreteFamily",
    "DuelTable",
    "Family",
    "GaussianFamily",
    "PairwiseFamily",
]

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]
# Which row of the table, or all of it, and one row per user of what is said there.
Said = tuple[int | EllipsisType, NDArray[Any]]

MAX_MEMBERS = 4096
"""More members than this are refused: the table of all duels would pass 128 MB."""

MASS_UNIT = 2**20
"""Masses are rounded to multiples of its reciprocal; a family of a million points keeps them."""

# Users whose terms are held at once; their sums stay far below 2**53.
_USERS_AT_ONCE = 1024

# More records of a user than this are cut off where votes add up likelihoods.
_MOST_RECORDS = 2**24

# Comparisons of densities that are held at once.
_CELLS_AT_ONCE = 2**21


class Family(ABC):
    """A finite family of densities.

    The users' contributions to duels between members form a table of a public shape. The core clips
    each user's number to the limits of a clip and adds them up; the loss of a member is its worst
    duel.
    """

    @property
    @abstractmethod
    def size(self) -> int:
        """The number of members."""

    @property
    def n_features(self) -> int:
        """Number of features of a record."""
        return 1

    @property
    @abstractmethod
    def unit(self) -> int:
        """Masses are multiples of 1 / unit."""

    @property
    @abstractmethod
    def shape(self) -> tuple[int, int]:
        """The shape of the table of duels; a family with too many members is refused here."""

    @property
    @abstractmethod
    def promised(self) -> Integers:
        """The mass, in units, that the first member gives to the set of each duel."""

    @abstractmethod
    def terms(self, users: UserData, clip: Clip) -> Iterator[Said]:
        """Yield rows of the table (or all of it) with the users' contributions, unclipped."""

    @abstractmethod
    def duels(self) -> Iterator[Integers]:
        """Yield the duels of all members.

        Each array has one duel per member: its index in the table, or -1.
        """

    @abstractmethod
    def log_density(self, X: ArrayLike, index: int) -> Floats:
        """Return the log density, or log mass, of one member at each record."""

    @abstractmethod
    def sample(self, index: int, n: int, random_state: RandomState = None) -> Floats:
        """Draw records from one member."""


@dataclass(frozen=True, eq=False)
class DuelTable:
    """The users' contributions to the duels of a family, as an argument of ``people.scores``.

    >>> from quorate.core.people import People
    >>> from quorate.core.guarantees import Relation
    >>> people = People(UserData.from_arrays([[0.0]], users=[7]), Relation.REPLACE)
    >>> table = DuelTable(DiscreteFamily([[0.1, 0.9], [0.9, 0.1]]), Clip(0.5))
    >>> table.worst(people.scores(table))
    Sealed(shape=(2,), one user moves a coordinate by at most 4.29497e+09)
    """

    family: Family
    clip: Clip | Votes
    batched: ClassVar[bool] = False

    def __post_init__(self) -> None:
        _ = self.shape  # refused before anybody is asked

    @property
    def shape(self) -> tuple[int, int]:
        """The shape of the family's table."""
        return self.family.shape

    @cached_property
    def _limits(self) -> tuple[Limit, Limit]:
        return self.clip.limits(self.family.unit, self.family.promised)

    @property
    def low(self) -> Limit:
        """The smallest contribution."""
        return self._limits[0]

    @property
    def high(self) -> Limit:
        """The largest contribution."""
        return self._limits[1]

    def __call__(self, users: UserData) -> Iterator[Said]:
        """Yield the contributions of these users."""
        if isinstance(self.clip, Clip):
            return self.family.terms(users, self.clip)
        if not isinstance(self.family, PairwiseFamily):
            raise ParameterError("Votes need a family with a table of all duels.")
        return self.family.votes(users, self.clip)

    def worst(self, table: Sealed) -> Sealed:
        """Return the worst duel of every member."""
        return table.largest_of(self.family.duels(), self.family.size)


class PairwiseFamily(Family):
    """A family with a table of all duels: row member against column member."""

    @property
    def shape(self) -> tuple[int, int]:
        """One row and one column for each member."""
        if self.size > MAX_MEMBERS:
            raise ParameterError(
                f"Expected at most {MAX_MEMBERS} members for a table of duels, got {self.size}."
            )
        return self.size, self.size

    def votes(self, users: UserData, votes: Votes) -> Iterator[Said]:
        """Yield one vote per user in every duel: 1 against the row's member, for the column's."""
        for some in in_blocks(users):
            marks = self._marks(some, votes)
            for member in range(self.size):
                mine = marks[:, member, None]
                yield member, (marks > mine).astype(np.int8) - (marks < mine)

    @abstractmethod
    def _marks(self, users: UserData, votes: Votes) -> Floats:
        """Return log likelihoods of each user's records under each member, as integers."""

    def duels(self) -> Iterator[Integers]:
        """Yield the opponents of each member one after the other, without the member itself."""
        members = np.arange(self.size)
        for step in range(1, self.size):
            yield members * self.size + (members + step) % self.size


@dataclass(frozen=True, eq=False)
class DiscreteFamily(PairwiseFamily):
    """Distributions on a public list of points, one in each row.

    Parameters
    ----------
    pmf : array of shape (members, points)
        Masses of at least zero; each row is divided by its sum and rounded to multiples of 2^-20.
    points : sequence of numbers, optional
        The values that records may have; 0, 1, 2, ... by default. Records with other values are
        ignored.

    Examples
    --------
    >>> family = DiscreteFamily([[0.5, 0.5], [0.9, 0.1]])
    >>> family.size
    2
    >>> people = UserData.from_arrays([[0], [1], [0]], users=["a", "a", "b"])
    >>> family.counts(people)
    array([[1, 1],
           [1, 0]])
    """

    pmf: ArrayLike
    points: Sequence[float] | None = None

    def __post_init__(self) -> None:
        pmf = np.asarray(self.pmf, dtype=np.float64)
        sums = pmf.sum(axis=-1) if pmf.ndim == 2 else np.zeros(1)
        if pmf.ndim != 2 or pmf.size == 0 or not np.all(np.isfinite(pmf)) or np.any(pmf < 0):
            raise ParameterError("Expected pmf of shape (members, points), finite and >= 0.")
        if not np.all(sums > 0):
            raise ParameterError("Expected every row of pmf to have some mass.")
        values = self._values
        if values.shape != (pmf.shape[1],) or len(np.unique(values)) != len(values):
            raise ParameterError("Expected points, all different, one for each column of pmf.")

    @cached_property
    def masses(self) -> Integers:
        """The masses of all members in units, which add up to 2^20."""
        pmf = np.asarray(self.pmf, dtype=np.float64)
        return largest_remainders(pmf / pmf.sum(axis=1, keepdims=True), MASS_UNIT)

    @cached_property
    def _values(self) -> Floats:
        points = np.arange(self.masses.shape[1]) if self.points is None else self.points
        return np.asarray(points, dtype=np.float64)

    @property
    def size(self) -> int:
        """The number of members."""
        return len(self.masses)

    @property
    def unit(self) -> int:
        """Masses are multiples of 1 / unit."""
        return MASS_UNIT

    def counts(self, users: UserData) -> Integers:
        """Count each user's records at each point: (users, points)."""
        return counts_at(users, self._values)

    def _marks(self, users: UserData, votes: Votes) -> Floats:
        with np.errstate(divide="ignore"):
            marks = votes.marks(np.log(self.masses.T / MASS_UNIT))
        # Each product is an integer below 2**53, in any order of addition.
        return np.asarray(capped(self.counts(users), _MOST_RECORDS).astype(np.float64) @ marks)

    @property
    def promised(self) -> Integers:
        """The mass, in units, of the row's member where it exceeds the column's."""
        table = np.empty(self.shape, dtype=np.int64)
        for member, inside in self._better():
            table[member] = self.masses[member] @ inside.astype(np.int64)
        return table

    def _better(self) -> Iterator[tuple[int, NDArray[np.bool_]]]:
        """Yield each member, and where its mass exceeds the others', as (points, members)."""
        columns = np.ascontiguousarray(self.masses.T, dtype=np.int32)
        for member in range(self.size):
            yield member, columns[:, member, None] > columns

    def terms(self, users: UserData, clip: Clip) -> Iterator[Said]:
        """Yield the row of one member after the other, each from a small product of integers."""
        for some in in_blocks(users):
            counts = capped(self.counts(some), clip.records)
            held = counts.sum(axis=1)
            weights = clip.weights(held)
            # w (m P(z) - c_z), which the Scheffe set then adds up: below 2**53 in all.
            found = (weights[:, None] * counts * MASS_UNIT).astype(np.float64)
            promised = (weights * held).astype(np.float64)[:, None]
            inside, terms = np.empty(self.masses.T.shape), np.empty((len(counts), self.size))
            for member, better in self._better():
                np.copyto(inside, better)
                yield (
                    member,
                    np.matmul(promised * self.masses[member] - found, inside, out=terms),
                )

    def log_density(self, X: ArrayLike, index: int) -> Floats:
        """Return the log mass of one member at each record; -inf outside of the points."""
        values = np.asarray(X, dtype=np.float64).reshape(-1)
        order = np.argsort(self._values)
        place = np.searchsorted(self._values[order], values).clip(0, len(order) - 1)
        known = self._values[order][place] == values
        with np.errstate(divide="ignore"):
            return np.where(known, np.log(self.probabilities(index)[order][place]), -np.inf)

    def probabilities(self, index: int) -> Floats:
        """Return the masses of one member."""
        return np.asarray(self.masses[index] / MASS_UNIT)

    def sample(self, index: int, n: int, random_state: RandomState = None) -> Floats:
        """Draw records from one member."""
        rng = public_generator(random_state)
        drawn = rng.choice(self._values, size=n, p=self.probabilities(index))
        return np.asarray(drawn, dtype=np.float64)[:, None]


class DensityFamily(PairwiseFamily):
    """A family of densities on numbers; they are compared at every record."""

    @property
    def unit(self) -> int:
        """Masses are multiples of 1 / unit."""
        return MASS_UNIT

    @property
    @abstractmethod
    def scheffe(self) -> Floats:
        """P(W) for all pairs, in floating point; it is rounded to the unit before use."""

    @abstractmethod
    def _heights(self, X: Floats) -> Floats:
        """Return the log densities of all members at some records: (records, members)."""

    @property
    def promised(self) -> Integers:
        """P(W) for all pairs in units."""
        return np.rint(self.scheffe * MASS_UNIT).astype(np.int64)

    def _inside(self, X: Floats) -> Integers:
        """Count the records in the Scheffe set of every pair."""
        return self._compared(X)

    def terms(self, users: UserData, clip: Clip) -> Iterator[Said]:
        """Compare the densities at every record, one user after the other."""
        if clip.records is not None:
            users = users.cap(records=clip.records, random_state=0)
        held, promised = users.record_counts(), self.promised
        for weight, m, end in zip(clip.weights(held), held, np.cumsum(held), strict=True):
            inside = self._inside(users.X[end - m : end])
            inside *= -MASS_UNIT
            inside += m * promised
            inside *= weight
            yield ..., inside[None]

    def _marks(self, users: UserData, votes: Votes) -> Floats:
        held = users.record_counts()
        found = np.zeros((users.n_users, self.size))
        at_once = max(1, _CELLS_AT_ONCE // self.size)
        for user, (m, end) in enumerate(zip(held, np.cumsum(held), strict=True)):
            for start in range(end - m, end, at_once):
                heights = self._heights(users.X[start : min(start + at_once, end)])
                found[user] += votes.marks(heights).sum(axis=0)
        return found

    def _compared(self, X: Floats) -> Integers:
        """Compare the densities of all pairs, a few records at a time."""
        inside = np.zeros((self.size, self.size), dtype=np.int64)
        at_once = max(1, _CELLS_AT_ONCE // self.size**2)
        for start in range(0, len(X), at_once):
            heights = self._heights(X[start : start + at_once])
            inside += (heights[:, :, None] > heights[:, None, :]).sum(axis=0)
        return inside


@dataclass(frozen=True, eq=False)
class GaussianFamily(DensityFamily):
    """Normal distributions with a common scale, or one-dimensional ones with individual scales.

    Parameters
    ----------
    means : array of shape (members, features)
    scales : float or array of shape (members,), default=1.0
        Standard deviation of every feature. Different scales need a single feature. For a known
        covariance whiten the records first.

    Examples
    --------
    >>> family = GaussianFamily([[0.0], [1.0]])
    >>> family.scheffe.round(3).tolist()
    [[0.0, 0.691], [0.691, 0.0]]
    """

    means: ArrayLike
    scales: ArrayLike = 1.0

    def __post_init__(self) -> None:
        means = np.asarray(self.means, dtype=np.float64)
        if means.ndim != 2 or means.size == 0 or not np.all(np.isfinite(means)):
            raise ParameterError("Expected finite means of shape (members, features).")
        scales = np.asarray(self.scales, dtype=np.float64)
        if scales.shape not in ((), (len(means),)):
            raise ParameterError("Expected one scale, or one for each member.")
        if not np.all((scales > 0) & np.isfinite(scales)):
            raise ParameterError("Expected scales that are finite and > 0.")
        if means.shape[1] > 1 and np.any(scales != scales.flat[0]):
            raise ParameterError("Expected one common scale for several features.")

    @cached_property
    def _means(self) -> Floats:
        return np.asarray(self.means, dtype=np.float64)

    @cached_property
    def _scales(self) -> Floats:
        return np.broadcast_to(np.asarray(self.scales, dtype=np.float64), len(self._means))

    @property
    def size(self) -> int:
        """The number of members."""
        return len(self._means)

    @property
    def n_features(self) -> int:
        """Number of features of a record."""
        return int(self._means.shape[1])

    @cached_property
    def scheffe(self) -> Floats:
        """P(W) for all pairs, in floating point; it is rounded to the unit before use."""
        from scipy.special import ndtr

        means, scales = self._means, self._scales
        if np.all(scales == scales[0]):
            gaps = np.sqrt(((means[:, None] - means) ** 2).sum(axis=2)) / scales[0]
            return np.where(gaps > 0, ndtr(gaps / 2), 0.0)
        found = np.empty((self.size, self.size))
        at_once = max(1, _CELLS_AT_ONCE // self.size)
        for start in range(0, self.size, at_once):
            rows = slice(start, start + at_once)
            found[rows] = _scheffe_on_a_line(means[:, 0], scales, rows)
        return found

    @cached_property
    def _half_lines(self) -> tuple[Floats, NDArray[np.int32]]:
        """Return the points between two means, and the half-line of each pair.

        With p such points, number j < p stands for the records below the j-th one, p + j for those
        above it, and 2 p for none.
        """
        means = self._means[:, 0]
        points, place = np.unique((means[:, None] + means) / 2, return_inverse=True)
        below, above = means[:, None] < means, means[:, None] > means
        place = place.reshape(below.shape) + np.where(above, len(points), 0)
        return points, np.where(below | above, place, 2 * len(points)).astype(np.int32)

    def _inside(self, X: Floats) -> Integers:
        """Count the records in the Scheffe set of every pair."""
        if self.n_features == 1 and np.all(self._scales == self._scales[0]):
            records = np.sort(X[:, 0])
            points, which = self._half_lines
            below = np.searchsorted(records, points, side="left")
            above = len(records) - np.searchsorted(records, points, side="right")
            return np.asarray(np.concatenate([below, above, [0]])[which], dtype=np.int64)
        return self._compared(X)

    def _heights(self, X: Floats) -> Floats:
        """Return the log densities of all members at some records: (records, members)."""
        total = np.zeros((len(X), self.size))
        with np.errstate(over="ignore"):
            for column, means in zip(X.T, self._means.T, strict=True):
                # One feature after the other, for every record alike.
                total += ((column[:, None] - means) / self._scales) ** 2
        constants = self.n_features * (np.log(self._scales) + 0.5 * math.log(2 * math.pi))
        return np.asarray(-0.5 * total - constants)

    def log_density(self, X: ArrayLike, index: int) -> Floats:
        """Return the log density of one member at each record."""
        X = np.asarray(X, dtype=np.float64).reshape(-1, self.n_features)
        one = GaussianFamily(self._means[index : index + 1], self._scales[index : index + 1])
        return one._heights(X)[:, 0]

    def sample(self, index: int, n: int, random_state: RandomState = None) -> Floats:
        """Draw records from one member."""
        drawn = public_generator(random_state).standard_normal((n, self.n_features))
        return np.asarray(self._means[index] + self._scales[index] * drawn)


def _scheffe_on_a_line(means: Floats, scales: Floats, rows: slice) -> Floats:
    """Return P(P > P') for some normal distributions P and all P'.

    The set lies between two roots, outside of them, or is a half-line.
    """
    from scipy.special import ndtr

    m, s = means[rows, None], scales[rows, None]
    # log P - log P' = a x^2 + b x + c
    a = 0.5 / scales**2 - 0.5 / s**2
    b = m / s**2 - means / scales**2
    c = 0.5 * (means / scales) ** 2 - 0.5 * (m / s) ** 2 + np.log(scales / s)
    with np.errstate(divide="ignore", invalid="ignore"):
        root = np.sqrt(np.maximum(b * b - 4 * a * c, 0.0))
        # The stable form of both roots; a half-line has its only root at -c/b.
        q = -0.5 * (b + np.where(b >= 0, root, -root))
        first, second = q / a, np.where(q == 0, 0.0, c / q)
        low, high = np.minimum(first, second), np.maximum(first, second)
        between = ndtr((high - m) / s) - ndtr((low - m) / s)
        edge = (-c / b - m) / s
        half = np.where(b > 0, 1 - ndtr(edge), ndtr(edge))
    inside = np.where(a < 0, between, 1 - between)
    same = (a == 0) & (b == 0)
    return np.asarray(np.where(same, 0.0, np.where(a == 0, half, inside)))


def in_blocks(users: UserData) -> Iterator[UserData]:
    """Yield a few users at a time."""
    for start in range(0, users.n_users, _USERS_AT_ONCE):
        yield users.take(np.arange(start, min(start + _USERS_AT_ONCE, users.n_users)))


def largest_remainders(shares: Floats, whole: int) -> Integers:
    """Round rows of shares to integers that add up to ``whole``, moving each by less than one.

    >>> largest_remainders(np.array([[0.5, 0.25, 0.25]]), 2)
    array([[1, 1, 0]])
    """
    scaled = shares * whole
    floors = np.floor(scaled).astype(np.int64)
    missing = whole - floors.sum(axis=1)
    order = np.argsort(floors - scaled, axis=1, kind="stable")
    rank = np.empty_like(order)
    np.put_along_axis(rank, order, np.arange(shares.shape[1])[None, :].repeat(len(shares), 0), 1)
    return np.asarray(floors + (rank < missing[:, None]))


def counts_at(users: UserData, values: Floats, column: int = 0) -> Integers:
    """Count each user's records at each of some values; other records are ignored.

    >>> people = UserData.from_arrays([[0.5], [7.0], [0.5]], users=["a", "a", "a"])
    >>> counts_at(people, np.array([7.0, 0.5, 1.0]))
    array([[1, 2, 0]])
    """
    order = np.argsort(values)
    records = users.X[:, column]
    place = np.searchsorted(values[order], records).clip(0, len(values) - 1)
    known = values[order][place] == records
    user = np.repeat(np.arange(users.n_users), users.record_counts())
    cells = user[known] * len(values) + order[place[known]]
    counts = np.bincount(cells, minlength=users.n_users * len(values))
    return np.asarray(counts.reshape(users.n_users, len(values)), dtype=np.int64)


def capped(counts: Integers, records: int | None) -> Integers:
    """Shrink each user's histogram to at most ``records``, keeping its shape as well as possible.

    >>> capped(np.array([[8, 2], [1, 0]]), 5)
    array([[4, 1],
           [1, 0]])
    """
    if records is None:
        return counts
    held = counts.sum(axis=1)
    over = held > records
    if over.any():
        counts = counts.copy()
        counts[over] = largest_remainders(counts[over] / held[over, None], records)
    return counts
