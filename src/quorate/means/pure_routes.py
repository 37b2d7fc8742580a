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

from quorate.accounting.account import Account
from quorate.accounting.calibrate import split_epsilon
from quorate.accounting.rounding import float_down
from quorate.bounds import Bound, Box, Interval
from quorate.grid import Grid, fitting_grid
from quorate.guarantees import Relation
from quorate.means.absence import OrAbsent, laplace_vote, marked, present_users
from quorate.means.released_mean import MeanError, MeanRelease
from quorate.means.weighted_users import VectorUsers, WeightedUsers
from quorate.mechanisms.quantiles import FloatQuantile, PrivateQuantile
from quorate.mechanisms.sums import LaplaceSum
from quorate.releases.route import Route

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
    users : VectorUsers
        Offsets from the centre of the public bound. Users without usable records are absent:
        quantiles are those of the others, and sums count them separately (see
        :mod:`quorate.means.absence`).
    half_widths : array of shape (d,)
        Coordinate j of an offset lies between ``-half_widths[j]`` and ``half_widths[j]``.
    account : Account
        What pays for every draw; its epsilon is shared out here.
    """

    users: VectorUsers
    half_widths: NDArray[np.float64]
    account: Account

    @property
    def epsilon(self) -> float:
        """What the run may cost."""
        return float_down(self.account.epsilon)

    @property
    def relation(self) -> Relation:
        """The neighbours that the account is about."""
        return self.account.relation

    @property
    def dimension(self) -> int:
        """Number of coordinates."""
        return int(self.half_widths.size)

    def enough_users(self, n_users: float) -> bool:
        """Whether a range can be found in each coordinate."""
        return n_users * self.epsilon / self.dimension >= USERS_NEEDED

    def adapt(self) -> MeanRelease:
        """Find a range if there are enough users for it, otherwise clip."""
        size, epsilon = self._count_users(self.epsilon, _SIZE_SHARE)
        if self.enough_users(size.number):
            return self._by_quantiles(size, epsilon, "a range is found in each coordinate.")
        return self._clipped(size, epsilon, "too few users to find a range privately.")

    def clip(self, reason: str) -> MeanRelease:
        """Clip everybody to the public range."""
        return self._clipped(None, self.epsilon, reason)

    def quantile(self, reason: str) -> MeanRelease:
        """Find a range in each coordinate, however few users there are."""
        return self._by_quantiles(*self._count_users(self.epsilon, _SIZE_SHARE), reason)

    def _clipped(self, size: _Size | None, epsilon: float, reason: str) -> MeanRelease:
        # The mean may lie far from the centre, where the noise of the number of users matters as
        # much as that of the sum: the share is best for a mean half way to the bound.
        share = 1.0 / (1.0 + (2.0 * self.dimension) ** (2.0 / 3.0))
        better, epsilon = self._count_users(epsilon, share)
        bound = Box(-self.half_widths, self.half_widths)
        size = better if size is None else size.combined(better)
        everything = slice(None)
        mean, scale, along = self._noisy_mean(everything, bound, epsilon, size)
        radius = float(np.linalg.norm(self.half_widths))
        scales = np.full(self.dimension, scale)
        return MeanRelease(
            mean=mean,
            error=laplace_error(scales, radius=radius, cut_share=0.0, along=along),
            route=Route(name="clip", reason=reason),
        )

    def _by_quantiles(self, size: _Size, epsilon: float, reason: str) -> MeanRelease:
        each = split_epsilon(epsilon, [1.0] * self.dimension)
        answers = [
            self._coordinate(column, float(half), share, size)
            for column, (half, share) in enumerate(zip(self.half_widths, each, strict=True))
        ]
        means, scales, alongs, radii = (np.array(part) for part in zip(*answers, strict=True))
        error = laplace_error(
            scales,
            radius=float(np.linalg.norm(radii)),
            cut_share=1.0 - _INNER_SHARE,
            along=float(np.linalg.norm(alongs)),
        )
        return MeanRelease(mean=means, error=error, route=Route(name="quantile", reason=reason))

    def _coordinate(
        self, column: int, half: float, epsilon: float, size: _Size
    ) -> tuple[float, float, float, float]:
        """Release mean, its two noise scales and the radius of one coordinate."""
        values = self.users.column(column)
        for_median, for_distance, for_mean = split_epsilon(epsilon, _SHARES)
        median = FloatQuantile(
            lower=-half,
            upper=half,
            resolution=half * 2.0**-_HALVINGS,
            epsilon=for_median,
            relation=self.relation,
        ).release(values, account=self.account)
        # Distances on a logarithmic scale: 0 is the finest, 40 the whole width.
        with np.errstate(divide="ignore"):
            power = np.ceil(np.log2(np.abs(values - median) / (2.0 * half))) + _HALVINGS
        power = np.clip(power, 0, _HALVINGS).astype(np.int64)
        found = PrivateQuantile(
            domain=(0, _HALVINGS),
            quantile=_INNER_SHARE,
            epsilon=for_distance,
            relation=self.relation,
        ).release(power, account=self.account)
        widen = max(_WIDEN, _WIDEN_RATE * for_mean * math.sqrt(size.number))
        radius = min(1.0, widen * 2.0 ** (found - _HALVINGS)) * 2.0 * half
        interval = Interval(median - radius, median + radius)
        if found == 0 or radius >= half:
            # Most users hold the same value, and a small interval would cut all others; or the
            # interval is wider than the range.
            interval, radius = Interval(-half, half), half
        only = slice(column, column + 1)
        mean, scale, along = self._noisy_mean(only, interval, for_mean, size)
        return float(mean[0]), scale, along, radius

    def _noisy_mean(
        self, columns: slice, bound: Bound, epsilon: float, size: _Size
    ) -> tuple[NDArray[np.float64], float, float]:
        """Release a clipped mean; return it with its scale and that of its divisor's effect."""
        if self.relation is Relation.REPLACE:
            bound = OrAbsent(bound, laplace_vote(bound))
        scale = bound.change(self.relation)[0] / epsilon
        grid = fitting_grid(bound, n_users=self.users.n_users, relation=self.relation, noise=scale)
        mechanism = LaplaceSum(grid=grid, epsilon=epsilon, relation=self.relation)
        totals = grid.join(self.users.add_up(_Halves(grid, columns)))
        moved = mechanism.release(totals, count=0, account=self.account)
        if isinstance(bound, OrAbsent):
            absent, noise = float(moved[-1]) / bound.vote, scale / bound.vote
            size = _Size(*present_users(size.number, absent, noise))
            bound, moved = bound.inner, moved[:-1]
        away = moved / size.number
        along = float(np.linalg.norm(away)) * size.scale / size.number
        return bound.centre + away, scale / size.number, along

    def _count_users(self, epsilon: float, share: float) -> tuple[_Size, float]:
        """Return n and the epsilon that is left: n is public under replacement, else bought."""
        if self.relation is Relation.REPLACE:
            return _Size(float(max(1, self.users.n_users)), 0.0), epsilon
        for_size, rest = split_epsilon(epsilon, [share, 1.0 - share])
        grid = fitting_grid(
            Interval(0.0, 1.0, centre=0.0),
            n_users=self.users.n_users,
            relation=self.relation,
            noise=1.0 / for_size,
        )
        mechanism = LaplaceSum(grid=grid, epsilon=for_size, relation=self.relation)
        present = self.users.total_present(grid)
        counted = float(mechanism.release(present, count=0, account=self.account)[0])
        return _Size(max(1.0, counted), 1.0 / for_size), rest


