"""Mistakes along an ordered class, stored as changes (section 5 of paper L, and L6).

Over an ordered class a user's number of mistakes is constant between that user's records. When the
hypothesis passes a record, the number moves from e to e + 1 or e - 1. Exactly one of the indicators
"more than t mistakes" then changes: the one with t = e or, after a decrease, t = e - 1. So each
change belongs to one t, and one sort gives the number of users above t for every hypothesis and
every t.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from quorate import _validate
from quorate.core.users.crowd import call_quietly
from quorate.core.users.grouping import group_by_user

__all__ = ["BestRanges", "MistakeEvents", "alone", "joined"]


@dataclass(frozen=True, eq=False)
class BestRanges:
    """For each user, the ranges of hypotheses with that user's fewest mistakes.

    Entries are sorted by user and, within a user, from left to right; each user has at least one.

    Attributes
    ----------
    user : int64 array
        The user of each range.
    first, last : uint64 arrays
        Its first and last hypothesis.

    Examples
    --------
    In this example the only user has one mistake below 3 and above 5, for thresholds over 0..7.

    >>> from quorate.learners.concepts import Thresholds
    >>> from quorate.core.users import UserData
    >>> one = UserData.from_arrays([[2], [5]], [0, 1], users=["a", "a"])
    >>> Thresholds(0, 7).mistake_events(one).best_ranges().hull()
    (array([3], dtype=uint64), array([5], dtype=uint64))
    """

    user: NDArray[np.int64]
    first: NDArray[np.uint64]
    last: NDArray[np.uint64]

    def _first_entries(self) -> NDArray[np.intp]:
        return np.flatnonzero(np.r_[True, self.user[1:] != self.user[:-1]])

    def hull(self) -> tuple[NDArray[np.uint64], NDArray[np.uint64]]:
        """Return each user's first and last best hypothesis."""
        if self.user.size == 0:
            return self.first, self.last
        starts = self._first_entries()
        stops = np.r_[starts[1:], self.user.size] - 1
        return self.first[starts], self.last[stops]

    def middle(self) -> tuple[NDArray[np.uint64], NDArray[np.uint64]]:
        """Return the ends of each user's middle best range (of two middle ranges, the left one)."""
        if self.user.size == 0:
            return self.first, self.last
        starts = self._first_entries()
        stops = np.r_[starts[1:], self.user.size] - 1
        middle = (starts + stops) // 2
        return self.first[middle], self.last[middle]


