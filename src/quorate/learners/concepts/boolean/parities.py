"""Parities: rules that ask whether an odd number of some features is true (K3, K4 learn them).

The mistakes of all 2**d parities of one user are one Walsh-Hadamard transform of the user's counts
of patterns.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from quorate.learners.concepts.base import Concept, Constant, LabelledRecords, feature_names
from quorate.learners.concepts.boolean.booleans import (
    BooleanRules,
    pattern_votes,
    read_booleans,
    walsh,
)
from quorate.learners.concepts.dimensions import Dimension

__all__ = ["Parities", "Parity"]


@dataclass(frozen=True)
class Parity(Concept):
    """Predict 1 if an odd number of the chosen features is true.

    >>> print(Parity(chosen=(0, 2), names=("a", "b", "c")))
    Predict 1 if an odd number of a, c is true, else 0.
    """

    chosen: tuple[int, ...]
    names: tuple[str, ...]

    def predict(self, X: ArrayLike) -> NDArray[np.int64]:
        """Predict 0 or 1 for every row of ``X``."""
        truth = read_booleans(X, n_features=len(self.names))
        odd: NDArray[np.int64] = truth[:, list(self.chosen)].sum(axis=1, dtype=np.int64) % 2
        return odd

    def __str__(self) -> str:
        words = ", ".join(self.names[j] for j in self.chosen)
        if len(self.chosen) == 1:
            return f"Predict 1 if {words}, else 0."
        return f"Predict 1 if an odd number of {words} is true, else 0."


@dataclass(frozen=True)
class Parities(BooleanRules):
    """All parities of subsets of d Boolean features; the empty one is "always 0".

    VC and Littlestone dimension d: the unit vectors are shattered, and log2 of the size is d.

    Complexity
    ----------
    O(d 2**d) time and 8 * 2**d bytes per user; at most 20 features.

    Parameters
    ----------
    features : int
        Number of Boolean features d. A value is true if it is greater than 0.5.
    names : sequence of str, optional
        Names of the features in printed rules.

    Examples
    --------
    >>> parities = Parities(8)
    >>> parities.size, parities.littlestone_dimension
    (256, 8)
    >>> print(parities.concept(0b1001))
    Predict 1 if an odd number of x0, x3 is true, else 0.
    """

    _ways = 2
    _instead = "Use at most 20 features, or solve linear equations instead of listing rules."

    @property
    def _littlestone(self) -> Dimension:
        return Dimension(value=self.features, exact=True)

    def concept(self, index: int) -> Parity | Constant:
        """Return hypothesis ``index``; bit j says whether feature j is chosen."""
        bits = self._check_index(index)
        chosen = tuple(j for j in range(self.features) if bits >> j & 1)
        if not chosen:
            return Constant(0)
        return Parity(chosen=chosen, names=feature_names(self.names, n_features=self.features))

    def _count_mistakes(self, records: LabelledRecords) -> NDArray[np.int64]:
        # In signs, wrong minus right = sum over records of (+-1 for the label)(-1)**parity.
        wrong_minus_right = walsh(pattern_votes(records))
        mistakes: NDArray[np.int64] = (records.counts()[:, np.newaxis] + wrong_minus_right) // 2
        return mistakes
