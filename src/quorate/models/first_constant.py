"""Where a regression begins: at the mean target, so that its first steps need not go there.

A target whose public range is much wider than people's targets makes the first gradients long:
all of them point to the mean. A clip that leaves room for them costs noise in every coefficient,
and directions in which features hardly spread forget early noise slowly. A few rounds about one
number are cheap: each clips the users' mean targets to an interval around the last one, and a free
lift shows how narrow the next interval may be (:mod:`quorate.means.lifted_ball`).
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from quorate.guarantees import Relation
from quorate.means.lifted_ball import LiftedBall
from quorate.means.spread_belief import SpreadBelief
from quorate.releases.user_releases import BoundedVectors, UserReleases, bounded_mean
from quorate.users import UserData

__all__ = ["release_first_constant"]

Vector = NDArray[np.float64]

_ROUNDS = 4
# Noise of a round in lengths of its interval, and what it may cost of the whole.
_NOISE, _DEAREST, _CHEAPEST = 0.15, 0.015, 0.0005
# The next interval, in spreads of the users and in standard errors of its middle.
_SPREADS, _ERRORS = 1.5, 2.5
# A mean this near to the end of its interval says that people are beyond.
_EDGE = 0.6


def release_first_constant(run: UserReleases, *, reach: float | None) -> float:
    """Release about the mean over users of their mean targets.

    ``reach`` is how far a target can be from zero, if that is public; else it is looked for.

    Examples
    --------
    >>> from quorate.accounting.account import Account
    >>> rng = np.random.default_rng(0)
    >>> people = UserData(np.zeros((4000, 1)), rng.normal(0.4, 0.1, 4000), offsets=np.arange(4001))
    >>> run = UserReleases.start(people, Account.open(epsilon=1.0, delta=1e-6))
    >>> abs(release_first_constant(run, reach=1.0) - 0.4) < 0.1
    True
    """
    whole, mu, n = float(run.account.square), run.account.mu, run.n_users
    share = min(_DEAREST, max(_CHEAPEST, (2.0 / (_NOISE * n * mu)) ** 2))
    if reach is None:
        reach = run.gallop(_mean_targets, guess=1.0, dimension=1, square=share * whole)
    cone = run.relation is not Relation.REPLACE
    belief = SpreadBelief.at_most(reach, cone=cone)
    centre, radius, error = 0.0, reach, 0.0
    for _ in range(_ROUNDS):
        noisy = bounded_mean(
            run.data,
            BoundedVectors(_placed, LiftedBall(radius, centre=[centre], cone=cone)),
            multiplier=run.account.multiplier(share * whole),
            account=run.account,
            n_users=n,
        )
        moved, height = noisy.value / radius
        belief = belief.after(
            float(height), radius=radius, around=error, noise=noisy.noise / radius, users=n
        )
        centre, error = centre + radius * float(np.clip(moved, -1.0, 1.0)), noisy.noise
        if abs(moved) <= _EDGE:
            narrow = math.hypot(_SPREADS * belief.spread[0], _ERRORS * error)
            radius = min(radius, max(radius / 8.0, narrow))
    return centre


def _mean_targets(users: UserData) -> Vector:
    """Return each user's mean target; NaN, which is taken for the middle, without records."""
    targets = np.zeros(users.n_records) if users.y is None else users.y
    counts = users.record_counts()
    sums = users.user_sums(targets[:, None])
    return np.where(counts[:, None] > 0, sums / np.maximum(counts, 1)[:, None], np.nan)


def _placed(users: UserData) -> Vector:
    """Return mean targets with a place for the lift."""
    means = _mean_targets(users)
    return np.concatenate([means, np.zeros_like(means)], axis=1)
