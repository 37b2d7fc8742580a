"""One private mean of one bounded vector per user, as a step of a larger algorithm."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from typing import Any

from quorate.core.account.account import Account
from quorate.core.bounds.grid import Bound
from quorate.core.people import People
from quorate.means.present_mean import MeanRelease
from quorate.means.routes.auto_route import AutoRun, InHalfWidths, unit_bound
from quorate.means.routes.gaussian_routes import GaussianRun
from quorate.means.weighted_users import PeopleVectors
from quorate.ranges import half_widths

__all__ = ["gaussian_run", "private_mean", "pure_mean"]


def gaussian_run(
    account: Account,
    users: PeopleVectors,
    bound: Bound,
    *,
    share: Fraction | float = 1,
    **known: Any,
) -> GaussianRun:
    """Return a run on users whose vectors lie in ``bound``, with a share of the account.

    ``known`` contains parameters of :class:`~quorate.means.routes.gaussian_routes.GaussianRun`.
    """
    return GaussianRun(users=users, reach=bound.l2_radius, account=account.part(share), **known)


def private_mean(
    account: Account, users: PeopleVectors, bound: Bound, *, share: Fraction | float = 1
) -> MeanRelease:
    """Release the mean of the users' vectors by the best route, as an offset from the centre.

    >>> import numpy as np
    >>> from quorate.core.people import People
    >>> from quorate.core.bounds.grid import Box
    >>> from quorate.core.users import UserData
    >>> account = Account.open(epsilon=1.0, delta=1e-6)
    >>> rows = np.random.default_rng(0).normal(size=(2000, 2))
    >>> people = People(UserData(rows, offsets=range(2001)), account.relation)
    >>> box = Box([-100.0] * 2, [100.0] * 2)
    >>> vectors = PeopleVectors.of(people, UserData.user_means, box)
    >>> release = private_mean(account, vectors, box, share=Fraction(1, 2))
    >>> bool(np.abs(release.mean).max() < 0.5)
    True
    """
    return gaussian_run(account, users, bound, share=share).adapt()


def pure_mean(account: Account, people: People, bound: Bound) -> MeanRelease:
    """Release the mean of users' mean records by pure mechanisms, as an offset from the centre."""
    unit, scales = unit_bound(bound), half_widths(bound)
    users = PeopleVectors.of(people, InHalfWidths(bound), unit)
    release = AutoRun(users=users, bound=unit, account=account).adapt()
    return replace(release, mean=release.mean * scales, parts=release.parts.scaled(scales))
