"""Decision stumps: one cut point on one of d features, in either direction.

For each feature, one histogram over the public cut points and one cumulative sum give the mistakes
of all its stumps. The stump with the opposite direction is wrong exactly where the first one is
right.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import pairwise

import numpy as np
from numpy.typing import ArrayLike, NDArray

from quorate import _validate
from quorate.exceptions import ParameterError
from quorate.learners.concepts.base import (
    Concept,
    ConceptClass,
    LabelledRecords,
    as_features,
    check_enumerable,
    feature_names,
)
from quorate.learners.concepts.dimensions import Dimension

__all__ = ["Stump", "Stumps"]


@dataclass(frozen=True)
class Stump(Concept):
    """Predict 1 if one feature is at least (or, not ``above``, less than) ``cut``.

    >>> print(Stump(feature=1, cut=0.5, above=True, names=("age", "dose")))
    Predict 1 if dose >= 0.5, else 0.
    """

    feature: int
    cut: float
    above: bool
    names: tuple[str, ...]

    def predict(self, X: ArrayLike) -> NDArray[np.int64]:
        """Predict 0 or 1 for every row of ``X``."""
        values = as_features(X, n_features=len(self.names))
        at_least = values[:, self.feature] >= self.cut
        return (at_least if self.above else ~at_least).astype(np.int64)

    def __str__(self) -> str:
        sign = ">=" if self.above else "<"
        return f"Predict 1 if {self.names[self.feature]} {sign} {self.cut:g}, else 0."


@dataclass(frozen=True)
class Stumps(ConceptClass):
    """All stumps with the given public cut points, in both directions.

    The order is: first the stumps "feature >= cut", by feature and cut; then, in the same order,
    those with "<".

    The VC dimension is the largest v with C(v, floor(v/2)) <= 2 d [1]_, of order log2 d, if every
    feature has at least v - 1 cut points and one has v. More cut points do not change it. In
    general v points are shattered only if this holds, because the subsets that one feature can
    separate, together with their complements, form a chain with at most two of size floor(v/2).
    Counting these subsets gives a second condition, 2**v <= 2 + 2 sum_j min(k_j, v - 1).
    ``vc_dimension`` is the largest v that satisfies both. The Littlestone dimension is bounded by
    log2 of the size.

    Complexity
    ----------
    O(N d log k + n |H|) time; at most two million stumps.

    Parameters
    ----------
    cuts : sequence of sequences of float
        For each feature its public cut points, in increasing order; at least one in total.
    names : sequence of str, optional
        Names of the features in printed rules.

    References
    ----------
    .. [1] Leboeuf, LeBlanc, Marchand. Decision trees as partitioning machines to characterize
       their generalization properties. NeurIPS 2020.

    Examples
    --------
    >>> stumps = Stumps([[30, 50, 70], [0.5]], names=("age", "dose"))
    >>> stumps.size
    8
    >>> print(stumps.concept(2), stumps.concept(7), sep=" | ")
    Predict 1 if age >= 70, else 0. | Predict 1 if dose < 0.5, else 0.
    >>> Stumps.on_grid(lower=[0.0] * 8, upper=[1.0] * 8, cuts=32).size
    512
    """

    cuts: Sequence[Sequence[float]]
    names: Sequence[str] | None = field(default=None, kw_only=True)

    def __post_init__(self) -> None:
        check_enumerable(
            2 * sum(len(points) for points in self.cuts),
            name=f"Stumps over {len(self.cuts)} features",
            instead="Use fewer cut points a feature, or fewer features.",
        )
        cuts = tuple(tuple(float(cut) for cut in points) for points in self.cuts)
        for points in cuts:
            increasing = all(left < right for left, right in pairwise(points))
            if not (increasing and all(map(math.isfinite, points))):
                raise ParameterError(
                    f"Expected finite cut points that increase, got cuts={points!r}."
                )
        if not any(cuts):
            raise ParameterError("Expected at least one cut point in cuts, got none.")
        object.__setattr__(self, "cuts", cuts)
        object.__setattr__(self, "names", feature_names(self.names, n_features=len(cuts)))

    @classmethod
    def on_grid(
        cls,
        *,
        lower: Sequence[float],
        upper: Sequence[float],
        cuts: int,
        names: Sequence[str] | None = None,
    ) -> Stumps:
        """Place ``cuts`` evenly spaced cut points inside the public range of each feature.

        >>> Stumps.on_grid(lower=[0.0], upper=[4.0], cuts=3).cuts
        ((1.0, 2.0, 3.0),)
        """
        _validate.positive_integer(cuts=cuts)
        if len(lower) != len(upper):
            raise ParameterError(
                f"Expected as many upper as lower bounds, got {len(lower)} and {len(upper)}."
            )
        rows = []
        for low, high in zip(lower, upper, strict=True):
            _validate.ordered(low, high, name="bounds")
            rows.append(np.linspace(low, high, cuts + 2)[1:-1].tolist())
        return cls(rows, names=names)

    @cached_property
    def _ends(self) -> NDArray[np.int64]:
        """The index after the last stump of each feature, among those of one direction."""
        return np.cumsum([len(points) for points in self.cuts], dtype=np.int64)

    @property
    def size(self) -> int:
        """The number of hypotheses: two per cut point."""
        return 2 * int(self._ends[-1])

    @property
    def n_features(self) -> int:
        """The number of features d."""
        return len(self.cuts)

    @cached_property
    def _vc(self) -> Dimension:
        held = [len(points) for points in self.cuts if points]

        def chains_suffice(v: int) -> bool:
            return v < 2 or math.comb(v, v // 2) <= 2 * len(held)

        def labelings_suffice(v: int) -> bool:
            return bool(2**v <= min(2 + 2 * sum(min(k, v - 1) for k in held), self.size))

        v = 1
        while chains_suffice(v + 1) and labelings_suffice(v + 1):
            v += 1
        enough = min(held) >= v - 1 and max(held) >= v
        return Dimension(value=v, exact=enough and not chains_suffice(v + 1))

    @property
    def errs_at_most_half(self) -> bool:
        """True: the opposite of every stump is a stump."""
        return True

    def concept(self, index: int) -> Stump:
        """Return hypothesis ``index``."""
        flipped, place = divmod(self._check_index(index), self.size // 2)
        feature = int(np.searchsorted(self._ends, place, side="right"))
        within = place - (int(self._ends[feature - 1]) if feature else 0)
        return Stump(
            feature=feature,
            cut=self.cuts[feature][within],
            above=not flipped,
            names=feature_names(self.names, n_features=self.n_features),
        )

    def _count_mistakes(self, records: LabelledRecords) -> NDArray[np.int64]:
        half = self.size // 2
        mistakes = np.empty((records.n_users, self.size), dtype=np.int64)
        counts = records.counts()[:, np.newaxis]
        negatives = counts - records.positives()[:, np.newaxis]
        start = 0
        for feature, points in enumerate(self.cuts):
            passed = np.searchsorted(np.array(points), records.X[:, feature], side="right")
            votes = records.count_by_cell(passed, n_cells=len(points) + 1)
            # "x >= cut c" is wrong on label 0 that passed more than c cuts, on label 1 otherwise.
            above = negatives + np.cumsum(votes, axis=1)[:, :-1]
            mistakes[:, start : start + len(points)] = above
            start += len(points)
        np.subtract(counts, mistakes[:, :half], out=mistakes[:, half:])
        return mistakes
