"""A ball that shrinks to a measured radius: for relations in which users cannot be paired.

Under add or remove the number of users is private, so no public pairing of users exists from which
a spread could be found. Instead each round releases the mean in the current ball, then measures how
far users lie from it; the ball shrinks to what was measured. The rounds end when the ball stops
shrinking or the noise alone would fill it.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from quorate.accounting.account import Account
from quorate.guarantees import Relation
from quorate.means.routes.budget_split import RADIUS_CERTAINTY
from quorate.means.routes.shrinking import clipped_mean
from quorate.means.weighted_users import PeopleVectors
from quorate.mechanisms.sums import NoisySearch, looks_needed

__all__ = ["can_shrink", "shrink_by_measuring"]

_MEAN_SHARE = 0.06
_MEASURE_SHARE = 0.04
_MAX_ROUNDS = 5
# A round must promise to halve the ball, and must have done so for another one to follow.
_SHRINK = 0.5
_RATIO = 1.3


def can_shrink(*, n_users: float, dimension: int, square: float, diameter: float) -> bool:
    """Whether the noise of one round is well below the ball it starts from.

    >>> can_shrink(n_users=2000, dimension=10, square=0.05, diameter=1.0)
    True
    >>> can_shrink(n_users=200, dimension=10, square=0.05, diameter=1.0)
    False
    """
    noise = diameter / (n_users * math.sqrt(_MEAN_SHARE * square))
    looks = looks_needed(32)
    cut = RADIUS_CERTAINTY * math.sqrt(looks / (_MEASURE_SHARE * square)) / n_users
    return noise * (math.sqrt(dimension) + 2.3) < 0.3 and cut < 0.4


def shrink_by_measuring(
    users: PeopleVectors,
    *,
    reach: float,
    account: Account,
    n_users: float,
    relation: Relation,
) -> tuple[NDArray[np.float64], float]:
    """Return a released centre and a radius around it that holds most users.

    Spends at most half of what is left.
    """
    whole = float(account.square_left)
    centre, radius = np.zeros(users.dimension), reach
    for _ in range(_MAX_ROUNDS):
        released = clipped_mean(
            users,
            centre,
            account=account,
            radius=radius,
            noise_multiplier=account.multiplier(_MEAN_SHARE * whole),
            effective_users=n_users,
            relation=relation,
        )
        centre = released.mean
        smallest = 0.3 * released.standard_error * math.sqrt(users.dimension)
        steps = max(1, math.ceil(math.log(max(2.0 * radius / smallest, 2.0), _RATIO)))
        candidates = 2.0 * radius * _RATIO ** np.arange(-float(steps), 1.0)
        looks = looks_needed(candidates.size)
        multiplier = account.multiplier(_MEASURE_SHARE * whole, count=looks)
        cut = min(0.5, max(0.1, RADIUS_CERTAINTY * multiplier / n_users))
        search = NoisySearch(
            thresholds=candidates,
            target=(1.0 - cut) * n_users,
            noise_multiplier=multiplier,
            relation=relation,
        )
        counts = users.count_within(search.thresholds, centre)
        found = float(candidates[search.release_counts(counts, account=account)])
        shrunk = found < _SHRINK * radius
        radius = min(found, 2.0 * reach)
        if not shrunk:
            break
    return centre, radius
