"""Duels: every user compares all pairs of candidates; a candidate's loss is its worst duel.

A user's term in a duel of h against h' lies between public limits: it is one of three numbers, or a
difference that is clipped here. With w the width between the limits, replacing the user changes
each duel by at most w, hence the worst duel of h by at most w, and the loss, which is twice the
worst duel, by at most 2 w. One more user changes the worst duel by a number between the limits, and
n by 1. So 2 x worst - (highest + lowest) x n changes by a number in [-w, w]. The second term is the
same for all candidates and does not change the choice.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from quorate import _validate
from quorate.core.guarantees import Relation
from quorate.core.moves import Moves
from quorate.core.users.crowd import told
from quorate.core.users.data import UserData
from quorate.exceptions import ParameterError, SchemaError

__all__ = [
    "AddedDuels",
    "Blocks",
    "ByDifference",
    "BySign",
    "Verdict",
    "count_defeats",
    "refuse_unproved",
    "worst_duels",
]

Integers = NDArray[np.int64]
# Yields the mistakes of some users with each candidate, one row a user, block by block.
Blocks = Callable[[UserData], Iterable[NDArray[np.integer]]]

# Users whose duels are added up in bytes before they move on to wider integers.
_BYTE_USERS = 255
# Twice the duels of 2^31 users with such limits fit into 62 bits.
_WIDEST = 2**30


class Verdict(ABC):
    """A user's verdict on two candidates, computed from that user's numbers of mistakes."""

    @property
    @abstractmethod
    def highest(self) -> int:
        """Largest number that one user adds to a duel."""

    @property
    @abstractmethod
    def lowest(self) -> int:
        """Smallest number that one user adds to a duel."""

    @abstractmethod
    def judge(self, first: Integers, second: Integers) -> Integers:
        """Return a user's verdict on the first candidate against the second."""

    @abstractmethod
    def tally(self, mistakes: NDArray[np.integer]) -> Integers:
        """Add up some users' duels, every candidate (rows) against every other (columns)."""

    def __post_init__(self) -> None:
        if self.highest - self.lowest > _WIDEST:
            raise ParameterError(
                f"Expected limits of duels at most 2^30 apart, got from "
                f"{self.lowest} to {self.highest}."
            )

    def sensitivity(self, relation: Relation) -> int:
        """Return the sensitivity of a loss; see the module."""
        width = self.highest - self.lowest
        return 2 * width if relation is Relation.REPLACE else width

    def moves(self, candidates: int, relation: Relation) -> Moves:
        """Return the sensitivity of the losses of this many candidates."""
        reach = self.sensitivity(relation)
        return Moves.of_scores(reach, coordinates=candidates, one_sided=False)


@dataclass(frozen=True)
class BySign(Verdict):
    """``loss`` if the first candidate errs more often, ``-gain`` if less often, 0 for a tie.

    >>> BySign(2, 1).judge(np.array([3, 1, 2]), np.array([2, 2, 2])).tolist()
    [2, -1, 0]
    """

    loss: int
    gain: int

    def __post_init__(self) -> None:
        # A tie is 0, which has to lie between the limits.
        _validate.non_negative_integer(loss=self.loss, gain=self.gain)
        super().__post_init__()

    @property
    def highest(self) -> int:
        """The value of a lost duel."""
        return self.loss

    @property
    def lowest(self) -> int:
        """The value of a won duel."""
        return -self.gain

    def judge(self, first: Integers, second: Integers) -> Integers:
        """Return ``loss`` if the first candidate errs more, ``-gain`` if it errs less, else 0."""
        verdict: Integers = self.loss * (first > second) - self.gain * (first < second)
        return verdict

    def tally(self, mistakes: NDArray[np.integer]) -> Integers:
        """Add up some users' duels, every candidate (rows) against every other (columns)."""
        defeats = count_defeats(mistakes).astype(np.int64)
        return np.asarray(self.loss * defeats - self.gain * defeats.T)


