"""Records as they lie in memory, and sums over each user's records.

Floating-point addition is not associative: added up in another order, the records of a user give
other last bits, and an engine that reads them in another order would disagree. So the records of a
user are added up in the order of a hash of what they hold. The sum of a user is then, to the last
bit, a function of *which* records the user holds, and of nobody else's: records that are equal may
change places, and nothing else may.

The order costs a sort when it is first needed, a sum one pass. (Exact sums took six times as long.)
"""

from __future__ import annotations

from collections.abc import Callable
from copy import copy
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from quorate.arrays import all_finite
from quorate.users.exact_sums import sums_in_any_order
from quorate.users.grouping import mix, order_by_user, ranges

__all__ = [
    "RecordStore",
    "Rows",
    "added_up",
    "offsets_of",
    "order_of_addition",
    "pattern_of",
    "sums_by_user",
]

Floats = NDArray[np.float64]
Rows = NDArray[Any]  # of 64-bit floats, or of 32-bit ones where a table declares these
_ODD = np.uint64(1)
_BITS = 64
_MINUS_ZERO = np.iinfo(np.int64).min  # the bits of -0.0 as an integer
# Numbers hashed at once, which fit into a processor's cache; bytes of a line of it.
_BLOCK = 1 << 16
_LINE = 64


def offsets_of(counts: NDArray[Any]) -> NDArray[np.int64]:
    """Return where each user's records begin, and the end, from how many each user holds.

    >>> offsets_of(np.array([2, 0, 3]))
    array([0, 2, 2, 5])
    """
    return np.concatenate([np.zeros(1, np.int64), np.cumsum(counts, dtype=np.int64)])


def _index_type(size: int) -> type[np.signedinteger[Any]]:
    return np.int32 if size < 2**31 else np.int64


