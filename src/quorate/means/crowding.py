"""Are nearly all users in one small corner of the range? A cheap question before any search.

The range is cut into cells of a fixed width, in several shifted ways, so that a cluster that is a
little narrower than a cell lies inside of one. How many users the fullest cell holds is a number
that one user moves by at most 1, whatever the cells and however many there are; it is compared with
a threshold. Users who fill their range are told from users in a corner of it by *all* of them,
where distances of pairs would ask half as many.
"""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from quorate.accounting.account import Account
from quorate.means.weighted_users import VectorUsers, WeightedUsers
from quorate.mechanisms.choose import ChooseBest

__all__ = ["are_crowded", "fullest_cell"]

# The cells are shifted by this many equal steps in each coordinate.
_SHIFTS = 4


@dataclass(frozen=True)
class _Cells:
    """How many users each cell of each shifted grid holds; vectors are between -1 and 1."""

    width: float

    def __call__(self, users: WeightedUsers) -> NDArray[np.int64]:
        rows = users.vectors[users.present]
        side = math.ceil(2.0 / self.width) + 1
        counts = []
        for shifts in itertools.product(range(_SHIFTS), repeat=users.dimension):
            moved = (rows + 1.0) / self.width + np.array(shifts) / _SHIFTS
            places = np.clip(np.floor(moved), 0, side - 1).astype(np.int64)
            numbers = np.ravel_multi_index(tuple(places.T), (side,) * users.dimension)
            counts.append(np.bincount(numbers, minlength=side**users.dimension))
        return np.concatenate(counts).astype(np.int64)


def fullest_cell(users: VectorUsers, width: float) -> int:
    """Return how many users the fullest cell holds; not private.

    >>> fullest_cell(WeightedUsers(np.array([[0.31], [0.32], [0.33], [-0.9]])), 0.2)
    3
    """
    return int(users.add_up(_Cells(width)).max())


def are_crowded(
    users: VectorUsers, *, width: float, at_least: int, epsilon: float, account: Account
) -> bool:
    r"""Release whether some cell of this width holds ``at_least`` so many users.

    The fullest cell holds M users and two answers compete, with the scores M - t and t - M for the
    threshold t. One user who is replaced, added or removed moves each by at most 1, so that the
    wrong answer has a probability of :math:`e^{-\epsilon |M - t|}/2`.

    >>> people = WeightedUsers(np.full((400, 1), 0.3))
    >>> are_crowded(people, width=0.2, at_least=300, epsilon=1.0, account=Account.open(epsilon=1.0))
    True
    """
    more = fullest_cell(users, width) - at_least
    mechanism = ChooseBest(candidates=2, epsilon=epsilon, relation=account.relation)
    return mechanism.release(np.array([more, -more], dtype=np.int64), account=account) == 0
