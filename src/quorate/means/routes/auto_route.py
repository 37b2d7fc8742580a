"""The default method for a mean: it uses the method with the smallest expected error.

Vectors are divided by the half-widths of the public range, so that all coordinates have the same
scale. Public numbers say which method is best if the users occupy a small part of the range
(:mod:`quorate.means.routes.expected_errors`). One private statistic with a small share of the
budget shows whether they do. If they do not, and clipping to the range is expected to have the
smallest error, it is used.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from quorate._validate import float_down
from quorate.core.account.account import Account
from quorate.core.bounds.grid import Ball, Bound, Box
from quorate.core.guarantees import Relation
from quorate.core.users import UserData
from quorate.means.present_mean import MeanRelease, PureRun, Size
from quorate.means.routes.expected_errors import IN_WINDOW, OTHERS_WINDOW, WINDOW, ExpectedErrors
from quorate.means.routes.gaussian_routes import GaussianRun
from quorate.means.routes.interval_route import IntervalRun, PureSearch
from quorate.means.routes.nearness import are_near, typical_distance
from quorate.means.routes.windows import Windows
from quorate.means.weighted_users import PeopleVectors, bounded_vectors
from quorate.ranges import half_widths

__all__ = ["AutoRun", "InHalfWidths", "unit_bound"]

# This many scales of its noise a number of present users must be short before anyone is missed, and
# this many are taken off it then: e^-9 and e^-3 of all runs.
_MISSED, _CAREFUL = 9.0, 3.0
# machine: costs are added up in floating point.
_ROUNDING = 1.0 + 2.0**-40
_WIDE = "users fill most of the public range."
_FEW = "too few users to find a range privately."


@dataclass(frozen=True)
class InHalfWidths:
    """The users' mean records: offsets from the centre of ``bound``, in its half-widths."""

    bound: Bound

    def __call__(self, users: UserData) -> NDArray[np.float64]:
        """Return one row per user; NaN if absent."""
        return bounded_vectors(users.user_means(), self.bound) / half_widths(self.bound)


def unit_bound(bound: Bound) -> Bound:
    """Return the bound in units of its half-widths.

    >>> unit_bound(Box([0.0, 0.0], [2.0, 9.0])) == Box([-1.0, -1.0], [1.0, 1.0])
    True
    """
    if isinstance(bound, Ball):
        return Ball(1.0, dimension=bound.dimension)
    return Box(-np.ones(bound.dimension), np.ones(bound.dimension))


@dataclass(frozen=True, kw_only=True)
class AutoRun:
    """One mean of vectors in half-widths, by the method with the smallest expected error.

    Parameters
    ----------
    users : PeopleVectors
    bound : Bound
        From :func:`unit_bound`.
    account : Account
        The budget; the run may spend all of it.
    """

    users: PeopleVectors
    bound: Bound
    account: Account

    def adapt(self) -> MeanRelease:
        """Use the method with the smallest expected error."""
        size = self._size_for_ball() if self.account.mu else self.count()
        known = self.known(size)
        search = known.search
        if search == "interval" and size.careful < IN_WINDOW * size.number:
            # The lower bound on the users is so small that a few users would already fill a window.
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
        return self.ball(size, "a clipping ball was moved to where the users are.")

    def _is_near(self, spread: float, size: Size, cost: float) -> bool:
        """Release whether most values, or most random pairs, are within a distance ``spread``."""
        if self.users.dimension > 1:
            return are_near(self.users, spread, epsilon=cost, account=self.account)
        windows = Windows.of(self.users.column(0), size=size.number)
        return windows.are_in(OTHERS_WINDOW * spread, epsilon=cost, account=self.account)

    def known(self, size: Size) -> ExpectedErrors:
        """Return the numbers from which expected errors are computed."""
        return ExpectedErrors(
            users=size.number,
            dimension=self.users.dimension,
            epsilon=float_down(self.account.left),
            mu=math.sqrt(float(self.account.square_left)),
            reach=self.bound.l2_radius,
            diameter=2.0 if self._is_replaced else 1.0,
        )

    def _size_for_ball(self) -> Size:
        """Return the number of users, as needed before the kind of noise is chosen.

        Under replacement a ball counts absent users at no cost. Otherwise the number of users is
        estimated with a reserved part of epsilon, because a pure release costs less outside of the
        Gaussian budget.
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
        """Move a clipping ball towards the users."""
        return self._gaussian(size).ball(size, reason)

    def _gaussian(self, size: Size | None) -> GaussianRun:
        return GaussianRun(
            users=self.users, reach=self.bound.l2_radius, account=self.account, size=size
        )

    def interval(self, size: Size) -> MeanRelease:
        """Find an L1 ball around the users, or an interval in each feature, or clip."""
        known = self.known(size)
        if not known.can_afford_search:
            return self.clip(size, _FEW)
        if known.can_afford_widths:
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
        """Clip to the range, with noise calibrated to the largest coordinate, or Gaussian noise."""
        known = self.known(Size(1.0, 0.0))
        if self.account.mu and known.gaussian_error <= known.range_error:
            return self._gaussian(None).clip(reason)
        return self._pure.clip_to_range(size, known.epsilon, reason)

    def count(self) -> Size:
        """Release the number of present users.

        If few are absent, this is the number of all users.
        """
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
