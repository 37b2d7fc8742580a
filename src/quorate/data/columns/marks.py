"""The order of each user's records, which decides which of them count under a cap.

``order=`` names a column, or is an array, of numbers, dates or times. The first records are those
with the smallest entries; a record without one comes last. Only a *declared* type says how entries
compare, so text and objects are refused: as text, 9 comes after 10.
"""

from __future__ import annotations

from contextlib import suppress
from typing import Any

import numpy as np
from numpy.typing import NDArray

from quorate.data.columns.cells import as_array
from quorate.data.columns.kinds import is_numeric, kind_of
from quorate.data.frames import floats
from quorate.exceptions import SchemaError

__all__ = ["as_marks", "check_order", "marks_of"]

Marks = NDArray[np.int64]

_LAST = np.iinfo(np.int64).max
_TOP = np.uint64(1 << 63)


def check_order(name: str, kind: Any) -> None:
    """Refuse a column whose declared type does not define an order.

    >>> import pyarrow as pa
    >>> check_order("day", pa.date32())
    >>> check_order("day", pa.string())
    Traceback (most recent call last):
        ...
    quorate.exceptions.SchemaError: Expected numbers, dates or times in order='day', got text;
    convert it to one of these first.
    """
    import pyarrow as pa

    if not (is_numeric(kind) or pa.types.is_date(kind) or pa.types.is_timestamp(kind)):
        raise SchemaError(
            f"Expected numbers, dates or times in order={name!r}, got {kind_of(kind)}; convert it "
            "to one of these first."
        )


def marks_of(column: Any) -> Marks:
    """Return an Arrow array of a checked type as integers in the same order; null is last.

    >>> import pyarrow as pa
    >>> np.argsort(marks_of(pa.array([2.5, None, -1.0]))).tolist()
    [2, 0, 1]
    """
    import pyarrow as pa

    kind, types = column.type, pa.types
    if isinstance(column, pa.ChunkedArray):
        return np.concatenate([np.empty(0, np.int64), *map(marks_of, column.chunks)])
    if types.is_boolean(kind):
        column = column.cast(pa.int8())
    elif types.is_date32(kind):
        column = column.view(pa.int32())
    elif types.is_date(kind) or types.is_timestamp(kind):
        column = column.view(pa.int64())
    if not types.is_integer(column.type):
        return _of_floats(floats(column))
    missing = None if column.null_count == 0 else ~np.asarray(column.is_valid())
    whole = np.asarray(column if missing is None else column.fill_null(0))
    marks = _of_integers(whole)
    if missing is not None:
        marks[missing] = _LAST
    return marks


def as_marks(order: Any) -> Marks | None:
    """Return an array, list or column as integers in the same order; refuse unsuitable types.

    >>> as_marks(np.array(["2020-01-02", "2020-01-01"], dtype="M8[D]")).tolist()
    [18263, 18262]
    """
    import pyarrow as pa

    if order is None:
        return None
    if isinstance(order, str):
        raise SchemaError(
            f"Expected order= to hold one entry a row, got the text {order!r}. For a column name "
            "use UserData.from_frame(table, user=..., order=...)."
        )
    if isinstance(order, pa.Array):
        order = pa.chunked_array([order])
    typed = getattr(order, "dtype", None)
    if typed is not None and not isinstance(order, np.ndarray) and typed != "O":
        with suppress(pa.ArrowException, TypeError, ValueError):
            order = pa.chunked_array(order)
    if isinstance(order, pa.ChunkedArray):
        check_order("array", order.type)
        return marks_of(order)
    values = as_array(order)
    if values.ndim != 1:
        raise SchemaError(f"Expected order= to hold one entry a row, got {values.ndim} axes.")
    if values.dtype.kind == "M":
        return np.where(np.isnat(values), _LAST, values.view(np.int64))
    if values.dtype.kind not in "fiub":
        raise SchemaError(
            f"Expected numbers, dates or times in order=, got {kind_of(values.dtype)}; convert "
            "them to one of these first."
        )
    if values.dtype.kind == "f":
        return _of_floats(values.astype(np.float64))
    return _of_integers(values)


def _of_integers(values: NDArray[Any]) -> Marks:
    if values.dtype == np.uint64:
        return (values ^ _TOP).view(np.int64)
    return values.astype(np.int64)


def _of_floats(values: NDArray[np.float64]) -> Marks:
    """Return integers in the order of floats: their bits, reversed for negative numbers."""
    bits = (values + 0.0).view(np.int64)
    return np.where(np.isnan(values), _LAST, np.where(bits < 0, bits ^ np.int64(_LAST), bits))
