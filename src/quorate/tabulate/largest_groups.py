r"""Which groups are the largest: k choices, each among the groups that are left.

Everybody says of each group whether they are in it, or how many of their records are, up to a
public number. That is one small number a group, so one person moves each score a little, however
many groups they are in: a choice needs no cap on groups, as sums do. Each of the k choices is a
:class:`~quorate.mechanisms.choices.choose.ChooseBest` and costs a k-th of what there is.

What the choices promise
------------------------
Say choice i is at most b below the largest of the groups that are left, for all i together with
probability 95 %: b is the bound of one choice at a k-th of 5 %. At most i - 1 groups are gone
before it, so the largest that is left is at least the group that is truly the i-th. Hence **every
chosen group is at most b smaller than the one that truly has its place**.
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
    """How many records each person has in each group; the core cuts them to ``high``.

    >>> people = UserData([[0.0, 7.0], [2.0, 1.0]], offsets=[0, 2])
    >>> [(place, said.tolist()) for place, said in _Records(3, 2)(people)]
    [(Ellipsis, [[7, 0, 1]])]
    """

    groups: int
    high: int
    low: int = 0

    @property
    def shape(self) -> tuple[int]:
        """One score a group."""
        return (self.groups,)

    def __call__(self, users: UserData) -> Iterator[tuple[EllipsisType, Integers]]:
        """Yield a table of each block of users."""
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
    """Release the largest of the first groups, the largest first, and how far each may be off.

    Parameters
    ----------
    people : People
        With cells for records.
    groups : int
        The first so many groups are candidates.
    chosen : int
        How many of them to release.
    most : int
        What a person counts at most in a group: 1 to count people.
    epsilon : Fraction
        For all choices together.
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
