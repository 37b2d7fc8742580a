r"""Clip one period's contributions to what is left of each person's length.

Private. This module and :mod:`quorate.series.store` hold the only private numbers of a series: what
each person adds in a period, and what each person has used so far.

A person's contribution to period t is a vector of integers :math:`x_t` over all cells, in steps.
Over the whole horizon a person changes the releases by :math:`\|Cx\|`, with the public matrix C of
:mod:`quorate.series.factors`. It is kept at most the radius R: the person's *spent* square

.. math:: q_t = q_{t-1} + G_{tt} \|x_t\|^2 + 2 \lceil\|x_t\|\rceil
          \sum_{s<t} G_{ts} \lceil\|x_s\|\rceil, \qquad G = C^T C,

is an upper bound of :math:`\|C(x_1, \ldots, x_t, 0, \ldots)\|^2`, by the inequality of Cauchy and
Schwarz and because no entry of G is negative. It is an exact integer, and :math:`x_t` is scaled
down so that this bound stays at most :math:`R^2`. So nobody exceeds the radius, whatever they do
and whenever; the proof is in ``docs/proofs/series.md``.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from quorate.core.bounds.grid import Bound
from quorate.core.guarantees import Relation

__all__ = ["Bounded", "Entries", "HorizonBall", "Lookup", "bounded_period"]

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]
Words = NDArray[np.uint64]

_LARGEST = 2.0**200
# What floats may be off by, far beyond what a few thousand roundings can; integers decide in the
# end, and a person who would exceed the radius by rounding adds nothing.
_SHRUNK = 1.0 - 2.0**-30
# Who is scaled by less than this is cut; who fits exactly loses nothing but rounding.
_WHOLE = 1.0 - 2.0**-20
# Floats add up integers exactly below 2^53. Squares of a person are below 2^60 together and at most
# 2^22 (cells), so halves of 31 bits are; what people add to a cell is below 2^31, so halves of 15
# bits are, for 2^37 people.
_SQUARES, _SUMS = 31, 15
# In the store: this person was cut before, and was counted then. Squares stay below it.
_COUNTED = 1 << 61


@dataclass(frozen=True, eq=False)
class HorizonBall(Bound):
    """The ball of vectors over all cells of all periods, of which a period has a part.

    With a ``flag`` the last cell counts people who are clipped, each once in the horizon, with this
    weight in steps. The squared length ``kept`` is reserved for it. It is a coordinate of its own,
    and squares of coordinates add up.

    Two vectors of length R are at most 2R apart; if no coordinate is negative, at most the root of
    two times R. This holds whichever periods they lie in.

    >>> ball = HorizonBall(8, 3, 52, signed=False)
    >>> [ball.change_in_steps(1.0, relation)[1] for relation in Relation]
    [128, 64]
    """

    radius: int
    dimension: int
    horizon: int
    signed: bool
    flag: int = 0
    kept: int = 0

    def __post_init__(self) -> None:
        centre = np.zeros(self.dimension)
        centre.flags.writeable = False
        object.__setattr__(self, "centre", centre)

    def offsets_in_steps(self, values: Floats, step: float, *, out: Floats) -> None:
        """Raise an error, as the limit depends on earlier use; see :func:`bounded_period`."""
        raise NotImplementedError

    def change_in_steps(self, step: float, relation: Relation) -> tuple[int, int]:
        """Return the largest L1 norm and squared L2 norm of a change over all periods, in steps."""
        times = 1 if relation is Relation.ADD_REMOVE else 4 if self.signed else 2
        squared = int(times * (Fraction(self.radius) / Fraction(step)) ** 2)
        return math.isqrt(self.dimension * self.horizon * squared), squared

    def change(self, relation: Relation) -> tuple[float, float]:
        """Return the largest L1 and L2 norm of a change over all periods, rounded up."""
        plain, squared = self.change_in_steps(1.0, relation)
        return float(plain + 1), math.sqrt(squared) * (1 + 2.0**-48)

    @property
    def largest_offset(self) -> float:
        """Largest absolute value of a coordinate."""
        return float(self.radius)


@dataclass(frozen=True)
class Lookup:
    """A number for each person, by sorted hashes of ids; zero for unknown people.

    >>> Lookup(np.array([3, 7], np.uint64), np.array([5, 6])).of(np.array([7, 8], np.uint64))
    array([6, 0])
    """

    people: Words
    values: Integers

    @classmethod
    def empty(cls) -> Lookup:
        """Return an empty table."""
        return cls(np.empty(0, np.uint64), np.empty(0, np.int64))

    def of(self, people: Words) -> Integers:
        """Return the numbers of some people; zero for unknown people."""
        if not len(self.people):
            return np.zeros(len(people), dtype=np.int64)
        places = np.minimum(np.searchsorted(self.people, people), len(self.people) - 1)
        return np.where(self.people[places] == people, self.values[places], 0)

    def plus(self, people: Words, added: Integers) -> Lookup:
        """Return the sum with the numbers of other people, whose hashes are also sorted.

        >>> Lookup.empty().plus(np.array([3], np.uint64), np.array([5])).values
        array([5])
        """
        places = np.searchsorted(self.people, people)
        known = np.zeros(len(people), dtype=np.bool_)
        inside = places < len(self.people)
        known[inside] = self.people[places[inside]] == people[inside]
        values = self.values.copy()
        values[places[known]] += added[known]
        new = ~known
        return Lookup(
            np.insert(self.people, places[new], people[new]),
            np.insert(values, places[new], added[new]),
        )


@dataclass(frozen=True)
class Entries:
    """People's contributions in one period before clipping: one entry per person and cell.

    Attributes
    ----------
    people : array of uint64
        Hashes of ids.
    owners : array of integers
        The index in ``people`` of each entry's person; the entries of a person are in one fixed
        order. Entries of one person and cell are added up.
    cells : array of integers
    values : array of floats
        In steps; NaN is replaced by 0.
    """

    people: Words
    owners: Integers
    cells: Integers
    values: Floats


@dataclass(frozen=True)
class Bounded:
    """One period after clipping: the sums, and each person's used square and length.

    ``lengths`` are those of the clipped integers, rounded up.
    """

    totals: Integers
    spent: Lookup
    lengths: Lookup


def bounded_period(
    entries: Entries,
    spent: Lookup,
    before: tuple[Lookup, ...],
    *,
    gram: Integers,
    ball: HorizonBall,
) -> Bounded:
    """Scale each person's contribution to the length that the person has left, and add up.

    Parameters
    ----------
    entries : Entries
    spent : Lookup
        The squared lengths that people have used in earlier periods.
    before : tuple of Lookup
        The lengths of earlier periods, for periods whose entry of ``gram`` is not zero.
    gram : array of integers
        The row of C transposed times C for this period: first earlier periods as in ``before``,
        then this one.
    ball : HorizonBall

    Examples
    --------
    Ann has used the square 16 of 25, so a length of 3 out of 5 is left:

    >>> ann = np.array([7], np.uint64)
    >>> entries = Entries(ann, np.array([0]), np.array([1]), np.array([100.0]))
    >>> ball = HorizonBall(5, 2, 52, signed=False)
    >>> found = bounded_period(
    ...     entries, Lookup(ann, np.array([16])), (), gram=np.array([1]), ball=ball
    ... )
    >>> found.totals, found.spent.values
    (array([0, 2]), array([20]))
    """
    people, owners, cells, values = _together(entries, ball)
    known, own = spent.of(people), int(gram[-1])
    used = known & (_COUNTED - 1)
    left = ball.radius**2 - ball.kept - used
    cross = np.zeros(len(people), dtype=np.int64)
    for weight, earlier in zip(gram[:-1].tolist(), before, strict=True):
        cross += weight * earlier.of(people)
    steps, cut = _scaled(values, owners, _most(left, cross, own))
    squares = _exact_sums(owners, steps * steps, len(people), half=_SQUARES)
    lengths = _root_up(squares)
    cost = own * squares + 2 * cross * lengths
    fits = cost <= left
    steps = np.where(fits[owners], steps, 0)
    cost, lengths = np.where(fits, cost, 0), np.where(fits, lengths, 0)
    totals = _exact_sums(cells, steps, ball.dimension, half=_SUMS)
    if ball.flag:
        first = (cut | ~fits) & (known < _COUNTED)
        totals[-1] += ball.flag * np.count_nonzero(first)
        cost = np.where(first, cost + _COUNTED, cost)
    return Bounded(totals, spent.plus(people, cost), Lookup(people, lengths))


def _together(entries: Entries, ball: HorizonBall) -> tuple[Words, Integers, Integers, Floats]:
    """Merge entries of the same person and cell; ids with the same hash are one person."""
    from scipy import sparse

    people, places = np.unique(entries.people, return_inverse=True)
    values = np.clip(entries.values, -_LARGEST if ball.signed else 0.0, _LARGEST)
    values[np.isnan(values)] = 0.0
    shape = len(people), ball.dimension
    table = sparse.coo_array((values, (places[entries.owners], entries.cells)), shape).tocsr()
    owners = np.repeat(np.arange(len(people)), np.diff(table.indptr))
    return people, owners, table.indices.astype(np.int64), table.data


def _most(left: Integers, cross: Integers, own: int) -> Floats:
    """Return the allowed length: the largest n with own n^2 + 2 (n + 1) cross <= left.

    >>> _most(np.array([9, 0]), np.array([0, 0]), 1).round(6)
    array([3., 0.])
    """
    room = np.maximum(left - 2 * cross, 0).astype(np.float64)
    half = cross.astype(np.float64)
    # As room / (half + root), which does not cancel.
    root = half + np.sqrt(half * half + own * room)
    return np.asarray(np.where(room > 0, room / np.maximum(root, 1.0), 0.0)) * _SHRUNK


def _scaled(values: Floats, owners: Integers, most: Floats) -> tuple[Integers, NDArray[np.bool_]]:
    """Scale each person's entries to the allowed length and round them towards zero.

    The second array says who loses more by it than rounding.
    """
    lengths = np.sqrt(np.bincount(owners, weights=values * values, minlength=len(most)))
    factors = np.minimum(1.0, most / np.maximum(lengths, 1.0))
    return np.trunc(values * factors[owners]).astype(np.int64), factors < _WHOLE


def _exact_sums(places: Integers, values: Integers, size: int, *, half: int) -> Integers:
    """Add up integers by index; floats add up their high and low halves exactly.

    >>> _exact_sums(np.array([0, 1, 0]), np.array([2**61, 5, -3]), 2, half=31).tolist()
    [2305843009213693949, 5]
    """
    high, low = values >> half, values & ((1 << half) - 1)
    upper = np.bincount(places, weights=high, minlength=size).astype(np.int64)
    lower = np.bincount(places, weights=low, minlength=size).astype(np.int64)
    return (upper << half) + lower


def _root_up(squares: Integers) -> Integers:
    """Return the smallest integers whose squares are at least these.

    >>> _root_up(np.array([0, 1, 24, 25, 26, 2**60 - 1])).tolist()
    [0, 1, 5, 5, 6, 1073741824]
    """
    roots = np.ceil(np.sqrt(squares.astype(np.float64))).astype(np.int64)
    roots -= ((roots - 1) * (roots - 1) >= squares) & (roots > 0)
    roots += roots * roots < squares
    return np.asarray(roots)
