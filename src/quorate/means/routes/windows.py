r"""In how small a window of one feature most people are: questions before and while it is searched.

Numbers are in half-widths of the public range. By how many users a window is above what a
:class:`~quorate.means.routes.ways.Corner` asks for is

.. math:: W - a P - s n

where W users are in the window, P of them in its fullest cell, or a twentieth of all if it holds
fewer, and n in all, which is public or released; see :mod:`quorate.mechanisms.choices.full_windows`
for how far one user moves it. With a = 0 it is a share of the users; otherwise those who hold the
same number speak for themselves only: with a = 1 - s it is a share s of the others that has to be
there, too.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce

from quorate.accounting.account import Account
from quorate.core.sealed import Sealed, SealedRows
from quorate.means.routes import ways
from quorate.mechanisms.choices.choose import ChooseBest
from quorate.mechanisms.choices.full_windows import FINE, CellCounts

__all__ = ["Windows"]


@dataclass(frozen=True)
class Windows:
    """Cells of one number of each user who is present, and what windows of them hold.

    Parameters
    ----------
    cells : CellCounts
    size : float
        How many users there are, public or released.

    Examples
    --------
    >>> import numpy as np
    >>> from quorate.core.people import People
    >>> from quorate.users import UserData
    >>> account = Account.open(epsilon=2.0)
    >>> rows = np.random.default_rng(0).uniform(0.3, 0.31, size=(400, 1))
    >>> people = People(UserData(rows, offsets=range(401)), account.relation)
    >>> values = people.each(lambda users: users.X[:, 0])
    >>> windows = Windows.of(values, size=400.0)
    >>> windows.are_in([ways.Corner(0.2, 0.75)], epsilon=1.0, account=account)
    True
    >>> windows.how_narrow(0.27, epsilon=1.0, account=account)
    0.01
    """

    cells: CellCounts
    size: float

    @classmethod
    def of(cls, values: SealedRows, *, size: float) -> Windows:
        """Return the cells of numbers between -1 and 1, one a user."""
        return cls(CellCounts.of(values, cell=ways.POINT.width), size)

    def above(self, corner: ways.Corner) -> Sealed:
        """Return by how many 64ths of a user the best window is above a corner."""
        fullest = self.cells.fullest(
            width=corner.width,
            alike=round(FINE * corner.alike),
            many=math.floor(ways.FEWEST_ALIKE * self.size),
        )
        return fullest - math.ceil(FINE * corner.share * self.size)

    def are_in(self, corners: Sequence[ways.Corner], *, epsilon: float, account: Account) -> bool:
        r"""Release whether one of some corners holds the users that it should.

        The answer is wrong with a probability of at most :math:`e^{-\epsilon k}`, k being how many
        users the best of them is above or below.
        """
        more = _joined([self.above(corner) for corner in corners]).max()
        mechanism = ChooseBest(
            candidates=2, epsilon=epsilon, sensitivity=FINE, relation=account.relation
        )
        return mechanism.release((-more).beside(more), account=account) == 1

    def how_narrow(self, first: float, *, epsilon: float, account: Account) -> float | None:
        """Release how small a window most users are in; none if it is a point.

        Answer j says that window j, the last one that is, is full; its score is the smallest of
        how far this window is above, the next one below, and the point below what they should be.
        The last answer's score is how far the point is above.
        """
        widths = ways.windows(first)
        more = [self.above(ways.narrow(width)) for width in widths]
        same = self.above(ways.POINT)
        scores = [
            _joined([*more[i - 1 : i], *(-each for each in (*more[i : i + 1], same))]).min()
            for i in range(len(more) + 1)
        ]
        mechanism = ChooseBest(
            candidates=len(scores) + 1,
            epsilon=epsilon,
            sensitivity=FINE,
            relation=account.relation,
        )
        found = mechanism.release(_joined([*scores, same]), account=account)
        return None if found == len(scores) else (first, *widths)[found]


def _joined(numbers: Sequence[Sealed]) -> Sealed:
    return reduce(Sealed.beside, numbers)
