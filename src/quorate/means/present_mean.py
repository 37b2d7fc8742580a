r"""The mean over present users: a noisy sum divided by the number of present users, and its error.

Everybody is clipped to a bound. A box of several coordinates is divided by its half-widths and
released at once, with noise calibrated to the largest coordinate. Other bounds get Laplace noise.

Under replacement the number of users is public, but the number of users who have a record is
private. A mean over present users must be divided by that private number. So each user contributes
one of two things: an offset inside the bound, or one vote for "absent" in a coordinate of its own.
An absent user contributes no offset. The sensitivity of the sum is the change from one corner of
the bound to the opposite corner. Replacing a present user by an absent one changes the sum by less.
So a vote may have a large weight (:func:`laplace_vote`) without raising the sensitivity. The noise
stays the same, so the number of absent users costs no extra budget.

A route returns the parts of its error in its own units (:class:`ErrorParts`). One function turns
them into the stated error, in the same form for every route.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from quorate._validate import float_down
from quorate.core.account.account import Account
from quorate.core.bounds.grid import Bound, Box, Interval
from quorate.core.bounds.or_absent import OrAbsent
from quorate.core.guarantees import Relation
from quorate.estimators import Route
from quorate.means.mean_error import MeanError
from quorate.means.weighted_users import PeopleVectors, WeightedUsers
from quorate.mechanisms.calibrate import split_epsilon
from quorate.mechanisms.laplace import CubeSum, LaplaceSum, cube_deviation
from quorate.mechanisms.sums import fitting_grid

__all__ = [
    "ROUNDING",
    "ErrorParts",
    "MeanRelease",
    "NoisyOffset",
    "PureRun",
    "Size",
    "gaussian_vote",
    "hardly_anybody",
    "laplace_vote",
    "marked",
    "presence",
    "present_users",
]

# Absent users are believed in by the odds that noise does not explain their number; this many to
# one are against it before it is seen. That leaves a quarter of the variance of the divisor where
# everybody is there, and adds four tenths at most where a few are missing.
_DOUBT = 8.0
# Fewer than this many scales of present users are nobody.
_BELIEVED = 3.0
ROUNDING = 1e-12  # machine: floats
"""Far more than the rounding errors of one vote."""

_CONFIDENCE = 0.95  # public: the convention of stated errors
# derived: the variance of a squared number of variance 1, from the fourth moments 3 and 6 of the
# normal and the Laplace law.
_NORMAL, _LAPLACE = 2.0, 5.0


def laplace_vote(bound: Bound) -> float:
    """Return the largest vote that does not raise the L1 sensitivity.

    >>> from quorate.core.bounds.grid import Box
    >>> round(laplace_vote(Box([-1.0, -2.0], [1.0, 2.0])), 6)
    3.0
    """
    room = bound.l1_diameter - bound.l1_radius
    return room * (1.0 - ROUNDING)


def gaussian_vote(bound: Bound) -> float:
    """Return the largest vote that does not raise the L2 sensitivity.

    >>> from quorate.core.bounds.grid import Ball
    >>> round(gaussian_vote(Ball(1.0, dimension=5)), 6)
    1.732051
    """
    room = bound.l2_diameter**2 - bound.l2_radius**2
    return math.sqrt(room) * (1.0 - ROUNDING)


def marked(rows: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the rows with one more column, which is 1 for rows of NaN (absent users).

    >>> marked(np.array([[2.0], [np.nan]]))
    array([[ 2.,  0.],
           [nan,  1.]])
    """
    result = np.empty((len(rows), rows.shape[1] + 1))
    result[:, :-1] = rows
    result[:, -1] = np.isnan(rows[:, 0])
    return result


def presence(users: WeightedUsers) -> NDArray[np.float64]:
    """Return 1 for each user who has readable records, 0 for others.

    >>> presence(WeightedUsers(np.array([[2.0], [np.nan]]))).tolist()
    [[1.0], [0.0]]
    """
    return users.present.astype(np.float64)[:, None]


def present_users(n_users: float, absent: float, error: float) -> tuple[float, float]:
    """Return the number of users to divide by, and the error of that number.

    ``absent`` is a noisy number of users and ``error`` the size of its noise. A number that is
    within its noise is treated as zero. If hardly any users are present (see
    :func:`hardly_anybody`), there is no number to divide by.

    >>> [round(present_users(1000.0, seen, 4.0)[0]) for seen in (5.0, 20.0, 200.0)]
    [998, 981, 800]
    >>> present_users(1000.0, 1003.0, 4.0)
    (1000.0, 4.0)
    """
    if absent <= 0.0 or hardly_anybody(n_users, absent, error):
        return n_users, error
    return n_users - absent / (1.0 + _DOUBT * math.exp(-absent / error)), error


def hardly_anybody(n_users: float, absent: float, error: float) -> bool:
    """Return whether the released number of present users is within its noise.

    >>> hardly_anybody(1000.0, 995.0, 4.0), hardly_anybody(1000.0, 900.0, 4.0)
    (True, False)
    """
    return n_users - absent < _BELIEVED * error


