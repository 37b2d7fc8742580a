r"""Certificates of a conversion: which users have similar scores, in integer arithmetic.

A certificate examines all users' scores. It returns a *distance* that one user changes by at most
1, and the users to release from, chosen so that neighbours' releases are close. There are two
certificates:

* :func:`certify_by_cover`, for any number of scores: users who differ by more than a tolerance are
  connected, and the distance is the relaxed vertex cover of that graph, rounded up. It leaves out
  :math:`8\kappa` users;
* :func:`certify_by_sorting`, for a single number per user: the distance is the smallest number of
  users who must be left out so that *every* choice of the rest has nearly the same sum. It is
  exact, by sorting, and leaves out :math:`4\kappa` users.

Proofs: ``docs/proofs/item_to_user.md``.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from quorate.core.vertex_cover import half_integral_cover
from quorate.mechanisms.wrappers.stable_release import BaseKind

__all__ = ["Alike", "certify_by_cover", "certify_by_sorting", "differences"]

Integers = NDArray[np.int64]


@dataclass(frozen=True)
class Alike:
    """The users to release from, and the distance of all users from being similar.

    Attributes
    ----------
    distance : int
        At most ``2 * reach + 1``, which stands for all larger distances.
    chosen : array of bool
        The users from whom the release is computed; nobody if the distance is too large.
    """

    distance: int
    chosen: NDArray[np.bool_]


def differences(scores: Integers, kind: BaseKind) -> NDArray[np.integer]:
    """Return how much any two users differ: range, L1 norm, or *squared* L2 norm of a difference.

    >>> differences(np.array([[0, 3], [1, 0]]), BaseKind.EXPONENTIAL)
    array([[0, 4],
           [4, 0]], dtype=int16)
    >>> differences(np.array([[0, 3], [1, 0]]), BaseKind.GAUSSIAN)
    array([[ 0, 10],
           [10,  0]], dtype=int16)
    """
    columns = np.ascontiguousarray(scores.T.astype(_narrowest(scores, kind)))
    if kind is BaseKind.EXPONENTIAL:
        return _ranges(columns)
    table = np.zeros((len(scores), len(scores)), dtype=columns.dtype)
    step = np.empty_like(table)
    for column in columns:
        np.subtract(column[:, np.newaxis], column, out=step)
        table += np.abs(step, out=step) if kind is BaseKind.LAPLACE else np.square(step, out=step)
    return table


def certify_by_cover(
    scores: Integers, *, kind: BaseKind, closeness_squared: Fraction, reach: int
) -> Alike:
    """Connect users who differ too much, and leave out a relaxed vertex cover of this graph.

    Each of ``8 * reach`` replacements of one user by another may move the totals by
    ``closeness / (8 * reach)``.

    >>> scores = np.zeros((9, 2), dtype=np.int64)
    >>> scores[4] = 1000, 0
    >>> alike = certify_by_cover(
    ...     scores, kind=BaseKind.EXPONENTIAL, closeness_squared=Fraction(100), reach=1
    ... )
    >>> alike.distance, alike.chosen.nonzero()[0].tolist()
    (1, [0])
    """
    n, swaps = len(scores), 8 * reach
    tolerance = closeness_squared / swaps**2
    if kind is BaseKind.GAUSSIAN:
        edges = differences(scores, kind) > math.floor(tolerance)
    else:
        edges = differences(scores, kind) > _root_floor(tolerance)
    cover = half_integral_cover(edges)
    return _alike(cover.value, ~cover.members, size=n - swaps, reach=reach)


def certify_by_sorting(values: Integers, *, closeness_squared: Fraction, reach: int) -> Alike:
    """Find the fewest users to leave out so that all sums of ``n - 4 * reach`` others are close.

    It is enough to consider runs of consecutive sorted values: if a value in between were left out,
    it could be exchanged for one at an end (see the proof).

    >>> values = np.array([0, 0, 0, 0, 0, 900, 0])
    >>> alike = certify_by_sorting(values, closeness_squared=Fraction(100), reach=1)
    >>> alike.distance, alike.chosen.nonzero()[0].tolist()
    (1, [0, 1, 2])
    """
    n = len(values)
    size = n - 4 * reach
    tolerance = _root_floor(closeness_squared)
    order = np.argsort(values, kind="stable")
    sums = np.concatenate([[0], np.cumsum(values[order])])
    for gone in range(2 * reach + 1):
        kept = n - gone
        # The largest and the smallest sum of `size` kept users share their middle.
        apart = min(size, kept - size)
        start = np.arange(gone + 1)
        highest = sums[start + kept] - sums[start + kept - apart]
        lowest = sums[start + apart] - sums[start]
        good = np.flatnonzero(highest - lowest <= tolerance)
        if good.size:
            usable = np.zeros(n, dtype=np.bool_)
            usable[order[good[0] : good[0] + kept]] = True
            return _alike(gone, usable, size=size, reach=reach)
    return _alike(2 * reach + 1, np.zeros(n, dtype=np.bool_), size=size, reach=reach)


def _alike(distance: int, usable: NDArray[np.bool_], *, size: int, reach: int) -> Alike:
    chosen = np.zeros(len(usable), dtype=np.bool_)
    if distance <= 2 * reach:
        chosen[np.flatnonzero(usable)[:size]] = True
    return Alike(min(distance, 2 * reach + 1), chosen)


def _root_floor(square: Fraction) -> int:
    """Return the largest integer whose square is at most ``square``."""
    return math.isqrt(math.floor(square))


def _ranges(columns: NDArray[np.signedinteger]) -> NDArray[np.signedinteger]:
    """Return, for each pair of users, the largest rise plus the largest fall among their scores."""
    up = columns[0][:, np.newaxis] - columns[0]
    step = np.empty_like(up)
    for column in columns[1:]:
        np.subtract(column[:, np.newaxis], column, out=step)
        np.maximum(up, step, out=up)
    return np.asarray(up + up.T)


def _narrowest(scores: Integers, kind: BaseKind) -> type[np.signedinteger]:
    """Return the smallest integer type for the differences; their table is read many times."""
    width = scores.shape[1]
    widest = 2 * max(abs(int(scores.max(initial=0))), abs(int(scores.min(initial=0))))
    match kind:
        case BaseKind.EXPONENTIAL:
            largest = 2 * widest
        case BaseKind.LAPLACE:
            largest = widest * width
        case BaseKind.GAUSSIAN:
            largest = widest**2 * width
    for dtype in (np.int16, np.int32):
        if largest <= np.iinfo(dtype).max:
            return dtype
    return np.int64
