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
from quorate.means import ways
from quorate.means.absence import (
    OrAbsent,
    hardly_anybody,
    laplace_vote,
    marked,
    present_users,
)
from quorate.means.released_mean import ErrorParts, MeanRelease
from quorate.means.weighted_users import VectorUsers, WeightedUsers
from quorate.mechanisms.quantiles import FloatQuantile, PrivateQuantile
from quorate.mechanisms.sums import LaplaceSum
from quorate.releases.route import Route

__all__ = ["NoisyOffset", "PureRun", "Size"]

_INNER_SHARE = 0.6
_HALVINGS = 40
# How far clipping is taken to pull the mean, in radii.
_PULL = 0.01


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

    def adapt(self) -> MeanRelease:
        """Find a range in each coordinate if there are enough users for it, otherwise clip."""
        size, epsilon = self.count_users(self.epsilon, ways.QUANTILE_SIZE_SHARE)
        way = ways.first_way(
            users=size.number, dimension=self.dimension, epsilon=self.epsilon, mu=0.0
        )
        if way.name == "clip":
            return self.clip_to_range(size, epsilon, "too few users to find a range privately.")
        return self.by_quantiles(size, epsilon, "a range is found in each coordinate.")

    def clip(self, reason: str) -> MeanRelease:
        """Clip everybody to the public range."""
        return self.clip_to_range(None, self.epsilon, reason)

    def quantile(self, reason: str) -> MeanRelease:
        """Find a range in each coordinate, however few users there are."""
        return self.by_quantiles(*self.count_users(self.epsilon, ways.QUANTILE_SIZE_SHARE), reason)

    def clip_to_range(self, size: Size | None, epsilon: float, reason: str) -> MeanRelease:
        """Clip to the public range; ``size`` is what was paid for the number of users already."""
        # The mean may lie far from the centre, where the noise of the number of users matters as
        # much as that of the sum: the share is best for a mean half way to the bound.
        share = 1.0 / (1.0 + (2.0 * self.dimension) ** (2.0 / 3.0))
        better, epsilon = self.count_users(epsilon, share)
        bound = Box(-self.half_widths, self.half_widths)
        size = better if size is None else size.combined(better)
        everything = slice(None)
        found = self.noisy_mean(everything, bound, epsilon, size)
        parts = ErrorParts(
            noise=found.noise,
            laplace=True,
            along=found.along,
            pull=0.0 if found.is_known else float(np.linalg.norm(self.half_widths)),
            radius=float(np.linalg.norm(self.half_widths)),
        )
        return MeanRelease(mean=found.mean, parts=parts, route=Route(name="clip", reason=reason))

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

    def noisy_mean(self, columns: slice, bound: Bound, epsilon: float, size: Size) -> NoisyOffset:
        """Release the mean of some columns, clipped to ``bound``, divided by those present."""
        if self.relation is Relation.REPLACE:
            # Votes say how many of all users, whose number is public, are absent.
            size = Size(float(max(1, self.users.n_users)), 0.0)
            bound = OrAbsent(bound, laplace_vote(bound))
        known = True
        scale = bound.change(self.relation)[0] / epsilon
        grid = fitting_grid(bound, n_users=self.users.n_users, relation=self.relation, noise=scale)
        mechanism = LaplaceSum(grid=grid, epsilon=epsilon, relation=self.relation)
        totals = grid.join(self.users.add_up(_Halves(grid, columns)))
        moved = mechanism.release(totals, count=0, account=self.account)
        if isinstance(bound, OrAbsent):
            absent, noise = float(moved[-1]) / bound.vote, scale / bound.vote
            known = not hardly_anybody(size.number, absent, noise)
            size = Size(*present_users(size.number, absent, noise))
            bound, moved = bound.inner, moved[:-1]
        away = moved / size.number
        return NoisyOffset(
            mean=bound.centre + away,
            noise=np.full(away.shape, math.sqrt(2.0) * scale / size.number),
            along=np.abs(away) * (math.sqrt(2.0) * size.scale / size.number),
            users=size.number,
            is_known=known,
        )

    def count_users(self, epsilon: float, share: float) -> tuple[Size, float]:
        """Return n and the epsilon that is left: n is public under replacement, else bought."""
        if self.relation is Relation.REPLACE:
            return Size(float(max(1, self.users.n_users)), 0.0), epsilon
        for_size, rest = split_epsilon(epsilon, [share, 1.0 - share])
        return self.buy_size(for_size), rest

    def buy_size(self, epsilon: float) -> Size:
        """Release how many users are present."""
        grid = fitting_grid(
            Interval(0.0, 1.0, centre=0.0),
            n_users=self.users.n_users,
            relation=self.relation,
            noise=1.0 / epsilon,
        )
        mechanism = LaplaceSum(grid=grid, epsilon=epsilon, relation=self.relation)
        present = self.users.total_present(grid)
        counted = float(mechanism.release(present, count=0, account=self.account)[0])
        return Size(max(1.0, counted), 1.0 / epsilon)


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
class NoisyOffset:
    """A released mean, and the standard deviations of its noise and of its divisor's effect.

    ``users`` are those that it was divided by; ``is_known`` is false where so few are present that
    it says nothing about them.
    """

    mean: NDArray[np.float64]
    noise: NDArray[np.float64]
    along: NDArray[np.float64]
    users: float
    is_known: bool = True


@dataclass(frozen=True)
class Size:
    """How many users there are, and the scale of the noise in that number.

    >>> Size(100.0, 2.0).combined(Size(104.0, 2.0)).number
    102.0
    """

    number: float
    scale: float

    def combined(self, other: Size) -> Size:
        """Weigh two noisy numbers by their precision; without noise they are the same."""
        if not (self.scale and other.scale):
            return other
        old, new = self.scale**2, other.scale**2
        number = (self.number * new + other.number * old) / (old + new)
        return Size(number, math.sqrt(old * new / (old + new)))
