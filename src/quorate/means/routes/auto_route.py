"""The default way to a mean: near the best of all ways, for people who are alike or differ.

Vectors are in half-widths of the public range, so that no coordinate drowns another. First it is
checked privately whether there are any users; then :mod:`quorate.means.routes.ways` chooses the
route, from the number of users, the number of dimensions and the budget. Clipping to the range is a
candidate everywhere, with pure or Gaussian noise, whichever is smaller.

A cheap question before any search is in how small a corner of the range nearly all users are. It is
cut into cells of a fixed width, in several shifted ways, so that a cluster that is a little
narrower than a cell lies inside of one. How many users the fullest cell holds is a number that one
user moves by at most 1, whatever the cells and however many there are; it is compared with a
threshold, for one width or several. Whether users fill the range or only a corner of it is decided
from *all* users; distances of pairs would use half as many.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import reduce
from typing import Any

import numpy as np
from numpy.typing import NDArray

from quorate._validate import float_down
from quorate.accounting.account import Account
from quorate.core.sealed import Sealed
from quorate.grid import Ball, Bound, Box
from quorate.guarantees import Relation
from quorate.means.present_mean import MeanRelease, Size
from quorate.means.routes import ways
from quorate.means.routes.drifting_ball import DriftingBall
from quorate.means.routes.interval_route import IntervalRun, are_near
from quorate.means.routes.one_feature import FeaturesRun
from quorate.means.routes.quantile_route import QuantileRun
from quorate.means.routes.windows import Windows
from quorate.means.vector_mean import gaussian_run
from quorate.means.weighted_users import PeopleVectors, WeightedUsers, bounded_vectors
from quorate.mechanisms.choices.choose import ChooseBest
from quorate.ranges import half_widths
from quorate.users import UserData

__all__ = [
    "AutoRun",
    "InHalfWidths",
    "are_in_a_corner",
    "fullest_cell",
    "unit_bound",
]

# So many scales of its noise a number of present users must be short before anyone is missed, and
# so many are taken off it then.
_MISSED, _CAREFUL = 9.0, 3.0
# Users x epsilon for whom questions are set aside where their number is not public.
_FEW = 200.0
_WIDE = "the range is not much wider than the users."
# Costs are added up in floating point.
_ROUNDING = 1.0 + 2.0**-40
# The cells are shifted by this many equal steps in each coordinate.
_SHIFTS = 4


@dataclass(frozen=True)
class InHalfWidths:
    """The users' mean records as offsets from the centre of ``bound``, in its half-widths."""

    bound: Bound

    def __call__(self, users: UserData) -> NDArray[np.float64]:
        """Return one row per user; NaN if absent."""
        return bounded_vectors(users.user_means(), self.bound) / half_widths(self.bound)


def unit_bound(bound: Bound) -> Bound:
    """Return what a bound becomes in its half-widths.

    >>> unit_bound(Box([0.0, 0.0], [2.0, 9.0])) == Box([-1.0, -1.0], [1.0, 1.0])
    True
    """
    if isinstance(bound, Ball):
        return Ball(1.0, dimension=bound.dimension)
    return Box(-np.ones(bound.dimension), np.ones(bound.dimension))


