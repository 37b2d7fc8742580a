"""Sources of users' records besides arrays: frames, files and databases.

Every source declares its columns in a schema, which is checked before a row is read. Rows are read
batch by batch and grouped by user like those of arrays.
"""

from __future__ import annotations

import os
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Self, cast

import numpy as np
from numpy.typing import ArrayLike, NDArray

from quorate import _validate
from quorate.core.public_randomness import public_generator
from quorate.core.users.closed import closed
from quorate.core.users.store import RecordStore
from quorate.data import frames, tables
from quorate.data.by_name import columns_by_name
from quorate.data.coding import coding_of, names_given
from quorate.data.columns.id_forms import check_form, check_same_rows
from quorate.data.columns.ids import Groups, group
from quorate.data.columns.keys import keys_of
from quorate.data.columns.marks import as_marks, check_order, marks_of
from quorate.exceptions import SchemaError

if TYPE_CHECKING:
    from quorate.core.users.crowd import Crowd
    from quorate.core.users.data import UserData

__all__ = ["Spooled", "TableSources", "asked_columns", "spool_folder"]


def asked_columns(
    user: str | Sequence[str],
    features: Sequence[str] | None,
    target: str | None,
    order: str | None = None,
) -> list[str] | None:
    """Return the requested columns, each once; None if the features are not named.

    >>> asked_columns("id", ["age", "size"], "age")
    ['age', 'size', 'id']
    """
    more = [name for each in (target, order) if each is not None for name in names_given(each)]
    others = [*names_given(user), *more]
    return None if features is None else list(dict.fromkeys([*names_given(features), *others]))


Spooled = bool | str | os.PathLike[str]
"""Whether rows are grouped on disk, or the folder in which they are to stay."""


def spool_folder(spool: Spooled) -> str | os.PathLike[str] | None:
    """Return the folder that ``spool=`` names; None for a temporary folder.

    >>> spool_folder(True) is None, spool_folder("grouped")
    (True, 'grouped')
    """
    return None if isinstance(spool, bool) else spool


