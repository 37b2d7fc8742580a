"""One private mean of one bounded vector per user, as a step of something larger."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction

from quorate._validate import exact, float_down
from quorate.accounting.account import Account
from quorate.grid import Bound
from quorate.means.present_mean import MeanRelease
from quorate.means.routes.gaussian_routes import GaussianRun
from quorate.means.weighted_users import PeopleVectors

__all__ = ["gaussian_run", "private_mean"]


def gaussian_run(
    account: Account,
    users: PeopleVectors,
    bound: Bound,
    *,
    share: Fraction | float = 1,
    records: float | None = None,
    hostile: float = 0.0,
    spread: float | None = None,
    fallback: Callable[[str], MeanRelease] | None = None,
) -> GaussianRun:
    """Return a run on users whose vectors lie in ``bound``, with a share of the account.

    It may test for a friendly core if the account has a reserve; see
    :func:`~quorate.means.routes.ways.core_reserve`.
    ``fallback`` is what it does where it finds no plan, with what is left of the account.
    """
    return GaussianRun(
        users=users,
        reach=bound.l2_radius,
        account=account.part(share),
        core_delta=float_down(account.reserve * exact(share)),
        hostile=hostile,
        relation=account.relation,
        spread=spread,
        records=records,
        fallback=fallback,
    )


def private_mean(
    account: Account, users: PeopleVectors, bound: Bound, *, share: Fraction | float
) -> MeanRelease:
    """Release the mean of the users' vectors by the best route, as an offset from the centre.

    >>> import numpy as np
    >>> from quorate.core.people import People
    >>> from quorate.grid import Box
    >>> from quorate.users import UserData
    >>> account = Account.open(epsilon=1.0, delta=1e-6, reserve=1e-7)
    >>> rows = np.random.default_rng(0).normal(size=(2000, 2))
    >>> people = People(UserData(rows, offsets=range(2001)), account.relation)
    >>> box = Box([-100.0] * 2, [100.0] * 2)
    >>> vectors = PeopleVectors.of(people, UserData.user_means, box)
    >>> release = private_mean(account, vectors, box, share=Fraction(1, 2))
    >>> bool(np.abs(release.mean).max() < 0.5)
    True
    """
    return gaussian_run(account, users, bound, share=share).adapt()