@dataclass(frozen=True, eq=False)
class MistakeEvents:
    """Every change of every user's mistakes, when the hypothesis runs from 0 to ``size - 1``.

    A *piece* is a range of hypotheses between two neighbouring positions; within it no user's
    mistakes change. Arrays over pieces (``starts``, ``lengths``, ``users_above``, ``total``) are
    aligned.

    Complexity
    ----------
    Memory O(N) for N records. ``users_above`` and ``total``: O(N + n). ``fewest_users_above``:
    one stable sort, O(N log N), for all t at once.

    Attributes
    ----------
    size : int
        Number of hypotheses.
    positions : uint64 array, sorted
        The first hypothesis after each change, between 1 and ``size - 1``.
    user, before, after : int64 arrays
        The user, and the number of mistakes before and after the change; |after - before| = 1. If a
        user has several changes at one position, only the last ``after`` counts.
    initial : int64 array, one entry per user
        Mistakes of hypothesis 0.

    Examples
    --------
    In this example one user has the values 2 (label 0) and 5 (label 1), another one 5 (label 0);
    thresholds over 0..7.

    >>> from quorate.learners.concepts import Thresholds
    >>> from quorate.core.users import UserData
    >>> people = UserData.from_arrays([[2], [5], [5]], [0, 1, 0], users=["a", "a", "b"])
    >>> events = Thresholds(0, 7).mistake_events(people)
    >>> events.starts, events.lengths
    (array([0, 3, 6], dtype=uint64), array([3, 3, 3], dtype=uint64))
    >>> events.users_above(0)
    array([2, 1, 1])
    >>> events.total()
    array([2, 1, 1])
    >>> events.fewest_users_above(2)
    array([1, 0])
    """

    size: int
    positions: NDArray[np.uint64]
    user: NDArray[np.int64]
    before: NDArray[np.int64]
    after: NDArray[np.int64]
    initial: NDArray[np.int64]

    @property
    def n_users(self) -> int:
        """The number of users."""
        return int(self.initial.size)

    @cached_property
    def _opens_piece(self) -> NDArray[np.bool_]:
        opens = np.ones(self.positions.size, dtype=np.bool_)
        opens[1:] = self.positions[1:] != self.positions[:-1]
        return opens

    @cached_property
    def starts(self) -> NDArray[np.uint64]:
        """The first hypothesis of each piece; the first piece starts at 0."""
        return np.concatenate([np.zeros(1, dtype=np.uint64), self.positions[self._opens_piece]])

    @property
    def lengths(self) -> NDArray[np.uint64]:
        """The number of hypotheses in each piece, at least 1; they add up to ``size``."""
        return np.diff(self.starts, append=np.uint64(self.size))

    @property
    def n_pieces(self) -> int:
        """The number of pieces."""
        return int(self.starts.size)

    @cached_property
    def piece(self) -> NDArray[np.int64]:
        """The piece that begins with each change (1 to ``n_pieces - 1``)."""
        return np.cumsum(self._opens_piece, dtype=np.int64)

    @cached_property
    def level(self) -> NDArray[np.int64]:
        """For each change, the only t for which it changes "more than t mistakes"."""
        return np.minimum(self.before, self.after)

    def _accumulate(
        self, changes: NDArray[np.int64], *, initial: int, which: NDArray[np.bool_] | None = None
    ) -> NDArray[np.int64]:
        piece = self.piece if which is None else self.piece[which]
        moved = np.bincount(piece, weights=changes, minlength=self.n_pieces)
        return initial + np.cumsum(moved.astype(np.int64))

    def users_above(self, t: int) -> NDArray[np.int64]:
        """Count, for each piece, the users with more than ``t`` mistakes (L2)."""
        _validate.non_negative_integer(t=t)
        which = self.level == t
        changes = (self.after - self.before)[which]
        return self._accumulate(
            changes, initial=int(np.count_nonzero(self.initial > t)), which=which
        )

    def total(self, *, cap: int | None = None) -> NDArray[np.int64]:
        """Add up the mistakes for each piece, with each user's mistakes clipped at ``cap`` (K1)."""
        if cap is None:
            return self._accumulate(self.after - self.before, initial=int(self.initial.sum()))
        _validate.positive_integer(cap=cap)
        changes = np.minimum(self.after, cap) - np.minimum(self.before, cap)
        return self._accumulate(changes, initial=int(np.minimum(self.initial, cap).sum()))

    def fewest_users_above(self, levels: int) -> NDArray[np.int64]:
        """Return min over all hypotheses of ``users_above(t)``, for t = 0, ..., ``levels - 1``."""
        _validate.positive_integer(levels=levels)
        clipped = np.minimum(self.initial, levels)
        at_least = np.cumsum(np.bincount(clipped, minlength=levels + 1)[::-1])[::-1]
        initial = at_least[1:].astype(np.int64)  # entry t: users with more than t mistakes
        which = np.flatnonzero(self.level < levels)
        if which.size == 0:
            return initial
        level = self.level[which]
        order = (
            np.argsort(level.astype(np.uint16), kind="stable")
            if levels <= 2**16
            else np.argsort(level, kind="stable")
        )
        which, level = which[order], level[order]
        moved = np.cumsum(self.after[which] - self.before[which])
        opens = np.flatnonzero(np.r_[True, level[1:] != level[:-1]])
        base = np.r_[0, moved[opens[1:] - 1]]
        # Counts between two changes at one position belong to no hypothesis.
        piece = self.piece[which]
        attained = np.r_[(piece[1:] != piece[:-1]) | (level[1:] != level[:-1]), True]
        lowest = np.minimum.reduceat(np.where(attained, moved, moved.max()), opens) - base
        fewest = initial.copy()
        fewest[level[opens]] += np.minimum(lowest, 0)
        return fewest

    def best_ranges(self, *, slack: NDArray[np.int64] | None = None) -> BestRanges:
        """Find the hypotheses with the fewest mistakes, for each user separately.

        With ``slack``, hypotheses with up to that many more mistakes count as best too.
        """
        if self.n_users == 0:
            none = np.zeros(0, dtype=np.uint64)
            return BestRanges(user=none.astype(np.int64), first=none, last=none)
        order = group_by_user(self.user, n_users=self.n_users)
        owner, position = self.user[order], self.positions[order]
        # Of several changes of one user at one position only the last one is attained.
        attained = np.r_[(owner[1:] != owner[:-1]) | (position[1:] != position[:-1]), True]
        order = order[attained[: order.size]]
        owner = self.user[order]
        # One line per user: hypothesis 0 with the initial count, then the changes in order.
        held = np.bincount(owner, minlength=self.n_users) + 1
        closes = np.cumsum(held) - 1
        opens = closes + 1 - held
        place = np.arange(order.size) + owner + 1
        first = np.zeros(order.size + self.n_users, dtype=np.uint64)
        count = np.empty(order.size + self.n_users, dtype=np.int64)
        first[place], count[place] = self.positions[order], self.after[order]
        count[opens] = self.initial
        last = np.r_[first[1:], np.zeros(1, dtype=np.uint64)] - np.uint64(1)
        last[closes] = np.uint64(self.size - 1)
        most = np.minimum.reduceat(count, opens) + (0 if slack is None else slack)
        best = count <= np.repeat(most, held)
        # Two best pieces that touch (changes that cancel at one position) are one range.
        joins_left = best & np.r_[False, best[:-1]]
        joins_left[opens] = False
        joins_right = np.r_[joins_left[1:], False]
        begins, ends = best & ~joins_left, best & ~joins_right
        user = np.repeat(np.arange(self.n_users, dtype=np.int64), held)
        return BestRanges(user=user[begins], first=first[begins], last=last[ends])


