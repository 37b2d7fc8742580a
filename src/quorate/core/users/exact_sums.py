r"""Sums of 32-bit floats that no order can change.

Each user's records are added up as 64-bit floats, in an order that is expensive to compute
(:mod:`quorate.core.users.store`). Mostly this is not necessary. A 32-bit float has 24 bits, and as
long as every partial sum fits into the 53 bits of a 64-bit float nothing is rounded, so every order
gives the same sum to the last bit.

Let every user have at most c records, and let all nonzero numbers of a column be between t and M in
absolute value. Each number is then a multiple of :math:`2^{\lfloor \log_2 t \rfloor - 23} >
t\,2^{-24}`, and no partial sum is above c M. If :math:`t \ge c M 2^{-29}`, every partial sum is at
most :math:`2^{53}` such units and hence exact. Users with a smaller nonzero number are summed in
the expensive order.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["sums_in_any_order"]

Singles = NDArray[np.float32]

# Rows that are looked at together, unless the users are so many that their sums would take longer.
_ROWS = 1 << 15
# Columns lie side by side in short rows; so many rows in a line are compared quickly.
_LINE = 64


def sums_in_any_order(
    rows: Singles, owners: NDArray[Any], n_users: int, most_records: int
) -> tuple[NDArray[np.float64], NDArray[np.bool_]]:
    """Return each user's sum of rows in stored order, and which users' sums may be rounded.

    It makes one pass over the rows, and a second pass over the parts with small numbers.

    Parameters
    ----------
    rows : array of shape (N, d), 32-bit floats
    owners : array of shape (N,)
        The number of each row's user.
    n_users : int
    most_records : int
        The largest number of records of a user.

    Examples
    --------
    >>> rows = np.array([[1.0], [2.0], [4.0], [1e-9]], dtype=np.float32)
    >>> sums, rounded = sums_in_any_order(rows, np.array([1, 0, 1, 2]), 3, most_records=2)
    >>> sums[:2].ravel(), rounded
    (array([2., 5.]), array([False, False,  True]))
    """
    from scipy import sparse

    sums = np.zeros((n_users, rows.shape[1]))
    few = max(_ROWS, 4 * n_users)
    ones, ends = np.ones(min(few, len(rows))), np.arange(min(few, len(rows)) + 1)
    found = []
    for start in range(0, len(rows), few):
        block = np.ascontiguousarray(rows[start : start + few])
        own = owners[start : start + few]
        found.append((slice(start, start + len(own)), *_sizes(block)))
        entries = (ones[: len(own)], own, ends[: len(own) + 1].astype(own.dtype))
        wide = block.astype(np.float64)
        sums += sparse.csc_array(entries, shape=(n_users, len(own))) @ wide
    peaks = np.max([top for _, top, _ in found], axis=0, initial=0.0)
    limits = _smallest_safe(peaks, most_records)
    rounded = np.zeros(n_users, dtype=np.bool_)
    for where, _, low in found:
        if not (low >= limits).all():  # also if they are no numbers
            small = ~(np.abs(rows[where]) >= limits) & (rows[where] != 0.0)
            rounded[owners[where][small.any(axis=1)]] = True
    return sums, rounded


def _smallest_safe(peaks: Singles, most_records: int) -> Singles:
    """Return for each column the size above which numbers are safe, rounded up.

    >>> bool(_smallest_safe(np.array([3.0], dtype=np.float32), 2)[0] >= 6 * 2.0**-29)
    True
    """
    with np.errstate(over="ignore"):
        limits = (peaks.astype(np.float64) * (most_records * 2.0**-29)).astype(np.float32)
        return np.nextafter(limits, np.float32(np.inf), dtype=np.float32)


def _sizes(block: Singles) -> tuple[Singles, Singles]:
    """Return the largest and the smallest absolute value other than zero in each column.

    >>> _sizes(np.array([[3.0], [-0.5], [0.0]], dtype=np.float32))
    (array([3.], dtype=float32), array([0.5], dtype=float32))
    """
    width = block.shape[1]
    whole = len(block) - len(block) % _LINE
    top, low = np.zeros(width, np.float32), np.full(width, np.inf, np.float32)
    for lines in (block[:whole].reshape(-1, _LINE * width), block[whole:]):
        # As integers the bits of sizes are in their order, and zero less one is the largest.
        bits = np.abs(lines).view(np.uint32)
        if len(bits):
            most = bits.max(axis=0).view(np.float32).reshape(-1, width)
            bits -= np.uint32(1)
            least = (bits.min(axis=0) + np.uint32(1)).view(np.float32).reshape(-1, width)
            top = np.maximum(top, most.max(axis=0))
            low = np.minimum(low, np.where(least == 0.0, np.float32(np.inf), least).min(axis=0))
    return top, low
