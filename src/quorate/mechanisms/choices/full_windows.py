r"""Windows of one feature that hold most users: how full the best one is, and where it lies.

Numbers are put into narrow cells; a window is some of these in a row. How full a window is, is

.. math:: W - a P

where W users are in it and P of them in its fullest cell, or a public number if it holds fewer.
With a = 0 it is a number of users; otherwise those who hold the same number speak for themselves
only. One user who is replaced, added or removed moves W and P of each window by at most 1, in the
same direction unless only P moves, so the number by at most 1 (a is at most 1); and the largest
number over all windows, too. Windows that begin at a cell with users are enough: any other one can
begin at its first user, which adds to W at least what it adds to P.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from quorate.accounting.account import Account
from quorate.core.moves import Moves
from quorate.core.sealed import Closed, Sealed, SealedRows, opened_rows, seal
from quorate.exceptions import ParameterError, SealedError
from quorate.mechanisms.choices.ordered import ChooseOrdered

__all__ = ["FINE", "CellCounts", "choose_window", "window_pieces"]

FINE = 64
"""Numbers are whole: so many to a user."""
# Windows to choose from begin at every quarter of their width.
_QUARTERS = 4


class CellCounts(Closed):
    """Cells that hold anybody, and how many users they hold; nobody outside reads them.

    Examples
    --------
    >>> from quorate.core.sealed import seal_rows
    >>> from quorate.guarantees import Relation
    >>> people = CellCounts.of(seal_rows(np.array([0.31, 0.32, 0.9]), Relation.REPLACE), cell=0.01)
    >>> people.fullest(width=0.2)
    Sealed(shape=(1,), one user moves a coordinate by at most 64)
    """

    __slots__ = ("__cells", "__held", "among", "cell", "relation")
    _how = "Ask it how full the fullest window is."

    def __init__(self, values: SealedRows, cell: float) -> None:
        places = _one_row_each(values.map(_Places(cell)))
        self.__cells, self.__held = np.unique(places, return_counts=True)
        self.cell, self.relation, self.among = cell, values.relation, values.among

    @classmethod
    def of(cls, values: SealedRows, *, cell: float) -> CellCounts:
        """Put one number between -1 and 1 of each user who is present into cells of one width."""
        return cls(values.present(), cell)

    def fullest(self, *, width: float, alike: int = 0, many: int = 0) -> Sealed:
        """Return how full the fullest window is, in 64ths of a user, of which one moves 64.

        Each user in its fullest cell counts less by ``alike`` of them, at least ``many`` users.
        """
        if not 0 <= alike <= FINE or many < 0:
            raise ParameterError(
                f"Expected 0 <= alike <= {FINE} and many >= 0, got {alike!r} and {many!r}."
            )
        found = self._fullest(max(1, math.floor(width / self.cell)), alike, many)
        return seal([found], Moves(FINE, FINE**2, FINE, FINE), self.relation, self.among)

    def _fullest(self, length: int, alike: int, many: int) -> int:
        cells, held = self.__cells, self.__held
        if not cells.size:
            # An empty window; the first user who comes may move it by one and no farther.
            return -alike * many
        first = np.arange(cells.size)
        last = np.searchsorted(cells, cells + length)
        total = np.concatenate([[0], np.cumsum(held)])
        inside = FINE * (total[last] - total[first])
        if alike:
            fullest = np.full(cells.size, many)
            for place in np.flatnonzero(held > many):
                here = (first <= place) & (place < last)
                fullest[here] = np.maximum(fullest[here], held[place])
            inside = inside - alike * fullest
        return int(inside.max())

    def __repr__(self) -> str:
        return f"CellCounts(cell={self.cell!r})"


@dataclass(frozen=True)
class _Places:
    cell: float

    def __call__(self, values: NDArray[np.float64]) -> NDArray[np.int64]:
        return np.floor((values + 1.0) / self.cell).astype(np.int64)


def _one_row_each(values: SealedRows) -> NDArray[Any]:
    if values.paired:
        raise SealedError("Expected one number a user, got one a pair.")
    return opened_rows(values)


def window_pieces(
    values: NDArray[np.float64], width: float
) -> tuple[NDArray[np.uint64], NDArray[np.int64]]:
    """Return how many windows in a row hold equally many users, and minus how many; not private.

    Window i begins at quarter i - 3 of a width, counted from the lower end of the range.

    >>> lengths, losses = window_pieces(np.array([-1.0, -0.9]), 0.5)
    >>> lengths.tolist(), losses.tolist()
    ([4, 16], [-2, 0])
    """
    last = math.ceil(2.0 * _QUARTERS / width)
    places = np.clip(np.floor((values + 1.0) * (_QUARTERS / width)), 0, last).astype(np.int64)
    # A user is in the windows that begin at the own quarter or at one of the three before it.
    held, counts = np.unique(places, return_counts=True)
    starts = np.concatenate([[0], held, held + _QUARTERS, [last + _QUARTERS]])
    changes = np.concatenate([[0], counts, -counts, [0]])
    order = np.argsort(starts, kind="stable")
    inside = np.cumsum(changes[order])[:-1]
    lengths = np.diff(starts[order])
    kept = lengths > 0
    return lengths[kept].astype(np.uint64), -inside[kept].astype(np.int64)


def choose_window(values: SealedRows, *, width: float, epsilon: float, account: Account) -> float:
    """Release the middle of a window that holds about as many users as any.

    One user who is replaced, added or removed moves the number in any window by at most 1.

    >>> from quorate.core.sealed import seal_rows
    >>> account = Account.open(epsilon=1.0)
    >>> people = seal_rows(np.full(300, 0.31), account.relation)
    >>> found = choose_window(people, width=0.1, epsilon=1.0, account=account)
    >>> bool(abs(found - 0.31) <= 0.05)
    True
    """
    account.check_seal(values)
    mechanism = ChooseOrdered(epsilon=epsilon, relation=account.relation)
    pieces = window_pieces(_one_row_each(values.present()), width)
    first = mechanism.release(*pieces, lower=1 - _QUARTERS, account=account)
    middle = (first + _QUARTERS / 2) * (width / _QUARTERS) - 1.0
    return min(max(middle, -1.0), 1.0)
