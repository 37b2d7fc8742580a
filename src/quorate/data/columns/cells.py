"""How a cell of a column without a declared type is read; the rule is the same for all formats.

Lists and columns of objects declare no type. If the type were guessed from the values, one person's
cell could decide how everybody else's cells are read. So each cell is read separately, and reading
it raises no exception, whatever it contains. A cell counts if its type is a plain one of Python or
NumPy, or derives from one; everything else is *missing*. Only cells that are dates may run code of
their own, which formats them.

* As a **text** (ids, keys, labels, categories, dates) a cell is a sequence of bytes: text as UTF-8,
  bytes unchanged, whole numbers as their digits (``1``, ``1.0``, a decimal 1 and ``"1"`` are the
  same; decimals below 10^76), booleans as ``True`` and ``False``, UUIDs, dates and times as Python
  writes them. Numbers that are not whole, tuples and all other values are missing. The bytes need
  not be UTF-8. As an id they still distinguish people; as a key, which would be printed, they are
  missing.
* As a **number** (features, targets, numeric categories) a cell is its value: integers, floats,
  booleans, decimals and fractions, and bytes that can be parsed as one of these, as in a CSV file.
  Everything else, and numbers that do not fit into a float, are missing.
* A list is a **table of rows** if more than half of its entries are rows (lists, tuples, vectors),
  otherwise a column. The width of the table is that of most rows. This is its shape, which is
  public like that of an array. A row of another width, or an entry that is not a row, becomes a row
  of missing cells. A cell that contains a row is also missing.
"""

from __future__ import annotations

import datetime
import math
import sys
import uuid
from collections import Counter
from collections.abc import Sequence
from contextlib import suppress
from decimal import Decimal
from fractions import Fraction
from itertools import chain
from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = [
    "as_array",
    "axes_of",
    "columns_of_rows",
    "is_list",
    "moment_written",
    "number_written",
    "numbers",
    "objects",
    "text_of",
    "texts",
    "whole_decimal",
    "width_of",
]

Floats = NDArray[np.float64]

_TRUTH = {b"true": 1.0, b"false": 0.0}
# Types are known by what they are: what they say of themselves is code of a cell.
# What NumPy reads at once as it reads each of them alone.
_PLAIN_NUMBERS = frozenset(map(id, (int, float, bool)))
# What Arrow reads at once as ``text_of`` reads each of them: of floats only NaN, which is missing.
_PLAIN_TEXTS = frozenset(map(id, (str, float, type(None))))
# machine: Arrow's decimals are below this; larger ones are no texts, as an exponent may ask for any
# length.
_LONGEST = 10**76
_PLAIN_ROWS = frozenset(map(id, (list, tuple)))


def text_of(cell: object) -> bytes | None:
    """Return the bytes that identify a cell; None for a missing one.

    >>> text_of("ann"), text_of(7.0), text_of(b"ann"), text_of(1.5), text_of(("ann",))
    (b'ann', b'7', b'ann', None, None)
    """
    with suppress(Exception):
        return _text(cell, type(cell))
    return None


def _text(cell: Any, kind: type) -> bytes | None:
    """Return the bytes of a plain value, using only the methods of the plain type."""
    if issubclass(kind, str):
        return str.encode(cell, "utf-8", "surrogatepass")
    if issubclass(kind, bytes):
        return bytes.__getitem__(cell, slice(None))
    if issubclass(kind, bytearray):
        return bytes(bytearray.__getitem__(cell, slice(None)))
    if kind is bool or kind is np.bool_:
        return b"True" if cell else b"False"
    if issubclass(kind, int):
        return int.__repr__(cell).encode()  # which refuses thousands of digits
    if issubclass(kind, np.integer):
        return int.__repr__(np.generic.item(cell)).encode()
    if issubclass(kind, np.floating):
        cell, kind = float(np.generic.item(cell)), float
    if issubclass(kind, float):
        return int.__repr__(float.__int__(cell)).encode() if float.is_integer(cell) else None
    written = None
    if kind is uuid.UUID:
        written = str(cell)
    elif kind is Decimal:
        whole = whole_decimal(cell)
        written = None if whole is None else str(whole)
    elif issubclass(kind, np.datetime64 | datetime.date):
        written = moment_written(cell)
    return None if written is None else str.encode(written)


