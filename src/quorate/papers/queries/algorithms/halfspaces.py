"""Halfspaces of the Boolean cube from d + 1 queries: the Chow parameters."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from quorate import _validate
from quorate.learners.concepts.base import Concept, feature_names
from quorate.learners.concepts.numeric.halfspaces import Halfspace
from quorate.papers.queries.statistical import NonAdaptive, StatisticalQuery

__all__ = ["HalfspaceQueries"]


@dataclass(frozen=True)
class SignProduct:
    """+1 if one feature (or, without a feature, the constant true) equals the label, else -1."""

    feature: int | None

    def __call__(self, X: NDArray[np.float64], y: NDArray[np.float64]) -> NDArray[np.float64]:
        truth = True if self.feature is None else X[:, self.feature] > 0.5
        return np.where(truth == (y == 1), 1.0, -1.0)


@dataclass(frozen=True)
class HalfspaceQueries(NonAdaptive):
    r"""Learn a halfspace of features that are independent fair coins.

    The queries are the *Chow parameters*: the means of :math:`\bar y` and :math:`\bar y \bar x_j`
    for signs :math:`\bar y, \bar x_j = \pm 1`. They identify a halfspace among all functions (Chow,
    1961); the returned rule is the halfspace whose weights are the parameters, rounded to a public
    grid. It is exact if all relevant features have the same weight (majorities, conjunctions of
    two), and otherwise an approximation.

    Parameters
    ----------
    features : int
        Number of Boolean features d.
    tolerance : float, default=0.05
    resolution : float, default=0.125
        Parameters are rounded to multiples of this number.

    References
    ----------
    .. [1] Chow. On the characterization of threshold functions. SWCT 1961.

    Examples
    --------
    >>> from quorate.papers.queries.oracles import ExactOracle
    >>> from quorate.papers.queries.populations import Population
    >>> majority = Halfspace(weights=(1.0, 1.0, 1.0), offset=0.0, names=("x0", "x1", "x2"))
    >>> population = Population.uniform_cube(3, majority)
    >>> population.error(HalfspaceQueries(3).run(ExactOracle(population)))
    0.0
    """

    features: int
    tolerance: float = 0.05
    resolution: float = 0.125

    def __post_init__(self) -> None:
        _validate.positive_integer(features=self.features)
        _validate.probability(tolerance=self.tolerance, resolution=self.resolution)

    @property
    def n_features(self) -> int:
        """The number of Boolean features d."""
        return self.features

    def queries(self) -> tuple[StatisticalQuery, ...]:
        """Query the mean sign of the label, and of its product with each feature."""
        return tuple(
            StatisticalQuery(
                function=SignProduct(feature),
                tolerance=self.tolerance,
                low=-1.0,
                high=1.0,
                boolean=True,
                name="label" if feature is None else f"label times x{feature}",
            )
            for feature in (None, *range(self.features))
        )

    def conclude(self, answers: NDArray[np.float64]) -> Concept:
        """Return the halfspace with the rounded parameters as its weights."""
        rounded = np.round(np.asarray(answers) / self.resolution) * self.resolution
        names = feature_names(None, n_features=self.features)
        weights = tuple(float(weight) + 0.0 for weight in rounded[1:])
        return Halfspace(weights=weights, offset=float(rounded[0]) + 0.0, names=names)
