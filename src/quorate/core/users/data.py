"""The records of many users, grouped by user.

Data enter Quorate only as :class:`UserData` (or another crowd), so that no algorithm can mistake a
row for a person. Rows are not reordered until an algorithm needs them sorted by user; sums and
means per user are computed in one pass over the table in its original order.

The schema, the unit and, under ``Relation.REPLACE``, the number of users are public. The number of
records of a user is *private*: ``n_records``, ``offsets`` and ``record_counts`` are inputs of
mechanisms, not outputs, and are never printed. ``n_users`` is not printed either, because the data
do not know under which relation they will be used.

These are the public rules; none of them raises because of a value:

* a record without a user id is dropped;
* a feature that is null, NaN or infinite is missing: ``missing="drop"`` drops the record,
  ``missing=0.0`` replaces the value by that number; a record without a target is always dropped;
* a user whose records were all dropped is still a user, without records;
* an empty table is a data set of zero users. Under add/remove it is a neighbour of every data set
  of one user, so it is not an error.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, Self, cast

import numpy as np
from numpy.typing import ArrayLike, NDArray

from quorate import _validate
from quorate._validate import readonly
from quorate.core.users import grouping
from quorate.core.users.crowd import Crowd, Integers, Result, arguments_of
from quorate.core.users.own_order import without_signs_of_zero
from quorate.core.users.store import RecordStore, Rows, offsets_of
from quorate.data.sources import TableSources
from quorate.exceptions import ParameterError, SchemaError

__all__ = ["UserData", "named_users", "numbered_records", "numbered_users", "ordered_users"]

# Records of a batch: bounds the memory that a statistic needs beside the data.
_BATCH_RECORDS = 2**20


class UserData(TableSources, Crowd):
    """The records of n users.

    Built by :meth:`from_arrays`, :meth:`from_frame`, :meth:`from_parquet` or :meth:`from_csv`; the
    constructor takes records that are already sorted by user and have no missing values.

    Parameters
    ----------
    X : array of shape (N, d)
        Features, with the records of each user next to each other.
    y : array of shape (N,), optional
        Targets.
    offsets : array of shape (n + 1,)
        The records of user i are ``X[offsets[i]:offsets[i + 1]]``.
    unit : str, default="user"
        The word for the protected unit: "patient", "person x day".
    feature_names : sequence of str, optional
    ids : array-like of shape (n,), optional
        A different id for each user. Public choices about a user (:meth:`cap`, :meth:`split`,
        :meth:`public_draws`) depend on the id and the seed alone. Without ids they depend on random
        numbers that every user gets here, and that differ in every new object. (The index of a user
        would not be suitable: when the first user leaves, all other indices change.)

    Examples
    --------
    >>> people = UserData.from_arrays([[1.0], [5.0], [3.0]], users=["ann", "bob", "ann"])
    >>> people
    UserData(n_features=1, target=False, unit='user')
    >>> people.user_means()
    array([[2.],
           [5.]])
    """

    def _set(
        self,
        store: RecordStore,
        offsets: NDArray[np.int64],
        keys: NDArray[np.uint64],
        unit: str,
        names: tuple[str, ...] | None,
    ) -> UserData:
        if not (isinstance(unit, str) and unit.strip()):
            raise ParameterError(f"Expected unit to be a word for a person, got unit={unit!r}.")
        if names is not None and len(names) != store.rows.shape[1]:
            raise SchemaError(f"Expected a name for each feature, got {len(names)} names.")
        self._store, self._offsets, self._keys = store, readonly(offsets), keys
        self._unit, self._names = unit, names
        return self

    def _derived(
        self, store: RecordStore, offsets: NDArray[np.int64], keys: NDArray[np.uint64]
    ) -> Self:
        """Return a copy with other records and the same columns."""
        made = UserData.__new__(UserData)._set(store, offsets, keys, self._unit, self._names)
        return cast("Self", made)

    @property
    def n_users(self) -> int:
        """Number of users; public under ``Relation.REPLACE``, private under add/remove."""
        return len(self._keys)

    @property
    def is_empty(self) -> bool:
        """Whether there are no users; public if the number of users is."""
        return not len(self._keys)

    @property
    def n_features(self) -> int:
        """Number of features; public."""
        return int(self._store.rows.shape[1])

    @property
    def n_records(self) -> int:
        """Number of records. It is private: release it only through a mechanism."""
        return len(self._store.rows)

    @property
    def unit(self) -> str:
        """The word for the protected unit; it is part of the guarantee."""
        return self._unit

    @property
    def feature_names(self) -> tuple[str, ...] | None:
        """Names of the features, if the table had any; public."""
        return self._names

    @property
    def has_target(self) -> bool:
        """Whether there are targets; public."""
        return self._store.targets is not None

    @property
    def X(self) -> NDArray[np.float64]:
        """Features, user by user.

        They are private and finite, and are sorted by user at the first use.
        """
        return readonly(self._ordered().lying().rows)

    @property
    def y(self) -> NDArray[np.float64] | None:
        """Targets in the order of ``X``, or None. Private."""
        targets = self._by_user().targets if self.has_target else None
        return None if targets is None else readonly(targets)

    @property
    def offsets(self) -> NDArray[np.int64]:
        """Where the records of each user begin in ``X``, and the end. Private."""
        return self._offsets

    def record_counts(self) -> NDArray[np.int64]:
        """Return how many records each user has. Private."""
        return np.diff(self._offsets)

    @property
    def marks(self) -> NDArray[np.int64] | None:
        """The rank of each row of ``X`` in its user's ``order=``, or None. Private."""
        return self._by_user().marks

    def user_index(self) -> NDArray[Any]:
        """Return the index of the user of each row of ``X``."""
        numbers = np.arange(self.n_users, dtype=grouping.index_type(self.n_users))
        return np.repeat(numbers, self.record_counts())

    def user_sums(
        self, values: ArrayLike | None = None, *, weights: ArrayLike | None = None
    ) -> NDArray[np.float64]:
        """Add up the rows of ``values`` user by user, each times its weight.

        The sum of a user depends neither on the order in which the user's records arrived nor on
        other users; see :mod:`quorate.core.users.store`.

        Parameters
        ----------
        values : array of shape (N, k), default=the features
            One row per record, in the order of ``X``.
        weights : array of shape (N,), optional
            One number per record, in the order of ``X``.

        Examples
        --------
        >>> people = UserData.from_arrays([[1.0], [5.0], [3.0]], users=[4, 9, 4])
        >>> people.user_sums(weights=[1.0, 2.0, 1.0])
        array([[7.],
               [5.]])
        """
        if values is None and weights is None:
            return self._store.own_sums(self._offsets)
        rows = self.X if values is None else np.ascontiguousarray(values, dtype=np.float64)
        factors = None if weights is None else np.asarray(weights, dtype=np.float64)
        if rows.ndim != 2 or len(rows) != self.n_records:
            raise SchemaError("Expected values of shape (records, k), one row per record.")
        if factors is not None and factors.shape != (self.n_records,):
            raise SchemaError("Expected weights of shape (records,), one number per record.")
        return self._by_user().sums(self._offsets, rows, factors)

    def order_of_addition(self) -> NDArray[Any]:
        """Return the rows of ``X`` by user, in an order that does not depend on the input order."""
        return self._by_user().order(self._offsets)

    def user_means(self) -> NDArray[np.float64]:
        """Return the mean record of each user.

        It is NaN without records; a grid replaces NaN by its centre.
        """
        with np.errstate(all="ignore"):
            return self.user_sums() / self.record_counts()[:, None]

    def with_records(self, places: NDArray[Any], counts: NDArray[np.int64]) -> Self:
        """Return the same users with the rows of ``X`` at these indices."""
        store = self._store.gather(places, n_users=self.n_users)
        return self._derived(store, offsets_of(counts), self._keys)

    def with_plain_zeros(self) -> Self:
        """Return the same records with -0.0 replaced by 0.0."""
        rows, targets = without_signs_of_zero(self.X), self.y
        targets = None if targets is None else without_signs_of_zero(targets)
        return self._derived(self._ordered().changed(rows, targets), self._offsets, self._keys)

    def map(self, work: Callable[..., Result], each: Sequence[Any] | None = None) -> list[Result]:
        """Return ``[work(self)]``, because all users in memory are one part."""
        return [work(self) if each is None else work(self, *arguments_of(each)[0])]

    def derive(
        self,
        change: Callable[..., UserData],
        each: Sequence[Any] | None = None,
        *,
        keep: bool = False,
    ) -> Self:
        """Return ``change(self)``, computed at once."""
        del keep
        (changed,) = self.map(change, each)
        return cast("Self", changed)

    def add_up(self, work: Callable[[UserData], Integers], *, whole: bool = False) -> Integers:
        """Return the sum of the integers that ``work`` returns for whole users.

        The users are divided into batches, which limits the memory that ``work`` needs.
        """
        if whole or self.n_records <= _BATCH_RECORDS:
            return work(self)
        return sum(map(work, self.batches(_BATCH_RECORDS)), start=work(self.nobody()))

    def nobody(self) -> UserData:
        """Return an empty data set with the same description."""
        return self.take(np.empty(0, np.int64))

    def joined(self, parts: Sequence[UserData]) -> UserData:
        """Return these users and those of several parts, one part after the other.

        >>> people = UserData.from_arrays([[1.0], [5.0]], users=["ann", "bob"])
        >>> people.take([]).joined([people.take([1]), people.take([0])]).X.ravel()
        array([5., 1.])
        """
        every = [self, *parts]
        targets = [part.y for part in every if part.y is not None]
        # An order counts if everybody has one; who brings no record has any.
        held = [part for part in every if part.n_records]
        marks = [part.marks for part in held if part.marks is not None]
        return ordered_users(
            np.concatenate([part.X for part in every]),
            np.concatenate(targets) if targets else None,
            offsets_of(np.concatenate([part.record_counts() for part in every])),
            np.concatenate([part.keys() for part in every]),
            self.unit,
            self.feature_names,
            np.concatenate(marks) if marks and len(marks) == len(held) else None,
        )

    def keys(self) -> NDArray[np.uint64]:
        """Return the key of each user: a function of the id alone."""
        return self._keys

    in_order = property(lambda self: self._store.codes is None, doc="Whether users lie in order.")

    def with_keys(self, keys: NDArray[np.uint64]) -> Self:
        """Return the same users under the keys of the crowd from which they were derived."""
        if len(keys) != self.n_users:
            raise SchemaError("Expected a key for each user, got another number of them.")
        return self._derived(self._store, self._offsets, keys)

    def take_ranked(self, ranks: NDArray[np.int64]) -> Self:
        """Return the users with these indices in the order of their keys."""
        return self.take(np.argsort(self._keys, kind="stable")[ranks])

    def take(self, user_indices: ArrayLike) -> Self:
        """Return the users with these indices, in this order; nobody may be taken twice.

        >>> UserData.from_arrays([[1.0], [5.0]], users=[4, 9]).take([1]).X
        array([[5.]])
        """
        users = np.asarray(user_indices)
        if users.size == 0:
            users = users.astype(np.int64)
        _validate.integer_dtype(user_indices=users.dtype)
        if users.ndim != 1 or np.any(users < 0) or np.any(users >= self.n_users):
            raise ParameterError("Expected numbers of users from 0 to n_users - 1.")
        if len(np.unique(users)) < len(users):
            raise ParameterError("Expected every user at most once, got some user_indices twice.")
        counts = self.record_counts()[users]
        places = grouping.ranges(self._offsets[users], counts)
        return self._derived(
            self._store.gather(places, n_users=self.n_users), offsets_of(counts), self._keys[users]
        )

    def batches(
        self, max_records: int | None = None, *, users: int | None = None
    ) -> Iterator[UserData]:
        """Yield views of whole users, at most this many records or users each.

        A user with more than ``max_records`` records is a batch alone.

        >>> people = UserData.from_arrays(np.arange(6.0), users=[0, 0, 0, 1, 1, 2])
        >>> [part.n_users for part in people.batches(3)]
        [1, 2]
        """
        if (max_records is None) == (users is None):
            raise ParameterError("Expected either max_records or users, got both or neither.")
        _validate.positive_integer(size=max_records if users is None else users)
        start = 0
        while start < self.n_users:
            stop = start + (users or 0)
            if max_records is not None:
                reach = self._offsets[start] + max_records
                stop = int(np.searchsorted(self._offsets, reach, side="right")) - 1
            stop = min(max(stop, start + 1), self.n_users)
            part = slice(self._offsets[start], self._offsets[stop])
            store = self._ordered().part(part, self._offsets)
            offsets = self._offsets[start : stop + 1] - self._offsets[start]
            yield self._derived(store, offsets, self._keys[start:stop])
            start = stop

    def __repr__(self) -> str:
        # Without n_users, which is private under addition and removal.
        return (
            f"UserData(n_features={self.n_features}, target={self.has_target}, unit={self._unit!r})"
        )

    def _by_user(self) -> RecordStore:
        """Return the records sorted by user; the copy may still be deferred."""
        return self._ordered() if self._store.codes is not None else self._store

    def _ordered(self) -> RecordStore:
        """Return the records sorted by user, and store them in this order."""
        store = self._store
        if store.codes is not None:
            store = store.gather(np.arange(self.n_records), n_users=self.n_users)
        # Replaced as a whole: other threads see either the old order or the new one.
        self._store = store = store.wide()
        return store


