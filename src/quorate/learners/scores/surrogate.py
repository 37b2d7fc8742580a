"""The score of a representation, by the concepts that it represents (L1, L4).

Theorems 3.4 and 4.6 of Li, Wang, Ye: if hypotheses H merely represent a class C (improper
learning), h is scored by ``min over c in C of err(c) + dis(c, h)``, so that only C and not H has to
generalise agnostically. At user level err counts the users with more than t mistakes of c, and dis
counts the users for whom c and h disagree on more than s records (s = 0 suffices). With H inside C
and s = 0 this equals the plain count of users, with twice the sensitivity, so use it for
representations only.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from types import EllipsisType
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from quorate import _validate
from quorate.core.guarantees import Relation
from quorate.core.people import People
from quorate.core.questions.lines import SealedLine, Walk
from quorate.core.sealed import Sealed
from quorate.core.users import UserData
from quorate.exceptions import ParameterError
from quorate.learners.concepts.base import ConceptClass, LabelledRecords, labelled_records
from quorate.learners.scores.base import Integers, Score, Spoken
from quorate.learners.scores.more_than import MoreThan

__all__ = ["Surrogate"]

# Pairs (concept, hypothesis): one table of counts of this size is held in memory.
_MAX_PAIRS = 2**24


@dataclass(frozen=True, kw_only=True)
class Surrogate(Score):
    """Loss of h: the fewest users, over concepts c, who err with c or distinguish c and h.

    Privacy
    -------
    sensitivity : 2, under both relations; one more user only adds
    proof : For each pair (c, h) the sum has one term per user in {0, 1, 2}: 1 if c errs on more
        than t of the user's records, plus 1 if c and h differ on more than ``disagreements`` of
        them. A minimum over c changes by at most as much as its terms.

    Complexity
    ----------
    Time O(N |C| |H|) for N records, memory O(|C| |H|), at most 2**24 pairs.

    Parameters
    ----------
    target : ConceptClass
        The class C.
    rate : float, default=0.0
        t = floor(rate x records held), as in :class:`MoreThan`.
    disagreements : int, default=0
        The s of the paper.
    records : int or None, default=None
        Keep at most this many records per user; 1 gives the item-level learner L1.

    Examples
    --------
    >>> from quorate.learners.concepts import Thresholds
    >>> data = UserData.from_arrays([[0], [2], [1]], [0, 1, 1], users=["a", "a", "b"])
    >>> people, coarse = People(data, Relation.REPLACE), Thresholds(0, 2, step=2)
    >>> Surrogate(target=Thresholds(0, 2)).losses_over(people, coarse)
    Sealed(shape=(3,), one user moves a coordinate by at most 2)
    """

    name = "surrogate"
    target: ConceptClass
    rate: float = 0.0
    disagreements: int = 0
    records: int | None = None

    def __post_init__(self) -> None:
        _validate.fraction(rate=self.rate)
        _validate.non_negative_integer(disagreements=self.disagreements)
        if self.records is not None:
            _validate.positive_integer(records=self.records)

    @property
    def caveat(self) -> str | None:
        """The caveat of the target class."""
        return self.target.caveat

    @property
    def record_cap(self) -> int | None:
        """``records``."""
        return self.records

    @property
    def one_sided(self) -> bool:
        """One more user can only raise the losses."""
        return True

    def sensitivity(self, relation: Relation) -> int:
        """Return 2, under both relations."""
        del relation
        return 2

    def check_class(self, concepts: ConceptClass, *, walked: bool) -> None:
        """Refuse a representation with too many pairs with the target class."""
        super().check_class(concepts, walked=walked)
        if walked and concepts == self.target and not self.disagreements:
            return
        pairs = self.target.size * concepts.size
        if pairs > _MAX_PAIRS:
            raise ParameterError(
                f"Expected at most {_MAX_PAIRS} pairs of concept and hypothesis for the surrogate "
                f"score, got {pairs}. Use a smaller representation."
            )

    def losses_along(self, walk: Walk) -> SealedLine:
        """Return the loss of every hypothesis of an ordered class that represents itself.

        With c = h the sum is err(h). If another c errs on at most t records of a user and agrees
        with h on all of them, then h also errs on at most t. Hence the minimum is err(h) itself,
        and only the sensitivity of 2 distinguishes the two scores.
        """
        if getattr(walk.view, "concepts", None) != self.target or self.disagreements:
            raise ParameterError(self._needs_a_finite_class(walk.size))
        return walk.scores(Spoken(_Counted(rate=self.rate), 0, 2))

    def losses_over(self, people: People, concepts: ConceptClass) -> Sealed:
        """Return the loss of every hypothesis of the representation ``concepts``."""
        self.check_class(concepts, walked=False)
        return people.scores(_Pairs(self, concepts, 0, 2)).min(axis=0)


class _Counted(MoreThan):
    """Whether a user has more than t mistakes, as 1 or 0, because the results are added."""

    def contribution(self, mistakes: NDArray[np.integer], held: Integers) -> NDArray[Any]:
        return super().contribution(mistakes, held).astype(np.int64)


@dataclass(frozen=True)
class _Pairs:
    """The users' contributions for each concept (rows) and each hypothesis (columns)."""

    score: Surrogate
    concepts: ConceptClass
    low: int
    high: int
    batched: ClassVar[bool] = False

    @property
    def shape(self) -> tuple[int, int]:
        return self.score.target.size, self.concepts.size

    def __call__(self, users: UserData) -> Iterator[tuple[EllipsisType, NDArray[np.int8]]]:
        score = self.score
        records = labelled_records(users, n_features=self.concepts.n_features)
        predicted_by_c = _predictions(score.target, records)
        predicted_by_h = _predictions(self.concepts, records)
        wrong = predicted_by_c != records.y[:, np.newaxis]
        for rows in _users(records.counts()):
            c, h = predicted_by_c[rows].astype(np.float32), predicted_by_h[rows].astype(np.float32)
            differ = c.T @ (1 - h) + (1 - c).T @ h
            limit = np.floor(score.rate * len(c))
            said = (differ > score.disagreements + 0.5).astype(np.int8)
            said += (wrong[rows].sum(axis=0) > limit)[:, np.newaxis]
            yield ..., said[np.newaxis]


def _predictions(concepts: ConceptClass, records: LabelledRecords) -> NDArray[np.bool_]:
    rules = (concepts.concept(index) for index in range(concepts.size))
    columns = [rule.predict_by_user(records) for rule in rules]
    return np.stack(columns, axis=1)


def _users(counts: Integers) -> Iterator[slice]:
    """Yield the rows of each user; records stand in the order of their users."""
    stop = 0
    for count in counts.tolist():
        stop, start = stop + count, stop
        yield slice(start, stop)
