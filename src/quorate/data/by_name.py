"""Columns of a table by their names: ``fit(table, "ill", users="patient")``.

A table may contain the features, the target and the ids together. Named columns are taken out of
the table by their position. Which columns there are is the schema, and no row is read.

A query of another library (a polars LazyFrame, a DuckDB relation) is not a table yet. It runs once,
so that all columns come from the same rows in the same order. It runs before anything is charged,
as if the caller had run it. Its error messages may quote records, so they are withheld.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from functools import wraps
from typing import Any, TypeVar

from quorate._validate import is_frame
from quorate.core.users.crowd import Crowd
from quorate.data.columns.id_forms import is_pandas
from quorate.data.frames import as_table, open_frame
from quorate.exceptions import ParameterError, SchemaError, UnknownArgumentError

__all__ = ["columns_by_name", "takes_names"]

T = TypeVar("T")


def columns_by_name(X: Any, y: Any = None, users: Any = None) -> tuple[Any, Any, Any]:
    """Return features, target and ids.

    If target or ids are given as text, they are columns of ``X``.

    >>> import pyarrow as pa
    >>> table = pa.table({"patient": [7, 8], "age": [30, 61], "ill": [0, 1]})
    >>> X, y, users = columns_by_name(table, "ill", "patient")
    >>> X.column_names, y.to_pylist(), users.to_pylist()
    (['age'], [0, 1], [7, 8])
    """
    X = _table(X)
    for word, given in (("users", users), ("y", y)):
        if isinstance(given, str):
            X = _checked(X, given, word)
    if isinstance(users, str) and isinstance(y, str) and users == y:
        raise ParameterError(f"Expected different columns for y and users, got {y!r} for both.")
    names = {given for given in (y, users) if isinstance(given, str)}
    y, users = (_column(X, each) if isinstance(each, str) else each for each in (y, users))
    return (_without(X, names) if names else X), y, users


def takes_names(method: Callable[..., T]) -> Callable[..., T]:
    """Wrap a method with ``X``, ``y`` and ``users`` so that the last two may be column names.

    >>> class Sizes:
    ...     @takes_names
    ...     def fit(self, X, y=None, *, users=None):
    ...         return X.column_names, users.to_pylist()
    >>> import pyarrow as pa
    >>> Sizes().fit(pa.table({"patient": [7, 8], "age": [30, 61]}), users="patient")
    (['age'], [7, 8])
    """
    signature = inspect.signature(method)
    if not {"X", "users"} <= signature.parameters.keys():
        return method

    @wraps(method)
    def inside(*args: Any, **kwargs: Any) -> T:
        try:
            given = signature.bind(*args, **kwargs)
        except TypeError as error:  # it names arguments only, so the closed zone lets it pass
            raise UnknownArgumentError(f"{method.__qualname__}(): {error}.") from None
        found = given.arguments
        X, y, users = (found.get(name) for name in ("X", "y", "users"))
        if getattr(found.get("self"), "_reads_users_by_name", False):
            found["X"] = _table(X)
        else:
            found["X"], y, users = columns_by_name(X, y, users)
            found |= {name: each for name, each in (("y", y), ("users", users)) if name in found}
        return method(*given.args, **given.kwargs)

    return inside


def _table(X: Any) -> Any:
    """Return ``X`` or, if it is a query, its rows."""
    import pyarrow as pa

    if isinstance(X, pa.RecordBatchReader):
        raise ParameterError(
            "A RecordBatchReader can be read only once, and a second fit would find nobody: pass "
            "X.read_all(), or UserData.from_frame(X, user=...)."
        )
    return as_table(X)


def _checked(X: Any, name: str, word: str) -> Any:
    """Return a table with a column ``name`` that can be taken out; refuse anything else."""
    import pyarrow as pa

    if isinstance(X, Crowd):
        raise ParameterError(
            f"Expected either a UserData alone or X, y and users=; got a UserData together with "
            f"{word}={name!r}."
        )
    if not is_frame(X) or hasattr(X, "dtype"):
        raise ParameterError(
            f"{word}={name!r} names a column, but X is a {type(X).__name__}, which has no named "
            f"columns: pass a table that has it, or an array with one entry per row as {word}=."
        )
    if not (is_pandas(X) or _is_polars(X) or isinstance(X, pa.Table)):
        X = open_frame(X)
    names = [str(each) for each in (X.column_names if isinstance(X, pa.Table) else X.columns)]
    if names.count(name) != 1:
        raise SchemaError(f"Expected one column {name!r}, the table has {sorted(names)}.")
    return X


def _is_polars(X: Any) -> bool:
    return type(X).__module__.partition(".")[0] == "polars" and hasattr(X, "get_column")


def _column(X: Any, name: str) -> Any:
    if is_pandas(X):
        return X.iloc[:, [str(each) for each in X.columns].index(name)]
    return X.get_column(name) if _is_polars(X) else X.column(name)


def _without(X: Any, names: set[str]) -> Any:
    if is_pandas(X):
        return X.iloc[:, [i for i, each in enumerate(X.columns) if str(each) not in names]]
    return X.drop(list(names)) if _is_polars(X) else X.drop_columns(list(names))
