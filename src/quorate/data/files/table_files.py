"""CSV and Parquet files as records grouped by user, by rules that hold for every value.

A CSV file declares no types, and guessing them from the rows would make the schema depend on one
person's value. So every column is read as bytes. A cell that should be a number and cannot be
parsed as one is *missing*, like an empty cell. One line is always one row, and ids are exactly the
contents of the id cells (:mod:`quorate.data.files.csv_lines`). Which columns exist is the schema,
which is public and may raise.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from quorate.core.users import UserData
from quorate.core.users.closed import closed
from quorate.data import frames, tables
from quorate.data.coding import Category, Coding, coded_columns, names_given
from quorate.data.columns import kinds
from quorate.data.columns.ids import group
from quorate.data.columns.keys import row_keys
from quorate.data.engines.files import FileCrowd, about_file
from quorate.data.engines.layout import Layout
from quorate.data.engines.progress import Progress
from quorate.data.files.csv_lines import (
    cell_schema,
    cell_tables,
    count_lines,
    read_cells,
    read_header,
)
from quorate.data.files.dialects import PLAIN, SEPARATORS, Dialect
from quorate.data.sources import Spooled, spool_folder
from quorate.exceptions import ParameterError, SchemaError

__all__ = ["Columns", "LoadedRows", "TableFile", "users_of_csv"]

# Batches of a few megabytes, so that grouping on disk needs little memory.
_BATCH_ROWS = 2**17
_NO_FEATURES = (
    "Expected the names of the feature columns in features= (--features): a CSV file declares no "
    "types, and they must not be guessed from the rows."
)
_BY_SUFFIX = {".csv": ",", ".tsv": "\t"}


@dataclass(frozen=True, kw_only=True)
class Columns:
    """The role of each column; all of it is public.

    Parameters
    ----------
    user : tuple of str
        The id; several columns together form the unit, such as person and day.
    features : tuple of str
        Empty means all other numeric columns, for files that declare types.
    target : str or None, default=None
    unit : str or None, default=None
        The word for the protected unit; by default the names of ``user``.
    missing : float or "drop", default="drop"
    classes : tuple or None, default=None
        Public labels of the target.
    categories : mapping from str to tuple, default={}
        Public values of features.
    dates : mapping from str to pair, default={}
        Public ranges of features that are dates.

    Examples
    --------
    >>> Columns(user=("person", "day"), features=("steps",)).protected
    'person x day'
    """

    user: tuple[str, ...]
    features: tuple[str, ...] = ()
    target: str | None = None
    unit: str | None = None
    missing: str | float = "drop"
    classes: tuple[Any, ...] | None = None
    categories: Mapping[str, tuple[Any, ...]] = field(default_factory=dict)
    dates: Mapping[str, tuple[Any, Any]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if not self.user:
            raise ParameterError(
                "Expected the column with the user ids, got none: a row is no person."
            )
        tables.check_missing(self.missing)
        coded_columns(self.categories, self.dates)
        if {*self.features, self.target} & set(self.user):
            raise ParameterError(
                f"An id is no feature and no target: take {', '.join(self.user)} out of them."
            )
        if self.target in self.features:
            raise ParameterError(f"The target {self.target!r} is no feature at the same time.")
        if not self.protected.isprintable():
            raise ParameterError("Expected a printable word for what is protected: state the unit.")

    @property
    def protected(self) -> str:
        """The word for the protected unit."""
        return self.unit or " x ".join(self.user)

    @property
    def coding(self) -> Coding:
        """How the features are encoded as numbers; all of them must be named."""
        return Coding.of(self.features, coded_columns(self.categories, self.dates))

    @property
    def given(self) -> dict[str, Any]:
        """The arguments about columns for the constructors of crowds, except the features."""
        return {
            "user": self.user,
            "target": self.target,
            "unit": self.protected,
            "missing": self.missing,
            "classes": self.classes,
            "categories": self.categories,
            "dates": self.dates,
        }

    @property
    def named(self) -> list[str]:
        """All named columns, each once."""
        target = [] if self.target is None else [self.target]
        return list(dict.fromkeys([*self.user, *self.features, *target]))


@dataclass(frozen=True)
class LoadedRows:
    """All rows of a file, before any is dropped. Private."""

    rows: NDArray[np.float64]
    targets: NDArray[np.float64] | None
    ids: tuple[Any, ...]


@dataclass(frozen=True)
class TableFile:
    r"""A CSV, TSV or Parquet file, or a folder of such files of one kind.

    The files of a folder of CSV are read in the order of their names; each has a header.

    Parameters
    ----------
    path : str or path
    dialect : Dialect, default=PLAIN
    watch : callable, optional
        It is called with the share of a CSV file that was read, from 0 to 1.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder) / "visits.csv"
    ...     _ = path.write_text("patient,age\nann,30\nbob,old\nann,32\n")
    ...     table = TableFile(path)
    ...     people = table.read(Columns(user=("patient",), features=("age",)))
    ...     table.column_names, people
    (['patient', 'age'], UserData(n_features=1, target=False, unit='patient'))
    >>> people.user_means().ravel()
    array([31., nan])
    """

    path: str | os.PathLike[str]
    dialect: Dialect = PLAIN
    watch: Callable[[float], None] | None = field(default=None, compare=False)
    kept: dict[tuple[str, bool, bool], Any] | None = field(default=None, compare=False, repr=False)

    def keeping(self) -> TableFile:
        """Return the same table with a cache, so that no column of a CSV file is read twice."""
        return replace(self, kept={})

    @property
    def separator(self) -> str | None:
        """The cell separator, or None for Parquet."""
        by_name = self._separator_by_name
        if self.dialect == PLAIN:
            return by_name
        if by_name is None and (self.dialect.separator is None or self._is_parquet):
            raise SchemaError(
                f"Expected a CSV file beside separator, decimal, thousands or encoding, got "
                f"{str(self.path)!r}."
            )
        return self.dialect.separator or by_name

    @property
    def _is_parquet(self) -> bool:
        return any(file.suffix.lower() in (".parquet", ".pq") for file in self.files)

    @property
    def _separator_by_name(self) -> str | None:
        if not Path(self.path).is_dir():
            return _BY_SUFFIX.get(Path(self.path).suffix.lower())
        kinds = {file.suffix.lower() for file in self.files}
        if not kinds & _BY_SUFFIX.keys():
            return None
        if len(kinds) > 1:
            raise SchemaError(
                f"Expected files of one kind in the folder {str(self.path)!r}, got {sorted(kinds)}."
            )
        return _BY_SUFFIX[kinds.pop()]

    @property
    def files(self) -> list[Path]:
        """The file, or the files of the folder in the order of their names.

        Hidden files are left out.
        """
        path = Path(self.path)
        found = sorted(path.iterdir()) if path.is_dir() else [path]
        return [file for file in found if not file.name.startswith((".", "_"))]

    @property
    def column_names(self) -> list[str]:
        """The names of all columns; only the first line of a CSV file is read."""
        if self.separator is None:
            return list(frames.open_parquet(self.path).schema.names)
        return read_header(self.files[0], self.separator, self.dialect)

    def resolve(self, columns: Columns) -> Columns:
        """Return ``columns`` with all features named; refuse missing columns; read no row."""
        if not Path(self.path).exists():
            raise SchemaError(
                f"Expected a CSV or Parquet file, found nothing at {str(self.path)!r}."
            )
        self._check_names(columns.named)
        if self.separator is None:
            target = [] if columns.target is None else [columns.target]
            schema = frames.open_parquet(self.path).schema
            chosen = frames.check_features(
                schema,
                features=columns.features or None,
                others=[*columns.user, *target],
                coded=coded_columns(columns.categories, columns.dates),
            )
            self._check_types(columns)
            found = replace(columns, features=tuple(chosen))
            found.coding.check(schema)
            return found
        for file in self.files[1:]:
            if set(read_header(file, self.separator)) != set(self.column_names):
                raise SchemaError(f"Expected the columns {self.column_names} in {file.name!r} too.")
        if not columns.features:
            raise SchemaError(_NO_FEATURES)
        Coding.of(columns.features, coded_columns(columns.categories, columns.dates))
        return columns

    @closed
    def load(self, columns: Columns) -> LoadedRows:
        """Read every row as numbers, with NaN for cells that cannot be read; no row is dropped."""
        source = (
            frames.open_parquet(self.path)
            if self.separator is None
            else self._csv(columns.named, _numeric(columns), columns.user)
        )
        read = frames.load(
            source,
            users=columns.user,
            features=columns.features,
            target=columns.target,
            coding=columns.coding,
        )
        return LoadedRows(read.rows, tables.as_targets(read.target, columns.classes), read.ids)

    @closed
    def readable(self, columns: Columns) -> tuple[NDArray[np.bool_], tuple[Any, ...]]:
        r"""Return for each row whether its cells can be read, and the columns of ids.

        A category that is not listed counts as unreadable; a missing number may be replaced.

        >>> import tempfile
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     path = Path(folder) / "visits.csv"
        ...     _ = path.write_text("patient,age\nann,30\nbob,old\nann,32\n")
        ...     columns = Columns(user=("patient",), features=("age",))
        ...     TableFile(path).readable(columns)[0].tolist()
        [True, False, True]
        """
        coding = columns.coding
        if self.separator is not None and coding.is_plain and columns.classes is None:
            # The columns lie as numbers already: no matrix of them is made once more.
            source = self._csv(columns.named, _numeric(columns), columns.user)
            found = np.ones(source.num_rows, dtype=np.bool_)
            dropped = () if columns.missing != "drop" else columns.features
            for name in (*dropped, *(() if columns.target is None else (columns.target,))):
                found &= _finite(source.column(name))
            return found, tuple(source.column(name) for name in columns.user)
        read = self.load(columns)
        found, start = np.ones(len(read.ids[0]), dtype=np.bool_), 0
        for column in coding.columns:
            block = read.rows[:, start : start + len(column.names)]
            whole = np.isfinite(block).all(axis=1)
            found &= whole | (columns.missing != "drop")
            if isinstance(column, Category):
                found &= ~whole | (block.sum(axis=1) > 0)
            start += len(column.names)
        if read.targets is not None:
            found &= np.isfinite(read.targets)
        return found, read.ids

    @closed
    def read(self, columns: Columns) -> UserData:
        """Read the records, grouped by user."""
        columns = self.resolve(columns)
        if self.separator is None:
            people: UserData = UserData.from_parquet(
                self.path, features=columns.features, **columns.given
            )
            return people
        table = self._csv(columns.named, _numeric(columns), columns.user)
        return UserData.from_frame(table, features=columns.features, **columns.given)

    @closed
    def group(
        self, columns: Columns, *, spool: str | os.PathLike[str] | None = None, **options: Any
    ) -> FileCrowd:
        """Group the records by user on disk, if they do not fit into memory.

        ``spool`` and the other options are as for
        :meth:`~quorate.data.engines.files.FileCrowd.from_parquet`.
        """
        columns = self.resolve(columns)
        given = columns.given | {"features": columns.features}
        if self.separator is None:
            return FileCrowd.from_parquet(self.path, spool=spool, **given, **options)
        numeric = _numeric(columns)
        capping = {name: options.pop(name, None) for name in ("cap", "random_state")}
        layout = Layout.of(cell_schema(columns.named, numeric), **given, **capping)
        return FileCrowd.from_batches(
            self._batches(columns, numeric),
            layout,
            rows=sum(map(count_lines, self.files)),
            spool=spool,
            source={"files": list(map(about_file, self.files))},
            **options,
        )

    def _batches(self, columns: Columns, numeric: Collection[str]) -> Iterator[Any]:
        for file in self.files:
            cells = cell_tables(
                file,
                str(self.separator),
                names=columns.named,
                numeric=numeric,
                ids=columns.user,
                dialect=self.dialect,
            )
            for table in cells:
                yield from table.to_batches(max_chunksize=_BATCH_ROWS)

    def label_schema(self, columns: Columns, *, labels: Sequence[str], ids: str) -> Any:
        """Return the names and types of the columns that :meth:`read_labels` reads; read no row.

        A CSV file declares no types: columns that are not in ``labels`` are numbers.
        """
        import pyarrow as pa

        if not Path(self.path).exists():
            raise SchemaError(
                f"Expected a CSV or Parquet file, found nothing at {str(self.path)!r}."
            )
        self._check_names(columns.named)
        if self.separator is None:
            self._check_types(columns)
            whole = frames.open_parquet(self.path).schema
            fields = [(name, whole.field(name).type) for name in columns.features]
        else:
            text = pa.dictionary(pa.int32(), pa.large_string())
            fields = [(name, text if name in labels else pa.float64()) for name in columns.features]
        return pa.schema([(ids, pa.uint64()), *fields])

    @closed
    def read_labels(self, columns: Columns, *, labels: Sequence[str], ids: str) -> Any:
        r"""Read columns of labels and numbers, with a column ``ids`` that identifies users.

        An id is a function of the id cells of its own row.

        >>> import tempfile
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     path = Path(folder) / "visits.csv"
        ...     _ = path.write_text("patient,city,age\nann,Ulm,30\nbob,,old\n")
        ...     columns = Columns(user=("patient",), features=("city", "age"))
        ...     table = TableFile(path).read_labels(columns, labels=["city"], ids="who")
        >>> table["city"].to_pylist(), table["age"].to_pylist()
        (['Ulm', None], [30.0, None])
        """
        import pyarrow as pa

        schema = self.label_schema(columns, labels=labels, ids=ids)
        if self.separator is None:
            source = self._parquet(columns.named)
        else:
            numeric = set(columns.features) - set(labels)
            source = self._csv(columns.named, numeric, columns.user)
        keys, known = row_keys(tuple(source.column(name) for name in columns.user))
        made = [pa.array(keys, mask=~known)]
        for name in columns.features:
            column = source.column(name)
            is_text = self.separator is not None and name in labels
            made.append(_texts(column) if is_text else column)
        return pa.table(made, schema=schema)

    @closed
    @closed
    def read_cells(self, columns: Columns, *, labels: Sequence[str]) -> Any:
        r"""Read ids (unchanged), label columns and number columns, as one Arrow table.

        >>> import tempfile
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     path = Path(folder) / "visits.csv"
        ...     _ = path.write_text("patient,city,age\nann,Ulm,30\nbob,,old\n")
        ...     columns = Columns(user=("patient",), features=("city", "age"))
        ...     table = TableFile(path).read_cells(columns, labels=["city"])
        >>> table["city"].to_pylist(), table["age"].to_pylist()
        (['Ulm', None], [30.0, None])
        """
        import pyarrow as pa

        self.label_schema(columns, labels=labels, ids="")  # which refuses what is not there
        if self.separator is None:
            return self._parquet(columns.named)
        numeric = set(columns.features) - set(labels)
        source = self._csv(columns.named, numeric, columns.user)
        made = {
            name: _texts(source.column(name)) if name in labels else source.column(name)
            for name in columns.named
        }
        return pa.table(made)

    def count_users(self, columns: Columns) -> int:
        """Count the users from their id columns, without reading anything else."""
        if self.separator is None:
            ids = self._parquet(columns.user)
        else:
            ids = self._csv(columns.user, (), columns.user)
        return len(group(tuple(ids.column(name) for name in columns.user)).keys)

    def _parquet(self, names: Sequence[str]) -> Any:
        """Read columns of a Parquet file in one call."""
        import pyarrow as pa

        dataset = frames.open_parquet(self.path)
        schema = pa.schema([dataset.schema.field(name) for name in names])
        return pa.Table.from_batches(list(frames.batches_of(dataset, names)), schema)

    def _check_types(self, columns: Columns) -> None:
        """Refuse ids and targets by the types that a Parquet file declares."""
        schema = frames.open_parquet(self.path).schema
        empty = schema.empty_table()
        group(tuple(empty.column(name) for name in columns.user))
        if columns.target is not None:
            tables.as_targets(empty.column(columns.target), columns.classes)

    @closed
    def features(self, names: Sequence[str], coding: Coding | None = None) -> NDArray[np.float64]:
        """Read columns as numbers, for predictions; NaN for missing values."""
        if self.separator is None:
            source = frames.open_parquet(self.path)
            if coding is not None:
                self._check_names(names)
                coding.check(source.schema)
        else:
            self._check_names(names)
            texts = () if coding is None else [c.name for c in coding.columns if c.is_text]
            source = self._csv(names, {name for name in names if name not in texts})
        return frames.load(source, users=[], features=list(names), target=None, coding=coding).rows

    @closed
    def is_listed(self, name: str, labels: Sequence[Any]) -> NDArray[np.bool_]:
        """Return for each row whether its cell is among ``labels``.

        Labels of another type than the column are refused or converted elsewhere; here they count
        as listed.
        """
        import pyarrow as pa
        import pyarrow.compute as pc

        if self.separator is not None:
            cells = kinds.decoded(_texts(self._csv([name], ()).column(name)))
            known = pa.array(list(map(str, labels)), cells.type)
        else:
            cells = kinds.decoded(self._parquet([name]).column(name))
            try:
                known = pa.array(list(labels), cells.type)
            except (pa.ArrowException, TypeError, ValueError):
                return np.ones(len(cells), dtype=np.bool_)
        found = pc.is_in(cells, value_set=known)
        held: NDArray[np.bool_] = found.to_numpy(zero_copy_only=False)
        return held

    @closed
    def texts(self, names: Sequence[str]) -> dict[str, list[str | None]]:
        """Read columns as text, such as ids to write next to predictions."""
        if not names:
            return {}
        self._check_names(names)
        read = self._parquet(names) if self.separator is None else self._csv(names, (), names)
        return {name: list(map(_as_text, read.column(name).to_pylist())) for name in names}

    def booleans(self, columns: Columns) -> tuple[str, ...]:
        """Return the features that a Parquet file declares as booleans; read no row."""
        import pyarrow as pa

        if self.separator is not None:
            return ()
        schema = frames.open_parquet(self.path).schema
        return tuple(n for n in columns.features if pa.types.is_boolean(schema.field(n).type))

    def _check_names(self, names: Sequence[str]) -> None:
        known = self.column_names
        for name in names:
            if name not in known:
                hint = ""
                marks = [mark for mark in SEPARATORS if len(known) == 1 and mark in known[0]]
                if marks:
                    option = {"\t": "tab"}.get(marks[0], repr(marks[0]))
                    hint = (
                        f" Does the file use another separator? State separator={marks[0]!r} "
                        f"(--separator {option})."
                    )
                raise SchemaError(f"Expected a column {name!r}, the table has {known}.{hint}")

    def _csv(
        self, names: Sequence[str], numeric: Collection[str], ids: Collection[str] = ()
    ) -> Any:
        import pyarrow as pa

        columns = {} if self.kept is None else self.kept
        # How a column is read: as numbers or not, and whether an irregular line keeps its cell.
        wanted = {name: (name, name in numeric, name in ids) for name in names}
        absent = [name for name, key in wanted.items() if key not in columns]
        if absent:
            read = self._read_csv(absent, numeric, ids)
            columns |= {wanted[name]: read.column(name) for name in absent}
        return pa.table({name: columns[key] for name, key in wanted.items()})

    def _read_csv(
        self, names: Sequence[str], numeric: Collection[str], ids: Collection[str]
    ) -> Any:
        import pyarrow as pa

        size, done = sum(file.stat().st_size for file in self.files), 0

        def advance(octets: int) -> None:
            nonlocal done
            done += octets
            if self.watch is not None:
                self.watch(min(done / size, 1.0))

        given: dict[str, Any] = {"names": names, "numeric": numeric, "ids": ids}
        given |= {"dialect": self.dialect, "watch": advance}
        separator = str(self.separator)
        return pa.concat_tables(read_cells(file, separator, **given) for file in self.files)


@closed
def users_of_csv(
    path: str | os.PathLike[str],
    *,
    user: str | Sequence[str],
    features: Sequence[str],
    spool: Spooled = False,
    classes: Sequence[Any] | None = None,
    categories: Mapping[str, Sequence[Any]] | None = None,
    dates: Mapping[str, tuple[Any, Any]] | None = None,
    separator: str | None = None,
    decimal: str = ".",
    thousands: str | None = None,
    encoding: str = "utf-8",
    **described: Any,
) -> UserData | FileCrowd:
    r"""Group the rows of CSV files; see :meth:`quorate.UserData.from_csv`.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     _ = (Path(folder) / "1.csv").write_text("id,age\n7,30\n5,61\n")
    ...     users_of_csv(folder, user="id", features=["age"], spool=True).n_users
    2
    """
    if features is None:
        raise SchemaError(_NO_FEATURES)
    coded_columns(categories, dates)
    columns = Columns(
        user=tuple(names_given(user)),
        features=tuple(names_given(features)),
        classes=None if classes is None else tuple(classes),
        categories={name: tuple(values) for name, values in (categories or {}).items()},
        dates={} if dates is None else dates,
        **described,
    )
    table = TableFile(path, Dialect(separator, decimal, thousands, encoding))
    if Path(path).exists() and table.separator is None:
        raise SchemaError(f"Expected a file or a folder of .csv or .tsv, got {str(path)!r}.")
    table.resolve(columns)
    if spool:
        return table.group(columns, spool=spool_folder(spool))
    with Progress(1, label="reading") as bar:
        return replace(table, watch=bar.reach).read(columns)


def _finite(column: Any) -> NDArray[np.bool_]:
    """Return whether each cell of a numeric column is a finite number."""
    pieces = [np.isfinite(frames.floats(chunk)) for chunk in column.chunks]
    return np.concatenate([np.zeros(0, dtype=np.bool_), *pieces])


def _texts(cells: Any) -> Any:
    """Return cells as texts; empty cells and invalid text are missing."""
    import pyarrow as pa

    whole = cells.combine_chunks() if isinstance(cells, pa.ChunkedArray) else cells
    coded = whole.dictionary_encode()
    words = [_text(cell) for cell in coded.dictionary.to_pylist()]
    known = list(dict.fromkeys(word for word in words if word is not None))
    place = {word: number for number, word in enumerate(known)}
    table = pa.array([None if word is None else place[word] for word in words], pa.int32())
    indices = table.take(coded.indices)
    return pa.DictionaryArray.from_arrays(indices, pa.array(known, pa.large_string()))


def _as_text(cell: object) -> str | None:
    if isinstance(cell, bytes):
        return cell.decode("utf-8", errors="replace")
    return None if cell is None else str(cell)


def _text(cell: bytes) -> str | None:
    try:
        return cell.decode("utf-8").strip() or None
    except UnicodeDecodeError:
        return None


def _numeric(columns: Columns) -> set[str]:
    """Return the numeric columns: features, and a target without labels."""
    texts = columns.classes is not None and not tables.are_numbers(columns.classes)
    is_number = columns.target is not None and not texts
    features = {column.name for column in columns.coding.columns if not column.is_text}
    return {*features, *([str(columns.target)] if is_number else [])}
