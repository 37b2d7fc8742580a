"""How far out to clip: a distance beyond which few users are, by one choice among all distances.

A distance is the better the fewer users lie beyond it, and the worse the larger it is, because the
noise of what follows grows with it. One user who moves makes *all* numbers of users beyond grow, or
none of them, or all fall: two of them differ by at most 1 more than before, so the choice costs
half of what quantiles do.

The choice favours larger distances by chance. A step that makes one wider by a factor must
therefore be the less likely by more than the square of that factor, or the rare runs would make the
error; which is why steps are paid for in users. Beyond some steps they are not, so that many users
far away are never mistaken for nobody.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from quorate.accounting.account import Account
from quorate.means.weighted_users import OfUsers, PeopleVectors, WeightedUsers
from quorate.mechanisms.choices.choose import ChooseBest

__all__ = ["End", "choose_end", "price", "varying"]

# Distances per doubling; steps that are paid for; and how many steps farther each of the others is.
_PER_DOUBLING, _PAID, _COARSE = 4, 32, 8
# A distance that is wider by a factor is less likely by this power of it, times the root of the
# dimension, by which the noise of a sum grows. Above 2, or rare wide ones would make the error.
_POWER = 4.0
# Scores are integers: so many to a person.
_FINE = 64
# No more users are beyond an end than is stated, but in this share of runs.
_WRONG = 0.02


def price(dimension: int) -> float:
    """Return what a step costs, in people x epsilon.

    >>> round(price(1), 3), round(price(4), 3)
    (0.693, 1.386)
    """
    return _POWER * math.sqrt(dimension) * math.log(2.0) / _PER_DOUBLING


def varying(dimension: int) -> float:
    """Return the root mean square of how much wider a distance is than the best one.

    Widths that are chosen by chance have a density that falls as f^-p, whose mean square is
    p / (p - 2).

    >>> round(varying(1), 3), round(varying(4), 3)
    (1.414, 1.155)
    """
    power = _POWER * math.sqrt(dimension)
    return math.sqrt(power / (power - 2.0))


@dataclass(frozen=True)
class End:
    """A released distance, and how many users are beyond it at most, except for a few runs."""

    distance: float
    most: float


@dataclass(frozen=True)
class _Ends:
    """Distances to choose an end from, and what each of them costs, in people x epsilon."""

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
        """Return a chosen end, and how many are beyond it.

        With k users there its chance is at most e to the power of what the last end, which has
        nobody beyond, costs more, less k epsilon.
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
    r"""Release a distance beyond which there are few users; nobody is beyond ``farthest``.

    The score of a distance is minus the number of users beyond it, minus a public price. One user
    who is replaced, added or removed moves the numbers of users beyond all distances in the same
    direction, each by 0 or 1: two scores differ by at most 1 more than before. That is what a
    sensitivity of 1/2 stands for, because a choice depends on differences of scores only
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
    """Minus a distance of each user; NaN if absent."""

    distance: OfUsers

    def __call__(self, users: WeightedUsers) -> NDArray[np.float64]:
        return np.asarray(-self.distance(users))
