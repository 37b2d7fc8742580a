"""What every score is: one bounded contribution a user, added up, turned into integer losses.

A *loss* is what the selection minimises; there is one for every hypothesis. Each score states how
far one user can move any loss (its sensitivity, an integer) under both neighbouring relations.
Records may be unequal, missing or adversarial: a user's contribution depends on that user's own
mistakes and on how many records that user holds, and stays inside its bound whatever they are.

The same score runs on two kinds of input: a :class:`MistakeTable` (finite classes, users in rows,
read in blocks) and a :class:`MistakeLine` (ordered classes of any size, read as changes). Users may
lie in parts: tallies of parts are added, and so are losses along a line, change by change.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from quorate.concepts.base import ConceptClass, OrderedConceptClass, labelled_records
from quorate.concepts.mistake_events import MistakeEvents
from quorate.exceptions import ParameterError
from quorate.guarantees import Relation
from quorate.users import UserData
from quorate.users.crowd import Crowd

__all__ = ["AdditiveScore", "Integers", "MistakeLine", "MistakeTable", "Score", "all_here"]

Integers = NDArray[np.int64]


@dataclass(frozen=True, eq=False, kw_only=True)
class MistakeTable:
    """Each user's mistakes under each hypothesis of a finite class, read in blocks of users.

    >>> from quorate.concepts import Thresholds
    >>> people = UserData.from_arrays([[0], [1], [1]], [0, 1, 0], users=["a", "a", "b"])
    >>> table = MistakeTable(concepts=Thresholds(0, 1), users=people)
    >>> [(mistakes.tolist(), held.tolist()) for mistakes, held in table.batches()]
    [([[1, 0, 1], [1, 1, 0]], [2, 1])]
    """

    concepts: ConceptClass
    users: Crowd

    @property
    def size(self) -> int:
        """The number of hypotheses."""
        return self.concepts.size

    @property
    def n_users(self) -> int:
        """The number of users."""
        return self.users.n_users

    @property
    def part(self) -> UserData:
        """The users, if they are all here."""
        return all_here(self.users)

    @cached_property
    def held(self) -> Integers:
        """How many records of each user count."""
        return labelled_records(self.part, n_features=self.concepts.n_features).counts()

    def batches(self) -> Iterator[tuple[NDArray[np.int32], Integers]]:
        """Yield mistakes (users x hypotheses) and records held, for consecutive users."""
        for rows, mistakes in self.concepts.mistakes_in_batches(self.part):
            yield mistakes, self.held[rows]


@dataclass(frozen=True, eq=False, kw_only=True)
class MistakeLine:
    """Each user's mistakes along an ordered class, as changes between pieces of hypotheses.

    >>> from quorate.concepts import Thresholds
    >>> people = UserData.from_arrays([[0], [1], [1]], [0, 1, 0], users=["a", "a", "b"])
    >>> line = MistakeLine(concepts=Thresholds(0, 2**40), users=people)
    >>> line.add_up(line.events.after - line.events.before, initial=2)
    array([2, 1, 1])
    """

    concepts: OrderedConceptClass
    users: Crowd

    @property
    def in_parts(self) -> bool:
        """Whether users lie in parts, so that nobody has all changes."""
        return not isinstance(self.users, UserData)

    @property
    def n_users(self) -> int:
        """The number of users."""
        return self.users.n_users

    @property
    def size(self) -> int:
        """The number of hypotheses."""
        return self.concepts.size

    @cached_property
    def starts(self) -> NDArray[np.uint64]:
        """The first hypothesis of each piece; the first piece starts at 0."""
        if not self.in_parts:
            return self.events.starts
        return np.unique(np.concatenate(self.users.map(_Starts(self.concepts))))

    @property
    def lengths(self) -> NDArray[np.uint64]:
        """The number of hypotheses in each piece, at least 1; they add up to ``size``."""
        return np.diff(self.starts, append=np.uint64(self.size))

    def merged(self, score: Score) -> Integers:
        """Return the losses of all users, added up from what each part says along the line."""
        starts, losses = self.users.along_a_line(_Along(score, self.concepts))
        self.__dict__.setdefault("starts", starts)
        return losses

    @cached_property
    def events(self) -> MistakeEvents:
        """Where and for whom the number of mistakes changes; all users must be here."""
        return self.concepts.events_of(all_here(self.users))

    @cached_property
    def held(self) -> Integers:
        """How many records of each user count; all users must be here."""
        return labelled_records(all_here(self.users), n_features=self.concepts.n_features).counts()

    def add_up(
        self, changes: Integers, *, initial: int, which: NDArray[np.intp] | None = None
    ) -> Integers:
        """Return, for each piece, ``initial`` plus all changes (or those of ``which``) up to it."""
        piece = self.events.piece if which is None else self.events.piece[which]
        moved = np.bincount(piece, weights=changes, minlength=self.events.n_pieces)
        return np.int64(initial) + np.cumsum(moved).astype(np.int64)


@dataclass(frozen=True)
class _Starts:
    concepts: OrderedConceptClass

    def __call__(self, part: UserData) -> NDArray[np.uint64]:
        return self.concepts.events_of(part).starts


@dataclass(frozen=True)
class _Along:
    score: Score
    concepts: OrderedConceptClass

    def __call__(self, part: UserData) -> tuple[NDArray[np.uint64], Integers]:
        line = MistakeLine(concepts=self.concepts, users=part)
        return line.starts, self.score.losses_of_pieces(line)


@dataclass(frozen=True)
class _Tallied:
    score: Score
    concepts: ConceptClass

    def __call__(self, part: UserData) -> Integers:
        return self.score.tally_of_table(MistakeTable(concepts=self.concepts, users=part))


def all_here(users: Crowd) -> UserData:
    """Return users who are all in memory; refuse a crowd in parts.

    >>> all_here(UserData([[1.0]], offsets=[0, 1])).n_users
    1
    """
    if not isinstance(users, UserData):
        raise ParameterError(f"Expected users in memory, got {type(users).__name__}.")
    return users


class Score(ABC):
    """A loss for every hypothesis, bounded in what one user can do to it.

    Subclasses are frozen dataclasses; what they hold is public or was released before. One that is
    written outside this package is best an :class:`AdditiveScore`: learners ask it about one user
    at a time and cut what it answers. Another one they take on trust, as a
    :class:`~quorate.learners.scores.TrustedScore`.
    """

    name: ClassVar[str]

    @property
    def record_cap(self) -> int | None:
        """How many records a user may bring; ``None`` keeps all of them."""
        return None

    @property
    def caveat(self) -> str | None:
        """Why a promise about this score is only idealized; None if it is exact."""
        return None

    @property
    def one_sided(self) -> bool:
        """Whether one more user can never lower any loss."""
        return False

    @abstractmethod
    def sensitivity(self, relation: Relation) -> int:
        """How far one user can move any loss."""

    @abstractmethod
    def tally(self, mistakes: NDArray[np.integer], held: Integers) -> Integers:
        """Add up what some users (rows) contribute; tallies of disjoint users may be added."""

    @abstractmethod
    def losses(self, tally: Integers, *, n_users: int) -> Integers:
        """Turn the tally of all users into one loss for each hypothesis."""

    def losses_of_table(self, table: MistakeTable) -> Integers:
        """Return the loss of every hypothesis of a finite class."""
        total = table.users.add_up(_Tallied(self, table.concepts), whole=True)
        return self.losses(total, n_users=table.n_users)

    def tally_of_table(self, table: MistakeTable) -> Integers:
        """Add up what the users of one part contribute."""
        total: Integers | None = None
        for mistakes, held in table.batches():
            part = self.tally(mistakes, held)
            total = part if total is None else total + part
        if total is None:
            empty = np.zeros((0, table.size), dtype=np.int32)
            total = self.tally(empty, np.zeros(0, dtype=np.int64))
        return total

    def check_class(self, concepts: ConceptClass, *, walked: bool) -> None:
        """Refuse a class, walked along its line or enumerated, that this score cannot judge."""
        own = type(self)
        adds_up = own.losses_of_pieces is not Score.losses_of_pieces
        if walked and not adds_up and own.losses_on_line is Score.losses_on_line:
            raise ParameterError(self._needs_a_finite_class(concepts.size))

    def losses_on_line(self, line: MistakeLine) -> Integers:
        """Return the loss of every piece of an ordered class."""
        self.check_class(line.concepts, walked=True)
        return line.merged(self) if line.in_parts else self.losses_of_pieces(line)

    def losses_of_pieces(self, line: MistakeLine) -> Integers:
        """Return the loss of every piece if all users are here; losses of parts add up."""
        raise ParameterError(self._needs_a_finite_class(line.size))

    def _needs_a_finite_class(self, size: int) -> str:
        return (
            f"Expected a finite class for the score {self.name!r}, got an ordered one of {size} "
            "hypotheses. Use 'crossing' or the median of users' cut-offs."
        )


class AdditiveScore(Score):
    """A score whose loss is a sum over users of something between 0 and ``bound``.

    Privacy
    -------
    proof : Each loss is a sum of one term per user in {0, ..., ``bound``}. Replacing a user
        exchanges one term, adding a user adds one: both move the loss by at most ``bound``, and
        an addition never lowers it.
    """

    @property
    @abstractmethod
    def bound(self) -> int:
        """The largest contribution of one user."""

    @abstractmethod
    def contribution(self, mistakes: NDArray[np.integer], held: Integers) -> NDArray[np.integer]:
        """Return what users contribute, element by element; ``held`` broadcasts."""

    @property
    def one_sided(self) -> bool:
        """One more user only adds."""
        return True

    def sensitivity(self, relation: Relation) -> int:
        """Return ``bound``, under both relations."""
        del relation
        return self.bound

    def _bounded(self, mistakes: NDArray[np.integer], held: Integers) -> Integers:
        inside = np.clip(self.contribution(mistakes, held), 0, self.bound)
        return np.asarray(inside, dtype=np.int64)

    def tally(self, mistakes: NDArray[np.integer], held: Integers) -> Integers:
        """Add up the contributions of some users."""
        return np.asarray(self._bounded(mistakes, held[:, np.newaxis]).sum(axis=0))

    def losses(self, tally: Integers, *, n_users: int) -> Integers:
        """Return the sums themselves."""
        del n_users
        return tally

    def losses_of_pieces(self, line: MistakeLine) -> Integers:
        """Return the loss of every piece of an ordered class."""
        events = line.events
        held = line.held[events.user]
        changes = self._bounded(events.after, held) - self._bounded(events.before, held)
        return line.add_up(changes, initial=int(self._bounded(events.initial, line.held).sum()))
