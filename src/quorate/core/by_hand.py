"""Numbers sealed by hand: for audits, tests, and for trying out a mechanism.

The caller states by how much one user changes the numbers, and this is not checked. Estimators do
not need it, because queries about people return sealed numbers with a proved sensitivity. A test of
the imports ensures that packages of estimators do not use this module.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from quorate import _validate
from quorate.core.guarantees import Relation
from quorate.core.moves import Length, Moves
from quorate.core.questions.ballots import SealedVotes
from quorate.core.questions.lines import SealedLine, line_of_pieces
from quorate.core.questions.votes import count_votes, sorted_votes
from quorate.core.sealed import _KEY, Sealed, SealedRows, seal, seal_rows
from quorate.exceptions import SchemaError

__all__ = ["line_by_hand", "rows_by_hand", "sealed_by_hand", "votes_by_hand"]


def sealed_by_hand(
    numbers: ArrayLike, moves: Moves, relation: Relation = Relation.REPLACE
) -> Sealed:
    """Seal given integers, with a stated sensitivity.

    >>> sealed_by_hand([3, 90, 5], Moves.of_tally(Relation.REPLACE))
    Sealed(shape=(3,), one user moves a coordinate by at most 1)
    """
    integers = np.asarray(numbers)
    _validate.integer_dtype(numbers=integers.dtype)
    if integers.dtype == np.uint64:
        raise SchemaError("Expected int64, got dtype=uint64, which reaches beyond.")
    return seal(integers, moves, relation)


def rows_by_hand(rows: Any, relation: Relation = Relation.REPLACE) -> SealedRows:
    """Seal an array in which each user owns one number, or one row.

    >>> rows_by_hand([31.0, 45.0, 28.0]).counts([30.0, 40.0])
    Sealed(shape=(2,), one user moves a coordinate by at most 1)
    """
    found = np.asarray(rows)
    if found.dtype.kind not in "fiub":
        raise SchemaError(f"Expected real numbers, one row a user, got dtype={found.dtype}.")
    return seal_rows(found, relation)


def line_by_hand(
    lengths: NDArray[np.uint64],
    losses: NDArray[np.int64],
    *,
    sensitivity: Length = 1,
    relation: Relation = Relation.REPLACE,
    one_sided: bool = False,
) -> SealedLine:
    """Seal losses on a line, in pieces of equal loss, with a stated sensitivity of each.

    >>> line_by_hand(np.array([4, 6]), np.array([3, 0]))
    SealedLine(size=10, one user moves a loss by at most 1)
    """
    size = int(np.sum(lengths))
    moves = Moves.of_scores(sensitivity, coordinates=size, one_sided=one_sided)
    return line_of_pieces(lengths, losses, moves, relation, None)


def votes_by_hand(
    votes: Iterable[Any] | Mapping[Any, int], relation: Relation = Relation.REPLACE
) -> SealedVotes:
    """Seal one key per user, or the number of votes for each key.

    >>> votes_by_hand(["tea", "mate", "tea"])
    SealedVotes(one user moves 2 votes)
    """
    counts = sorted_votes(votes) if isinstance(votes, Mapping) else count_votes(votes)
    return SealedVotes(_KEY, counts, Moves.of_tally(relation), relation, None)
