"""Scores on a line: ordered candidates, too many to be listed.

Along the line a user's number of mistakes is a step function. :class:`Walk` stores the steps of all
users. A user's score after each of the user's steps is clipped here to public limits, and the
differences of successive scores are added up over users. So the loss of every point is a sum of one
number per user, within the limits. Its sensitivity is that of
:mod:`~quorate.core.questions.scores`. The positions of the steps are private, and so is the number
of pieces into which they divide the line: :class:`SealedLine` shows neither.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
from numpy.typing import NDArray

from quorate.core.alone import refuse_company
from quorate.core.bounds.grid import SUM_LIMIT
from quorate.core.forgetting import forgetting
from quorate.core.guarantees import Relation
from quorate.core.moves import Moves
from quorate.core.questions.pairs import Verdict, refuse_unproved, worst_duels
from quorate.core.questions.scores import bounded
from quorate.core.sealed import _KEY, Closed, Sealed, SealedRows, opened, seal, seal_rows
from quorate.core.users.crowd import Crowd, is_rows, joined_rows, told
from quorate.core.users.data import UserData
from quorate.core.users.grouping import group_by_user
from quorate.exceptions import ParameterError, RelationMismatchError, SchemaError

if TYPE_CHECKING:
    from quorate.core.people import People

__all__ = [
    "Heights",
    "SealedLine",
    "Steps",
    "ViewOf",
    "Walk",
    "line_of_pieces",
    "opened_line",
    "walk_of",
]

Integers = NDArray[np.int64]
Places = NDArray[np.uint64]

# Sums of floats are exact up to here.
_EXACT = 2**53
# Sums of 2^31 such numbers fit into 62 bits.
_FURTHEST = SUM_LIMIT >> 31
# machine: points of a line at which scores of made-up users are compared.
_PROBED = 2**10


class Steps(Protocol):
    """The changes of some users' counts along a line, in the order of their positions.

    The steps of one user are a function of this user's records and of public numbers.
    """

    @property
    def size(self) -> int:
        """How many points the line has; public."""

    @property
    def positions(self) -> Places:
        """The first point after each change, in increasing order."""

    @property
    def user(self) -> Integers:
        """The user of each change."""

    @property
    def after(self) -> Integers:
        """The user's count after the change."""

    @property
    def initial(self) -> Integers:
        """The count of each user at the first point."""


# What is known of some users; its ``events`` are their steps.
View = Any