@dataclass(frozen=True, kw_only=True)
class AutoRun:
    """One mean of vectors in half-widths, by the way that suits.

    Parameters
    ----------
    users : PeopleVectors
    bound : Bound
        From :func:`unit_bound`.
    account : Account
        All of it may be spent.
    """

    users: PeopleVectors
    bound: Bound
    account: Account

    @property
    def _pure(self) -> QuantileRun:
        return QuantileRun(
            users=self.users, half_widths=np.ones(self.users.dimension), account=self.account
        )

    @property
    def _left(self) -> float:
        return float_down(self.account.left)

    def adapt(self) -> MeanRelease:
        """Look who is there and go the way that suits."""
        self._set_aside()
        size = self.count()
        way = ways.first_way(
            users=size.number,
            dimension=self.users.dimension,
            epsilon=self._whole,
            mu=self.account.mu,
        )
        many_absent = self._is_replaced and size.number < 0.5 * self.users.n_users
        if many_absent and way.name in ("ball", "drift"):
            # A ball would shrink to the absent, who have no place.
            return self.clip(size, "few of the users hold a usable record.")
        if way.name == "clip":
            return self.clip(size, way.reason)
        if way.name == "ball":
            return gaussian_run(
                self.account,
                self.users,
                self.bound,
                fallback=lambda reason: self.drift(size, reason),
            ).adapt()
        if way.name == "interval":
            return self.interval(size)
        told: dict[str, Any] = {
            "users": size.number,
            "dimension": self.users.dimension,
            "epsilon": self._whole,
        }
        if ways.is_paired(way=way.name, relation=self.account.relation, **told):
            cost = ways.question_cost(way=way.name, **told)
            if not are_near(self.users, ways.NEAR[way.name], epsilon=cost, account=self.account):
                return self.clip(size, _WIDE)
        elif ways.is_tested(**told) and not self._is_in_a_corner(size):
            return self.clip(size, _WIDE)
        if way.name == "drift":
            return self.drift(size, way.reason)
        return self._pure.by_quantiles(size, self._left, way.reason)

    @property
    def _whole(self) -> float:
        return float_down(self.account.epsilon)

    def _set_aside(self) -> None:
        """Keep epsilon for the pure questions that may come before a ball drifts to few users.

        A pure question that was not set aside costs a square beside Gaussian noise, which is more.
        """
        d, mu = self.users.dimension, self.account.mu
        # Where it is not public how many users there are: enough for few.
        n = float(max(1, self.users.n_users)) if self._is_replaced else _FEW / self._whole
        told = {"users": n, "epsilon": self._whole}
        way = ways.first_way(dimension=d, mu=mu, **told).name
        asked = ways.is_tested(dimension=d, **told) or ways.is_paired(
            way=way, dimension=d, relation=self.account.relation, **told
        )
        if mu > 0.0 and way == "drift" and asked:
            kept = ways.question_cost(dimension=d, way=way, **told)
            if not (self._is_replaced and ways.is_few(dimension=d, **told)):
                kept += ways.present_cost(**told)
            self.account.set_aside(kept * _ROUNDING)

    def _is_in_a_corner(self, size: Size) -> bool:
        """Ask whether nearly all users are in a corner of the range."""
        told: dict[str, Any] = {
            "users": size.number,
            "dimension": self.users.dimension,
            "epsilon": self._whole,
        }
        cost = ways.question_cost(**told)
        corners = ways.corners(mu=self.account.mu, **told)
        if self.users.dimension == 1:
            return self._windows(size).are_in(corners, epsilon=cost, account=self.account)
        return are_in_a_corner(
            self.users, corners, size=_surely(size), epsilon=cost, account=self.account
        )

    def _windows(self, size: Size, column: int = 0) -> Windows:
        return Windows.of(self.users.column(column), size=_surely(size))

    def drift(self, size: Size, reason: str) -> MeanRelease:
        """Let a ball drift to the users."""
        return DriftingBall(
            users=self.users, reach=self.bound.l2_radius, account=self.account, size=size
        ).run(reason)

    def interval(self, size: Size) -> MeanRelease:
        """Find an interval or an L1 ball, or clip to the range."""
        told: dict[str, Any] = {"users": size.number, "epsilon": self._whole}
        d = self.users.dimension
        if ways.is_tested(dimension=d, **told) and not self._is_in_a_corner(size):
            return self.clip(size, _WIDE)
        if d > 1:
            run = IntervalRun(users=self.users, account=self.account, size=size)
            return run.adapt(lambda reason: self.box(size, reason))
        first = max(
            corner.width for corner in ways.corners(dimension=1, mu=self.account.mu, **told)
        )
        return self._by_features(size, first)

    def box(self, size: Size, reason: str) -> MeanRelease:
        """Find an interval in each feature if enough users are there, otherwise clip."""
        if not ways.is_boxed(users=size.number, dimension=self.users.dimension, epsilon=self._left):
            return self.clip(size, reason)
        return self._by_features(size, ways.WIDEST)

    def _by_features(self, size: Size, first: float) -> MeanRelease:
        cost = ways.width_cost(users=size.number, epsilon=self._whole)
        widths = [
            self._windows(size, column).how_narrow(first, epsilon=cost, account=self.account)
            for column in range(self.users.dimension)
        ]
        run = FeaturesRun(users=self.users, account=self.account, size=size)
        return run.adapt(lambda reason: self.clip(size, reason), widths=widths, epsilon=self._whole)

    def clip(self, size: Size | None, reason: str) -> MeanRelease:
        """Clip to the range, with noise of the largest coordinate or Gaussian noise."""
        mu = math.sqrt(self.account.square_left)
        box = isinstance(self.bound, Box)
        cube = ways.cube_is_better(dimension=self.users.dimension, epsilon=self._left, mu=mu)
        if mu == 0.0 or (box and cube):
            return self._pure.clip_to_range(size, self._left, reason)
        return gaussian_run(self.account, self.users, self.bound).clip(reason)

    def count(self) -> Size:
        """Release how many users are present; everybody, unless many are seen to be missing.

        Few users are not counted where they are asked whether they are in a corner of the range:
        those who are missing are in none.
        """
        if self._is_replaced:
            n = float(max(1, self.users.n_users))
            if ways.is_few(users=n, dimension=self.users.dimension, epsilon=self._whole):
                return Size(n, 0.0)
            found = self._pure.buy_size(ways.present_cost(users=n, epsilon=self._whole))
            if found.number >= n - _MISSED * found.scale:
                return Size(n, 0.0)
            return replace(found, number=max(1.0, found.number - _CAREFUL * found.scale))
        return self._pure.buy_size(ways.present_cost(users=1.0, epsilon=self._whole))

    @property
    def _is_replaced(self) -> bool:
        return self.account.relation is Relation.REPLACE


