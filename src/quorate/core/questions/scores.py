"""Scores over candidates: every user judges each of them, within public limits.

What a user says about a candidate is cut here to a number between two public limits, and the sum
over users is sealed. So one user moves a score by no more than the width between the limits, or by
the larger limit where somebody is added or removed, whatever the judgement says.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from types import EllipsisType
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from quorate import _validate
from quorate.exceptions import SchemaError
from quorate.users.crowd import call_quietly
from quorate.users.data import UserData

__all__ = ["AddedUp", "Judgement", "bounded"]

Integers = NDArray[np.int64]


class Judgement(Protocol):
    """What users say about candidates, asked of some users at a time."""

    @property
    def low(self) -> int:
        """What is said of one candidate is not below; public."""
        ...

    @property
    def high(self) -> int:
        """What is said of one candidate is not above; public."""
        ...

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of the answer: ``(candidates,)``, or ``(questions, candidates)``; public."""
        ...

    def __call__(self, users: UserData) -> Iterable[tuple[int | EllipsisType, NDArray[Any]]]:
        """Yield a table of each block of users, one row a user, and which question it answers.

        The row of a user is a function of this user's records and of public numbers. Truth values
        stand for ``high`` and ``low``. A single question, or all of them at once, is ``...``.
        """
        ...


def bounded(said: NDArray[Any], low: int, high: int) -> Integers:
    """Return integers from ``low`` to ``high``, whatever was said.

    >>> bounded(np.array([0.9, np.nan, -np.inf, 7.0]), 0, 5).tolist()
    [0, 0, 0, 5]
    >>> bounded(np.array([True, False]), -1, 1).tolist()
    [1, -1]
    """
    if said.dtype == np.bool_:
        return np.where(said, np.int64(high), np.int64(low))
    return _cut(said, low, high).astype(np.int64, copy=False)


def _cut(said: NDArray[Any], low: int, high: int) -> NDArray[Any]:
    """Return numbers between two limits, in as many bits as they came in."""
    if said.dtype.kind == "f":
        return np.asarray(np.clip(np.nan_to_num(said, nan=low), low, high), dtype=np.int64)
    _validate.integer_dtype(said=said.dtype)
    fits = np.iinfo(said.dtype)
    return np.asarray(np.clip(said, max(low, fits.min), min(high, fits.max)))


@dataclass(frozen=True)
class AddedUp:
    """Adds up what some users say; runs where they lie."""

    judgement: Judgement

    def __call__(self, users: UserData) -> Integers:
        """Return one sum for each candidate, and each question."""
        found = call_quietly(lambda: self._sums(users))
        if found is None:
            name = type(self.judgement).__name__
            raise SchemaError(
                f"The judgement {name} did not say one thing about each candidate for each user, "
                "or raised an exception; its text is withheld because it may quote records. Call "
                "it on made-up users to see it."
            )
        return found

    def _sums(self, users: UserData) -> Integers:
        judgement = self.judgement
        low, high, shape = judgement.low, judgement.high, judgement.shape
        sums, asked = np.zeros(shape, np.int64), np.zeros(shape[:1], np.int64)
        for place, said in judgement(users) if users.n_users else ():
            if said.shape[1:] != sums[place].shape:
                raise SchemaError("Expected one thing said about each candidate.")
            if said.dtype == np.bool_:
                sums[place] += low * len(said) + (high - low) * np.count_nonzero(said, axis=0)
            else:
                inside = _cut(said, low, high)
                sums[place] += inside[0] if len(said) == 1 else inside.sum(axis=0, dtype=np.int64)
            asked[place] += len(said)
        if (asked != users.n_users).any():
            raise SchemaError("Expected every user to be asked once.")
        return sums
