"""Records in memory, and sums over each user's records.

Floating-point addition is not associative: in another order the sum of a user's records may have
other last bits. So they are added up in the order of a hash of their contents. The sum of a user is
then, to the last bit, a function of the *set* of the user's records, and of no other user's.

Computing the order takes a sort when it is first needed (:mod:`quorate.core.users.own_order`); a
sum takes one pass. Code that passes over the records many times stores them in that order.

Numbers computed for a single record, such as its length, depend on that record alone: a matrix
product might round it depending on its position among the others.
"""

from __future__ import annotations

from collections.abc import Callable
from copy import copy
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from quorate.core.users.exact_sums import sums_in_any_order
from quorate.core.users.grouping import index_type, order_by_user, ranges
from quorate.core.users.own_order import order_by_hash

if TYPE_CHECKING:
    from quorate.core.users.data import UserData

__all__ = [
    "RecordStore",
    "Rows",
    "added_up",
    "is_settled",
    "minus_row",
    "offsets_of",
    "order_of_addition",
    "pattern_of",
    "records_at",
    "rounded_users",
    "row_lengths",
    "row_products",
    "rows_as_they_lie",
    "settled_users",
    "sums_by_user",
]

Floats = NDArray[np.float64]
Rows = NDArray[Any]  # of 64-bit floats, or of 32-bit ones where a table declares these
_LINE = 64  # bytes of a line of a processor's cache
# Numbers that stay in a processor's cache, and that one turn of a loop over short rows sees to: a
# repeated row that is shorter than numpy's buffer would be copied there, turn by turn.
_NEAR, _TURN = 2**18, 2**14


def offsets_of(counts: NDArray[Any]) -> NDArray[np.int64]:
    """Return the offset of each user's first record, and the total, from the record counts.

    >>> offsets_of(np.array([2, 0, 3]))
    array([0, 2, 2, 5])
    """
    return np.concatenate([np.zeros(1, np.int64), np.cumsum(counts, dtype=np.int64)])