def _surely(size: Size) -> float:
    """Return how many users there are at least, except for a few runs in a hundred."""
    return max(1.0, size.number - _CAREFUL * size.scale)


@dataclass(frozen=True)
class _Cells:
    """The cell of each user in each shifted grid, -1 if absent; vectors are between -1 and 1."""

    width: float
    dimension: int

    @property
    def side(self) -> int:
        return math.ceil(2.0 / self.width) + 1

    @property
    def shifts(self) -> list[tuple[int, ...]]:
        return list(itertools.product(range(_SHIFTS), repeat=self.dimension))

    def __call__(self, users: WeightedUsers) -> NDArray[np.int64]:
        labels = np.empty((users.n_users, len(self.shifts)), dtype=np.int64)
        # Cells of the absent are taken back below.
        rows = (np.where(users.present[:, None], users.vectors, 0.0) + 1.0) / self.width
        for own, shift in zip(labels.T, self.shifts, strict=True):
            moved = np.floor(rows + np.array(shift) / _SHIFTS)
            places = np.clip(moved, 0, self.side - 1).astype(np.int64)
            own[:] = np.ravel_multi_index(tuple(places.T), (self.side,) * self.dimension)
        labels[~users.present] = -1
        return labels


def fullest_cell(users: PeopleVectors, width: float) -> Sealed:
    """Return how many users the fullest cell holds: one user moves it by at most 1.

    A user is in one cell of each shifted grid, so that no cell changes by more than 1.
    """
    cells = _Cells(width, users.dimension)
    held = users.tally(cells, cells.side**users.dimension, labellings=len(cells.shifts))
    return held.max()


def are_in_a_corner(
    users: PeopleVectors,
    corners: Sequence[ways.Corner],
    *,
    size: float,
    epsilon: float,
    account: Account,
) -> bool:
    r"""Release whether one of some corners holds the share of ``size`` users that it should.

    By how many users the best of them is above its threshold is a number that one user who is
    replaced, added or removed moves by at most 1. The answer is wrong with a probability of at most
    :math:`e^{-\epsilon k}`, k being how far that number is from 0.

    >>> from quorate.core.people import People
    >>> account = Account.open(epsilon=1.0)
    >>> people = People(UserData(np.full((400, 1), 0.3), offsets=range(401)), account.relation)
    >>> users = PeopleVectors.of(people, UserData.user_means, Box([-1.0], [1.0]))
    >>> told = {"size": 400.0, "epsilon": 1.0, "account": account}
    >>> are_in_a_corner(users, [ways.Corner(0.2, 0.75)], **told)
    True
    """
    above = [
        fullest_cell(users, corner.width) - math.ceil(corner.share * size) for corner in corners
    ]
    more = reduce(Sealed.beside, above).max()
    mechanism = ChooseBest(candidates=2, epsilon=epsilon, relation=account.relation)
    return mechanism.release((-more).beside(more), account=account) == 1
