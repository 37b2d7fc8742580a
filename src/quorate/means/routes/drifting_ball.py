"""A clipping ball that moves to the users in rounds and learns how far apart they are.

Each round clips the users to a ball and releases two sums with one Gaussian mechanism: the sum of
their offsets from the centre, and the sum of their lifts. The lift of a user is a bounded number
that is largest at the centre and 0 outside the ball. The lifts do not raise the sensitivity, and
they show how concentrated the users are (:mod:`quorate.core.bounds.lifted_ball`). The centre
follows the noisy mean by a Kalman filter with the known noise. The lifts of all rounds show how far
most users lie from their centre, and how many users lie farther out
(:mod:`quorate.means.users_belief`).

The radius of the next ball minimises the expected noise and clipping bias. It is then enlarged by
the uncertainty of the centre. The first rounds have a small share of the budget and a ball that
contains most users. They continue as long as knowing more about the users would reduce the error,
and small balls have not yet shown whether anybody lies outside of them. Once the radius is stable,
each round gets twice the budget of the one before. If the mean offset and the lift of a round are
more likely for users outside of its ball, the ball jumps towards them. Only the two sums use the
data.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from functools import lru_cache
from statistics import NormalDist

import numpy as np
from numpy.typing import NDArray

from quorate.core.account.account import Account
from quorate.core.bounds.lifted_ball import LiftedBall, lift
from quorate.core.bounds.or_absent import OrAbsent
from quorate.core.guarantees import Relation
from quorate.estimators import Route
from quorate.means.present_mean import (
    ErrorParts,
    MeanRelease,
    Size,
    gaussian_vote,
    hardly_anybody,
    marked,
    present_users,
)
from quorate.means.users_belief import LEAST_SHARE, Look, UsersBelief, best_size
from quorate.means.weighted_users import PeopleVectors, WeightedUsers
from quorate.mechanisms.sums import GaussianSum, fitting_grid

__all__ = ["DriftingBall", "can_drift", "expected_error", "steady_error"]

Vector = NDArray[np.float64]

# derived: a length of d normal numbers is the root of d and N(0, 1/2): so much more in one of 20
# cases.
_OUTSIDE = NormalDist().inv_cdf(0.95) / math.sqrt(2.0)
# The noise of a round is this many errors of the centre: rounds that shrink it more cost more, and
# 12 % more than infinitely many small ones here, 1 / (4 log(1 + 1/4)).
_NOISE = 2.0
# Time: a round is a pass over the users.
_MOST_ROUNDS = 64
# Users within this part of the range hold one number.
_ONE_NUMBER = 2.0**-26
_CONFIDENCE = 0.95  # public: 95 % is the convention of stated errors
# derived: normal noise is lower but in one of 20 cases.
_SURELY = NormalDist().inv_cdf(0.95)


@dataclass(frozen=True)
class _Pace:
    """A round's share of the budget, and the largest error of the centre, in standard errors."""

    share: float
    wide: float

    @classmethod
    def of(cls, signal: float, dimension: int) -> _Pace:
        """Return the pace for a ``signal``: users times mu.

        The signal is halved if one user can change a sum by two radii.
        """
        root = math.sqrt(dimension)
        needed = (root + _OUTSIDE) / (_NOISE * signal)
        share = min(max(needed**2, 1.0 / _MOST_ROUNDS), 0.25)
        # If rounds need little budget, the balls are wider; the number of rounds does not grow.
        return cls(share, min(4.0, max(_OUTSIDE, 0.5 * signal * math.sqrt(share) - root)))

    def next(self, left: float, held: int) -> float:
        """Return the next share, which doubles each round once the radius is stable."""
        now = self.share * 2.0**held
        return left if left - now < now else now

    @property
    def doubt(self) -> float:
        """The probability that the centre is outside of the ball, before a round."""
        return NormalDist(sigma=math.sqrt(0.5)).cdf(-self.wide)


def expected_error(
    *, users: float, dimension: int, mu: float, reach: float, spread: float, diameter: float = 2.0
) -> float:
    """Return the expected root mean square error of the moving ball.

    It counts the noise only and assumes that users lie around one centre. It simulates the rounds
    of :class:`DriftingBall`, each with its own noise.

    >>> known = {"dimension": 2, "mu": 0.24, "reach": 1.0, "spread": 0.001}
    >>> expected_error(users=1000, **known) < 0.00005 < 0.04 < expected_error(users=50, **known)
    True
    """
    signal, root = users * mu / diameter, math.sqrt(dimension)
    pace = _Pace.of(signal, dimension)
    error, held, left = reach / (root + pace.wide), 0, 1.0
    while left > 0.0:
        size = spread * best_size(dimension, root / (signal * math.sqrt(left)))[0]
        away = (root + pace.wide) * error
        held = held + 1 if away <= size else 0
        now = pace.next(left, held)
        radius = min(reach, math.hypot(size, away))
        noise = radius / (signal * math.sqrt(now))
        if noise:  # the noise may underflow to zero before the last round
            error /= math.hypot(1.0, error / noise)
        left -= now
    return error * root