@dataclass(frozen=True)
class RecordStore:
    """Records as they lie in memory; ``codes`` is None if they lie user by user.

    Rows may be 32-bit floats, which hold what a narrow table declares; :meth:`wide` makes them 64
    bits, and sums are computed as if they were. Only those that were ``_rounded`` to 32 bits stay.
    Records that are ``_deferred`` count as if they lay at those places, one behind the other, and
    are put there when somebody asks for all of them. ``_upright`` are stretches of users who hold
    equally many records, from the first one to the last and how many each holds: there the numbers
    of a user lie feature by feature, and :meth:`lying` turns them back.

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

    @classmethod
    def numbered(
        cls,
        rows: Rows,
        targets: NDArray[np.float64] | None,
        codes: NDArray[Any],
    ) -> RecordStore:
        """Return records under the numbers of their users, which may lie in order already."""
        in_order = bool(np.all(codes[1:] >= codes[:-1]))
        return cls(rows, targets, None if in_order else codes)

    def __getstate__(self) -> dict[str, Any]:
        return {**vars(self), "_pattern": None}  # quickly built where the records are sent

    def order(self, offsets: NDArray[np.int64]) -> NDArray[Any]:
        """Return the order in which records are added up; found once."""
        if self._order is None:
            found = order_of_addition(self.rows, self.targets, offsets, self.codes)
            object.__setattr__(self, "_order", found)
            return found
        return self._order

    def settled(
        self, offsets: NDArray[np.int64], ranks: NDArray[np.int64] | None = None
    ) -> RecordStore:
        """Return the records as they are added up, one behind the other: quicker to pass over.

        Users lie in the order of ``ranks``, if there is one. The rows follow when all are asked
        for: a few passes over them are quicker than a copy in fresh memory.
        """
        if self._upright:
            return self.lying().settled(offsets, ranks)
        order = self.order(offsets)
        if ranks is not None:
            order = order.take(ranges(offsets[ranks], np.diff(offsets)[ranks]))
        places = np.arange(len(order), dtype=_index_type(len(order)))
        if self.codes is None and np.array_equal(order, places):
            return RecordStore(_wide(self.rows), self.targets, None, places, _is_settled=True)
        targets = None if self.targets is None else self.targets.take(order)
        settled = RecordStore(self.rows, targets, None, places, _is_settled=True, _deferred=order)
        return settled if self.rows.dtype == np.float64 else settled.wide()

    def wide(self) -> RecordStore:
        """Return the same records as 64-bit floats, in their places."""
        if self._deferred is not None:
            return replace(self, rows=_wide(self.some(slice(None))), _deferred=None)
        if self._rounded or self.rows.dtype == np.float64:
            return self
        return replace(self, rows=_wide(self.rows))

    def some(
        self, places: NDArray[Any] | slice, room: Callable[[tuple[int, ...]], Floats] | None = None
    ) -> Rows:
        """Return the rows at these places, wherever they lie; ``room`` is where a copy may go."""
        if self._upright:
            return self.lying().some(places, room)
        if self._deferred is not None:
            places = self._deferred[places]
            _read_in_order(self.rows, places)
        elif isinstance(places, slice):
            return self.rows[places]
        if room is None or self.rows.dtype != np.float64:
            return self.rows.take(places, axis=0)
        # They are known to exist: to look whether they do, numpy would copy twice.
        out = room((*places.shape, self.rows.shape[1]))
        return self.rows.take(places, axis=0, out=out, mode="clip")

    def rounded(self, rows: Rows, upright: tuple[tuple[int, int, int], ...] = ()) -> RecordStore:
        """Return other rows, of 32 bits, in the places of these; they stay so."""
        return replace(
            self, rows=rows, _pattern=None, _rounded=True, _deferred=None, _upright=upright
        )

    def lying(self) -> RecordStore:
        """Return the same records, one behind the other."""
        if not self._upright:
            return self
        rows, width = self.rows.copy(), self.rows.shape[1]
        for first, end, held in self._upright:
            block = self.rows[first:end].reshape(-1, width, held)
            rows[first:end].reshape(-1, held, width)[...] = block.transpose(0, 2, 1)
        return replace(self, rows=rows, _upright=())

    def as_they_lie(self) -> tuple[Rows, bool]:
        """Return the rows, and whether some users' lie feature by feature."""
        return self.rows, bool(self._upright)

    def changed(self, rows: Floats, targets: Floats | None) -> RecordStore:
        """Return other rows and targets in the places of these, to be added up like them."""
        return replace(self, rows=rows, targets=targets, _pattern=None, _deferred=None, _upright=())

    def own_sums(self, offsets: NDArray[np.int64]) -> Floats:
        """Return the sum of the rows of each user, which are looked at where they lie."""
        if self._upright:
            return self.lying().own_sums(offsets)
        if self._deferred is not None:
            return added_up(pattern_of(offsets, self._deferred), self.rows)
        if self.rows.dtype == np.float32:
            return self._narrow_sums(offsets)
        return self.sums(offsets, self.rows)

    def sums(
        self, offsets: NDArray[np.int64], values: Rows, weights: Floats | None = None
    ) -> Floats:
        """Return the sum of the (weighted) rows of ``values`` of each user; one for each record."""
        order = self.order(offsets)
        if self._pattern is None:
            object.__setattr__(self, "_pattern", pattern_of(offsets, order))
        factors = weights if weights is None or self._is_settled else weights[order]
        return added_up(self._pattern, values, factors)

    def _narrow_sums(self, offsets: NDArray[np.int64]) -> Floats:
        """Return the sums of 32-bit records; their order is found only where it can matter."""
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
        """Return whole users of records that lie user by user, with their order of addition."""
        targets = None if self.targets is None else self.targets[places]
        order = self.order(offsets)[places] - int(places.start)
        begin, end = int(places.start), int(places.stop)
        upright = tuple(
            (max(a, begin) - begin, min(b, end) - begin, held)
            for a, b, held in self._upright
            if a < end and b > begin
        )
        rows = self.rows[places]
        return RecordStore(
            rows, targets, None, order, self._is_settled, self._rounded, _upright=upright
        )

    def gather(self, places: NDArray[Any], *, n_users: int) -> RecordStore:
        """Return the records at these places of the order by user."""
        if self.codes is not None:
            places = order_by_user(self.codes, n_users)[places]
        targets = None if self.targets is None else self.targets.take(places)
        return RecordStore(self.some(places), targets, None, _rounded=self._rounded)