def alone(found: object, *, size: int, held: int) -> MistakeEvents:
    """Return sorted changes from the caller's code for one user; if it fails, all are mistakes.

    The changes are corrected so that the user has between 0 and ``held`` mistakes at every
    hypothesis and each change is by 1. This bounds the user's contribution to a score.

    >>> wild = MistakeEvents(9, *map(np.array, ([5, 3, 77], [0, 0, 0], [8, 8, 8], [1, 2, 3], [0])))
    >>> events = alone(wild, size=9, held=2)
    >>> events.positions, events.before, events.after
    (array([3, 3, 5], dtype=uint64), array([0, 1, 2]), array([1, 2, 1]))
    """
    events = call_quietly(lambda: _alone(found, size=size, held=held))
    return _steps([], [], initial=held, size=size) if events is None else events


def _alone(found: object, *, size: int, held: int) -> MistakeEvents | None:
    if not isinstance(found, MistakeEvents) or len(found.after) != len(found.positions):
        return None
    # Python's own integers: positions may be unsigned, signed or far too large.
    last = dict(zip(map(int, found.positions), map(int, found.after), strict=True))
    places = sorted(place for place in last if 1 <= place < size)
    said = [int(found.initial[0]), *(last[place] for place in places)]
    initial, *counts = (min(max(count, 0), held) for count in said)
    return _steps(places, counts, initial=initial, size=size)


def _steps(places: list[int], counts: list[int], *, initial: int, size: int) -> MistakeEvents:
    """Return the changes of a count that starts at ``initial``.

    From each of ``places`` on it has the value in ``counts``.
    """
    moves = np.diff(np.array([initial, *counts], dtype=np.int64))
    changes = np.repeat(np.sign(moves), np.abs(moves))
    after = initial + np.cumsum(changes)
    return MistakeEvents(
        size=size,
        positions=np.repeat(np.array(places, dtype=np.uint64), np.abs(moves)),
        user=np.zeros(changes.size, dtype=np.int64),
        before=after - changes,
        after=after,
        initial=np.array([initial], dtype=np.int64),
    )


def joined(lone: Sequence[MistakeEvents], *, size: int) -> MistakeEvents:
    """Combine the changes of several users.

    >>> joined([], size=5).n_users
    0
    """
    none = np.zeros(0, dtype=np.int64)
    positions = np.concatenate([none.astype(np.uint64), *(each.positions for each in lone)])
    order = np.argsort(positions, kind="stable")
    owners = [np.full(each.user.size, place) for place, each in enumerate(lone)]
    return MistakeEvents(
        size=size,
        positions=positions[order],
        user=np.concatenate([none, *owners])[order],
        before=np.concatenate([none, *(each.before for each in lone)])[order],
        after=np.concatenate([none, *(each.after for each in lone)])[order],
        initial=np.concatenate([none, *(each.initial for each in lone)]),
    )
