"""Scores of candidates: every user scores each of them, within public limits.

A user's score of a candidate is clipped here to an integer between two public limits, and the sum
over users is sealed. So one user changes a sum by at most the width between the limits or, under
add or remove, by the larger limit, whatever the score function returns. Each candidate may have its
own limits; the widest of them determine the sensitivity.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cached_property
from types import EllipsisType
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
from numpy.typing import NDArray

from quorate import _validate
from quorate.core.bounds.grid import SUM_LIMIT, join_halves
from quorate.core.guarantees import Relation
from quorate.core.moves import Limit, Moves
from quorate.core.sealed import Sealed, seal
from quorate.core.users.crowd import told
from quorate.core.users.data import UserData
from quorate.exceptions import ParameterError, SchemaError

if TYPE_CHECKING:
    from quorate.core.people import People

__all__ = ["AddedUp", "Judgement", "bounded", "check_limits", "scores_on_trust"]

Integers = NDArray[np.int64]

# The largest limit: floats hold all integers up to here.
_LARGEST = 2**53


class Judgement(Protocol):
    """The users' scores of candidates, computed for some users at a time."""

    @property
    def low(self) -> Limit:
        """A lower bound on the scores; public, for all or of this shape."""

    @property
    def high(self) -> Limit:
        """An upper bound on the scores; public."""

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of the answer: ``(candidates,)``, or ``(questions, candidates)``; public."""

    def __call__(self, users: UserData) -> Iterable[tuple[int | EllipsisType, NDArray[Any]]]:
        """Yield a table for each block of users, one row per user, and the index of its query.

        The row of a user is a function of this user's records and of public numbers. Booleans stand
        for ``high`` and ``low``. If there is a single query, or all are answered at once, the index
        is ``...``.
        """


def bounded(said: NDArray[Any], low: Limit, high: Limit) -> Integers:
    """Return integers from ``low`` to ``high``, whatever the score function returned.

    >>> bounded(np.array([0.9, np.nan, -np.inf, 7.0]), 0, 5).tolist()
    [0, 0, 0, 5]
    >>> bounded(np.array([True, False]), -1, 1).tolist()
    [1, -1]
    """
    if said.dtype == np.bool_:
        return np.where(said, np.int64(high), np.int64(low))
    return _cut(said, low, high).astype(np.int64, copy=False)


def _cut(said: NDArray[Any], low: Limit, high: Limit) -> NDArray[Any]:
    """Return integers clipped to two limits, if possible of the same type; NaN becomes ``low``."""
    if said.dtype.kind == "f":
        # Limits are whole numbers of at most 2^53, which these floats hold.
        wide = said.astype(np.float64, copy=False)
        return np.asarray(np.fmin(np.fmax(wide, low), high), dtype=np.int64)
    _validate.integer_dtype(said=said.dtype)
    fits = np.iinfo(said.dtype)
    if not (isinstance(low, int) and isinstance(high, int)):
        held = np.minimum(said, min(fits.max, _LARGEST)).astype(np.int64)
        return np.asarray(np.clip(held, low, high))
    return np.asarray(np.clip(said, max(low, fits.min), min(high, fits.max)))


def check_limits(judgement: Judgement) -> None:
    """Refuse limits that floats cannot represent, or that have another shape.

    >>> from types import SimpleNamespace
    >>> check_limits(SimpleNamespace(low=0, high=2**60, shape=(3,)))
    Traceback (most recent call last):
        ...
    quorate.exceptions.ParameterError: Expected whole limits from -2^53 to 2^53, low <= high, one
    for all candidates or one for each.
    """
    low, high = np.asarray(judgement.low), np.asarray(judgement.high)
    fit = low.dtype.kind == high.dtype.kind == "i"
    fit &= {low.shape, high.shape} in ({()}, {judgement.shape})
    if not (fit and low.min() >= -_LARGEST and high.max() <= _LARGEST and (low <= high).all()):
        raise ParameterError(
            "Expected whole limits from -2^53 to 2^53, low <= high, one for all candidates or one "
            "for each."
        )


@dataclass(frozen=True)
class AddedUp:
    """Adds up the scores of some users; runs where their records are stored."""

    judgement: Judgement

    @cached_property
    def _halved(self) -> bool:
        """Whether sums over 2^31 users may exceed 62 bits, so that they need two halves."""
        furthest = max(-int(np.min(self.judgement.low)), int(np.max(self.judgement.high)))
        return furthest > SUM_LIMIT >> 31

    def joined(self, sums: Integers) -> Integers:
        """Return the sums over all parts as whole numbers."""
        return join_halves(sums) if self._halved else np.asarray(sums[0])

    def __call__(self, users: UserData) -> Integers:
        """Return one sum for each candidate and each query, unchanged or in two halves."""
        name = type(self.judgement).__name__
        expected = f"the judgement {name} to return one score for each user and candidate"
        return told(lambda: self._sums(users), expected)

    def _sums(self, users: UserData) -> Integers:
        judgement, low, high = self.judgement, self.judgement.low, self.judgement.high
        shape, alike = judgement.shape, isinstance(low, int) and isinstance(high, int)
        sums = np.zeros((1 + self._halved, *shape), np.int64)
        asked = np.zeros(shape[:1], np.int64)
        for place, said in judgement(users) if users.n_users else ():
            if said.shape[1:] != sums[0][place].shape:
                raise SchemaError("Expected one score for each candidate.")
            here = (low, high) if alike else (np.asarray(low)[place], np.asarray(high)[place])
            for part, added in zip(sums, self._added(said, *here), strict=True):
                part[place] += added
            asked[place] += len(said)
        if (asked != users.n_users).any():
            raise SchemaError("Expected one row for every user.")
        return sums

    def _added(self, said: NDArray[Any], low: Limit, high: Limit) -> tuple[Integers, ...]:
        """Return the sum over these users, or its two halves."""
        if self._halved:
            inside = bounded(said, low, high)
            return (inside >> 32).sum(axis=0), (inside & (2**32 - 1)).sum(axis=0)
        if said.dtype == np.bool_:
            return (low * len(said) + (high - low) * np.count_nonzero(said, axis=0),)
        inside = _cut(said, low, high)
        return (inside[0] if len(said) == 1 else inside.sum(axis=0, dtype=np.int64),)


def scores_on_trust(
    people: People,
    tally: Callable[[UserData], Integers],
    losses: Callable[..., Integers],
    *,
    sensitivity: int,
    one_sided: bool,
) -> Sealed:
    """Return the losses of the caller's own score, whose sensitivity is not checked.

    The guarantee is then idealized, because it relies on the sensitivity that the score claims.
    """
    crowd = people._held_crowd()
    found = losses(crowd.add_up(tally, whole=True), n_users=crowd.n_users)
    rising = one_sided and people.relation is Relation.ADD_REMOVE
    moves = Moves.of_scores(sensitivity, coordinates=len(found), one_sided=rising)
    return seal(found, moves, people.relation, people.among)