@dataclass(frozen=True)
class _Halves:
    """The sum of some columns of the users' vectors on a grid, with votes of absent users."""

    grid: Grid
    columns: slice

    def __call__(self, users: WeightedUsers) -> NDArray[np.int64]:
        rows = np.ascontiguousarray(users.vectors[:, self.columns])
        voting = isinstance(self.grid.bound, OrAbsent)
        return self.grid.encode_halves(marked(rows) if voting else rows)


@dataclass(frozen=True)
class _Size:
    """How many users there are, and the scale of the noise in that number."""

    number: float
    scale: float

    def combined(self, other: _Size) -> _Size:
        """Weigh two noisy numbers by their precision; without noise they are the same."""
        if not (self.scale and other.scale):
            return other
        old, new = self.scale**2, other.scale**2
        number = (self.number * new + other.number * old) / (old + new)
        return _Size(number, math.sqrt(old * new / (old + new)))


def laplace_error(
    scales: NDArray[np.float64], *, radius: float, cut_share: float, along: float = 0.0
) -> MeanError:
    """Return the error of independent Laplace noise of these scales.

    ``along`` is the scale of noise in one more direction, that of the mean's offset.

    >>> round(laplace_error(np.array([1.0]), radius=1.0, cut_share=0.0).standard_error, 4)
    1.4142
    """
    confidence = 0.95
    # A union bound: |noise_j| <= scale_j ln(k / 0.05) for all k sources of noise.
    reach = math.log((scales.size + (along > 0)) / (1.0 - confidence))
    length = float(np.linalg.norm(scales))
    return MeanError(
        standard_error=math.sqrt(2.0) * math.hypot(length, along),
        bound=reach * (length + along),
        confidence=confidence,
        radius=radius,
        cut_share=cut_share,
    )
