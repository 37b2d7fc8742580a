r"""In how small a window of one feature most people are: one question before it is searched.

Numbers are in half-widths of the public range. By how many users a window is full is

.. math:: W - a P - s n

where W users are in the window, P of them in its fullest cell, or a sixteenth of all if it holds
fewer, and n in all, which is public or released; see :mod:`quorate.mechanisms.choices.full_windows`
for how far one user moves it. With a = 0 it is a share s of the users; otherwise those who hold the
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
from quorate.means.routes.ways import ALIKE, FEWEST_ALIKE, IN_WINDOW, POINT, widths
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
        """Return the cells of numbers between -1 and 1, one a user."""
        return cls(CellCounts.of(values, cell=POINT), size)

    def above(self, width: float, share: float, *, alike: float = 0.0) -> Sealed:
        """Return by how many 64ths of a user the best window is fuller than it should be."""
        fullest = self.cells.fullest(
            width=width,
            alike=round(FINE * alike),
            many=math.floor(FEWEST_ALIKE * self.size),
        )
        return fullest - math.ceil(FINE * share * self.size)

    def are_in(self, width: float, *, epsilon: float, account: Account) -> bool:
        r"""Release whether a window of this width holds the users that it should.

        The answer is wrong with a probability of at most :math:`e^{-\epsilon k}`, k being how many
        users it is above or below.
        """
        more = self.above(width, IN_WINDOW, alike=1.0 - IN_WINDOW)
        mechanism = ChooseBest(
            candidates=2, epsilon=epsilon, sensitivity=FINE, relation=account.relation
        )
        return mechanism.release((-more).beside(more), account=account) == 1

    def how_narrow(self, *, epsilon: float, account: Account) -> float | None:
        """Release how small a window most users are in; none if it is a point.

        Answer j says that window j is the last one that is full; the first that none is, so that
        most users are in the range only. Its score is the smallest of how far window j is above
        what it should be, the next one below, and the point below. The last answer's score is how
        far the point is above.
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
