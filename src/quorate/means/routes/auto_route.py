"""The default way to a mean: near the best of all ways, for people who are alike or differ.

Vectors are in half-widths of the public range, so that no coordinate drowns another. Which way is
expected to be best for people who are in a small part of the range follows from public numbers
(:mod:`quorate.means.routes.ways`). One cheap private look tells whether they are, and they are
clipped to the range if clipping is then expected to cost least.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from quorate._validate import float_down
from quorate.accounting.account import Account
from quorate.grid import Ball, Bound, Box
from quorate.guarantees import Relation
from quorate.means.present_mean import MeanRelease, PureRun, Size
from quorate.means.routes.gaussian_routes import GaussianRun
from quorate.means.routes.interval_route import IntervalRun, PureSearch
from quorate.means.routes.nearness import are_near, typical_distance
from quorate.means.routes.ways import IN_WINDOW, WINDOW, Known
from quorate.means.routes.windows import Windows
from quorate.means.weighted_users import PeopleVectors, bounded_vectors
from quorate.ranges import half_widths
from quorate.users import UserData

__all__ = ["AutoRun", "InHalfWidths", "unit_bound"]

# So many scales of its noise a number of present users must be short before anyone is missed, and
# so many are taken off it then: e^-9 and e^-3 of all runs.
_MISSED, _CAREFUL = 9.0, 3.0
# Costs are added up in floating point.
_ROUNDING = 1.0 + 2.0**-40
_WIDE = "the range is not much wider than the users."
_FEW = "too few users to find a range privately."


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

    def adapt(self) -> MeanRelease:
        """Go the way that is expected to err least."""
        size = self._size_for_ball() if self.account.mu else self.count()
        known = self.known(size)
        search = known.search
        if search == "interval" and size.careful < IN_WINDOW * size.number:
            # So few are sure to be there that any few of them would fill a window.
            search = "ball" if self.account.mu else "clip"
        if search == "clip":
            return self.clip(size, _FEW)
        if search == "interval":
            return self.interval(self.count() if self._is_replaced else size)
        if self._is_replaced and known.is_asked:
            cost = known.nearness
            self.account.set_aside(cost * _ROUNDING)
            if not self._is_near(self.known(size).widest_ball, size, cost):
                return self.clip(size, _WIDE if known.is_certain else _FEW)
        return self.ball(size, "a ball drifted from the range to where the users are.")

    def _is_near(self, spread: float, size: Size, cost: float) -> bool:
        """Ask whether people are at most so far apart: all of one feature, or pairs of them."""
        if self.users.dimension > 1:
            return are_near(self.users, spread, epsilon=cost, account=self.account)
        windows = Windows.of(self.users.column(0), size=size.number)
        return windows.are_in(WINDOW * spread, epsilon=cost, account=self.account)

    def known(self, size: Size) -> Known:
        """Return the numbers that ways are asked with."""
        return Known(
            users=size.number,
            dimension=self.users.dimension,
            epsilon=float_down(self.account.left),
            mu=math.sqrt(float(self.account.square_left)),
            reach=self.bound.l2_radius,
            diameter=2.0 if self._is_replaced else 1.0,
        )

    def _size_for_ball(self) -> Size:
        """Return how many users there are, before it is decided whether noise is Gaussian.

        Under replacement a ball counts the absent at no cost; otherwise their number is bought with
        a part of epsilon that is set aside, because beside Gaussian noise it would cost a square.
        """
        if self._is_replaced:
            return Size(float(max(1, self.users.n_users)), 0.0)
        self.account.set_aside(self.known(Size(1.0, 0.0)).presence * _ROUNDING)
        return self.count()

    @property
    def _pure(self) -> PureRun:
        return PureRun(
            users=self.users, half_widths=np.ones(self.users.dimension), account=self.account
        )

    def ball(self, size: Size, reason: str) -> MeanRelease:
        """Let a ball drift to the users."""
        return self._gaussian(size).ball(size, reason)

    def _gaussian(self, size: Size | None) -> GaussianRun:
        return GaussianRun(
            users=self.users, reach=self.bound.l2_radius, account=self.account, size=size
        )

    def interval(self, size: Size) -> MeanRelease:
        """Find an L1 ball around the users, or an interval in each feature, or clip."""
        known = self.known(size)
        if not known.can_look:
            return self.clip(size, _FEW)
        if known.looks_at_all:
            run = IntervalRun(users=self.users, account=self.account, size=size)
            return run.adapt(known, lambda reason: self.clip(size, reason))
        spread = typical_distance(self.users, epsilon=known.spacing, account=self.account)
        known = self.known(size)
        if spread is None or known.diamond_error(spread) >= known.range_error:
            return self.clip(size, _WIDE)
        search = PureSearch(users=self.users, account=self.account, size=size)
        widths = [min(1.0, WINDOW * spread)] * self.users.dimension
        return search.diamond(search.middles(widths, known), spread, known)

    def clip(self, size: Size | None, reason: str) -> MeanRelease:
        """Clip to the range, with noise of the largest coordinate or Gaussian noise."""
        known = self.known(Size(1.0, 0.0))
        if self.account.mu and known.gaussian_error <= known.range_error:
            return self._gaussian(None).clip(reason)
        return self._pure.clip_to_range(size, known.epsilon, reason)

    def count(self) -> Size:
        """Release how many users are present; everybody, unless many are seen to be missing."""
        if not self._is_replaced:
            return self._pure.buy_size(self.known(Size(1.0, 0.0)).presence)
        everybody = Size(float(max(1, self.users.n_users)), 0.0)
        found = self._pure.buy_size(self.known(everybody).presence)
        if found.number >= everybody.number - _MISSED * found.scale:
            return everybody
        return replace(found, number=max(1.0, found.number - _CAREFUL * found.scale))

    @property
    def _is_replaced(self) -> bool:
        return self.account.relation is Relation.REPLACE
