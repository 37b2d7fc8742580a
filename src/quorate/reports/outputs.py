"""Where the results of a fit go: a model file, a report page, both or neither."""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from numpy.typing import NDArray

from quorate.exceptions import MissingExtraError, ParameterError
from quorate.files.atomic import check_writable, write_atomically
from quorate.files.model_files import StoredModel
from quorate.reports.figures import has_matplotlib
from quorate.reports.fit_report import fit_page
from quorate.reports.page import render
from quorate.tasks.fitting import Fit
from quorate.tasks.forecast import forecast

__all__ = [
    "Outputs",
    "predictions_as_csv",
    "predictions_as_list",
    "probabilities_as_csv",
    "table_as",
]

_TABLES = (".csv", ".parquet")


@dataclass(frozen=True, kw_only=True)
class Outputs:
    """Files that a fit shall write.

    >>> Outputs().check()
    >>> Outputs(model=Path("nowhere/model.json")).check()
    Traceback (most recent call last):
    quorate.exceptions.ParameterError: Expected a folder that can be written, got 'nowhere'.
    """

    model: Path | None = None
    out: Path | None = None
    report: Path | None = None

    def check(self) -> None:
        """Refuse files that could not be written, before a budget is spent on them."""
        for path in (self.model, self.out, self.report):
            if path is not None:
                check_writable(path)
        if self.out is not None and self.out.suffix.lower() not in _TABLES:
            raise ParameterError(
                f"Expected a table as {' or '.join(_TABLES)}, got {str(self.out)!r}."
            )
        if self.report is not None and not has_matplotlib():
            raise MissingExtraError(
                "A report needs matplotlib, which is not installed: pip install 'quorate[plot]'."
            )

    def write(self, fit: Fit) -> tuple[Path, ...]:
        """Write what was asked for, each file whole or not at all; return the paths.

        The model comes first: whatever happens to the report, the release is safe.
        """
        written = []
        if self.model is not None:
            written.append(StoredModel(fit.estimator, fit.labels).write(self.model))
        if self.out is not None:
            written.append(write_atomically(self.out, table_as(self.out.suffix, fit.estimator)))
        if self.report is not None:
            page = render(fit_page(fit, forecast(fit)))
            written.append(write_atomically(self.report, page))
        return tuple(written)


def table_as(suffix: str, estimator: Any) -> bytes:
    r"""Return the table that was released, as the text of a CSV file or as Parquet.

    >>> import pyarrow as pa
    >>> from types import SimpleNamespace
    >>> table_as(".csv", SimpleNamespace(table_=pa.table({"city": ["Ulm"], "visits": [7.0]})))
    b'"city","visits"\n"Ulm",7\n'
    """
    import pyarrow as pa
    from pyarrow import csv as arrow_csv
    from pyarrow import parquet

    held = io.BytesIO()
    if suffix.lower() == ".csv":
        arrow_csv.write_csv(estimator.table_, held)
    else:
        parquet.write_table(estimator.table_, pa.PythonFile(held, mode="w"))
    return held.getvalue()


def predictions_as_list(values: NDArray[Any]) -> list[object]:
    """Return predictions for JSON: what is not a number becomes None.

    >>> import numpy as np
    >>> predictions_as_list(np.array([1.5, np.nan]))
    [1.5, None]
    """
    plain: list[object] = values.tolist()
    return [None if isinstance(v, float) and not math.isfinite(v) else v for v in plain]


def predictions_as_csv(values: list[object]) -> str:
    r"""Return predictions as a CSV file of one column.

    >>> predictions_as_csv([1, "a,b"])
    'prediction\r\n1\r\n"a,b"\r\n'
    """
    text = io.StringIO()
    writer = csv.writer(text)
    writer.writerow(["prediction"])
    writer.writerows([value] for value in values)
    return text.getvalue()


def probabilities_as_csv(names: Sequence[str], shares: NDArray[Any]) -> str:
    r"""Return probabilities as a CSV file with a column for each class.

    >>> import numpy as np
    >>> probabilities_as_csv(["no", "yes"], np.array([[0.25, 0.75]]))
    'no,yes\r\n0.25,0.75\r\n'
    """
    text = io.StringIO()
    writer = csv.writer(text)
    writer.writerow(names)
    writer.writerows(predictions_as_list(row) for row in shares)
    return text.getvalue()
