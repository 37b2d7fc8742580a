"""The interface of scores: one bounded contribution per user, added up to integer losses.

A *loss* is what the selection minimises; every hypothesis has one. Each score states its
sensitivity, an integer: the largest change of any loss by one user, under both neighbouring
relations. The core clips contributions accordingly, and the sealed losses carry this sensitivity.
Users may have different numbers of records, missing values or adversarial values. A user's
contribution depends only on that user's own mistakes and number of records, and is always within
its bound.

The same score runs on two kinds of input: :meth:`Score.losses_over` a finite class (users in rows,
read in blocks) and :meth:`Score.losses_along` an ordered class of any size (read as steps).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from types import EllipsisType
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from quorate.core.guarantees import Relation
from quorate.core.people import People
from quorate.core.questions.lines import Heights, SealedLine, Walk
from quorate.core.sealed import Sealed
from quorate.core.users import UserData
from quorate.exceptions import ParameterError
from quorate.learners.concepts.base import ConceptClass, OrderedConceptClass, labelled_records
from quorate.learners.concepts.mistake_events import MistakeEvents

__all__ = [
    "AdditiveScore",
    "Along",
    "Integers",
    "Judged",
    "MistakeLine",
    "MistakeTable",
    "Score",
    "Spoken",
]

Integers = NDArray[np.int64]


@dataclass(frozen=True, eq=False, kw_only=True)
class MistakeTable:
    """Each user's mistakes under each hypothesis of a finite class, read in blocks of users.

    >>> from quorate.learners.concepts import Thresholds
    >>> people = UserData.from_arrays([[0], [1], [1]], [0, 1, 0], users=["a", "a", "b"])
    >>> table = MistakeTable(concepts=Thresholds(0, 1), users=people)
    >>> [(mistakes.tolist(), held.tolist()) for mistakes, held in table.batches()]
    [([[1, 0, 1], [1, 1, 0]], [2, 1])]
    """

    concepts: ConceptClass
    users: UserData

    @cached_property
    def held(self) -> Integers:
        """Number of records of each user that count."""
        return labelled_records(self.users, n_features=self.concepts.n_features).counts()

    def batches(self) -> Iterator[tuple[NDArray[np.int32], Integers]]:
        """Yield mistakes and numbers of records, a block of users at a time."""
        for rows, mistakes in self.concepts.mistakes_in_batches(self.users):
            yield mistakes, self.held[rows]


@dataclass(frozen=True, eq=False, kw_only=True)
class MistakeLine:
    """The changes in some users' mistakes along an ordered class.

    >>> from quorate.learners.concepts import Thresholds
    >>> people = UserData.from_arrays([[0], [4], [4]], [0, 1, 0], users=["a", "a", "b"])
    >>> line = MistakeLine(concepts=Thresholds(0, 2**32), users=people)
    >>> line.events.starts.tolist(), line.held.tolist()
    ([0, 1, 5], [2, 1])
    """

    concepts: OrderedConceptClass
    users: UserData

    @cached_property
    def events(self) -> MistakeEvents:
        """The changes of the users' mistakes."""
        return self.concepts.events_of(self.users)

    @cached_property
    def held(self) -> Integers:
        """Number of records of each user that count."""
        return labelled_records(self.users, n_features=self.concepts.n_features).counts()


@dataclass(frozen=True)
class Along:
    """An ordered class as an argument of ``people.walk(Along(concepts))``."""

    concepts: OrderedConceptClass

    @property
    def size(self) -> int:
        """The number of hypotheses."""
        return self.concepts.size

    def __call__(self, users: UserData) -> MistakeLine:
        """Return the changes in some users' mistakes along the line."""
        return MistakeLine(concepts=self.concepts, users=users)


@dataclass(frozen=True)
class Judged:
    """The contributions of the users to one or several scores of a finite class."""

    concepts: ConceptClass
    scores: tuple[Score, ...]
    low: int
    high: int
    batched: ClassVar[bool] = False

    @property
    def shape(self) -> tuple[int, int]:
        """One row per score, one column per hypothesis."""
        return len(self.scores), self.concepts.size

    def __call__(self, users: UserData) -> Iterator[tuple[int | EllipsisType, NDArray[Any]]]:
        """Yield, block by block of users, the contributions of the users to each score."""
        for mistakes, held in MistakeTable(concepts=self.concepts, users=users).batches():
            for place, score in enumerate(self.scores):
                yield place, score.judged(mistakes, held)


