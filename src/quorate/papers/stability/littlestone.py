r"""Littlestone's optimal online learner on a finite class, with bit sets (G3).

A *version space* is a set of hypotheses, stored as one Python integer with a bit for each. The
dimension of a version space is the depth of the deepest full tree it shatters. At each point the
optimal learner predicts the label whose side has the larger dimension. So on every sequence of
records it errs at most as often as the dimension says. [1]_

References
----------
.. [1] Littlestone. Learning quickly when irrelevant attributes abound: a new linear-threshold
   algorithm. Machine Learning 2, 1988.
"""

from __future__ import annotations

import copy
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike, NDArray

from quorate.exceptions import ParameterError
from quorate.learners.concepts.dimensions import MAX_STEPS, TooMuchWork

__all__ = ["VersionSpaces"]

MOST_HYPOTHESES = 4096
"""Larger tables are refused: dimensions of their version spaces take too long."""


@dataclass(frozen=True, eq=False)
class VersionSpaces:
    """The sets of hypotheses of a table of predictions, with their dimensions.

    Parameters
    ----------
    table : array of 0 and 1
        Hypotheses in rows, points in columns.

    Examples
    --------
    For thresholds over seven points the learner does a binary search.

    >>> spaces = VersionSpaces(np.tri(8, 7, -1))
    >>> spaces.dimension(spaces.everything)
    3
    >>> bin(spaces.optimal(spaces.everything))
    '0b111'
    """

    table: NDArray[np.int8]
    max_steps: int = MAX_STEPS
    _bounds: dict[int, tuple[int, int]] = field(default_factory=dict, repr=False)
    _optimal: dict[int, int] = field(default_factory=dict, repr=False)
    _steps: list[int] = field(default_factory=lambda: [0], repr=False)

    def __post_init__(self) -> None:
        table = np.asarray(self.table)
        if table.ndim != 2 or 0 in table.shape or not np.isin(table, (0, 1)).all():
            raise ParameterError(
                "Expected a table of 0 and 1 with hypotheses in rows and points in columns."
            )
        if len(table) > MOST_HYPOTHESES:
            raise ParameterError(
                f"Expected at most {MOST_HYPOTHESES} hypotheses, got {len(table)}."
            )
        object.__setattr__(self, "table", table.astype(np.int8))

    @property
    def everything(self) -> int:
        """The whole class."""
        return (1 << len(self.table)) - 1

    def afresh(self) -> VersionSpaces:
        """Return the same class with an empty cache and no steps used."""
        other = copy.copy(self)
        for name, empty in (("_bounds", {}), ("_optimal", {}), ("_steps", [0])):
            object.__setattr__(other, name, empty)
        return other

    @cached_property
    def ones(self) -> tuple[int, ...]:
        """The set of hypotheses that predict 1, for each point."""
        return tuple(space_of(column) for column in self.table.T)

    @cached_property
    def _different(self) -> tuple[int, ...]:
        """Points that split the class in different ways; one of each is enough."""
        full = self.everything
        return tuple({min(one, full ^ one) for one in self.ones} - {0})

    def dimension(self, space: int) -> int:
        """Return the Littlestone dimension of a version space; -1 for the empty one."""
        if space == 0:
            return -1
        depth = self._bounds.get(space, (0, 0))[0]
        while self._fills(space, depth + 1):
            depth += 1
        return depth

    def predict(self, space: int, point: int) -> int:
        """Return the label whose side has the larger dimension; 0 if they are equal."""
        ones = space & self.ones[point]
        zeros = space ^ ones
        if ones == 0 or zeros == 0:
            return int(zeros == 0 and space != 0)
        return int(self.dimension(ones) > self.dimension(zeros))

    def optimal(self, space: int) -> int:
        """Return all predictions of the optimal learner, as an integer: bit x is point x."""
        known = self._optimal.get(space)
        if known is None:
            labels = (self.predict(space, point) << point for point in range(len(self.ones)))
            known = self._optimal[space] = sum(labels)
        return known

    def splits(self, space: int) -> tuple[int, int] | None:
        """Return both sides of the first point that lowers the dimension on either side."""
        depth = self.dimension(space)
        for point in self.ones:
            ones = space & point
            zeros = space ^ ones
            if ones and zeros and not self._fills(ones, depth) and not self._fills(zeros, depth):
                return zeros, ones
        return None

    def _fills(self, space: int, depth: int) -> bool:
        """Return whether a full tree of this depth is shattered by a version space."""
        if depth <= 0:
            return space != 0
        count = space.bit_count()
        lowest, highest = self._bounds.get(space, (0, count.bit_length() - 1))
        if depth <= lowest or depth > highest:
            return depth <= lowest
        self._steps[0] += len(self._different)
        if self._steps[0] > self.max_steps:
            raise TooMuchWork(
                "Expected a class whose version spaces have dimensions that take at most "
                f"max_steps={self.max_steps} steps; use a smaller class or domain."
            )
        least = 1 << depth - 1
        sides: dict[int, int] = {}
        for point in self._different:
            ones = space & point
            smaller = min(ones.bit_count(), count - ones.bit_count())
            if smaller >= least:
                sides[min(ones, space ^ ones)] = smaller
        found = any(
            self._fills(side, depth - 1) and self._fills(space ^ side, depth - 1)
            for side in sorted(sides, key=sides.__getitem__, reverse=True)
        )
        self._bounds[space] = (depth, highest) if found else (lowest, depth - 1)
        return found


def space_of(members: ArrayLike) -> int:
    """Return the set of the hypotheses that are marked, as an integer.

    >>> space_of([1, 0, 1])
    5
    """
    marked = np.packbits(np.asarray(members) == 1, bitorder="little")
    return int.from_bytes(marked.tobytes(), "little")
