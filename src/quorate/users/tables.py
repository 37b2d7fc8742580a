"""Numbers from tables: columns of any Arrow source, or arrays, to matrices of finite floats.

Which columns exist and of which type they are is the schema, which is public and may raise. What
stands in a row never does: null, NaN and infinities are all "missing" and handled by one rule that
the caller states.

A type counts only if it is declared. A column of objects declares none: it is read as text, and
refused where numbers are expected, whatever it holds. A list declares none either; it is read as
floats, number by number, and what is no number is missing. Only its shape may be wrong.
"""

from __future__ import annotations

import numbers
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from quorate.arrays import all_finite, as_array, described, finite_rows
from quorate.exceptions import ParameterError, SchemaError
from quorate.users.grouping import as_text
from quorate.users.kinds import check_numeric, is_numeric, kind_of

if TYPE_CHECKING:
    from quorate.users.coding import Coding

__all__ = [
    "Loaded",
    "as_labels",
    "as_matrix",
    "as_targets",
    "as_vector",
    "batches_of",
    "check_features",
    "check_missing",
    "column_names",
    "floats",
    "is_frame",
    "load",
    "open_frame",
    "open_parquet",
    "size_on_disk",
    "without_missing",
]

_BLOCK_ROWS = 2**16


@dataclass(frozen=True, kw_only=True)
class Loaded:
    """What was read: a matrix with NaN where values were null, Arrow columns of ids and target."""

    rows: NDArray[np.float64]
    names: tuple[str, ...]
    ids: tuple[Any, ...]
    target: Any


def is_frame(value: Any) -> bool:
    """Tell whether ``value`` is a table that speaks Arrow.

    >>> is_frame(np.zeros((2, 2)))
    False
    """
    return not isinstance(value, np.ndarray) and hasattr(value, "__arrow_c_stream__")


def column_names(table: Any) -> tuple[str, ...] | None:
    """Return the names of the columns of a table that speaks Arrow; None for anything else.

    >>> import pyarrow as pa
    >>> column_names(pa.table({"a": [1], "b": [2]})), column_names(np.zeros((1, 2)))
    (('a', 'b'), None)
    """
    if not is_frame(table):
        return None
    names = getattr(table, "column_names", None)
    if names is None:
        names = getattr(table, "columns", None)
    return None if names is None else tuple(str(name) for name in names)


def open_frame(table: Any, columns: Sequence[str] | None = None) -> Any:
    """Return ``table`` (pandas, polars, duckdb, pyarrow, any Arrow stream) as an Arrow table.

    >>> import pyarrow as pa
    >>> open_frame(pa.table({"a": [1, 2], "b": [3, 4]}), ["b"]).column_names
    ['b']
    """
    import pyarrow as pa

    if not is_frame(table):
        raise SchemaError(
            "Expected a table with an Arrow stream (pandas, polars, duckdb, pyarrow), "
            f"got {type(table).__name__}."
        )
    known = [str(name) for name in table.columns] if _is_pandas(table) else None
    if known is not None:
        asked = known if columns is None else columns
        _check_columns(asked, known)
        if len(set(asked)) < len(asked):
            raise SchemaError("Expected different column names, got some of them twice.")
        table, known = table.iloc[:, [known.index(name) for name in asked]], list(asked)
    try:
        arrow = pa.table(table) if known is None else _from_pandas(table, known)
    except (pa.ArrowException, TypeError, ValueError):
        arrow = None
    if arrow is None:
        # Arrow's own message quotes the value that it stumbled over.
        raise SchemaError(
            "A column holds objects of several types; give every column a declared type."
        )
    # A pandas index travels along as a column; it is no feature unless somebody asks for it.
    wanted = columns if columns is not None else known or arrow.column_names
    _check_columns(wanted, arrow.column_names)
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
        raise SchemaError(f"Expected a Parquet file or folder, could not read {str(path)!r}.")
    return dataset


def size_on_disk(dataset: Any) -> int:
    """Return how many bytes the files of a dataset take together."""
    return sum(Path(file).stat().st_size for file in dataset.files)


