"""1-decision lists over a few Boolean features: "if a then 1, else if not b then 0, else 1".

Many lists represent the same function. The class has each function once, as the truth table of 2**d
bits in one 64-bit integer. It converts a function to a list only on request. Mistakes are counted
by one histogram over patterns and one matrix product.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from itertools import combinations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from quorate import _validate
from quorate.exceptions import ParameterError
from quorate.learners.concepts.base import (
    Concept,
    ConceptClass,
    Constant,
    LabelledRecords,
    feature_names,
)
from quorate.learners.concepts.boolean.booleans import all_patterns, pattern_votes, read_booleans
from quorate.learners.concepts.dimensions import Dimension, littlestone_or_bound
from quorate.learners.concepts.tables import votes_for

__all__ = ["DecisionList", "DecisionLists"]

# machine: 260,134 different functions; seven features would give five million.
_MAX_FEATURES = 6

# The Littlestone dimension is computed up to this many features.
_SMALL = 4


@dataclass(frozen=True)
class DecisionList(Concept):
    """Rules (feature, value, label), tried in order; the first one that applies decides.

    >>> rule = DecisionList(rules=((0, True, 1), (1, False, 0)), default=1, names=("a", "b"))
    >>> print(rule)
    If a then predict 1, else if not b then predict 0, else predict 1.
    >>> rule.predict([[1, 0], [0, 0], [0, 1]])
    array([1, 0, 1])
    """

    rules: tuple[tuple[int, bool, int], ...]
    default: int
    names: tuple[str, ...]

    def predict(self, X: ArrayLike) -> NDArray[np.int64]:
        """Predict 0 or 1 for every row of ``X``."""
        truth = read_booleans(X, n_features=len(self.names))
        label = np.full(len(truth), self.default, dtype=np.int64)
        for feature, value, answer in reversed(self.rules):
            label[truth[:, feature] == value] = answer
        return label

    def __str__(self) -> str:
        parts = [
            f"if {'' if value else 'not '}{self.names[feature]} then predict {answer}"
            for feature, value, answer in self.rules
        ]
        text = ", else ".join([*parts, f"predict {self.default}"])
        return f"{text[0].upper()}{text[1:]}."


@dataclass(frozen=True)
class DecisionLists(ConceptClass):
    """All functions of d Boolean features that a 1-decision list computes, each once.

    There are 4, 14, 96, 1050, 15036 and 260134 of them for d = 1 to 6.

    VC dimension d + 1: lists give all labelings of 0 and the d unit vectors; and every list is a
    halfspace (with decreasing powers of two as weights), and halfspaces have the dimension d + 1.
    The Littlestone dimension is computed for up to 4 features and otherwise bounded by log2 of the
    size.

    Complexity
    ----------
    O(N d + n 2**d |H|) time by one matrix product; at most 6 features.

    Parameters
    ----------
    features : int
        Number of Boolean features d, at most 6. A value is true if it is greater than 0.5.
    names : sequence of str, optional
        Names of the features in printed rules.

    References
    ----------
    .. [1] Rivest. Learning decision lists. Machine Learning 2, 1987.

    Examples
    --------
    >>> lists = DecisionLists(3)
    >>> lists.size, lists.vc_dimension
    (96, 4)
    >>> print(lists.concept(40))
    If ... then predict ..., else ...
    """

    features: int
    names: Sequence[str] | None = field(default=None, kw_only=True)

    def __post_init__(self) -> None:
        _validate.positive_integer(features=self.features)
        if self.features > _MAX_FEATURES:
            raise ParameterError(
                f"Expected at most {_MAX_FEATURES} features, got features={self.features}: the "
                "number of different decision lists explodes. Choose features by public "
                "knowledge, or use Conjunctions or Stumps, which allow more."
            )
        object.__setattr__(self, "names", feature_names(self.names, n_features=self.features))

    @property
    def _functions(self) -> NDArray[np.uint64]:
        return _list_functions(self.features)

    @cached_property
    def _table(self) -> NDArray[np.int8]:
        cells = np.arange(2**self.features, dtype=np.uint64)
        return ((self._functions[:, np.newaxis] >> cells) & np.uint64(1)).astype(np.int8)

    @property
    def size(self) -> int:
        """The number of different functions."""
        return len(self._functions)

    @property
    def errs_at_most_half(self) -> bool:
        """True: inverting all labels of a list gives another list."""
        return True

    @property
    def n_features(self) -> int:
        """The number of Boolean features d."""
        return self.features

    @property
    def _vc(self) -> Dimension:
        return Dimension(value=self.features + 1, exact=True)

    @cached_property
    def _littlestone(self) -> Dimension:
        small = self.features <= _SMALL
        return littlestone_or_bound(self._table if small else None, size=self.size)

    def concept(self, index: int) -> DecisionList | Constant:
        """Return function number ``index``, written as a list."""
        labels = self._table[self._check_index(index)]
        rules, default = _as_list(labels, self.features)
        if not rules:
            return Constant(default)
        names = feature_names(self.names, n_features=self.features)
        return DecisionList(rules=rules, default=default, names=names)

    def _count_mistakes(self, records: LabelledRecords) -> NDArray[np.int64]:
        # Wrong: label 1 where the list says 0, label 0 where it says 1.
        votes = pattern_votes(records)
        return records.positives()[:, np.newaxis] - votes_for(votes, self._table)


@lru_cache(maxsize=_MAX_FEATURES)
def _list_functions(features: int) -> NDArray[np.uint64]:
    """List the truth tables of all 1-decision lists, in increasing order.

    A list is a constant, or a rule on one feature followed by a list over the other features.
    """
    cells = 2**features
    everything = np.uint64((1 << cells) - 1)
    truth = all_patterns(features)
    bits = [np.uint64(sum(1 << x for x in range(cells) if truth[x, j])) for j in range(features)]
    constants = np.array([0, everything], dtype=np.uint64)
    over: dict[tuple[int, ...], NDArray[np.uint64]] = {(): constants}
    for held in range(1, features + 1):
        larger: dict[tuple[int, ...], NDArray[np.uint64]] = {}
        for chosen in combinations(range(features), held):
            parts = [constants]
            for feature in chosen:
                rest = over[tuple(j for j in chosen if j != feature)]
                for applies in (bits[feature], everything ^ bits[feature]):
                    parts += [rest & ~applies, rest | applies]
            larger[chosen] = np.unique(np.concatenate(parts))
        over = larger
    functions = over[tuple(range(features))]
    functions.setflags(write=False)
    return functions


def _as_list(
    labels: NDArray[np.int8], features: int
) -> tuple[tuple[tuple[int, bool, int], ...], int]:
    """Write a function that is a 1-decision list as a list, with the lowest feature first."""
    truth = all_patterns(features)
    open_cells = np.ones(len(labels), dtype=np.bool_)
    left = list(range(features))
    rules: list[tuple[int, bool, int]] = []
    while np.ptp(labels[open_cells]):
        feature, value, applies = next(
            (feature, value, applies)
            for feature in left
            for value in (True, False)
            if not np.ptp(labels[applies := open_cells & (truth[:, feature] == value)])
        )
        rules.append((feature, value, int(labels[applies][0])))
        left.remove(feature)
        open_cells &= ~applies
    return tuple(rules), int(labels[open_cells][0])
