"""Intervals over an ordered public domain of k points: k (k + 1) / 2 of them, and "never".

The mistakes of all intervals of one user are differences of one array of prefix sums.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike, NDArray

from quorate.learners.concepts.base import (
    Concept,
    ConceptClass,
    Constant,
    LabelledRecords,
    as_features,
    check_enumerable,
)
from quorate.learners.concepts.dimensions import Dimension, littlestone_or_bound
from quorate.learners.concepts.numeric.thresholds import OrderedDomain, at_least

__all__ = ["IntervalConcept", "Intervals", "Range", "ranges_of_cells", "sums_over_ranges"]


@dataclass(frozen=True)
class Range:
    """The values from ``lower`` (included) to ``upper`` (excluded); None means no limit.

    >>> Range(3, 7).sentence("x"), Range(None, 7).sentence("x")
    ('3 <= x < 7', 'x < 7')
    """

    lower: int | float | None
    upper: int | float | None

    @classmethod
    def of_cells(cls, domain: OrderedDomain, first: int, last: int) -> Range:
        """Return the values that ``domain`` maps to the cells ``first`` to ``last``."""
        return cls(
            lower=domain.value(first) if first > 0 else None,
            upper=domain.value(last + 1) if last + 1 < domain.points else None,
        )

    @property
    def is_everything(self) -> bool:
        """Whether there is no limit at all."""
        return self.lower is None and self.upper is None

    def contains(self, x: NDArray[np.float64]) -> NDArray[np.bool_]:
        """Return for each value whether it lies inside."""
        inside = np.ones(x.shape, dtype=np.bool_)
        if self.lower is not None:
            inside &= at_least(x, self.lower)
        if self.upper is not None:
            inside &= ~at_least(x, self.upper)
        return inside

    def sentence(self, name: str) -> str:
        """Return the condition on the feature ``name`` in words."""
        if self.lower is None:
            return f"{name} < {self.upper}"
        return (
            f"{name} >= {self.lower}"
            if self.upper is None
            else (f"{self.lower} <= {name} < {self.upper}")
        )


def ranges_of_cells(cells: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """List all ranges of neighbouring cells by their first and last cell.

    >>> first, last = ranges_of_cells(2)
    >>> list(zip(first.tolist(), last.tolist()))
    [(0, 0), (0, 1), (1, 1)]
    """
    first, last = np.triu_indices(cells)
    return first.astype(np.int64), last.astype(np.int64)


def sums_over_ranges(values: NDArray[np.int64], *, axis: int) -> NDArray[np.int64]:
    """Add up ``values`` along ``axis`` over all ranges, in the order of ``ranges_of_cells``.

    >>> sums_over_ranges(np.array([[1, 10]]), axis=1)
    array([[ 1, 11, 10]])
    """
    first, last = ranges_of_cells(values.shape[axis])
    until = np.cumsum(values, axis=axis)
    before = until - values
    return until.take(last, axis=axis) - before.take(first, axis=axis)


@dataclass(frozen=True)
class IntervalConcept(Concept):
    """Predict 1 inside a range of one feature.

    >>> print(IntervalConcept(Range(3, 7), name="hour"))
    Predict 1 if 3 <= hour < 7, else 0.
    """

    inside: Range
    name: str = "x"

    def predict(self, X: ArrayLike) -> NDArray[np.int64]:
        """Predict 0 or 1 for every row of ``X``, which has one column."""
        return self.inside.contains(as_features(X, n_features=1)[:, 0]).astype(np.int64)

    def __str__(self) -> str:
        return f"Predict 1 if {self.inside.sentence(self.name)}, else 0."


@dataclass(frozen=True)
class Intervals(ConceptClass):
    """All intervals over ``points`` ordered points; hypothesis 0 is "always 0".

    VC dimension 2 (1 for a single point). The Littlestone dimension is computed for up to 64
    points; beyond, it is bounded by log2 of the size.

    Complexity
    ----------
    O(N + n k**2) time; at most 1999 points.

    Parameters
    ----------
    points : int
        Number of points k of the domain. Values are rounded down to it and clipped into it.
    lower : int or float, default=0
        The first point.
    step : int or float, default=1
        Distance between points.
    name : str, default="x"
        Name of the feature in printed rules.

    Examples
    --------
    >>> hours = Intervals(24, name="hour")
    >>> hours.size, hours.vc_dimension, hours.littlestone_dimension
    (301, 2, 7)
    >>> print(hours.concept(50))
    Predict 1 if 2 <= hour < 5, else 0.
    """

    points: int
    lower: int | float = field(default=0, kw_only=True)
    step: int | float = field(default=1, kw_only=True)
    name: str = field(default="x", kw_only=True)

    def __post_init__(self) -> None:
        points = self.domain.points
        check_enumerable(
            self.size, name=f"Intervals({points})", instead="Use a coarser step: 1999 points."
        )

    @cached_property
    def domain(self) -> OrderedDomain:
        """The points of the feature."""
        return OrderedDomain(lower=self.lower, points=self.points, step=self.step)

    @property
    def size(self) -> int:
        """The number of hypotheses: k (k + 1) / 2 + 1."""
        return self.points * (self.points + 1) // 2 + 1

    @property
    def n_features(self) -> int:
        """One column."""
        return 1

    @property
    def _vc(self) -> Dimension:
        return Dimension(value=min(2, self.points), exact=True)

    @cached_property
    def _littlestone(self) -> Dimension:
        small = self.points <= 64
        table = (
            self.predictions(np.arange(self.points) * self.step + self.lower).T if small else None
        )
        return littlestone_or_bound(table, size=self.size)

    def concept(self, index: int) -> IntervalConcept | Constant:
        """Return hypothesis ``index``: "always 0", then the intervals by first and last point."""
        place = self._check_index(index)
        if place == 0:
            return Constant(0)
        first, last = ranges_of_cells(self.points)
        inside = Range.of_cells(self.domain, int(first[place - 1]), int(last[place - 1]))
        return Constant(1) if inside.is_everything else IntervalConcept(inside, name=self.name)

    def _count_mistakes(self, records: LabelledRecords) -> NDArray[np.int64]:
        votes = records.count_by_cell(self.domain.cell(records.X[:, 0]), n_cells=self.points)
        positives = records.positives()[:, np.newaxis]
        # Wrong: label 1 outside, label 0 inside.
        return np.concatenate([positives, positives - sums_over_ranges(votes, axis=1)], axis=1)
