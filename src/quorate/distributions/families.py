r"""Finite families of densities, and the duels that users' records decide between them (F7).

For two members P and P' the Scheffe set is :math:`W = \{z : P(z) > P'(z)\}`. A user with m records,
c of them in W, says by :math:`m P(W) - c` how much less often than P promises they fall where P
claims to be better. This number is clipped for each user, and added up. P is as bad as its worst
duel: a member near the truth loses none by much (Ghazi et al., Theorem 37 and 41 [1]_).

All numbers are integers: masses are rounded to a public grid, so a user's term is a function of
that user's records to the last bit, and a matrix product of integers below 2^53 is exact in any
order.

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

import numpy as np
from numpy.typing import ArrayLike, NDArray

from quorate import _validate
from quorate.exceptions import ParameterError
from quorate.guarantees import Relation
from quorate.public_randomness import RandomState, public_generator
from quorate.users.data import UserData

__all__ = ["MAX_MEMBERS", "Clip", "DiscreteFamily", "Family", "GaussianFamily", "PairwiseFamily"]

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]

MAX_MEMBERS = 4096
"""More members than this are refused: the table of all duels would pass 128 MB."""

MASS_UNIT = 2**20
"""Masses are rounded to multiples of its reciprocal; a family of a million points keeps them."""

WEIGHT_UNIT = 2**12
"""A user's own scale 1/sqrt(m) is rounded to multiples of its reciprocal."""

# Users whose terms are held at once, and how far their sums stay from 2**53.
_USERS_AT_ONCE = 1024


@dataclass(frozen=True)
class Clip:
    r"""How far one user may move a duel.

    Parameters
    ----------
    tau : float
        A user's term is clipped to [-tau, tau].
    own_scale : bool, default=True
        Whether the term is first divided by the square root of how many records the user holds,
        which is the size that chance gives it; then tau around 1/2 fits everybody, and no public
        number of records is needed. ``False`` clips the bare count, as published.
    records : int or None, default=None
        The largest number of records a user may count; more are cut off. Helps where it is
        smaller than what tau allows.

    Examples
    --------
    >>> Clip(0.5).tau
    0.5
    >>> Clip.published(64, alpha=0.05)
    Clip(tau=17.04..., own_scale=False, records=None)
    """

    tau: float
    own_scale: bool = True
    records: int | None = None

    def __post_init__(self) -> None:
        _validate.positive(tau=self.tau)
        _validate.one_of((True, False), own_scale=self.own_scale)
        if self.records is not None:
            _validate.positive_integer(records=self.records)
        highest = 2**8 if self.own_scale else 2**20
        if not 2**-10 <= self.tau <= highest:
            raise ParameterError(f"Expected tau from 2**-10 to {highest}, got tau={self.tau!r}.")

    @classmethod
    def published(cls, m: int, *, alpha: float) -> Clip:
        r"""Return the order of Theorem 37, :math:`\alpha m + \sqrt{m \ln(1/\alpha)}`."""
        _validate.positive_integer(m=m)
        _validate.probability(alpha=alpha)
        return cls(alpha * m + math.sqrt(m * math.log(1 / alpha)), own_scale=False)

    @classmethod
    def none(cls, m: int) -> Clip:
        """Return what group privacy does: keep all of at most m records and pay for them."""
        return cls(float(m), own_scale=False, records=m)

    def weights(self, held: Integers) -> Integers:
        """Return what each user's term is multiplied with; an integer of the user's own count."""
        if not self.own_scale:
            return np.ones(held.shape, dtype=np.int64)
        scaled = np.rint(WEIGHT_UNIT / np.sqrt(np.maximum(held, 1)))
        return np.maximum(scaled, 1).astype(np.int64)

    def limit(self, unit: int) -> int:
        """Return the largest absolute term of a user, for masses in multiples of 1 / unit."""
        return math.floor(self.tau * unit * (WEIGHT_UNIT if self.own_scale else 1))

    def width(self, unit: int) -> int:
        """Return how far apart two users' terms in the same duel can be.

        A term is between -m (1 - P(W)) and m P(W) before it is clipped, so at most m apart.
        """
        width = 2 * self.limit(unit)
        if self.records is None:
            return width
        if not self.own_scale:
            widest = self.records
        elif self.records <= 2**16:
            counts = np.arange(1, self.records + 1)
            widest = int((counts * self.weights(counts)).max())
        else:  # m w <= sqrt(m) / unit of w + m / 2, as w is rounded
            widest = WEIGHT_UNIT * (math.isqrt(self.records) + 1) + self.records
        return min(width, widest * unit)

    def sensitivity(self, unit: int, relation: Relation) -> int:
        """Return how far one user can move the worst duel of any member."""
        width = self.width(unit)
        return width if relation is Relation.REPLACE else min(width, self.limit(unit))