@dataclass(frozen=True, eq=False)
class Heights:
    """The steps of some users, one user after the other."""

    size: int
    starts: Places
    piece: Integers
    user: Integers
    first: NDArray[np.intp]
    after: Integers
    initial: Integers

    @classmethod
    def of(cls, steps: Steps) -> Heights:
        """Return steps in the order of users, checked."""
        size, positions, user = int(steps.size), steps.positions, steps.user
        initial, after = np.asarray(steps.initial, np.int64), np.asarray(steps.after, np.int64)
        alike = positions.shape == user.shape == after.shape and positions.dtype == np.uint64
        if not (alike and positions.ndim == initial.ndim == 1):
            raise SchemaError("Expected a place, a user and a count for each step.")
        n_users = len(initial)
        opens = np.ones(len(positions), np.bool_)
        np.not_equal(positions[1:], positions[:-1], out=opens[1:])
        if len(positions):
            inside = user.min() >= 0 and user.max() < n_users and int(positions[-1]) < size
            if not inside or (positions[1:] < positions[:-1]).any():
                raise SchemaError("Expected steps of these users, in order, on the line.")
        starts = np.concatenate([np.zeros(1, np.uint64), positions[opens]])
        order = group_by_user(user, n_users=n_users)
        owner = user[order]
        first = np.flatnonzero(np.r_[True, owner[1:] != owner[:-1]][: owner.size])
        piece = np.cumsum(opens, dtype=np.int64)[order]
        return cls(size, starts, piece, owner, first, after[order], initial)

    @property
    def n_users(self) -> int:
        """How many users there are."""
        return int(self.initial.size)

    def fewest(self) -> Integers:
        """Return the smallest count of each user anywhere on the line."""
        after = self.after.copy()
        # Of several changes of one user at one place only the last is attained.
        passed = (self.user[1:] == self.user[:-1]) & (self.piece[1:] == self.piece[:-1])
        np.copyto(after[:-1], np.iinfo(np.int64).max, where=passed)
        fewest = self.initial.copy()
        if len(self.first):
            own = self.user[self.first]
            fewest[own] = np.minimum(fewest[own], np.minimum.reduceat(after, self.first))
        return fewest

    def added_up(self, initial: Integers, after: Integers) -> Integers:
        """Add up one number per user and point, given at the first point and after each step."""
        changes = np.empty_like(after)
        np.subtract(after[1:], after[:-1], out=changes[1:])
        changes[self.first] = after[self.first] - initial[self.user[self.first]]
        moving = np.flatnonzero(changes)
        piece, changes = self.piece[moving], changes[moving]
        if len(moving) * int(np.abs(changes).max(initial=0)) < _EXACT:
            moved = np.bincount(piece, weights=changes, minlength=len(self.starts))
        else:
            moved = np.zeros(len(self.starts), np.int64)
            np.add.at(moved, piece, changes)
        return np.int64(initial.sum()) + np.cumsum(moved).astype(np.int64)

    def cut(self, steps: int) -> Heights:
        """Return the first steps of each user, up to a public number."""
        held = np.diff(np.r_[self.first, self.user.size])
        rank = np.arange(self.user.size) - np.repeat(self.first, held)
        kept = rank < steps
        used, place = np.unique(self.piece[kept], return_inverse=True)
        starts = self.starts[np.r_[0, used]]
        first = np.flatnonzero(rank[kept] == 0)
        return replace(
            self, starts=starts, piece=place + 1, user=self.user[kept], first=first,
            after=self.after[kept],
        )  # fmt: skip


class SpokenAlong(Protocol):
    """The users' scores along a line."""

    @property
    def low(self) -> int:
        """Scores are clipped to this range; public."""

    @property
    def high(self) -> int:
        """The upper end of the range; public."""

    def __call__(self, view: View, heights: Heights) -> tuple[NDArray[Any], NDArray[Any]]:
        """Return each user's score at the first point, and after each step of the user.

        A user's scores are a function of this user's records.
        """