@dataclass(frozen=True)
class RecordStore:
    """Records in memory; ``codes`` holds the user of each row, or None if rows are sorted by user.

    Rows may be 32-bit floats if the declared types of the table allow it. :meth:`wide` converts
    them to 64 bits, and sums are computed in 64 bits either way. Rows that were ``_rounded`` to 32
    bits are never converted. ``_deferred`` is a row permutation that is applied lazily, when all
    rows are needed. ``marks`` are the ranks of the records in an order that the user stated
    (``order=``). ``_upright`` lists ranges of users with equal record counts, as first user, last
    user and count: their numbers are stored feature by feature, and :meth:`lying` transposes them
    back.

    Examples
    --------
    >>> store = RecordStore(np.array([[1.0], [5.0], [3.0]]), None, np.array([0, 1, 0]))
    >>> store.gather(np.arange(3), n_users=2).rows
    array([[1.],
           [3.],
           [5.]])
    """

    rows: Rows
    targets: NDArray[np.float64] | None
    codes: NDArray[Any] | None
    _order: NDArray[Any] | None = field(default=None, repr=False, compare=False)
    _is_settled: bool = field(default=False, repr=False, compare=False)
    _rounded: bool = field(default=False, repr=False, compare=False)
    _pattern: Any = field(default=None, repr=False, compare=False)
    _deferred: NDArray[Any] | None = field(default=None, repr=False, compare=False)
    _upright: tuple[tuple[int, int, int], ...] = field(default=(), repr=False, compare=False)
    marks: NDArray[np.int64] | None = field(default=None, repr=False, compare=False)

    @classmethod
    def numbered(
        cls,
        rows: Rows,
        targets: NDArray[np.float64] | None,
        codes: NDArray[Any],
        marks: NDArray[np.int64] | None = None,
    ) -> RecordStore:
        """Return a store from rows and the index of each row's user."""
        in_order = bool(np.all(codes[1:] >= codes[:-1]))
        return cls(rows, targets, None if in_order else codes, marks=marks)

    def __getstate__(self) -> dict[str, Any]:
        return {**vars(self), "_pattern": None}  # quickly built where the records are sent

    def order(self, offsets: NDArray[np.int64]) -> NDArray[Any]:
        """Return the order in which records are added up; it is computed once."""
        if self._order is None:
            found = order_of_addition(self.rows, self.targets, offsets, self.codes)
            object.__setattr__(self, "_order", found)
            return found
        return self._order

    def settled(
        self, offsets: NDArray[np.int64], ranks: NDArray[np.int64] | None = None
    ) -> RecordStore:
        """Return the records in summation order, with users in the order of ``ranks``, if given.

        The rows are copied only when all are needed: a few passes are quicker than a copy.
        """
        if self._upright:
            return self.lying().settled(offsets, ranks)
        order = self.order(offsets)
        if ranks is not None:
            order = order.take(ranges(offsets[ranks], np.diff(offsets)[ranks]))
        places = np.arange(len(order), dtype=index_type(len(order)))
        if self.codes is None and np.array_equal(order, places):
            rows, marks = _wide(self.rows), self.marks
            return RecordStore(rows, self.targets, None, places, _is_settled=True, marks=marks)
        targets = None if self.targets is None else self.targets.take(order)
        marks = None if self.marks is None else self.marks.take(order)
        settled = RecordStore(
            self.rows, targets, None, places, _is_settled=True, _deferred=order, marks=marks
        )
        return settled if self.rows.dtype == np.float64 else settled.wide()

    def wide(self) -> RecordStore:
        """Return the same records as 64-bit floats."""
        if self._deferred is not None:
            return replace(self, rows=_wide(self.some(slice(None))), _deferred=None)
        if self._rounded or self.rows.dtype == np.float64:
            return self
        return replace(self, rows=_wide(self.rows))

    def some(
        self, places: NDArray[Any] | slice, room: Callable[[tuple[int, ...]], Rows] | None = None
    ) -> Rows:
        """Return the rows with these indices; ``room`` is an optional output buffer.

        The buffer may have 32 bits per number; then the copy is rounded.
        """
        if self._upright:
            return self.lying().some(places, room)
        if self._deferred is not None:
            places = self._deferred[places]
        elif isinstance(places, slice):
            return self.rows[places]
        if room is None or self.rows.dtype != np.float64:
            return self.rows.take(places, axis=0)
        out = room((*places.shape, self.rows.shape[1]))
        rows, places = _brought_near(self.rows, places, out.dtype)
        if rows.dtype != out.dtype:
            out[...] = rows[places]
            return out
        # They are known to exist: to look whether they do, numpy would copy twice.
        return rows.take(places, axis=0, out=out, mode="clip")

    def rounded(self, rows: Rows, upright: tuple[tuple[int, int, int], ...] = ()) -> RecordStore:
        """Return a copy with other rows, stored as 32-bit floats."""
        return replace(
            self, rows=rows, _pattern=None, _rounded=True, _deferred=None, _upright=upright
        )

    def lying(self) -> RecordStore:
        """Return the same records in consecutive memory, user by user."""
        if not self._upright:
            return self
        rows, width = self.rows.copy(), self.rows.shape[1]
        for first, end, held in self._upright:
            block = self.rows[first:end].reshape(-1, width, held)
            rows[first:end].reshape(-1, held, width)[...] = block.transpose(0, 2, 1)
        return replace(self, rows=rows, _upright=())

    def as_they_lie(self) -> tuple[Rows, bool]:
        """Return the rows as stored, and whether some users are stored feature by feature."""
        return self.rows, bool(self._upright)

    def changed(self, rows: Floats, targets: Floats | None) -> RecordStore:
        """Return a copy with other rows and targets, summed in the same order as these."""
        return replace(self, rows=rows, targets=targets, _pattern=None, _deferred=None, _upright=())

    def own_sums(self, offsets: NDArray[np.int64]) -> Floats:
        """Return the sum of each user's rows, without copying them."""
        if self._upright:
            return self.lying().own_sums(offsets)
        if self._deferred is not None:
            return sums_by_user(self.rows, offsets, self._deferred)
        if self.rows.dtype == np.float32:
            return self._narrow_sums(offsets)
        if self._order is None and np.diff(offsets).max(initial=0) <= 2:
            # a + b is b + a: their order is found only where it can matter.
            came = _as_they_came(len(self.rows), offsets, self.codes)
            return sums_by_user(self.rows, offsets, came)
        return self.sums(offsets, self.rows)

    def sums(
        self, offsets: NDArray[np.int64], values: Rows, weights: Floats | None = None
    ) -> Floats:
        """Return each user's sum of the (weighted) rows of ``values``; one row per record."""
        order = self.order(offsets)
        if self._pattern is None:
            object.__setattr__(self, "_pattern", pattern_of(offsets, order))
        factors = weights if weights is None or self._is_settled else weights[order]
        return added_up(self._pattern, values, factors)

    def _narrow_sums(self, offsets: NDArray[np.int64]) -> Floats:
        """Return the sums of 32-bit records; their order is computed only if it can matter."""
        counts = np.diff(offsets)
        owners = np.repeat(np.arange(len(counts)), counts) if self.codes is None else self.codes
        most = int(counts.max(initial=0))
        sums, left = sums_in_any_order(self.rows, owners, len(counts), most)
        if left.any():
            places = np.flatnonzero(left[owners])
            starts, codes = offsets_of(counts[left]), (np.cumsum(left) - 1)[owners[places]]
            few = _wide(self.rows[places])
            targets = None if self.targets is None else self.targets[places]
            order = order_of_addition(few, targets, starts, codes)
            sums[left] = sums_by_user(few, starts, order)
        return sums

    def part(self, places: slice, offsets: NDArray[np.int64]) -> RecordStore:
        """Return a contiguous range of users, with the summation order of their records."""
        targets = None if self.targets is None else self.targets[places]
        order = self.order(offsets)[places] - int(places.start)
        begin, end = int(places.start), int(places.stop)
        upright = tuple(
            (max(a, begin) - begin, min(b, end) - begin, held)
            for a, b, held in self._upright
            if a < end and b > begin
        )
        rows = self.rows[places]
        made = RecordStore(
            rows, targets, None, order, self._is_settled, self._rounded, _upright=upright
        )
        return made if self.marks is None else replace(made, marks=self.marks[places])

    def gather(self, places: NDArray[Any], *, n_users: int) -> RecordStore:
        """Return the records at these positions of the order by user."""
        if self.codes is not None:
            places = order_by_user(self.codes, n_users)[places]
        targets = None if self.targets is None else self.targets.take(places)
        marks = None if self.marks is None else self.marks.take(places)
        return RecordStore(self.some(places), targets, None, _rounded=self._rounded, marks=marks)


