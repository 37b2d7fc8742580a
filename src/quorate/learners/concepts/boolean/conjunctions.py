"""Conjunctions and disjunctions of literals over d Boolean features: 3**d rules each.

Every feature is absent, required true or required false. The records on which a conjunction is 1
form a subcube. So the mistakes of all 3**d rules are sums over subcubes of the user's counts of
patterns (:func:`quorate.learners.concepts.boolean.booleans.subcube_sums`), in O(3**d) per user
after one histogram.
"""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from quorate.learners.concepts.base import Concept, Constant, LabelledRecords, feature_names
from quorate.learners.concepts.boolean.booleans import (
    BooleanRules,
    pattern_votes,
    read_booleans,
    subcube_sums,
)
from quorate.learners.concepts.dimensions import Dimension

__all__ = ["Conjunctions", "Disjunctions", "Literals"]


@dataclass(frozen=True)
class Literals(Concept):
    """All (or, if ``any_of``, at least one) of some literals, which are pairs (feature, value).

    >>> rule = Literals(literals=((0, True), (2, False)), any_of=False, names=("a", "b", "c"))
    >>> print(rule)
    Predict 1 if a and not c, else 0.
    >>> rule.predict([[1, 0, 0], [1, 0, 1]])
    array([1, 0])
    """

    literals: tuple[tuple[int, bool], ...]
    any_of: bool
    names: tuple[str, ...]

    def predict(self, X: ArrayLike) -> NDArray[np.int64]:
        """Predict 0 or 1 for every row of ``X``."""
        truth = read_booleans(X, n_features=len(self.names))
        columns = [feature for feature, _ in self.literals]
        holds: NDArray[np.bool_] = truth[:, columns] == [wanted for _, wanted in self.literals]
        combine = np.any if self.any_of else np.all
        return np.asarray(combine(holds, axis=1), dtype=np.int64)

    def __str__(self) -> str:
        words = [
            self.names[feature] if wanted else f"not {self.names[feature]}"
            for feature, wanted in self.literals
        ]
        return f"Predict 1 if {(' or ' if self.any_of else ' and ').join(words)}, else 0."


@dataclass(frozen=True)
class _LiteralClass(BooleanRules):
    """What conjunctions and disjunctions share: 3**d sets of literals, numbered in base 3."""

    _ways = 3
    _instead = "Use at most 13 features: choose them by public knowledge."

    @property
    def _littlestone(self) -> Dimension:
        return Dimension(value=self.features + 1 if self.features > 1 else 1, exact=True)

    @property
    @abstractmethod
    def _any_of(self) -> bool: ...

    def concept(self, index: int) -> Literals | Constant:
        """Return hypothesis ``index``.

        Digit j in base 3 is 0 if feature j is absent, 1 if it must be true, 2 if it must be false.
        """
        rest = self._check_index(index)
        literals = []
        for feature in range(self.features):
            rest, digit = divmod(rest, 3)
            if digit:
                literals.append((feature, digit == 1))
        if not literals:
            return Constant(0 if self._any_of else 1)
        names = feature_names(self.names, n_features=self.features)
        return Literals(literals=tuple(literals), any_of=self._any_of, names=names)


@dataclass(frozen=True)
class Conjunctions(_LiteralClass):
    """All conjunctions of literals over d Boolean features; the empty one is "always 1".

    VC dimension d (Natschläger and Schmitt, 1996). Littlestone dimension d + 1 for d >= 2. The
    elimination algorithm makes at most d + 1 mistakes. The lower bound is by induction from d = 2:
    after a root x with x_d = 0, label 0 leaves all conjunctions of d - 1 features with the literal
    x_d, and label 1 leaves the 2**d conjunctions that are true at x, which shatter d points.

    Complexity
    ----------
    O(3**d) time and 8 * 3**d bytes per user; at most 13 features.

    Parameters
    ----------
    features : int
        Number of Boolean features d. A value is true if it is greater than 0.5.
    names : sequence of str, optional
        Names of the features in printed rules.

    References
    ----------
    .. [1] Natschläger, Schmitt. Exact VC-dimension of Boolean monomials. Information Processing
       Letters 59, 1996.

    Examples
    --------
    >>> rules = Conjunctions(3, names=["smoker", "diabetic", "over_60"])
    >>> rules.size, rules.vc_dimension, rules.littlestone_dimension
    (27, 3, 4)
    >>> print(rules.concept(1 + 2 * 9))
    Predict 1 if smoker and not over_60, else 0.
    """

    @property
    def _any_of(self) -> bool:
        return False

    def _count_mistakes(self, records: LabelledRecords) -> NDArray[np.int64]:
        # Wrong: label 1 outside the subcube, label 0 inside.
        return records.positives()[:, np.newaxis] - subcube_sums(pattern_votes(records))


@dataclass(frozen=True)
class Disjunctions(_LiteralClass):
    """All disjunctions of literals over d Boolean features; the empty one is "always 0".

    A disjunction is the negation of the conjunction of the opposite literals, so sizes and
    dimensions are those of :class:`Conjunctions`.

    Parameters
    ----------
    features : int
        Number of Boolean features d. A value is true if it is greater than 0.5.
    names : sequence of str, optional
        Names of the features in printed rules.

    Examples
    --------
    >>> print(Disjunctions(2).concept(5))
    Predict 1 if not x0 or x1, else 0.
    """

    @property
    def _any_of(self) -> bool:
        return True

    def _count_mistakes(self, records: LabelledRecords) -> NDArray[np.int64]:
        negatives = records.counts() - records.positives()
        # The rule is 0 where every literal fails: the subcube of the opposite literals. Read
        # backwards, the patterns are those of the negated features.
        opposite = pattern_votes(records)[:, ::-1]
        return negatives[:, np.newaxis] + subcube_sums(opposite)
