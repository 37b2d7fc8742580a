"""The position of a window of one feature that contains nearly the most users."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from quorate.core.account.account import Account
from quorate.core.questions.ranks import covered_line
from quorate.core.sealed import SealedRows
from quorate.mechanisms.choices.ordered import ChooseOrdered

__all__ = ["choose_window"]

# Windows to choose from begin at every quarter of their width.
_QUARTERS = 4


@dataclass(frozen=True)
class _WindowsOf:
    """The first and the last window that contain a number between -1 and 1.

    Window i begins (i - 3) / 4 widths above the lower end of the range. So a window has four
    quarters, and a user is in four windows: those that begin at the quarter with the user's value,
    or at one of the three quarters before it.
    """

    width: float

    @property
    def last(self) -> int:
        """The index of the last quarter of a width in the range."""
        return math.ceil(2.0 * _QUARTERS / self.width)

    def __call__(self, values: NDArray[np.float64]) -> NDArray[np.int64]:
        """Return the indices of the first and the last window for each value."""
        own = np.clip(np.floor((values + 1.0) * (_QUARTERS / self.width)), 0, self.last)
        return np.column_stack([own, own + _QUARTERS - 1]).astype(np.int64)


def choose_window(values: SealedRows, *, width: float, epsilon: float, account: Account) -> float:
    """Release the middle of a window with nearly the largest number of users.

    >>> from quorate.core.by_hand import rows_by_hand
    >>> account = Account.open(epsilon=1.0)
    >>> people = rows_by_hand(np.full(300, 0.31))
    >>> found = choose_window(people, width=0.1, epsilon=1.0, account=account)
    >>> bool(abs(found - 0.31) <= 0.05)
    True
    """
    windows = _WindowsOf(width)
    domain = (0, windows.last + _QUARTERS - 1)
    fewest = covered_line(values.present().map(windows), domain=domain)
    mechanism = ChooseOrdered(epsilon=epsilon, relation=account.relation)
    first = mechanism.release(fewest, lower=1 - _QUARTERS, account=account)
    middle = (first + _QUARTERS / 2) * (width / _QUARTERS) - 1.0
    return min(max(middle, -1.0), 1.0)
