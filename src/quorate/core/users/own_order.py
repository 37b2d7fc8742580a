"""An order of each user's records that depends on their contents, never on the row order.

There are two such orders. Both come from a hash of the records, computed for each user separately,
so other users have no influence. Only equal records may be exchanged.

* **For summation.** Sums of floats depend on the order of their terms. If users have several
  records, these are ordered by a hash of a few of their numbers. If different records of a user
  have the same hash, they are ordered by a second hash of all numbers, and finally by the numbers
  themselves.
* **To choose.** A *keyed* hash decides which records are kept under a cap, which key a user votes
  for, and to which half a record belongs. The different records of a user have random words,
  computed from their numbers, a public seed and the user. The first copy of a record has this word
  as its number; every further copy has a number computed from the word and the number of copies
  before it. The records with the smallest numbers are chosen. So every record is equally likely to
  be chosen, including copies. Two neighbouring tables stay neighbours *for every seed*, even one
  that the attacker knows, and for every order of their rows.

A user's own ``order=``, if there is one, has priority over the numbers.

In a stream every different record is stored with its number of copies. If a user has more than 2^16
different records, those with the smallest words are stored, and the others are not counted. This
rule depends on the user's own records only, and is the same for all data sources.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from quorate.core.users.grouping import index_type, mix, order_by_user, ranges

__all__ = [
    "Contents",
    "content_words",
    "contents_of",
    "folded",
    "order_by_hash",
    "own_words",
    "random_places",
    "without_signs_of_zero",
]

Floats = NDArray[np.float64]
Rows = NDArray[Any]
Words = NDArray[np.uint64]
Places = NDArray[np.int64]
_ZERO, _ONE = np.uint64(0), np.uint64(1)
_BITS = 64
_MINUS_ZERO = np.iinfo(np.int64).min  # the bits of -0.0 as an integer
# Numbers sorted at once, and hashed, which fit into a processor's cache.
_SORTED, _HASHED = 1 << 16, 1 << 18
# Different records of one user that are remembered, unless more of them are to be chosen.
_REMEMBERED = 2**16
# Copies that are numbered at once.
_NUMBERED = 2**20


def order_by_hash(
    rows: Rows, targets: Floats | None, offsets: Places, codes: NDArray[Any] | None
) -> NDArray[Any]:
    """Return the indices of the rows, user by user, each user's in the order of their hashes.

    See :func:`~quorate.core.users.store.order_of_addition`.

    >>> rows, offsets = np.array([[3.0], [1.0], [2.0]]), np.array([0, 3])
    >>> order, turned = (order_by_hash(each, None, offsets, None) for each in (rows, rows[::-1]))
    >>> bool((rows[order] == rows[::-1][turned]).all())
    True
    """
    counts, hashes = np.diff(offsets), _end_hashes(rows, targets)
    came: NDArray[Any] = np.arange(len(rows), dtype=index_type(len(rows)))
    if codes is not None:
        came = order_by_user(codes, len(counts))
        hashes = hashes[came]
    order, close = _by_hash(hashes, offsets)
    order = order if codes is None else came[order]
    users = _who_differ(rows, targets, order, close, offsets)
    for of in (folded, _bits):
        if not users.size:
            return order
        places = ranges(offsets[users], counts[users])
        held, starts = came[places], np.append(0, np.cumsum(counts[users]))
        again, close = _by_hash(_hashes(rows, targets, held, of), starts)
        order[places] = held = held[again]
        users = users[_who_differ(rows, targets, held, close, starts)]
    # Records that share the last hash too were made to: their numbers decide.
    places = ranges(offsets[users], counts[users])
    held = came[places]
    order[places] = held[_by_numbers(rows, targets, held, (np.repeat(users, counts[users]),))]
    return order


@dataclass(frozen=True, eq=False)
class Contents:
    """The distinct records of each user, in a random order.

    Attributes
    ----------
    held : array of integers
        The indices of all records, with copies side by side.
    starts : array of integers
        The index in ``held`` of the first copy of each different record.
    owners : array of integers
        The index of each record's user, in order.
    words : array of uint64
        The random word of each record.
    copies : array of integers
        The number of copies of each record.
    marks : array of integers, or None
        The rank of each record in the user's own ``order=``, which has priority over the word.
    """

    held: NDArray[Any]
    starts: Places
    owners: NDArray[Any]
    words: Words
    copies: Places
    marks: Places | None = None

    def remembered(self, records: int) -> Contents:
        """Return the records of each user that may be chosen, if at most this many are.

        >>> rows, held = np.array([[1.0], [2.0], [1.0]]), np.arange(3)
        >>> words = mix(content_words(rows, None, held))
        >>> contents_of(rows, None, held, np.array([0, 3]), words).remembered(1).copies.sum()
        np.int64(3)
        """
        keep = _turns(self.owners) < max(_REMEMBERED, records)
        if keep.all():
            return self
        marks = None if self.marks is None else self.marks[keep]
        few = self.starts[keep], self.owners[keep], self.words[keep], self.copies[keep]
        return Contents(self.held, *few, marks)

    @property
    def places(self) -> NDArray[Any]:
        """The index of one copy of each different record."""
        return self.held[self.starts]

    def placed(self, records: int | None = None) -> NDArray[Any]:
        """Return the indices of at most this many records of each user, each at most once.

        >>> rows, held = np.array([[1.0], [2.0], [1.0]]), np.arange(3)
        >>> found = contents_of(rows, None, held, np.array([0, 3]), content_words(rows, None, held))
        >>> sorted(found.placed().tolist())
        [0, 1, 2]
        """
        chosen = self.chosen(records)
        if self.copies.max(initial=0) <= 1:
            return self.held[self.starts[chosen]]
        order, turns = np.argsort(chosen, kind="stable"), np.empty(len(chosen), np.int64)
        turns[order] = _turns(chosen[order])
        found: NDArray[Any] = self.held[self.starts[chosen] + turns]
        return found

    def chosen(self, records: int | None = None) -> Places:
        """Return up to ``records`` records of each user: those with the smallest random numbers.

        They are sorted by user, and each appears once for every copy; None returns all.

        >>> rows, held = np.array([[1.0], [2.0], [1.0]]), np.arange(3)
        >>> found = contents_of(rows, None, held, np.array([0, 3]), content_words(rows, None, held))
        >>> sorted(rows[found.places[found.chosen()]].ravel().tolist())
        [1.0, 1.0, 2.0]
        """
        if self.copies.max(initial=0) <= 1:  # they lie in the order of their numbers
            every = np.arange(len(self.owners))
            return every if records is None else every[_turns(self.owners) < records]
        ends = np.concatenate([np.zeros(1, np.int64), np.cumsum(self.copies)])
        # The first copy of each user, and the end.
        first = np.flatnonzero(np.diff(self.owners, prepend=-1, append=self.owners[-1] + 1))
        cuts, found, start = ends[first], [np.empty(0, np.int64)], 0
        while start < len(cuts) - 1:
            stop = int(np.searchsorted(cuts, cuts[start] + _NUMBERED, side="right")) - 1
            stop = max(stop, start + 1)
            found.append(self._chosen_among(ends, int(cuts[start]), int(cuts[stop]), records))
            start = stop
        return np.concatenate(found)

    def _chosen_among(self, ends: Places, begin: int, end: int, records: int | None) -> Places:
        """Return the chosen records of whole users; copies are numbered in small blocks."""
        own, numbers = np.empty(0, np.int64), np.empty(0, np.uint64)
        for start in range(begin, end, _NUMBERED):
            copies = np.arange(start, min(start + _NUMBERED, end))
            more = np.searchsorted(ends, copies, side="right") - 1
            turns, words = (copies - ends[more]).astype(np.uint64), self.words[more]
            again = turns > 0
            words[again] = mix(words[again] + turns[again])
            own, numbers = np.concatenate([own, more]), np.concatenate([numbers, words])
            order = self._in_order(own, numbers)
            own, numbers = own[order], numbers[order]
            if records is not None:
                keep = _turns(self.owners[own]) < records
                own, numbers = own[keep], numbers[keep]
        return own

    def _in_order(self, own: Places, numbers: Words) -> NDArray[Any]:
        """Return the order of copies by user, mark and number, and then of the records."""
        owners = self.owners[own]
        if self.marks is None:
            first = np.flatnonzero(np.diff(owners, prepend=-1))
            order, close = _by_hash(numbers, np.append(first, len(own)))
            if not close.size:
                return order
            return np.lexsort((numbers, owners))
        return np.lexsort((numbers, self.marks[own], owners))


def content_words(
    rows: Rows,
    targets: Floats | None,
    places: NDArray[Any],
    *,
    word: int | np.uint64 = 0,
    of: Callable[[Rows], Words] | None = None,
) -> Words:
    """Return a word for each record at these indices, from its numbers and a public word.

    ``of`` gives the words of the values that the numbers encode, if numbers are codes.

    >>> words = content_words(np.array([[0.0], [-0.0], [1.0]]), None, np.arange(3))
    >>> bool(words[0] == words[1] != words[2])
    True
    """
    return _hashes(rows, targets, places, folded if of is None else of, np.uint64(word))


def own_words(words: Words, offsets: Places, *, word: int | np.uint64 = 0) -> Words:
    """Return a 64-bit word for each user: a hash of the user's records and a public word.

    >>> first, _, third = own_words(np.array([5, 7, 7, 5], np.uint64), np.array([0, 2, 2, 4]))
    >>> bool(first == third)
    True
    """
    running = np.concatenate([np.zeros(1, np.uint64), np.cumsum(mix(words), dtype=np.uint64)])
    return mix(running[offsets[1:]] - running[offsets[:-1]] + np.uint64(word))


def contents_of(
    rows: Rows,
    targets: Floats | None,
    held: NDArray[Any],
    offsets: Places,
    words: Words,
    *,
    marks: Places | None = None,
    copies: Places | None = None,
) -> Contents:
    """Return the different records of users, with the number of their copies.

    Parameters
    ----------
    rows, targets : arrays
    held : array of integers
        The indices of the records, user by user.
    offsets : array of integers
        Where each user begins in ``held``, and the end.
    words : array of uint64
        The random word of each record of ``held``; equal records of a user have equal words.
    marks : array of integers, optional
        The rank of each record in the user's own order.
    copies : array of integers, optional
        How many copies each record stands for, by default 1.
    """
    owners = np.repeat(np.arange(len(offsets) - 1), np.diff(offsets))
    if marks is None:
        order, close = _by_hash(words, offsets)
    else:
        order = np.lexsort((words, marks, owners))
        close = _meet(owners, words[order], marks[order])
    users = _who_differ(rows, targets, held[order], close, offsets)
    if users.size:
        # Different records that share a word, or what was sorted of it: their numbers decide.
        places = ranges(offsets[users], np.diff(offsets)[users])
        before = (words[places], *(() if marks is None else (marks[places],)), owners[places])
        order[places] = places[_by_numbers(rows, targets, held[places], before)]
    held, words = held[order], words[order]
    marks = None if marks is None else marks[order]
    close = _meet(owners, words, marks)
    close = close[_same_records(rows, targets, held[close], held[close + 1])]
    begins = np.ones(len(held), dtype=np.bool_)
    begins[close + 1] = False
    first = np.flatnonzero(begins)
    if copies is None:
        number = np.diff(first, append=len(held))
    else:
        running = np.concatenate([np.zeros(1, np.int64), np.cumsum(copies[order])])
        number = np.diff(running[np.append(first, len(held))])
    marks = None if marks is None else marks[first]
    return Contents(held, first, owners[first], words[first], number, marks)


def random_places(
    rows: Rows,
    targets: Floats | None,
    offsets: Places,
    *,
    word: int | np.uint64 = 0,
    keys: Words | None = None,
    marks: Places | None = None,
) -> NDArray[Any]:
    """Return the row indices in random order within each user; rows are sorted by user.

    The order depends on the user's records and a public word, and on the user's key if it is given.
    With keys, two users with equal records have them in different orders. With ``marks`` records
    are first sorted by these.

    >>> rows, offsets = np.array([[1.0], [2.0], [3.0]]), np.array([0, 3])
    >>> order, turned = (random_places(each, None, offsets) for each in (rows, rows[::-1]))
    >>> bool((rows[order] == rows[::-1][turned]).all())
    True
    """
    held = np.arange(len(rows))
    words = content_words(rows, targets, held, word=word)
    own = own_words(words, offsets, word=word)
    own = own if keys is None else mix(own + keys)
    words = mix(words + np.repeat(own, np.diff(offsets)))
    return contents_of(rows, targets, held, offsets, words, marks=marks).placed()


def _turns(owners: NDArray[Any]) -> Places:
    """Return each entry's rank among those of its owner; entries are sorted by owner.

    >>> _turns(np.array([0, 0, 3])).tolist()
    [0, 1, 0]
    """
    first = np.flatnonzero(np.diff(owners, prepend=-1))
    return ranges(np.zeros(len(first), np.int64), np.diff(first, append=len(owners)))


def _meet(owners: NDArray[Any], words: Words, marks: Places | None) -> Places:
    """Return where neighbouring entries of one user have the same word and mark."""
    meet = (owners[1:] == owners[:-1]) & (words[1:] == words[:-1])
    if marks is not None:
        meet &= marks[1:] == marks[:-1]
    return np.flatnonzero(meet)


def _by_numbers(
    rows: Rows, targets: Floats | None, held: NDArray[Any], before: tuple[NDArray[Any], ...]
) -> NDArray[Any]:
    """Return the order of records by the keys ``before`` (the last key first), then by all numbers.

    It is only for few users, whose records were constructed to have the same hash.
    """
    keys = list(_bits(rows[held]).T)
    if targets is not None:
        keys.append(_bits(targets[held]))
    return np.lexsort((*keys, *before))


def without_signs_of_zero(values: Floats) -> Floats:
    """Return numbers with -0.0 replaced by 0.0, so that equal records have equal bits.

    >>> without_signs_of_zero(np.array([-0.0]))
    array([0.])
    """
    return values + 0.0


def _who_differ(
    rows: Rows, targets: Floats | None, order: NDArray[Any], close: Places, offsets: Places
) -> Places:
    """Return the users with two different records that have the same hash.

    Neighbouring records with the same hash are either equal, and may be exchanged, or have few
    distinct values. In the second case the first such neighbours of a user mostly differ already,
    so the others are not compared.
    """
    differ = np.zeros(len(offsets) - 1, dtype=np.bool_)
    owners = np.repeat(np.arange(len(differ)), np.diff(offsets))[close]
    for first in (True, False):
        some = np.diff(owners, prepend=-1) > 0 if first else ~differ[owners]
        left, right = order[close[some]], order[close[some] + 1]
        differ[owners[some][~_same_records(rows, targets, left, right)]] = True
    return np.flatnonzero(differ)


def _by_hash(hashes: Words, offsets: Places) -> tuple[NDArray[Any], Places]:
    """Return indices, sorted by the hash's leading bits within users, and where these are equal.

    Users lie one after the other. The function makes many short sorts, of words whose last bits are
    the index within the user. This takes a third of the time of one sort of all records. The number
    of leading bits depends on how many records the user has, and not on other users.
    """
    counts = np.diff(offsets)
    digits = np.frexp(counts)[1]
    starts = np.repeat(offsets[:-1].astype(index_type(len(hashes))), counts)
    last = np.repeat((_ONE << digits.astype(np.uint64)) - _ONE, counts)
    words = hashes & ~last
    words |= (np.arange(len(hashes), dtype=starts.dtype) - starts).astype(np.uint64)
    # Users whose numbers of records have as many binary digits are sorted side by side.
    for digit in np.unique(digits[counts > 1]).tolist():
        alike = np.flatnonzero(digits == digit)
        few = max(1, _SORTED >> digit)
        for first in range(0, len(alike), few):
            some = alike[first : first + few]
            _sort_each(words, offsets[some], counts[some])
    order = starts + (words & last).astype(starts.dtype)
    meet = (words[1:] ^ words[:-1]) <= last[1:]
    meet &= starts[1:] == starts[:-1]  # two of one user
    return order, np.flatnonzero(meet)


def _sort_each(words: Words, starts: Places, counts: Places) -> None:
    """Sort the words of each of these users in place."""
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
    """Return for each pair of indices whether the records there are equal."""
    same = np.empty(len(left), dtype=np.bool_)
    for start in range(0, len(left), few := _rows_at_once(rows)):
        one, other = left[start : start + few], right[start : start + few]
        alike = (_bits(rows[one]) == _bits(rows[other])).all(axis=1)
        if targets is not None:
            alike &= _bits(targets[one]) == _bits(targets[other])
        same[start : start + few] = alike
    return same


def _bits(values: Rows) -> Words:
    """Return the bits of numbers; zeros are equal whatever their sign, and so are all NaNs.

    Some storage formats do not distinguish them, and they give the same sums.
    """
    numbers = values.astype(np.float64, copy=False)
    # A minimum is NaN if any number is, and is found sooner than a sum.
    if numbers.min(initial=0.0) <= 0.0 and numbers.view(np.int64).min(initial=0) > _MINUS_ZERO:
        return numbers.view(np.uint64)
    numbers = np.add(numbers, 0.0, order="C")
    numbers[np.isnan(numbers)] = np.nan
    return numbers.view(np.uint64)


def folded(values: Rows) -> Words:
    """Mix the high half of the bits into the low half, because small integers would collide.

    >>> folded(np.array([0.0])).tolist()
    [0]
    """
    bits = _bits(values)
    folded = bits >> np.uint64(_BITS // 2)
    folded ^= bits
    return folded


def _end_hashes(rows: Rows, targets: Floats | None) -> Words:
    """Return one word for each row, from its target and its first and last numbers."""
    odd, words = _odd(3), np.zeros(len(rows), dtype=np.uint64)
    ends = rows[:, :: max(1, rows.shape[1] - 1)]
    for start in range(0, len(rows), _HASHED):
        sums = words[part := slice(start, start + _HASHED)]
        for bits, factor in zip(_bits(ends[part].T.copy()), odd, strict=False):
            sums += bits * factor
        if targets is not None:
            sums += _bits(targets[part]) * odd[-1]
    return words


def _hashes(
    rows: Rows,
    targets: Floats | None,
    places: NDArray[Any],
    of: Callable[[Rows], Words],
    word: np.uint64 = _ZERO,
) -> Words:
    """Return one word for each row at the given indices: the sum of its words times odd numbers."""
    width, odd = rows.shape[1], _odd(rows.shape[1] + 1, word)
    words = np.empty(len(places), dtype=np.uint64)
    for start in range(0, len(places), few := _rows_at_once(rows)):
        some = places[start : start + few]
        beside = np.all(np.diff(some) == 1)  # then they need no copy
        own = rows[some[0] : some[-1] + 1] if beside else rows.take(some, axis=0)
        sums = np.einsum("ij,j->i", of(own), odd[:width])
        if targets is not None:
            sums += of(targets[some]) * odd[width]
        words[start : start + few] = mix(sums)
    return words


def _odd(count: int, word: np.uint64 = _ZERO) -> Words:
    return mix(np.arange(count, dtype=np.uint64) + word) | _ONE


def _rows_at_once(rows: Rows) -> int:
    return max(1, _HASHED // max(1, int(rows.shape[1])))