class Walk(Closed[tuple["People", "_Seen | None"]]):
    """People along a line; in memory their steps are computed only once."""

    __slots__ = ("size", "view")
    _asked = "people.walk(...)"
    _how = "Ask it for scores along the line, or for one row a user."

    def __init__(
        self,
        key: object,
        inside: tuple[People, _Seen | None],
        relation: Relation,
        among: object | None,
        view: ViewOf,
    ) -> None:
        super().__init__(key, inside, relation, among)
        self.view, self.size = view, view.size

    def __repr__(self) -> str:
        return f"Walk(size={self.size})"

    @property
    def people(self) -> People:
        """The people whose steps are used."""
        return opened(self)[0]

    def scores(self, spoken: SpokenAlong) -> SealedLine:
        """Add up the users' scores, clipped to a public range, at every point of the line."""
        if max(-spoken.low, spoken.high) > _FURTHEST:
            raise ParameterError("Expected limits of scores on a line between -2^31 and 2^31.")
        people, here = opened(self)
        work = partial(_said_in_part, self.view, spoken)
        probed = partial(_at_some_points, self.view, spoken)
        refuse_company(work, probed, people._held_crowd().nobody(), added=True)
        with forgetting(spoken, self.view):
            if here is not None:
                starts, losses = _said(here, spoken)
            else:
                crowd = people._held_crowd()
                starts, losses = crowd.along_a_line(work)
        moves = Moves.of_judgements(
            spoken.low, spoken.high, coordinates=self.size, relation=people.relation
        )
        return self._line(starts, losses, moves)

    def duels(self, verdict: Verdict, *, most_pieces: int) -> SealedLine:
        """Return twice the worst duel of each point. The users must be few enough for a table.

        The table of duels grows with the square of the number of pieces. So each user keeps only as
        many steps as give ``most_pieces`` altogether, a number that is public if the number of
        users is.
        """
        refuse_unproved(verdict)
        people, here = opened(self)
        steps = (most_pieces - 1) // max(1, people.n_users)
        if steps == 0:
            raise ParameterError(
                f"Expected fewer than {most_pieces} users for duels along a line, got "
                f"{people.n_users}. Use 'own_best' or 'median'."
            )
        seen = here or _Seen(people._held_crowd().together(), self.view)
        starts, losses = _quietly(lambda: _duels(seen.heights.cut(steps), verdict))
        return self._line(starts, losses, verdict.moves(self.size, people.relation))

    def each(self, values: Callable[[View], NDArray[Any]]) -> SealedRows:
        """Return one row of numbers for each user."""
        people, here = opened(self)
        work, nobody = partial(_rows_of_part, self.view, values), people._held_crowd().nobody()
        refuse_company(work, work, nobody)
        with forgetting(values, self.view):
            if here is not None:
                parts = [_rows(here.seen, here.n_users, values)]
            else:
                parts = people._held_crowd().map(work)
            rows = joined_rows([work(nobody), *parts])
        return seal_rows(rows, people.relation, among=people.among)

    def _line(self, starts: Places, losses: Integers, moves: Moves) -> SealedLine:
        return SealedLine(_KEY, starts, losses, self.size, moves, self.relation, self.among)


class ViewOf(Protocol):
    """Finds the steps of some users; it is immutable, so that it can be sent to workers."""

    @property
    def size(self) -> int:
        """How many points the line has."""

    def __call__(self, users: UserData) -> View:
        """Return the input of a score; its ``events`` are the steps."""


class _Seen:
    """Data computed about people in memory, and their steps, each computed once."""

    def __init__(self, users: UserData, view: ViewOf) -> None:
        self._users, self._view, self.n_users = users, view, users.n_users
        self._seen: View = None
        self._heights: Heights | None = None

    @property
    def seen(self) -> View:
        if self._seen is None:
            self._seen = _quietly(lambda: self._view(self._users))
        return self._seen

    @property
    def heights(self) -> Heights:
        if self._heights is None:
            seen = self.seen
            self._heights = _quietly(lambda: Heights.of(seen.events))
        if self._heights.n_users != self.n_users or self._heights.size != self._view.size:
            raise SchemaError("Expected the steps of these users along this line.")
        return self._heights