def settled_users(
    users: UserData,
    rows: Callable[[Floats, Floats | None], Floats] | None,
    targets: Callable[[Floats], Floats],
    *,
    by_count: bool = False,
) -> UserData:
    """Return users with transformed records, stored in the order in which they are summed.

    The order is that of the original records. ``rows`` is also given an output buffer: a copy that
    was made for the order, or ``None`` if the records are the caller's. If ``rows`` is ``None`` the
    records are not transformed, and are copied only when all are needed. With ``by_count`` users
    with equally many records are stored side by side, so that one call can process them.

    >>> from quorate.core.users import UserData
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
    changed = None if store.targets is None else targets(store.targets)
    if rows is None:
        store = replace(store, targets=changed)
    else:
        whole = store.wide().rows
        room = None if np.may_share_memory(whole, users._store.rows) else whole
        store = store.changed(rows(whole, room), changed)
    return users._derived(store, offsets, keys)


def is_settled(users: UserData) -> bool:
    """Return whether users were made by :func:`settled_users`; no record decides this.

    >>> from quorate.core.users import UserData
    >>> is_settled(UserData([[1.0]], offsets=[0, 1]))
    False
    """
    return users._store._is_settled


def records_at(
    users: UserData,
    places: NDArray[Any] | slice,
    room: Callable[[tuple[int, ...]], Rows] | None = None,
) -> Rows:
    """Return the rows of :attr:`UserData.X` with these indices, whatever their stored order.

    If they have to be copied, ``room`` returns the output buffer for their shape.

    >>> from quorate.core.users import UserData
    >>> records_at(UserData([[1.0], [3.0]], offsets=[0, 1, 2]), slice(1, 2))
    array([[3.]])
    """
    return users._by_user().some(places, room)


def rows_as_they_lie(users: UserData) -> tuple[Rows, bool]:
    """Return the records, and whether some are stored feature by feature (:func:`rounded_users`).

    >>> from quorate.core.users import UserData
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
    """Return users with other records, in 32 bits, in the same positions.

    They are added up in the order of the original records, and :attr:`UserData.X` is also in 32
    bits. ``upright`` are ranges of users with equally many records, in summation order, whose
    numbers were written feature by feature: the first and the last user of the range, and the
    number of records of each of them.

    >>> from quorate.core.users import UserData
    >>> people = UserData([[1.0], [3.0]], offsets=[0, 1, 2])
    >>> rounded_users(people, np.float32([[0.1], [0.3]])).X.dtype
    dtype('float32')
    """
    store = users._by_user()
    store.order(users.offsets)
    return users._derived(store.rounded(rows, upright), users.offsets, users.keys())


