"""Point functions: rules that ask whether x is one certain value (G2).

Their Littlestone dimension is 1 for every domain.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike, NDArray

from quorate.learners.concepts.base import (
    Concept,
    ConceptClass,
    LabelledRecords,
    as_features,
    check_enumerable,
)
from quorate.learners.concepts.dimensions import Dimension
from quorate.learners.concepts.numeric.thresholds import OrderedDomain

__all__ = ["Point", "PointFunctions"]


@dataclass(frozen=True)
class Point(Concept):
    """Predict 1 if the value, rounded and clipped to the domain, is point number ``place``.

    >>> print(Point(place=3, domain=OrderedDomain(lower=10, points=5)))
    Predict 1 if x is 13, else 0.
    """

    place: int
    domain: OrderedDomain
    name: str = "x"

    def predict(self, X: ArrayLike) -> NDArray[np.int64]:
        """Predict 0 or 1 for every row of ``X``, which has one column."""
        cell = self.domain.cell(as_features(X, n_features=1)[:, 0])
        here: NDArray[np.bool_] = cell == self.place
        return here.astype(np.int64)

    def __str__(self) -> str:
        return f"Predict 1 if {self.name} is {self.domain.value(self.place)}, else 0."


@dataclass(frozen=True)
class PointFunctions(ConceptClass):
    """The k rules "x is j", for j in a public domain of k points.

    VC and Littlestone dimension 1 (0 for a single point): after one record with label 1 the rule is
    known.

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
    >>> shops = PointFunctions(500, name="shop")
    >>> shops.size, shops.littlestone_dimension
    (500, 1)
    >>> print(shops.concept(17))
    Predict 1 if shop is 17, else 0.
    """

    points: int
    lower: int | float = field(default=0, kw_only=True)
    step: int | float = field(default=1, kw_only=True)
    name: str = field(default="x", kw_only=True)

    def __post_init__(self) -> None:
        check_enumerable(
            self.domain.points,
            name=f"PointFunctions({self.points})",
            instead="Group the points into fewer public categories first.",
        )

    @cached_property
    def domain(self) -> OrderedDomain:
        """The points of the feature."""
        return OrderedDomain(lower=self.lower, points=self.points, step=self.step)

    @property
    def size(self) -> int:
        """The number of hypotheses: k."""
        return self.points

    @property
    def n_features(self) -> int:
        """One column."""
        return 1

    @property
    def _vc(self) -> Dimension:
        return Dimension(value=min(1, self.points - 1), exact=True)

    @property
    def _littlestone(self) -> Dimension:
        return Dimension(value=min(1, self.points - 1), exact=True)

    def concept(self, index: int) -> Point:
        """Return the rule "x is point number ``index``"."""
        return Point(place=self._check_index(index), domain=self.domain, name=self.name)

    def _count_mistakes(self, records: LabelledRecords) -> NDArray[np.int64]:
        votes = records.count_by_cell(self.domain.cell(records.X[:, 0]), n_cells=self.points)
        # Wrong: label 1 elsewhere, label 0 here.
        return records.positives()[:, np.newaxis] - votes