class Family(ABC):
    """A finite family of densities.

    A family adds up what users say in :meth:`tally` (integers, one part at a time), and reads from
    the sum how bad each member is in :meth:`worst`.
    """

    @property
    @abstractmethod
    def size(self) -> int:
        """The number of members."""

    @property
    def n_features(self) -> int:
        """How many numbers a record has."""
        return 1

    @property
    @abstractmethod
    def unit(self) -> int:
        """Masses are multiples of its reciprocal."""

    @abstractmethod
    def tally(self, users: UserData, clip: Clip) -> Integers:
        """Add up the clipped terms of some users."""

    @abstractmethod
    def worst(self, tally: Integers) -> Integers:
        """Return the largest duel of every member."""

    @abstractmethod
    def log_density(self, X: ArrayLike, index: int) -> Floats:
        """Return the log density, or log mass, of one member at each record."""

    @abstractmethod
    def sample(self, index: int, n: int, random_state: RandomState = None) -> Floats:
        """Draw records from one member."""


class PairwiseFamily(Family):
    """A family whose duels are all held in a table: rows against columns."""

    def tally(self, users: UserData, clip: Clip) -> Integers:
        """Add up the clipped terms of some users, for all pairs of members."""
        if self.size > MAX_MEMBERS:
            raise ParameterError(
                f"Expected at most {MAX_MEMBERS} members for a table of duels, got {self.size}."
            )
        table = np.zeros((self.size, self.size), dtype=np.int64)
        limit = float(clip.limit(self.unit))
        for start in range(0, users.n_users, _USERS_AT_ONCE):
            some = users.take(np.arange(start, min(start + _USERS_AT_ONCE, users.n_users)))
            for member, terms in self.terms(some, clip):
                np.clip(terms, -limit, limit, out=terms)
                # Integers, and their sum is below 2**53.
                table[member] += terms.sum(axis=0).astype(np.int64)
        return table

    @abstractmethod
    def terms(self, users: UserData, clip: Clip) -> Iterator[tuple[int, Floats]]:
        """Yield each member's terms (users x other members), integers in floats, not clipped.

        The array may be changed by whoever gets it, and is used again for the next member.
        """

    def worst(self, tally: Integers) -> Integers:
        """Return the largest duel of every member with another one."""
        if self.size == 1:
            return np.zeros(1, dtype=np.int64)
        others = tally.copy()
        np.fill_diagonal(others, np.iinfo(np.int64).min)
        return np.asarray(others.max(axis=1))


@dataclass(frozen=True, eq=False)
class DiscreteFamily(PairwiseFamily):
    """Distributions on a public list of points, one in each row.

    Parameters
    ----------
    pmf : array of shape (members, points)
        Masses of at least zero; each row is divided by its sum and rounded to multiples of 2^-20.
    points : sequence of numbers, optional
        What the records are compared with; 0, 1, 2, ... by default. Other records do not count.

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
        """Masses are multiples of its reciprocal."""
        return MASS_UNIT

    def counts(self, users: UserData) -> Integers:
        """Count each user's records at each point: (users, points)."""
        return counts_at(users, self._values)

    def terms(self, users: UserData, clip: Clip) -> Iterator[tuple[int, Floats]]:
        """Yield each member's terms: one small matrix product of integers."""
        counts = capped(self.counts(users), clip.records)
        held = counts.sum(axis=1)
        weights = clip.weights(held)
        # w (m P(z) - c_z), which the Scheffe set then adds up: at most 2**53 in all.
        found = (weights[:, None] * counts * MASS_UNIT).astype(np.float64)
        promised = (weights * held).astype(np.float64)[:, None]
        columns = np.ascontiguousarray(self.masses.T, dtype=np.int32)
        better, inside = np.empty(columns.shape, dtype=np.bool_), np.empty(columns.shape)
        terms = np.empty((len(counts), self.size))
        for member, masses in enumerate(self.masses):
            np.greater(columns[:, member, None], columns, out=better)
            np.copyto(inside, better)
            yield member, np.matmul(promised * masses - found, inside, out=terms)

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


