"""Few users: a ball that drifts to where they are, and learns on the way how far apart they lie.

Each round clips the users to a ball and releases two sums with one Gaussian mechanism: their
offsets from its centre, and their lifts, which cost nothing and show how concentrated they are
(:mod:`quorate.core.bounds.lifted_ball`). The centre follows the noisy mean as a Kalman filter
does, with the known noise; the lifts move a distribution over the users' spread; the next ball is
as large as spread and uncertainty ask for. A centre that missed the users shows in the mean itself.
Everything but the sums is made of released numbers. There is no search that could fail before the
mean begins. What clipping may have done to the mean is read off the lifts of all rounds
(:mod:`quorate.means.pull_belief`).
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from quorate.accounting.account import Account
from quorate.core.bounds.lifted_ball import LiftedBall
from quorate.core.bounds.or_absent import OrAbsent
from quorate.estimators import Route
from quorate.guarantees import Relation
from quorate.means.present_mean import (
    ErrorParts,
    MeanRelease,
    Size,
    marked,
    present_users,
)
from quorate.means.pull_belief import Look, likely_pull
from quorate.means.routes.shrinking import gaussian_vote
from quorate.means.spread_belief import SpreadBelief
from quorate.means.weighted_users import PeopleVectors, WeightedUsers
from quorate.mechanisms.sums import GaussianSum, fitting_grid

__all__ = ["DriftingBall"]

Vector = NDArray[np.float64]

# A round may leave this many standard deviations of the centre outside of the next ball ...
_OUTSIDE = 1.2
# ... and shrinks the uncertainty by about this factor, while the lifts are known to this precision.
_SHRINK, _LIFT_ERROR = 2.5, 0.5
_MOST_ROUNDS = 96
# Radii in spreads: while the ball moves, when it has arrived, and that in one or two dimensions,
# where tails are long.
_MOVING, _ARRIVED, _ARRIVED_NARROW = 1.25, 2.0, 3.25
# The ball has arrived when its centre is known to this share of the spread, and the spread to this
# factor (of e), for a few rounds; the rest of the budget goes into the last ones.
_KNOWN, _SURE, _CONFIRMED, _LAST_ROUNDS = 0.4, 0.35, 2, 4
# A mean that is longer than this many standard deviations says that the centre missed.
_MISSED, _EDGE = 5.0, 0.8
# In one or two dimensions lifts say it too: this much evidence (twice a difference of logarithms of
# likelihoods), with an error of the model of lifts.
_NARROW, _EVIDENCE, _LIFT_MODEL = 2, 8.0, 0.2
# The ball failed to settle if the centre is known worse than this share of the spread, or if the
# last lifts are as low as this.
_FAILED, _LOW = 0.75, 0.25
# How far clipping is taken to pull the mean at least, in radii: in one dimension, in two, and in
# more; and how many users may be outside.
_PULLS, _CUT = (0.15, 0.06, 0.02), 0.3
# A private number of users may be too large by so many scales of its noise.
_CAREFUL = 3.0


@dataclass(kw_only=True)
class DriftingBall:
    """One mean by a drifting ball; spends all that is left of a Gaussian account.

    Parameters
    ----------
    users : PeopleVectors
        Offsets from the centre of the public bound, not weighted.
    reach : float
        Radius of the public bound.
    account : Account
    size : Size
        How many users there are; public under replacement.
    """

    users: PeopleVectors
    reach: float
    account: Account
    size: Size
    _absent: float = field(init=False, default=0.0)
    _absent_weight: float = field(init=False, default=0.0)
    _looks: list[Look] = field(init=False, default_factory=list)

    def run(self, reason: str) -> MeanRelease:
        """Let the ball drift and release the mean."""
        n, d = self.size.number, self.users.dimension
        root = math.sqrt(d)
        whole = float(self.account.square_left)
        signal = n * math.sqrt(whole) * 2.0 / self._diameter
        share = max(2.0 * (root + _OUTSIDE) / (_SHRINK * signal), 2.0 / (_LIFT_ERROR * signal)) ** 2
        share = min(max(share, 1.0 / _MOST_ROUNDS), 0.25)
        # Cheap rounds make wider balls instead of more of them.
        wide = min(4.0, max(_OUTSIDE, 0.25 * signal * math.sqrt(share) - root))
        belief = SpreadBelief.at_most(self.reach)
        arrived = _ARRIVED_NARROW if d <= 2 else _ARRIVED
        centre, error, held, left = np.zeros(d), self.reach / (root + wide), 0, 1.0
        radius = self.reach
        while left > 0.0:
            spread, unsure = belief.spread
            settled = error * root <= _KNOWN * spread and unsure < _SURE
            held = held + 1 if settled else 0
            now = min(share, left)
            if held > _CONFIRMED:
                now = left / max(1, _LAST_ROUNDS - (held - _CONFIRMED - 1))
            if left - now < 0.3 * share:
                now = left
            left = 0.0 if now == left else left - now
            size = (arrived if held else _MOVING) * spread
            radius = min(self.reach, math.hypot(size, (root + wide) * error))
            square = now * whole if left else float(self.account.square_left)
            moved, height, noise = self._round(centre, radius, square)
            self._looks.append(Look(centre=centre, radius=radius, lift=height, noise=noise))
            around = root * error
            missed = None
            if d <= _NARROW:
                expected = belief.height(radius=radius, around=around)
                missed = _has_missed(
                    float(np.linalg.norm(moved)) / radius,
                    height,
                    expected=expected,
                    around=around / radius,
                    noise=noise,
                )
            belief = belief.after(height, radius=radius, around=around, noise=noise, users=n)
            centre, error = _follow(centre, error, moved, noise * radius, wide, missed=missed)
        spread, _ = belief.spread
        return self._result(centre, error, spread, radius, reason)

    @property
    def _diameter(self) -> float:
        """Change of the lifted sum by one user, in radii."""
        return 2.0 if self.account.relation is Relation.REPLACE else math.sqrt(3.0)

    def _round(self, centre: Vector, radius: float, square: float) -> tuple[Vector, float, float]:
        """Release the mean offset, the mean lift in radii, and the noise of both in radii."""
        replaced = self.account.relation is Relation.REPLACE
        lifted = LiftedBall(radius, centre=centre)
        bound = OrAbsent(lifted, gaussian_vote(lifted)) if replaced else lifted
        multiplier = self.account.multiplier(square)
        grid = fitting_grid(
            bound,
            n_users=self.users.size_bound,
            relation=self.account.relation,
            noise=multiplier * bound.l2_diameter,
        )
        totals = self.users.total(_Liftable(marks=replaced), grid)
        mechanism = GaussianSum(
            grid=grid, noise_multiplier=multiplier, relation=self.account.relation
        )
        released = mechanism.release(totals, count=0, account=self.account)
        n = self.size.number
        if isinstance(bound, OrAbsent):
            n = self._present(float(released[-1]) / bound.vote, multiplier * 2.0)
            released = released[:-1]
        noise = mechanism.standard_error / (n * radius)
        return released[:-1] / n, float(released[-1]) / (n * radius), noise

    def _present(self, absent: float, noise: float) -> float:
        """Return how many users to divide by, from the votes of all rounds so far."""
        weight = 1.0 / noise**2
        total = self._absent_weight + weight
        self._absent = (self._absent * self._absent_weight + absent * weight) / total
        self._absent_weight = total
        return present_users(float(self.users.n_users), self._absent, 1.0 / math.sqrt(total))[0]

    def _result(
        self, centre: Vector, error: float, spread: float, radius: float, reason: str
    ) -> MeanRelease:
        d, last = centre.size, self._looks[-_LAST_ROUNDS:]
        precision = np.array([look.noise**-2 for look in last])
        height = float(np.average([look.lift for look in last], weights=precision))
        failed = error * math.sqrt(d) > _FAILED * spread or height <= _LOW
        pull = likely_pull(self._looks, centre=centre, radius=radius, reach=self.reach)
        if pull > radius / 2.0:
            reason = "a ball drifted to where most users are; many may lie outside of it."
        pull = max(_PULLS[min(d, len(_PULLS)) - 1] * radius, pull)
        if failed:
            reason = "a ball drifted but did not settle: too few users for so wide a range."
            # With fewer users than it was told the ball went but a part of the way to them.
            pull += _CAREFUL * self.size.scale / self.size.number * self.reach
        parts = ErrorParts(
            noise=np.full(centre.shape, error),
            along=0.0,
            pull=min(self.reach, pull),
            worst_pull=_CUT * 2.0 * self.reach,
            radius=radius,
            cut_share=_CUT,
        )
        route = Route(name="drift", reason=reason, spread=spread)
        return MeanRelease(mean=centre, parts=parts, route=route)


def _has_missed(
    moved: float, height: float, *, expected: float, around: float, noise: float
) -> bool:
    """Whether users outside of the ball explain a mean offset and lift better than users around it.

    All in radii. Users far outside would have moved the mean by a whole radius, with no lift.
    """
    wide = noise**2 + around**2
    low = noise**2 + _LIFT_MODEL**2
    near = moved**2 / wide + min(height - expected, 0.0) ** 2 / low + math.log(wide * low)
    far = ((moved - 1.0) / noise) ** 2 + max(height, 0.0) ** 2 / low + math.log(noise**2 * low)
    return near - far > _EVIDENCE


def _follow(
    centre: Vector,
    error: float,
    moved: Vector,
    noise: float,
    wide: float,
    *,
    missed: bool | None = None,
) -> tuple[Vector, float]:
    """Return the next centre and its standard error: a Kalman step, or a jump if it missed.

    Whether it ``missed`` is read off the length of the move where lifts were not asked.
    """
    d = centre.size
    variance = noise * noise
    length = float(np.dot(moved, moved)) / d
    edge = _EDGE * ((math.sqrt(d) + wide) * error) ** 2 / d
    edge += variance * (1.0 + 3.0 * math.sqrt(2.0 / d)) + 2.0 * error * noise
    expected = (error * error + variance) * (1.0 + _MISSED * math.sqrt(2.0 / d))
    if missed is None:
        missed = length > min(expected, edge)
    if missed:
        return centre + moved, max(error, math.sqrt(length))
    gain = error * error / (error * error + variance)
    return centre + gain * moved, math.sqrt(gain * variance)


@dataclass(frozen=True)
class _Liftable:
    """The users' vectors with a place for the lift, and marks of those who are absent."""

    marks: bool

    def __call__(self, users: WeightedUsers) -> Vector:
        rows = np.zeros((users.n_users, users.dimension + 1))
        rows[:, :-1] = users.vectors
        if self.marks:
            return marked(rows)
        rows[~users.present, -1] = np.nan
        return rows
