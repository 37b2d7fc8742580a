"""From the columns of a table to users: the way of every source that is read at once."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from quorate.users import grouping, tables
from quorate.users.assembly import numbered_users
from quorate.users.coding import coding_of, names_given
from quorate.users.data import UserData

__all__ = ["column_names", "grouped_users", "load_users"]


def column_names(
    user: str | Sequence[str], features: Sequence[str] | None, target: str | None
) -> list[str] | None:
    """Return the columns that are asked for, each once; None if the features are not named.

    >>> column_names("id", ["age", "size"], "age")
    ['age', 'size', 'id']
    """
    others = [*names_given(user), *([] if target is None else names_given(target))]
    return None if features is None else list(dict.fromkeys([*names_given(features), *others]))


def load_users(
    source: Any,
    *,
    user: str | Sequence[str],
    features: Sequence[str] | None = None,
    target: str | None = None,
    unit: str | None = None,
    missing: str | float = "drop",
    classes: Sequence[Any] | None = None,
    categories: Mapping[str, Sequence[Any]] | None = None,
    dates: Mapping[str, tuple[Any, Any]] | None = None,
) -> UserData:
    """Return the users of an Arrow table or dataset; parameters as in ``UserData.from_frame``.

    >>> import pyarrow as pa
    >>> table = pa.table({"id": [7, 5, 7], "age": [30.0, 61.0, 32.0]})
    >>> load_users(table, user="id")
    UserData(n_features=1, target=False, unit='id')
    """
    tables.check_missing(missing)
    columns = names_given(user)
    others = columns if target is None else [*columns, target]
    coding = coding_of(
        source.schema, features=features, others=others, categories=categories, dates=dates
    )
    read = tables.load(source, users=columns, features=features, target=target, coding=coding)
    return grouped_users(
        read.rows,
        tables.as_targets(read.target, classes),
        grouping.group(read.ids),
        missing=missing,
        unit=unit or " x ".join(columns),
        names=read.names,
    )


def grouped_users(
    rows: NDArray[np.float64],
    targets: NDArray[np.float64] | None,
    groups: grouping.Groups,
    *,
    missing: str | float,
    unit: str,
    names: tuple[str, ...] | None,
) -> UserData:
    """Return the users of rows with missing values; who holds nothing else keeps a place.

    >>> rows, groups = np.array([[1.0], [np.nan]]), grouping.group(["ann", "bob"])
    >>> people = grouped_users(rows, None, groups, missing="drop", unit="user", names=None)
    >>> people.record_counts()
    array([1, 0])
    """
    rows, targets, codes = tables.without_missing(rows, targets, groups.codes, missing)
    return numbered_users(rows, targets, codes, groups.keys, unit, names)
