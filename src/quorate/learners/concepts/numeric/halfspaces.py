"""Halfspaces of Boolean features: a weighted vote."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from quorate.exceptions import ParameterError
from quorate.learners.concepts.base import Concept
from quorate.learners.concepts.boolean.booleans import read_booleans

__all__ = ["Halfspace"]


@dataclass(frozen=True)
class Halfspace(Concept):
    """Predict 1 if a weighted vote of the features, + if true and - if false, is positive.

    Terms are added in the order of the features, row by row, so that a prediction does not depend
    on the other rows of a table.

    >>> rule = Halfspace(weights=(1.0, 1.0, 0.5), offset=-0.5, names=("a", "b", "c"))
    >>> print(rule)
    Predict 1 if +-1 (a) +-1 (b) +-0.5 (c) > 0.5, each + if true and - if false, else 0.
    >>> rule.predict([[1, 1, 0], [1, 0, 1]])
    array([1, 0])
    """

    weights: tuple[float, ...]
    offset: float
    names: tuple[str, ...]

    def __post_init__(self) -> None:
        if len(self.weights) != len(self.names):
            raise ParameterError("Expected one weight for each named feature.")

    def predict(self, X: ArrayLike) -> NDArray[np.int64]:
        """Predict 0 or 1 for every row of ``X``."""
        truth = read_booleans(X, n_features=len(self.names))
        votes = np.full(len(truth), self.offset)
        for column, weight in zip(truth.T, self.weights, strict=True):
            votes += np.where(column, weight, -weight)
        return (votes > 0).astype(np.int64)

    def __str__(self) -> str:
        terms = [
            f"{'+-' if weight > 0 else '-+'}{abs(weight):g} ({name})"
            for weight, name in zip(self.weights, self.names, strict=True)
            if weight
        ]
        signs = "each + if true and - if false"
        if any(weight < 0 for weight in self.weights):
            signs = "the upper sign if true and the lower if false"
        return f"Predict 1 if {' '.join(terms) or '0'} > {-self.offset:g}, {signs}, else 0."
