"""The order of a user's records that no arrival can change: that of a hash of what they hold.

Sums of floats depend on the order of their terms. Where users hold several records, these are
ordered by a 64-bit hash of their numbers, each user's by itself: records that are equal may change
places, and nothing else may. Users are sorted side by side, by leading bits of the hash; who holds
different records that meet there is seen to by the whole hash, and then by a second one.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from quorate.users.grouping import index_type, mix, order_by_user, ranges

__all__ = ["order_by_hash"]

Floats = NDArray[np.float64]
Rows = NDArray[Any]
_ODD = np.uint64(1)
_BITS = 64
_MINUS_ZERO = np.iinfo(np.int64).min  # the bits of -0.0 as an integer
# Numbers sorted at once, and hashed, which fit into a processor's cache.
_BLOCK, _HASHED = 1 << 16, 1 << 18


def order_by_hash(
    rows: Rows, targets: Floats | None, offsets: NDArray[np.int64], codes: NDArray[Any] | None
) -> NDArray[Any]:
    """Return the places of the rows, user by user, each user's in the order of their hashes.

    Parameters as of :func:`~quorate.users.store.order_of_addition`.

    >>> rows, offsets = np.array([[3.0], [1.0], [2.0]]), np.array([0, 3])
    >>> order, turned = (order_by_hash(each, None, offsets, None) for each in (rows, rows[::-1]))
    >>> bool((rows[order] == rows[::-1][turned]).all())
    True
    """
    counts = np.diff(offsets)
    owners = np.repeat(np.arange(len(counts)), counts) if codes is None else codes
    hashes = _hashes(rows, targets)
    if codes is None:
        order, close = _by_hash(hashes, offsets)
    else:
        lying = order_by_user(owners, len(counts))
        order, close = _by_hash(hashes[lying], offsets)
        order = lying[order]
    # Records with one key: mostly equal ones, which may change places.
    close = close[~_same_records(rows, targets, order[close], order[close + 1])]
    if close.size:
        _tell_apart(rows, targets, order, close, hashes, owners, offsets)
    return order


def _tell_apart(
    rows: Rows,
    targets: Floats | None,
    order: NDArray[Any],
    close: NDArray[np.int64],
    hashes: NDArray[np.uint64],
    owners: NDArray[Any],
    offsets: NDArray[np.int64],
) -> None:
    """Put the records of those users right who hold different ones that meet in the sorted bits.

    Where they share the whole hash, all records of that user are ordered by a second one. Records
    that share both were made to, and lie as they came: a stable sort leaves them so, whoever else
    is there.
    """
    users = np.unique(owners[order[close]])
    places = ranges(offsets[users], np.diff(offsets)[users])
    held = order[places]
    held = held[np.lexsort((held, owners[held]))]  # as they came
    own, told = owners[held], hashes[held]
    by_hash = np.lexsort((told, own))
    first, second = by_hash[:-1], by_hash[1:]
    meet = np.flatnonzero((told[first] == told[second]) & (own[first] == own[second]))
    meet = meet[~_same_records(rows, targets, held[first[meet]], held[second[meet]])]
    if meet.size:
        again = np.isin(own, own[first[meet]])
        few = None if targets is None else targets[held[again]]
        told[again] = _hashes(rows[held[again]], few, of=_folded)
    order[places] = held[np.lexsort((told, own))]


def _by_hash(
    hashes: NDArray[np.uint64], offsets: NDArray[np.int64]
) -> tuple[NDArray[Any], NDArray[np.int64]]:
    """Return the places by leading bits of the hash, user by user; where two share these.

    Users lie one after the other. Many short sorts, of words that end in their place among the
    user's: a third of the time of one sort of everybody's, and no places to sort along.
    """
    counts = np.diff(offsets)
    tail = int(counts.max()).bit_length()
    last = np.uint64((1 << tail) - 1)
    starts = np.repeat(offsets[:-1].astype(index_type(len(hashes))), counts)
    words = hashes & ~last
    words |= (np.arange(len(hashes), dtype=starts.dtype) - starts).astype(np.uint64)
    # Users whose numbers of records have as many binary digits are sorted side by side.
    digits = np.frexp(counts)[1]
    for digit in np.unique(digits[counts > 1]).tolist():
        alike = np.flatnonzero(digits == digit)
        few = max(1, _BLOCK >> digit)
        for first in range(0, len(alike), few):
            some = alike[first : first + few]
            _sort_each(words, offsets[some], counts[some])
    order = starts + (words & last).astype(starts.dtype)
    words >>= np.uint64(tail)
    return order, np.flatnonzero(words[1:] == words[:-1])


def _sort_each(
    words: NDArray[np.uint64], starts: NDArray[np.int64], counts: NDArray[np.int64]
) -> None:
    """Sort the words of each of these users, in their place."""
    begin, width = int(starts[0]), int(counts.max())
    if counts.min() == width and int(starts[-1]) - begin == (len(starts) - 1) * width:
        words[begin : begin + len(starts) * width].reshape(-1, width).sort(axis=1)
        return
    theirs = np.arange(width) < counts[:, np.newaxis]
    places = (starts[:, np.newaxis] + np.arange(width))[theirs]
    each = np.full(theirs.shape, ~np.uint64(0))
    each[theirs] = words[places]
    each.sort(axis=1)
    words[places] = each[theirs]


def _same_records(
    rows: Rows, targets: Floats | None, left: NDArray[Any], right: NDArray[Any]
) -> NDArray[np.bool_]:
    """Tell for each pair of places whether the records there are equal."""
    same = np.empty(len(left), dtype=np.bool_)
    few = _rows_at_once(rows)
    for start in range(0, len(left), few):
        one, other = left[start : start + few], right[start : start + few]
        alike = (_bits(rows[one]) == _bits(rows[other])).all(axis=1)
        if targets is not None:
            alike &= _bits(targets[one]) == _bits(targets[other])
        same[start : start + few] = alike
    return same


def _bits(values: Rows) -> NDArray[np.uint64]:
    """Return the bits of numbers; zeros are equal whatever their sign, and so is every NaN.

    Not every store keeps these apart, and no sum of finite numbers can tell them apart.
    """
    told = values.astype(np.float64, copy=False)
    # A minimum is NaN if any number is, and is found sooner than a sum.
    if told.min(initial=0.0) <= 0.0 and told.view(np.int64).min(initial=0) > _MINUS_ZERO:
        return told.view(np.uint64)
    told = np.add(told, 0.0, order="C")
    told[np.isnan(told)] = np.nan
    return told.view(np.uint64)


def _folded(values: Rows) -> NDArray[np.uint64]:
    """Return the bits with the first half of them written over the second too.

    A product moves no bit of a number to the right, and small integers have but leading bits: of
    records of such, sums of the mere bits meet.
    """
    bits = _bits(values)
    return bits ^ (bits >> np.uint64(_BITS // 2))


def _hashes(
    rows: Rows,
    targets: Floats | None,
    of: Callable[[Rows], NDArray[np.uint64]] = _bits,
) -> NDArray[np.uint64]:
    """Return one word for each row: a sum of its bits times odd numbers, modulo 2^64."""
    width = rows.shape[1]
    odd = mix(np.arange(width + 1, dtype=np.uint64)) | _ODD
    words = np.empty(len(rows), dtype=np.uint64)
    few = _rows_at_once(rows)
    for start in range(0, len(rows), few):
        part = slice(start, start + few)
        sums = np.einsum("ij,j->i", of(rows[part]), odd[:width])
        if targets is not None:
            sums += of(targets[part]) * odd[width]
        words[part] = mix(sums)
    return words


def _rows_at_once(rows: Rows) -> int:
    return max(1, _HASHED // max(1, int(rows.shape[1])))
