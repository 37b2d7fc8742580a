"""Shares that add up to at most 1 for each user, and single votes.

Both are bounds like those of :mod:`quorate.core.bounds.grid`: they clip every contribution and know
how far one user can move a sum. No value raises or warns: a row of shares with NaN or infinity
counts as no shares, and a row that is not a vote counts as no vote. That no integer vector leaves
the simplex is proved in ``docs/proofs/grid.md``.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from quorate import _validate
from quorate._validate import LONGEST_VECTOR, readonly
from quorate.core.bounds.grid import Bound
from quorate.core.guarantees import Relation
from quorate.exceptions import ParameterError

__all__ = ["Shares", "Simplex", "Vote"]

# More than the rounding error of one root.
_UP = 1 + 2.0**-48


class Shares(Bound):
    """A bound whose leading coordinates are shares: if one of them rises, others fall."""

    @abstractmethod
    def balance_in_steps(self, step: float, relation: Relation) -> tuple[int, int]:
        """Return the number of these coordinates, and the largest change of an integer sum.

        Of these coordinates the sum of rises or the sum of falls counts, whichever is larger,
        twice; the others are added as in L1.
        """


@dataclass(frozen=True, eq=False)
class Simplex(Shares):
    """Shares of a whole: numbers >= 0, one for each of ``categories``, that add up to at most 1.

    They are a user's amounts in each category, divided by the user's total. Two users differ by at
    most 2 in the L1 norm and by the root of 2 in the L2 norm, however many categories there are.
    For a box with the same sides it would be d and the root of d. Shares that add up to more than 1
    are divided by their sum; negative shares count as 0.

    Parameters
    ----------
    categories : int

    Examples
    --------
    >>> Simplex(3).clip([[1.0, 1.0, 2.0], [0.5, 0.0, -7.0], [np.nan, 1.0, 0.0]]).round(6)
    array([[0.25, 0.25, 0.5 ],
           [0.5 , 0.  , 0.  ],
           [0.  , 0.  , 0.  ]])
    >>> Simplex(100_000).l1_diameter, round(Simplex(100_000).l2_diameter, 6)
    (2.0, 1.414214)
    """

    categories: int

    def __post_init__(self) -> None:
        _validate.positive_integer(categories=self.categories)
        if self.categories > LONGEST_VECTOR:
            raise ParameterError(
                f"Expected categories <= 2^30, got categories={self.categories!r}."
            )
        object.__setattr__(self, "dimension", int(self.categories))
        object.__setattr__(self, "centre", readonly(np.zeros(self.categories)))

    def offsets_in_steps(
        self, values: NDArray[np.float64], step: float, *, out: NDArray[np.float64]
    ) -> None:
        """Divide each row by its sum if that exceeds 1; NaN or infinity makes a row 0."""
        largest = (1.0 - (self.dimension + 8) * 2.0**-52) / step
        ones = np.ones(self.dimension)
        with np.errstate(all="ignore"):
            np.maximum(values, 0.0, out=out)
            sums = np.vecdot(out, ones)
            out *= (largest / np.maximum(sums, 1.0))[:, None]
            lost = np.flatnonzero(~np.isfinite(values).all(axis=1) | np.isinf(sums))
            if lost.size:
                far = np.maximum(values[lost], 0.0) * 2.0**-60
                far *= (largest / np.vecdot(far, ones))[:, None]
                far[~np.isfinite(values[lost]).all(axis=1)] = 0.0
                out[lost] = far

    def change_in_steps(self, step: float, relation: Relation) -> tuple[int, int]:
        """Count a whole that is added or removed, or that moves from one category to another."""
        wholes, length = self._wholes(relation), int(Fraction(1) / Fraction(step))
        return wholes * length, wholes * length * length

    def balance_in_steps(self, step: float, relation: Relation) -> tuple[int, int]:
        """Count a whole that rises in one category and falls in another: all shares balance."""
        return self.dimension, 2 * int(Fraction(1) / Fraction(step))

    def change(self, relation: Relation) -> tuple[float, float]:
        """Return the number of changed wholes, and its root."""
        wholes = self._wholes(relation)
        return float(wholes), math.sqrt(wholes) * _UP if wholes > 1 else 1.0

    @property
    def largest_offset(self) -> float:
        """Largest absolute value of a coordinate of an offset."""
        return 1.0

    def _wholes(self, relation: Relation) -> int:
        return 2 if relation is Relation.REPLACE and self.categories > 1 else 1


@dataclass(frozen=True, eq=False)
class Vote(Bound):
    """One 1 among zeros, or all zeros: a user votes for at most one of ``options``.

    Any other row counts as no vote.

    Examples
    --------
    >>> Vote(3).clip([[0, 1, 0], [1, 1, 0], [0, 0.5, 0]])
    array([[0., 1., 0.],
           [0., 0., 0.],
           [0., 0., 0.]])
    >>> Vote(3).change_in_steps(1.0, Relation.REPLACE)
    (2, 2)
    """

    options: int

    def __post_init__(self) -> None:
        _validate.positive_integer(options=self.options)
        object.__setattr__(self, "dimension", int(self.options))
        object.__setattr__(self, "centre", readonly(np.zeros(self.options)))

    def offsets_in_steps(
        self, values: NDArray[np.float64], step: float, *, out: NDArray[np.float64]
    ) -> None:
        """Keep the rows that are votes; every other row becomes 0."""
        with np.errstate(all="ignore"):
            binary = ((values == 0.0) | (values == 1.0)).all(axis=1)
            np.multiply(values, 1.0 / step, out=out)
            out[~(binary & (values.sum(axis=1) <= 1.0))] = 0.0

    def change_in_steps(self, step: float, relation: Relation) -> tuple[int, int]:
        """One vote appears or disappears, or both."""
        votes, length = self._votes(relation), int(1.0 / step)
        return votes * length, votes * length * length

    def change(self, relation: Relation) -> tuple[float, float]:
        """Return the number of votes that change, and its root."""
        return float(self._votes(relation)), math.sqrt(self._votes(relation)) * _UP

    @property
    def largest_offset(self) -> float:
        """Largest absolute value of a coordinate of an offset."""
        return 1.0

    def _votes(self, relation: Relation) -> int:
        return 2 if relation is Relation.REPLACE and self.options > 1 else 1
