"""How far apart users are, estimated from random pairs: one private statistic before any search."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray
from scipy.special import chdtri

from quorate.core.account.account import Account
from quorate.means.routes.expected_errors import NEAR, distances
from quorate.means.weighted_users import PeopleVectors
from quorate.mechanisms.means.pair_quantile import PairQuantile

__all__ = ["are_near", "typical_distance"]

_DISTANCES = np.array(distances())
# A quantile well above the median of the distances of pairs: where most people hold the same
# number, half of the pairs are no distance apart.
_QUANTILE = Fraction(3, 4)
# This many people make enough pairs.
_MOST_PAIRED = 2**17


def are_near(users: PeopleVectors, width: float, *, epsilon: float, account: Account) -> bool:
    """Release whether most pairs of present users are at most this far apart.

    A distance is the root mean square over coordinates, divided by the root of 2, so that it
    estimates the spread of one user. The pairs are random, disjoint and secret; see
    :class:`~quorate.mechanisms.means.pair_quantile.PairQuantile`.
    """
    return _release(users, np.array([width]), NEAR, epsilon=epsilon, account=account) == 0


def typical_distance(users: PeopleVectors, *, epsilon: float, account: Account) -> float | None:
    """Release the typical spread of users; None if most users have the same vector."""
    found = _release(users, _DISTANCES, _QUANTILE, epsilon=epsilon, account=account)
    d = users.dimension
    # The quantile of the root mean square of d normal numbers.
    normal = math.sqrt(float(chdtri(d, float(1 - _QUANTILE))) / d)
    return float(_DISTANCES[min(found, _DISTANCES.size - 1)]) / normal if found else None


def _release(
    users: PeopleVectors,
    distances: NDArray[np.float64],
    quantile: Fraction,
    *,
    epsilon: float,
    account: Account,
) -> int:
    """Release the index of the first distance that is at least the quantile of the pairs."""
    apart = users.pair_distances(account, most=_MOST_PAIRED, only_present=True)
    mechanism = PairQuantile(
        domain=(0, distances.size), epsilon=epsilon, quantile=quantile, relation=account.relation
    )
    limits = distances * math.sqrt(users.dimension)
    return mechanism.release(apart.map(_Cells(limits)), account=account)


@dataclass(frozen=True)
class _Cells:
    """The index of the first listed distance that is at least that of a pair."""

    limits: NDArray[np.float64]

    def __call__(self, distances: NDArray[np.float64]) -> NDArray[np.int64]:
        return np.searchsorted(self.limits, distances, side="left").astype(np.int64)