class SealedLine(Closed[tuple[Places, Integers]]):
    """A loss for each point of a line, in pieces of equal loss that are private."""

    __slots__ = ("moves", "size")
    _asked = "people.walk(...) for scores"
    _how = "Choose a point of it with ChooseOrdered, or release its smallest loss."

    def __init__(
        self,
        key: object,
        starts: Places,
        losses: Integers,
        size: int,
        moves: Moves,
        relation: Relation,
        among: object | None,
    ) -> None:
        super().__init__(key, (starts, losses), relation, among)
        self.moves, self.size = moves, size

    def __repr__(self) -> str:
        reach = f"{float(self.moves.largest):.6g}"
        return f"SealedLine(size={self.size}, one user moves a loss by at most {reach})"

    def min(self) -> Sealed:
        """Return the smallest loss; its sensitivity is that of one loss."""
        smallest = np.array([opened(self)[1].min()])
        return seal(smallest, self.moves.extremes(1), self.relation, self.among)

    def above_least(self) -> SealedLine:
        """Return how far each loss lies above the smallest."""
        starts, losses = opened(self)
        losses = losses - losses.min()
        return self._with(starts, losses, self.moves.above_least(self.size))

    def maximum(self, other: SealedLine) -> SealedLine:
        """Return the larger of two losses at each point, as sensitive as one of them."""
        same = self.relation is other.relation and self.among is other.among
        if not same or self.size != other.size:
            raise RelationMismatchError("Expected losses of the same people along the same line.")
        a, b = self.moves, other.moves
        reach, rising = max(a.largest, b.largest), a.rising and b.rising
        moves = Moves.of_scores(reach, coordinates=self.size, one_sided=rising)
        # Where pieces begin is private: lines that were cut elsewhere are not refused but cut.
        starts = np.union1d(opened(self)[0], opened(other)[0])
        losses = np.maximum(*(each.__at(starts) for each in (self, other)))
        return self._with(starts, losses, moves)

    def __at(self, starts: Places) -> Integers:
        """Return the loss at each of these points."""
        own, losses = opened(self)
        return losses[np.searchsorted(own, starts, side="right") - 1]

    def between(self, first: int, last: int) -> SealedLine:
        """Return the points from the public ``first`` to the public ``last``."""
        if not 0 <= first <= last < self.size:
            raise ParameterError(f"Expected 0 <= first <= last < {self.size}.")
        starts, losses = opened(self)
        begin = int(np.searchsorted(starts, np.uint64(first), side="right")) - 1
        pieces = slice(begin, int(np.searchsorted(starts, np.uint64(last), side="right")))
        inside = np.maximum(starts[pieces], np.uint64(first)) - np.uint64(first)
        moves = self.moves.of_some(last - first + 1)
        return self._with(inside, losses[pieces], moves, size=last - first + 1)

    def stretched(self, places: Places, copies: Places) -> SealedLine:
        """Repeat every point from ``places[i]`` on ``copies[i]`` times; both are public.

        A copy has the loss of its point, so the sensitivity is the same.
        """
        until = [*places[1:].tolist(), self.size]
        runs = list(zip(places.tolist(), until, copies.tolist(), strict=True))
        if runs[0][0] != 0 or any(stop <= start for start, stop, _ in runs):
            raise ParameterError("Expected increasing places on the line, the first of them 0.")
        if not 0 < sum((stop - start) * copied for start, stop, copied in runs) < 2**64:
            raise ParameterError("Expected copies of at least one and fewer than 2^64 points.")
        # Two sorted rows: a merge is ten times as quick as numpy's search for distinct numbers.
        edges = np.sort(np.concatenate([opened(self)[0], places]), kind="stable")
        edges = edges[np.append(True, edges[1:] != edges[:-1])]
        weight = copies[np.searchsorted(places, edges, side="right") - 1]
        losses = self.__at(edges)
        lengths = np.diff(edges, append=np.uint64(self.size)) * weight
        ends = np.cumsum(lengths)
        starts = np.concatenate([np.zeros(1, np.uint64), ends[:-1]])
        size = int(ends[-1])
        reach, rising = self.moves.largest, self.moves.rising
        moves = Moves(size * reach, size * reach**2, reach, self.moves.spread, rising)
        return self._with(starts, losses, moves, size=size)

    def _with(
        self, starts: Places, losses: Integers, moves: Moves, *, size: int | None = None
    ) -> SealedLine:
        size = self.size if size is None else size
        return SealedLine(_KEY, starts, losses, size, moves, self.relation, self.among)


def walk_of(people: People, crowd: Crowd, view: ViewOf) -> Walk:
    """Return people along a line."""
    here = _Seen(crowd, view) if isinstance(crowd, UserData) else None
    return Walk(_KEY, (people, here), people.relation, people.among, view)


