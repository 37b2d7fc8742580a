r"""Windows of one feature that contain most users: how full the fullest one is.

Numbers are assigned to narrow cells; a window is several neighbouring cells. The fullness of a
window is

.. math:: W - a P

where W users are in the window and P of them in its fullest cell; P counts only if it is at least a
public number. With a = 0 this is a number of users. With a larger a, many users with one and the
same number count less. If one user is replaced, added or removed, W and P of each window change by
at most 1, and in the same direction if both change. Since a is at most 1, the fullness of each
window changes by at most 1, and therefore the largest one too. It is enough to consider windows
that begin at a cell with users: any other window can begin at its first user, which adds to W at
least what it adds to P.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from quorate import _validate
from quorate.core.moves import Moves
from quorate.core.sealed import _KEY, Closed, Sealed, SealedRows, opened, seal
from quorate.exceptions import ParameterError, SealedError

__all__ = ["FINE", "CellCounts"]

FINE = 64
"""Numbers are whole: this many units per user."""

_MANY = 2**50  # machine: 64 times as much, and as many users, fit into 62 bits


class CellCounts(Closed[tuple[NDArray[Any], NDArray[Any]]]):
    """The non-empty cells and their numbers of users; private to this module.

    Examples
    --------
    >>> from quorate.core.sealed import seal_rows
    >>> from quorate.core.guarantees import Relation
    >>> people = CellCounts.of(seal_rows(np.array([0.31, 0.32, 0.9]), Relation.REPLACE), cell=0.01)
    >>> people.fullest(width=0.2)
    Sealed(shape=(1,), one user moves a coordinate by at most 64)
    """

    __slots__ = ("cell",)
    _asked = "CellCounts.of(...)"
    _how = "Ask it how full the fullest window is."

    def __init__(self, values: SealedRows, cell: float) -> None:
        if values.paired:
            raise SealedError("Expected one number a user, got one a pair.")
        places = opened(values.map(_Places(cell)))
        if places.ndim != 1:
            raise SealedError("Expected one number a user, got several.")
        held = np.unique(places, return_counts=True)
        super().__init__(_KEY, held, values.relation, values.among)
        self.cell = cell

    @classmethod
    def of(cls, values: SealedRows, *, cell: float) -> CellCounts:
        """Assign one number between -1 and 1 of each present user to cells of one width."""
        return cls(values.present(), cell)

    def fullest(self, *, width: float, alike: int = 0, many: int = 0) -> Sealed:
        """Return the number of users in the fullest window, in 64ths; one user changes it by 64.

        For each user in its fullest cell the number is lowered by ``alike`` 64ths, if this cell has
        at least ``many`` users.
        """
        # Other numbers would fail for some users and not for others, or wrap around.
        whole = _validate.is_integer(alike) and _validate.is_integer(many)
        if not (whole and 0 <= alike <= FINE and 0 <= many <= _MANY):
            raise ParameterError(
                f"Expected whole numbers 0 <= alike <= {FINE} and 0 <= many <= 2^50, got {alike!r} "
                f"and {many!r}."
            )
        found = self._fullest(max(1, math.floor(width / self.cell)), alike, many)
        return seal([found], Moves(FINE, FINE**2, FINE, FINE), self.relation, self.among)

    def _fullest(self, length: int, alike: int, many: int) -> int:
        cells, held = opened(self)
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