def whole_decimal(cell: Decimal) -> int | None:
    """Return a decimal that is a whole number as an integer; None for other decimals.

    >>> whole_decimal(Decimal("7.00")), whole_decimal(Decimal("7.5")), whole_decimal(Decimal("NaN"))
    (7, None, None)
    """
    if not cell.is_finite() or not cell.copy_abs() < _LONGEST:
        return None
    return int(cell) if cell == cell.to_integral_value() else None


def moment_written(cell: Any, separator: str = " ") -> str | None:
    """Return a date or time as ISO text; None for anything else, including NaT.

    >>> moment_written(datetime.datetime(2020, 1, 5), "T"), moment_written(np.datetime64("NaT"))
    ('2020-01-05T00:00:00', None)
    """
    kind = type(cell)
    pandas = sys.modules.get("pandas")
    if pandas is not None and kind is type(pandas.NaT):
        return None
    if pandas is not None and kind is pandas.Timestamp:
        return str(cell.isoformat(sep=separator))
    if issubclass(kind, np.datetime64):
        text = np.datetime64.__str__(cell)
        return None if text == "NaT" else text
    if issubclass(kind, datetime.datetime):
        return datetime.datetime.isoformat(cell, separator)
    for plain in (datetime.date, datetime.time):
        if issubclass(kind, plain):
            return plain.isoformat(cell)
    return None


def number_written(octets: bytes) -> float:
    """Parse bytes as a number; NaN if they are not one.

    >>> number_written(b" 2.5"), number_written(b"TRUE"), number_written(b"two")
    (2.5, 1.0, nan)
    """
    truth = _TRUTH.get(octets.strip().lower())
    if truth is not None:
        return truth
    try:
        return float(octets)
    except ValueError:
        return math.nan


def _number(cell: Any) -> float:
    """Return a cell as a float; NaN for everything that is not a number."""
    with suppress(Exception):
        kind = type(cell)
        if kind is np.ndarray and cell.ndim == 0:
            cell = cell.item()
            kind = type(cell)
        if issubclass(kind, float):
            return float.__float__(cell)
        if issubclass(kind, int):
            return int.__float__(cell)
        if issubclass(kind, np.bool_ | np.integer | np.floating):
            return float(np.generic.item(cell))
        if kind is Decimal or kind is Fraction:
            return float(cell)
        if issubclass(kind, str | bytes | bytearray):
            return number_written(text_of(cell) or b"")
    return math.nan


def numbers(cells: Sequence[Any] | NDArray[Any]) -> Floats:
    """Return the cells of one column as floats; NaN for everything that is not a number.

    >>> numbers([1, "2.5", None, 10**400, [3.0], True])
    array([1. , 2.5, nan, nan, nan, 1. ])
    """
    with suppress(OverflowError):  # of integers beyond all floats
        if _types(cells) <= _PLAIN_NUMBERS:
            return np.fromiter(cells, dtype=np.float64, count=len(cells))
    return np.fromiter(map(_number, cells), dtype=np.float64, count=len(cells))


def objects(cells: Sequence[Any]) -> NDArray[Any]:
    """Return a list as a one-dimensional array of objects.

    >>> objects([7, [1, 2]]).shape
    (2,)
    """
    return np.fromiter(cells, dtype=object, count=len(cells))


def texts(cells: NDArray[Any]) -> Any:
    """Return the cells of one column as an Arrow array of texts, null for missing ones.

    Arrow does not check that the bytes of a text are UTF-8, so readers must not assume it.

    >>> texts(np.array(["1", 1, None], dtype=object)).to_pylist()
    ['1', '1', None]
    """
    import pyarrow as pa

    with suppress(Exception):  # of text that is no UTF-8
        if _types(cells) <= _PLAIN_TEXTS:
            return pa.array(cells, type=pa.large_string(), from_pandas=True)
    octets = pa.array([text_of(cell) for cell in cells], type=pa.large_binary())
    return octets.view(pa.large_string())


