"""Requests for a fit as files, in a form that people can read and run again.

A request is TOML: the table, the unit, the columns, the public ranges, the budget. All of it is
public, and nothing in it comes from records, so it may be stored next to a report.
"""

from __future__ import annotations

import datetime
import json
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from quorate.app.catalogue import TASKS
from quorate.app.tasks.fitting import FitRequest, default_relation
from quorate.core.guarantees import Relation
from quorate.data.files.csv_lines import header_line
from quorate.data.files.dialects import PLAIN, Dialect, proposed
from quorate.data.files.table_files import Columns, TableFile
from quorate.exceptions import ParameterError, SchemaError
from quorate.ranges import Limit

__all__ = ["RequestFile", "asked_lines", "blank_request", "read_request", "request_text"]

_ALL = "*"
_TABLE_LINES = (
    "# the columns of the groups, their public labels (or popular), and statistics",
    "[set]",
    'by = "<column>"',
    'keys = ["<label>", "<label>"]',
    'statistics = { records = "count", people = "users", "<column>" = "sum" }',
)

_KEYS = frozenset(
    {
        "table",
        "separator",
        "decimal",
        "thousands",
        "encoding",
        "task",
        "user",
        "features",
        "target",
        "unit",
        "missing",
        "classes",
        "counted",
        "bounds",
        "categories",
        "epsilon",
        "delta",
        "relation",
        "records",
        "algorithm",
        "engine",
        "ledger",
        "data_name",
        "set",
        "model",
        "out",
        "report",
    }
)


@dataclass(frozen=True, kw_only=True)
class RequestFile:
    """The contents of a request file: a fit, its table, and its output files."""

    request: FitRequest
    table: Path
    model: Path | None = None
    out: Path | None = None
    report: Path | None = None


