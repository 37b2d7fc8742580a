"""Numbers that are sealed by hand: for audits, tests, and for trying a mechanism out.

Whoever seals by hand says how far one user moves the numbers, and nobody checks it. An estimator
has no use for it: people answer with seals that are proved. A test over the imports keeps the rooms
of estimators away from here.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from quorate import _validate
from quorate.core.moves import Moves
from quorate.core.sealed import Sealed, SealedRows, seal, seal_rows
from quorate.exceptions import SchemaError
from quorate.guarantees import Relation

__all__ = ["rows_by_hand", "sealed_by_hand"]


def sealed_by_hand(
    numbers: ArrayLike, moves: Moves, relation: Relation = Relation.REPLACE
) -> Sealed:
    """Seal integers of one's own, with how far one user is said to move them.

    >>> sealed_by_hand([3, 90, 5], Moves.of_tally(Relation.REPLACE))
    Sealed(shape=(3,), one user moves a coordinate by at most 1)
    """
    integers = np.asarray(numbers)
    _validate.integer_dtype(numbers=integers.dtype)
    if integers.dtype == np.uint64:
        raise SchemaError("Expected int64, got dtype=uint64, which reaches beyond.")
    return seal(integers, moves, relation)


def rows_by_hand(rows: Any, relation: Relation = Relation.REPLACE) -> SealedRows:
    """Seal an array of which each user owns one number, or one row of them.

    >>> rows_by_hand([31.0, 45.0, 28.0]).counts([30.0, 40.0])
    Sealed(shape=(2,), one user moves a coordinate by at most 1)
    """
    found = np.asarray(rows)
    if found.dtype.kind not in "fiub":
        raise SchemaError(f"Expected real numbers, one row a user, got dtype={found.dtype}.")
    return seal_rows(found, relation)
