"""Arrays of users' records: sorting by user, index ranges, and mixing of words."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["group_by_user", "index_type", "mix", "order_by_user", "ranges"]

Words = NDArray[np.uint64]
Places = NDArray[np.int64]


def mix(words: Words) -> Words:
    """Scramble 64-bit words by a bijection; for public choices only.

    It is the finalizer of SplitMix64 (Steele, Lea, Flood. Fast splittable pseudorandom number
    generators. OOPSLA 2014).

    >>> len(set(mix(np.arange(1000, dtype=np.uint64)).tolist()))
    1000
    """
    words = words + np.uint64(0x9E3779B97F4A7C15)
    words = (words ^ (words >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    words = (words ^ (words >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return words ^ (words >> np.uint64(31))


def order_by_user(codes: NDArray[Any], n_users: int) -> NDArray[Any]:
    """Return the row numbers sorted by user, in their old order within each user.

    It is a counting sort: transposing a sparse matrix with one entry per row does it in one pass.

    >>> order_by_user(np.array([1, 0, 1, 0], dtype=np.int32), 2)
    array([1, 3, 0, 2], dtype=int32)
    """
    from scipy import sparse

    entries = (
        np.ones(len(codes), np.int8),
        codes,
        np.arange(len(codes) + 1, dtype=index_type(len(codes) + 1)),
    )
    order: NDArray[Any] = sparse.csr_array(entries, shape=(len(codes), n_users)).tocsc().indices
    return order


def ranges(starts: Places, counts: Places) -> Places:
    """Return ``counts[i]`` consecutive numbers from each ``starts[i]``, in one array.

    >>> ranges(np.array([10, 0]), np.array([2, 3]))
    array([10, 11,  0,  1,  2])
    """
    shifts = starts - (np.cumsum(counts) - counts)
    return np.repeat(shifts, counts) + np.arange(int(counts.sum()))


def index_type(size: int) -> type[np.signedinteger[Any]]:
    """Return the smallest integer type that can index this many items.

    >>> index_type(7).__name__, index_type(2**31).__name__
    ('int32', 'int64')
    """
    return np.int32 if size < 2**31 else np.int64


def group_by_user(user: NDArray[np.int64], *, n_users: int) -> NDArray[np.intp]:
    """Return the stable order that brings the entries of each user together.

    >>> group_by_user(np.array([1, 0, 1, 0]), n_users=2)
    array([1, 3, 0, 2])
    """
    # numpy sorts 16-bit integers by radix, in linear time.
    order: NDArray[np.intp] = np.argsort((user & 0xFFFF).astype(np.uint16), kind="stable")
    for shift in range(16, max(16, n_users.bit_length()), 16):
        digit = ((user[order] >> shift) & 0xFFFF).astype(np.uint16)
        order = order[np.argsort(digit, kind="stable")]
    return order
