"""Linear models that may fall back to a constant, if noise costs more than coefficients gain.

Then the rest of the budget pays for the mean target, and all coefficients are set to zero.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from quorate.estimators import Route
from quorate.mechanisms.user_releases import ReleasedMean, UserReleases
from quorate.models.coefficients import error_of_constant
from quorate.models.first_constant import release_constant
from quorate.models.losses import LinearLoss
from quorate.models.optimization.gradients import TraceStep
from quorate.models.predictions import FittedLinear

__all__ = ["MayBeConstant"]

Vector = NDArray[np.float64]


class MayBeConstant(FittedLinear):
    """Base of the linear models: the methods needed to fall back to a constant model."""

    trace_: tuple[TraceStep, ...]

    def _constant_targets(self, targets: Vector) -> Vector:
        """Return the rows that a constant model averages: one per record, of length at most 1."""
        raise NotImplementedError

    def _constant_reach(self) -> float:
        """Return the largest length of these rows."""
        return 1.0

    def _constant_offsets(self, means: ReleasedMean) -> Vector:
        """Return the intercepts of the constant model, from the noisy means."""
        raise NotImplementedError

    def _store(self, weights: Vector, offsets: Vector) -> None:
        raise NotImplementedError

    def _release_constant(
        self,
        run: UserReleases,
        loss: LinearLoss,
        reason: str,
    ) -> None:
        """Spend the rest of the budget on the mean target."""
        offsets = self._constant_offsets(self._bought_means(run))
        self.guarantee_ = self._promise(run.account)
        self.trace_ = ()
        self.algorithm_ = Route(name="constant", reason=reason)
        self.error_ = error_of_constant(loss, run.data.n_features)
        zeros = np.zeros((loss.outputs, run.data.n_features))
        self._store(zeros, offsets if loss.intercept else np.zeros(loss.outputs))

    def _bought_means(self, run: UserReleases, share: float | None = None) -> ReleasedMean:
        """Return the noisy means of a constant model, for a share of the budget or the rest."""
        targets, reach = self._constant_targets, self._constant_reach()
        return release_constant(run, targets, reach=reach, share=share)
