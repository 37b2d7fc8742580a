"""Coefficients with names on them: a table of what a linear model says about each column."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from quorate.exceptions import ParameterError

__all__ = ["CONSTANT", "Coefficients"]

Vector = NDArray[np.float64]

CONSTANT = "constant"
"""The name of the row of the intercept."""

# Half of an interval of 95 %, in standard errors.
_NORMAL = 1.96


@dataclass(frozen=True, eq=False)
class Coefficients:
    """A row for each column of numbers and one for the constant, a column for each output.

    It speaks Arrow: ``pandas.DataFrame.from_arrow``, ``polars.DataFrame`` and ``pyarrow.table``
    take it as a table.

    Parameters
    ----------
    features : tuple of str
    outputs : tuple of str
        The label for which a positive coefficient speaks; ``"coefficient"`` for a number.
    values : array of shape (features + 1, outputs)
        The constant is in the last row.
    errors : array of the same shape, optional
        Standard errors, where released numbers tell them: what noise did, and nothing else. The
        table then has them too, with the ends of intervals of 95 %.

    Examples
    --------
    >>> table = Coefficients(("age",), ("coefficient",), np.array([[2.0], [0.5]]))
    >>> table["age"], table["constant"]
    (2.0, 0.5)
    >>> print(table)
    feature   coefficient
    age                 2
    constant          0.5
    >>> print(Coefficients(("age",), ("slope",), table.values, np.array([[0.5], [0.1]])))
    feature   slope  standard error  lower  upper
    age           2             0.5   1.02   2.98
    constant    0.5             0.1  0.304  0.696
    """

    features: tuple[str, ...]
    outputs: tuple[str, ...]
    values: Vector
    errors: Vector | None = None

    def __post_init__(self) -> None:
        shape = (len(self.features) + 1, len(self.outputs))
        if self.values.shape != shape:
            given = self.values.shape
            raise ParameterError(f"Expected coefficients of shape {shape}, got {given}.")
        if self.errors is not None and self.errors.shape != shape:
            given = self.errors.shape
            raise ParameterError(f"Expected standard errors of shape {shape}, got {given}.")

    @classmethod
    def of(
        cls,
        features: Sequence[str],
        outputs: Sequence[str],
        weights: Vector,
        offsets: Vector,
        errors: Vector | None = None,
    ) -> Coefficients:
        """Return the table of weights (outputs x features) and offsets.

        ``errors`` are the standard errors of both, outputs x (features + 1).
        """
        values = np.vstack([np.atleast_2d(weights).T, np.atleast_1d(offsets)])
        return cls(tuple(features), tuple(outputs), values, None if errors is None else errors.T)

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the rows."""
        return (*self.features, CONSTANT)

    def __getitem__(self, key: str | tuple[str, str]) -> float:
        """Return the coefficient of a column, for a label where there are several."""
        name, output = key if isinstance(key, tuple) else (key, None)
        if name not in self.names or (output is not None and output not in self.outputs):
            raise KeyError(key)
        if output is None and len(self.outputs) > 1:
            raise KeyError(f"{name!r} has a coefficient for each of {self.outputs}")
        place = 0 if output is None else self.outputs.index(output)
        return float(self.values[self.names.index(name), place])

    def to_dict(self) -> dict[str, dict[str, float]]:
        """Return the coefficients by output and name."""
        return {
            output: dict(zip(self.names, map(float, column), strict=True))
            for output, column in zip(self.outputs, self.values.T, strict=True)
        }

    def to_arrow(self) -> Any:
        """Return an Arrow table: names, coefficients and their errors where they are known."""
        import pyarrow as pa

        columns: dict[str, Any] = {"feature": list(self.names)}
        for place, output in enumerate(self.outputs):
            columns[output] = self.values[:, place]
            if self.errors is not None:
                own = "" if len(self.outputs) == 1 else f"{output}: "
                reach = _NORMAL * self.errors[:, place]
                columns[f"{own}standard error"] = self.errors[:, place]
                columns[f"{own}lower"] = self.values[:, place] - reach
                columns[f"{own}upper"] = self.values[:, place] + reach
        return pa.table(columns)

    def __arrow_c_stream__(self, requested_schema: Any = None) -> Any:
        return self.to_arrow().__arrow_c_stream__(requested_schema)

    def __str__(self) -> str:
        table = self.to_arrow()
        rows = [tuple(table.column_names)]
        rows += [
            (str(cells[0]), *(f"{cell:.6g}" for cell in cells[1:]))
            for cells in zip(*(column.to_pylist() for column in table.columns), strict=True)
        ]
        widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
        return "\n".join(
            "  ".join(
                cell.rjust(width) if place else cell.ljust(width)
                for place, (cell, width) in enumerate(zip(row, widths, strict=True))
            ).rstrip()
            for row in rows
        )
