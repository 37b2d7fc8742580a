"""The mean under a Gaussian budget: clip to the range, shrink a ball, or start from a core.

One :class:`GaussianRun` spends one :class:`~quorate.accounting.account.Account`. It releases the
spread, compares the predicted errors of the routes (from released numbers), and uses the best.
Whatever it decides, its cost is the account plus the reserve of the core test, which is declared
whether or not the test takes place.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from quorate._validate import exact, float_down
from quorate.accounting.account import Account
from quorate.estimators import Route
from quorate.exceptions import NumericalFailure
from quorate.grid import Interval
from quorate.guarantees import Relation
from quorate.means.measuring import can_shrink, shrink_by_measuring
from quorate.means.present_mean import ErrorParts, MeanRelease, presence
from quorate.means.routes import ways
from quorate.means.routes.budget_split import (
    CORE_RADII,
    RADIUS_CERTAINTY,
    CorePlan,
    Setting,
    ShrinkPlan,
    plan_core,
    plan_shrinking,
    radius_share,
    spread_looks_cost,
)
from quorate.means.routes.radius import find_spread, smallest_spread
from quorate.means.routes.shrinking import clipped_mean, shrink
from quorate.means.weighted_users import OfUsers, PeopleVectors, WeightedUsers
from quorate.mechanisms.means.friendly_core import CoreMean, CoreTest, Friends, IntegerUsers
from quorate.mechanisms.sums import GaussianSum, NoisySearch, fitting_grid, looks_needed

__all__ = ["GaussianRun"]

# Share of the squared budget that tests leave: its mean has 2.2 times the noise at most.
_KEPT = 0.22
# A sum of weights below this many standard deviations of its noise is no basis for a mean.
_VISIBLE = 10.0
_CAP_SHARE = 0.015
# Share of users who get full weight: fewer would leave too little weight to find the centre with.
_CAP_OUTSIDE = 0.25
_NORMALISER_SHARE = 0.02
_SIZE_SHARE = 0.03
# How far users outside of the last radius are taken to pull the mean, in radii. A radius that is
# larger by far than the spread had to reach for users who lie apart from the others. More of these
# may have been left outside, all on one side: so much more for each spread beyond a usual radius,
# and up to so much times the share that was left outside.
_PULL, _USUAL, _APART, _MOST_APART = 0.15, 1.2, 5.0, 4.0
# A search that leaves more than this share outside may leave all of those outside who lie apart:
# so much more for what is above it.
_MANY, _OUTSIDE = 0.25, 3.0
_RECORD_CAPS = 2.0 ** np.arange(0.0, 20.5, 0.5)


@dataclass(kw_only=True)
class GaussianRun:
    """One private mean under Gaussian noise.

    Parameters
    ----------
    users : PeopleVectors
        Offsets from the centre of the public bound.
    reach : float
        Radius of the public bound.
    account : Account
    core_delta : float
        Reserve for the core test; 0 rules the core out.
    hostile : float
        Share of users who may be anywhere.
    relation : Relation
    spread : float or None
        A public spread, if the caller knows one.
    records : float or None
        Number of records from which on a user has full weight; ``None`` buys it if there are
        it is known how many they hold.
    fallback : callable or None
        What to do, with a reason, where no route is possible; by default :meth:`clip`.
    """

    users: PeopleVectors
    reach: float
    account: Account
    core_delta: float
    hostile: float
    relation: Relation
    spread: float | None = None
    records: float | None = None
    fallback: Callable[[str], MeanRelease] | None = None
    _size: float | None = field(init=False, default=None)
    _size_error: float = field(init=False, default=0.0)
    _effective: float = field(init=False, default=0.0)
    _normaliser_error: float = field(init=False, default=0.0)
    _core_spread: float = field(init=False, default=0.0)

    @property
    def dimension(self) -> int:
        """Number of coordinates."""
        return self.users.dimension

    @property
    def diameter(self) -> float:
        """Change of a clipped sum by one user, in radii."""
        return 2.0 if self.relation is Relation.REPLACE else 1.0

    def clip(self, reason: str) -> MeanRelease:
        """Clip everybody to the public bound and spend all that is left."""
        if self.relation is not Relation.REPLACE:
            # The mean may lie anywhere in the bound, and so far from the centre that the noise of
            # the number of users is half of all noise.
            self._count_users(1.0 / (1.0 + 2.0 * math.sqrt(self.dimension)))
        n_users = self._number_of_users()
        self.records = None
        multiplier = self.account.multiplier(float(self.account.square_left))
        released = clipped_mean(
            self.users.equally(),
            np.zeros(self.dimension),
            account=self.account,
            radius=self.reach,
            noise_multiplier=multiplier,
            effective_users=n_users,
            relation=self.relation,
            relative_error=self._size_error / n_users,
        )
        parts = ErrorParts(
            noise=np.full(self.dimension, released.standard_error),
            along=released.along / math.sqrt(self.dimension),
            pull=0.0 if released.is_known else self.reach,
            radius=self.reach,
        )
        return MeanRelease(mean=released.mean, parts=parts, route=self._route("clip", reason))

    def adapt(self, *, core: bool | None = None) -> MeanRelease:
        """Release a spread and use the best route; ``core`` forces or forbids the friendly core."""
        n_users = self._number_of_users()
        self._weigh(n_users)
        self._normalise(n_users)
        if self.spread is None and self.relation is not Relation.REPLACE:
            return self._measured(n_users)
        if self.spread is None:
            if not self._can_find_spread():
                return self._fall_back("there are too few users to find their spread privately.")
            self.spread = self._find_spread(self.users)
            if self.spread <= smallest_spread(self.reach) and not self.hostile:
                return self.clip("most users hold the same vector; a small ball cuts all others.")
        self._core_spread = self.spread
        if self.users.weighted:
            self._reconsider_weights(n_users)
        release = self._from_core(n_users, wanted=core)
        if release is not None:
            return release
        ball = self._plan_ball()
        if ball is None and self.users.weighted:
            self._drop_weights(n_users)
            self.spread = self._core_spread
            ball = self._plan_ball()
        clipping = self.diameter * self.reach * math.sqrt(self.dimension)
        clipping /= n_users * math.sqrt(float(self.account.square_left))
        if ball is None or not ways.ball_is_worthwhile(ball.error, clipping=clipping):
            return self._fall_back("every other route would need more users for this spread.")
        return self._finish(
            np.zeros(self.dimension),
            start=self.reach,
            plan=ball,
            n_users=n_users,
            route=self._route("ball", "a ball can shrink from the bound to the users' spread."),
        )

    def _fall_back(self, reason: str) -> MeanRelease:
        """Do what is possible without a plan."""
        return (self.fallback or self.clip)(reason)

    def _from_core(self, n_users: float, *, wanted: bool | None) -> MeanRelease | None:
        """Return a mean that starts from a friendly core, or ``None`` if there is none."""
        sensible = wanted or (wanted is None and self.dimension >= ways.CORE_DIMENSIONS)
        plan = self._plan_core(self.setting) if sensible else None
        if plan is None:
            return None
        ball = self._plan_ball()
        better = ball is None or ways.core_is_worthwhile(plan.error, ball=ball.error)
        if not (wanted or better):
            return None
        found = self._core_centre(plan)
        if found is None:
            return None
        centre, noise = found
        start = math.hypot(self.setting.spread, noise * self.setting.noise_length)
        rest = plan_shrinking(self.setting, start=start, square=float(self.account.square_left))
        if rest is None:
            return None
        return self._finish(
            centre,
            start=start,
            plan=rest,
            n_users=n_users,
            route=self._route("core", "almost all users have most of the others nearby."),
        )

    def _reconsider_weights(self, n_users: float) -> None:
        """Count everybody equally if the weights leave too little to find the centre with."""
        if self._plan_ball() is not None or not self._can_find_spread():
            return
        self._core_spread = self._find_spread(self.users.equally())
        equal = replace(
            self.setting,
            effective_users=n_users,
            spread=self._core_spread,
            normaliser_error=0.0,
        )
        square = float(self.account.square_left)
        plans = (plan_shrinking(equal, start=self.reach, square=square), self._plan_core(equal))
        errors = [plan.error for plan in plans if plan is not None]
        weighted = self._plan_core(self.setting)
        if weighted is None or min(errors, default=math.inf) < weighted.error:
            self._drop_weights(n_users)
            self.spread = self._core_spread

    def _finish(
        self,
        centre: NDArray[np.float64],
        *,
        start: float,
        plan: ShrinkPlan,
        n_users: float,
        route: Route,
    ) -> MeanRelease:
        final = shrink(
            self.users,
            centre,
            start=start,
            plan=plan,
            setting=self.setting,
            account=self.account,
            n_users=n_users,
            hostile=self.hostile,
            relation=self.relation,
        )
        share, beyond = final.cut_share, final.radius / self.setting.spread - _USUAL
        pull = _PULL + min(_MOST_APART * share, max(0.0, _APART * beyond))
        pull += _OUTSIDE * max(0.0, share - _MANY)
        parts = ErrorParts(
            noise=np.full(self.dimension, final.standard_error),
            along=final.along / math.sqrt(self.dimension),
            pull=pull * share * final.radius if final.is_known else self.reach,
            worst_pull=final.cut_share * 2.0 * self.reach,
            radius=final.radius,
            cut_share=final.cut_share,
        )
        return MeanRelease(mean=final.mean, parts=parts, route=route)

    def _route(self, name: str, reason: str) -> Route:
        return Route(name=name, reason=reason, spread=self.spread, records=self.records)

    @property
    def setting(self) -> Setting:
        """The public and released numbers that plans are made from."""
        if self.spread is None:
            raise NumericalFailure("Expected a spread before a plan. Please report this.")
        return Setting(
            effective_users=self._effective,
            dimension=self.dimension,
            reach=self.reach,
            spread=self.spread,
            diameter=self.diameter,
            drift=max(0.1, 1.25 * self.hostile),
            normaliser_error=self._normaliser_error,
        )

    def _plan_ball(self) -> ShrinkPlan | None:
        return plan_shrinking(
            self.setting, start=self.reach, square=float(self.account.square_left)
        )

    def _normalise(self, n_users: float) -> None:
        """Release the sum of the weights, if users are weighted."""
        self._effective, self._normaliser_error = n_users, self._size_error / n_users
        if not self.users.weighted:
            return
        multiplier = self.account.multiplier(_NORMALISER_SHARE * float(self.account.square_left))
        total = self._noisy_sum(_weights, multiplier)
        if total < _VISIBLE * multiplier:
            # Hardly anybody has enough records for a weight.
            self._drop_weights(n_users)
        else:
            self._effective, self._normaliser_error = total, multiplier / total

    def _drop_weights(self, n_users: float) -> None:
        self.users, self.records = self.users.equally(), None
        self._effective, self._normaliser_error = n_users, 0.0

    def _weigh(self, n_users: float) -> None:
        """Weight users by their records, up to a cap that is public or found privately."""
        if not self.users.counted:
            return
        if self.records is None:
            looks = looks_needed(_RECORD_CAPS.size)
            multiplier = self.account.multiplier(
                _CAP_SHARE * float(self.account.square_left), count=looks
            )
            outside = min(0.5, max(_CAP_OUTSIDE, RADIUS_CERTAINTY * multiplier / n_users))
            search = NoisySearch(
                thresholds=_RECORD_CAPS,
                target=(1.0 - outside) * n_users,
                noise_multiplier=multiplier,
                relation=self.relation,
            )
            counts = self.users.count_records(search.thresholds)
            self.records = float(_RECORD_CAPS[search.release_counts(counts, account=self.account)])
        self.users = self.users.weighed(self.records)

    def _number_of_users(self) -> float:
        """Return n, which is public under replacement; otherwise buy how many are present."""
        if self.relation is Relation.REPLACE:
            return float(max(1, self.users.n_users))
        if self._size is None:
            self._count_users(_SIZE_SHARE)
        return max(1.0, self._size or 0.0)

    def _count_users(self, share: float) -> None:
        """Release the number of present users, or a better one, with a share of what is left."""
        multiplier = self.account.multiplier(share * float(self.account.square_left))
        counted = self._noisy_sum(presence, multiplier)
        if self._size is not None:
            # Two numbers with independent noise: weigh them by their precision.
            old, new = self._size_error**2, multiplier**2
            counted = (self._size * new + counted * old) / (old + new)
            multiplier = math.sqrt(old * new / (old + new))
        self._size, self._size_error = counted, multiplier

    def _noisy_sum(self, numbers: OfUsers, multiplier: float) -> float:
        """Release the sum over users of one number in [0, 1] each."""
        grid = fitting_grid(
            Interval(0.0, 1.0, centre=0.0),
            n_users=self.users.size_bound,
            relation=self.relation,
            noise=multiplier,
        )
        mechanism = GaussianSum(grid=grid, noise_multiplier=multiplier, relation=self.relation)
        total = self.users.total(numbers, grid)
        return float(mechanism.release(total, count=0, account=self.account)[0])

    def _measured(self, n_users: float) -> MeanRelease:
        """Shrink a ball to measured radii, without a spread; for relations without pairs."""
        possible = can_shrink(
            n_users=n_users,
            dimension=self.dimension,
            square=float(self.account.square_left),
            diameter=self.diameter,
        )
        if not possible:
            return self.clip("there are too few users to find their spread privately.")
        centre, radius = shrink_by_measuring(
            self.users,
            reach=self.reach,
            account=self.account,
            n_users=n_users,
            relation=self.relation,
        )
        self.spread = radius
        share = radius_share(self.setting, float(self.account.square_left))
        plan = ShrinkPlan(
            rounds=0,
            round_square=0.0,
            radius_square=share * float(self.account.square_left),
            final_square=(1.0 - share) * float(self.account.square_left),
            error=self.setting.mean_error(radius, (1.0 - share) * float(self.account.square_left)),
        )
        return self._finish(
            centre,
            start=radius,
            plan=plan,
            n_users=n_users,
            route=self._route("ball", "a ball shrank to the distances that were measured."),
        )

    def _can_find_spread(self) -> bool:
        """Whether pairs of users are many enough, which is public."""
        pairs, whole = self.users.n_users // 2, float(self.account.square_left)
        return pairs > 0 and ways.spread_is_affordable(spread_looks_cost(pairs, whole), whole=whole)

    def _find_spread(self, users: PeopleVectors) -> float:
        square = spread_looks_cost(users.n_users // 2, float(self.account.square_left))
        return find_spread(
            users,
            reach=self.reach,
            account=self.account,
            square=square,
            relation=self.relation,
        )

    def _plan_core(self, setting: Setting) -> CorePlan | None:
        """Return a plan for a core, if one is possible."""
        if not self.core_delta or self.relation is not Relation.REPLACE:
            return None
        n_users = self.users.n_users
        if not ways.core_is_possible(users=n_users, dimension=self.dimension):
            return None
        return plan_core(
            setting,
            n_users=n_users,
            core_spread=self._core_spread,
            square=float(self.account.square_left),
            delta=self.core_delta,
            hostile=self.hostile,
        )

    def _core_centre(self, plan: CorePlan) -> tuple[NDArray[np.float64], float] | None:
        """Test for a core at growing radii; return its noisy mean and the noise, or ``None``."""
        n, d = self.users.n_users, self.dimension
        radii = tuple(multiple * math.sqrt(2.0) * self._core_spread for multiple in CORE_RADII)
        finest = self.reach / IntegerUsers.largest_radius(step=1.0, dimension=d)
        step = max(radii[0] / (8.0 * math.sqrt(d)), 1.001 * finest)
        if step * math.sqrt(d) > radii[0]:
            return None
        vectors = self.users.rows()
        top, few = int(plan.top_share * n), int(plan.few_share * n)
        for friends in Friends.within(radii, vectors, reach=self.reach, step=step):
            # Whatever the test says, enough must be left for a mean.
            rest = float(self.account.square_left) - plan.test_square - plan.centre_square
            if rest < _KEPT * float(self.account.square):
                return None
            test = CoreTest(
                top=top,
                few=few,
                noise_multiplier=self.account.multiplier(plan.test_square),
                delta=float_down(exact(self.core_delta) / len(radii)),
            )
            if test.release(friends, account=self.account):
                mechanism = CoreMean(
                    n_users=n,
                    dimension=d,
                    radius=friends.radius,
                    step=step,
                    top=top,
                    few=few,
                    noise_multiplier=self.account.multiplier(plan.centre_square),
                )
                centre = mechanism.release(friends, account=self.account)
                return centre, mechanism.standard_error
        return None


def _weights(users: WeightedUsers) -> NDArray[np.float64]:
    return users.own_weights[:, None]
