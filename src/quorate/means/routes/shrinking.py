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

from quorate.accounting.account import Account
from quorate.grid import Ball, Bound, Grid
from quorate.guarantees import Relation
from quorate.means.present_mean import ROUNDING, OrAbsent, hardly_anybody, marked, present_users
from quorate.means.routes.budget_split import Setting, ShrinkPlan
from quorate.means.routes.radius import find_final_radius
from quorate.means.weighted_users import VectorUsers, WeightedUsers
from quorate.mechanisms.sums import GaussianSum, fitting_grid

__all__ = [
    "ClippedMean",
    "NoisyMean",
    "clipped_mean",
    "gaussian_vote",
    "shrink",
    "total_and_absent",
]

# A megabyte of floats.
_BLOCK = 2**17


@dataclass(frozen=True)
class NoisyMean:
    """A released mean (as an offset from the public centre) and its noise.

    ``standard_error`` is that of each coordinate; ``along`` that of the number of users, which
    moves the mean along its offset from the centre it started from; ``is_known`` is false where
    so few users are present that the mean says nothing about them.
    """

    mean: NDArray[np.float64]
    standard_error: float
    along: float
    is_known: bool = True


@dataclass(frozen=True)
class ClippedMean(NoisyMean):
    """The mean of a whole run, its last radius and the share of users outside of it."""

    radius: float = 0.0
    cut_share: float = 0.0


def gaussian_vote(bound: Bound) -> float:
    """Return the largest vote that leaves the L2 norm of a change as it is.

    >>> from quorate.grid import Ball
    >>> round(gaussian_vote(Ball(1.0, dimension=5)), 6)
    1.732051
    """
    room = bound.l2_diameter**2 - bound.l2_radius**2
    return math.sqrt(room) * (1.0 - ROUNDING)


def total_and_absent(
    users: VectorUsers,
    centre: NDArray[np.float64],
    radius: float,
    *,
    noise_multiplier: float = 1.0,
) -> tuple[Grid, NDArray[np.int64]]:
    """Return the sum of unweighted offsets, and votes of absent users in a last coordinate.

    For replacement, at the same cost as :meth:`VectorUsers.clipped_total`.
    """
    ball = Ball(radius, centre=centre)
    bound = OrAbsent(ball, gaussian_vote(ball))
    noise = noise_multiplier * bound.l2_diameter
    grid = fitting_grid(bound, n_users=users.n_users, relation=Relation.REPLACE, noise=noise)
    return grid, grid.join(users.add_up(lambda part: _marked_halves(part, grid)))


def _marked_halves(users: WeightedUsers, grid: Grid) -> NDArray[np.int64]:
    """Return the sum of offsets and of the votes of absent users on ``grid``."""
    totals = np.zeros((2, grid.bound.dimension), dtype=np.int64)
    size = max(1, _BLOCK // users.dimension)
    for start in range(0, users.n_users, size):
        totals += grid.encode_halves(marked(users.vectors[start : start + size]))
    return totals


def clipped_mean(
    users: VectorUsers,
    centre: NDArray[np.float64],
    *,
    account: Account,
    radius: float,
    noise_multiplier: float,
    effective_users: float,
    relation: Relation,
    relative_error: float = 0.0,
) -> NoisyMean:
    """Release ``centre`` plus the mean of the offsets from it, each clipped to ``radius``.

    ``relative_error`` is that of ``effective_users``. Where this is the public number of users,
    the sum also says how many of them are absent, at no cost; see
    :mod:`quorate.means.present_mean`.
    """
    if not users.weighted and relation is Relation.REPLACE:
        grid, totals = total_and_absent(users, centre, radius, noise_multiplier=noise_multiplier)
    else:
        grid, totals = users.clipped_total(
            centre, radius, relation, noise_multiplier=noise_multiplier
        )
    mechanism = GaussianSum(grid=grid, noise_multiplier=noise_multiplier, relation=relation)
    noise = mechanism.standard_error
    moved = mechanism.release(totals, count=0, account=account)
    known = True
    if isinstance(grid.bound, OrAbsent):
        absent, noisy = float(moved[-1]) / grid.bound.vote, noise / grid.bound.vote
        known = not hardly_anybody(effective_users, absent, noisy)
        effective_users, error = present_users(effective_users, absent, noisy)
        moved, relative_error = moved[:-1], error / effective_users
    away = moved / effective_users
    return NoisyMean(
        mean=centre + away,
        standard_error=noise / effective_users,
        along=relative_error * float(np.linalg.norm(away)),
        is_known=known,
    )


def shrink(
    users: VectorUsers,
    centre: NDArray[np.float64],
    *,
    start: float,
    plan: ShrinkPlan,
    setting: Setting,
    account: Account,
    n_users: float,
    hostile: float,
    relation: Relation,
) -> ClippedMean:
    """Run the rounds of ``plan`` from radius ``start`` around ``centre``, then the final mean."""
    radius, before = start, NoisyMean(centre, math.inf, 0.0)
    for _ in range(plan.rounds):
        before = clipped_mean(
            users,
            before.mean,
            account=account,
            radius=radius,
            noise_multiplier=account.multiplier(plan.round_square),
            effective_users=setting.effective_users,
            relation=relation,
            relative_error=setting.normaliser_error,
        )
        radius = setting.next_radius(radius, before.standard_error)
    final = find_final_radius(
        users,
        before.mean,
        setting=setting,
        expected=radius,
        account=account,
        square=plan.radius_square,
        final_square=plan.final_square,
        n_users=n_users,
        hostile=hostile,
        relation=relation,
    )
    after = clipped_mean(
        users,
        before.mean,
        account=account,
        radius=final.radius,
        # Searches look less often than they may, so a little more than planned is left.
        noise_multiplier=account.multiplier(account.square_left),
        effective_users=setting.effective_users,
        relation=relation,
        relative_error=setting.normaliser_error,
    )
    # The last centre is an estimate of the same mean with noise of its own: weigh by precision,
    # unless the radius found says that it missed the users.
    if before.standard_error < math.inf and final.radius <= 1.5 * radius:
        after = _combined(after, before)
    return ClippedMean(
        mean=after.mean,
        standard_error=after.standard_error,
        along=after.along,
        is_known=after.is_known,
        radius=final.radius,
        cut_share=final.cut_share,
    )


def _combined(after: NoisyMean, before: NoisyMean) -> NoisyMean:
    """Weigh two estimates of the same mean by their precision."""
    share = after.standard_error**2 / (after.standard_error**2 + before.standard_error**2)
    return NoisyMean(
        mean=(1.0 - share) * after.mean + share * before.mean,
        standard_error=math.hypot(
            (1.0 - share) * after.standard_error, share * before.standard_error
        ),
        along=math.hypot((1.0 - share) * after.along, share * before.along),
        is_known=after.is_known,
    )
