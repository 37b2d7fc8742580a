"""Several sets of shares at once: one point of a simplex for each column, or for each level."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from quorate import _validate
from quorate.distributions.shares import Coder, held, one_each
from quorate.exceptions import ParameterError
from quorate.grid import Bound
from quorate.guarantees import Relation
from quorate.simplex import Simplex
from quorate.users.data import UserData

__all__ = ["ManyTotals", "ShareRows", "Simplices"]


@dataclass(frozen=True, eq=False)
class Simplices(Bound):
    """A point of each of several simplices, next to each other.

    Parameters
    ----------
    sizes : tuple of int
        Categories of each simplex.

    Examples
    --------
    >>> bound = Simplices((2, 3))
    >>> bound.clip([[3.0, 1.0, 0.0, 0.5, 0.0]]).round(6)
    array([[0.75, 0.25, 0.  , 0.5 , 0.  ]])
    >>> bound.l1_diameter, bound.change_in_steps(0.5, Relation.REPLACE)
    (4.0, (8, 16))
    """

    sizes: tuple[int, ...]

    def __post_init__(self) -> None:
        if not (isinstance(self.sizes, tuple) and self.sizes):
            raise ParameterError("Expected sizes to be a tuple of integers, at least one.")
        for size in self.sizes:
            _validate.positive_integer(size=size)
        centre = np.zeros(sum(self.sizes))
        centre.flags.writeable = False
        object.__setattr__(self, "dimension", centre.size)
        object.__setattr__(self, "centre", centre)

    @property
    def parts(self) -> list[slice]:
        """Where each simplex lies."""
        ends = np.cumsum([0, *self.sizes]).tolist()
        return [slice(a, b) for a, b in pairwise(ends)]

    def offsets_in_steps(
        self, values: NDArray[np.float64], step: float, *, out: NDArray[np.float64]
    ) -> None:
        """Clip each part of a row to its simplex."""
        for size, part in zip(self.sizes, self.parts, strict=True):
            Simplex(size).offsets_in_steps(values[:, part], step, out=out[:, part])

    def change_in_steps(self, step: float, relation: Relation) -> tuple[int, int]:
        """Add up the changes of the simplices."""
        length = int(Fraction(1) / Fraction(step))
        wholes = self._wholes(relation)
        return wholes * length, wholes * length * length

    def change(self, relation: Relation) -> tuple[float, float]:
        """Return the number of wholes that change, and its root, rounded up."""
        wholes = self._wholes(relation)
        return float(wholes), math.sqrt(wholes) * (1.0 + 2.0**-48)

    @property
    def largest_offset(self) -> float:
        """Largest absolute value of a coordinate of an offset."""
        return 1.0

    def _wholes(self, relation: Relation) -> int:
        return sum(2 if relation is Relation.REPLACE and size > 1 else 1 for size in self.sizes)

    def _key(self) -> tuple[object, ...]:
        return type(self), self.sizes


@dataclass(frozen=True)
class ManyTotals:
    """The sum over users of several sets of shares, in steps, next to each other.

    Privacy: each set is rounded as in :class:`~quorate.distributions.shares.ShareTotals`, so a
    user is a point of :class:`Simplices` in whole steps. A set has one category more than its coder
    if what is missing to a whole is counted with it.

    Parameters
    ----------
    coders : sequence of Coder
    categories : sequence of int
        Categories of each coder.
    steps : int
    cap : int, default=1
    absent : tuple of bool
        Whether what is missing to a whole follows each set.

    Examples
    --------
    >>> from quorate.distributions.shares import IntervalCodes
    >>> people = UserData.from_arrays([[1.0], [3.0], [2.0]], users=[4, 9, 4])
    >>> coders = (IntervalCodes((0.0, 2.0, 4.0)), IntervalCodes((0.0, 1.0, 2.0, 3.0, 4.0)))
    >>> ManyTotals(coders, (2, 4), steps=10, absent=(True, False))(people).tolist()
    [5, 15, 0, 0, 5, 5, 10]
    """

    coders: Sequence[Coder]
    categories: Sequence[int]
    steps: int
    cap: int = 1
    absent: Sequence[bool] = ()

    def __call__(self, part: UserData) -> NDArray[np.int64]:
        """Return the totals of a part."""
        found = []
        for coder, categories, absent in zip(
            self.coders, self.categories, self.absent, strict=True
        ):
            users, places, counts, records = held(part, coder, categories)
            wholes = np.maximum(records, self.cap)
            totals = np.zeros(categories + 1, dtype=np.int64)
            np.add.at(totals, places, counts * self.steps // wholes[users])
            totals[-1] = ((wholes - records) * self.steps // wholes).sum()
            found.append(totals if absent else totals[:-1])
        return np.concatenate(found)


@dataclass(frozen=True)
class ShareRows:
    """From users to one row each: the shares of every set of categories, next to each other.

    A user without a record in some set has no row. A share is one division of two integers.

    >>> from quorate.distributions.shares import CategoryCodes
    >>> people = UserData.from_arrays([[1.0, 0.0], [0.0, 2.0], [1.0, 1.0]], users=[4, 9, 4])
    >>> coders = (CategoryCodes(2, column=0), CategoryCodes(3, column=1))
    >>> ShareRows(coders, (2, 3))(people).X
    array([[0. , 1. , 0.5, 0.5, 0. ],
           [1. , 0. , 0. , 0. , 1. ]])
    """

    coders: Sequence[Coder]
    categories: Sequence[int]

    def __call__(self, part: UserData) -> UserData:
        """Return the users with one record each, or none."""
        rows = np.zeros((part.n_users, sum(self.categories)))
        there = np.ones(part.n_users, dtype=np.bool_)
        start = 0
        for coder, categories in zip(self.coders, self.categories, strict=True):
            users, places, counts, records = held(part, coder, categories)
            rows[users, start + places] = counts / records[users]
            there &= records > 0
            start += categories
        return one_each(part, rows[there], there)