def order_of_addition(
    rows: Rows,
    targets: Floats | None,
    offsets: NDArray[np.int64],
    codes: NDArray[Any] | None = None,
) -> NDArray[Any]:
    """Return the places of the rows, user by user, each user's in the order of their hashes.

    Parameters
    ----------
    rows : array of shape (N, d)
    targets : array of shape (N,) or None
    offsets : array of shape (n + 1,)
        Where the records of each user begin in the order by user.
    codes : array of shape (N,), optional
        The number of each row's user; None if they lie user by user.

    Examples
    --------
    >>> rows, offsets = np.array([[3.0], [1.0], [2.0], [9.0]]), np.array([0, 3, 4])
    >>> order = order_of_addition(rows, None, offsets)
    >>> turned = order_of_addition(rows[[2, 0, 1, 3]], None, offsets)
    >>> bool((rows[order] == rows[[2, 0, 1, 3]][turned]).all())
    True
    """
    counts = np.diff(offsets)
    if codes is None and counts.max(initial=0) <= 2:
        return np.arange(len(rows))  # a + b is b + a
    owners = np.repeat(np.arange(len(counts)), counts) if codes is None else codes
    if counts.max(initial=0) <= 2:
        return order_by_user(owners, len(counts))
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
    starts = np.repeat(offsets[:-1].astype(_index_type(len(hashes))), counts)
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


def sums_by_user(
    values: Floats,
    offsets: NDArray[np.int64],
    order: NDArray[Any],
    weights: Floats | None = None,
) -> Floats:
    """Return the sum of the (weighted) rows of each user, added up in this order.

    A product with a sparse matrix: one pass over the rows, and each user's sum by itself.

    >>> sums_by_user(np.array([[1.0], [2.0], [4.0]]), np.array([0, 2, 3]), np.arange(3))
    array([[3.],
           [4.]])
    """
    factors = None if weights is None else weights[order]
    return added_up(pattern_of(offsets, order), values, factors)


def pattern_of(offsets: NDArray[np.int64], order: NDArray[Any]) -> Any:
    """Return the sparse matrix of ones that adds up the records of each user in this order.

    >>> pattern_of(np.array([0, 2, 3]), np.arange(3)).shape
    (2, 3)
    """
    from scipy import sparse

    starts = offsets.astype(order.dtype, copy=False)
    shape = (len(offsets) - 1, len(order))
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


def _read_in_order(rows: Rows, places: NDArray[Any]) -> None:
    """Bring rows that lie side by side into the cache: one by one they take twice the time."""
    end = places.max(initial=-1) + 1
    first = places.min(initial=end)
    if end - first == places.size and rows.flags.c_contiguous:
        np.bitwise_or.reduce(rows[first:end].reshape(-1).view(np.uint8)[::_LINE])


def _wide(rows: Rows) -> Floats:
    return rows.astype(np.float64, copy=False)


def _bits(values: Rows) -> NDArray[np.uint64]:
    """Return the bits of numbers; zeros are equal whatever their sign, and so is every NaN.

    Not every store keeps these apart, and no sum of finite numbers can tell them apart.
    """
    told = _wide(values)
    if all_finite(told) and told.view(np.int64).min(initial=0) > _MINUS_ZERO:
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
        np.einsum("ij,j->i", of(rows[part]), odd[:width], out=words[part])
        if targets is not None:
            words[part] += of(targets[part]) * odd[width]
    return mix(words)


def _rows_at_once(rows: Rows) -> int:
    return max(1, _BLOCK // max(1, int(rows.shape[1])))