@dataclass(frozen=True, eq=False)
class GaussianFamily(PairwiseFamily):
    """Normal distributions with a common scale, or on a line with scales of their own.

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
        """How many numbers a record has."""
        return int(self._means.shape[1])

    @property
    def unit(self) -> int:
        """Masses are multiples of its reciprocal."""
        return MASS_UNIT

    @cached_property
    def scheffe(self) -> Floats:
        """P(W) for all pairs, in floating point; what is used is rounded to the unit."""
        from scipy.special import ndtr

        means, scales = self._means, self._scales
        if np.all(scales == scales[0]):
            gaps = np.sqrt(((means[:, None] - means) ** 2).sum(axis=2)) / scales[0]
            return np.where(gaps > 0, ndtr(gaps / 2), 0.0)
        return _scheffe_on_a_line(means[:, 0], scales)

    def terms(self, users: UserData, clip: Clip) -> Iterator[tuple[int, Floats]]:
        """Yield each member's terms, by comparing the densities at every record."""
        if clip.records is not None:
            users = users.cap(records=clip.records, random_state=0)
        held = users.record_counts()
        weights = clip.weights(held)
        heights = np.stack([self.log_density(users.X, i) for i in range(self.size)], axis=1)
        promised = np.rint(self.scheffe * MASS_UNIT).astype(np.int64)
        starts = (np.cumsum(held) - held)[held > 0]
        inside = np.zeros((len(held), self.size), dtype=np.int64)
        for member in range(self.size):
            higher = heights[:, member, None] > heights
            if starts.size:
                inside[held > 0] = np.add.reduceat(higher, starts, axis=0, dtype=np.int64)
            terms = weights[:, None] * (held[:, None] * promised[member] - inside * MASS_UNIT)
            yield member, terms.astype(np.float64)

    def log_density(self, X: ArrayLike, index: int) -> Floats:
        """Return the log density of one member at each record."""
        X = np.asarray(X, dtype=np.float64).reshape(-1, self.n_features)
        scale = self._scales[index]
        with np.errstate(over="ignore"):
            squares = ((X - self._means[index]) / scale) ** 2
            total = np.zeros(len(X))
            for column in squares.T:  # one feature after the other, for every record alike
                total += column
        constant = self.n_features * (math.log(scale) + 0.5 * math.log(2 * math.pi))
        return np.asarray(-0.5 * total - constant)

    def sample(self, index: int, n: int, random_state: RandomState = None) -> Floats:
        """Draw records from one member."""
        drawn = public_generator(random_state).standard_normal((n, self.n_features))
        return np.asarray(self._means[index] + self._scales[index] * drawn)


def _scheffe_on_a_line(means: Floats, scales: Floats) -> Floats:
    """Return P(P > P') for normal laws: between two roots, outside of them, or a half-line."""
    from scipy.special import ndtr

    m, s = means[:, None], scales[:, None]
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


def counts_at(users: UserData, values: Floats) -> Integers:
    """Count each user's records at each of some values; records elsewhere do not count.

    >>> people = UserData.from_arrays([[0.5], [7.0], [0.5]], users=["a", "a", "a"])
    >>> counts_at(people, np.array([7.0, 0.5, 1.0]))
    array([[1, 2, 0]])
    """
    order = np.argsort(values)
    records = users.X[:, 0]
    place = np.searchsorted(values[order], records).clip(0, len(values) - 1)
    known = values[order][place] == records
    user = np.repeat(np.arange(users.n_users), users.record_counts())
    cells = user[known] * len(values) + order[place[known]]
    counts = np.bincount(cells, minlength=users.n_users * len(values))
    return np.asarray(counts.reshape(users.n_users, len(values)), dtype=np.int64)


def capped(counts: Integers, records: int | None) -> Integers:
    """Shrink each user's histogram to at most ``records``, keeping its shape as well as it goes.

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