@dataclass(frozen=True)
class ByDifference(Verdict):
    """The difference of mistakes, clipped to [-tau, tau].

    >>> ByDifference(2).judge(np.array([9, 1]), np.array([2, 2])).tolist()
    [2, -1]
    """

    tau: int

    @property
    def highest(self) -> int:
        """The clip."""
        return self.tau

    @property
    def lowest(self) -> int:
        """The lower end of the clip."""
        return -self.tau

    def judge(self, first: Integers, second: Integers) -> Integers:
        """Return the clipped difference of mistakes."""
        return np.asarray(np.clip(first - second, -self.tau, self.tau))

    def tally(self, mistakes: NDArray[np.integer]) -> Integers:
        """Add up some users' duels, every candidate (rows) against every other (columns)."""
        size = mistakes.shape[1]
        table = np.zeros((size, size), dtype=np.int64)
        for errors in mistakes.astype(np.int64):
            table += self.judge(errors[:, np.newaxis], errors[np.newaxis, :])
        return table


def refuse_unproved(verdict: Verdict) -> None:
    """Refuse a verdict whose limits are not proved, because its sums are not clipped again."""
    if type(verdict) not in (BySign, ByDifference):
        raise ParameterError(f"Expected BySign or ByDifference, got {type(verdict).__name__}.")


def count_defeats(mistakes: NDArray[np.integer]) -> NDArray[np.int32]:
    """Count, for every pair (row h, column h'), the users on whose records h errs more than h'.

    It takes O(n |H|^2) time and O(|H|^2) memory: one user is compared at a time, and the
    comparisons are added up in bytes, 255 users at a time.

    >>> count_defeats(np.array([[0, 1, 1], [2, 0, 2]]))
    array([[0, 1, 0],
           [1, 0, 0],
           [1, 1, 0]], dtype=int32)
    """
    size = mistakes.shape[1]
    narrow = _narrow(mistakes)
    defeats = np.zeros((size, size), dtype=np.int32)
    worse = np.empty((size, size), dtype=np.bool_)
    votes = worse.view(np.uint8)
    count = np.empty((size, size), dtype=np.uint8)
    for start in range(0, len(narrow), _BYTE_USERS):
        count[...] = 0
        for errors in narrow[start : start + _BYTE_USERS]:
            np.greater(errors[:, np.newaxis], errors, out=worse)
            np.add(count, votes, out=count)
        defeats += count
    return defeats


def _narrow(mistakes: NDArray[np.integer]) -> NDArray[np.integer]:
    """Return integers of few bits with the same order within every row."""
    highest = mistakes.max(initial=0)
    if highest < 2**15 and mistakes.min(initial=0) >= 0:
        return mistakes.astype(np.uint8 if highest < 2**8 else np.int16)
    ranks = np.empty(mistakes.shape, dtype=np.int16)
    for row, errors in enumerate(mistakes):
        ranks[row] = np.unique(errors, return_inverse=True)[1]
    return ranks


@dataclass(frozen=True)
class AddedDuels:
    """Adds up the duels of some users; ``blocks`` yields their mistakes, one row per user."""

    blocks: Blocks
    size: int
    verdict: Verdict

    def __call__(self, users: UserData) -> Integers:
        """Return the table of duels."""
        return told(lambda: self._table(users), "integers for each user and candidate")

    def _table(self, users: UserData) -> Integers:
        table, asked = np.zeros((self.size, self.size), np.int64), 0
        for mistakes in self.blocks(users) if users.n_users else ():
            if mistakes.shape[1:] != (self.size,) or mistakes.dtype.kind not in "iu":
                raise SchemaError("Expected one integer for each candidate.")
            table += self.verdict.tally(mistakes)
            asked += len(mistakes)
        if asked != users.n_users:
            raise SchemaError("Expected every user to be asked once.")
        return table


def worst_duels(
    table: NDArray[Any], alone: NDArray[np.bool_], verdict: Verdict, *, n_users: int
) -> Integers:
    """Return twice the worst duel of each candidate, relative to the middle of the limits.

    ``alone`` marks rows that stand for a single candidate, which has no duel with itself.
    """
    worst = np.zeros(len(table), dtype=np.int64)
    if len(table) > 1:
        ignored = np.flatnonzero(alone)
        oneself = table[ignored, ignored]
        # No duel is lower than this; the table is large, so it is changed and put right again.
        table[ignored, ignored] = n_users * verdict.lowest
        worst = table.max(axis=1).astype(np.int64)
        table[ignored, ignored] = oneself
    return 2 * worst - (verdict.highest + verdict.lowest) * n_users
