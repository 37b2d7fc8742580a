"""The mean of people who differ, in few dimensions: quantiles find where to clip.

In half-widths of the public range, everything pure and paid from one account:

1. *spread*: how far apart people are, from hidden random pairs. Where it is not much less than the
   range, nothing more is spent on a search and everybody is clipped to it.
2. *centre*: a median of each coordinate, no finer than the spread asks for.
3. *tail*: an inner and an outer quantile of the distances from the centre.
4. *sum*: everybody is clipped to an interval, or to an L1 ball, where noise and clipping are
   expected to cost least (:mod:`quorate.means.routes.tails`).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from quorate._validate import float_down
from quorate.accounting.account import Account
from quorate.core.bounds.diamond import Diamond
from quorate.core.sealed import SealedRows
from quorate.estimators import Route
from quorate.grid import Bound
from quorate.guarantees import Relation
from quorate.means.present_mean import ErrorParts, MeanRelease, PureRun, Size
from quorate.means.routes import ways
from quorate.means.routes.tails import Tail
from quorate.means.weighted_users import OfUsers, PeopleVectors, WeightedUsers
from quorate.mechanisms.choices.quantiles import FloatQuantile, PrivateQuantile
from quorate.mechanisms.means.pair_quantile import PairQuantile

__all__ = ["IntervalRun", "are_near", "find_typical_distance", "hidden_distances"]

Distances = NDArray[np.float64]

# Typical distances to choose from: powers of the root of 2 from 1.3e-6 to the root of 2.
_CELLS = 40
_TYPICAL = math.sqrt(2.0) ** (np.arange(_CELLS + 1.0) - _CELLS + 1.0)
# A quantile well above the median of the distances of pairs: where most people hold the same
# number, half of the pairs are no distance apart. It is divided to be the median of normal users.
_PAIR_QUANTILE = Fraction(3, 4)
_TO_MEDIAN = 1.37
_FAR_QUANTILE = Fraction(9, 10)
# The smallest spread that is believed: below it most people hold the same vector.
_SAME = 3e-6
# So many people make enough pairs.
_MOST_PAIRED = 2**17
# Finest steps of distances, per doubling.
_PER_DOUBLING = 4
# What the number of users gets of the last step where it is private.
_SIZE_SHARE = 0.1
# The lightest tail that is believed.
_LIGHTEST = 3.0
# Users outside of an L1 ball are pulled in along several coordinates at once.
_PULL = 0.8
# So many times as many users as asked for may be beyond the outer quantile, in 98 % of runs.
_OUTSIDE = 1.7


def hidden_distances(users: PeopleVectors, account: Account) -> SealedRows:
    """Return the root mean square distances of random disjoint pairs of those who are present.

    In units of one person's spread: divided by the root of 2. The order is secret; see
    :class:`~quorate.mechanisms.means.pair_quantile.PairQuantile`.
    """
    apart = users.pair_distances(account, most=_MOST_PAIRED, only_present=True)
    return apart.map(_RootMean(users.dimension))


def find_typical_distance(
    distances: SealedRows, *, epsilon: float, account: Account, quantile: Fraction = _PAIR_QUANTILE
) -> float:
    """Release a quantile of the distances of pairs, on a geometric grid."""
    mechanism = PairQuantile(
        domain=(0, _CELLS), epsilon=epsilon, quantile=quantile, relation=account.relation
    )
    found = mechanism.release(distances.map(_Cells(_TYPICAL)), account=account)
    return float(_TYPICAL[found]) / _TO_MEDIAN


def are_near(users: PeopleVectors, near: ways.Corner, *, epsilon: float, account: Account) -> bool:
    """Release whether a share of the pairs of people are no farther apart than a width."""
    far = hidden_distances(users, account).map(_Farther(near.width))
    share = Fraction(near.share).limit_denominator(100)
    mechanism = PairQuantile(
        domain=(0, 1), epsilon=epsilon, quantile=share, relation=account.relation
    )
    return mechanism.release(far, account=account) == 0


@dataclass(frozen=True, kw_only=True)
class IntervalRun:
    """One mean by quantiles; vectors are in half-widths of the public range, between -1 and 1.

    Parameters
    ----------
    users : PeopleVectors
    account : Account
        Nothing but pure draws so far; what is left of epsilon is spent.
    size : Size
        How many users are present, as far as is known.
    """

    users: PeopleVectors
    account: Account
    size: Size

    @property
    def dimension(self) -> int:
        """Number of coordinates."""
        return self.users.dimension

    @property
    def relation(self) -> Relation:
        """The neighbours that the account is about."""
        return self.account.relation

    @property
    def _left(self) -> float:
        return float_down(self.account.left)

    def adapt(self, clip: Callable[[str], MeanRelease]) -> MeanRelease:
        """Find a clip and release the mean; ``clip`` clips to the range and says why."""
        whole, n, d = self._left, self.size.number, self.dimension
        costs = ways.search_costs(users=n, dimension=d, epsilon=whole)
        distances = hidden_distances(self.users, self.account)
        spread = find_typical_distance(distances, epsilon=costs.spread, account=self.account)
        if spread < _SAME:
            spread = find_typical_distance(
                distances, epsilon=costs.spread, account=self.account, quantile=_FAR_QUANTILE
            )
        if spread < _SAME:
            return clip("most users hold the same vector; a small interval cuts all others.")
        left = self._left
        costs = ways.search_costs(users=n, dimension=d, epsilon=whole, spread=spread)
        worth = ways.is_worth_searching(
            users=n, dimension=d, epsilon=left, spread=spread, costs=costs
        )
        if not worth:
            return clip("the range is not much wider than the users.")
        return self._search(clip, spread, whole)

    def _search(
        self, clip: Callable[[str], MeanRelease], spread: float, whole: float
    ) -> MeanRelease:
        """Find a centre and how far users reach from it, at prices that are parts of ``whole``."""
        n, d = self.size.number, self.dimension
        costs = ways.search_costs(users=n, dimension=d, epsilon=whole, spread=spread)
        centre = np.array([self._median(j, spread, costs.centre / d) for j in range(d)])
        bound, parts = self._ball(centre, spread, costs)
        if bound is None:
            return clip("no interval is seen to hold nearly all users but the range.")
        return self._release(bound, parts, spread)

    def _median(self, column: int, spread: float, epsilon: float) -> float:
        return FloatQuantile(
            lower=-1.0,
            upper=1.0,
            resolution=spread / 2.0,
            epsilon=epsilon,
            relation=self.relation,
        ).release(self.users.column(column), account=self.account)

    def _ball(
        self, centre: NDArray[np.float64], spread: float, costs: ways.SearchCosts
    ) -> tuple[Bound | None, _Cut]:
        """Return an L1 ball around ``centre``, or nothing if the range is as good."""
        farthest = float(np.sum(1.0 + np.abs(centre)))
        tail = self._tail(
            _Apart(centre),
            start=0.25 * self.dimension * spread,
            spread=spread,
            farthest=farthest,
            inner=costs.inner,
            outer=costs.outer,
        )
        radii, moved = tail.candidates, _PULL * tail.excess()
        noise = self._noise_of_width(2.0 * radii) * math.sqrt(self.dimension)
        loss = np.hypot(noise, moved)
        best = int(np.argmin(loss))
        width = 2.0 * self.dimension * ways.cube_gain(self.dimension)
        of_range = self._noise_of_width(width) * math.sqrt(self.dimension)
        if loss[best] > ways.WORTHWHILE * of_range:
            return None, _Cut(0.0, 0.0, 0.0)
        radius = _rounded(float(radii[best]))
        pull = _PULL * float(tail.excess(cautious=True)[best])
        return Diamond(radius, centre=centre), self._cut(pull, tail, farthest - radius)

    def _noise_of_width(self, width: NDArray[np.float64] | float) -> NDArray[np.float64]:
        """Return the noise of a sum in one coordinate, in users, by how far one user moves it."""
        change = 1.0 if self.relation is Relation.REPLACE else 0.5
        return np.asarray(math.sqrt(2.0) * change / self._left * np.asarray(width))

    def _tail(
        self,
        distance: OfUsers,
        *,
        start: float,
        spread: float,
        farthest: float,
        inner: float,
        outer: float,
    ) -> Tail:
        """Release how far half and nearly all of the users are, at these prices."""
        steps = max(1, math.ceil(_PER_DOUBLING * math.log2(max(farthest / start, 1.0))))
        grid = np.minimum(start * 2.0 ** (np.arange(steps + 1.0) / _PER_DOUBLING), farthest)
        grid[-1] = farthest
        cells = self.users.each(distance).present().map(_Cells(grid))
        outside = ways.outside_users(users=self.size.number, epsilon=outer, spread=spread)
        outer_share = outside / self.size.number
        within = float(grid[self._quantile(cells, steps, 0.5, inner)])
        return Tail(
            outer=float(grid[self._quantile(cells, steps, outer_share, outer)]),
            outer_share=outer_share,
            farthest=farthest,
            users=self.size.number,
            inner=within,
            lightest=_LIGHTEST,
        )

    def _quantile(self, cells: SealedRows, last: int, share: float, epsilon: float) -> int:
        """Release the cell beyond which this share of the users lies."""
        return PrivateQuantile(
            domain=(0, last),
            epsilon=epsilon,
            quantile=Fraction(1.0 - share).limit_denominator(1000),
            relation=self.relation,
        ).release(cells, account=self.account)

    def _cut(self, pull: float, tail: Tail, farthest: float) -> _Cut:
        """Return what clipping may have moved, per user."""
        n = self.size.number
        outside = min(1.0, _OUTSIDE * tail.outer_share)
        return _Cut(pull / n, outside * farthest, outside)

    def _release(self, bound: Bound, cut: _Cut, spread: float) -> MeanRelease:
        run = PureRun(users=self.users, half_widths=np.ones(self.dimension), account=self.account)
        size, epsilon = self.size, self._left
        if self.relation is not Relation.REPLACE:
            # The mean may lie far from the middle of a skewed interval, where the noise of the
            # number of users counts.
            better, epsilon = run.count_users(epsilon, _SIZE_SHARE)
            size = size.combined(better)
        found = run.noisy_mean(slice(None), bound, epsilon, size)
        # A search among far fewer people than it was told of may have ended anywhere.
        known = found.is_known and 2.0 * found.users > size.number
        parts = ErrorParts(
            noise=found.noise,
            laplace=True,
            along=found.along,
            pull=cut.pull if known else math.sqrt(self.dimension),
            worst_pull=cut.worst,
            radius=bound.l1_radius,
            cut_share=cut.share,
        )
        reason = "an interval around the users was found by quantiles."
        route = Route(name="interval", reason=reason, spread=spread)
        return MeanRelease(mean=found.mean, parts=parts, route=route)


def _rounded(radius: float) -> float:
    """Return a radius of few bits, a little larger: a whole number of steps of any grid."""
    mantissa, power = math.frexp(radius)
    return math.ldexp(math.ceil(mantissa * 2.0**16), power - 16)


@dataclass(frozen=True)
class _Apart:
    """The L1 distance of each user from a centre; NaN if absent."""

    centre: NDArray[np.float64]

    def __call__(self, users: WeightedUsers) -> Distances:
        away = np.abs(users.vectors - self.centre)
        return np.asarray(np.vecdot(away, np.ones(self.centre.size)))


@dataclass(frozen=True)
class _RootMean:
    """Root mean square distances of a coordinate."""

    dimension: int

    def __call__(self, distances: Distances) -> Distances:
        return distances / math.sqrt(self.dimension)


@dataclass(frozen=True)
class _Cells:
    """The place of the first of some distances that is not shorter; the last, if none is."""

    limits: Distances

    def __call__(self, distances: Distances) -> NDArray[np.int64]:
        cells = np.searchsorted(self.limits, distances, side="left")
        return np.minimum(cells, self.limits.size - 1).astype(np.int64)


@dataclass(frozen=True)
class _Farther:
    """Whether a distance is beyond a limit, as 0 or 1."""

    limit: float

    def __call__(self, distances: Distances) -> NDArray[np.int64]:
        return (distances > self.limit).astype(np.int64)


@dataclass(frozen=True)
class _Cut:
    """How far clipping is likely to move the mean, how far it can, and how many may be outside."""

    pull: float
    worst: float
    share: float
