"""Several sets of shares: one point of a simplex for each column, or for each level."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from quorate import _validate
from quorate.core.bounds.grid import Bound
from quorate.core.bounds.simplex import Simplex
from quorate.core.guarantees import Relation
from quorate.exceptions import ParameterError

__all__ = ["Simplices"]


@dataclass(frozen=True, eq=False)
class Simplices(Bound):
    """A point of each of several simplices, next to each other.

    Parameters
    ----------
    sizes : tuple of int
        The number of categories of each simplex.

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
        """The index ranges of the simplices."""
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
        """Return the number of changed wholes, and its root, rounded up."""
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
