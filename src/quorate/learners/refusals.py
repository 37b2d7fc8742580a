"""What public facts make impossible, refused before a fit is charged.

Types, shapes and parameters are asked, and no record: of a column with a declared type the first
zero entries are read.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from quorate.arrays import described
from quorate.exceptions import ParameterError, SchemaError
from quorate.users.crowd import Crowd
from quorate.users.tables import as_labels

__all__ = ["check_classes", "check_columns", "check_labels"]


def check_classes(classes: Any) -> None:
    """Refuse anything but two different labels.

    >>> check_classes(("healthy", "ill"))
    """
    pair = isinstance(classes, Sequence) or getattr(classes, "ndim", 0) == 1
    if isinstance(classes, str | bytes) or not pair or len(classes) != 2:
        raise ParameterError(
            f"Expected classes=(negative, positive), two labels of y, got {described(classes)}."
        )
    as_labels([], classes)


def check_labels(y: Any, classes: Sequence[Any]) -> None:
    """Refuse targets whose declared type cannot hold the classes.

    >>> import numpy as np
    >>> check_labels(np.array([1, -1]), (-1, 1))
    """
    if hasattr(y, "dtype"):
        as_labels(y[:0], classes)


def check_columns(X: Any, *, expected: int, single: bool = False) -> None:
    """Refuse a table with other columns than a class of rules describes, as far as it tells.

    >>> import numpy as np
    >>> check_columns(np.zeros((5, 1)), expected=1)
    """
    shape: tuple[int, ...] = getattr(X, "shape", ())
    found = X.n_features if isinstance(X, Crowd) else None
    if found is None and len(shape) == 2:
        found = shape[1]
    if found is None and single and len(shape) == 1:
        found = 1
    if found is not None and found != expected:
        raise SchemaError(
            f"Expected {expected} features in X, got {found}; select the columns that the concept "
            "class describes."
        )