@dataclass(frozen=True, kw_only=True)
class ErrorParts:
    """The parts of the error of a released mean, in the units of its route.

    Parameters
    ----------
    noise : array of shape (d,)
        Standard deviation of the noise in each coordinate.
    laplace : bool, default=False
        Whether the noise is Laplace; otherwise normal.
    along : array of shape (d,) or float, default=0.0
        Standard deviation in each coordinate due to a noisy number of users.
    pull : float, default=0.0
        Likely clipping bias of the mean, as a length.
    worst_pull : float, default=0.0
        Largest possible clipping bias of the mean, for any users.
    radius : float
    cut_share : float, default=0.0

    Examples
    --------
    >>> parts = ErrorParts(noise=np.ones(1), laplace=True, radius=1.0)
    >>> error = parts.stated()
    >>> error.standard_error, round(error.coordinates[0], 3)
    (1.0, 2.118)
    >>> parts.scaled(np.array([10.0])).stated().standard_error
    10.0
    """

    noise: NDArray[np.float64]
    radius: float
    laplace: bool = False
    along: NDArray[np.float64] | float = 0.0
    pull: float = 0.0
    worst_pull: float = 0.0
    cut_share: float = 0.0
    pulls: NDArray[np.float64] | None = field(default=None)

    def scaled(self, scales: NDArray[np.float64]) -> ErrorParts:
        """Return these error parts in other units: coordinates are multiplied by ``scales``."""
        largest = float(scales.max())
        return replace(
            self,
            noise=self.noise * scales,
            radius=self.radius * largest,
            along=self.along * scales,
            pull=self.pull * largest,
            worst_pull=self.worst_pull * largest,
            pulls=self.pull * scales if self.pulls is None else self.pulls * scales,
        )

    def stated(self) -> MeanError:
        """Return the stated error in the units of the data."""
        variances = self.noise**2 + np.broadcast_to(np.square(self.along), self.noise.shape)
        length = _length_quantile(variances, _LAPLACE if self.laplace else _NORMAL)
        each = math.log(1.0 / (1.0 - _CONFIDENCE)) / math.sqrt(2.0) if self.laplace else 1.96
        pulls = np.full(self.noise.shape, self.pull) if self.pulls is None else self.pulls
        return MeanError(
            standard_error=math.sqrt(float(np.sum(variances))),
            bound=length + self.pull,
            confidence=_CONFIDENCE,
            radius=self.radius,
            cut_share=self.cut_share,
            coordinates=tuple((each * np.sqrt(variances) + pulls).tolist()),
            worst=length + max(self.pull, self.worst_pull),
        )


def _length_quantile(variances: NDArray[np.float64], spread: float) -> float:
    """Return the 95 % quantile of the length of independent numbers with these variances.

    Exact for normal noise with equal variances. Otherwise the squared length is approximated by a
    gamma variable of the same mean and variance.
    """
    from scipy.special import gammaincinv

    mean = float(np.sum(variances))
    if not mean > 0.0:
        return 0.0
    weights = variances / mean
    variance = spread * float(np.sum(weights**2))
    return math.sqrt(mean * variance * float(gammaincinv(1.0 / variance, _CONFIDENCE)))


@dataclass(frozen=True, kw_only=True)
class MeanRelease:
    """A released mean as an offset from the centre of the public bound."""

    mean: NDArray[np.float64]
    parts: ErrorParts
    route: Route

    @property
    def error(self) -> MeanError:
        """The stated error of the mean."""
        return self.parts.stated()


