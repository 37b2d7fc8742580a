"""Numbers that a caller computed, sealed by what the mechanism that takes them claims.

This is a debt. A mechanism of its own (in the papers' laboratories, in tests, in rooms that do not
ask :class:`~quorate.core.people.People` yet) may still be given plain integers, and believes that
they are what its docstring says. ``tests/core_border.py`` lists which rooms do so.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from quorate import _validate
from quorate.core.moves import GridMoves, Moves
from quorate.core.people import People
from quorate.core.sealed import Sealed, SealedRows, seal, seal_rows
from quorate.exceptions import SchemaError
from quorate.grid import Grid
from quorate.guarantees import Relation
from quorate.users.data import UserData

__all__ = ["as_rows", "claimed", "claimed_total", "scores_on_trust"]

Integers = NDArray[np.int64]


def claimed(numbers: Any, moves: Moves, relation: Relation) -> Sealed:
    """Return what is sealed as it is, and plain integers with the moves that are claimed.

    >>> claimed([1, 2], Moves.of_counts(2), Relation.REPLACE).shape
    (2,)
    """
    if isinstance(numbers, Sealed):
        return numbers
    integers = np.asarray(numbers)
    _validate.integer_dtype(totals=integers.dtype)
    if integers.dtype == np.uint64:
        raise SchemaError("Expected int64, got dtype=uint64, which reaches beyond.")
    return seal(integers, moves, relation)


def as_rows(values: Any, relation: Relation) -> SealedRows:
    """Return sealed rows as they are, and plain numbers as rows of which each user owns one.

    >>> as_rows([1.0, 2.0], Relation.REPLACE)
    SealedRows(shape of a row=(), one row a user)
    """
    if isinstance(values, SealedRows):
        return values
    rows = np.asarray(values)
    if rows.dtype.kind not in "fiub":
        raise SchemaError(f"Expected one real number per user, got dtype={rows.dtype}.")
    return seal_rows(rows, relation)


def claimed_total(totals: Any, grid: Grid, relation: Relation) -> Sealed:
    """Return the sum of contributions that ``grid`` has encoded, sealed."""
    return claimed(totals, GridMoves(grid, relation), relation)


def scores_on_trust(
    people: People,
    tally: Callable[[UserData], Integers],
    losses: Callable[..., Integers],
    *,
    sensitivity: int,
    one_sided: bool,
) -> Sealed:
    """Return the losses of a score of the caller's that adds up what it likes.

    Whoever asks says so in the guarantee, which is idealized: how far a user moves the losses is
    what the score claims.
    """
    crowd = people._held_crowd()
    found = losses(crowd.add_up(tally, whole=True), n_users=crowd.n_users)
    rising = one_sided and people.relation is Relation.ADD_REMOVE
    moves = Moves.of_scores(sensitivity, coordinates=len(found), one_sided=rising)
    return seal(found, moves, people.relation, people.among)
