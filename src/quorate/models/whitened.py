"""Records in released coordinates, where the steps of a descent find them.

Steps pass over all records again and again. Turned once into the coordinates of the geometry, they
need no turning of gradients at each step; and around their centre, in units of their spread, 32
bits say all that noise leaves to be said, in half the memory and half the time. What a user holds
there follows from the user's own records and released numbers alone.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from quorate.arrays import minus_row
from quorate.models.losses import by_products
from quorate.users import UserData
from quorate.users.assembly import is_settled, records_at, rounded_users

__all__ = [
    "AlikeUsers",
    "Centred",
    "Room",
    "Whitened",
    "alike_users",
    "in_one_thread",
    "multiplied",
]

Vector = NDArray[np.float64]
# Numbers that are multiplied at once: they stay in the cache.
_BLOCK = 2**17
# Products of numbers up to which BLAS takes one thread for a product of matrices: how it shares out
# a larger one depends on how many threads there are.
_ONE_THREAD = 2**18


class Room:
    """Memory for one block after another; it stays in the cache.

    >>> room = Room()
    >>> np.shares_memory(room.like((2, 3)), room.like((4,)))
    True
    """

    def __init__(self, dtype: type[np.floating[Any]] = np.float64) -> None:
        self._numbers = np.empty(0, dtype=dtype)

    def like(self, shape: tuple[int, ...]) -> NDArray[Any]:
        """Return an array of this shape, in place of the last one."""
        size = math.prod(shape)
        if self._numbers.size < size:
            self._numbers = np.empty(size, dtype=self._numbers.dtype)
        return self._numbers[:size].reshape(shape)


def in_one_thread(rows: int, size: int) -> Iterator[slice]:
    """Yield parts of so many rows that a product of each takes one thread; ``size`` a row.

    >>> list(in_one_thread(3, 2**17))
    [slice(0, 2, None), slice(2, 4, None)]
    """
    few = max(1, _ONE_THREAD // max(1, size))
    for start in range(0, rows, few):
        yield slice(start, start + few)


def multiplied(left: NDArray[Any], right: NDArray[Any], *, out: NDArray[Any]) -> NDArray[Any]:
    """Return ``left @ right`` user by user, of one with many rows share by share.

    >>> multiplied(np.ones((2, 3, 1)), np.ones((1, 1)), out=np.empty((2, 3, 1))).shape
    (2, 3, 1)
    """
    for some in in_one_thread(left.shape[-2], right.shape[-2] * right.shape[-1]):
        np.matmul(left[..., some, :], right, out=out[..., some, :])
    return out


class AlikeUsers(NamedTuple):
    """Users with equally many records: which they are, and the places of their records."""

    owners: NDArray[np.int64] | slice
    records: NDArray[np.int64] | slice


def alike_users(users: UserData, room: Room | None = None) -> Iterator[tuple[AlikeUsers, Vector]]:
    """Yield users with as many records each and their records, (users, records, features).

    Users who lie side by side, their records as they are added up, are seen where they lie; of
    others ``room`` holds a copy until the next ones come.

    >>> people = UserData(np.zeros((4, 1)), offsets=[0, 1, 3, 4])
    >>> [(alike.owners, held.shape) for alike, held in alike_users(people)]
    [(array([0, 2]), (2, 1, 1)), (slice(1, 2, None), (1, 2, 1))]
    """
    order, counts = users.order_of_addition(), users.record_counts()
    make = None if room is None else room.like
    settled = bool(np.all(order[1:] > order[:-1]))
    by_count = np.argsort(counts, kind="stable")
    numbers, firsts = np.unique(counts[by_count], return_index=True)
    bounds = pairwise([*firsts.tolist(), len(by_count)])
    for m, (begin, end) in zip(numbers.tolist(), bounds, strict=True):
        group = by_count[begin:end]
        few = max(1, _BLOCK // max(1, m * users.n_features))
        for start in range(0, len(group) if m else 0, few):
            owners = group[start : start + few]
            first, last = int(owners[0]), int(owners[-1]) + 1
            if settled and last - first == len(owners):
                records = slice(int(users.offsets[first]), int(users.offsets[last]))
                held = records_at(users, records, make).reshape(len(owners), m, -1)
                yield AlikeUsers(slice(first, last), records), held
            else:
                places = order.take(users.offsets[owners, np.newaxis] + np.arange(m))
                yield AlikeUsers(owners, places.ravel()), records_at(users, places, make)


def _lie_by_count(users: UserData) -> bool:
    """Whether records were laid as they are added up, and users lie by how many they hold."""
    counts = users.record_counts()
    return is_settled(users) and bool(np.all(counts[1:] >= counts[:-1]))


@dataclass(frozen=True)
class Centred:
    """The same users with the records x - centre, in 32 bits.

    That is enough where noise hides what is a thousand times smaller than the largest spread, and
    saves the later passes half of the time.

    Examples
    --------
    >>> people = UserData([[2.0], [5.0]], offsets=[0, 1, 2])
    >>> Centred(np.array([1.0]))(people).X
    array([[1.],
           [4.]], dtype=float32)
    """

    centre: Vector

    def __call__(self, users: UserData) -> UserData:
        """Return the users, as many numbers as before."""
        whole, room = np.empty((users.n_records, users.n_features), dtype=np.float32), Room()
        with np.errstate(all="ignore"):  # a warning about an overflow would tell of a value
            for alike, held in alike_users(users, room):
                own = np.ascontiguousarray(held)
                centred = minus_row(own, self.centre, room.like(held.shape))
                whole[alike.records] = centred.reshape(-1, users.n_features)
        return rounded_users(users, whole)


@dataclass(frozen=True)
class Whitened:
    """The same users with the records ``whitening @ (x - centre)``, in 32 bits.

    Where a user's gradient is a product over all of the user's records, their numbers lie feature
    by feature, which such products pass over in four fifths of the time.

    ``whitening`` is a symmetric matrix, or a number if it is the same in all directions. With
    ``centre=None`` users are :class:`Centred` already; they are turned in 32 bits and where they
    lie, so that nobody else may hold them.
    ``by_count`` is told of users who were laid by how many records they hold, a public fact: that
    they happen to lie so would follow from everybody's records, and how numbers lie decides the
    last bits of products.

    Examples
    --------
    >>> people = UserData([[2.0], [5.0]], [0.0, 1.0], offsets=[0, 1, 2])
    >>> Whitened(np.array([1.0]), np.array([[2.0]]))(people).X
    array([[2.],
           [8.]], dtype=float32)
    """

    centre: Vector | None
    whitening: Vector
    by_count: bool = False

    def __call__(self, users: UserData) -> UserData:
        """Return the users, each of whom is turned on their own."""
        features = users.n_features
        if self.centre is None:
            whole = records_at(users, slice(None))
        else:
            whole = np.empty((users.n_records, features), np.float32)
        standing: list[tuple[int, int, int]] = []
        upright = self.by_count and _lie_by_count(users)
        with np.errstate(all="ignore"):  # a warning about an overflow would tell of a value
            for records, turned in self._blocks(users, upright=upright):
                held = turned.shape[1]
                if upright and isinstance(records, slice) and by_products(held, features):
                    into = whole[records].reshape(-1, features, held)
                    into[...] = turned.transpose(0, 2, 1)
                    standing.append((records.start, records.stop, held))
                else:
                    whole[records] = turned.reshape(-1, features)
        return rounded_users(users, whole, tuple(standing))

    def _blocks(
        self, users: UserData, *, upright: bool = False
    ) -> Iterator[tuple[NDArray[np.int64] | slice, NDArray[Any]]]:
        """Yield the places of records and the turned ones, before they are rounded.

        Those of ``upright`` users whose gradients are products lie feature by feature.
        """
        dtype = np.float32 if self.centre is None else np.float64
        before, after, whitening = Room(dtype), Room(dtype), self.whitening.astype(dtype)
        for alike, held in alike_users(users, before):
            centred = np.ascontiguousarray(held)
            if self.centre is not None:
                centred = minus_row(centred, self.centre, before.like(held.shape))
            people, many, features = held.shape
            if upright and by_products(many, features):
                turned = after.like((people, features, many)).transpose(0, 2, 1)
            else:
                turned = after.like(held.shape)
            if whitening.ndim:
                multiplied(centred, whitening, out=turned)
            else:
                np.multiply(centred, whitening, out=turned)
            yield alike.records, turned
