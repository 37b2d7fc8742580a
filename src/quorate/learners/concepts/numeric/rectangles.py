"""Axis-parallel rectangles over a public grid of two features.

The mistakes of all rectangles of one user need two passes of prefix sums over the grid, one per
feature.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike, NDArray

from quorate.exceptions import ParameterError
from quorate.learners.concepts.base import (
    Concept,
    ConceptClass,
    Constant,
    LabelledRecords,
    as_features,
    check_enumerable,
    feature_names,
)
from quorate.learners.concepts.dimensions import Dimension, littlestone_or_bound
from quorate.learners.concepts.numeric.intervals import Range, ranges_of_cells, sums_over_ranges
from quorate.learners.concepts.numeric.thresholds import OrderedDomain

__all__ = ["Rectangle", "Rectangles"]

# machine: the Littlestone dimension is computed up to this many points of the grid.
_SMALL_GRID = 36


@dataclass(frozen=True)
class Rectangle(Concept):
    """Predict 1 if both features lie in their ranges.

    >>> print(Rectangle((Range(3, 7), Range(None, 2)), names=("age", "dose")))
    Predict 1 if 3 <= age < 7 and dose < 2, else 0.
    """

    sides: tuple[Range, Range]
    names: tuple[str, ...]

    def predict(self, X: ArrayLike) -> NDArray[np.int64]:
        """Predict 0 or 1 for every row of ``X``, which has two columns."""
        values = as_features(X, n_features=2)
        inside = self.sides[0].contains(values[:, 0]) & self.sides[1].contains(values[:, 1])
        return inside.astype(np.int64)

    def __str__(self) -> str:
        conditions = [
            side.sentence(name)
            for side, name in zip(self.sides, self.names, strict=True)
            if not side.is_everything
        ]
        return f"Predict 1 if {' and '.join(conditions)}, else 0."


@dataclass(frozen=True)
class Rectangles(ConceptClass):
    """All rectangles over a grid of k by l points; hypothesis 0 is "always 0".

    VC dimension 4 on grids of at least 3 by 3 points: the midpoints of the sides of a square are
    shattered, and of five points one lies in the bounding box of the others. With two points on one
    side and at least three on the other it is 3, on 2 by 2 points it is 2; a single row is an
    interval. The Littlestone dimension is computed for up to 36 points of the grid and otherwise
    bounded by log2 of the size.

    Complexity
    ----------
    O(N + n k**2 l**2) time; at most two million rectangles (52 by 52 points).

    Parameters
    ----------
    points : pair of int
        Numbers of points k and l. Values are rounded down to the grid and clipped into it.
    lower : pair of float, default=(0, 0)
        The first points.
    step : pair of float, default=(1, 1)
        Distances between points.
    names : pair of str, optional
        Names of the features in printed rules.

    Examples
    --------
    >>> boxes = Rectangles((5, 4), names=("row", "column"))
    >>> boxes.size, boxes.vc_dimension
    (151, 4)
    >>> print(boxes.concept(65))
    Predict 1 if 1 <= row < 3 and 1 <= column < 2, else 0.
    """

    points: tuple[int, int]
    lower: tuple[float, float] = field(default=(0, 0), kw_only=True)
    step: tuple[float, float] = field(default=(1, 1), kw_only=True)
    names: Sequence[str] | None = field(default=None, kw_only=True)

    def __post_init__(self) -> None:
        for name in ("points", "lower", "step"):
            pair = tuple(getattr(self, name))
            if len(pair) != 2:
                raise ParameterError(f"Expected two numbers in {name}, got {name}={pair!r}.")
            object.__setattr__(self, name, pair)
        object.__setattr__(self, "names", feature_names(self.names, n_features=2))
        rows, columns = (domain.points for domain in self.domains)
        check_enumerable(
            self.size,
            name=f"Rectangles(({rows}, {columns}))",
            instead="Use coarser steps: 52 by 52 points.",
        )

    @cached_property
    def domains(self) -> tuple[OrderedDomain, OrderedDomain]:
        """The points of the two features."""
        first, second = (
            OrderedDomain(lower=lower, points=points, step=step)
            for lower, points, step in zip(self.lower, self.points, self.step, strict=True)
        )
        return first, second

    @property
    def size(self) -> int:
        """The number of hypotheses: k (k + 1) l (l + 1) / 4 + 1."""
        rows, columns = self.points
        return (rows * (rows + 1) // 2) * (columns * (columns + 1) // 2) + 1

    @property
    def n_features(self) -> int:
        """Two columns."""
        return 2

    @property
    def _vc(self) -> Dimension:
        narrow, wide = sorted(self.points)
        if narrow == 1:
            return Dimension(value=min(2, wide), exact=True)
        if narrow == 2:
            return Dimension(value=2 if wide == 2 else 3, exact=True)
        return Dimension(value=4, exact=True)

    @cached_property
    def _littlestone(self) -> Dimension:
        if self.points[0] * self.points[1] > _SMALL_GRID:
            return littlestone_or_bound(None, size=self.size)
        corners = [
            np.array([domain.value(j) for j in range(domain.points)]) for domain in self.domains
        ]
        grid = np.stack(np.meshgrid(*corners, indexing="ij"), axis=-1).reshape(-1, 2)
        return littlestone_or_bound(self.predictions(grid).T, size=self.size)

    def concept(self, index: int) -> Rectangle | Constant:
        """Return hypothesis ``index``: "always 0", then by range of rows, by range of columns."""
        place = self._check_index(index)
        if place == 0:
            return Constant(0)
        columns = self.points[1] * (self.points[1] + 1) // 2
        sides = []
        for domain, which in zip(self.domains, divmod(place - 1, columns), strict=True):
            first, last = ranges_of_cells(domain.points)
            sides.append(Range.of_cells(domain, int(first[which]), int(last[which])))
        if all(side.is_everything for side in sides):
            return Constant(1)
        names = feature_names(self.names, n_features=2)
        return Rectangle((sides[0], sides[1]), names=names)

    def _count_mistakes(self, records: LabelledRecords) -> NDArray[np.int64]:
        rows, columns = self.points
        row, column = (d.cell(records.X[:, j]) for j, d in enumerate(self.domains))
        votes = records.count_by_cell(row * columns + column, n_cells=rows * columns)
        votes = votes.reshape(records.n_users, rows, columns)
        inside = sums_over_ranges(sums_over_ranges(votes, axis=1), axis=2)
        positives = records.positives()[:, np.newaxis]
        # Wrong: label 1 outside, label 0 inside.
        outside = positives - inside.reshape(records.n_users, self.size - 1)
        return np.concatenate([positives, outside], axis=1)
