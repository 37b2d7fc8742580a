"""The mean under pure differential privacy: clip to the range, or find a range per coordinate.

With delta = 0 the noise is Laplace and coordinates share epsilon, so each coordinate is treated on
its own. Where there are enough users for it, a private median and a private quantile of the
distances to it make an interval around the users; otherwise everybody is clipped to the bound.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from quorate.accounting.calibrate import split_epsilon
from quorate.accounting.events import Event, Pure
from quorate.bounds import Box, Interval
from quorate.grid import choose_grid
from quorate.guarantees import Relation
from quorate.means.release import MeanError, MeanRelease, Route
from quorate.means.weighted_users import public_size
from quorate.mechanisms.quantiles import FloatQuantile, PrivateQuantile
from quorate.mechanisms.sums import LaplaceSum

__all__ = ["PureRun"]

# Shares of a coordinate's epsilon: median, distance, mean.
_SHARES = (0.4, 0.25, 0.35)
_SIZE_SHARE = 0.1
# Below this many users times a coordinate's epsilon the median is too often anywhere.
USERS_NEEDED = 140.0
_INNER_SHARE = 0.6
# The distance that holds 60 % of the users is widened until it holds nearly all: at least three
# times, and more where the noise stays below the sampling error of the mean.
_WIDEN = 3.0
_WIDEN_RATE = 0.3
_HALVINGS = 40


@dataclass(frozen=True, kw_only=True)
class PureRun:
    """One private mean under pure differential privacy.

    Parameters
    ----------
    vectors : array of shape (n, d)
        Offsets from the centre of the public bound.
    half_widths : array of shape (d,)
        Coordinate j of an offset lies between ``-half_widths[j]`` and ``half_widths[j]``.
    epsilon : float
    relation : Relation
    """

    vectors: NDArray[np.float64]
    half_widths: NDArray[np.float64]
    epsilon: float
    relation: Relation

    @property
    def event(self) -> Event:
        """What the accountant prices: the same for both routes."""
        return Pure(self.epsilon)

    @property
    def dimension(self) -> int:
        """Number of coordinates."""
        return int(self.half_widths.size)

    def enough_users(self, n_users: float) -> bool:
        """Whether a range can be found in each coordinate."""
        return n_users * self.epsilon / self.dimension >= USERS_NEEDED

    def adapt(self) -> MeanRelease:
        """Find a range if there are enough users for it, otherwise clip."""
        n_users, epsilon = self._number_of_users()
        if self.enough_users(n_users):
            return self._by_quantiles(n_users, epsilon, "a range is found in each coordinate.")
        return self._clipped(n_users, epsilon, "too few users to find a range privately.")

    def clip(self, reason: str) -> MeanRelease:
        """Clip everybody to the public range."""
        return self._clipped(*self._number_of_users(), reason)

    def quantile(self, reason: str) -> MeanRelease:
        """Find a range in each coordinate, however few users there are."""
        return self._by_quantiles(*self._number_of_users(), reason)

    def _clipped(self, n_users: float, epsilon: float, reason: str) -> MeanRelease:
        bound = Box(-self.half_widths, self.half_widths)
        grid = choose_grid(bound, n_users=public_size(len(self.vectors), self.relation))
        mechanism = LaplaceSum(grid=grid, epsilon=epsilon, relation=self.relation)
        total = mechanism.release(grid.encode_sum(self.vectors), count=0)
        sensitivity = bound.change(self.relation)[0]
        scales = np.full(self.dimension, sensitivity / (epsilon * n_users))
        radius = float(np.linalg.norm(self.half_widths))
        return MeanRelease(
            mean=total / n_users,
            error=laplace_error(scales, radius=radius, cut_share=0.0),
            route=Route(name="clip", reason=reason),
        )

    def _by_quantiles(self, n_users: float, epsilon: float, reason: str) -> MeanRelease:
        each = split_epsilon(epsilon, [1.0] * self.dimension)
        columns = np.ascontiguousarray(self.vectors.T)
        answers = [
            self._coordinate(column, float(half), share, n_users)
            for column, half, share in zip(columns, self.half_widths, each, strict=True)
        ]
        means, scales, radii = (np.array(part) for part in zip(*answers, strict=True))
        cut = 1.0 - _INNER_SHARE
        return MeanRelease(
            mean=means,
            error=laplace_error(scales, radius=float(np.linalg.norm(radii)), cut_share=cut),
            route=Route(name="quantile", reason=reason),
        )

    def _coordinate(
        self, values: NDArray[np.float64], half: float, epsilon: float, n_users: float
    ) -> tuple[float, float, float]:
        """Release mean, noise scale and radius of one coordinate."""
        for_median, for_distance, for_mean = split_epsilon(epsilon, _SHARES)
        median = FloatQuantile(
            lower=-half,
            upper=half,
            resolution=half * 2.0**-_HALVINGS,
            epsilon=for_median,
            relation=self.relation,
        ).release(values)
        # Distances on a logarithmic scale: 0 is the finest, 40 the whole width.
        with np.errstate(divide="ignore"):
            power = np.ceil(np.log2(np.abs(values - median) / (2.0 * half))) + _HALVINGS
        power = np.clip(power, 0, _HALVINGS).astype(np.int64)
        found = PrivateQuantile(
            domain=(0, _HALVINGS),
            quantile=_INNER_SHARE,
            epsilon=for_distance,
            relation=self.relation,
        ).release(power)
        widen = max(_WIDEN, _WIDEN_RATE * for_mean * math.sqrt(n_users))
        radius = min(1.0, widen * 2.0 ** (found - _HALVINGS)) * 2.0 * half
        interval = Interval(median - radius, median + radius)
        if found == 0 or radius >= half:
            # Most users hold the same value, and a small interval would cut all others; or the
            # interval is wider than the range.
            interval, radius = Interval(-half, half), half
        grid = choose_grid(interval, n_users=public_size(len(values), self.relation))
        mechanism = LaplaceSum(grid=grid, epsilon=for_mean, relation=self.relation)
        total = float(mechanism.release(grid.encode_sum(values), count=0)[0])
        scale = interval.change(self.relation)[0] / (for_mean * n_users)
        return float(grid.bound.centre[0]) + total / n_users, scale, radius

    def _number_of_users(self) -> tuple[float, float]:
        """Return n and the epsilon that is left: n is public under replacement, else bought."""
        if self.relation is Relation.REPLACE:
            return float(max(1, len(self.vectors))), self.epsilon
        for_size, rest = split_epsilon(self.epsilon, [_SIZE_SHARE, 1.0 - _SIZE_SHARE])
        many = public_size(len(self.vectors), self.relation)
        grid = choose_grid(Interval(0.0, 1.0, centre=0.0), n_users=many)
        mechanism = LaplaceSum(grid=grid, epsilon=for_size, relation=self.relation)
        ones = np.ones(len(self.vectors))
        return max(1.0, float(mechanism.release(grid.encode_sum(ones), count=0)[0])), rest


def laplace_error(scales: NDArray[np.float64], *, radius: float, cut_share: float) -> MeanError:
    """Return the error of independent Laplace noise of these scales.

    >>> round(laplace_error(np.array([1.0]), radius=1.0, cut_share=0.0).standard_error, 4)
    1.4142
    """
    confidence = 0.95
    # A union bound over the coordinates: |noise_j| <= scale_j ln(d / 0.05) for all j.
    reach = math.log(scales.size / (1.0 - confidence))
    length = float(np.linalg.norm(scales))
    return MeanError(
        standard_error=math.sqrt(2.0) * length,
        bound=reach * length,
        confidence=confidence,
        radius=radius,
        cut_share=cut_share,
    )
