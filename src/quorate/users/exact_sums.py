"""Sums over each user's records that no order can change: the exact sum, rounded once.

Floating-point addition is not associative: added up in another order, the records of a user give
other last bits, and an engine that reads them in another order would disagree. Here the result is
the double next to the exact sum, a function of *which* records a user holds and of nothing else.

How it is done without a loop over users (Rump, Ogita, Oishi. Accurate floating-point summation
part I: faithful rounding. SIAM J. Sci. Comput. 31, 2008). Let n be the largest number of records of
a user, 2^E more than the largest absolute value, and c = 1.5 x 2^p with p = E + ceil(log2 n) + 1.
Then high = (x + c) - c is x rounded to a multiple of 2^(p-52), and low = x - high is exact. Partial
sums of high are multiples of 2^(p-52) below 2^(p+1), hence exact in any order. The low parts are
at most 2^(p-53) and are split in the same way. If nothing is left then, as for numbers that do not
differ by more than nine decimal places or so, the result is one addition of two exact sums.

Otherwise the rest is added up as it comes, with an error of at most n x 2^-53 x the sum of its
sizes; if adding and subtracting that error rounds to the same double, so does the exact sum between
them. Where that does not decide, Python's exact ``fsum`` does. The scale may come from *other*
users' records: it decides how long a sum takes, and never its result.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["exact_sum", "sums_by_user"]

Floats = NDArray[np.float64]

# Numbers of a block: its parts stay in the cache.
_BLOCK = 2**17
# Larger numbers, and infinities, are added up one user at a time.
_LARGEST = 2.0**900
_SMALLEST_POWER = -900


def exact_sum(values: Floats) -> float:
    """Return the double next to the sum; NaN and infinities as they add up in floating point.

    >>> exact_sum(np.array([1e308, 1.0, 1e308, -1e308, -1e308]))
    1.0
    >>> exact_sum(np.array([np.inf, 1.0])), exact_sum(np.array([np.inf, -np.inf]))
    (inf, nan)
    """
    largest = float(np.max(np.abs(values), initial=0.0))
    if not largest < math.inf:
        infinities = {value for value in values.tolist() if not math.isfinite(value)}
        return infinities.pop() if len(infinities) == 1 else math.nan
    if largest <= _LARGEST:
        return math.fsum(values.tolist())
    # So that no partial sum overflows; what drops out of the doubles is below 2^-974.
    scaled = math.fsum((values * 2.0**-100).tolist())
    with np.errstate(over="ignore"):
        return float(np.float64(scaled) * 2.0**100)


def sums_by_user(
    rows: Floats,
    offsets: NDArray[np.int64],
    *,
    order: NDArray[Any] | None = None,
    weights: Floats | None = None,
) -> Floats:
    """Return the exactly rounded sum of the (weighted) rows of each user.

    Parameters
    ----------
    rows : array of shape (N, k)
    offsets : array of shape (n + 1,)
        The rows of user i are those from ``offsets[i]`` to ``offsets[i + 1]``...
    order : array of shape (N,), optional
        ... of ``rows[order]``; by default of ``rows``.
    weights : array of shape (N,), optional
        One number per row. The product is rounded; the sum of the products is exact.

    Examples
    --------
    >>> sums_by_user(np.array([[1e16], [1.0], [-1e16], [7.0]]), np.array([0, 3, 4]))
    array([[1.],
           [7.]])
    """
    n_users, width = len(offsets) - 1, rows.shape[1]
    sums = np.empty((n_users, width))
    size = max(1, _BLOCK // max(width, 1))
    scratch = _Scratch()
    start = 0
    with np.errstate(all="ignore"):
        while start < n_users:
            stop = int(np.searchsorted(offsets, offsets[start] + size, side="right")) - 1
            stop = min(max(stop, start + 1), n_users)
            part = slice(int(offsets[start]), int(offsets[stop]))
            block = rows[part] if order is None else rows.take(order[part], axis=0)
            if weights is not None:
                factors = weights[part] if order is None else weights.take(order[part])
                block = block * factors[:, None]
            bounds = offsets[start : stop + 1] - offsets[start]
            sums[start:stop] = _block_sums(block, bounds, scratch)
            start = stop
    return sums


class _Scratch:
    """Memory for the parts of a block, kept from block to block: fresh pages are slow."""

    def __init__(self) -> None:
        self._parts = np.empty((3, 0))
        self._powers: NDArray[Any] = np.empty(0)
        self._shifts = np.empty((2, 0))

    def parts(self, size: int) -> Floats:
        if self._parts.shape[1] < size:
            self._parts = np.empty((3, size))
        return self._parts[:, :size]

    def shifts(self, powers: NDArray[Any], finer: NDArray[Any], size: int) -> Floats:
        """Return 1.5 x 2^power for each number of a block: long vectors are quick to add."""
        if self._shifts.shape[1] < size or not np.array_equal([powers, finer], self._powers):
            self._powers = np.array([powers, finer])
            self._shifts = np.tile(np.ldexp(1.5, self._powers), (1, size // len(powers)))
        return self._shifts[:, :size]


def _block_sums(rows: Floats, offsets: NDArray[np.int64], scratch: _Scratch) -> Floats:
    """Return the sums of users who lie one after the other."""
    from scipy import sparse

    counts = np.diff(offsets)
    most = int(counts.max())
    entries = (np.ones(len(rows)), np.arange(len(rows)), offsets)
    adder = sparse.csr_array(entries, shape=(len(counts), len(rows)))
    if most <= 2:
        return np.asarray(adder @ rows)  # one addition is exactly rounded
    largest = _largest(rows)
    if not largest.max() <= _LARGEST:  # NaN is not
        return _tamed(rows, offsets, scratch)
    room = math.ceil(math.log2(most)) + 1
    powers = np.maximum(np.frexp(largest)[1] + room, _SMALLEST_POWER)
    finer = np.maximum(powers - 53 + room, _SMALLEST_POWER)
    shift, finer_shift = scratch.shifts(powers, finer, rows.size)
    x, (high, low, middle) = rows.reshape(-1), scratch.parts(rows.size)
    np.subtract(np.add(x, shift, out=high), shift, out=high)
    np.subtract(x, high, out=low)
    highs = np.asarray(adder @ high.reshape(rows.shape))
    if not low.any():
        return highs
    np.subtract(np.add(low, finer_shift, out=middle), finer_shift, out=middle)
    middles = np.asarray(adder @ middle.reshape(rows.shape))
    if np.array_equal(low, middle):
        return np.asarray(highs + middles)
    rest = np.subtract(low, middle, out=low).reshape(rows.shape)
    error = (adder @ np.abs(rest)) * (most * 2.0**-52)
    sums, sure = _rounded(highs, middles, adder @ rest, error)
    for user, column in np.argwhere(~sure):
        sums[user, column] = exact_sum(rows[offsets[user] : offsets[user + 1], column])
    return sums


def _tamed(rows: Floats, offsets: NDArray[np.int64], scratch: _Scratch) -> Floats:
    """Return the sums where some are of huge numbers or infinities: those one at a time."""
    wild = ~(np.abs(rows) <= _LARGEST)
    sums = _block_sums(np.where(wild, 0.0, rows), offsets, scratch)
    owners = np.searchsorted(offsets, np.flatnonzero(wild.any(axis=1)), side="right") - 1
    for user in np.unique(owners):
        held = rows[offsets[user] : offsets[user + 1]]
        sums[user] = [exact_sum(column) for column in held.T]
    return sums


def _largest(rows: Floats) -> Floats:
    """Return the largest absolute value of each column; NaN where there is one."""
    width = rows.shape[1]
    whole = len(rows) // 64 * 64
    # Rows are read 64 at a time, so that the machine sees long vectors.
    long = rows[:whole].reshape(-1, 64 * width)
    ends = np.maximum(long.max(axis=0, initial=0.0), -long.min(axis=0, initial=0.0))
    rest = np.abs(rows[whole:]).max(axis=0, initial=0.0)
    return np.asarray(np.maximum(ends.reshape(64, width).max(axis=0), rest))


def _rounded(
    highs: Floats, middles: Floats, lows: Floats, error: Floats
) -> tuple[Floats, NDArray[np.bool_]]:
    """Return the sum of three parts, and where it is surely right if ``lows`` errs by ``error``."""
    total = highs + middles
    from_middles = total - highs
    cut = (highs - (total - from_middles)) + (middles - from_middles)
    rest = cut + lows
    error = error + np.where((cut == 0) | (lows == 0), 0.0, np.abs(rest) * 2.0**-52)
    above, below = total + (rest + error), total + (rest - error)
    return above, above == below
