"""Users put together: from the columns of a table, or by engines, which number them by their keys.

A mistake must cost nothing, so it has to be found before the charge; and a look at a record must be
paid for, so nothing may be found by one. Both are kept by reading the first *zero* rows of
whatever declares a type: an empty table of the same columns raises for the same reasons as the
whole one. A list declares no type and is left alone.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from quorate.arrays import described
from quorate.exceptions import ParameterError, SchemaError
from quorate.users import grouping, tables
from quorate.users.coding import coding_of, names_given
from quorate.users.crowd import Crowd
from quorate.users.data import UserData
from quorate.users.store import RecordStore, Rows, offsets_of

__all__ = [
    "check_classes",
    "check_columns",
    "check_ids",
    "check_labels",
    "check_lengths",
    "check_targets",
    "column_names",
    "grouped_users",
    "is_settled",
    "joined_users",
    "load_users",
    "named_users",
    "numbered_records",
    "numbered_users",
    "ordered_users",
    "records_at",
    "rounded_users",
    "rows_as_they_lie",
    "settled_users",
    "without_rows",
]

Floats = NDArray[np.float64]


def without_rows(values: Any) -> Any:
    """Return the same columns without a row; None for what declares no type.

    >>> without_rows(np.zeros((5, 2))).shape, without_rows([[1.0, 2.0]])
    ((0, 2), None)
    """
    import pyarrow as pa

    if isinstance(values, pa.Array | pa.ChunkedArray | pa.Table | pa.RecordBatch):
        return values.slice(0, 0)
    declared = tables.is_frame(values) or hasattr(values, "dtype")
    if not declared or getattr(values, "ndim", 1) == 0 or not hasattr(values, "__getitem__"):
        return None
    return values[:0]


def check_ids(users: Any) -> None:
    """Refuse ids of a type that names nobody, and several columns of them.

    >>> check_ids([7, 5, 7])
    >>> check_ids(([7, 5], [1, 2]))
    Traceback (most recent call last):
        ...
    quorate.exceptions.ParameterError: 2 id columns protect a combination of 2 ids, not a user; the
    guarantee has to say so: pass UserData.from_arrays(X, y, users=..., unit='person x day').
    """
    parts = list(users) if isinstance(users, tuple) else [users]
    if isinstance(users, list) and users and grouping.is_array(users[0]):
        parts = users
    columns = 0
    for part in parts:
        empty = without_rows(part)
        if empty is not None:
            columns += grouping.group(empty).n_columns
        elif isinstance(part, list) and part and isinstance(part[0], list | tuple):
            columns += len(part[0])
        else:
            columns += 1
    if columns > 1:
        raise ParameterError(
            f"{columns} id columns protect a combination of {columns} ids, not a user; the "
            "guarantee has to say so: pass UserData.from_arrays(X, y, users=..., "
            "unit='person x day')."
        )


def check_lengths(**columns: Any) -> None:
    """Refuse columns of different lengths, as far as they tell their lengths.

    >>> check_lengths(X=np.zeros((3, 2)), users=[1, 2, 2], y=None)
    """
    lengths = {
        name: column.shape[0] if hasattr(column, "shape") else len(column)
        for name, column in columns.items()
        if getattr(column, "shape", None) or isinstance(column, list | range)
    }
    if len(set(lengths.values())) > 1:
        # How many records there are is private, so the lengths themselves are not told.
        raise SchemaError(
            "Found input variables with inconsistent numbers of samples: expected "
            f"{', '.join(lengths)} of the same length."
        )


def check_targets(y: Any, classes: Sequence[Any] | None) -> None:
    """Refuse targets of a type that cannot be read, and more than one column of them.

    >>> check_targets(np.array([0, 1]), None)
    """
    shape: tuple[int, ...] = getattr(y, "shape", ())
    if len(shape) > 2 or (len(shape) == 2 and shape[1] != 1):
        raise SchemaError("Expected one target per record, got several columns.")
    empty = without_rows(y)
    if empty is not None:
        tables.as_targets(empty, classes)
    elif classes is not None:
        tables.as_labels([], classes)


def check_classes(classes: Any) -> None:
    """Refuse anything but two different labels.

    >>> check_classes(("healthy", "ill"))
    """
    pair = isinstance(classes, Sequence) or getattr(classes, "ndim", 0) == 1
    if isinstance(classes, str | bytes) or not pair or len(classes) != 2:
        raise ParameterError(
            f"Expected classes=(negative, positive), two labels of y, got {described(classes)}."
        )
    tables.as_labels([], classes)


def check_labels(y: Any, classes: Sequence[Any]) -> None:
    """Refuse targets whose declared type cannot hold the classes.

    >>> check_labels(np.array([1, -1]), (-1, 1))
    """
    if hasattr(y, "dtype"):
        tables.as_labels(y[:0], classes)


def check_columns(X: Any, *, expected: int, single: bool = False) -> None:
    """Refuse a table with other columns than a class of rules describes, as far as it tells.

    >>> check_columns(np.zeros((5, 1)), expected=1)
    """
    shape: tuple[int, ...] = getattr(X, "shape", ())
    found = X.n_features if isinstance(X, Crowd) else None
    if found is None and len(shape) == 2:
        found = shape[1]
    if found is None and single and len(shape) == 1:
        found = 1
    if found is not None and found != expected:
        raise SchemaError(
            f"Expected {expected} features in X, got {found}; select the columns that the concept "
            "class describes."
        )


def column_names(
    user: str | Sequence[str], features: Sequence[str] | None, target: str | None
) -> list[str] | None:
    """Return the columns that are asked for, each once; None if the features are not named.

    >>> column_names("id", ["age", "size"], "age")
    ['age', 'size', 'id']
    """
    others = [*names_given(user), *([] if target is None else names_given(target))]
    return None if features is None else list(dict.fromkeys([*names_given(features), *others]))


def load_users(
    source: Any,
    *,
    user: str | Sequence[str],
    features: Sequence[str] | None = None,
    target: str | None = None,
    unit: str | None = None,
    missing: str | float = "drop",
    classes: Sequence[Any] | None = None,
    categories: Mapping[str, Sequence[Any]] | None = None,
    dates: Mapping[str, tuple[Any, Any]] | None = None,
) -> UserData:
    """Return the users of an Arrow table or dataset; parameters as in ``UserData.from_frame``.

    >>> import pyarrow as pa
    >>> table = pa.table({"id": [7, 5, 7], "age": [30.0, 61.0, 32.0]})
    >>> load_users(table, user="id")
    UserData(n_features=1, target=False, unit='id')
    """
    tables.check_missing(missing)
    columns = names_given(user)
    others = columns if target is None else [*columns, target]
    coding = coding_of(
        source.schema, features=features, others=others, categories=categories, dates=dates
    )
    read = tables.load(source, users=columns, features=features, target=target, coding=coding)
    return grouped_users(
        read.rows,
        tables.as_targets(read.target, classes),
        grouping.group(read.ids),
        missing=missing,
        unit=unit or " x ".join(columns),
        names=read.names,
    )


def grouped_users(
    rows: NDArray[np.float64],
    targets: NDArray[np.float64] | None,
    groups: grouping.Groups,
    *,
    missing: str | float,
    unit: str,
    names: tuple[str, ...] | None,
) -> UserData:
    """Return the users of rows with missing values; who holds nothing else keeps a place.

    >>> rows, groups = np.array([[1.0], [np.nan]]), grouping.group(["ann", "bob"])
    >>> people = grouped_users(rows, None, groups, missing="drop", unit="user", names=None)
    >>> people.record_counts()
    array([1, 0])
    """
    rows, targets, codes = tables.without_missing(rows, targets, groups.codes, missing)
    return numbered_users(rows, targets, codes, groups.keys, unit, names)


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


def is_settled(users: UserData) -> bool:
    """Whether users were made by :func:`settled_users`: no record decides it.

    >>> is_settled(UserData([[1.0]], offsets=[0, 1]))
    False
    """
    return users._store._is_settled


def records_at(
    users: UserData,
    places: NDArray[Any] | slice,
    room: Callable[[tuple[int, ...]], Floats] | None = None,
) -> Rows:
    """Return the records at these places of :attr:`UserData.X`, wherever they lie.

    If they have to be copied, to what ``room`` returns for their shape.

    >>> records_at(UserData([[1.0], [3.0]], offsets=[0, 1, 2]), slice(1, 2))
    array([[3.]])
    """
    return users._by_user().some(places, room)


def rows_as_they_lie(users: UserData) -> tuple[Rows, bool]:
    """Return the records, and whether some lie feature by feature (:func:`rounded_users`).

    >>> rows_as_they_lie(UserData([[1.0], [3.0]], offsets=[0, 1, 2]))[1]
    False
    """
    rows, upright = users._by_user().as_they_lie()
    return (rows, True) if upright else (users.X, False)


def rounded_users(
    users: UserData,
    rows: NDArray[np.float32],
    upright: tuple[tuple[int, int, int], ...] = (),
) -> UserData:
    """Return users with other records, of 32 bits, in the places of theirs.

    They are added up in the order of the records before, and :attr:`UserData.X` has 32 bits too.
    ``upright`` are stretches of users with equally many records, as they are added up, whose
    numbers were written feature by feature: where the stretch begins and ends, and how many
    records each of these users holds.

    >>> people = UserData([[1.0], [3.0]], offsets=[0, 1, 2])
    >>> rounded_users(people, np.float32([[0.1], [0.3]])).X.dtype
    dtype('float32')
    """
    store = users._by_user()
    store.order(users.offsets)
    return UserData.__new__(UserData)._set(
        store.rounded(rows, upright), users.offsets, users.keys(), users.unit, users.feature_names
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
    store = data._store.wide().lying()
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
