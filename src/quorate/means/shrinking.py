"""The steps between a spread and a mean: a ball that shrinks, a last radius, one clipped mean.

Each round clips the users' offsets from the current centre to a radius, adds Gaussian noise to
their mean and moves the centre there; the next radius is what that noise and the spread call for.
After the last round a radius is searched for that fits the users, so a centre that went astray
costs noise instead of a wrong answer. [1]_

References
----------
.. [1] Biswas, Dong, Kamath, Ullman. CoinPress: practical private mean and covariance estimation.
   NeurIPS 2020, arXiv:2006.06618. (The shrinking ball, for Gaussian data of known covariance.)
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from quorate.guarantees import Relation
from quorate.means.allowance import Allowance
from quorate.means.plan import Setting, ShrinkPlan
from quorate.means.radius import find_final_radius
from quorate.means.weighted_users import WeightedUsers
from quorate.mechanisms.sums import GaussianSum

__all__ = ["ClippedMean", "clipped_mean", "shrink"]


@dataclass(frozen=True)
class ClippedMean:
    """A released mean (as an offset from the public centre) and its noise per coordinate."""

    mean: NDArray[np.float64]
    standard_error: float
    radius: float
    cut_share: float


def clipped_mean(
    users: WeightedUsers,
    centre: NDArray[np.float64],
    *,
    radius: float,
    noise_multiplier: float,
    effective_users: float,
    relation: Relation,
) -> tuple[NDArray[np.float64], float]:
    """Release ``centre`` plus the mean of the offsets from it, each clipped to ``radius``.

    Also returns the standard deviation of the noise in each coordinate, which is public.
    """
    grid, totals = users.clipped_total(centre, radius, relation)
    mechanism = GaussianSum(grid=grid, noise_multiplier=noise_multiplier, relation=relation)
    moved = mechanism.release(totals, count=0)
    return centre + moved / effective_users, mechanism.standard_error / effective_users


def shrink(
    users: WeightedUsers,
    centre: NDArray[np.float64],
    *,
    start: float,
    plan: ShrinkPlan,
    setting: Setting,
    allowance: Allowance,
    n_users: float,
    hostile: float,
    relation: Relation,
) -> ClippedMean:
    """Run the rounds of ``plan`` from radius ``start`` around ``centre``, then the final mean."""
    radius, before = start, math.inf
    for _ in range(plan.rounds):
        centre, before = clipped_mean(
            users,
            centre,
            radius=radius,
            noise_multiplier=allowance.take(plan.round_square),
            effective_users=setting.effective_users,
            relation=relation,
        )
        radius = setting.next_radius(radius, before)
    final = find_final_radius(
        users,
        centre,
        setting=setting,
        expected=radius,
        allowance=allowance,
        square=plan.radius_square,
        final_square=plan.final_square,
        n_users=n_users,
        hostile=hostile,
        relation=relation,
    )
    mean, after = clipped_mean(
        users,
        centre,
        radius=final.radius,
        noise_multiplier=allowance.take(plan.final_square),
        effective_users=setting.effective_users,
        relation=relation,
    )
    # The last centre is an estimate of the same mean with noise of its own: weigh by precision,
    # unless the radius found says that it missed the users.
    on_target = before < math.inf and final.radius <= 1.5 * radius
    share = after**2 / (after**2 + before**2) if on_target else 0.0
    error = math.hypot((1.0 - share) * after, share * before) if share else after
    return ClippedMean(
        mean=(1.0 - share) * mean + share * centre,
        standard_error=error,
        radius=final.radius,
        cut_share=final.cut_share,
    )