def read_request(path: Path) -> RequestFile:
    r"""Read a request file; relative paths are relative to its folder.

    >>> import tempfile
    >>> folder = Path(tempfile.mkdtemp())
    >>> text = 'table = "visits.csv"\ntask = "mean"\nuser = "patient"\nepsilon = 1\n'
    >>> text += 'features = ["age"]\n[bounds]\nage = [0, 120]'
    >>> _ = (folder / "request.toml").write_text(text)
    >>> read_request(folder / "request.toml").request.limits
    (Limit(lower=0, upper=120, column='age'),)
    """
    try:
        document = tomllib.loads(path.read_text(encoding="utf-8"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as problem:
        raise SchemaError(f"Expected a request in TOML, got {path}: {problem}") from None
    strange = sorted(set(document) - _KEYS)
    if strange:
        raise ParameterError(
            f"Expected keys among {', '.join(sorted(_KEYS))}, got {', '.join(strange)} in {path}."
        )
    held = _Held(document, path)
    unfilled = sorted(k for k, value in document.items() if '"<' in json.dumps(value, default=str))
    if unfilled:
        raise ParameterError(
            f"Fill in {', '.join(unfilled)} in {path}: replace everything in angle brackets."
        )
    request = FitRequest(
        task=held.text("task"),
        columns=Columns(
            user=held.texts("user"),
            features=held.texts("features", default=()),
            target=held.text("target", default=None),
            unit=held.text("unit", default=None),
            missing=document.get("missing", "drop"),
            classes=tuple(document["classes"]) if "classes" in document else None,
            categories=_categories(document.get("categories", {}), path),
        ),
        limits=_limits(document.get("bounds", {}), path),
        epsilon=held.number("epsilon"),
        delta=held.number("delta", default=0.0),
        relation=held.relation(),
        records=document.get("records"),
        algorithm=held.text("algorithm", default="auto"),
        engine=held.text("engine", default="local"),
        ledger=held.place("ledger"),
        data_name=held.text("data_name", default=None),
        counted=held.flag("counted", default=True),
        dialect=Dialect(
            separator=held.text("separator", default=None),
            decimal=held.text("decimal", default="."),
            thousands=held.text("thousands", default=None),
            encoding=held.text("encoding", default="utf-8"),
        ),
        options={name: _option(value) for name, value in document.get("set", {}).items()},
    )
    table = held.place("table")
    if table is None:
        raise ParameterError(f"Expected table = '...' in {path}.")
    return RequestFile(
        request=request,
        table=table,
        model=held.place("model"),
        out=held.place("out"),
        report=held.place("report"),
    )


def _option(value: Any) -> str:
    """Return an option in the form of the command line; lists and tables as JSON."""
    return json.dumps(value) if isinstance(value, list | dict) else str(value)


def request_text(request: FitRequest, table: Path | str) -> str:
    """Return the text of a request file that :func:`read_request` reads as ``request``.

    >>> columns = Columns(user=("id",), features=("age",))
    >>> asked = FitRequest(task="mean", columns=columns, epsilon=1.0, limits=(Limit(0, 9, "age"),))
    >>> print(request_text(asked, "visits.csv").splitlines()[-1])
    "age" = [0, 9]
    """
    columns = request.columns
    lines = _lines(
        table=str(table),
        separator=request.dialect.separator,
        decimal=None if request.dialect.decimal == "." else request.dialect.decimal,
        thousands=request.dialect.thousands,
        encoding=None if request.dialect.encoding == "utf-8" else request.dialect.encoding,
        task=request.task,
        user=list(columns.user),
        features=list(columns.features) or None,
        target=columns.target,
        unit=columns.unit,
        missing=None if columns.missing == "drop" else columns.missing,
        classes=None if columns.classes is None else list(columns.classes),
        epsilon=float(request.epsilon),
        delta=float(request.delta),
        relation=request.relation.name.lower().replace("_", "-"),
        records=request.records,
        algorithm=None if request.algorithm == "auto" else request.algorithm,
        engine=None if request.engine == "local" else request.engine,
        ledger=None if request.ledger is None else str(request.ledger),
        data_name=request.data_name,
        counted=None if request.counted else False,
    )
    if request.options:
        lines += ["", "[set]"]
        lines += [f"{_toml(name)} = {_toml(value)}" for name, value in request.options.items()]
    if request.limits:
        lines += ["", "[bounds]"]
        lines += [
            f"{_toml(limit.column or _ALL)} = [{_toml(limit.lower)}, {_toml(limit.upper)}]"
            for limit in request.limits
        ]
    if columns.categories:
        lines += ["", "[categories]"]
        lines += [f"{_toml(name)} = {_toml(list(v))}" for name, v in columns.categories.items()]
    return "\n".join(lines) + "\n"


def blank_request(table: Path, *, user: tuple[str, ...], task: str | None = None) -> str:
    """Return a request file to fill in, from the column names of ``table`` alone.

    No row is read: two tables with the same columns give the same text.
    """
    dialect, how = _proposed_dialect(table)
    names = TableFile(table, dialect).column_names
    missing = [name for name in user if name not in names]
    if missing:
        raise SchemaError(
            f"Expected the user column among {', '.join(names)}, got {', '.join(missing)}."
        )
    if task is not None and task not in TASKS:
        raise ParameterError(f"Expected a task among {', '.join(TASKS)}, got {task!r}.")
    others = [name for name in names if name not in user]
    before, after = asked_lines(task, features=others)
    lines = [
        "# Made from the names of the columns; no row was read. Replace everything in angle",
        "# brackets, delete what you do not need, then run: quorate fit <this file>",
        *_lines(table=str(table)),
        *how,
        f"# one of: {', '.join(TASKS)}",
        *_lines(task=task or "<task>", user=list(user), unit=" x ".join(user)),
        *before,
        "# the privacy loss of one person; delta = 0 is pure differential privacy",
        "epsilon = 1.0",
        f"delta = {0.0 if task is None else TASKS[task].default_delta}",
        '# ledger = "<budget.sqlite>"',
        '# data_name = "<name>"',
        '# model = "<model.json>"',
        '# report = "<report.html>"',
        *after,
        "",
        "# Public ranges: which values are possible? Not the smallest and largest in the table.",
        "[bounds]",
        "# Days as 2020-01-01, without quotes.",
        *(f'{_toml(name)} = ["<lowest>", "<highest>"]' for name in others),
        "",
        "# Columns of text: their public values. Any other value counts as none of them.",
        "# [categories]",
        '# region = ["north", "south"]',
    ]
    return "\n".join(lines) + "\n"


def _proposed_dialect(table: Path) -> tuple[Dialect, list[str]]:
    """Return the format that the header of a table suggests, and lines that say so.

    Settings that only rows could show are left for the user: the form of numbers if the separator
    is a semicolon, and the encoding of the cells.
    """
    usual = TableFile(table).separator
    if usual is None:
        return PLAIN, []
    separator, encoding = proposed(header_line(TableFile(table).files[0]), usual)
    found = Dialect(separator=None if separator == usual else separator, encoding=encoding)
    lines = ["# how the file is written: from its header line; no row was read"]
    lines += _lines(separator=found.separator)
    lines += _lines(encoding=None if encoding == "utf-8" else encoding)
    if encoding == "utf-8":
        lines.append('# encoding = "cp1252"  # if its letters are not in UTF-8')
    if separator == ";":
        lines.append("# are numbers written as 1234.5 (.) or as 1234,5 (,)?")
        lines += _lines(decimal="<. or ,>")
    else:
        lines.append('# decimal = ","  # if numbers are written as 1234,5')
    lines.append('# thousands = ","  # if numbers are written as 1,234')
    return found, lines


def asked_lines(
    task: str | None, *, features: list[str] | None = None
) -> tuple[list[str], list[str]]:
    """Return the lines of a request file that the user fills in: before the budget, and after it.

    ``features`` are the existing columns, if known; the task ``None`` stands for any task.

    >>> asked_lines("linear")
    (['features = ["<column>"]', '# what is predicted', 'target = "<column>"'], [])
    >>> asked_lines("shares")[1]
    ['', '# what this task needs', '[set]', 'categories = "<1,2,3>"']
    """
    descriptor = None if task is None else TASKS[task]
    if task == "table":
        return [], ['# out = "<table.csv>"', "", *_TABLE_LINES]
    if descriptor is not None and descriptor.frame is not None:
        before = []  # it names its columns itself
    elif features is None or (descriptor is not None and descriptor.one_feature):
        before = _lines(features=["<column>"])
    else:
        before = _lines(features=features)
    if descriptor is None:
        before += [
            "# for models and rules: the column to be predicted, and its public labels",
            '# target = "<column>"',
            "# classes = [0, 1]",
        ]
    elif descriptor.supervised:
        before += [
            "# what is predicted" + ("; it is no feature" if features is not None else ""),
            'target = "<column>"',
        ]
        if descriptor.most_classes:
            before.append("# its public labels, spelt as in the table")
            before.append('classes = ["<label>", "<label>"]')
    if descriptor is None or not descriptor.asks:
        return before, []
    after = ["", "# what this task needs", "[set]"]
    after += [f'{name} = "<{text}>"' for name, text in descriptor.asks.items()]
    return before, after


@dataclass(frozen=True)
class _Held:
    """The values of a file; a value of another type is refused by its name."""

    document: Mapping[str, Any]
    path: Path

    def text(self, key: str, default: Any = ...) -> Any:
        return self._of(key, str, "text", default)

    def number(self, key: str, default: Any = ...) -> Any:
        value = self._of(key, (int, float), "a number", default)
        if isinstance(value, bool):
            raise ParameterError(f"Expected {key} to be a number in {self.path}.")
        return value

    def flag(self, key: str, default: Any = ...) -> Any:
        return self._of(key, bool, "true or false", default)

    def texts(self, key: str, default: Any = ...) -> tuple[str, ...]:
        value = self._of(key, (str, list), "text or a list of texts", default)
        found = (value,) if isinstance(value, str) else tuple(value)
        if not all(isinstance(each, str) for each in found):
            raise ParameterError(f"Expected {key} to hold names of columns in {self.path}.")
        return found

    def place(self, key: str) -> Path | None:
        """Return a path relative to the folder of the request."""
        written = self._of(key, str, "a path", None)
        return None if written is None else self.path.parent / written

    def relation(self) -> Relation:
        if "relation" not in self.document:
            known = self.place("ledger"), self.text("data_name", default=None)
            return default_relation(self.text("task"), *known)
        word = self.text("relation").upper().replace("-", "_")
        if word not in Relation.__members__:
            raise ParameterError(f"Expected relation = 'replace' or 'add-remove' in {self.path}.")
        return Relation[word]

    def _of(self, key: str, kinds: Any, words: str, default: Any) -> Any:
        if key not in self.document:
            if default is ...:
                raise ParameterError(f"Expected {key} in {self.path}, got a request without it.")
            return default
        value = self.document[key]
        if not isinstance(value, kinds):
            raise ParameterError(f"Expected {key} to be {words} in {self.path}, got {value!r}.")
        return value


def _limits(bounds: Any, path: Path) -> tuple[Limit, ...]:
    if not isinstance(bounds, dict):
        raise ParameterError(f"Expected a table [bounds] in {path}, got {bounds!r}.")
    limits = []
    for name, held in bounds.items():
        ends = [-held, held] if isinstance(held, int | float) else held
        numeric = isinstance(ends, list) and len(ends) == 2
        if not (numeric and all(isinstance(end, int | float | datetime.date) for end in ends)):
            raise ParameterError(f"Expected [lower, upper] for {name!r} in {path}, got {held!r}.")
        limits.append(Limit(ends[0], ends[1], None if name == _ALL else name))
    return tuple(limits)


def _categories(held: Any, path: Path) -> dict[str, tuple[Any, ...]]:
    if not (isinstance(held, dict) and all(isinstance(values, list) for values in held.values())):
        raise ParameterError(
            f"Expected lists of values by column under [categories] in {path}, got {held!r}."
        )
    return {name: tuple(values) for name, values in held.items()}


def _lines(**values: Any) -> list[str]:
    return [f"{name} = {_toml(value)}" for name, value in values.items() if value is not None]


def _toml(value: Any) -> str:
    if isinstance(value, list):
        return "[" + ", ".join(map(_toml, value)) + "]"
    if isinstance(value, str):
        return json.dumps(value, ensure_ascii=False)
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, datetime.date):
        return value.isoformat()
    return repr(value)
