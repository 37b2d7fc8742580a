"""The coefficients of a fitted linear model with their names, and their error due to noise.

Plain data. :mod:`quorate.models.optimization.posterior` explains how the errors are computed.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from quorate.exceptions import ParameterError
from quorate.mechanisms.stated_error import StatedError
from quorate.models.coordinates.geometry import Geometry
from quorate.models.losses import LinearLoss
from quorate.models.public_inputs import FeatureRange

__all__ = [
    "CONSTANT",
    "NORMAL",
    "CoefficientError",
    "Coefficients",
    "coefficient_error",
    "error_of_constant",
    "error_of_covariance",
]

Vector = NDArray[np.float64]

CONSTANT = "constant"
"""The name of the row of the intercept."""

# derived: the normal quantile of .975.
NORMAL = 1.96
"""Half of an interval of 95 %, in standard errors."""
# public: what errors are stated with everywhere.
_CONFIDENCE = 0.95
_COVERS = (
    "Privacy noise of the released gradients, uncertainty about the curvature of the loss, and "
    "shrinkage; not clipping bias, and not sampling error."
)


@dataclass(frozen=True, eq=False)
class Coefficients:
    """A row for each numeric column and one for the intercept; a column for each output.

    It supports the Arrow interface, so ``pandas.DataFrame.from_arrow``, ``polars.DataFrame`` and
    ``pyarrow.table`` accept it as a table.

    Parameters
    ----------
    features : tuple of str
    outputs : tuple of str
        For labels, the label that a positive coefficient makes more likely; ``"coefficient"`` for
        numbers.
    values : array of shape (features + 1, outputs)
        The intercept is in the last row.
    errors : array of the same shape, optional
        Standard errors due to privacy noise alone, if released numbers determine them. The table
        then includes them, with the ends of 95 % confidence intervals.

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

        ``errors`` are the standard errors of both, as an array of outputs x (features + 1).
        """
        values = np.vstack([np.atleast_2d(weights).T, np.atleast_1d(offsets)])
        return cls(tuple(features), tuple(outputs), values, None if errors is None else errors.T)

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the rows."""
        return (*self.features, CONSTANT)

    def __getitem__(self, key: str | tuple[str, str]) -> float:
        """Return the coefficient of a column; with several labels, that of one label."""
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
        """Return an Arrow table of names, coefficients and, if they are known, their errors."""
        import pyarrow as pa

        columns: dict[str, Any] = {"feature": list(self.names)}
        for place, output in enumerate(self.outputs):
            columns[output] = self.values[:, place]
            if self.errors is not None:
                own = "" if len(self.outputs) == 1 else f"{output}: "
                reach = NORMAL * self.errors[:, place]
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


@dataclass(frozen=True, kw_only=True, eq=False)
class CoefficientError(StatedError):
    """How far the coefficients are from the best fit to the same people without privacy.

    It holds the posterior standard deviations of the minimum
    (:mod:`quorate.models.optimization.posterior`).

    Attributes
    ----------
    standard_errors : array of shape (outputs, features + 1)
        The standard error of each coefficient, with that of the intercept last (0 if there is no
        intercept). Infinite if nothing can be stated.
    covariance : array of shape (outputs, features + 1, features + 1)
        The covariance of the coefficients of each output; empty if nothing can be stated.
    confidence, bound, coordinates, worst, covers
        See :class:`~quorate.mechanisms.stated_error.StatedError`. ``bound`` is for the length of
        the error of all coefficients together. ``worst`` is infinite, because no released number
        limits the clipping bias.

    Examples
    --------
    >>> error = CoefficientError(
    ...     standard_errors=np.array([[0.2, 0.1]]),
    ...     covariance=np.diag([0.04, 0.01])[np.newaxis],
    ...     bound=0.43,
    ...     coordinates=(0.392, 0.196),
    ... )
    >>> error.of_rows(np.array([[3.0]])).round(3)
    array([[0.608]])
    """

    standard_errors: Vector
    covariance: Vector = field(repr=False)
    bound: float
    coordinates: tuple[float, ...]
    confidence: float = _CONFIDENCE
    worst: float = math.inf
    covers: str = _COVERS

    @classmethod
    def unknown(
        cls, reason: str, *, outputs: int, features: int, intercept: bool
    ) -> CoefficientError:
        """Return an error without numbers, with the reason.

        >>> error = CoefficientError.unknown("Nobody knows.", outputs=1, features=2, intercept=True)
        >>> error.bound, error.covers
        (inf, 'No error is stated: nobody knows.')
        """
        return cls(
            standard_errors=np.full((outputs, features + 1), np.inf),
            covariance=np.zeros((0, 0, 0)),
            bound=math.inf,
            coordinates=(math.inf,) * (outputs * (features + intercept)),
            covers=f"No error is stated: {reason[0].lower()}{reason[1:]}",
        )

    @property
    def stated(self) -> bool:
        """Whether an error is known."""
        return math.isfinite(self.bound)

    def of_rows(self, rows: Vector) -> Vector:
        """Return the standard error of each output's prediction for rows of features."""
        if not self.stated:
            return np.full((len(rows), len(self.standard_errors)), np.inf)
        ones = np.concatenate([rows, np.ones((len(rows), 1))], axis=1)
        squares = np.einsum("ri,oij,rj->ro", ones, self.covariance, ones)
        return np.asarray(np.sqrt(np.maximum(squares, 0.0)))

    def __str__(self) -> str:
        if not self.stated:
            return self.covers
        return (
            f"all coefficients together within {self.bound:.3g} with probability "
            f"{self.confidence:.0%}. {self.covers}"
        )


