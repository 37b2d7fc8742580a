"""Scores written by the caller: evaluated user by user and clipped, or trusted and marked as such.

A score of this package treats users separately and proves its sensitivity. A score written
elsewhere may not: its ``contribution`` may depend on other users in the block, raise an error at a
record, or exceed its stated bound. So learners evaluate it for one user at a time, discard its
errors, and clip its values to its bound. A score that cannot be evaluated like this has to be
wrapped in :class:`TrustedScore`, and the guarantee is then idealized.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from quorate import _validate
from quorate._validate import is_of_caller
from quorate.core.guarantees import Relation
from quorate.core.people import People
from quorate.core.questions.lines import Heights, SealedLine, Walk
from quorate.core.questions.scores import scores_on_trust
from quorate.core.sealed import Sealed
from quorate.core.users import UserData
from quorate.core.users.crowd import call_quietly
from quorate.exceptions import ParameterError
from quorate.learners.concepts.base import ConceptClass
from quorate.learners.scores.base import AdditiveScore, Integers, MistakeLine, MistakeTable, Score

__all__ = ["TrustedScore", "by_user"]


def by_user(score: Score) -> Score:
    """Return a score that is computed for one user at a time, unless it belongs to this package.

    >>> from quorate.learners.scores import AnyMistake
    >>> by_user(AnyMistake())
    AnyMistake()
    """
    if not is_of_caller(score):
        return score
    if not isinstance(score, AdditiveScore):
        raise ParameterError(
            f"Expected a score whose contributions can be cut to a bound, got "
            f"{type(score).__name__}. Derive it from AdditiveScore, or wrap it in "
            "quorate.learners.scores.TrustedScore: its sensitivity is taken on trust then."
        )
    return _OneByOne(score)


@dataclass(frozen=True)
class _OneByOne(AdditiveScore):
    """A score of the caller, called for one user at a time; an error counts as 0."""

    score: AdditiveScore
    # Read once: a property of the caller could answer otherwise the next time.
    _bound: int = field(init=False, repr=False)
    _cap: int | None = field(init=False, repr=False)

    def __post_init__(self) -> None:
        bound, cap = self.score.bound, self.score.record_cap
        _validate.positive_integer(bound=bound)
        if cap is not None:
            _validate.positive_integer(record_cap=cap)
        object.__setattr__(self, "_bound", int(bound))
        object.__setattr__(self, "beyond_own_best", bool(self.score.beyond_own_best))
        object.__setattr__(self, "_cap", None if cap is None else int(cap))
        object.__setattr__(self, "name", getattr(self.score, "name", type(self.score).__name__))

    @property
    def record_cap(self) -> int | None:
        """The cap of the caller's score."""
        return self._cap

    @property
    def bound(self) -> int:
        """The bound that the caller's score states; contributions are clipped to it here."""
        return self._bound

    def contribution(self, mistakes: NDArray[np.integer], held: Integers) -> NDArray[np.integer]:
        """Return the contributions of the users, computed one after the other: users in rows."""
        held = np.broadcast_to(held, (len(mistakes), 1))
        found = np.zeros(mistakes.shape, dtype=np.int64)
        for row, (own, count) in enumerate(zip(mistakes, held, strict=True)):
            found[row] = self._alone(own, count)
        return found

    def spoken(self, line: MistakeLine, heights: Heights) -> tuple[Integers, Integers]:
        """Return contributions along a line, computed for one user after the other."""
        held, ends = line.held, np.searchsorted(heights.user, np.arange(heights.n_users + 1))
        initial, after = np.zeros_like(heights.initial), np.zeros_like(heights.after)
        fewest = heights.fewest() if self.beyond_own_best else np.zeros_like(initial)
        for user in range(heights.n_users):
            own = slice(ends[user], ends[user + 1])
            counts = np.concatenate([heights.initial[[user]], heights.after[own]])
            judged = self._alone(counts - fewest[user], held[[user]])
            initial[user], after[own] = judged[0], judged[1:]
        return initial, after

    def _alone(self, mistakes: NDArray[np.integer], held: Integers) -> Integers:
        """Return the caller's result for one user, clipped to the bound."""

        def judged() -> Integers:
            said = np.asarray(self.score.contribution(mistakes[None], held[None]), np.float64)
            whole = np.broadcast_to(np.nan_to_num(said), (1, mistakes.size))[0]
            return np.asarray(np.clip(whole, 0, self._bound), dtype=np.int64)

        answer = call_quietly(judged)
        return np.zeros(mistakes.size, dtype=np.int64) if answer is None else answer


@dataclass(frozen=True)
class TrustedScore(Score):
    """A score of the caller that gets all users at once; its sensitivity is trusted.

    Privacy
    -------
    sensitivity : what ``score`` says; nobody has checked it
    numerics : idealized: the guarantee says that this score was trusted

    Parameters
    ----------
    score : Score

    Examples
    --------
    >>> from quorate.learners.scores import AnyMistake
    >>> trusted = TrustedScore(AnyMistake())
    >>> trusted.sensitivity(Relation.REPLACE), "AnyMistake" in trusted.caveat
    (1, True)
    """

    score: Score

    def __post_init__(self) -> None:
        if not isinstance(self.score, Score):
            raise ParameterError(f"Expected a Score, got {type(self.score).__name__}.")
        object.__setattr__(self, "name", getattr(self.score, "name", type(self.score).__name__))

    @property
    def caveat(self) -> str:
        """The statement that the bound was not enforced."""
        return (
            f"The score {type(self.score).__name__} saw many users at once and its sensitivity is "
            "taken on trust (TrustedScore)."
        )

    @property
    def record_cap(self) -> int | None:
        """The cap of the wrapped score."""
        return self.score.record_cap

    @property
    def one_sided(self) -> bool:
        """The value of the wrapped score."""
        return self.score.one_sided

    def sensitivity(self, relation: Relation) -> int:
        """Return the sensitivity that the wrapped score states."""
        return self.score.sensitivity(relation)

    def check_class(self, concepts: ConceptClass, *, walked: bool) -> None:
        """Refuse a class that the wrapped score refuses."""
        self.score.check_class(concepts, walked=walked)

    def judged(self, mistakes: NDArray[np.integer], held: Integers) -> NDArray[Any]:
        """Return the contributions given by the wrapped score."""
        return self.score.judged(mistakes, held)

    def losses_over(self, people: People, concepts: ConceptClass) -> Sealed:
        """Return the losses of the score; its sensitivity is trusted."""
        if type(self.score).losses_over is not Score.losses_over:
            return self.score.losses_over(people, concepts)
        return scores_on_trust(
            people,
            _Tallied(self.score, concepts),
            self.score.losses,  # type: ignore[attr-defined]
            sensitivity=self.score.sensitivity(people.relation),
            one_sided=self.score.one_sided,
        )

    def losses_along(self, walk: Walk) -> SealedLine:
        """Return the losses of the score."""
        return self.score.losses_along(walk)


@dataclass(frozen=True)
class _Tallied:
    """Adds up the contributions of some users to a trusted score."""

    score: Any
    concepts: ConceptClass

    def __call__(self, users: UserData) -> Integers:
        table = MistakeTable(concepts=self.concepts, users=users)
        empty = np.zeros((0, self.concepts.size), dtype=np.int32)
        total = self.score.tally(empty, np.zeros(0, dtype=np.int64))
        return np.asarray(sum((self.score.tally(*block) for block in table.batches()), start=total))
