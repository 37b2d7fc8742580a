"""How far users lie apart, found privately: nobody has to guess a radius.

Two searches. The *spread* comes from disjoint pairs of users, before anything is known about where
they are: the typical distance of two users says how far one of them lies from the centre. The
*final radius* comes from the users' distances to a released centre and leaves a small, public share
of them outside, whatever the data are like.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from quorate.accounting.account import Account
from quorate.exceptions import ParameterError
from quorate.guarantees import Relation
from quorate.means.routes.budget_split import (
    CUT_FACTOR,
    RADIUS_CERTAINTY,
    SPREAD_CANDIDATES,
    SPREAD_RATIO,
    Setting,
)
from quorate.means.weighted_users import PeopleVectors
from quorate.mechanisms.sums import NoisySearch, looks_needed

__all__ = [
    "FinalRadius",
    "find_final_radius",
    "find_spread",
    "radius_candidates",
    "smallest_spread",
    "spread_candidates",
]

# Pairs of more users than this make no visible difference to a median.
MOST_PAIRED = 2**16
# From half the distance found to one user's spread: a median pair is a little closer than typical.
_TYPICAL = 1.05


def spread_candidates(reach: float) -> NDArray[np.float64]:
    """Return the public candidates for the spread: a geometric grid over 32 powers of two.

    >>> grid = spread_candidates(1.0)
    >>> grid.size, round(float(grid[-1]), 6), float(grid[0]) < 1e-9
    (128, 1.414214, True)
    """
    largest = reach * math.sqrt(2.0)
    return np.asarray(largest * SPREAD_RATIO ** np.arange(1.0 - SPREAD_CANDIDATES, 1.0))


def smallest_spread(reach: float) -> float:
    """Return the spread that is released when more than half of the pairs are hardly apart.

    >>> smallest_spread(1.0) < 1e-9
    True
    """
    return _TYPICAL * float(spread_candidates(reach)[0])


def find_spread(
    users: PeopleVectors,
    *,
    reach: float,
    account: Account,
    square: float,
    relation: Relation,
) -> float:
    """Release how far a typical user lies from the centre, paying ``square``.

    The pairs are drawn anew in every call, from a secret of the noise source; see
    :mod:`quorate.accounting.secret_pairs`.
    """
    if relation is not Relation.REPLACE:
        raise ParameterError(
            "A spread from pairs needs Relation.REPLACE: when somebody joins, everybody may get "
            "another partner. Use shrink_by_measuring."
        )
    candidates = spread_candidates(reach)
    looks = looks_needed(candidates.size)
    search = NoisySearch(
        thresholds=candidates,
        target=min(users.n_users, MOST_PAIRED) // 2 / 2,
        noise_multiplier=account.multiplier(square, count=looks),
    )
    distances = users.pair_distances(account, most=MOST_PAIRED)
    return _TYPICAL * float(candidates[search.release(distances, account=account)])


def radius_candidates(expected: float, reach: float) -> NDArray[np.float64]:
    """Return radii that are dense around ``expected`` and reach up to everybody.

    >>> radii = radius_candidates(1.0, 1000.0)
    >>> bool(np.all(np.diff(radii) > 0)), radii.size <= 64, float(radii[-1])
    (True, True, 2000.0)
    """
    below = expected * np.array([0.25, 0.35, 0.47])
    near = expected * 0.6 * 1.05 ** np.arange(20)
    above = near[-1] * 1.5 ** np.arange(1, 9)
    farthest = 2.0 * reach
    steps = max(1, min(32, math.ceil(math.log(max(1.0, farthest / above[-1]), 4.0))))
    beyond = np.geomspace(above[-1], max(farthest, 1.01 * above[-1]), steps + 1)[1:]
    radii = np.concatenate([below, near, above, beyond])
    return np.asarray(radii[: max(1, int(np.searchsorted(radii, farthest)) + 1)])


@dataclass(frozen=True)
class FinalRadius:
    """A released radius and the share of users it was meant to leave outside."""

    radius: float
    cut_share: float


def find_final_radius(
    users: PeopleVectors,
    centre: NDArray[np.float64],
    *,
    setting: Setting,
    expected: float,
    account: Account,
    square: float,
    final_square: float,
    n_users: float,
    hostile: float,
    relation: Relation,
) -> FinalRadius:
    """Release a radius around ``centre`` that leaves a planned share of users outside.

    Beyond a share of (noise per unit of radius) / n, a smaller radius would lose more by cutting
    than it saves in noise; and the share must exceed the noise of the search itself, and the share
    of hostile users if there are any.
    """
    candidates = radius_candidates(expected, setting.reach)
    looks = max(1, looks_needed(candidates.size))
    multiplier = account.multiplier(square, count=looks)
    balanced = CUT_FACTOR * setting.mean_error(1.0, final_square)
    cut = max(balanced, RADIUS_CERTAINTY * multiplier / n_users, hostile + 0.1 if hostile else 0.0)
    cut = min(cut, 0.5)
    search = NoisySearch(
        thresholds=candidates,
        target=(1.0 - cut) * n_users,
        noise_multiplier=multiplier,
        relation=relation,
    )
    counts = users.count_within(search.thresholds, centre)
    found = search.release_counts(counts, account=account)
    return FinalRadius(float(candidates[found]), cut)
