"""Users put together by engines, which number them by their keys."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from quorate.users.data import UserData
from quorate.users.store import RecordStore, Rows, offsets_of

__all__ = [
    "joined_users",
    "named_users",
    "numbered_records",
    "numbered_users",
    "ordered_users",
    "records_at",
    "rounded_users",
    "settled_users",
]

Floats = NDArray[np.float64]


def numbered_users(
    rows: Rows,
    targets: NDArray[np.float64] | None,
    codes: NDArray[Any],
    keys: NDArray[np.uint64],
    unit: str,
    names: tuple[str, ...] | None,
) -> UserData:
    """Return the records of users who have numbers and keys already; nothing is missing.

    >>> keys = np.array([7, 9], dtype=np.uint64)
    >>> numbered_users(np.ones((3, 1)), None, np.array([1, 0, 1]), keys, "user", None).X.shape
    (3, 1)
    """
    offsets = offsets_of(np.bincount(codes, minlength=len(keys)))
    store = RecordStore.numbered(rows, targets, codes)
    return UserData.__new__(UserData)._set(store, offsets, keys, unit, names)


def ordered_users(
    rows: Rows,
    targets: NDArray[np.float64] | None,
    offsets: NDArray[np.int64],
    keys: NDArray[np.uint64],
    unit: str,
    names: tuple[str, ...] | None,
) -> UserData:
    """Return the records of users who lie one after the other, under their keys.

    >>> keys = np.array([7, 9], dtype=np.uint64)
    >>> ordered_users(np.ones((3, 1)), None, np.array([0, 1, 3]), keys, "user", None).n_users
    2
    """
    store = RecordStore(rows, targets, None)
    return UserData.__new__(UserData)._set(store, offsets, keys, unit, names)


def settled_users(
    users: UserData,
    rows: Callable[[Floats, Floats | None], Floats] | None,
    targets: Callable[[Floats], Floats],
    *,
    by_count: bool = False,
) -> UserData:
    """Return users whose records were changed, one by one, and lie as they are added up.

    The order is that of the records before the change. Many passes over the records are quicker for
    it, by more than the one copy takes. ``rows`` is also told where the changed rows may be
    written: over a copy that was made for the order, or ``None`` if the records are the caller's.
    Where ``rows`` is ``None`` they stay as they are, and are copied when all are asked for. With
    ``by_count`` those who hold equally many records lie side by side, under their keys, so that one
    call may see to them.

    >>> people = UserData.from_arrays([[3.0], [1.0], [2.0], [9.0]], users=[0, 0, 0, 1])
    >>> halved = settled_users(people, lambda rows, out: np.divide(rows, 2, out=out), np.copy)
    >>> halved.user_sums().ravel()
    array([3. , 4.5])
    >>> halved.order_of_addition()
    array([0, 1, 2, 3], dtype=int32)
    """
    counts, ranks = users.record_counts(), None
    if by_count and np.any(counts[1:] < counts[:-1]):
        ranks = np.argsort(counts, kind="stable")
    store = users._store.settled(users.offsets, ranks)
    offsets, keys = users.offsets, users.keys()
    if ranks is not None:
        offsets, keys = offsets_of(counts[ranks]), keys[ranks]
    told = None if store.targets is None else targets(store.targets)
    if rows is None:
        store = replace(store, targets=told)
    else:
        whole = store.wide().rows
        room = None if np.may_share_memory(whole, users._store.rows) else whole
        store = store.changed(rows(whole, room), told)
    return UserData.__new__(UserData)._set(store, offsets, keys, users.unit, users.feature_names)


def records_at(users: UserData, places: NDArray[Any] | slice) -> Rows:
    """Return the records at these places of :attr:`UserData.X`, wherever they lie.

    >>> records_at(UserData([[1.0], [3.0]], offsets=[0, 1, 2]), slice(1, 2))
    array([[3.]])
    """
    return users._by_user().some(places)


def rounded_users(users: UserData, rows: NDArray[np.float32]) -> UserData:
    """Return users with other records, of 32 bits, in the places of theirs.

    They are added up in the order of the records before, and :attr:`UserData.X` has 32 bits too.

    >>> people = UserData([[1.0], [3.0]], offsets=[0, 1, 2])
    >>> rounded_users(people, np.float32([[0.1], [0.3]])).X.dtype
    dtype('float32')
    """
    store = users._by_user()
    store.order(users.offsets)
    return UserData.__new__(UserData)._set(
        store.rounded(rows), users.offsets, users.keys(), users.unit, users.feature_names
    )


def named_users(users: UserData, names: tuple[str, ...] | None) -> UserData:
    """Return the same users with other names of their features.

    >>> named_users(UserData([[1.0]], offsets=[0, 1]), ("age",)).feature_names
    ('age',)
    """
    return UserData.__new__(UserData)._set(
        users._store, users.offsets, users.keys(), users.unit, names
    )


def numbered_records(data: UserData) -> tuple[NDArray[np.float64], NDArray[Any]]:
    """Return the records as they lie and the number of each one's user; nothing is put in order.

    For what does not ask in which order a user's records stand, such as exact sums of integers.

    >>> people = UserData.from_arrays([[1.0], [5.0], [3.0]], users=["ann", "bob", "ann"])
    >>> rows, numbers = numbered_records(people)
    >>> rows.ravel().tolist(), numbers.tolist()
    ([1.0, 5.0, 3.0], [0, 1, 0])
    """
    store = data._store.wide()
    return store.rows, data.user_index() if store.codes is None else store.codes


def joined_users(parts: Sequence[UserData], nobody: UserData) -> UserData:
    """Return the users of several parts, one part after the other.

    >>> people = UserData.from_arrays([[1.0], [5.0]], users=["ann", "bob"])
    >>> joined_users([people.take([1]), people.take([0])], people.take([])).X.ravel()
    array([5., 1.])
    """
    every = [nobody, *parts]
    targets = [part.y for part in every if part.y is not None]
    return ordered_users(
        np.concatenate([part.X for part in every]),
        np.concatenate(targets) if targets else None,
        offsets_of(np.concatenate([part.record_counts() for part in every])),
        np.concatenate([part.keys() for part in every]),
        nobody.unit,
        nobody.feature_names,
    )