class Score(ABC):
    """A loss for every hypothesis that one user can change by a bounded amount only.

    Subclasses are frozen dataclasses; their fields are public or released. Scores of your own
    should be an :class:`AdditiveScore`: learners call it for one user at a time and clip its
    result. Any other score needs the methods ``tally(mistakes, held)``, which adds up contributions
    of some users, and ``losses(tally, n_users=...)``. Its sensitivity is then trusted, not
    enforced: :class:`~quorate.learners.scores.TrustedScore`.
    """

    name: ClassVar[str]

    @property
    def record_cap(self) -> int | None:
        """Number of records that a user may contribute; ``None`` keeps all of them."""
        return None

    @property
    def caveat(self) -> str | None:
        """Why a guarantee that uses this score is only idealized; None if it is exact."""
        return None

    @property
    def one_sided(self) -> bool:
        """Whether one more user can never lower any loss."""
        return False

    @abstractmethod
    def sensitivity(self, relation: Relation) -> int:
        """Return the largest change of any loss by one user."""

    def judged(self, mistakes: NDArray[np.integer], held: Integers) -> NDArray[Any]:
        """Return the contributions of some users (rows) to each hypothesis."""
        raise ParameterError(self._on_trust())

    def losses_over(self, people: People, concepts: ConceptClass) -> Sealed:
        """Return the loss of every hypothesis of a finite class."""
        raise ParameterError(self._on_trust())

    def losses_along(self, walk: Walk) -> SealedLine:
        """Return the loss of every hypothesis of an ordered class, along its line."""
        raise ParameterError(self._needs_a_finite_class(walk.size))

    def check_class(self, concepts: ConceptClass, *, walked: bool) -> None:
        """Refuse a class (ordered or enumerated) that this score does not support."""
        if walked and type(self).losses_along is Score.losses_along:
            raise ParameterError(self._needs_a_finite_class(concepts.size))

    def _on_trust(self) -> str:
        return (
            f"Expected a score that can be computed where the records are, got "
            f"{type(self).__name__}. Derive it "
            "from AdditiveScore, or wrap it in quorate.learners.scores.TrustedScore."
        )

    def _needs_a_finite_class(self, size: int) -> str:
        return (
            f"Expected a finite class for the score {self.name!r}, got an ordered one of {size} "
            "hypotheses. Use 'crossing' or the median of users' cut-offs."
        )


class AdditiveScore(Score):
    """A score whose loss is a sum over users of contributions between 0 and ``bound``.

    Privacy
    -------
    proof : Each loss is a sum of one term per user in {0, ..., ``bound``}, clipped by the core.
        Replacing a user exchanges one term, and adding a user adds one. Both move the loss by at
        most ``bound``, and an addition never lowers it.
    """

    # Whether mistakes are counted beyond the fewest that any hypothesis makes with this user.
    beyond_own_best: ClassVar[bool] = False

    @property
    @abstractmethod
    def bound(self) -> int:
        """The largest contribution of one user."""

    @abstractmethod
    def contribution(self, mistakes: NDArray[np.integer], held: Integers) -> NDArray[Any]:
        """Return the users' contributions, element by element; ``held`` is broadcast.

        True stands for ``bound`` and False for 0.
        """

    @property
    def one_sided(self) -> bool:
        """Whether one more user can only increase the score."""
        return True

    def sensitivity(self, relation: Relation) -> int:
        """Return ``bound``, under both relations."""
        del relation
        return self.bound

    def judged(self, mistakes: NDArray[np.integer], held: Integers) -> NDArray[Any]:
        """Return the contributions of some users (rows) to each hypothesis."""
        if self.beyond_own_best:
            mistakes = mistakes - mistakes.min(axis=1, keepdims=True)
        return self.contribution(mistakes, held[:, np.newaxis])

    def spoken(self, line: MistakeLine, heights: Heights) -> tuple[NDArray[Any], NDArray[Any]]:
        """Return the users' contributions at the first hypothesis, and after each change."""
        initial, after, held = heights.initial, heights.after, line.held
        if self.beyond_own_best:
            fewest = heights.fewest()
            initial, after = initial - fewest, after - fewest[heights.user]
        return self.contribution(initial, held), self.contribution(after, held[heights.user])

    def losses_over(self, people: People, concepts: ConceptClass) -> Sealed:
        """Return the loss of every hypothesis of a finite class."""
        return people.scores(Judged(concepts, (self,), 0, self.bound))[0]

    def losses_along(self, walk: Walk) -> SealedLine:
        """Return the loss of every hypothesis of an ordered class, along its line."""
        return walk.scores(Spoken(self, 0, self.bound))


@dataclass(frozen=True)
class Spoken:
    """The contributions of users to a score along a line of hypotheses."""

    score: AdditiveScore
    low: int
    high: int

    def __call__(self, view: MistakeLine, heights: Heights) -> tuple[Any, Any]:
        """Return each user's contribution at the first point, and after each step of the user."""
        return self.score.spoken(view, heights)
