"""A range in each coordinate: a private median, and a private quantile of the distances to it.

Where there are enough users for it, they make an interval around the users in each coordinate,
which share epsilon; otherwise everybody is clipped to the bound.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from quorate.accounting.calibrate import split_epsilon
from quorate.estimators import Route
from quorate.grid import Interval
from quorate.means.present_mean import ErrorParts, MeanRelease, PureRun, Size
from quorate.means.routes import ways
from quorate.mechanisms.choices.quantiles import FloatQuantile, PrivateQuantile

__all__ = ["QuantileRun"]

_INNER_SHARE = 0.6
_HALVINGS = 40
# How far clipping is taken to pull the mean, in radii.
_PULL = 0.01


@dataclass(frozen=True, kw_only=True)
class QuantileRun(PureRun):
    """One private mean under pure differential privacy, in a range that is found first."""

    def adapt(self) -> MeanRelease:
        """Find a range in each coordinate if there are enough users for it, otherwise clip."""
        size, epsilon = self.count_users(self.epsilon, ways.QUANTILE_SIZE_SHARE)
        way = ways.first_way(
            users=size.number, dimension=self.dimension, epsilon=self.epsilon, mu=0.0
        )
        if way.name == "clip":
            return self.clip_to_range(size, epsilon, "too few users to find a range privately.")
        return self.by_quantiles(size, epsilon, "a range is found in each coordinate.")

    def quantile(self, reason: str) -> MeanRelease:
        """Find a range in each coordinate; works for few users too."""
        return self.by_quantiles(*self.count_users(self.epsilon, ways.QUANTILE_SIZE_SHARE), reason)

    def by_quantiles(self, size: Size, epsilon: float, reason: str) -> MeanRelease:
        """Find a range in each coordinate and clip to it."""
        each = split_epsilon(epsilon, [1.0] * self.dimension)
        answers = [
            self._coordinate(column, float(half), share, size)
            for column, (half, share) in enumerate(zip(self.half_widths, each, strict=True))
        ]
        means, noise, along, radii = (np.array(part) for part in zip(*answers, strict=True))
        radius = float(np.linalg.norm(radii))
        outside = 1.0 - _INNER_SHARE
        parts = ErrorParts(
            noise=noise,
            laplace=True,
            along=along,
            pull=_PULL * radius,
            worst_pull=outside * 2.0 * float(np.linalg.norm(self.half_widths)),
            radius=radius,
            cut_share=outside,
        )
        return MeanRelease(mean=means, parts=parts, route=Route(name="quantile", reason=reason))

    def _coordinate(
        self, column: int, half: float, epsilon: float, size: Size
    ) -> tuple[float, float, float, float]:
        """Release mean, its two noise scales and the radius of one coordinate."""
        values = self.users.column(column)
        for_median, for_distance, for_mean = split_epsilon(epsilon, ways.QUANTILE_SHARES)
        median = FloatQuantile(
            lower=-half,
            upper=half,
            resolution=half * 2.0**-_HALVINGS,
            epsilon=for_median,
            relation=self.relation,
        ).release(values, account=self.account)
        found = PrivateQuantile(
            domain=(0, _HALVINGS),
            quantile=_INNER_SHARE,
            epsilon=for_distance,
            relation=self.relation,
        ).release(values.map(_Halvings(median, half)), account=self.account)
        widen = ways.widening(users=size.number, epsilon=for_mean)
        radius = min(1.0, widen * 2.0 ** (found - _HALVINGS)) * 2.0 * half
        interval = Interval(median - radius, median + radius)
        if found == 0 or radius >= half:
            # Most users hold the same value, and a small interval would cut all others; or the
            # interval is wider than the range.
            interval, radius = Interval(-half, half), half
        only = slice(column, column + 1)
        answer = self.noisy_mean(only, interval, for_mean, size)
        return float(answer.mean[0]), float(answer.noise[0]), float(answer.along[0]), radius


@dataclass(frozen=True)
class _Halvings:
    """Distances from a median on a logarithmic scale: 0 is the finest, 40 the whole width."""

    median: float
    half: float

    def __call__(self, values: NDArray[np.float64]) -> NDArray[np.int64]:
        with np.errstate(divide="ignore"):
            power = np.ceil(np.log2(np.abs(values - self.median) / (2.0 * self.half))) + _HALVINGS
        return np.asarray(np.clip(power, 0, _HALVINGS), dtype=np.int64)
