"""Tables with the Arrow interface, and files: opened, checked by their schema, read as floats.

Which columns exist and of which type they are is the schema, which is public and may raise. The
value of a cell never raises an error: null becomes NaN, and the error for an unreadable page of a
file quotes no cell. A column of objects declares no type. It is read as text
(:mod:`quorate.data.columns.cells`) or, if it is a piece of a larger table, as the type that is
declared for the whole.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from quorate._validate import is_frame
from quorate.core.users.closed import quietly
from quorate.data.columns import cells, kinds
from quorate.data.columns.id_forms import column_of_pandas, holds_objects, is_pandas
from quorate.data.columns.kinds import check_numeric, is_numeric, is_text
from quorate.exceptions import SchemaError

if TYPE_CHECKING:
    from quorate.data.coding import Coding

__all__ = [
    "Loaded",
    "as_table",
    "batches_of",
    "check_columns",
    "check_features",
    "floats",
    "load",
    "open_frame",
    "open_parquet",
]

_BLOCK_ROWS = 2**16
# Floats below this are whole numbers of 64 bits if they are whole.
_WHOLE = 2.0**63


@dataclass(frozen=True, kw_only=True)
class Loaded:
    """The data that were read: a matrix with NaN for null, and Arrow columns of ids and target."""

    rows: NDArray[np.float64]
    names: tuple[str, ...]
    ids: tuple[Any, ...]
    target: Any
    order: Any = None


def as_table(table: Any) -> Any:
    """Return ``table``; run a lazy query (polars, duckdb) and return its rows as an Arrow table.

    >>> as_table([1, 2])
    [1, 2]
    """
    import pyarrow as pa

    library, kind = type(table).__module__.partition(".")[0], type(table).__name__
    if (library, kind) == ("polars", "LazyFrame"):
        found = quietly(lambda: pa.table(table.collect()))
    elif (library, kind) in {("duckdb", "DuckDBPyRelation"), ("_duckdb", "DuckDBPyRelation")}:
        found = quietly(lambda: pa.table(table))
    else:
        return table
    if found is None:
        raise SchemaError(
            f"The query of the {kind} failed; why is withheld, because it may quote records. Run "
            "it by itself to see the message."
        )
    return found


def open_frame(table: Any, columns: Sequence[str] | None = None, *, declared: Any = None) -> Any:
    """Return ``table`` (pandas, polars, duckdb, pyarrow, any Arrow stream) as an Arrow table.

    Columns of objects are texts. A piece of a larger pandas table may have other types than
    ``declared``, the schema of the whole table; its cells are then converted.

    >>> import pyarrow as pa
    >>> open_frame(pa.table({"a": [1, 2], "b": [3, 4]}), ["b"]).column_names
    ['b']
    """
    import pyarrow as pa

    table = as_table(table)
    if not is_frame(table):
        raise SchemaError(
            "Expected a table with an Arrow stream (pandas, polars, duckdb, pyarrow), "
            f"got {type(table).__name__}."
        )
    known = [str(name) for name in table.columns] if is_pandas(table) else None
    if known is not None:
        asked = known if columns is None else columns
        check_columns(asked, known)
        if len(set(asked)) < len(asked):
            raise SchemaError("Expected different column names, got some of them twice.")
        table, known = table.iloc[:, [known.index(name) for name in asked]], list(asked)
    arrow = None
    if known is not None:
        arrow = _from_pandas(table, known, declared)
    else:
        arrow = quietly(lambda: pa.table(table))
    if arrow is None:
        raise SchemaError(
            "The table could not be read through Arrow; give every column a declared type that "
            "Arrow knows."
        )
    # A pandas index travels along as a column; it is no feature unless somebody asks for it.
    wanted = columns if columns is not None else known or arrow.column_names
    check_columns(wanted, arrow.column_names)
    return arrow.select(list(wanted))


def open_parquet(path: str | os.PathLike[str]) -> Any:
    """Return the Arrow dataset of a Parquet file or of a folder of such files."""
    import pyarrow as pa
    import pyarrow.dataset as ds

    if not Path(path).exists():
        raise SchemaError(f"Expected a Parquet file or folder, found nothing at {str(path)!r}.")
    try:
        dataset = ds.dataset(os.fspath(path), format="parquet")
    except (pa.ArrowException, OSError):
        dataset = None
    if dataset is None:
        raise SchemaError(
            f"Expected a CSV, TSV or Parquet file, or a folder of Parquet files; {str(path)!r} "
            "could not be read as Parquet. Save other formats, such as spreadsheets, as CSV."
        )
    if len(dataset.files) > 1:
        _check_one_schema(dataset)
    return dataset


def _check_one_schema(dataset: Any) -> None:
    """Refuse files that declare different types for a column.

    Otherwise values would decide whether they fit.
    """
    kinds_of = {field.name: field.type for field in dataset.schema}
    for fragment in dataset.get_fragments():
        for field in quietly(partial(getattr, fragment, "physical_schema")) or ():
            if kinds_of.get(field.name, field.type) != field.type:
                raise SchemaError(
                    f"Expected one type for the column {field.name!r} in all files of the folder, "
                    "got several; write them with one schema."
                )


def batches_of(dataset: Any, columns: Sequence[str], **options: Any) -> Iterator[Any]:
    """Yield the batches of a dataset; the error for an unreadable page quotes no cell.

    >>> import pyarrow as pa, pyarrow.dataset as ds
    >>> [batch.num_rows for batch in batches_of(ds.dataset(pa.table({"a": [1, 2]})), ["a"])]
    [2]
    """
    import pyarrow as pa

    batches = iter(dataset.to_batches(columns=list(columns), **options))
    while True:
        batch, failed = None, False
        try:
            batch = next(batches, None)
        except (pa.ArrowException, OSError, ValueError):
            failed = True
        if failed:
            raise SchemaError("The table could not be read; why is withheld: it may quote records.")
        if batch is None:
            return
        yield batch


def load(
    source: Any,
    *,
    users: Sequence[str],
    features: Sequence[str] | None,
    target: str | None,
    coding: Coding | None = None,
    order: str | None = None,
) -> Loaded:
    """Read the features, the target and the ids of an Arrow table or dataset, batch by batch.

    With a ``coding``, which the caller has checked, its columns are the features.

    >>> import pyarrow as pa
    >>> table = pa.table({"a": [1, None], "b": [True, False], "id": [7, 7]})
    >>> load(table, users=["id"], features=None, target=None).rows
    array([[ 1.,  1.],
           [nan,  0.]])
    """
    import pyarrow as pa

    others = [*users, *(name for name in (target, order) if name is not None)]
    if coding is None:
        names = check_features(source.schema, features=features, others=others)
        width = len(names)
    else:
        names, width = list(coding.sources), len(coding.names)
    wanted = list(dict.fromkeys([*names, *others]))
    n_rows = source.num_rows if isinstance(source, pa.Table) else source.count_rows()
    narrow = source.select(wanted).to_batches if isinstance(source, pa.Table) else None
    batches = narrow() if narrow else batches_of(source, wanted)
    rows, start = np.empty((n_rows, width)), 0
    kept: dict[str, list[Any]] = {name: [] for name in others}
    for batch in batches:
        for begin in range(0, batch.num_rows, _BLOCK_ROWS):
            block = batch.slice(begin, _BLOCK_ROWS)
            here = rows[start : start + block.num_rows]
            if coding is None:
                for j, name in enumerate(names):
                    here[:, j] = floats(block.column(name))
            else:
                for place, numbers_there in coding.blocks(block):
                    here[:, place] = numbers_there
            start += block.num_rows
        for name, chunks in kept.items():
            chunks.append(batch.column(name))
    columns = {
        name: pa.chunked_array(chunks, source.schema.field(name).type)
        for name, chunks in kept.items()
    }
    return Loaded(
        rows=rows,
        names=tuple(names) if coding is None else coding.names,
        ids=tuple(columns[name] for name in users),
        target=None if target is None else columns[target],
        order=None if order is None else columns[order],
    )


def check_features(
    schema: Any,
    *,
    features: Sequence[str] | None,
    others: Sequence[str],
    coded: Mapping[str, Any] | None = None,
) -> list[str]:
    """Return the feature columns: those requested, or all readable ones except ``others``.

    These are numeric columns and those of ``coded`` (:mod:`quorate.data.coding`), whose types were
    checked earlier.
    """
    check_columns(others, schema.names)
    known = coded or {}
    if features is None:
        chosen = [
            field.name
            for field in schema
            if field.name not in others and (is_numeric(field.type) or field.name in known)
        ]
    else:
        chosen = [features] if isinstance(features, str) else [str(name) for name in features]
        check_columns(chosen, schema.names)
        for name in chosen:
            if name not in known:
                check_numeric(name, schema.field(name).type)
    if not chosen:
        raise SchemaError("Expected at least one numeric feature column, got none.")
    return chosen


def floats(column: Any, *, single: bool = False) -> NDArray[Any]:
    """Return a numeric Arrow array as floats with NaN for null; lossy casts are allowed.

    >>> import pyarrow as pa
    >>> floats(pa.array([1, None]))
    array([ 1., nan])
    """
    import pyarrow as pa

    kind = pa.float32() if single else pa.float64()
    values: NDArray[Any] = column.cast(kind, safe=False).to_numpy(zero_copy_only=False)
    return values


def _from_pandas(frame: Any, names: list[str], declared: Any) -> Any:
    """Return an Arrow table of a pandas frame, with object columns as text; None if impossible.

    It is done in one call if every column declares a type and Arrow reads every cell; otherwise
    column by column.
    """
    import pyarrow as pa

    made = None
    if not any(map(holds_objects, frame.dtypes)):
        made = quietly(lambda: pa.table(frame))
    if made is None:
        wanted = [None if declared is None else declared.field(name).type for name in names]
        columns = [_column(frame.iloc[:, place], kind) for place, kind in enumerate(wanted)]
        for place, name in enumerate(names):
            # A type that Arrow does not know has no column without rows either.
            if columns[place] is None and _column(frame.iloc[:0, place], wanted[place]) is None:
                raise SchemaError(
                    f"The column {name!r} has the type {frame.dtypes.iloc[place]}, which Arrow "
                    "cannot hold; convert it, for numbers with .astype(float)."
                )
        made = None if any(c is None for c in columns) else pa.table(columns, names=names)
    if made is None or declared is None:
        return made
    return pa.table([_as_declared(made.column(n), declared.field(n).type) for n in names], names)


def _column(column: Any, kind: Any) -> Any:
    """Return a pandas column; objects as numbers if numbers are declared, otherwise as text."""
    import pyarrow as pa

    if kind is not None and is_numeric(kind) and holds_objects(column.dtype):
        return pa.array(cells.numbers(column.to_numpy(dtype=object)))
    return column_of_pandas(column)


def _as_declared(column: Any, kind: Any) -> Any:
    """Convert a column to a declared type, cell by cell; null where a cell cannot be converted."""
    import pyarrow as pa

    if isinstance(column, pa.ChunkedArray):
        column = column.combine_chunks()
    held, wanted = _held(column.type), _held(kind)
    if is_text(wanted) and not is_text(held):
        return cells.texts(cells.objects(kinds.held(column)))
    is_whole = pa.types.is_integer
    fits = is_numeric(held) and (is_whole(held) or not is_whole(wanted))
    if fits or not is_numeric(wanted):
        return column
    values = floats(column) if is_numeric(held) else cells.numbers(kinds.held(column))
    if not is_whole(wanted):
        return pa.array(values)
    whole = (np.abs(values) < _WHOLE) & (values == np.rint(values))
    return pa.array(np.where(whole, values, 0.0).astype(np.int64), mask=~whole)


def _held(kind: Any) -> Any:
    import pyarrow as pa

    return kind.value_type if pa.types.is_dictionary(kind) else kind


def check_columns(wanted: Iterable[str], names: Iterable[str]) -> None:
    """Refuse names of columns that do not exist.

    >>> check_columns(["age"], ["age", "id"])
    """
    known = set(names)
    for name in wanted:
        if name not in known:
            raise SchemaError(f"Expected a column {name!r}, the table has {sorted(known)}.")
