"""The distinct labelings of a finite domain: a class restricted to known points (K2).

If records can only be points of a finite public domain, two concepts that agree on it are
equivalent. By Sauer's lemma a class of VC dimension v has at most sum_{i <= v} C(|X|, i) <= (e |X|
/ v)**v labelings of |X| >= v points, however many concepts it has (Corollary 3.6 of paper K).
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import ArrayLike, NDArray

from quorate.exceptions import ParameterError
from quorate.learners.concepts.base import Concept, ConceptClass, as_features
from quorate.learners.concepts.tables import FiniteTable

__all__ = ["Labelings", "distinct_labelings"]


@dataclass(frozen=True, eq=False)
class Labelings(FiniteTable):
    """A table of distinct labelings, each with one concept of its class that has it.

    Attributes
    ----------
    source : ConceptClass
        The class that the labelings come from.
    representatives : tuple of int
        For each labeling the first hypothesis of ``source`` that has it.

    Examples
    --------
    >>> from quorate.learners.concepts import Intervals
    >>> Intervals(10).distinct_labelings([2.0, 7.0]).representatives
    (0, 3, 8, 32)
    """

    source: ConceptClass = field(kw_only=True)
    representatives: tuple[int, ...] = field(kw_only=True, repr=False)

    def concept(self, index: int) -> Concept:
        """Return the concept of ``source`` that has labeling ``index``; it predicts anywhere."""
        return self.source.concept(self.representatives[self._check_index(index)])


def distinct_labelings(concepts: ConceptClass, domain: ArrayLike) -> Labelings:
    """Reduce a class to its distinct labelings of ``domain`` (different finite points, public).

    Labelings are in the order of their first hypotheses.

    Complexity
    ----------
    O(|X| |H|): every hypothesis predicts once for every point. Thresholds need O(|X|**2),
    however large their domain is.

    Examples
    --------
    >>> from quorate.learners.concepts import Thresholds
    >>> labelings = distinct_labelings(Thresholds(0, 2**40), [5.0, 1e6, 1e9])
    >>> labelings.table.tolist()
    [[1, 1, 1], [0, 1, 1], [0, 0, 1], [0, 0, 0]]
    >>> print(labelings.concept(1))
    Predict 1 if x >= 6, else 0.
    """
    points = as_features(domain, n_features=concepts.n_features).astype(np.float64)
    if len(points) == 0:
        raise ParameterError("Expected at least one point in domain, got none.")
    candidates = concepts._labeling_candidates(points)
    if candidates is None:
        table = concepts.predictions(points).T
        candidates = range(concepts.size)
    else:
        table = np.stack([concepts.predict(index, points) for index in candidates])
    first = _first_of_each(table)
    return Labelings(
        table=table[first],
        domain=points,
        source=concepts,
        representatives=tuple(candidates[place] for place in first.tolist()),
    )


def _first_of_each(table: NDArray[np.integer]) -> NDArray[np.int64]:
    """Return the indices of the rows that did not occur before, in order."""
    packed = np.ascontiguousarray(np.packbits(table.astype(np.bool_), axis=1))
    rows = packed.view(np.dtype((np.void, packed.shape[1]))).ravel()
    _, first = np.unique(rows, return_index=True)
    return np.sort(first)
