"""How far apart people are, from random pairs of them: one question before anything is searched."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray
from scipy.special import chdtri

from quorate.accounting.account import Account
from quorate.means.routes.ways import NEAR
from quorate.means.weighted_users import PeopleVectors
from quorate.mechanisms.means.pair_quantile import PairQuantile

__all__ = ["are_near", "typical_distance"]

# Distances to choose from, in half-widths: powers of the root of 2 from 1.3e-6 to the root of 2.
_DISTANCES = math.sqrt(2.0) ** np.arange(-39.0, 2.0)
# A quantile well above the median of the distances of pairs: where most people hold the same
# number, half of the pairs are no distance apart.
_QUANTILE = Fraction(3, 4)
# So many people make enough pairs.
_MOST_PAIRED = 2**17


def are_near(users: PeopleVectors, width: float, *, epsilon: float, account: Account) -> bool:
    """Release whether most pairs of those who are present are no farther apart than a width.

    Distances are root mean squares of a coordinate, in units of one person's spread: divided by the
    root of 2. The pairs are random, disjoint and secret; see
    :class:`~quorate.mechanisms.means.pair_quantile.PairQuantile`.
    """
    return _release(users, np.array([width]), NEAR, epsilon=epsilon, account=account) == 0


def typical_distance(users: PeopleVectors, *, epsilon: float, account: Account) -> float | None:
    """Release the spread of normal users; none where most of them hold the same vector."""
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
    """Release the place of the first distance that is not shorter than the quantile of pairs."""
    apart = users.pair_distances(account, most=_MOST_PAIRED, only_present=True)
    mechanism = PairQuantile(
        domain=(0, distances.size), epsilon=epsilon, quantile=quantile, relation=account.relation
    )
    limits = distances * math.sqrt(users.dimension)
    return mechanism.release(apart.map(_Cells(limits)), account=account)


@dataclass(frozen=True)
class _Cells:
    """The place of the first of some distances that is not shorter, or after all of them."""

    limits: NDArray[np.float64]

    def __call__(self, distances: NDArray[np.float64]) -> NDArray[np.int64]:
        return np.searchsorted(self.limits, distances, side="left").astype(np.int64)
