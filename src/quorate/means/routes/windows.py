r"""The smallest window of one feature that holds most users: one private statistic before a search.

Numbers are in half-widths of the public range. The fullness of a window, in users, is

.. math:: W - a P - s n

where W users are in the window, P of them in its fullest cell (or a sixteenth of all users if the
fullest cell has fewer), and n is the public or released number of users. Its sensitivity is derived
in :mod:`quorate.core.questions.windows`. With a = 0 a window is full if it holds a share s of the
users. With a = 1 - s users who all have the same value are ignored: a full window also holds a
share s of the other users.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce

from quorate.core.account.account import Account
from quorate.core.questions.windows import FINE, CellCounts
from quorate.core.sealed import Sealed, SealedRows
from quorate.means.routes.expected_errors import (
    ALIKE,
    FEWEST_ALIKE,
    IN_WINDOW,
    OTHERS,
    POINT,
    widths,
)
from quorate.mechanisms.choices.choose import ChooseBest

__all__ = ["Windows"]


@dataclass(frozen=True)
class Windows:
    """One cell for the value of each present user, and counts of users in windows of cells.

    Parameters
    ----------
    cells : CellCounts
    size : float
        How many users there are, public or released.

    Examples
    --------
    >>> import numpy as np
    >>> from quorate.core.people import People
    >>> from quorate.core.users import UserData
    >>> account = Account.open(epsilon=1.0)
    >>> rows = np.random.default_rng(0).uniform(0.3, 0.31, size=(400, 1))
    >>> people = People(UserData(rows, offsets=range(401)), account.relation)
    >>> values = people.each(lambda users: users.X[:, 0])
    >>> Windows.of(values, size=400.0).how_narrow(epsilon=1.0, account=account)
    0.0078125
    """

    cells: CellCounts
    size: float

    @classmethod
    def of(cls, values: SealedRows, *, size: float) -> Windows:
        """Return the cells of values between -1 and 1, one for each user."""
        return cls(CellCounts.of(values, cell=POINT), size)

    def above(self, width: float, share: float, *, alike: float = 0.0) -> Sealed:
        """Return by how many users, in 64ths, the fullest window exceeds the required number."""
        fullest = self.cells.fullest(
            width=width,
            alike=round(FINE * alike),
            many=math.floor(FEWEST_ALIKE * self.size),
        )
        return fullest - math.ceil(FINE * share * self.size)

    def are_in(self, width: float, *, epsilon: float, account: Account) -> bool:
        r"""Release whether a window of this width holds enough users.

        Users who have the most frequent value in the window are not counted. If nearly all users
        have the same value, a window around it shows nothing about the others. The answer is wrong
        with probability at most :math:`e^{-\epsilon k}` if the number of users in the window
        differs from the required number by k.
        """
        more = self.above(width, OTHERS, alike=1.0)
        mechanism = ChooseBest(
            candidates=2, epsilon=epsilon, sensitivity=FINE, relation=account.relation
        )
        return mechanism.release((-more).beside(more), account=account) == 1

    def how_narrow(self, *, epsilon: float, account: Account) -> float | None:
        """Release the width of the smallest window with most users; None if it is a single point.

        Answer j means that width j is the smallest one with a full window; the first answer means
        that no window is full. Its score is the smallest of three margins: how far width j is above
        the required number of users, how far the next width is below it, and how far the point is
        below it. The last answer means that a single point is full; its score is how far the point
        is above the required number.
        """
        asked = widths()
        more = [self.above(width, IN_WINDOW, alike=1.0 - IN_WINDOW) for width in asked]
        same = self.above(POINT, ALIKE)
        scores = [
            _joined([*more[j - 1 : j], *(-each for each in (*more[j : j + 1], same))]).min()
            for j in range(len(more) + 1)
        ]
        mechanism = ChooseBest(
            candidates=len(scores) + 1,
            epsilon=epsilon,
            sensitivity=FINE,
            relation=account.relation,
        )
        found = mechanism.release(_joined([*scores, same]), account=account)
        return None if found == len(scores) else (1.0, *asked)[found]


def _joined(numbers: Sequence[Sealed]) -> Sealed:
    return reduce(Sealed.beside, numbers)
