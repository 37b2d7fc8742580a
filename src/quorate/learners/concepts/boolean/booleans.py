"""Boolean features: reading them, numbering their patterns, and two fast transforms.

A row of d Boolean features is numbered by its *pattern*, the sum of 2**j over its true features.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from quorate import _validate
from quorate.learners.concepts.base import (
    ConceptClass,
    LabelledRecords,
    as_features,
    check_enumerable,
    feature_names,
)
from quorate.learners.concepts.dimensions import Dimension

__all__ = [
    "BooleanRules",
    "all_patterns",
    "pattern_votes",
    "patterns",
    "read_booleans",
    "subcube_sums",
    "walsh",
]

# Patterns of six features: products of 64 x 64 matrices stay in the cache.
_AT_A_TIME = 64


def read_booleans(X: ArrayLike, *, n_features: int) -> NDArray[np.bool_]:
    """Read each value as true if it is greater than 0.5 (NaN: false).

    >>> read_booleans([[0, 1], [0.7, float("nan")]], n_features=2)
    array([[False,  True],
           [ True, False]])
    """
    truth: NDArray[np.bool_] = as_features(X, n_features=n_features) > 0.5
    return truth


def patterns(X: NDArray[Any]) -> NDArray[np.int64]:
    """Return the number of the pattern of each row of ``X``.

    >>> patterns(np.array([[0, 0, 1], [1, 1, 0]]))
    array([4, 3])
    """
    weights = np.left_shift(1, np.arange(X.shape[1], dtype=np.int64))
    numbers: NDArray[np.int64] = (X > 0.5).astype(np.int64) @ weights
    return numbers


def all_patterns(n_features: int) -> NDArray[np.int8]:
    """List every row of ``n_features`` Booleans, in the order of their patterns.

    >>> all_patterns(2).tolist()
    [[0, 0], [1, 0], [0, 1], [1, 1]]
    """
    number = np.arange(2**n_features, dtype=np.int64)[:, np.newaxis]
    return ((number >> np.arange(n_features)) & 1).astype(np.int8)


def pattern_votes(records: LabelledRecords) -> NDArray[np.int64]:
    """Count label 1 minus label 0 for each user and each pattern.

    >>> records = LabelledRecords(
    ...     X=np.eye(2), y=np.array([True, False]), user=np.array([0, 0]), n_users=1
    ... )
    >>> pattern_votes(records)
    array([[ 0,  1, -1,  0]])
    """
    return records.count_by_cell(patterns(records.X), n_cells=2 ** records.X.shape[1])


def subcube_sums(votes: NDArray[np.int64]) -> NDArray[np.int64]:
    """Add up ``votes`` (rows of 2**d patterns) over all 3**d subcubes.

    A subcube is a number in base 3: digit j is 0 if feature j is free, 1 if true, 2 if false.
    One pass per feature replaces the pair (false, true) by (both, true, false): O(3**d) per row.

    >>> subcube_sums(np.array([[10, 1]]))
    array([[11,  1, 10]])
    """
    rows, cells = votes.shape
    done = 1
    sums = votes.reshape(rows, cells, 1)
    while sums.shape[1] > 1:
        # Axes: row, features still to do (the first one varies fastest), features done.
        pairs = sums.reshape(rows, sums.shape[1] // 2, 2, done)
        false, true = pairs[:, :, 0], pairs[:, :, 1]
        # Digit of this feature is more significant than those done before.
        sums = np.stack([false + true, true, false], axis=2).reshape(rows, -1, 3 * done)
        done *= 3
    return sums.reshape(rows, done)


def walsh(votes: NDArray[np.int64]) -> NDArray[np.int64]:
    """Sum ``votes[x]`` times (-1)**(number of features in both s and x), for every pattern s.

    The Walsh-Hadamard transform, up to six features at a time by one matrix product; sums of
    absolute votes stay below 2**53, so it is exact.

    >>> walsh(np.array([[1, 2, 3, 4]]))
    array([[10, -2, -4,  0]])
    """
    rows, cells = votes.shape
    sums = votes.astype(np.float64)
    done = 1
    while done < cells:
        # Axes: rows and features to do, features of this turn, features done.
        width = min(_AT_A_TIME, cells // done)
        signs = _signs(width)
        if done == 1:
            sums = sums.reshape(-1, width) @ signs
        else:
            sums = signs @ sums.reshape(-1, width, done)
        done *= width
    return sums.reshape(rows, cells).astype(np.int64)


@lru_cache(maxsize=8)
def _signs(width: int) -> NDArray[np.float64]:
    """Return the Hadamard matrix of ``width`` patterns, which is symmetric."""
    number = np.arange(width, dtype=np.int64)
    odd = (np.bitwise_count(number[:, np.newaxis] & number) % 2).astype(np.float64)
    return np.asarray(1.0 - 2.0 * odd)


@dataclass(frozen=True)
class BooleanRules(ConceptClass):
    """Rules over d Boolean features in which each feature has one of several roles.

    Subclasses define the number of roles of a feature, ``_ways``, and the advice for too many
    features, ``_instead``. Their VC dimension is d.
    """

    features: int
    names: Sequence[str] | None = field(default=None, kw_only=True)

    _ways: ClassVar[int]
    _instead: ClassVar[str]

    def __post_init__(self) -> None:
        _validate.positive_integer(features=self.features)
        check_enumerable(
            self._ways**self.features,
            name=f"{type(self).__name__}({self.features})",
            instead=self._instead,
        )
        object.__setattr__(self, "names", feature_names(self.names, n_features=self.features))

    @property
    def size(self) -> int:
        """The number of hypotheses: roles**d."""
        return int(self._ways**self.features)

    @property
    def n_features(self) -> int:
        """The number of Boolean features d."""
        return self.features

    @property
    def _vc(self) -> Dimension:
        return Dimension(value=self.features, exact=True)
