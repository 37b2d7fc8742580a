"""The methods of a fitted linear model: predictions, their errors, coefficients."""

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
        """Return the coefficients, one row per output, and the intercepts."""
        raise NotImplementedError

    @property
    def coefficients_(self) -> Coefficients:
        """The coefficients and the intercept with their names."""
        weights, offsets = self._stored()
        errors = self.error_.standard_errors if self.error_.stated else None
        return Coefficients.of(self.columns_, self._outputs(), weights, offsets, errors)

    def _outputs(self) -> tuple[str, ...]:
        """Return the name of each row of coefficients."""
        return ("coefficient",)

    def _predictions(self, X: Any) -> Vector:
        """Return the predictions; NaN for a row with a missing or infinite value."""
        return self._at_rows(X, self._stored_predictions)

    def _errors(self, X: Any) -> Vector:
        """Return the standard errors of predictions according to ``error_``, in the same shape."""
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
