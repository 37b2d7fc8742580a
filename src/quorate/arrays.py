"""Lists and arrays from the caller: what they hold never decides whether they are read.

The dtype of an array is declared and public. A list declares nothing: it is read as floats, number
by number, and what is no number is missing; only its shape may be wrong.
"""

from __future__ import annotations

import math
import numbers
import warnings
from contextlib import suppress
from typing import Any

import numpy as np
from numpy.typing import NDArray

from quorate.exceptions import SchemaError

__all__ = [
    "all_finite",
    "as_array",
    "described",
    "finite_rows",
    "minus_row",
    "readonly",
    "row_lengths",
    "row_products",
]

_BLOCK_ROWS = 2**16
# Numbers that one turn of a loop over short rows sees to.
_TURN = 256

# Longer lists than this are data rather than parameters.
_SHORT = 4
_SCALARS = (str, bytes, numbers.Number, np.generic)


def as_array(values: Any) -> NDArray[Any]:
    """Return an array: the one door for everything that is no frame.

    An array keeps its type, and what it masks is missing. A list is read as floats, with NaN for
    everything that is no number.

    >>> as_array([[1], ["two"], [None], [10**400]]).ravel()
    array([ 1., nan, nan, nan])
    """
    if isinstance(values, np.ma.MaskedArray) and values.dtype.kind in "fiub":
        return np.where(np.ma.getmaskarray(values), np.nan, np.ma.getdata(values))
    if not isinstance(values, list | tuple):
        return np.asarray(values)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # numpy warns about single values
        array = _convert(values, np.float64)
        if array is not None:
            return array
        cells = _convert(values, object)
        if cells is not None and not (cells.ndim == 1 and any(map(_is_nested, cells))):
            floats = np.array([_as_float(cell) for cell in cells.ravel()], dtype=np.float64)
            return floats.reshape(cells.shape)
    raise SchemaError("Expected a list with rows of one length, got rows of several lengths.")


def _convert(values: Any, dtype: Any) -> NDArray[Any] | None:
    """Return an array of this type; None, and no word about the reason, if there is none."""
    with suppress(Exception):
        return np.asarray(values, dtype=dtype)
    return None


def _is_nested(cell: Any) -> bool:
    return isinstance(cell, list | tuple) or getattr(cell, "ndim", 0) > 0


def _as_float(cell: Any) -> float:
    """Return what numpy makes of a cell alone, which is what it makes of it among others."""
    array = None if _is_nested(cell) else _convert(cell, np.float64)
    return math.nan if array is None else float(array)


def all_finite(array: NDArray[np.float64]) -> bool:
    """Tell whether an array is free of NaN and infinities, in one pass and almost no memory.

    >>> all_finite(np.array([1.0, np.inf]))
    False
    """
    with np.errstate(all="ignore"):
        # A sum of finite numbers can overflow, but then only time is lost. A product would have
        # threads of its own, which wait for those of others.
        return bool(np.isfinite(array.sum()) or finite_rows(array).all())


def finite_rows(array: NDArray[np.float64]) -> NDArray[np.bool_]:
    """Tell for each row whether it is free of NaN and infinities.

    >>> finite_rows(np.array([[1.0, np.nan], [1.0, 2.0]]))
    array([False,  True])
    """
    found = np.empty(len(array), dtype=np.bool_)
    for start in range(0, len(array), _BLOCK_ROWS):
        block = array[start : start + _BLOCK_ROWS]
        found[start : start + _BLOCK_ROWS] = np.isfinite(block).reshape(len(block), -1).all(axis=1)
    return found


def row_products(rows: NDArray[np.float64], weights: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the inner products of each row of ``rows`` with each row of ``weights``.

    A matrix product ``rows @ weights.T`` rounds a row by where it lies among the others, so that
    one user's records would move the bits of another user's. Here every product is computed by
    itself, in one order of addition, whatever stands in other rows and however many there are.

    >>> row_products(np.array([[1.0, 2.0], [3.0, 4.0]]), np.array([[1.0, 10.0]]))
    array([[21.],
           [43.]])
    """
    left, right = np.ascontiguousarray(rows), np.ascontiguousarray(weights)
    with np.errstate(all="ignore"):  # a warning about an overflow would tell of a value
        return np.asarray(np.einsum("ij,kj->ik", left, right, optimize=False))


def row_lengths(rows: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the Euclidean length of each row, computed from that row alone.

    >>> row_lengths(np.array([[3.0, 4.0]]))
    array([5.])
    """
    own = np.ascontiguousarray(rows)
    with np.errstate(all="ignore"):
        return np.asarray(np.sqrt(np.einsum("ij,ij->i", own, own, optimize=False)))


def minus_row(
    rows: NDArray[np.float64], row: NDArray[np.float64], out: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Write ``rows - row`` to ``out``, of the same shape and contiguous like ``rows``; return it.

    Number by number, like ``np.subtract``, but for several short rows at once.

    >>> rows = np.arange(6.0).reshape(3, 2)
    >>> minus_row(rows, np.array([1.0, 2.0]), rows)
    array([[-1., -1.],
           [ 1.,  1.],
           [ 3.,  3.]])
    """
    width = row.size
    many = max(1, _TURN // max(1, width))
    flat, into = rows.reshape(-1), out.reshape(-1)
    end = flat.size // (many * width) * (many * width) if width else 0
    shape = (-1, many * width)
    np.subtract(flat[:end].reshape(shape), np.tile(row, many), out=into[:end].reshape(shape))
    shape = (-1, width)
    np.subtract(flat[end:].reshape(shape), row, out=into[end:].reshape(shape))
    return out


def described(value: Any) -> str:
    """Return what a message may say about a parameter that may have been given data by mistake.

    Neither entries nor lengths: how many records there are is private.

    >>> described((0, 9)), described([[1.5], [2.5]]), described(np.zeros((3, 2)))
    ('(0, 9)', 'a list', 'a ndarray of 2 axes')
    """
    if shape := getattr(value, "shape", ()):
        axes = "1 axis" if len(shape) == 1 else f"{len(shape)} axes"
        return f"a {type(value).__name__} of {axes}"
    parts = value if isinstance(value, list | tuple) else [value]
    if len(parts) <= _SHORT and all(isinstance(p, _SCALARS) or p is None for p in parts):
        return repr(value)
    return f"a {type(value).__name__}"


def readonly(array: NDArray[Any]) -> NDArray[Any]:
    """Return a view through which nothing can be written.

    >>> readonly(np.zeros(2)).flags.writeable
    False
    """
    view = array.view()
    view.flags.writeable = False
    return view