def is_list(values: Any) -> bool:
    """Return whether something is read as a list: a sequence without a declared type.

    >>> is_list([1]), is_list(range(3)), is_list(np.zeros(1)), is_list("ann")
    (True, True, False, False)
    """
    if isinstance(values, list | tuple | range):
        return True
    declares = ("dtype", "__array__", "__array_interface__", "__arrow_c_stream__")
    text = isinstance(values, str | bytes | bytearray | memoryview)
    return (
        isinstance(values, Sequence)
        and not text
        and not any(hasattr(values, name) for name in declares)
    )


def axes_of(values: Sequence[Any]) -> int:
    """Return how many axes a list has: 1 for a column, 2 for rows, 3 for rows of rows.

    >>> axes_of([1, 2, [3]]), axes_of([[1], [2], 3]), axes_of([[[1]], [[2]]])
    (1, 2, 3)
    """
    width = width_of(values)
    if width is None:
        return 1
    # Of one width, so that no row counts for more than another.
    inside = list(chain.from_iterable(_rows(values, width)))
    return 2 if width_of(inside) is None else 3


def _row(entry: Any) -> Sequence[Any] | None:
    """Return the cells of a row; None for an entry that is not a row."""
    kind = type(entry)
    if kind is list or kind is tuple:
        return entry  # type: ignore[no-any-return]
    if issubclass(kind, list):
        return list.__getitem__(entry, slice(None))
    if issubclass(kind, tuple):
        return tuple(tuple.__iter__(entry))
    if (kind is np.ndarray or kind is np.ma.MaskedArray) and entry.ndim == 1:
        return entry.tolist()  # type: ignore[no-any-return]
    return None


def width_of(values: Sequence[Any]) -> int | None:
    """Return the width of the rows of a list; None for a column.

    >>> width_of([[1, 2], [3], [4, 5]]), width_of([1, [2]])
    (2, None)
    """
    widths = _quick_widths(values)
    if widths is None:
        widths = Counter(len(row) for row in map(_row, values) if row is not None)
    if 2 * widths.total() <= len(values):
        return None
    most = max(widths.values())
    return min(width for width, count in widths.items() if count == most)


def _quick_widths(values: Sequence[Any]) -> Counter[int] | None:
    """Return the number of rows of each width; None if each entry must be examined."""
    found = _types(values)
    if found <= _PLAIN_ROWS:
        return Counter(map(len, values))
    return Counter() if found <= _PLAIN_NUMBERS | _PLAIN_TEXTS else None


def _types(cells: Sequence[Any] | NDArray[Any]) -> set[int]:
    """Return the types of cells, without calling methods of the cells."""
    return set(map(id, map(type, cells)))


def _rows(values: Sequence[Any], width: int) -> list[Sequence[Any]]:
    """Return rows of one width; other entries become rows of missing cells."""
    missing = (None,) * width
    held = map(_row, values)
    return [missing if row is None or len(row) != width else row for row in held]


def columns_of_rows(values: Sequence[Any]) -> list[NDArray[Any]]:
    """Return a list as one column of objects, or a list of rows as its columns.

    >>> columns_of_rows([[7, "ann"], [5, "bob"], [3], None])
    [array([7, 5, None, None], dtype=object), array(['ann', 'bob', None, None], dtype=object)]
    """
    width = width_of(values)
    if width is None:
        return [objects(values)]
    rows = _rows(values, width)
    return [objects([row[place] for row in rows]) for place in range(width)]


def as_array(values: Any) -> NDArray[Any]:
    """Return an array, from anything that is not a data frame.

    An array keeps its type; its masked entries are missing. A list is read as floats, cell by cell.

    >>> as_array([[1], ["two"], [None], [10**400], [3, 4]]).ravel()
    array([ 1., nan, nan, nan, nan])
    """
    if isinstance(values, np.ma.MaskedArray) and values.dtype.kind in "fiub":
        return np.where(np.ma.getmaskarray(values), np.nan, np.ma.getdata(values))
    if not is_list(values):
        return np.asarray(values)
    cells = values if isinstance(values, list | tuple) else list(values)
    width = width_of(cells)
    if width is None:
        return numbers(cells)
    inside = list(chain.from_iterable(_rows(cells, width)))
    return numbers(inside).reshape(len(cells), width)
