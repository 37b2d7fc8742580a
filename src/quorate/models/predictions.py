"""What a fitted linear model offers: predictions, their errors, and named coefficients."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from quorate import _validate
from quorate.core.users.store import row_products
from quorate.estimators import UserEstimator
from quorate.models.coefficients import CoefficientError, Coefficients

__all__ = ["FittedLinear"]

Vector = NDArray[np.float64]


class FittedLinear(UserEstimator):
    """Base of the linear models: predictions and named coefficients from released numbers."""

    error_: CoefficientError

    def _stored(self) -> tuple[Vector, Vector]:
        """Return the coefficients, one row an output, and their offsets."""
        raise NotImplementedError

    @property
    def coefficients_(self) -> Coefficients:
        """The coefficients and the constant with names on them."""
        weights, offsets = self._stored()
        errors = self.error_.standard_errors if self.error_.stated else None
        return Coefficients.of(self.columns_, self._outputs(), weights, offsets, errors)

    def _outputs(self) -> tuple[str, ...]:
        """Return what each row of coefficients speaks for."""
        return ("coefficient",)

    def _predictions(self, X: Any) -> Vector:
        """Return the predictions; NaN for a row in which something is missing or infinite."""
        return self._at_rows(X, self._stored_predictions)

    def _errors(self, X: Any) -> Vector:
        """Return the standard errors of predictions that ``error_`` tells, in the same form."""
        return self._at_rows(X, self.error_.of_rows)

    def _at_rows(self, X: Any, of_rows: Callable[[Vector], Vector]) -> Vector:
        from sklearn.utils.validation import check_is_fitted

        check_is_fitted(self)
        rows = self._features(X)
        # A warning about an overflow would be about a row that has no prediction.
        with np.errstate(all="ignore"):
            found = of_rows(rows)
        found[~_validate.finite_rows(rows)] = np.nan
        return found

    def _stored_predictions(self, rows: Vector) -> Vector:
        weights, offsets = self._stored()
        # Row by row, because marks in a private choice are made of predictions too.
        return np.asarray(row_products(rows, weights) + offsets)
