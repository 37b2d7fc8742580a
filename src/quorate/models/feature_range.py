"""Public limits of the features of a model: cut to them, scaled by them, and the way back."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from quorate.bounds import Box
from quorate.ranges import as_limits

__all__ = ["FeatureRange"]

Vector = NDArray[np.float64]


class FeatureRange:
    """Public limits of the features, which are cut to them and scaled to [-1, 1].

    Parameters
    ----------
    bounds : None, float, pair, dict, Interval or Box
        ``None`` leaves features as they are; for the rest see :mod:`quorate.ranges`.
    n_features : int
    names : sequence of str, optional
        Names of the features, for limits by name.

    Examples
    --------
    >>> limits = FeatureRange((0.0, [10.0, 2.0]), 2)
    >>> limits.scaled(np.array([[5.0, 9.0]]))
    array([[0., 1.]])
    """

    def __init__(self, bounds: Any, n_features: int, names: Sequence[str] | None = None) -> None:
        self.bounded = bounds is not None
        lower, upper = np.full(n_features, -1.0), np.full(n_features, 1.0)
        if self.bounded:
            lower, upper = as_limits(bounds, n_features, names)
            Box(lower, upper)
        self.centre = (lower + upper) / 2.0
        self.half_width = (upper - lower) / 2.0

    def scaled(self, rows: Vector, out: Vector | None = None) -> Vector:
        """Return the rows, cut and scaled; written to ``out`` if it is given."""
        if not self.bounded:
            return rows
        # A warning about an overflow would tell of a value.
        with np.errstate(all="ignore"):
            scaled: Vector = np.subtract(rows, self.centre, out=out)
            scaled /= self.half_width
            np.clip(scaled, -1.0, 1.0, out=scaled)
        return scaled

    def unscaled(self, weights: Vector, offsets: Vector) -> tuple[Vector, Vector]:
        """Return weights and offsets that act on the features as they come."""
        if not self.bounded:
            return weights, offsets
        outer = weights / self.half_width
        return outer, offsets - outer @ self.centre

    def rescaled(self, weights: Vector, offsets: Vector) -> tuple[Vector, Vector]:
        """Undo :meth:`unscaled`."""
        if not self.bounded:
            return weights, offsets
        return weights * self.half_width, offsets + weights @ self.centre