class TableSources(ABC):
    """The constructors of :class:`~quorate.core.users.UserData`, which read ids and columns."""

    @abstractmethod
    def _set(
        self,
        store: RecordStore,
        offsets: NDArray[np.int64],
        keys: NDArray[np.uint64],
        unit: str,
        names: tuple[str, ...] | None,
    ) -> UserData:
        """Store these records, sorted by user; return the object."""

    @closed
    def __init__(
        self,
        X: ArrayLike,
        y: ArrayLike | None = None,
        *,
        offsets: ArrayLike,
        unit: str = "user",
        feature_names: Sequence[str] | None = None,
        ids: Any = None,
    ) -> None:
        rows, names = tables.as_matrix(X)
        targets = None if y is None else tables.as_vector(y)
        starts = np.asarray(offsets)
        _validate.integer_dtype(offsets=starts.dtype)
        ends_fit = starts.ndim == 1 and len(starts) and starts[0] == 0 and starts[-1] == len(rows)
        if not ends_fit or np.any(starts[1:] < starts[:-1]):
            raise SchemaError("Expected offsets that climb from 0 to the number of records.")
        if targets is not None and len(targets) != len(rows):
            raise SchemaError("Expected X and y with one entry per record, got other lengths.")
        n_users = len(starts) - 1
        keys = _random_keys(n_users) if ids is None else keys_of(ids, n_users)
        names = names if feature_names is None else tuple(map(str, feature_names))
        self._set(RecordStore(rows, targets, None), starts.astype(np.int64), keys, unit, names)

    @classmethod
    @closed
    def from_arrays(
        cls,
        X: Any,
        y: Any = None,
        *,
        users: Any = None,
        unit: str | None = None,
        missing: str | float = "drop",
        classes: Sequence[Any] | None = None,
        order: Any = None,
    ) -> Self:
        """Group the rows of arrays by user.

        Parameters
        ----------
        X : array-like of shape (N, d) or (N,), or a frame of numbers
            It is not copied if it is C-ordered float64; do not change it afterwards.
        y : array-like of shape (N,), optional
        users : array-like of shape (N,), a tuple of several, or str
            The id of each row's user, or the name of the id column; see
            :mod:`quorate.data.columns.ids`. Several columns together form the unit, such as person
            x day.
        unit : str, default="user", or "combination of 2 ids" if there are several columns
        missing : "drop" or float, default="drop"
        classes : sequence, optional
            Public labels; ``y`` is replaced by the index of its label, and other labels count as
            missing.
        order : array-like of shape (N,), optional
            Numbers, dates or times that say which of a user's records come first; see :meth:`cap`.
            Without it no record comes first, so the order of the rows does not matter.

        Examples
        --------
        >>> from quorate import UserData
        >>> UserData.from_arrays([[1.0], [np.nan]], [0, 1], users=[8, 9]).record_counts()
        array([1, 0])
        """
        tables.check_missing(missing)
        X, y, users = columns_by_name(X, y, users)
        check_form(X=X, y=y)
        check_same_rows(X=X, y=y, users=users, order=order)
        groups = group(users)
        rows, names = tables.as_matrix(X)
        if unit is None:
            unit = "user" if groups.n_columns == 1 else f"combination of {groups.n_columns} ids"
        targets, marks = tables.as_targets(y, classes), as_marks(order)
        return cls._grouped(
            rows, targets, groups, missing=missing, unit=unit, names=names, marks=marks
        )

    @classmethod
    def _grouped(
        cls,
        rows: NDArray[np.float64],
        targets: NDArray[np.float64] | None,
        groups: Groups,
        *,
        missing: str | float,
        unit: str,
        names: tuple[str, ...] | None,
        marks: NDArray[np.int64] | None = None,
    ) -> Self:
        """Group rows that may have missing values; users without any other row are kept."""
        from quorate.core.users.data import numbered_users

        codes, kept = groups.codes, None
        if marks is None:
            rows, targets, codes = tables.without_missing(rows, targets, codes, missing)
        else:
            if len(marks) != len(codes):
                raise SchemaError("Expected order= with one entry per row, got another length.")
            places = np.where(codes < 0, -1, np.arange(len(marks)))
            rows, targets, places = tables.without_missing(rows, targets, places, missing)
            codes, kept = codes[places], marks[places]
        made = numbered_users(rows, targets, codes, groups.keys, unit, names, kept)
        return cast("Self", made)

    @classmethod
    @closed
    def from_frame(
        cls,
        table: Any,
        *,
        user: str | Sequence[str],
        features: Sequence[str] | None = None,
        target: str | None = None,
        unit: str | None = None,
        missing: str | float = "drop",
        classes: Sequence[Any] | None = None,
        categories: Mapping[str, Sequence[Any]] | None = None,
        dates: Mapping[str, tuple[Any, Any]] | None = None,
        order: str | None = None,
    ) -> Self:
        """Group the rows of a pandas, polars, duckdb or pyarrow table by user.

        Parameters
        ----------
        table : any object with an Arrow stream
        user : str or sequence of str
            Column(s) with the ids; their names become the unit unless ``unit`` is given.
        features : sequence of str, default=all other numeric columns
        target, unit, missing, classes
            See :meth:`UserData.from_arrays`; ``target`` is the name of a column.
        categories : dict, optional
            Public values by column: ``{"region": ["north", "south"]}``.
        dates : dict, optional
            Public ranges of dates by column; for both see :mod:`quorate.data.coding`.
        order : str, optional
            A column of numbers, dates or times that says which of a user's records come first if a
            cap (:meth:`cap`) keeps only some of them, for example the first visits. It is a feature
            only if it is named among them. Without it no record comes first, whatever the order of
            the rows.

        Examples
        --------
        >>> import pyarrow as pa
        >>> from quorate.core.users import UserData
        >>> table = pa.table({"patient": ["a", "b", "a"], "age": [50, 61, 52]})
        >>> UserData.from_frame(table, user="patient")
        UserData(n_features=1, target=False, unit='patient')
        """
        source = frames.open_frame(table, asked_columns(user, features, target, order))
        given: Any = {"features": features, "target": target, "unit": unit, "missing": missing}
        given |= {"classes": classes, "categories": categories, "dates": dates, "order": order}
        return cls._loaded(source, user=user, **given)

    @classmethod
    def from_parquet(
        cls,
        path: str | os.PathLike[str],
        *,
        user: str | Sequence[str],
        spool: Spooled = False,
        **columns: Any,
    ) -> Any:
        """Group the rows of a Parquet file, or of a folder of them, by user.

        Columns as in :meth:`from_frame`. If the records do not fit into memory, use ``spool=True``
        or a folder: the rows are then grouped on disk, as a
        :class:`~quorate.data.engines.files.FileCrowd`. This is never decided by the sizes of the
        files, because they depend on the records.
        """
        if spool:
            from quorate.data.engines.files import FileCrowd

            return FileCrowd.from_parquet(path, user=user, spool=spool_folder(spool), **columns)
        return cls._loaded(frames.open_parquet(path), user=user, **columns)

    @classmethod
    def from_csv(
        cls,
        path: str | os.PathLike[str],
        *,
        user: str | Sequence[str],
        features: Sequence[str],
        spool: Spooled = False,
        **columns: Any,
    ) -> Any:
        r"""Group the rows of a CSV or TSV file, or of a folder of them, by user.

        As :meth:`from_parquet`. Text declares no types, so ``features`` must be named; a cell that
        cannot be parsed as a number is missing. For the same reason there is no ``order=``.
        ``separator=``, ``decimal=``, ``thousands=`` and ``encoding=`` say how the file is written
        (:class:`~quorate.data.files.dialects.Dialect`).

        >>> import pathlib, tempfile
        >>> from quorate.core.users import UserData
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     _ = pathlib.Path(folder, "1.csv").write_text("id,age\nann,30\nbob,old\n")
        ...     UserData.from_csv(folder, user="id", features=["age"]).record_counts()
        array([1, 0])
        """
        from quorate.data.files.table_files import users_of_csv

        if columns.pop("order", None) is not None:
            raise SchemaError(
                "Expected no order= for CSV: text declares no types, and 9 would come after 10. "
                "Read the table with pandas or polars and use UserData.from_frame."
            )
        return users_of_csv(path, user=user, features=features, spool=spool, **columns)

    @classmethod
    def from_sql(cls, connection: Any, query: str, **columns: Any) -> Crowd:
        """Group the rows of a query by user, from a connection or cursor of any database.

        A plain DBAPI cursor declares no types, so name the ``features`` there. Columns are as in
        :meth:`from_frame`; use ``spool=True``, or a folder, if the records do not fit into memory.
        >>> import sqlite3
        >>> from quorate.core.users import UserData
        >>> with sqlite3.connect(":memory:") as base:
        ...     query = "select 7 as id, 2.5 as x"
        ...     UserData.from_sql(base, query, user="id", features=["x"]).n_users
        1
        """
        from quorate.data.engines.sql import from_sql

        return from_sql(connection, query, **columns)

    @classmethod
    @closed
    def _loaded(
        cls,
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
        order: str | None = None,
    ) -> Self:
        """Return the users of an Arrow table or dataset; parameters as in :meth:`from_frame`."""
        tables.check_missing(missing)
        columns = names_given(user)
        others = [*columns, *(name for name in (target, order) if name is not None)]
        coding = coding_of(
            source.schema, features=features, others=others, categories=categories, dates=dates
        )
        if order is not None:
            frames.check_columns([order], source.schema.names)
            check_order(order, source.schema.field(order).type)
        read = frames.load(
            source, users=columns, features=features, target=target, coding=coding, order=order
        )
        return cls._grouped(
            read.rows,
            tables.as_targets(read.target, classes),
            group(read.ids),
            missing=missing,
            unit=unit or " x ".join(columns),
            names=read.names,
            marks=None if read.order is None else marks_of(read.order),
        )


def _random_keys(n_users: int) -> NDArray[np.uint64]:
    return public_generator().integers(0, 2**64, size=n_users, dtype=np.uint64)
