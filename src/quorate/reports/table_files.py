"""CSV and Parquet files as records grouped by user, under rules that no value can break.

A CSV file declares no types, and guessing them from the rows would make the schema depend on one
person's value. So every column is read as bytes; what is asked for as a number and does not read as
one is *missing*, like an empty cell, and a row with too many or too few cells is dropped. Which
columns exist is the schema, which is public and may raise.
"""

from __future__ import annotations

import csv
import os
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from quorate import tables
from quorate.exceptions import ParameterError, SchemaError
from quorate.users import UserData

__all__ = ["Columns", "TableFile"]

_SEPARATORS = {".csv": ",", ".tsv": "\t"}
_TRUTH = {b"true": 1.0, b"false": 0.0}


@dataclass(frozen=True, kw_only=True)
class Columns:
    """Which columns mean what; all of it is public.

    Parameters
    ----------
    user : tuple of str
        The id; several columns together form the unit, such as person and day.
    features : tuple of str
        Empty means all other numeric columns, for files that declare types.
    target : str or None, default=None
    unit : str or None, default=None
        The word for what is protected; the names of ``user`` if not given.
    missing : float or "drop", default="drop"
    classes : tuple or None, default=None
        Public labels of the target.

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

    def __post_init__(self) -> None:
        if not self.user:
            raise ParameterError(
                "Expected the column with the user ids, got none: a row is no person."
            )
        tables.check_missing(self.missing)

    @property
    def protected(self) -> str:
        """The word for what is protected."""
        return self.unit or " x ".join(self.user)

    @property
    def named(self) -> list[str]:
        """All columns that are named, each once."""
        target = [] if self.target is None else [self.target]
        return list(dict.fromkeys([*self.user, *self.features, *target]))


@dataclass(frozen=True)
class TableFile:
    r"""A CSV, TSV or Parquet file, or a folder of Parquet files.

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

    @property
    def separator(self) -> str | None:
        """What separates cells, or None for Parquet."""
        return _SEPARATORS.get(Path(self.path).suffix.lower())

    @property
    def column_names(self) -> list[str]:
        """The names of all columns; of a CSV file only the first line is read."""
        if self.separator is None:
            return list(tables.open_parquet(self.path).schema.names)
        line = _first_line(Path(self.path))
        names = next(csv.reader([line], delimiter=self.separator), [])
        if not names or len(set(names)) < len(names):
            raise SchemaError(
                f"Expected a first line of different column names in {Path(self.path).name!r}."
            )
        return names

    def resolve(self, columns: Columns) -> Columns:
        """Return ``columns`` with all features named; refuse what does not exist; read no row."""
        if not Path(self.path).exists():
            raise SchemaError(
                f"Expected a CSV or Parquet file, found nothing at {str(self.path)!r}."
            )
        self._check_names(columns.named)
        if self.separator is None:
            target = [] if columns.target is None else [columns.target]
            chosen = tables.check_features(
                tables.open_parquet(self.path).schema,
                features=columns.features or None,
                others=[*columns.user, *target],
            )
            return replace(columns, features=tuple(chosen))
        if not columns.features:
            raise SchemaError(
                "Expected the names of the feature columns: a CSV file declares no types, and they "
                "must not be guessed from the rows."
            )
        return columns

    def read(self, columns: Columns) -> UserData:
        """Read the records, grouped by user."""
        columns = self.resolve(columns)
        given: dict[str, Any] = {
            "user": columns.user,
            "target": columns.target,
            "unit": columns.protected,
            "missing": columns.missing,
            "classes": columns.classes,
        }
        if self.separator is None:
            return UserData.from_parquet(self.path, features=columns.features, **given)
        numeric = set(columns.features)
        if columns.target is not None and not _are_texts(columns.classes):
            numeric.add(columns.target)
        table = self._csv(columns.named, numeric)
        return UserData.from_frame(table, features=columns.features, **given)

    def features(self, names: Sequence[str]) -> NDArray[np.float64]:
        """Read columns of numbers as they are, NaN where a value is missing, for predictions."""
        if self.separator is None:
            source = tables.open_parquet(self.path)
        else:
            self._check_names(names)
            source = self._csv(names, set(names))
        return tables.load(source, users=[], features=list(names), target=None).rows

    def _check_names(self, names: Sequence[str]) -> None:
        known = self.column_names
        for name in names:
            if name not in known:
                raise SchemaError(f"Expected a column {name!r}, the table has {known}.")

    def _csv(self, names: Sequence[str], numeric: set[str]) -> Any:
        import pyarrow as pa
        from pyarrow.csv import ConvertOptions, ParseOptions, read_csv

        try:
            raw = read_csv(
                os.fspath(self.path),
                parse_options=ParseOptions(
                    delimiter=self.separator, invalid_row_handler=lambda _: "skip"
                ),
                convert_options=ConvertOptions(
                    column_types={name: pa.binary() for name in names},
                    include_columns=list(names),
                    null_values=[""],
                    strings_can_be_null=True,
                ),
            )
        except (pa.ArrowException, OSError):
            raw = None
        if raw is None:
            # Arrow's own message quotes the cell that it stumbled over.
            raise SchemaError(f"Expected a CSV file, could not read {Path(self.path).name!r}.")
        columns = [_numbers(raw[name]) if name in numeric else raw[name] for name in names]
        return pa.table(columns, names=list(names))


def _are_texts(classes: tuple[Any, ...] | None) -> bool:
    return classes is not None and not all(isinstance(c, int | float) for c in classes)


def _first_line(path: Path) -> str:
    if not path.is_file():
        raise SchemaError(f"Expected a CSV file, found none at {str(path)!r}.")
    try:
        with path.open(encoding="utf-8-sig", errors="replace", newline="") as file:
            return file.readline().rstrip("\r\n")
    except OSError:
        pass
    raise SchemaError(f"Expected a CSV file, could not open {path.name!r}.")


def _numbers(column: Any) -> Any:
    """Return cells as floats, null where a cell is not a number."""
    import pyarrow as pa

    try:
        return column.cast(pa.string()).cast(pa.float64())
    except pa.ArrowInvalid:
        return pa.chunked_array(
            [pa.array([_number(cell) for cell in column.to_pylist()], pa.float64())]
        )


def _number(cell: bytes | None) -> float | None:
    if cell is None:
        return None
    truth = _TRUTH.get(cell.strip().lower())
    if truth is not None:
        return truth
    try:
        return float(cell)
    except ValueError:
        return None
