r"""Private choice of the k largest groups: k choices, each among the remaining groups.

The score of a group is its number of people, or its number of records with at most a public number
from each person. One person changes each score by a small number, however many groups the person is
in. So a choice needs no cap on the number of groups, as sums do. Each of the k choices is a
:class:`~quorate.mechanisms.choices.choose.ChooseBest` and costs a k-th of the budget.

What the choices promise
------------------------
Let b bound, with probability 95 % for all k choices together, how far a chosen group is below the
largest remaining group: b is the bound of one choice that fails with probability 5 % / k. Before
choice i at most i - 1 groups were removed, so the largest remaining group is at least as large as
the true i-th largest. Hence **every chosen group is at most b smaller than the group that truly has
its rank**.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from types import EllipsisType

import numpy as np
from numpy.typing import NDArray

from quorate._validate import float_down
from quorate.core.account.account import Account
from quorate.core.guarantees import Relation
from quorate.core.people import People
from quorate.core.users.data import UserData
from quorate.data.by_group.person_cells import cells_of
from quorate.mechanisms.choices.choose import ChooseBest
from quorate.tabulate.released import CONFIDENCE

__all__ = ["largest_groups"]

Integers = NDArray[np.int64]

# What a block of users says of all groups stays below this number of entries.
_BLOCK = 2**22


@dataclass(frozen=True)
class _Records:
    """Number of records of each person in each group; the core clips it to ``high``.

    >>> people = UserData([[0.0, 7.0], [2.0, 1.0]], offsets=[0, 2])
    >>> [(place, said.tolist()) for place, said in _Records(3, 2)(people)]
    [(Ellipsis, [[7, 0, 1]])]
    """

    groups: int
    high: int
    low: int = 0

    @property
    def shape(self) -> tuple[int]:
        """One score per group."""
        return (self.groups,)

    def __call__(self, users: UserData) -> Iterator[tuple[EllipsisType, Integers]]:
        """Yield, for each block of users, their records in each group."""
        cells = cells_of(users)
        held = cells.X[:, 1].astype(np.int64)
        most = max(1, _BLOCK // self.groups)
        for first in range(0, users.n_users, most):
            last = min(first + most, users.n_users)
            rows = np.arange(int(cells.starts[first]), int(cells.starts[last]))
            rows = rows[cells.groups[rows] < self.groups]  # all others are no candidate
            said = np.zeros((last - first, self.groups), dtype=np.int64)
            said[cells.owners[rows] - first, cells.groups[rows]] = held[rows]
            yield ..., said


def largest_groups(
    people: People,
    *,
    groups: int,
    chosen: int,
    most: int,
    epsilon: Fraction,
    account: Account,
) -> tuple[tuple[int, ...], int]:
    """Release the largest of the first groups in decreasing order, and a bound on their error.

    Parameters
    ----------
    people : People
        People whose records are in cells.
    groups : int
        Number of candidates, which are the first groups.
    chosen : int
        How many groups to release.
    most : int
        Largest contribution of a person to the score of a group: 1 to count people.
    epsilon : Fraction
        The epsilon of all choices together.
    account : Account

    Examples
    --------
    >>> rows = np.column_stack([np.repeat([0.0, 1.0, 2.0], [50, 900, 400]), np.ones(1350)])
    >>> largest_groups(
    ...     People(UserData(rows, offsets=range(1351)), Relation.REPLACE),
    ...     groups=3,
    ...     chosen=2,
    ...     most=1,
    ...     epsilon=Fraction(1, 2),
    ...     account=Account.open(epsilon=1.0),
    ... )
    ((1, 2), 29)
    """
    scores = people.scores(_Records(groups, most))
    left, found, behind = list(range(groups)), [], 0
    for _ in range(chosen):
        choice = ChooseBest(
            candidates=len(left),
            epsilon=float_down(epsilon / chosen),
            sensitivity=most,
            relation=account.relation,
            one_sided=account.relation is Relation.ADD_REMOVE,
        )
        place = choice.release(scores, account=account)
        behind = max(behind, choice.error_bound((1 - CONFIDENCE) / chosen))
        found.append(left.pop(place))
        scores = scores[:place].beside(scores[place + 1 :])
    return tuple(found), behind
