"""Files with the results of a fit: a model, the answer, a report page.

A paid answer is never lost: if a file cannot be written, this is reported, and the other files are
still written.
"""

from __future__ import annotations

import csv
import io
import json
import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from numpy.typing import NDArray

from quorate.app.catalogue import answer
from quorate.app.model_files import StoredModel
from quorate.app.reports.figures import has_matplotlib
from quorate.app.reports.fit_report import fit_page, fit_summary
from quorate.app.reports.page import render
from quorate.app.tasks.fitting import Fit
from quorate.app.tasks.forecast import forecast
from quorate.data.files.atomic import check_writable, write_atomically
from quorate.exceptions import MissingExtraError, ParameterError, QuorateError

__all__ = [
    "Outputs",
    "Written",
    "answer_as",
    "predictions_as_csv",
    "predictions_as_list",
    "table_as",
]

_FORMATS = (".csv", ".parquet", ".json")


@dataclass(frozen=True)
class Written:
    """The files that were written for a fit, and why the others are missing.

    >>> Written((Path("m.json"),), {"r.html": "No space left on device"}).complaint
    "'r.html' was not written: No space left on device."
    """

    paths: tuple[Path, ...] = ()
    failed: Mapping[str, str] = field(default_factory=dict)

    @property
    def complaint(self) -> str:
        """The errors in one line; empty if there were none."""
        said = (f"{path!r} was not written: {why}." for path, why in self.failed.items())
        return " ".join(said)


@dataclass(frozen=True, kw_only=True)
class Outputs:
    """The files that should be written for a fit.

    >>> Outputs().check()
    >>> Outputs(model=Path("nowhere/model.json")).check()
    Traceback (most recent call last):
    quorate.exceptions.ParameterError: Expected a folder that can be written, got 'nowhere'.
    """

    model: Path | None = None
    out: Path | None = None
    report: Path | None = None

    def check(self) -> None:
        """Refuse files that cannot be written, before any budget is spent."""
        for path in (self.model, self.out, self.report):
            if path is not None:
                check_writable(path)
        if self.out is not None and self.out.suffix.lower() not in _FORMATS:
            raise ParameterError(
                f"Expected --out to end in {', '.join(_FORMATS)}, got {str(self.out)!r}."
            )
        if self.report is not None and not has_matplotlib():
            raise MissingExtraError(
                "A report needs matplotlib, which is not installed: pip install 'quorate[plot]'."
            )

    def write(self, fit: Fit) -> Written:
        """Write the requested files, each completely or not at all.

        The budget is already spent. So a failure (a full disk, a missing folder, a report that
        cannot be drawn) raises no error and does not stop the other files from being written.
        """
        writers: tuple[tuple[Path | None, Callable[[Path], Path]], ...] = (
            (self.model, StoredModel(fit.estimator, fit.labels).write),
            (self.out, lambda path: write_atomically(path, answer_as(str(path), fit))),
            (
                self.report,
                lambda path: write_atomically(path, render(fit_page(fit, forecast(fit)))),
            ),
        )
        paths: list[Path] = []
        failed: dict[str, str] = {}
        for path, write in writers:
            if path is None:
                continue
            try:
                paths.append(write(path))
            except OSError as problem:
                failed[str(path)] = problem.strerror or type(problem).__name__
            except QuorateError as problem:
                failed[str(path)] = str(problem).rstrip(".")
            except Exception as problem:
                failed[str(path)] = f"unforeseen {type(problem).__name__}"
        return Written(tuple(paths), failed)


def answer_as(path: str, fit: Fit) -> bytes:
    """Return the answer of a fit as a CSV, Parquet or JSON file, according to the file name.

    A table by group is written unchanged. Any other answer becomes one row per number, with its
    full name. JSON output is the same as that of ``--json``.
    """
    suffix = Path(path).suffix.lower()
    if suffix == ".json":
        document = fit_summary(fit, forecast(fit))
        return (json.dumps(document, ensure_ascii=False, indent=2) + "\n").encode()
    if hasattr(fit.estimator, "table_"):
        return table_as(suffix, fit.estimator.table_)
    said = answer(fit.estimator, fit.columns.features, fit.columns.classes)
    return table_as(suffix, _long_table(said.values))


def _long_table(values: Mapping[str, Any]) -> Any:
    """Return plain data as a table with a row for each value.

    >>> _long_table({"mean": {"age": 41.5}, "bound": 2.0}).to_pylist()
    [{'name': 'mean.age', 'value': 41.5}, {'name': 'bound', 'value': 2.0}]
    """
    import pyarrow as pa

    pairs = list(_flat(values))
    numbers = all(
        value is None or (isinstance(value, int | float) and not isinstance(value, bool))
        for _, value in pairs
    )
    kind = pa.float64() if numbers else pa.string()
    found = [value if numbers or value is None else str(value) for _, value in pairs]
    return pa.table({"name": [name for name, _ in pairs], "value": pa.array(found, kind)})


def _flat(value: Any, name: str = "") -> Iterator[tuple[str, Any]]:
    """Yield every value inside plain data with the path that leads to it."""
    if isinstance(value, Mapping):
        inside = list(value.items())
    elif isinstance(value, list | tuple):
        inside = list(enumerate(value))
    else:
        yield name, value
        return
    for key, part in inside:
        yield from _flat(part, f"{name}.{key}" if name else str(key))


def table_as(suffix: str, table: Any) -> bytes:
    r"""Return a table as the text of a CSV file or as Parquet.

    >>> import pyarrow as pa
    >>> table_as(".csv", pa.table({"city": ["Ulm"], "visits": [7.0]}))
    b'"city","visits"\n"Ulm",7\n'
    """
    import pyarrow as pa
    from pyarrow import csv as arrow_csv
    from pyarrow import parquet

    held = io.BytesIO()
    if suffix == ".csv":
        arrow_csv.write_csv(table, held)
    else:
        parquet.write_table(table, pa.PythonFile(held, mode="w"))
    return held.getvalue()


def predictions_as_list(values: NDArray[Any]) -> list[object]:
    """Return predictions for JSON: what is not a number becomes None.

    >>> import numpy as np
    >>> predictions_as_list(np.array([1.5, np.nan]))
    [1.5, None]
    """
    plain: list[object] = values.tolist()
    return [None if isinstance(v, float) and not math.isfinite(v) else v for v in plain]


def predictions_as_csv(names: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    r"""Return predictions as a CSV file, with ids if there are any.

    >>> predictions_as_csv(["patient", "prediction"], [["ann", 1], ["a,b", None]])
    'patient,prediction\r\nann,1\r\n"a,b",\r\n'
    """
    text = io.StringIO()
    writer = csv.writer(text)
    writer.writerow(names)
    writer.writerows(rows)
    return text.getvalue()
