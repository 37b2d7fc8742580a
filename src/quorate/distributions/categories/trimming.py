"""Statistics of users around a released centre: their shares, and their distances."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from quorate.core.bounds.grid import row_lengths
from quorate.core.bounds.trimmed import Trimmed
from quorate.core.questions.shares import Coder
from quorate.core.users.data import UserData
from quorate.distributions.shares import dense_shares

__all__ = ["Apart", "Distances", "OwnShares", "TrimmedRows"]


@dataclass(frozen=True)
class TrimmedRows:
    """The rows from which :class:`~quorate.core.bounds.trimmed.Trimmed` computes offsets and votes.

    >>> from quorate.distributions.shares import CategoryCodes
    >>> people = UserData.from_arrays([[1.0], [0.0], [1.0]], users=[4, 9, 4])
    >>> bound = Trimmed(0.5, np.array([0.5, 0.5]), norm=1)
    >>> TrimmedRows(CategoryCodes(2), bound)(people)
    array([[0., 1., 0., 0., 0., 0.],
           [1., 0., 0., 0., 0., 0.]])
    """

    coder: Coder
    bound: Trimmed

    def __call__(self, users: UserData) -> NDArray[np.float64]:
        """Return the shares of each user; an absent user has 1 in the last column."""
        inner = self.bound.categories
        rows = np.zeros((users.n_users, self.bound.dimension))
        for place, shares, absent in dense_shares(users, self.coder, inner):
            rows[place, :inner], rows[place, -1] = shares, absent
        return rows


@dataclass(frozen=True)
class Distances:
    """How far each user's shares are from a released centre; absent users are at the centre.

    >>> from quorate.distributions.shares import CategoryCodes
    >>> people = UserData.from_arrays([[1.0], [0.0], [1.0]], users=[4, 9, 4])
    >>> Distances(CategoryCodes(2), (1.0, 0.0), norm=1)(people)
    array([2., 0.])
    """

    coder: Coder
    centre: tuple[float, ...]
    norm: int

    def __call__(self, part: UserData) -> NDArray[np.float64]:
        """Return one distance per user."""
        centre = np.array(self.centre)
        found = np.empty(part.n_users)
        for rows, shares, absent in dense_shares(part, self.coder, centre.size):
            found[rows] = np.where(absent, 0.0, row_lengths(shares - centre, self.norm))
        return found


@dataclass(frozen=True)
class OwnShares:
    """The shares of each user; 0 for an absent user.

    >>> from quorate.distributions.shares import CategoryCodes
    >>> people = UserData.from_arrays([[1.0], [0.0], [1.0]], users=[4, 9, 4])
    >>> OwnShares(CategoryCodes(2), 2)(people)
    array([[0., 1.],
           [1., 0.]])
    """

    coder: Coder
    categories: int

    def __call__(self, part: UserData) -> NDArray[np.float64]:
        """Return one row per user."""
        rows = np.zeros((part.n_users, self.categories))
        for place, shares, _ in dense_shares(part, self.coder, self.categories):
            rows[place] = shares
        return rows


@dataclass(frozen=True)
class Apart:
    """The distance between the two rows of each pair.

    >>> Apart(1)(np.array([[[0.0, 1.0], [1.0, 0.0]]]))
    array([2.])
    """

    norm: int

    def __call__(self, pairs: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return one distance per pair."""
        return row_lengths(pairs[:, 0] - pairs[:, 1], self.norm)