def numbered_users(
    rows: Rows,
    targets: NDArray[np.float64] | None,
    codes: NDArray[Any],
    keys: NDArray[np.uint64],
    unit: str,
    names: tuple[str, ...] | None,
    marks: NDArray[np.int64] | None = None,
) -> UserData:
    """Return users with given numbers and keys; no value may be missing.

    >>> keys = np.array([7, 9], dtype=np.uint64)
    >>> numbered_users(np.ones((3, 1)), None, np.array([1, 0, 1]), keys, "user", None).X.shape
    (3, 1)
    """
    store = RecordStore.numbered(rows, targets, codes, marks)
    if store.codes is None:  # numbers that lie in order need not be counted
        offsets = np.searchsorted(codes, np.arange(len(keys) + 1, dtype=codes.dtype))
    else:
        offsets = offsets_of(np.bincount(codes, minlength=len(keys)))
    return UserData.__new__(UserData)._set(store, offsets, keys, unit, names)


def ordered_users(
    rows: Rows,
    targets: NDArray[np.float64] | None,
    offsets: NDArray[np.int64],
    keys: NDArray[np.uint64],
    unit: str,
    names: tuple[str, ...] | None,
    marks: NDArray[np.int64] | None = None,
) -> UserData:
    """Return users whose records are already sorted, under their keys.

    >>> keys = np.array([7, 9], dtype=np.uint64)
    >>> ordered_users(np.ones((3, 1)), None, np.array([0, 1, 3]), keys, "user", None).n_users
    2
    """
    store = RecordStore(rows, targets, None, marks=marks)
    return UserData.__new__(UserData)._set(store, offsets, keys, unit, names)


def named_users(users: UserData, names: tuple[str, ...] | None) -> UserData:
    """Return the same users with other feature names.

    >>> named_users(UserData([[1.0]], offsets=[0, 1]), ("age",)).feature_names
    ('age',)
    """
    return UserData.__new__(UserData)._set(
        users._store, users.offsets, users.keys(), users.unit, names
    )


def numbered_records(data: UserData) -> tuple[NDArray[np.float64], NDArray[Any]]:
    """Return the records in their stored order, with the index of each one's user.

    It is for computations that do not depend on the order of a user's records, such as exact sums.

    >>> people = UserData.from_arrays([[1.0], [5.0], [3.0]], users=["ann", "bob", "ann"])
    >>> rows, numbers = numbered_records(people)
    >>> rows.ravel().tolist(), numbers.tolist()
    ([1.0, 5.0, 3.0], [0, 1, 0])
    """
    store = data._store.wide().lying()
    return store.rows, data.user_index() if store.codes is None else store.codes