def steady_error(
    *, users: float, dimension: int, mu: float, reach: float, spread: float, diameter: float = 2.0
) -> float:
    """Return the largest expected error over all budgets between this one and twice this one.

    The number of rounds is an integer, so a slightly larger budget may add a round and thereby
    raise the error. A plan must not promise an error that a larger number of users, or a larger
    epsilon, exceeds. Budgets are rounded down to a grid with 16 steps per doubling.

    >>> known = {"dimension": 10, "reach": 3.0, "spread": 0.02, "mu": 1.0}
    >>> found = [steady_error(users=n, **known) for n in range(20, 80)]
    >>> found == sorted(found, reverse=True)
    True
    """
    first = math.floor(16.0 * math.log2(users * mu / diameter))
    steps = range(first, first + 17)
    return max(_error_on_grid(step, dimension, reach, spread) for step in steps)


@lru_cache(maxsize=2**16)
def _error_on_grid(step: int, dimension: int, reach: float, spread: float) -> float:
    return expected_error(
        users=2.0 ** (step / 16.0),
        dimension=dimension,
        mu=1.0,
        reach=reach,
        spread=spread,
        diameter=1.0,
    )


@lru_cache(maxsize=2**12)
def can_drift(*, users: float, dimension: int, mu: float, diameter: float = 2.0) -> bool:
    """Return whether the ball is expected to shrink to half if all users are at one point.

    >>> can_drift(users=1000, dimension=2, mu=0.24), can_drift(users=10, dimension=2, mu=0.24)
    (True, False)
    """
    known = {"users": users, "mu": mu, "diameter": diameter}
    pace = _Pace.of(users * mu / diameter, dimension)
    begin = math.sqrt(dimension) / (math.sqrt(dimension) + pace.wide)
    return expected_error(dimension=dimension, reach=1.0, spread=0.0, **known) < begin / 2.0


