"""VC and Littlestone dimension of a finite table of predictions, computed exactly.

Both are computed from their definitions by recursion over sets of hypotheses, which are Python
integers used as bit sets. A set of 2**k hypotheses is needed to shatter k points or to fill a tree
of depth k; this condition alone removes most branches. The number of steps is limited: the problems
are hard in general, and a class beyond the limit is refused rather than computed for hours.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from quorate import _validate
from quorate.exceptions import ParameterError, SchemaError

__all__ = [
    "MAX_STEPS",
    "Dimension",
    "TooMuchWork",
    "littlestone_dimension",
    "littlestone_or_bound",
    "vc_dimension",
    "vc_or_bound",
]

# machine: one step looks at one set of hypotheses and one point; two million take a few seconds.
MAX_STEPS = 2_000_000


class Dimension(NamedTuple):
    """A dimension, or an upper bound of it if ``exact`` is false.

    >>> Dimension.at_most_log2(1000)
    Dimension(value=9, exact=False)
    """

    value: int
    exact: bool

    @classmethod
    def at_most_log2(cls, size: int) -> Dimension:
        """Bound the dimension of a class by the logarithm of its size."""
        return cls(value=size.bit_length() - 1, exact=False)


class TooMuchWork(ParameterError):
    """The exact dimension would take more steps than allowed.

    >>> vc_dimension(np.eye(9), max_steps=1)
    Traceback (most recent call last):
    ...
    quorate.learners.concepts.dimensions.TooMuchWork: Expected a class whose dimension takes at
    most ...
    """


def vc_dimension(predictions: ArrayLike, *, max_steps: int = MAX_STEPS) -> int:
    """Return the size of the largest set of points on which all labelings occur.

    Parameters
    ----------
    predictions : array of 0 and 1
        Hypotheses in rows, points in columns; at least one row.
    max_steps : int, default=2,000,000
        Number of steps after which ``TooMuchWork`` is raised.

    Examples
    --------
    In this example two points have all four labelings, three do not.

    >>> vc_dimension([[0, 0, 0], [0, 1, 0], [1, 0, 1], [1, 1, 1]])
    2
    """
    points, everything = _bit_sets(predictions)
    budget = _Budget(max_steps)
    dimension = 0
    while _shatters([everything], points, dimension + 1, budget):
        dimension += 1
    return dimension


def littlestone_dimension(predictions: ArrayLike, *, max_steps: int = MAX_STEPS) -> int:
    """Return the depth of the deepest full binary tree of points that the class shatters.

    It is the number of mistakes that even the best online learner may make.

    Parameters
    ----------
    predictions : array of 0 and 1
        Hypotheses in rows, points in columns; at least one row.
    max_steps : int, default=2,000,000
        Number of steps after which ``TooMuchWork`` is raised.

    References
    ----------
    .. [1] Littlestone. Learning quickly when irrelevant attributes abound: a new
       linear-threshold algorithm. Machine Learning 2, 1988.

    Examples
    --------
    Thresholds over seven points: binary search makes three mistakes.

    >>> littlestone_dimension(np.tri(8, 7, -1))
    3
    """
    points, everything = _bit_sets(predictions)
    budget = _Budget(max_steps)
    known: dict[int, tuple[int, int]] = {}
    depth = 0
    while _fills_tree(everything, points, depth + 1, budget, known):
        depth += 1
    return depth


def littlestone_or_bound(predictions: ArrayLike | None, *, size: int) -> Dimension:
    """Return the Littlestone dimension, or the bound floor(log2(size)).

    The bound is returned if there is no table, or if the exact value takes too many steps.

    >>> littlestone_or_bound(None, size=1000)
    Dimension(value=9, exact=False)
    """
    return _or_bound(littlestone_dimension, predictions, size=size)


def vc_or_bound(predictions: ArrayLike | None, *, size: int) -> Dimension:
    """Return the VC dimension, or the bound floor(log2(size)).

    >>> vc_or_bound([[0], [1]], size=2)
    Dimension(value=1, exact=True)
    """
    return _or_bound(vc_dimension, predictions, size=size)


def _or_bound(
    exact: Callable[[ArrayLike], int], predictions: ArrayLike | None, *, size: int
) -> Dimension:
    if predictions is not None:
        try:
            return Dimension(value=exact(predictions), exact=True)
        except TooMuchWork:
            pass
    return Dimension.at_most_log2(size)


class _Budget:
    """Counts steps, and raises if there were too many."""

    def __init__(self, steps: int) -> None:
        _validate.positive_integer(max_steps=steps)
        self.allowed = self.left = steps

    def spend(self, steps: int) -> None:
        self.left -= steps
        if self.left < 0:
            raise TooMuchWork(
                f"Expected a class whose dimension takes at most max_steps={self.allowed} steps; "
                "raise max_steps, reduce the domain, or use log2 of the number of hypotheses "
                "as a bound."
            )


def _bit_sets(predictions: ArrayLike) -> tuple[list[int], int]:
    """Return, for each different point, the set of hypotheses that predict 1 there."""
    table: NDArray[np.bool_] = np.asarray(predictions) == 1
    if table.ndim != 2 or table.shape[0] == 0:
        raise SchemaError(
            f"Expected predictions with hypotheses in rows and points in columns, got "
            f"shape={table.shape}."
        )
    if table.shape[1] == 0:
        return [], 1
    table = np.unique(table, axis=0)
    # Exchanging 0 and 1 at a point changes neither dimension; half of the points may go.
    table = np.unique(table ^ table[:1], axis=1)
    packed = np.packbits(table, axis=0, bitorder="little")
    points = [int.from_bytes(column.tobytes(), "little") for column in packed.T]
    return [point for point in points if point], (1 << table.shape[0]) - 1


def _shatters(parts: list[int], points: Sequence[int], needed: int, budget: _Budget) -> bool:
    """Return whether ``needed`` of the points split every part in both ways."""
    if needed == 0:
        return True
    least = 1 << (needed - 1)
    if any(part.bit_count() < 2 * least for part in parts):
        return False
    # A point that leaves one side too small here does so in every smaller part, too.
    budget.spend(len(points) * len(parts))
    useful = []
    for point in points:
        split = [side for part in parts for side in (part & point, part & ~point)]
        if all(side.bit_count() >= least for side in split):
            useful.append((point, split))
    candidates = [point for point, _ in useful]
    return any(
        _shatters(split, candidates[place + 1 :], needed - 1, budget)
        for place, (_, split) in enumerate(useful)
    )


def _fills_tree(
    hypotheses: int,
    points: Sequence[int],
    depth: int,
    budget: _Budget,
    known: dict[int, tuple[int, int]],
) -> bool:
    """Return whether a full tree of this depth is shattered by these hypotheses."""
    if depth == 0:
        return True
    count = hypotheses.bit_count()
    if count < 1 << depth:
        return False
    lowest, highest = known.get(hypotheses, (1, count.bit_length() - 1))
    if depth <= lowest or depth > highest:
        return depth <= lowest
    least = 1 << (depth - 1)
    budget.spend(len(points))
    splits: dict[int, int] = {}
    for point in points:
        ones = hypotheses & point
        smaller = min(ones.bit_count(), count - ones.bit_count())
        if smaller >= least:
            splits[min(ones, hypotheses ^ ones)] = smaller
    found = any(
        _fills_tree(side, points, depth - 1, budget, known)
        and _fills_tree(hypotheses ^ side, points, depth - 1, budget, known)
        for side in sorted(splits, key=splits.__getitem__, reverse=True)
    )
    known[hypotheses] = (depth, highest) if found else (lowest, depth - 1)
    return found
