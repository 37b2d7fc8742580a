"""Read ids and columns from lists, data frames and everything with an Arrow interface.

Columns without a declared type are read cell by cell (:mod:`quorate.data.columns.cells`);
:mod:`quorate.data.columns.ids` has the public rules by which cells become ids.
"""

from __future__ import annotations

from contextlib import suppress
from itertools import pairwise
from typing import Any

from quorate.core.users.closed import quietly
from quorate.data.columns import cells
from quorate.exceptions import SchemaError

__all__ = [
    "WHAT_TO_DO",
    "are_columns",
    "arrow_columns",
    "check_form",
    "check_same_rows",
    "column_of_pandas",
    "holds_objects",
    "is_array",
    "is_pandas",
]

WHAT_TO_DO = (
    "Pass users=, an array with the id of the person behind each row (or a tuple of such arrays); "
    "rows are never taken for people."
)


def is_array(value: Any) -> bool:
    """Return whether ``value`` is a column rather than a single id.

    >>> import numpy as np
    >>> is_array(np.zeros(3)), is_array("ann")
    (True, False)
    """
    names = ("__array__", "__arrow_c_stream__", "__arrow_c_array__")
    with suppress(Exception):  # what a single id says of itself
        speaks = any(hasattr(type(value), name) for name in names)
        return speaks and bool(getattr(value, "ndim", 1) > 0)
    return False


def are_columns(users: Any) -> bool:
    """Return whether ids are given as several columns; refuse a tuple of single ids.

    Every entry of such a list or tuple is a column. A list of ids is one column, whatever it
    contains.

    >>> are_columns((["ann", "bob"], [1, 2])), are_columns(["ann", "bob"])
    (True, False)
    >>> are_columns(("ann", "bob"))
    Traceback (most recent call last):
        ...
    quorate.exceptions.SchemaError: Expected a list of ids, or a tuple of columns, got a tuple of
    something else: pass list(users).
    """
    if isinstance(users, list):
        return bool(users) and all(map(is_array, users))
    if not isinstance(users, tuple):
        return False
    if not users:
        raise SchemaError(f"Expected at least one id column, got none. {WHAT_TO_DO}")
    if not all(isinstance(part, list | tuple | range) or is_array(part) for part in users):
        # How many records there are is private, so the number of entries is not shown.
        raise SchemaError(
            "Expected a list of ids, or a tuple of columns, got a tuple of something else: pass "
            "list(users)."
        )
    return True


def check_form(**given: Any) -> None:
    """Refuse by its type a value that is not an array, a list or a table.

    >>> check_form(X=[1, 2], users=(name for name in ["ann"]))
    Traceback (most recent call last):
        ...
    quorate.exceptions.SchemaError: Expected users as an array, a list or a table, got a generator.
    """
    known = ("dtype", "shape", "__array__", "__arrow_c_stream__", "__arrow_c_array__")
    for name, values in given.items():
        if values is None or cells.is_list(values):
            continue
        if not any(hasattr(values, word) for word in known):
            raise SchemaError(
                f"Expected {name} as an array, a list or a table, got a {type(values).__name__}."
            )


def is_pandas(values: Any) -> bool:
    """Return whether something is a data frame or a column of pandas.

    >>> is_pandas([1, 2])
    False
    """
    return type(values).__module__.partition(".")[0] == "pandas"


def check_same_rows(**given: Any) -> None:
    """Refuse pandas objects with different index labels, or with the same ones in another order.

    Rows are matched by their position. If the indexes of two tables disagree, one person's records
    could be matched with another person's id.

    >>> import pandas as pd
    >>> users = pd.Series([7, 8])
    >>> check_same_rows(X=pd.DataFrame({"age": [30, 40]}), users=users)
    >>> check_same_rows(X=pd.DataFrame({"age": [30, 40]}), users=users[::-1])
    Traceback (most recent call last):
        ...
    quorate.exceptions.SchemaError: Expected X, users with the same index, got rows in another order
    or other rows. Align them, or pass them without labels: .to_numpy().
    """
    indexed = {n: v.index for n, v in given.items() if is_pandas(v) and hasattr(v, "iloc")}
    for one, other in pairwise(indexed.values()):
        same = False
        with suppress(Exception):  # labels are compared as their own types say
            same = one is other or bool(one.equals(other))
        if not same:
            break
    else:
        return
    raise SchemaError(
        f"Expected {', '.join(indexed)} with the same index, got rows in another order or "
        "other rows. Align them, or pass them without labels: .to_numpy()."
    )


def holds_objects(dtype: Any) -> bool:
    """Return whether a pandas type declares objects, as values or as categories.

    Text categories count too, because a single one that is not UTF-8 would be refused for all of
    them.

    >>> import numpy as np
    >>> holds_objects(np.dtype(object)), holds_objects(np.dtype(float))
    (True, False)
    """
    if not hasattr(dtype, "categories"):
        return bool(dtype == "O")
    held = dtype.categories.dtype
    return bool(held == "O") or _is_text(held)


def _is_text(dtype: Any) -> bool:
    return bool(dtype == "str") or getattr(dtype, "name", "") == "string"


def column_of_pandas(series: Any) -> Any:
    """Return a pandas column as an Arrow array of its declared type.

    It is None if Arrow has no such type.

    Objects are texts, and so are categories that are objects or texts.

    >>> import pandas as pd
    >>> column_of_pandas(pd.Series(["ann", 7], dtype=object)).to_pylist()
    ['ann', '7']
    """
    import pyarrow as pa

    dtype = series.dtype
    if dtype == "O":
        return cells.texts(series.to_numpy())
    if holds_objects(dtype):
        places = series.cat.codes.to_numpy()
        return pa.DictionaryArray.from_arrays(
            pa.array(places, mask=places < 0), cells.texts(dtype.categories.to_numpy())
        )
    found = quietly(lambda: pa.array(series))
    if found is not None:
        return found
    if _is_text(dtype):
        # Text that is no UTF-8, which Arrow refuses for all of them.
        return cells.texts(series.to_numpy(dtype=object, na_value=None))
    return None


def arrow_columns(users: Any) -> list[Any] | None:
    """Return the columns of anything with the Arrow interface; None if it has none, or fails."""
    import pyarrow as pa

    whole = None
    if isinstance(users, pa.ChunkedArray):
        whole = users
    elif is_pandas(users) and getattr(users, "ndim", 0) == 1 and hasattr(users, "iloc"):
        found = column_of_pandas(users)
        if found is not None:
            whole = found if isinstance(found, pa.ChunkedArray) else pa.chunked_array([found])
    elif hasattr(users, "__arrow_c_stream__") or hasattr(users, "__arrow_c_array__"):
        whole = quietly(
            lambda: pa.chunked_array(
                users if hasattr(users, "__arrow_c_stream__") else [pa.array(users)]
            )
        )
    if whole is None:
        return None
    if pa.types.is_struct(whole.type):
        return list(whole.flatten())
    return [whole]
