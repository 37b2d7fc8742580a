"""What a table is, without a look at what it holds: types, shapes and names of its columns.

A mistake must cost nothing, so it has to be found before the charge; and a look at a record must be
paid for, so nothing may be found by one. Both are kept by reading the first *zero* rows of
whatever declares a type: an empty table of the same columns raises for the same reasons as the
whole one. A list declares no type and is left alone.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from quorate.exceptions import ParameterError, SchemaError
from quorate.users import grouping, tables

__all__ = ["check_ids", "check_targets", "without_rows"]


def without_rows(values: Any) -> Any:
    """Return the same columns without a row; None for what declares no type.

    >>> import numpy as np
    >>> without_rows(np.zeros((5, 2))).shape, without_rows([[1.0, 2.0]])
    ((0, 2), None)
    """
    import pyarrow as pa

    if isinstance(values, pa.Array | pa.ChunkedArray | pa.Table | pa.RecordBatch):
        return values.slice(0, 0)
    declared = tables.is_frame(values) or hasattr(values, "dtype")
    if not declared or getattr(values, "ndim", 1) == 0 or not hasattr(values, "__getitem__"):
        return None
    return values[:0]


def check_ids(users: Any) -> None:
    """Refuse ids of a type that names nobody, and several columns of them.

    >>> check_ids([7, 5, 7])
    >>> check_ids(([7, 5], [1, 2]))
    Traceback (most recent call last):
        ...
    quorate.exceptions.ParameterError: 2 id columns protect a combination of 2 ids, not a user; the
    guarantee has to say so: pass UserData.from_arrays(X, y, users=..., unit='person x day').
    """
    parts = list(users) if isinstance(users, tuple) else [users]
    if isinstance(users, list) and users and grouping.is_array(users[0]):
        parts = users
    columns = 0
    for part in parts:
        empty = without_rows(part)
        if empty is not None:
            columns += grouping.group(empty).n_columns
        elif isinstance(part, list) and part and isinstance(part[0], list | tuple):
            columns += len(part[0])
        else:
            columns += 1
    if columns > 1:
        raise ParameterError(
            f"{columns} id columns protect a combination of {columns} ids, not a user; the "
            "guarantee has to say so: pass UserData.from_arrays(X, y, users=..., "
            "unit='person x day')."
        )


def check_targets(y: Any, classes: Sequence[Any] | None) -> None:
    """Refuse targets of a type that cannot be read, and more than one column of them.

    >>> import numpy as np
    >>> check_targets(np.array([0, 1]), None)
    """
    shape: tuple[int, ...] = getattr(y, "shape", ())
    if len(shape) > 2 or (len(shape) == 2 and shape[1] != 1):
        raise SchemaError("Expected one target per record, got several columns.")
    empty = without_rows(y)
    if empty is not None:
        tables.as_targets(empty, classes)
    elif classes is not None:
        tables.as_labels([], classes)