@dataclass(kw_only=True)
class DriftingBall:
    """One mean by a moving ball; it spends the whole remaining budget of a Gaussian account.

    Parameters
    ----------
    users : PeopleVectors
        Offsets from the centre of the public bound. The distance of a weighted user from the centre
        of a ball is that of the weighted offset.
    reach : float
        Radius of the public bound.
    account : Account
    size : Size
        How many users there are; public under replacement.
    weight : Size or None
        The sum of the weights, if users are weighted.
    spread : float or None
        Typical distance of users from their centre, if that is public.
    hostile : float
        Share of users with arbitrary vectors. They can move the mean by this share of the radius.
    """

    users: PeopleVectors
    reach: float
    account: Account
    size: Size
    weight: Size | None = None
    spread: float | None = None
    hostile: float = 0.0
    _absent: float = field(init=False, default=0.0)
    _absent_weight: float = field(init=False, default=0.0)
    _looks: list[Look] = field(init=False, default_factory=list)

    def run(self, reason: str) -> MeanRelease:
        """Move the ball to where the users are, and release the mean."""
        d, n = self.users.dimension, self._summed
        root, whole = math.sqrt(d), float(self.account.square_left)
        signal = n * math.sqrt(whole) / self._diameter
        pace = _Pace.of(signal, d)
        dragged = self.hostile / (1.0 - self.hostile)
        centre, error, held, left = np.zeros(d), self.reach / (root + pace.wide), 0, 1.0
        radius = size = self.reach
        everybody, others = False, 0.0
        belief = self._belief(centre, root * error)
        while left > 0.0:
            noise = root / (signal * math.sqrt(left))
            last, (size, loss) = size, belief.best_radius(noise, reach=self.reach)
            # A round that takes a share of what is left makes other noise larger by half of it.
            unsure = loss - belief.least_error(noise) > loss * pace.share / left / 2.0
            near = min(self.reach, best_size(d, noise)[0] * belief.spread)
            unsure = unsure and not self._have_told(near)
            size = near if unsure else size
            if not everybody and self._must_reach(belief, noise, others):
                # What the small ball has told of the mean is not about the others.
                everybody, error = True, self.reach
            if everybody:
                size, unsure = self.reach, False
            # The last mean was pulled by users between both radii.
            farther = belief.mean_pull(radius) - belief.mean_pull(size) if size > radius else 0.0
            error = math.hypot(error, farther / root)
            away = (root + pace.wide) * error + dragged * radius
            holds = not unsure and away <= size and last / 2.0 < size < 2.0 * last
            held = held + 1 if holds else 0
            now = pace.next(left, held)
            radius = min(self.reach, math.hypot(size, away))
            # The ball of the whole range is that of the public bound.
            at = centre if radius < self.reach else np.zeros(d)
            left = 0.0 if now == left else left - now
            square = now * whole if left else float(self.account.square_left)
            moved, height, noise = self._round(at, radius, square)
            of_one = float(lift(np.array([root * error / radius]), cone=self._is_cone)[0])
            others = (of_one - height - _SURELY * noise) / self._highest
            self._looks.append(Look(centre=at, radius=radius, lift=height, noise=noise))
            missed = radius < self.reach and _has_missed(
                float(np.linalg.norm(moved)) / radius,
                height,
                belief.height(radius=radius, around=root * error + dragged * radius),
                around=error / radius + dragged / root,
                noise=noise,
                dimension=d,
                doubt=pace.doubt,
            )
            centre, error = _follow(centre, error, at + moved, noise * radius, missed=missed)
            belief = self._belief(centre, root * error)
        return self._result(centre, error, belief, radius, reason, failed=root * error > size)

    def _belief(self, centre: Vector, around: float) -> UsersBelief:
        """Return the posterior over the users' distances, given all lifts so far."""
        return UsersBelief.of(
            self._looks,
            centre=centre,
            around=around,
            reach=self.reach,
            cone=self._is_cone,
            size_error=math.sqrt(2.0) * self.size.scale / self.size.number,
            known=self.spread,
            one_centre=self.hostile > 0.0,
        )

    def _is_one_number(self, belief: UsersBelief) -> bool:
        """Return whether most users have the same value.

        In that case lifts do not show how far away the other users are.

        With hostile users the result is always False, because these users may have any other value.
        """
        if self.hostile or self.spread is not None:
            return False
        return belief.chance_below(_ONE_NUMBER * self.reach) > _CONFIDENCE

    def _must_reach(self, belief: UsersBelief, noise: float, others: float) -> bool:
        """Return whether clipping to a small ball has a larger error than clipping to the range.

        This is considered if most users have one value. ``others`` is the share of users with
        another value. The logarithm of their distance has a uniform prior, and the mean of that
        prior gives their expected distance as a part of the range.
        """
        return self._is_one_number(belief) and others / -math.log(_ONE_NUMBER) > noise

    def _have_told(self, radius: float) -> bool:
        """Return whether the lifts of balls of this size would have detected users farther out."""
        precise = sum(look.noise**-2 for look in self._looks if look.radius <= 2.0 * radius)
        return LEAST_SHARE * self._highest * math.sqrt(precise) > _SURELY

    @property
    def _highest(self) -> float:
        """The lift of a user at the centre, in radii; a user outside of the ball has lift 0."""
        return float(lift(np.zeros(1), cone=self._is_cone)[0])

    @property
    def _is_cone(self) -> bool:
        return self.account.relation is not Relation.REPLACE

    @property
    def _summed(self) -> float:
        """The number by which sums of vectors are divided."""
        return self.size.number if self.weight is None else self.weight.number

    @property
    def _diameter(self) -> float:
        """The sensitivity of the lifted sum, in radii."""
        return 2.0 if self.account.relation is Relation.REPLACE else 1.0

    def _result(
        self,
        centre: Vector,
        error: float,
        belief: UsersBelief,
        radius: float,
        reason: str,
        *,
        failed: bool,
    ) -> MeanRelease:
        last = self._looks[-1]
        outside = 1.0 - (last.lift - _SURELY * last.noise) / self._highest
        outside = min(1.0, max(0.0, outside))
        pull = belief.likely_pull(radius)
        if self._is_one_number(belief) and radius < self.reach:
            pull = 2.0 * outside * self.reach
        if pull > radius / 2.0:
            reason = (
                "a clipping ball was moved to where most users are; many users may lie outside "
                "of it."
            )
        if self._is_empty:
            pull = 2.0 * self.reach
        if failed:
            reason = "a ball drifted but did not settle: too few users for so wide a range."
            # If there are fewer users than assumed, the ball stops between its start and the users.
            pull += (1.0 - self.size.careful / self.size.number) * self.reach
        parts = ErrorParts(
            noise=np.full(centre.shape, error),
            along=0.0,
            pull=min(2.0 * self.reach, pull),
            worst_pull=outside * 2.0 * self.reach,
            radius=radius,
            cut_share=outside,
        )
        route = Route(name="ball", reason=reason, spread=belief.spread)
        return MeanRelease(mean=centre, parts=parts, route=route)

    def _round(self, centre: Vector, radius: float, square: float) -> tuple[Vector, float, float]:
        """Release the mean offset, the mean lift, and the noise of both, all in radii."""
        replaced = self.account.relation is Relation.REPLACE
        weighted = self.weight is not None
        around = np.zeros(centre.size) if weighted else centre
        lifted = LiftedBall(radius, centre=around, cone=self._is_cone)
        votes = replaced and not weighted
        bound = OrAbsent(lifted, gaussian_vote(lifted)) if votes else lifted
        multiplier = self.account.multiplier(square)
        grid = fitting_grid(
            bound,
            n_users=self.users.size_bound,
            relation=self.account.relation,
            noise=multiplier * self._diameter * radius,
        )
        totals = self.users.total(_Liftable(centre, marks=votes), grid)
        mechanism = GaussianSum(
            grid=grid, noise_multiplier=multiplier, relation=self.account.relation
        )
        released = mechanism.release(totals, count=0, account=self.account)
        n = self.size.number
        if isinstance(bound, OrAbsent):
            n = self._present(float(released[-1]) / bound.vote, multiplier * 2.0)
            released = released[:-1]
        summed = n if self.weight is None else self.weight.number
        noise = mechanism.standard_error / (summed * radius)
        height = float(released[-1]) / (n * radius * (1.0 - self.hostile))
        return released[:-1] / summed, height, noise

    def _present(self, absent: float, noise: float) -> float:
        """Return the number of present users, estimated from the votes of all rounds so far."""
        weight = 1.0 / noise**2
        total = self._absent_weight + weight
        self._absent = (self._absent * self._absent_weight + absent * weight) / total
        self._absent_weight = total
        if self._is_empty:
            # Nobody is detected: divide by one noise scale, so that the round has a large error.
            return max(1.0, 1.0 / math.sqrt(total))
        return present_users(float(self.users.n_users), self._absent, 1.0 / math.sqrt(total))[0]

    @property
    def _is_empty(self) -> bool:
        """Return whether the released number of present users is within its noise."""
        if not self._absent_weight:
            return False
        noise = 1.0 / math.sqrt(self._absent_weight)
        return hardly_anybody(self.size.number, self._absent, noise)


