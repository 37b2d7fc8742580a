r"""In how small a window of one feature most people are: questions before and while it is searched.

Numbers are in half-widths of the public range and put into narrow cells; a window is some of these
in a row. By how many users a window is above what a :class:`~quorate.means.routes.ways.Corner` asks
for is

.. math:: W - a P - s n

where W users are in the window, P of them in its fullest cell, or a twentieth of all if it holds
fewer, and n in all, which is public or released. With a = 0 it is a share of the users; otherwise
those who hold the same number speak for themselves only: with
a = 1 - s it is a share s of the others that has to be there, too. One user who is replaced, added
or removed moves W and P of each window by at most 1, in the same direction unless only P moves,
so the number by at most 1 (a is at most 1); and the largest number over all windows, too.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from quorate.accounting.account import Account
from quorate.means.routes import ways
from quorate.mechanisms.choices.choose import ChooseBest

__all__ = ["Windows"]

# Numbers are whole: so many to a user.
_FINE = 64


@dataclass(frozen=True)
class Windows:
    """Cells of the range that hold anybody, in their order, and how many users they hold.

    Parameters
    ----------
    cells, held : arrays of int
    size : float
        How many users there are, public or released.

    Examples
    --------
    >>> people = Windows.of(np.random.default_rng(0).uniform(0.3, 0.31, size=400), size=400.0)
    >>> people.above(ways.Corner(0.2, 0.75)), people.above(ways.Corner(0.001, 0.75)) < 0
    (6400, True)
    >>> told = {"epsilon": 1.0, "account": Account.open(epsilon=2.0)}
    >>> people.are_in([ways.Corner(0.2, 0.75)], **told), people.how_narrow(0.27, **told)
    (True, 0.01)
    """

    cells: NDArray[np.int64]
    held: NDArray[np.int64]
    size: float

    @classmethod
    def of(cls, values: NDArray[np.float64], *, size: float) -> Windows:
        """Return the cells of numbers between -1 and 1."""
        places = np.floor((values + 1.0) / ways.POINT.width).astype(np.int64)
        return cls(*np.unique(places, return_counts=True), size=size)

    def above(self, corner: ways.Corner) -> int:
        """Return by how many 64ths of a user the best window is above a corner; not private."""
        asked = math.ceil(_FINE * corner.share * self.size)
        alike, many = round(_FINE * corner.alike), math.floor(ways.FEWEST_ALIKE * self.size)
        if not self.cells.size:
            # An empty window; the first user who comes may move it by one and no farther.
            return -alike * many - asked
        length = max(1, math.floor(corner.width / ways.POINT.width))
        first = np.arange(self.cells.size)
        last = np.searchsorted(self.cells, self.cells + length)
        total = np.concatenate([[0], np.cumsum(self.held)])
        inside = _FINE * (total[last] - total[first])
        if alike:
            fullest = np.full(self.cells.size, many)
            for place in np.flatnonzero(self.held > many):
                here = (first <= place) & (place < last)
                fullest[here] = np.maximum(fullest[here], self.held[place])
            inside = inside - alike * fullest
        return int(inside.max()) - asked

    def are_in(self, corners: Sequence[ways.Corner], *, epsilon: float, account: Account) -> bool:
        r"""Release whether one of some corners holds the users that it should.

        The answer is wrong with a probability of at most :math:`e^{-\epsilon k}`, k being how many
        users the best of them is above or below.
        """
        more = max(self.above(corner) for corner in corners)
        mechanism = ChooseBest(
            candidates=2, epsilon=epsilon, sensitivity=_FINE, relation=account.relation
        )
        return mechanism.release(np.array([-more, more], dtype=np.int64), account=account) == 1

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
            min([*more[i - 1 : i], *(-below for below in (*more[i : i + 1], same))])
            for i in range(len(more) + 1)
        ]
        mechanism = ChooseBest(
            candidates=len(scores) + 1,
            epsilon=epsilon,
            sensitivity=_FINE,
            relation=account.relation,
        )
        found = int(mechanism.release(np.array([*scores, same], dtype=np.int64), account=account))
        return None if found == len(scores) else (first, *widths)[found]
