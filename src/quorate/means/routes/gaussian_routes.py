"""The mean under a Gaussian budget: clip to the public range, or move a clipping ball to the users.

One :class:`GaussianRun` spends one :class:`~quorate.core.account.account.Account`. All decisions
follow from public and released numbers.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from quorate.core.account.account import Account
from quorate.core.bounds.grid import Ball, Interval
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
    presence,
    present_users,
)
from quorate.means.routes.drifting_ball import DriftingBall, can_drift
from quorate.means.weighted_users import OfUsers, PeopleVectors, WeightedUsers
from quorate.mechanisms.sums import GaussianSum, NoisySearch, fitting_grid, looks_needed

__all__ = ["GaussianRun"]

# Half of the users have full weight; looks at that number err by a quarter of all users once in so
# many standard deviations, which is one run in 30,000.
_CERTAIN = 4.0
# A released number of users or sum of weights gets this share of the squared budget: 1.6 % more
# noise of the mean.
_COUNT = 1 / 32
_RECORD_CAPS = 2.0 ** np.arange(0.0, 20.5, 0.5)


@dataclass(frozen=True, kw_only=True)
class GaussianRun:
    """One private mean under Gaussian noise.

    Parameters
    ----------
    users : PeopleVectors
        Offsets from the centre of the public bound.
    reach : float
        Radius of the public bound.
    account : Account
    size : Size or None
        The number of users, if it is known; otherwise it is estimated privately.
    hostile : float, default=0.0
        Share of users with arbitrary vectors.
    spread : float or None
        A public spread, if one is known.
    records : float or None
        Number of records from which on a user has full weight. ``None`` estimates it privately if
        record counts are available.
    """

    users: PeopleVectors
    reach: float
    account: Account
    size: Size | None = None
    hostile: float = 0.0
    spread: float | None = None
    records: float | None = None

    @property
    def _replaced(self) -> bool:
        return self.account.relation is Relation.REPLACE

    @property
    def _diameter(self) -> float:
        """The sensitivity of a clipped sum, in radii."""
        return 2.0 if self._replaced else 1.0

    def clip(self, reason: str) -> MeanRelease:
        """Clip everybody to the public bound and spend the rest of the budget."""
        d = self.users.dimension
        # Where the number of users is private, the mean may lie anywhere in the bound, and so far
        # from the centre that the noise of their number is half of all noise.
        size = self._count(1.0 / (1.0 + 2.0 * math.sqrt(d)))
        ball = Ball(self.reach, dimension=d)
        bound = OrAbsent(ball, gaussian_vote(ball)) if self._replaced else ball
        multiplier = self.account.multiplier(float(self.account.square_left))
        grid = fitting_grid(
            bound,
            n_users=self.users.size_bound,
            relation=self.account.relation,
            noise=multiplier * self._diameter * self.reach,
        )
        mechanism = GaussianSum(
            grid=grid, noise_multiplier=multiplier, relation=self.account.relation
        )
        totals = self.users.equally().total(_marked if self._replaced else _vectors, grid)
        moved, noise = mechanism.release(totals, count=0, account=self.account), 0.0
        known = True
        if isinstance(bound, OrAbsent):
            absent, noise = float(moved[-1]) / bound.vote, mechanism.standard_error / bound.vote
            known = not hardly_anybody(size.number, absent, noise)
            size = Size(*present_users(size.number, absent, noise))
            moved = moved[:-1]
        mean = moved / size.number
        parts = ErrorParts(
            noise=np.full(d, mechanism.standard_error / size.number),
            along=size.scale / size.number * float(np.linalg.norm(mean)) / math.sqrt(d),
            pull=0.0 if known else self.reach,
            radius=self.reach,
        )
        return MeanRelease(mean=mean, parts=parts, route=Route(name="clip", reason=reason))

    def adapt(self) -> MeanRelease:
        """Move a ball to where the users are, or clip if there are too few users for that."""
        size = self._count(_COUNT)
        mu = math.sqrt(float(self.account.square_left))
        public = {"users": size.number, "mu": mu, "diameter": self._diameter}
        if not can_drift(dimension=self.users.dimension, **public):
            return replace(self, size=size).clip("too few users to find a ball around them.")
        return self.ball(size, "a clipping ball was moved to where the users are.")

    def ball(self, size: Size, reason: str) -> MeanRelease:
        """Move a ball to where the users are."""
        users, weight = self._weighted(size)
        release = DriftingBall(
            users=users,
            reach=self.reach,
            account=self.account,
            size=size,
            weight=weight,
            spread=self.spread,
            hostile=self.hostile,
        ).run(reason)
        return replace(release, route=replace(release.route, records=users.records))

    def _count(self, share: float) -> Size:
        """Return the number of users; a private one is estimated with a share of the budget."""
        if self._replaced:
            return Size(float(max(1, self.users.n_users)), 0.0)
        if self.size is not None:
            return self.size
        multiplier = self._multiplier(share)
        return Size(max(1.0, self._sum(presence, self.users, multiplier)), multiplier)

    def _multiplier(self, share: float, *, count: int = 1) -> float:
        return self.account.multiplier(share * float(self.account.square_left), count=count)

    def _weighted(self, size: Size) -> tuple[PeopleVectors, Size | None]:
        """Weight users by their records, up to a cap that is public or found privately."""
        if not self.users.counted:
            return self.users, None
        cap = self.records
        if cap is None:
            multiplier = self._multiplier(_COUNT, count=looks_needed(_RECORD_CAPS.size))
            search = NoisySearch(
                thresholds=_RECORD_CAPS,
                target=0.5 * size.number,
                noise_multiplier=multiplier,
                relation=self.account.relation,
            )
            counts = self.users.count_records(search.thresholds)
            cap = float(_RECORD_CAPS[search.release_counts(counts, account=self.account)])
        users, multiplier = self.users.weighed(cap), self._multiplier(_COUNT)
        total = self._sum(_weights, users, multiplier)
        # Hardly anybody may have enough records for a weight.
        if total < _CERTAIN**2 * multiplier:
            return users.equally(), None
        return users, Size(total, multiplier)

    def _sum(self, numbers: OfUsers, users: PeopleVectors, multiplier: float) -> float:
        """Release the sum over users of one number in [0, 1] each."""
        grid = fitting_grid(
            Interval(0.0, 1.0, centre=0.0),
            n_users=users.size_bound,
            relation=self.account.relation,
            noise=multiplier,
        )
        mechanism = GaussianSum(
            grid=grid, noise_multiplier=multiplier, relation=self.account.relation
        )
        total = users.total(numbers, grid)
        return float(mechanism.release(total, count=0, account=self.account)[0])


def _weights(users: WeightedUsers) -> NDArray[np.float64]:
    return users.own_weights[:, None]


def _vectors(users: WeightedUsers) -> NDArray[np.float64]:
    return users.vectors


def _marked(users: WeightedUsers) -> NDArray[np.float64]:
    return marked(users.vectors)
