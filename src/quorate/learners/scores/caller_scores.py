"""Scores of a caller: asked about one user at a time and cut, or taken on trust and labelled so.

A score of this package keeps users apart and proves its sensitivity. Nobody has looked at one that
was written elsewhere: its ``contribution`` may round a user's value by who else is in the block,
raise at a record, or exceed the bound that it states. So the learners ask it about one user at a
time, keep nothing of what it raises, and cut what it answers to its bound. What cannot be asked so
has to be wrapped in :class:`TrustedScore`, and the guarantee is idealized then.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from quorate import _validate
from quorate._validate import is_of_caller
from quorate.concepts.base import ConceptClass
from quorate.exceptions import ParameterError
from quorate.guarantees import Relation
from quorate.learners.scores.base import AdditiveScore, Integers, MistakeLine, MistakeTable, Score
from quorate.users.crowd import call_quietly

__all__ = ["TrustedScore", "by_user"]


def by_user(score: Score) -> Score:
    """Return a score that keeps users apart: ours as they are, others for one user at a time.

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
    """A score of the caller, asked about one user at a time; what it raises is a 0."""

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
        object.__setattr__(self, "_cap", None if cap is None else int(cap))
        object.__setattr__(self, "name", getattr(self.score, "name", type(self.score).__name__))

    @property
    def record_cap(self) -> int | None:
        """What the caller's score says."""
        return self._cap

    @property
    def bound(self) -> int:
        """What the caller's score says; contributions are cut to it here."""
        return self._bound

    def contribution(self, mistakes: NDArray[np.integer], held: Integers) -> NDArray[np.integer]:
        """Return what one user contributes after another: users in rows."""
        held = np.broadcast_to(held, (len(mistakes), 1))
        found = np.zeros(mistakes.shape, dtype=np.int64)
        for row, (own, count) in enumerate(zip(mistakes, held, strict=True)):
            found[row] = self._alone(own, count)
        return found

    def losses_of_pieces(self, line: MistakeLine) -> Integers:
        """Return the loss of every piece; a user's changes are judged together, and alone."""
        events, held = line.events, line.held
        changes = np.zeros(events.user.size, dtype=np.int64)
        initial = 0
        order = np.argsort(events.user, kind="stable")
        ends = np.searchsorted(events.user[order], np.arange(events.n_users + 1))
        for user in range(events.n_users):
            own = order[ends[user] : ends[user + 1]]
            counts = np.concatenate([events.initial[[user]], events.before[own], events.after[own]])
            judged = self._alone(counts, held[[user]])
            initial += int(judged[0])
            changes[own] = judged[1 + own.size :] - judged[1 : 1 + own.size]
        return line.add_up(changes, initial=initial)

    def _alone(self, mistakes: NDArray[np.integer], held: Integers) -> Integers:
        """Return what the caller's code says about one user, inside the bound."""

        def judged() -> Integers:
            said = np.asarray(self.score.contribution(mistakes[None], held[None]), np.float64)
            whole = np.broadcast_to(np.nan_to_num(said), (1, mistakes.size))[0]
            return np.asarray(np.clip(whole, 0, self._bound), dtype=np.int64)

        answer = call_quietly(judged)
        return np.zeros(mistakes.size, dtype=np.int64) if answer is None else answer


@dataclass(frozen=True)
class TrustedScore(Score):
    """A score of the caller as it is: shown all users at once, its sensitivity taken on trust.

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
        """That the bound was not enforced."""
        return (
            f"The score {type(self.score).__name__} saw many users at once and its sensitivity is "
            "taken on trust (TrustedScore)."
        )

    @property
    def record_cap(self) -> int | None:
        """What the score says."""
        return self.score.record_cap

    @property
    def one_sided(self) -> bool:
        """What the score says."""
        return self.score.one_sided

    def sensitivity(self, relation: Relation) -> int:
        """Return what the score says."""
        return self.score.sensitivity(relation)

    def tally(self, mistakes: NDArray[np.integer], held: Integers) -> Integers:
        """Add up what the score says."""
        return self.score.tally(mistakes, held)

    def losses(self, tally: Integers, *, n_users: int) -> Integers:
        """Return what the score says."""
        return self.score.losses(tally, n_users=n_users)

    def check_class(self, concepts: ConceptClass, *, walked: bool) -> None:
        """Refuse what the score refuses."""
        self.score.check_class(concepts, walked=walked)

    def losses_of_table(self, table: MistakeTable) -> Integers:
        """Return what the score says."""
        return self.score.losses_of_table(table)

    def losses_on_line(self, line: MistakeLine) -> Integers:
        """Return what the score says."""
        return self.score.losses_on_line(line)
