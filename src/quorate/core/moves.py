"""The exact sensitivity of a vector of integers under one relation: its *moves* by one user.

"One user moves a coordinate by at most b" means that its sensitivity is b. A sealed number carries
its moves from the query to the release, so no code in between states a sensitivity. The lengths are
integers or fractions and are never too small.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from quorate.core.bounds.grid import Grid, Joint, Law
from quorate.core.guarantees import Relation
from quorate.exceptions import ParameterError

__all__ = ["GridMoves", "Length", "Limit", "Moves"]

Length = int | Fraction
Limit = int | NDArray[np.int64]


@dataclass(frozen=True)
class Moves:
    """The largest change of a vector of integers by one user.

    Parameters
    ----------
    l1 : int or Fraction
        Sum of the absolute changes of all coordinates.
    l2_squared : int or Fraction
        Sum of the squared changes.
    largest : int or Fraction
        Largest change of one coordinate.
    spread : int or Fraction
        Largest change of the difference of two coordinates, on which a choice by scores depends. At
        most twice ``largest``, and equal to it if all coordinates move in one direction.
    rising : bool, default=False
        Whether adding a user never lowers a coordinate, under add or remove. Then no difference of
        two coordinates, or of numbers computed from them, moves further than one coordinate.

    Examples
    --------
    >>> counts = Moves.of_counts(3)
    >>> counts.l1, counts.l2_squared, counts.largest, counts.spread
    (3, 3, 1, 1)
    >>> counts.times(-2).l2_squared
    12
    """

    l1: Length
    l2_squared: Length
    largest: Length
    spread: Length
    rising: bool = False

    def __post_init__(self) -> None:
        for length in (self.l1, self.l2_squared, self.largest, self.spread):
            if not (isinstance(length, int | Fraction) and length >= 0):
                raise ParameterError(f"Expected exact lengths >= 0, got {length!r}.")

    @classmethod
    def of_counts(cls, coordinates: int, *, rising: bool = False) -> Moves:
        """Return the moves of counts of users up to increasing thresholds.

        One user has one value, so all counts that change do so by 1 and in one direction.
        """
        return cls(coordinates, coordinates, 1, 1, rising)

    @classmethod
    def of_tally(cls, relation: Relation, *, labellings: int = 1) -> Moves:
        """Return the moves of a tally of one label per user, or of several such tallies.

        A user who is replaced leaves one cell and enters another, in each tally.

        >>> Moves.of_tally(Relation.REPLACE).l1
        2
        """
        cells = 2 if relation is Relation.REPLACE else 1
        size, rising = cells * labellings, relation is Relation.ADD_REMOVE
        return cls(size, size, 1, cells, rising)

    @classmethod
    def of_scores(cls, bound: Length, *, coordinates: int, one_sided: bool) -> Moves:
        """Return the moves of scores, if one user changes each score by at most ``bound``.

        ``one_sided`` states that all scores change in the same direction. Under add or remove this
        is the case if no user lowers a score.
        """
        spread = bound if one_sided else 2 * bound
        return cls(coordinates * bound, coordinates * bound**2, bound, spread)

    @classmethod
    def of_judgements(
        cls, low: Limit, high: Limit, *, coordinates: int, relation: Relation
    ) -> Moves:
        """Return the moves of sums to which each user adds a number from ``low`` to ``high``.

        A replaced user adds another such number to each sum; an added user adds one. The limits are
        those of all sums, or one for each of them.

        >>> Moves.of_judgements(-1, 2, coordinates=9, relation=Relation.REPLACE).largest
        3
        >>> Moves.of_judgements(0, 2, coordinates=9, relation=Relation.ADD_REMOVE).spread
        2
        """
        if relation is Relation.REPLACE:
            width = int(np.max(np.subtract(high, low)))
            return cls.of_scores(width, coordinates=coordinates, one_sided=False)
        low, high = int(np.min(low)), int(np.max(high))
        reach = max(abs(low), abs(high))
        return cls(coordinates * reach, coordinates * reach**2, reach, high - low, low >= 0)

    @classmethod
    def of_everybody(cls, relation: Relation) -> Moves:
        """Return the moves of the number of users, which is constant under replacement."""
        step = 0 if relation is Relation.REPLACE else 1
        return cls(step, step, step, step, relation is Relation.ADD_REMOVE)

    def times(self, factor: int) -> Moves:
        """Return the moves of ``factor`` times the vector."""
        size = abs(int(factor))
        return Moves(
            self.l1 * size,
            self.l2_squared * size**2,
            self.largest * size,
            self.spread * size,
            self.rising and factor >= 0,
        )

    def plus(self, other: Moves) -> Moves:
        """Return the moves of a sum of two vectors; one user may change both.

        >>> Moves(3, 9, 3, 3).plus(Moves(4, 16, 4, 4)).l2_squared
        Fraction(49, 1)
        """
        cross = _root_up(Fraction(self.l2_squared) * Fraction(other.l2_squared))
        square = self.l2_squared + other.l2_squared + 2 * cross
        return Moves(
            self.l1 + other.l1,
            square,
            self.largest + other.largest,
            self.spread + other.spread,
            self.rising and other.rising,
        )

    def beside(self, other: Moves) -> Moves:
        """Return the moves of the two vectors put one after the other."""
        largest, rising = max(self.largest, other.largest), self.rising and other.rising
        spread = max(self.spread, other.spread, self.largest + other.largest)
        return Moves(
            self.l1 + other.l1,
            self.l2_squared + other.l2_squared,
            largest,
            min(spread, largest if rising else 2 * largest),
            rising,
        )

    def extremes(self, coordinates: int) -> Moves:
        """Return the moves of this many maxima (or minima) of several coordinates.

        Each is no more sensitive than the coordinates among which it is chosen, and rises if they
        do.

        >>> scores = Moves.of_judgements(0, 1, coordinates=9, relation=Relation.ADD_REMOVE)
        >>> scores.extremes(3).spread, scores.times(-1).extremes(3).spread
        (1, 2)
        """
        step = self.largest
        spread = step if self.rising or coordinates == 1 else 2 * step
        return Moves(coordinates * step, coordinates * step**2, step, spread, self.rising)

    def above_least(self, coordinates: int, *, rows: int = 1) -> Moves:
        """Return the moves of all coordinates minus the smallest one, or the smallest of their row.

        A coordinate minus the smallest one is its largest difference to any coordinate, which moves
        by at most ``spread``. Differences of two coordinates of a row do not change; two
        coordinates of different rows may move apart.

        >>> Moves.of_tally(Relation.REPLACE).above_least(6, rows=2).spread
        4
        """
        step = self.spread
        spread = step if rows == 1 else 2 * step
        return Moves(coordinates * step, coordinates * step**2, step, spread)

    def cut(self) -> Moves:
        """Return the moves of the vector after each coordinate was clipped to its own limits.

        >>> Moves.of_judgements(1, 2, coordinates=9, relation=Relation.ADD_REMOVE).cut().spread
        2
        """
        if self.spread >= self.largest:
            return self
        return Moves(self.l1, self.l2_squared, self.largest, self.largest, self.rising)

    def of_some(self, coordinates: int) -> Moves:
        """Return the moves of any subset of this many coordinates.

        >>> Moves.of_counts(16).of_some(1).l2_squared
        1
        """
        return Moves(
            min(self.l1, coordinates * self.largest),
            min(self.l2_squared, coordinates * self.largest**2),
            self.largest,
            self.spread,
            self.rising,
        )

    def of_one(self, length: Length) -> Moves:
        """Return the moves of a single number that one user changes by at most ``length``."""
        return Moves(length, length**2, length, length, self.rising)


class GridMoves(Moves):
    """The moves of a sum of contributions on a grid: those that its bound proves.

    They are computed when somebody asks, since every step of a descent makes a sum.

    >>> from quorate.core.bounds.grid import Interval
    >>> moves = GridMoves(Grid(Interval(-1.0, 1.0), step=0.25), Relation.REPLACE)
    >>> moves.l1, moves.largest, moves.joint("cube_laplace")
    (8, 8, ((1,), 8))
    """

    def __init__(self, grid: Grid, relation: Relation) -> None:
        object.__setattr__(self, "grid", grid)
        object.__setattr__(self, "relation", relation)

    grid: Grid
    relation: Relation

    @property
    def l1(self) -> int:
        """Largest L1 norm of a change."""
        return self.grid.l1_sensitivity(self.relation)

    @property
    def l2_squared(self) -> int:
        """Largest squared L2 norm of a change."""
        return self.grid.l2_sensitivity_squared(self.relation)

    @property
    def largest(self) -> int:
        """Largest change of one coordinate: at most each norm, and the widest side of a box."""
        sides = 2 if self.relation is Relation.REPLACE else 1
        whole = min(self.l1, math.isqrt(self.l2_squared), sides * self.grid.max_steps)
        return min(whole, self.joint("cube_laplace")[1])

    @property
    def spread(self) -> int:
        """Largest change of a difference: at most the L1 norm."""
        return min(self.l1, 2 * self.largest)

    def joint(self, law: Law) -> tuple[tuple[int, ...], int]:
        """Return the shape of the coordinates with joint noise of a law, and their sensitivity.

        One user changes the other coordinates by no more than this in the L1 norm. If the sum has
        no joint noise of this law, the shape is empty.
        """
        found = self._joint
        return ((0,), self.l1) if found is None or found[0] != law else found[1:]

    @cached_property
    def _joint(self) -> Joint | None:
        return self.grid.bound.joint_in_steps(self.grid.step, self.relation)

    def __repr__(self) -> str:
        return f"GridMoves({self.grid!r}, {self.relation!r})"


def _root_up(square: Fraction) -> Fraction:
    """Return a fraction whose square is at least ``square``."""
    product = square.numerator * square.denominator
    return Fraction(math.isqrt(product - 1) + 1 if product else 0, square.denominator)
