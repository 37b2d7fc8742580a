"""Clipping bounds: a distance beyond which few users lie, chosen by the exponential mechanism.

The score of a distance falls with the number of users beyond it, and with the distance itself,
because the noise of the next step grows with it. A change of one user changes the numbers of users
beyond all distances in the same direction, each by 0 or 1. So differences of scores change by at
most 1, and the choice costs half the epsilon of a private quantile.

The mechanism chooses a larger distance than the best one with some probability. If a distance is
too large by a factor, its probability must fall faster than the square of that factor. Otherwise
rare runs would dominate the mean square error. So each step to a larger distance lowers the score
by a price. After some steps the price stops growing, so that a large group of distant users is
never clipped.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from quorate.core.account.account import Account
from quorate.means.weighted_users import OfUsers, PeopleVectors, WeightedUsers
from quorate.mechanisms.choices.choose import ChooseBest

__all__ = ["End", "choose_end", "price", "varying"]

# Distances per doubling; steps that are paid for; and how many steps farther each of the others is.
_PER_DOUBLING, _PAID, _COARSE = 4, 32, 8
# A distance that is wider by a factor is less likely by this power of it, times the root of the
# dimension, by which the noise of a sum grows. Above 2, or rare wide ones would make the error.
_POWER = 4.0
# Scores are integers: this many units per person.
_FINE = 64
# No more users are beyond an end than is stated, but in this share of runs.
_WRONG = 0.02


def price(dimension: int) -> float:
    """Return the penalty of a step, in users times epsilon.

    >>> round(price(1), 3), round(price(4), 3)
    (0.693, 1.386)
    """
    return _POWER * math.sqrt(dimension) * math.log(2.0) / _PER_DOUBLING


def varying(dimension: int) -> float:
    """Return the root mean square of the ratio of the chosen distance to the best one.

    The density of the ratio f falls as f^-p, so its mean square is p / (p - 2).

    >>> round(varying(1), 3), round(varying(4), 3)
    (1.414, 1.155)
    """
    power = _POWER * math.sqrt(dimension)
    return math.sqrt(power / (power - 2.0))


@dataclass(frozen=True)
class End:
    """A released distance, and an upper bound on the number of users beyond it."""

    distance: float
    most: float


@dataclass(frozen=True)
class _Ends:
    """Candidate distances and their prices, in users times epsilon."""

    distances: NDArray[np.float64]
    costs: NDArray[np.float64]

    @classmethod
    def between(cls, first: float, farthest: float, step: float) -> _Ends:
        steps = max(1, math.ceil(_PER_DOUBLING * math.log2(max(farthest / first, 1.0))))
        coarse = np.arange(_PAID + _COARSE, steps, _COARSE)
        places = np.concatenate([np.arange(min(_PAID, steps - 1) + 1), coarse, [steps]])
        distances = np.minimum(first * 2.0 ** (places / _PER_DOUBLING), farthest)
        distances[-1] = farthest
        return cls(distances, step * np.arange(float(places.size)))

    def released(self, chosen: int, epsilon: float) -> End:
        """Return a chosen end with a bound on the number of users beyond it.

        An end with k users beyond it is chosen with probability at most exp(p - k epsilon). Here p
        is the price of the last end, which has nobody beyond it, minus the price of this end.
        """
        last = chosen == self.costs.size - 1
        doubt = float(self.costs[-1] - self.costs[chosen]) + math.log(self.costs.size / _WRONG)
        return End(
            distance=float(self.distances[chosen]),
            most=0.0 if last else doubt / epsilon,
        )


def choose_end(
    users: PeopleVectors,
    distance: OfUsers,
    *,
    first: float,
    farthest: float,
    epsilon: float,
    account: Account,
    dimension: int = 1,
) -> End:
    r"""Release a distance beyond which few users lie; all users lie within ``farthest``.

    The score of a distance is the negative of the number of users beyond it plus a public penalty.
    One user who is replaced, added or removed moves the numbers of users beyond all distances in
    the same direction, each by 0 or 1: two scores differ by at most 1 more than before. So the
    sensitivity is 1/2, because the probabilities depend on differences of scores only
    (:class:`~quorate.mechanisms.choices.choose.ChooseBest`).
    """
    ends = _Ends.between(first, farthest, price(dimension))
    # Who is beyond a distance is at most minus the next number after it; nobody beyond the last.
    limits = np.append(-np.nextafter(ends.distances[:-1], np.inf), -np.inf)
    beyond = users.counts(_Negative(distance), limits[::-1])[::-1]
    prices = np.round(_FINE * ends.costs / epsilon).astype(np.int64)
    mechanism = ChooseBest(
        candidates=prices.size,
        epsilon=epsilon,
        sensitivity=_FINE // 2,
        relation=account.relation,
    )
    chosen = mechanism.release(-_FINE * beyond - prices, account=account)
    return ends.released(chosen, epsilon)


@dataclass(frozen=True)
class _Negative:
    """The negative of each user's distance; NaN if absent."""

    distance: OfUsers

    def __call__(self, users: WeightedUsers) -> NDArray[np.float64]:
        return np.asarray(-self.distance(users))
