"""Intervals of one ordered feature from one query per cell."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from quorate import _validate
from quorate.exceptions import ParameterError
from quorate.learners.concepts.base import Concept
from quorate.learners.concepts.numeric.intervals import Intervals, sums_over_ranges
from quorate.learners.concepts.numeric.thresholds import OrderedDomain
from quorate.papers.queries.statistical import NonAdaptive, StatisticalQuery

__all__ = ["IntervalQueries"]


@dataclass(frozen=True)
class InCell:
    """+1 for label 1 and -1 for label 0 in one cell of a domain, 0 elsewhere."""

    row_wise: ClassVar[bool] = True

    domain: OrderedDomain
    cell: int

    def __call__(self, X: NDArray[np.float64], y: NDArray[np.float64]) -> NDArray[np.float64]:
        here = self.domain.cell(X[:, 0]) == self.cell
        return np.where(here, np.where(y == 1, 1.0, np.where(y == 0, -1.0, 0.0)), 0.0)


@dataclass(frozen=True)
class IntervalQueries(NonAdaptive):
    r"""Learn the interval with the largest gain (agnostically).

    Query c is +1 for a record of label 1 in cell c, -1 for label 0 there, and 0 elsewhere. The
    error of an interval is a constant minus the sum of the means inside it, so with answers within
    :math:`\tau` the error of the interval with the largest sum is at most :math:`2k\tau` above that
    of the best one of k cells.

    Parameters
    ----------
    intervals : Intervals
        The class; its points are the cells.
    tolerance : float, default=0.01

    Examples
    --------
    >>> from quorate.learners.concepts import Intervals
    >>> from quorate.papers.queries.oracles import ExactOracle
    >>> from quorate.papers.queries.populations import Population
    >>> hours = Intervals(24, name="hour")
    >>> rule = hours.concept(50)
    >>> day = Population.uniform(np.arange(24.0)[:, np.newaxis], rule)
    >>> print(IntervalQueries(hours).run(ExactOracle(day)))
    Predict 1 if 2 <= hour < 5, else 0.
    """

    intervals: Intervals
    tolerance: float = 0.01

    def __post_init__(self) -> None:
        if not isinstance(self.intervals, Intervals):
            raise ParameterError(f"Expected Intervals, got {type(self.intervals).__name__}.")
        _validate.probability(tolerance=self.tolerance)

    @property
    def n_features(self) -> int:
        """One column."""
        return 1

    def queries(self) -> tuple[StatisticalQuery, ...]:
        """Query the gain of each cell."""
        return tuple(
            StatisticalQuery(
                function=InCell(self.intervals.domain, cell),
                tolerance=self.tolerance,
                low=-1.0,
                high=1.0,
                name=f"gain of cell {cell}",
            )
            for cell in range(self.intervals.points)
        )

    def conclude(self, answers: NDArray[np.float64]) -> Concept:
        """Return the interval with the largest sum, "always 0" if no sum is positive."""
        gains = np.asarray(answers, dtype=np.float64)
        # Whole numbers, so that sums over ranges are exact and ties are decided by the order.
        steps = np.round(gains * 2.0**40).astype(np.int64)
        sums = sums_over_ranges(steps[np.newaxis, :], axis=1)[0]
        return self.intervals.concept(int(np.argmax(np.concatenate([[0], sums]))))