def line_of_pieces(
    lengths: Places, losses: Integers, moves: Moves, relation: Relation, among: object | None
) -> SealedLine:
    """Seal losses on a line that is given in pieces of equal loss, perhaps empty ones.

    The caller has proved the sensitivity; whether the pieces are valid is checked when the line is
    opened.
    """
    sizes = np.asarray(lengths).astype(np.uint64)
    starts = np.cumsum(sizes) - sizes
    return SealedLine(_KEY, starts, losses, int(np.sum(sizes)), moves, relation, among)


def opened_line(line: SealedLine) -> tuple[Places, Integers]:
    """Return lengths and losses of the pieces; for a choice that has recorded its cost."""
    starts, losses = opened(line)
    return np.diff(starts, append=np.uint64(line.size)), losses


def _quietly(work: Callable[[], Any]) -> Any:
    return told(work, "steps along the line, and users' scores after each")


def _said(here: _Seen, spoken: SpokenAlong) -> tuple[Places, Integers]:
    heights = here.heights

    def added_up() -> Integers:
        at_first, after = spoken(here.seen, heights)
        if at_first.shape != heights.initial.shape or after.shape != heights.after.shape:
            raise SchemaError(
                "Expected one score for each user at the first point and after each step."
            )
        low, high = spoken.low, spoken.high
        return heights.added_up(bounded(at_first, low, high), bounded(after, low, high))

    return heights.starts, _quietly(added_up)


def _said_in_part(view: ViewOf, spoken: SpokenAlong, part: UserData) -> tuple[Places, Integers]:
    return _said(_Seen(part, view), spoken)


def _at_some_points(view: ViewOf, spoken: SpokenAlong, users: UserData) -> Integers:
    """Return the losses at some public points, for comparing users together with users alone."""
    starts, losses = _said_in_part(view, spoken, users)
    points = [view.size * place // _PROBED for place in range(_PROBED)]
    return losses[np.searchsorted(starts, np.array(points, np.uint64), side="right") - 1]


def _rows(seen: View, n_users: int, values: Callable[[View], NDArray[Any]]) -> NDArray[Any]:
    return told(
        lambda: np.asarray(values(seen)), "numbers, one row a user", partial(is_rows, size=n_users)
    )


def _rows_of_part(
    view: ViewOf, values: Callable[[View], NDArray[Any]], part: UserData
) -> NDArray[Any]:
    return _rows(_Seen(part, view).seen, part.n_users, values)


def _duels(heights: Heights, verdict: Verdict) -> tuple[Places, Integers]:
    """Return the first points of the pieces, and twice the worst duel of each."""
    starts = heights.starts
    furthest = heights.n_users * max(verdict.highest, -verdict.lowest)
    kind = np.int32 if furthest < 2**31 else np.int64  # sums on the way may wrap around
    corners = np.zeros((len(starts), len(starts)), dtype=kind)
    ends = np.cumsum(np.bincount(heights.user, minlength=heights.n_users))
    for user, stop in enumerate(ends):
        own = slice(ends[user - 1] if user else 0, stop)
        piece, errors = heights.piece[own], heights.after[own]
        last = np.r_[piece[1:] != piece[:-1], True][: piece.size]
        place = np.r_[0, piece[last]]
        errors = np.r_[heights.initial[user], errors[last]]
        duels = verdict.judge(errors[:, np.newaxis], errors[np.newaxis, :])
        jumps = np.diff(np.diff(duels, axis=0, prepend=0), axis=1, prepend=0)
        corners[np.ix_(place, place)] += jumps.astype(kind)
    np.cumsum(corners, axis=0, out=corners)
    np.cumsum(corners, axis=1, out=corners)
    if len(starts) > 1 and starts[1] == 0:  # no point has counts that change at the first one
        starts, corners = starts[1:], corners[1:, 1:]
    alone = np.diff(starts, append=np.uint64(heights.size)) == 1
    return starts, worst_duels(corners, alone, verdict, n_users=heights.n_users)
