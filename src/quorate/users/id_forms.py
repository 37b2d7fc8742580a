"""Ids in the forms in which they are given: objects, lists of rows, whatever speaks Arrow.

What is read here declares no type, or declares it in a language of its own;
:mod:`quorate.users.grouping` says by which public rules it becomes an id.
"""

from __future__ import annotations

import datetime
import uuid
from contextlib import suppress
from typing import Any

import numpy as np
from numpy.typing import NDArray

from quorate.exceptions import SchemaError

__all__ = ["WHAT_TO_DO", "arrow_columns", "as_text", "columns_of_rows", "is_array"]

WHAT_TO_DO = (
    "Pass users=, an array with the id of the person behind each row (or a tuple of such arrays); "
    "rows are never taken for people."
)


def columns_of_rows(users: list[Any]) -> list[Any]:
    """Return a list of ids as one column, a list of rows as its columns.

    A list declares no type: reading it as objects keeps one odd entry from changing the rest.

    >>> columns_of_rows([[7, "ann"], [5, "bob"]])
    [array([7, 5], dtype=object), array(['ann', 'bob'], dtype=object)]
    """
    if not (users and isinstance(users[0], list | tuple)):
        return [_objects(users)]
    width = len(users[0])
    if width == 0 or not all(isinstance(row, list | tuple) and len(row) == width for row in users):
        raise SchemaError(f"Expected one id per row, got rows of several lengths. {WHAT_TO_DO}")
    return [_objects(column) for column in zip(*users, strict=True)]


def _objects(column: Any) -> NDArray[Any]:
    return np.fromiter(column, dtype=object, count=len(column))


def is_array(value: Any) -> bool:
    """Tell whether ``value`` is a column of its own rather than an id.

    >>> is_array(np.zeros(3)), is_array("ann")
    (True, False)
    """
    names = ("__array__", "__arrow_c_stream__", "__arrow_c_array__")
    return getattr(value, "ndim", 1) > 0 and any(hasattr(value, name) for name in names)


def arrow_columns(users: Any) -> list[Any] | None:
    """Return the columns of anything that speaks Arrow; None if it does not, or cannot."""
    import pyarrow as pa

    if isinstance(users, pa.ChunkedArray):
        whole = users
    elif hasattr(users, "__arrow_c_stream__") or hasattr(users, "__arrow_c_array__"):
        try:
            whole = pa.chunked_array(
                users if hasattr(users, "__arrow_c_stream__") else [pa.array(users)]
            )
        except (pa.ArrowException, TypeError, ValueError):
            return None
    else:
        return None
    if pa.types.is_struct(whole.type):
        return list(whole.flatten())
    return [whole]


def as_text(objects: NDArray[Any]) -> Any:
    """Return an Arrow array of the texts by which objects of unknown type are compared.

    >>> as_text(np.array(["1", 1, None], dtype=object)).null_count
    1
    """
    import pyarrow as pa

    # Arrow takes more for text than _text does (bytes, members of an Enum). Which of the two reads
    # an id must not depend on the ids of others, so Arrow gets only what both read alike.
    if set(map(type, objects)) <= {str, float, type(None)}:
        with suppress(pa.ArrowException, TypeError, ValueError):
            return pa.array(objects, type=pa.large_string(), from_pandas=True)
    return pa.array([_text(value) for value in objects], type=pa.large_binary())


def _text(value: object) -> bytes | None:
    """Return the bytes of a plain value, or None for everything else."""
    if isinstance(value, bytes | bytearray):
        return bytes(value)
    if isinstance(value, str):
        value = str.__str__(value)  # of an Enum its value, not its name
    if isinstance(value, float | np.floating) and value.is_integer():
        value = int(value)
    if not isinstance(value, str | int | np.integer | uuid.UUID | datetime.date) or value != value:
        return None
    try:
        return str(value).encode("utf-8", "surrogatepass")
    except ValueError:  # Python refuses to print integers of thousands of digits
        return None