def order_of_addition(
    rows: Rows, targets: Floats | None, offsets: NDArray[Any], codes: NDArray[Any] | None = None
) -> NDArray[Any]:
    """Return the row indices, user by user, each user's in the order of their hashes.

    ``offsets`` say where the records of each user begin in the order by user; ``codes`` are the
    indices of the rows' users, or None if rows are sorted by user.

    >>> rows, offsets = np.array([[3.0], [1.0], [2.0], [9.0]]), np.array([0, 3, 4])
    >>> order = order_of_addition(rows, None, offsets)
    >>> turned = order_of_addition(rows[[2, 0, 1, 3]], None, offsets)
    >>> bool((rows[order] == rows[[2, 0, 1, 3]][turned]).all())
    True
    """
    # Also of two: a + b is b + a, but products that are added up without rounding between know an
    # order, and who else holds more records must not change it.
    if np.diff(offsets).max(initial=0) > 1:
        return order_by_hash(rows, targets, offsets, codes)
    return _as_they_came(len(rows), offsets, codes)


def _as_they_came(
    size: int, offsets: NDArray[np.int64], codes: NDArray[Any] | None
) -> NDArray[Any]:
    return np.arange(size) if codes is None else order_by_user(codes, len(offsets) - 1)


def sums_by_user(
    values: Floats, offsets: NDArray[np.int64], order: NDArray[Any], weights: Floats | None = None
) -> Floats:
    """Return the sum of the (weighted) rows of each user, added up in this order.

    It is a product with a sparse matrix, which computes each user's sum separately. It works on
    blocks of users small enough for the cache; random access outside the cache takes twice as long.

    >>> sums_by_user(np.array([[1.0], [2.0], [4.0]]), np.array([0, 2, 3]), np.arange(3))
    array([[3.],
           [4.]])
    """
    sums = np.empty((len(offsets) - 1, values.shape[1]))
    cuts = np.flatnonzero(np.diff(offsets[1:] * values.shape[1] // _NEAR)) + 1
    for start, stop in pairwise([0, *cuts.tolist(), len(sums)]):
        places = order[offsets[start] : offsets[stop]]
        _brought_near(values, places, values.dtype)
        pattern = pattern_of(offsets[start : stop + 1] - offsets[start], places, len(values))
        factors = None if weights is None else weights[places]
        sums[start:stop] = added_up(pattern, values, factors)
    return sums


def pattern_of(
    offsets: NDArray[np.int64], order: NDArray[Any], n_records: int | None = None
) -> Any:
    """Return the sparse matrix of ones that adds up the records of each user in this order.

    The matrix has ``n_records`` columns, by default one for each record.

    >>> pattern_of(np.array([0, 2, 3]), np.arange(3)).shape
    (2, 3)
    """
    from scipy import sparse

    starts = offsets.astype(order.dtype, copy=False)
    shape = (len(offsets) - 1, len(order) if n_records is None else n_records)
    return sparse.csr_array((np.ones(len(order)), order, starts), shape=shape)


def added_up(pattern: Any, values: Floats, factors: Floats | None = None) -> Floats:
    """Return the sums of the rows of ``values``, times their factors, that a pattern describes.

    >>> added_up(pattern_of(np.array([0, 2, 3]), np.arange(3)), np.array([[1.0], [2.0], [4.0]]))
    array([[3.],
           [4.]])
    """
    matrix = pattern
    if factors is not None:
        matrix = copy(pattern)  # of the description only: places and starts are shared
        matrix.data = factors
    sums: Floats = matrix @ values
    return sums


def _brought_near(rows: Rows, places: NDArray[Any], dtype: Any) -> tuple[Rows, NDArray[Any]]:
    """Copy neighbouring rows into the cache; copying them one by one takes twice the time.

    Return a block of rows and their indices in it, perhaps already rounded to ``dtype``.
    """
    end = places.max(initial=-1) + 1
    first = places.min(initial=end)
    if end - first >= 2 * places.size or not rows.flags.c_contiguous:
        return rows, places
    if dtype != rows.dtype:
        return rows[first:end].astype(dtype), places - first
    np.bitwise_or.reduce(rows[first:end].reshape(-1).view(np.uint8)[::_LINE])
    return rows, places


def _wide(rows: Rows) -> Floats:
    return rows.astype(np.float64, copy=False)


def row_products(rows: NDArray[np.float64], weights: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the inner products of each row of ``rows`` with each row of ``weights``.

    A matrix product ``rows @ weights.T`` may round a row depending on its position among the
    others. Here every product is computed separately, in one order of addition, however many other
    rows there are.

    >>> row_products(np.array([[1.0, 2.0], [3.0, 4.0]]), np.array([[1.0, 10.0]]))
    array([[21.],
           [43.]])
    """
    left, right = np.ascontiguousarray(rows), np.ascontiguousarray(weights)
    with np.errstate(all="ignore"):  # a warning about an overflow would tell of a value
        return np.asarray(np.einsum("ij,kj->ik", left, right, optimize=False))


def row_lengths(rows: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the Euclidean length of each row, computed from that row alone.

    >>> row_lengths(np.array([[3.0, 4.0]]))
    array([5.])
    """
    own = np.ascontiguousarray(rows)
    with np.errstate(all="ignore"):
        return np.asarray(np.sqrt(np.einsum("ij,ij->i", own, own, optimize=False)))


def minus_row(
    rows: NDArray[np.float64], row: NDArray[np.float64], out: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Write ``rows - row`` to ``out``, of the same shape and contiguous like ``rows``; return it.

    It works number by number, like ``np.subtract``, but handles many short rows at once.

    >>> rows = np.arange(6.0).reshape(3, 2)
    >>> minus_row(rows, np.array([1.0, 2.0]), rows)
    array([[-1., -1.],
           [ 1.,  1.],
           [ 3.,  3.]])
    """
    flat, into = rows.reshape(-1), out.reshape(-1)
    if not flat.size:
        return out
    turn = np.tile(row, min(max(1, _TURN // row.size), flat.size // row.size))
    end, shape = flat.size // turn.size * turn.size, (-1, turn.size)
    np.subtract(flat[:end].reshape(shape), turn, out=into[:end].reshape(shape))
    np.subtract(flat[end:], turn[: flat.size - end], out=into[end:])
    return out