def error_of_constant(loss: LinearLoss, n_features: int) -> CoefficientError:
    """Return the error of an intercept-only model, without numbers."""
    return CoefficientError.unknown(
        "The model is intercept-only, because noise would hide any coefficients.",
        outputs=loss.outputs,
        features=n_features,
        intercept=loss.intercept,
    )


def coefficient_error(
    covariance: Vector | None,
    loss: LinearLoss,
    geometry: Geometry,
    limits: FeatureRange | None,
    *,
    unit: float,
) -> CoefficientError:
    """Return the error of coefficients, from the covariance of parameters in a geometry.

    ``limits`` are the limits to which the features were scaled. ``unit`` is the number of units of
    the target per unit of the training.
    """
    if covariance is None:
        return CoefficientError.unknown(
            "There are too few users to estimate how features are correlated, or too many "
            "coefficients.",
            outputs=loss.outputs,
            features=geometry.centre.size,
            intercept=loss.intercept,
        )
    outward = unit * np.kron(np.eye(loss.outputs), _outward(geometry, loss, limits))
    return error_of_covariance(
        outward @ covariance @ outward.T, outputs=loss.outputs, intercept=loss.intercept
    )


def error_of_covariance(covariance: Vector, *, outputs: int, intercept: bool) -> CoefficientError:
    """Return the error of coefficients whose noise has this covariance.

    Parameters are ordered by output.

    >>> error = error_of_covariance(np.diag([0.04, 0.01]), outputs=1, intercept=True)
    >>> error.standard_errors, [round(each, 3) for each in error.coordinates]
    (array([[0.2, 0.1]]), [0.392, 0.196])
    """
    size = len(covariance) // outputs
    blocks = np.zeros((outputs, size + (not intercept), size + (not intercept)))
    for place in range(outputs):
        own = slice(place * size, (place + 1) * size)
        blocks[place, :size, :size] = covariance[own, own]
    each = np.sqrt(np.maximum(np.diagonal(covariance), 0.0))
    spread = float(np.trace(covariance))
    # The squared length has this mean and twice the trace of the square as its variance.
    upper = spread + 1.645 * math.sqrt(2.0 * float(np.sum(covariance**2)))
    return CoefficientError(
        standard_errors=np.sqrt(np.maximum(np.diagonal(blocks, axis1=1, axis2=2), 0.0)),
        covariance=blocks,
        bound=max(math.sqrt(upper), NORMAL * float(each.max())),
        coordinates=tuple(float(NORMAL * size) for size in each),
    )


def _outward(geometry: Geometry, loss: LinearLoss, limits: FeatureRange | None) -> Vector:
    """Return the matrix from the parameters of one output to original coefficients."""
    size = geometry.centre.size
    whitening = geometry.whitening if geometry.whitening.ndim == 2 else np.diag(geometry.stretched)
    outer = whitening if limits is None else whitening / limits.half_width
    turned = np.zeros((size + loss.intercept, size + loss.intercept))
    turned[:size, :size] = outer.T
    if loss.intercept:
        turned[size, :size] = -(whitening @ geometry.centre)
        if limits is not None:
            turned[size, :size] -= outer @ limits.centre
        turned[size, size] = 1.0
    return turned
