"""Series described in TOML files, for ``quorate series``, and the rows of one period."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from quorate.core.guarantees import Relation
from quorate.data.files.dialects import PLAIN, Dialect
from quorate.data.files.table_files import Columns, TableFile
from quorate.exceptions import ParameterError
from quorate.ledger.ledger import Ledger
from quorate.series.user_series import UserSeries

__all__ = ["SeriesFile"]

_PARAMETERS = frozenset(
    {
        "epsilon",
        "delta",
        "horizon",
        "every",
        "start",
        "by",
        "keys",
        "statistics",
        "bounds",
        "labels",
        "touched",
        "unit",
        "caps",
        "view",
        "noise",
        "count_cut",
        "where",
        "missing",
        "data_name",
    }
)
_NEEDED = ("user", "store", "epsilon", "delta", "horizon", "statistics", "touched")


@dataclass(frozen=True)
class SeriesFile:
    r"""A series and its files, read from TOML; paths are relative to the TOML file.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder) / "series.toml"
    ...     lines = ['user = "who"', 'store = "s.sqlite"', "epsilon = 1", "delta = 1e-6"]
    ...     lines += ["horizon = 52", "touched = 4", "[statistics]", 'buyers = "users"']
    ...     _ = path.write_text("\n".join(lines))
    ...     SeriesFile.read(path).series.horizon
    52
    """

    series: UserSeries
    user: str

    @classmethod
    def read(cls, path: Path) -> SeriesFile:
        """Read a file; refuse unknown fields and missing ones."""
        try:
            found = tomllib.loads(path.read_text(encoding="utf-8"))
        except (tomllib.TOMLDecodeError, UnicodeDecodeError) as problem:
            raise ParameterError(f"Expected TOML in {path}: {problem}.") from None
        given = {name.replace("-", "_"): value for name, value in found.items()}
        known = _PARAMETERS | {"user", "store", "ledger", "relation"}
        strange = sorted(set(given) - known)
        missing = [name for name in _NEEDED if name not in given]
        if strange or missing:
            raise ParameterError(
                f"Expected a series with {', '.join(sorted(known))} in {path}, got "
                + (f"also {', '.join(strange)}." if strange else f"none of {', '.join(missing)}.")
            )
        settings: dict[str, Any] = {name: given[name] for name in _PARAMETERS & given.keys()}
        if "relation" in given:
            settings["relation"] = _relation(given["relation"])
        if "ledger" in given:
            settings["ledger"] = Ledger(path.parent / _text(given, "ledger"), must_exist=True)
        for name in ("statistics", "bounds"):
            settings[name] = _pairs(settings.get(name))
        store = path.parent / _text(given, "store")
        return cls(UserSeries(**settings, store=store), _text(given, "user"))

    def update(self, table: Path, *, period: str | None, dialect: Dialect = PLAIN) -> UserSeries:
        """Release a period from the rows of a CSV or Parquet file."""
        numbers, labels = self.series.columns
        columns = Columns(user=(self.user,), features=(*labels, *numbers))
        rows = TableFile(table, dialect).read_cells(columns, labels=labels)
        return self.series.update(rows, users=self.user, period=period)


def _text(given: Mapping[str, Any], name: str) -> str:
    value = given[name]
    if not (isinstance(value, str) and value):
        raise ParameterError(f"Expected {name} to be text, got {value!r}.")
    return value


def _relation(word: Any) -> Relation:
    for relation in Relation:
        if word == relation.name.lower().replace("_", "-"):
            return relation
    raise ParameterError(f"Expected relation = 'add-remove' or 'replace', got {word!r}.")


def _pairs(found: Any) -> Any:
    """Return lists of two entries as pairs, which TOML does not have."""
    if not isinstance(found, Mapping):
        return found
    return {name: tuple(x) if isinstance(x, list) else x for name, x in found.items()}