@dataclass(frozen=True, kw_only=True)
class PureRun:
    """One private mean under pure differential privacy.

    Parameters
    ----------
    users : PeopleVectors
        Offsets from the centre of the public bound. Users without usable records are absent:
        sums count them separately, and quantiles are those of the others.
    half_widths : array of shape (d,)
        Coordinate j of an offset lies between ``-half_widths[j]`` and ``half_widths[j]``.
    account : Account
        The account of all draws, which divides its epsilon.
    """

    users: PeopleVectors
    half_widths: NDArray[np.float64]
    account: Account

    @property
    def epsilon(self) -> float:
        """The epsilon that the run may spend."""
        return float_down(self.account.epsilon)

    @property
    def relation(self) -> Relation:
        """The neighbouring relation of the account."""
        return self.account.relation

    @property
    def dimension(self) -> int:
        """Number of coordinates."""
        return int(self.half_widths.size)

    def clip(self, reason: str) -> MeanRelease:
        """Clip everybody to the public range."""
        return self.clip_to_range(None, self.epsilon, reason)

    def clip_to_range(self, size: Size | None, epsilon: float, reason: str) -> MeanRelease:
        """Clip to the public range; ``size`` is the number of users if it was released before."""
        # The mean may lie far from the centre, where the noise of the number of users matters as
        # much as that of the sum: the share is best for a mean half way to the bound.
        away = math.sqrt(2.0) * cube_deviation(self.dimension)
        share = 1.0 / (1.0 + away ** (2.0 / 3.0))
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

    def noisy_mean(self, columns: slice, bound: Bound, epsilon: float, size: Size) -> NoisyOffset:
        """Clip some columns to ``bound``, and release their mean over the users who are present."""
        shape = _Shape.of(bound)
        bound, scale = shape.bound, shape.side.change(self.relation)[0] / epsilon
        if self.relation is Relation.REPLACE:
            # Votes say how many of all users, whose number is public, are absent.
            size = Size(float(max(1, self.users.n_users)), 0.0)
            bound = OrAbsent(bound, laplace_vote(shape.side))
        known = True
        grid = fitting_grid(
            bound, n_users=self.users.size_bound, relation=self.relation, noise=scale
        )
        mechanism = shape.mechanism(grid=grid, epsilon=epsilon, relation=self.relation)
        totals = self.users.total(_Offsets(columns, shape, isinstance(bound, OrAbsent)), grid)
        moved = mechanism.release(totals, count=0, account=self.account)
        if isinstance(bound, OrAbsent):
            absent, noise = float(moved[-1]) / bound.vote, scale / bound.vote
            known = not hardly_anybody(size.number, absent, noise)
            size = Size(*present_users(size.number, absent, noise))
            moved = moved[:-1]
        away = shape.units * moved / size.number
        return NoisyOffset(
            mean=shape.centre + away,
            noise=shape.units * (shape.deviation * scale / size.number),
            along=np.abs(away) * (math.sqrt(2.0) * size.scale / size.number),
            users=size.number,
            is_known=known,
        )

    def count_users(self, epsilon: float, share: float) -> tuple[Size, float]:
        """Return the number of users, public or released, and the remaining epsilon."""
        if self.relation is Relation.REPLACE:
            return Size(float(max(1, self.users.n_users)), 0.0), epsilon
        for_size, rest = split_epsilon(epsilon, [share, 1.0 - share])
        return self.buy_size(for_size), rest

    def buy_size(self, epsilon: float) -> Size:
        """Release the number of present users."""
        grid = fitting_grid(
            Interval(0.0, 1.0, centre=0.0),
            n_users=self.users.size_bound,
            relation=self.relation,
            noise=1.0 / epsilon,
        )
        mechanism = LaplaceSum(grid=grid, epsilon=epsilon, relation=self.relation)
        present = self.users.total(presence, grid)
        counted = float(mechanism.release(present, count=0, account=self.account)[0])
        return Size(max(1.0, counted), 1.0 / epsilon)


@dataclass(frozen=True)
class _Shape:
    """A bound with the kind of noise that its sum gets, in the units of that noise.

    A box is divided by its half-widths and becomes a cube around 0, with noise calibrated to the
    largest coordinate. Other bounds keep their units.
    """

    bound: Bound
    side: Bound
    centre: NDArray[np.float64]
    units: NDArray[np.float64]
    mechanism: type[LaplaceSum] = LaplaceSum
    deviation: float = math.sqrt(2.0)

    @classmethod
    def of(cls, bound: Bound) -> _Shape:
        ones = np.ones(bound.dimension)
        if not isinstance(bound, Box) or bound.dimension == 1:
            return cls(bound, bound, bound.centre, ones)
        return cls(
            Box(-ones, ones),
            Interval(-1.0, 1.0),
            bound.lower / 2.0 + bound.upper / 2.0,
            bound.upper / 2.0 - bound.lower / 2.0,
            CubeSum,
            cube_deviation(bound.dimension),
        )

    def rows(self, vectors: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return vectors in these units."""
        if self.mechanism is LaplaceSum:
            return np.ascontiguousarray(vectors)
        return (vectors - self.centre) / self.units


@dataclass(frozen=True)
class _Offsets:
    """Some columns of the users' vectors, with an optional column of votes of absent users."""

    columns: slice
    shape: _Shape
    voting: bool

    def __call__(self, users: WeightedUsers) -> NDArray[np.float64]:
        rows = self.shape.rows(users.vectors[:, self.columns])
        return marked(rows) if self.voting else rows


@dataclass(frozen=True)
class NoisyOffset:
    """A released mean, with the standard deviations due to its noise and its noisy divisor.

    ``users`` is the number by which the sum was divided. ``is_known`` is false if too few users are
    present for a meaningful mean.
    """

    mean: NDArray[np.float64]
    noise: NDArray[np.float64]
    along: NDArray[np.float64]
    users: float
    is_known: bool = True


@dataclass(frozen=True)
class Size:
    """A number of users, and the scale of the noise in it.

    >>> Size(100.0, 2.0).combined(Size(104.0, 2.0)).number
    102.0
    """

    number: float
    scale: float

    @property
    def careful(self) -> float:
        """A lower bound on the number, which fails in 5 % of all runs (e^-3)."""
        return max(1.0, self.number - 3.0 * self.scale)

    def combined(self, other: Size) -> Size:
        """Combine two noisy numbers, weighted by their precision."""
        if not (self.scale and other.scale):
            return other
        old, new = self.scale**2, other.scale**2
        number = (self.number * new + other.number * old) / (old + new)
        return Size(number, math.sqrt(old * new / (old + new)))
