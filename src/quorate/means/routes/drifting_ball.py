"""A ball that drifts to where the users are, and learns on the way how far apart they lie.

Each round clips the users to a ball and releases two sums with one Gaussian mechanism: their
offsets from its centre, and their lifts, which cost nothing and show how concentrated they are
(:mod:`quorate.core.bounds.lifted_ball`). The centre follows the noisy mean as a Kalman filter
does, with the known noise; the lifts move a distribution over the users' spread; the next ball is
as large as spread and uncertainty ask for. A centre that missed the users shows in the mean itself.

When another round would make the last sum worse, a radius is chosen that leaves few users outside
(:mod:`quorate.means.routes.ends`), and all that is left pays for one sum in that ball. Everything
but the sums and that choice is made of released numbers.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from statistics import NormalDist

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
    gaussian_vote,
    hardly_anybody,
    marked,
    present_users,
)
from quorate.means.pull_belief import Look, likely_pull
from quorate.means.routes.ends import End, choose_end, price, varying
from quorate.means.spread_belief import SpreadBelief
from quorate.means.weighted_users import PeopleVectors, WeightedUsers
from quorate.mechanisms.sums import GaussianSum, fitting_grid

__all__ = ["DriftingBall", "can_drift", "expected_error"]

Vector = NDArray[np.float64]

# A length of d normal numbers is the root of d and N(0, 1/2): so much more in one of 20 cases.
_OUTSIDE = NormalDist().inv_cdf(0.95) / math.sqrt(2.0)
# The noise of a round is this many errors of the centre: rounds that shrink it more cost more, and
# 12 % more than infinitely many small ones here, 1 / (4 log(1 + 1/4)).
_NOISE = 2.0
# The lifts of one round are known to this many of their largest.
_LIFT_ERROR = 0.5
# Time: a round is a pass over the users.
_MOST_ROUNDS = 64
# Radii in spreads while the ball moves.
_MOVING = 1.25
# A length of d normal numbers over its typical one is 1 + N(0, 1 / 2d): all but one in 1,000.
_QUANTILE = NormalDist().inv_cdf(0.999)
# The ball has arrived when its centre is known to this share of the spread, and the spread to this
# factor (of e), for a few rounds; the rest of the budget goes into the last ones.
_KNOWN, _SURE, _CONFIRMED, _LAST_ROUNDS = 0.4, 0.35, 2, 4
# A mean that is longer than this many standard deviations says that the centre missed.
_MISSED, _EDGE = 5.0, 0.8
# In one or two dimensions lifts say it too: this much evidence (twice a difference of logarithms of
# likelihoods), with an error of the model of lifts.
_NARROW, _EVIDENCE, _LIFT_MODEL = 2, 8.0, 0.2
# Share of the budget at arrival for the last radius.
_RADIUS = 0.05
# Spreads are believed in down to e^-24 of the range; below this one most users are in one place.
_SAME = 2.0**-28
# A choice is worth it if a radius that is wider by four doublings costs fewer than all users.
_STEPS = 16
# The ball failed to settle if the centre is known worse than this share of the spread, or if the
# last lifts are as low as this.
_FAILED, _LOW = 0.75, 0.25
# How far clipping is taken to pull the mean at least, in radii: in one dimension, in two, and in
# more; and how many users may be outside.
_PULLS, _CUT = (0.15, 0.06, 0.02), 0.3
# A private number of users may be too large by so many scales of its noise.
_CAREFUL = 3.0


@dataclass(frozen=True)
class _Pace:
    """How much of the budget a round gets, and how far out, in errors, the centre may be."""

    share: float
    wide: float

    @classmethod
    def of(cls, signal: float, dimension: int) -> _Pace:
        """Return it for so many users x mu (halved if one user moves a sum by two radii)."""
        root = math.sqrt(dimension)
        needed = max((root + _OUTSIDE) / _NOISE, 1.0 / _LIFT_ERROR) / signal
        share = min(max(needed**2, 1.0 / _MOST_ROUNDS), 0.25)
        # Cheap rounds make wider balls instead of more of them.
        return cls(share, min(4.0, max(_OUTSIDE, 0.5 * signal * math.sqrt(share) - root)))


def _arrived(dimension: int) -> float:
    """Return the last radius, in spreads."""
    return 1.0 + _QUANTILE / math.sqrt(2.0 * dimension)


def expected_error(
    *, users: float, dimension: int, mu: float, reach: float, spread: float, diameter: float = 2.0
) -> float:
    """Return the root mean square length of the error that is expected of a drifting ball.

    It is that of its noise, if users lie around one centre; the rounds are those of
    :class:`DriftingBall`, with the noise that each of them will have.

    >>> known = {"dimension": 2, "mu": 0.24, "reach": 1.0, "spread": 0.001}
    >>> expected_error(users=1000, **known) < 0.00005 < 0.05 < expected_error(users=50, **known)
    True
    """
    signal, root = users * mu / diameter, math.sqrt(dimension)
    pace = _Pace.of(signal, dimension)
    error, left = reach / (root + pace.wide), 1.0
    while left > 0.0:
        if error * root <= _KNOWN * spread:
            now, radius = left, varying(dimension) * _arrived(dimension) * spread
        else:
            now = min(pace.share, left)
            least = max(_MOVING * spread, _SAME * reach)
            radius = min(reach, math.hypot(least, (root + pace.wide) * error))
        noise = radius / (signal * math.sqrt(now))
        error /= math.hypot(1.0, error / noise)
        left -= now
    return error * root


def can_drift(*, users: float, dimension: int, mu: float, diameter: float = 2.0) -> bool:
    """Whether a ball around users who are all in one place is expected to halve.

    >>> can_drift(users=1000, dimension=2, mu=0.24), can_drift(users=10, dimension=2, mu=0.24)
    (True, False)
    """
    known = {"users": users, "mu": mu, "diameter": diameter}
    pace = _Pace.of(users * mu / diameter, dimension)
    begin = math.sqrt(dimension) / (math.sqrt(dimension) + pace.wide)
    return expected_error(dimension=dimension, reach=1.0, spread=0.0, **known) < begin / 2.0


@dataclass(kw_only=True)
class DriftingBall:
    """One mean by a drifting ball; spends all that is left of a Gaussian account.

    Parameters
    ----------
    users : PeopleVectors
        Offsets from the centre of the public bound. Weighted users are as far from the centre of a
        ball as their weighted offsets.
    reach : float
        Radius of the public bound.
    account : Account
    size : Size
        How many users there are; public under replacement.
    weight : Size or None
        The sum of the weights, if users are weighted.
    spread : float or None
        How far users lie from their centre, if that is public.
    hostile : float
        Share of users who may be anywhere: so much of a radius they move every mean.
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
        """Let the ball drift and release the mean."""
        d, n = self.users.dimension, self._summed
        root = math.sqrt(d)
        whole = float(self.account.square_left)
        pace = _Pace.of(n * math.sqrt(whole) / self._diameter, d)
        share, wide = pace.share, pace.wide
        cone = self.account.relation is not Relation.REPLACE
        belief = SpreadBelief.at_most(self.reach, cone=cone, known=self.spread)
        dragged = self.hostile / (1.0 - self.hostile)
        centre, error, held, left = np.zeros(d), self.reach / (root + wide), 0, 1.0
        radius, end, chosen = self.reach, None, False
        while left > 0.0:
            spread, unsure = belief.spread
            settled = error * root <= _KNOWN * spread and unsure < _SURE
            held = held + 1 if settled else 0
            now = min(share, left)
            if end is not None and not chosen:
                now = left
            elif held > _CONFIRMED:
                now = left / max(1, _LAST_ROUNDS - (held - _CONFIRMED - 1))
                can_choose = end is None and self._can_choose(whole * left)
                if can_choose and d > _NARROW and not self.hostile:
                    pull = self._pull(centre, radius)
                    if pull > radius / 2.0:
                        # The lifts show many users far outside, who pulled the centre less.
                        end, error = self._reaching(centre, radius, whole * left), pull / root
                if can_choose and end is None:
                    end, chosen = self._choose(centre, spread, whole * left), True
                    left *= 1.0 - _RADIUS
                    now *= 1.0 - _RADIUS
            if left - now < 0.3 * share:
                now = left
            left = 0.0 if now == left else left - now
            size = (_arrived(d) if held else _MOVING) * spread
            away = (root + wide) * error + dragged * radius
            radius = min(self.reach, math.hypot(size, away))
            if end is None and spread < _SAME * self.reach:
                # Most users hold the same vector, and a small ball would cut away all others.
                end, error = End(self.reach + float(np.linalg.norm(centre)), 0.0), self.reach
            if end is not None:
                radius = end.distance
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
        return self._result(centre, error, spread, radius, reason, end)

    @property
    def _summed(self) -> float:
        """What sums of vectors are divided by."""
        return self.size.number if self.weight is None else self.weight.number

    @property
    def _diameter(self) -> float:
        """Change of the lifted sum by one user, in radii."""
        return 2.0 if self.account.relation is Relation.REPLACE else 1.0

    def _pull(self, centre: Vector, radius: float) -> float:
        """Return how far clipping to a ball is likely to pull the mean, by all lifts so far."""
        return likely_pull(
            self._looks,
            centre=centre,
            radius=radius,
            reach=self.reach,
            cone=self.account.relation is not Relation.REPLACE,
        )

    def _reaching(self, centre: Vector, radius: float, square: float) -> End:
        """Return the ball in which noise and clipping are likely to cost least."""
        farthest = self.reach + float(np.linalg.norm(centre))
        radii = np.geomspace(radius, farthest, max(2, math.ceil(math.log2(farthest / radius))))
        noise = self._diameter * math.sqrt(centre.size) / (self._summed * math.sqrt(square))
        errors = [math.hypot(noise * each, self._pull(centre, each)) for each in radii.tolist()]
        return End(float(radii[int(np.argmin(errors))]), _CUT * self.size.number)

    def _rate(self, square: float) -> float:
        """Return the epsilon of a choice that costs its share of a square."""
        return math.sqrt(_RADIUS * square * 2.0 / math.pi)

    def _can_choose(self, square: float) -> bool:
        """Whether a much wider radius costs fewer than all users."""
        return self._rate(square) * self.size.number > _STEPS * price(self.users.dimension)

    def _choose(self, centre: Vector, spread: float, square: float) -> End:
        """Choose the last radius."""
        return choose_end(
            self.users,
            _Away(centre),
            first=min(self.reach, spread / 2.0),
            farthest=self.reach + float(np.linalg.norm(centre)),
            epsilon=self._rate(square),
            account=self.account,
            dimension=self.users.dimension,
        )

    def _result(
        self,
        centre: Vector,
        error: float,
        spread: float,
        radius: float,
        reason: str,
        end: End | None,
    ) -> MeanRelease:
        d, last = centre.size, self._looks[-_LAST_ROUNDS:]
        precision = np.array([look.noise**-2 for look in last])
        height = float(np.average([look.lift for look in last], weights=precision))
        failed = error * math.sqrt(d) > _FAILED * spread or height <= _LOW
        pull = self._pull(centre, radius)
        if pull > radius / 2.0:
            reason = "a ball drifted to where most users are; many may lie outside of it."
        pull = max(_PULLS[min(d, len(_PULLS)) - 1] * radius, pull)
        if self._is_empty:
            pull = 2.0 * self.reach
        if failed:
            reason = "a ball drifted but did not settle: too few users for so wide a range."
            # With fewer users than it was told the ball went but a part of the way to them.
            pull += _CAREFUL * self.size.scale / self.size.number * self.reach
        parts = ErrorParts(
            noise=np.full(centre.shape, error),
            along=0.0,
            pull=min(2.0 * self.reach, pull),
            worst_pull=_CUT * 2.0 * self.reach,
            radius=radius,
            cut_share=_CUT,
        )
        route = Route(name="ball", reason=reason, spread=spread)
        return MeanRelease(mean=centre, parts=parts, route=route)

    def _round(self, centre: Vector, radius: float, square: float) -> tuple[Vector, float, float]:
        """Release the mean offset, the mean lift in radii, and the noise of both in radii."""
        replaced = self.account.relation is Relation.REPLACE
        weighted = self.weight is not None
        around = np.zeros(centre.size) if weighted else centre
        lifted = LiftedBall(radius, centre=around, cone=not replaced)
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
        """Return how many users to divide by, from the votes of all rounds so far."""
        weight = 1.0 / noise**2
        total = self._absent_weight + weight
        self._absent = (self._absent * self._absent_weight + absent * weight) / total
        self._absent_weight = total
        if self._is_empty:
            # As many as noise alone might make: the round then says next to nothing.
            return max(1.0, 1.0 / math.sqrt(total))
        return present_users(float(self.users.n_users), self._absent, 1.0 / math.sqrt(total))[0]

    @property
    def _is_empty(self) -> bool:
        """Whether noise alone might explain those who seem to be present."""
        if not self._absent_weight:
            return False
        noise = 1.0 / math.sqrt(self._absent_weight)
        return hardly_anybody(self.size.number, self._absent, noise)


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
class _Away:
    """How far each user's weighted offset reaches from a centre; NaN if absent."""

    centre: Vector

    def __call__(self, users: WeightedUsers) -> Vector:
        return users.distances(self.centre, Relation.ADD_REMOVE)


@dataclass(frozen=True)
class _Liftable:
    """The users' vectors with a place for the lift, and marks of those who are absent.

    Of weighted users, their weighted offsets from a centre.
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