def _has_missed(
    moved: float,
    height: float,
    expected: tuple[float, float],
    *,
    around: float,
    noise: float,
    dimension: int,
    doubt: float,
) -> bool:
    """Return whether the mean offset and the mean lift show that the users are outside of the ball.

    All numbers are in radii. Users far outside move the mean by a whole radius and have lift 0.
    The two hypotheses (inside, outside) are compared by their likelihoods and by the prior
    probability of a miss.
    """
    square = noise**2
    near = _chi_square(moved**2, 0.0, square + around**2, dimension)
    far = _chi_square(moved**2, 1.0, square, dimension) + math.log(doubt)
    near += _normal(min(height - expected[0], 0.0), expected[1] + square)
    return far + _normal(max(height, 0.0), square) > near


def _normal(away: float, variance: float) -> float:
    """Return the logarithm of a normal density, up to a constant."""
    return -(away**2 / variance + math.log(variance)) / 2.0


def _chi_square(square: float, centre: float, variance: float, dimension: int) -> float:
    """Return the log density of a normal vector's squared length, up to a function of that length.

    ``centre`` is the squared length of the vector of means. If it underflows, the result is minus
    infinity.
    """
    from scipy.special import gammaln, ive

    power, length = dimension / 2.0 - 1.0, math.sqrt(square * centre) / variance
    spread = -(square + centre) / (2.0 * variance) - dimension / 2.0 * math.log(variance)
    if not length:
        return spread
    height = float(ive(power, length))
    if not height:
        return -math.inf
    turned = float(gammaln(power + 1.0)) - power * math.log(length / 2.0)
    return spread + turned + length + math.log(height)


def _follow(
    centre: Vector, error: float, found: Vector, noise: float, *, missed: bool
) -> tuple[Vector, float]:
    """Return the next centre and its standard error; it jumps if the ball missed the users."""
    variance = noise * noise
    if missed:
        length = float(np.sum((found - centre) ** 2)) / centre.size
        return found, max(error, math.sqrt(length))
    gain = error * error / (error * error + variance)
    return centre + gain * (found - centre), math.sqrt(gain * variance)


@dataclass(frozen=True)
class _Liftable:
    """The users' vectors with an extra coordinate for the lift, and a mark for absent users.

    Weighted users contribute their weighted offsets from a centre.
    """

    centre: Vector
    marks: bool

    def __call__(self, users: WeightedUsers) -> Vector:
        rows = np.zeros((users.n_users, users.dimension + 1))
        rows[:, :-1] = users.offsets(self.centre)
        if self.marks:
            return marked(rows)
        rows[~users.present, -1] = np.nan
        return rows
