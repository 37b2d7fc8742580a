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
from quorate.core.bounds.or_absent import OrAbsent
from quorate.core.sealed import Sealed
from quorate.grid import Ball, Bound, Grid
from quorate.guarantees import Relation
from quorate.means.present_mean import ROUNDING, hardly_anybody, marked, present_users
from quorate.means.routes.budget_split import Setting, ShrinkPlan
from quorate.means.routes.radius import find_final_radius
from quorate.means.weighted_users import PeopleVectors, WeightedUsers
from quorate.mechanisms.sums import GaussianSum, fitting_grid

__all__ = [
    "ClippedMean",
    "NoisyMean",
    "clipped_mean",
    "clipped_total",
    "gaussian_vote",
    "shrink",
    "total_and_absent",
]


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


def clipped_total(
    users: PeopleVectors,
    centre: NDArray[np.float64],
    radius: float,
    *,
    noise_multiplier: float = 1.0,
) -> tuple[Grid, Sealed]:
    """Return the sum of weighted offsets from ``centre``, each clipped to ``radius``.

    An absent user has no offset.
    """
    bound = Ball(radius, centre=np.zeros(users.dimension) if users.weighted else centre)
    grid = _grid(bound, users, noise_multiplier)
    return grid, users.total(_Weighted(centre), grid)


def total_and_absent(
    users: PeopleVectors,
    centre: NDArray[np.float64],
    radius: float,
    *,
    noise_multiplier: float = 1.0,
) -> tuple[Grid, Sealed]:
    """Return the sum of unweighted offsets, and votes of absent users in a last coordinate.

    For replacement, at the same cost as :func:`clipped_total`.
    """
    ball = Ball(radius, centre=centre)
    grid = _grid(OrAbsent(ball, gaussian_vote(ball)), users, noise_multiplier)
    return grid, users.total(_marked_vectors, grid)


def _grid(bound: Bound, users: PeopleVectors, noise_multiplier: float) -> Grid:
    noise = noise_multiplier * bound.l2_diameter
    return fitting_grid(bound, n_users=users.size_bound, relation=users.relation, noise=noise)


@dataclass(frozen=True)
class _Weighted:
    centre: NDArray[np.float64]

    def __call__(self, users: WeightedUsers) -> NDArray[np.float64]:
        return users.offsets(self.centre)


def _marked_vectors(users: WeightedUsers) -> NDArray[np.float64]:
    return marked(users.vectors)


def clipped_mean(
    users: PeopleVectors,
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
        grid, totals = clipped_total(users, centre, radius, noise_multiplier=noise_multiplier)
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
    users: PeopleVectors,
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