def batches_of(dataset: Any, columns: Sequence[str], **options: Any) -> Iterator[Any]:
    """Yield the batches of a dataset; of a page that cannot be read say only that there is one.

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

    others = [*users, *([] if target is None else [target])]
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
    )


def check_features(
    schema: Any,
    *,
    features: Sequence[str] | None,
    others: Sequence[str],
    coded: Mapping[str, Any] | None = None,
) -> list[str]:
    """Return the feature columns: those asked for, or all but ``others`` that can be read.

    These are numeric ones and those of ``coded`` (:mod:`quorate.users.coding`), whose types are
    checked by whoever made them.
    """
    _check_columns(others, schema.names)
    known = coded or {}
    if features is None:
        chosen = [
            field.name
            for field in schema
            if field.name not in others and (is_numeric(field.type) or field.name in known)
        ]
    else:
        chosen = [features] if isinstance(features, str) else [str(name) for name in features]
        _check_columns(chosen, schema.names)
        for name in chosen:
            if name not in known:
                check_numeric(name, schema.field(name).type)
    if not chosen:
        raise SchemaError("Expected at least one numeric feature column, got none.")
    return chosen


def as_matrix(X: Any) -> tuple[NDArray[np.float64], tuple[str, ...] | None]:
    """Return features as C-ordered float64 (not copied if they are so already) and their names.

    >>> as_matrix([1, 2])[0]
    array([[1.],
           [2.]])
    """
    if _is_column(X):
        return _numbers(X, "Expected numbers in X, got {}; {}.")[:, None], None
    if is_frame(X):
        table = open_frame(X)
        names = check_features(table.schema, features=table.column_names, others=[])
        return load(table, users=[], features=names, target=None).rows, tuple(names)
    array = as_array(X)
    if array.dtype.kind not in "fiub":
        raise SchemaError(
            f"Expected numbers in X, got {kind_of(array.dtype)}; convert them with X.astype(float)."
        )
    if array.ndim == 1:
        array = array[:, None]
    if array.ndim != 2 or array.shape[1] == 0:
        raise SchemaError(f"Expected X with one row per record, got {array.ndim} axes.")
    with np.errstate(all="ignore"):
        return np.ascontiguousarray(array, dtype=np.float64), None


def as_vector(y: Any) -> NDArray[np.float64]:
    """Return a numeric target as floats.

    >>> as_vector([True, False])
    array([1., 0.])
    """
    if _is_pandas(y) and y.ndim == 2 and y.shape[1] == 1:
        y = y.iloc[:, 0]
    if _is_column(y) or is_frame(y):
        return _numbers(
            y, "Expected numbers as targets, got {}; name the labels with classes=, or {}."
        )
    array = as_array(y)
    if array.dtype.kind not in "fiub":
        raise SchemaError(
            f"Expected numbers as targets, got {kind_of(array.dtype)}; name the labels with "
            "classes=, or convert them with .astype(float)."
        )
    if array.ndim == 2 and array.shape[1] == 1:
        array = array[:, 0]
    if array.ndim != 1:
        raise SchemaError(f"Expected one target per record, got {array.ndim} axes.")
    with np.errstate(all="ignore"):
        return np.ascontiguousarray(array, dtype=np.float64)


def as_targets(y: Any, classes: Sequence[Any] | None) -> NDArray[np.float64] | None:
    """Return targets as floats: numbers, or places among public classes; None stays None.

    >>> as_targets(None, None)
    """
    if y is None:
        return None
    return as_vector(y) if classes is None else as_labels(y, classes)


def as_labels(y: Any, classes: Sequence[Any]) -> NDArray[np.float64]:
    """Return the place of each label among the public ``classes``; NaN for any other label.

    Labels are compared as numbers if all classes are numbers, as text otherwise.

    >>> as_labels(["yes", "no", "maybe"], classes=("no", "yes"))
    array([ 1.,  0., nan])
    """
    import pyarrow as pa
    import pyarrow.compute as pc

    labels = [label.item() if isinstance(label, np.generic) else label for label in classes]
    if len(labels) < 2 or len(set(labels)) < len(labels):
        raise ParameterError(f"Expected at least two different classes, got {described(classes)}.")
    if all(isinstance(label, numbers.Real) for label in labels):
        values = as_vector(y)
        places, known = np.zeros(len(values)), np.zeros(len(values), dtype=np.bool_)
        for place, label in enumerate(labels):
            # A mask of labels that come by chance takes ten times as long as a product with it.
            found = values == float(label)
            known |= found
            places += found * float(place)
        if not known.all():
            places[~known] = np.nan
        return places
    masked = isinstance(y, np.ma.MaskedArray)
    objects = y.astype(object).filled(None) if masked else np.asarray(y, dtype=object)
    texts = as_text(objects.ravel()).cast(pa.large_binary())
    known = pa.array([str(label).encode() for label in labels], type=pa.large_binary())
    return floats(pc.index_in(texts, value_set=known))


def without_missing(
    rows: NDArray[np.float64],
    targets: NDArray[np.float64] | None,
    codes: NDArray[Any],
    missing: str | float,
) -> tuple[NDArray[np.float64], NDArray[np.float64] | None, NDArray[Any]]:
    """Apply the public rule for missing values; nothing is copied if nothing is missing.

    >>> rows, codes = np.array([[1.0], [np.nan], [3.0]]), np.array([0, 0, -1])
    >>> without_missing(rows, None, codes, "drop")
    (array([[1.]]), None, array([0]))
    """
    if len({len(rows), len(codes), len(rows) if targets is None else len(targets)}) > 1:
        raise SchemaError("Expected X, y and users with one entry per row, got several lengths.")
    keep = codes >= 0
    if targets is not None:
        keep &= finite_rows(targets)
    if not all_finite(rows):
        if missing == "drop":
            keep &= finite_rows(rows)
        else:
            rows = np.where(np.isfinite(rows), rows, float(missing))
    if keep.all():
        return rows, targets, codes
    return rows[keep], None if targets is None else targets[keep], codes[keep]


def check_missing(missing: Any) -> None:
    """Refuse a rule for missing values that is neither "drop" nor a finite number."""
    number = isinstance(missing, numbers.Real) and not isinstance(missing, bool)
    if not (missing == "drop" or (number and np.isfinite(float(missing)))):
        raise ParameterError(f'Expected missing to be "drop" or a number, got missing={missing!r}.')


def _is_column(values: Any) -> bool:
    """Tell whether ``values`` is one column of a frame library or of Arrow."""
    import pyarrow as pa

    if isinstance(values, pa.Array | pa.ChunkedArray):
        return True
    return is_frame(values) and hasattr(values, "dtype")


def _numbers(column: Any, message: str) -> NDArray[np.float64]:
    """Return a column, or a frame that has but one, as floats; refuse it by its declared type."""
    import pyarrow as pa

    remedy = "convert them with .astype(float)"
    if getattr(column, "dtype", None) == "O":
        raise SchemaError(message.format(kind_of(np.dtype(object)), remedy))
    chunks = None
    with suppress(pa.ArrowException, TypeError, ValueError):
        chunks = pa.chunked_array([column] if isinstance(column, pa.Array) else column)
    if chunks is not None and pa.types.is_struct(chunks.type) and chunks.type.num_fields == 1:
        (chunks,) = chunks.flatten()
    if chunks is None or pa.types.is_struct(chunks.type):
        raise SchemaError("Expected one target per record, got several columns or types.")
    if not is_numeric(chunks.type):
        raise SchemaError(message.format(kind_of(chunks.type), remedy))
    return np.concatenate([np.empty(0), *(floats(chunk) for chunk in chunks.chunks)])


def _from_pandas(frame: Any, names: list[str]) -> Any:
    """Return an Arrow table of a pandas frame, columns of objects as text."""
    import pyarrow as pa

    if not any(dtype == "O" for dtype in frame.dtypes):
        return pa.table(frame)
    columns = [frame.iloc[:, j] for j in range(len(names))]
    return pa.table(
        [as_text(c.to_numpy()) if c.dtype == "O" else pa.array(c) for c in columns], names=names
    )


def _is_pandas(table: Any) -> bool:
    return type(table).__module__.partition(".")[0] == "pandas"


def _check_columns(wanted: Iterable[str], names: Iterable[str]) -> None:
    known = set(names)
    for name in wanted:
        if name not in known:
            raise SchemaError(f"Expected a column {name!r}, the table has {sorted(known)}.")


def floats(column: Any, *, single: bool = False) -> NDArray[Any]:
    """Return a numeric Arrow array as floats with NaN for null; lossy casts are no error.

    >>> import pyarrow as pa
    >>> floats(pa.array([1, None]))
    array([ 1., nan])
    """
    import pyarrow as pa

    kind = pa.float32() if single else pa.float64()
    values: NDArray[Any] = column.cast(kind, safe=False).to_numpy(zero_copy_only=False)
    return values
