r"""Sums of 32-bit floats that no order can change.

Each user's records are added up as 64-bit floats, in an order that is costly to find
(:mod:`quorate.users.store`). Mostly there is no need to: a 32-bit float has 24 bits, and as long as
every partial sum fits into the 53 bits of a 64-bit float nothing is rounded, so every order gives
the same sum to the last bit.

Let every user hold at most c records, and a column no number above M and, but for zeros, none below
t. Each number is then a multiple of :math:`2^{\lfloor \log_2 t \rfloor - 23} > t\,2^{-24}`, and no
partial sum is above c M. If :math:`t \ge c M 2^{-29}`, every partial sum is at most :math:`2^{53}`
such units and hence exact. Users who hold a number below that t are left to the order.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["smallest_safe", "sums_in_any_order", "too_small"]

Singles = NDArray[np.float32]

# Numbers looked at together; they fit into a processor's cache.
_BLOCK = 1 << 16
# Columns lie side by side in short rows; so many numbers in a line are compared quickly.
_LINE = 1 << 10
# Rows that are widened at once, unless the users are so many that their sums would take longer.
_ROWS = 1 << 15


def smallest_safe(rows: Singles, most_records: int) -> Singles:
    """Return for each column from which size on numbers are safe; infinity or NaN: none are.

    >>> rows = np.array([[1.0], [-3.0]], dtype=np.float32)
    >>> bool(smallest_safe(rows, 2)[0] >= 6 * 2.0**-29)
    True
    """
    peaks = np.zeros(rows.shape[1], dtype=np.float32)
    for _, lines in _lines(rows):
        top = np.abs(lines).max(axis=0, initial=0.0).reshape(-1, rows.shape[1])
        peaks = np.maximum(peaks, top.max(axis=0))
    with np.errstate(over="ignore"):
        limits = (peaks.astype(np.float64) * (most_records * 2.0**-29)).astype(np.float32)
        # Rounded up, and never less than the limit.
        return np.nextafter(limits, np.float32(np.inf), dtype=np.float32)


def too_small(rows: Singles, limits: Singles) -> NDArray[np.int64]:
    """Return the places of rows with a number below its limit, other than zero.

    >>> rows = np.array([[1.0, 0.0], [1e-9, 1.0]], dtype=np.float32)
    >>> too_small(rows, np.array([1e-6, 1e-6], dtype=np.float32))
    array([1])
    """
    found = [np.empty(0, dtype=np.int64)]
    for start, lines in _lines(rows):
        small = np.abs(lines) < np.tile(limits, lines.shape[1] // rows.shape[1])
        if small.any():
            small &= lines != 0.0
            found.append(start + np.flatnonzero(small.reshape(-1, rows.shape[1]).any(axis=1)))
    return np.concatenate(found)


def sums_in_any_order(rows: Singles, owners: NDArray[Any], n_users: int) -> NDArray[np.float64]:
    """Return the sum of the rows of each user, added up as they lie: one pass over the rows.

    >>> rows = np.array([[1.0], [2.0], [4.0]], dtype=np.float32)
    >>> sums_in_any_order(rows, np.array([1, 0, 1]), 2)
    array([[2.],
           [5.]])
    """
    from scipy import sparse

    sums = np.zeros((n_users, rows.shape[1]))
    few = max(_ROWS, 4 * n_users)
    ones, ends = np.ones(min(few, len(rows))), np.arange(min(few, len(rows)) + 1)
    for start in range(0, len(rows), few):
        wide = rows[start : start + few].astype(np.float64)
        own = owners[start : start + few]
        entries = (ones[: len(own)], own, ends[: len(own) + 1].astype(own.dtype))
        sums += sparse.csc_array(entries, shape=(n_users, len(own))) @ wide
    return sums


def _lines(rows: Singles) -> Iterator[tuple[int, Singles]]:
    """Yield blocks of rows, several of them side by side in a line, and where each begins."""
    width = rows.shape[1]
    if width == 0:
        return
    fold = max(1, _LINE // width)
    step, whole = fold * max(1, _BLOCK // _LINE), len(rows) - len(rows) % fold
    for start in range(0, whole, step):
        yield start, rows[start : min(start + step, whole)].reshape(-1, fold * width)
    if whole < len(rows):
        yield whole, rows[whole:]
