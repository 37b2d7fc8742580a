"""Sums over users' cells: each user's values in each of some public groups.

A user is in few of many groups, so rows over all groups are never stored. Instead a function gives
the value of each *cell*, that is of one user in one group. Each number of a cell is clipped over
all cells of a user by a block of :class:`~quorate.core.bounds.blocks.Blocks`. This happens here,
whatever the function returned.

**Proof of the sensitivity.** Cells that name the same user and group are added up first, so that a
user's cells are the coordinates of one vector per block.
:func:`~quorate.core.bounds.lengths.capped_steps` scales that vector down to the length of its
block, in whole steps; a cell outside of the groups, or of an unknown user, is dropped. Only a
user's own cells are added up for the length, one after the other, so that a user's steps depend on
nobody else, to the last bit. The sum over users is one of integers, whose sensitivity is proved by
the bound.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from quorate.core.bounds.blocks import Blocks
from quorate.core.bounds.grid import Ball, Grid
from quorate.core.bounds.lengths import capped_steps
from quorate.core.users.crowd import told
from quorate.core.users.data import UserData
from quorate.exceptions import ParameterError, SchemaError

__all__ = ["AddedCells", "CellsOf"]

Integers = NDArray[np.int64]
Floats = NDArray[np.float64]
CellsOf = Callable[[UserData], tuple[Integers, Integers, list[Floats]]]
"""For each cell its user, its group and its values, with one array of values for each block."""

# Sums of floats are exact up to here.
_EXACT = 2.0**53


@dataclass(frozen=True)
class AddedCells:
    """Adds up the bounded cells of the users of a part; runs where they are stored.

    >>> people = UserData.from_arrays([[9.0], [1.0]], users=["ann", "bob"])
    >>> held = lambda users: (np.array([0, 0, 1]), np.array([0, 1, 1]), [np.array([6.0, 2.0, 1.0])])
    >>> bound = Blocks((Ball(4.0, dimension=2, norm=1),))
    >>> AddedCells(held, Grid(bound, step=2.0**-8))(people) / 256
    array([2.99609375, 1.99609375])
    """

    cells: CellsOf
    grid: Grid

    def __post_init__(self) -> None:
        bound = self.grid.bound
        parts = bound.parts if isinstance(bound, Blocks) else ()
        balls = all(isinstance(part, Ball) and not part.centre.any() for part in parts)
        if not balls or len({(part.dimension, type(part)) for part in parts}) != 1:
            raise ParameterError(f"Expected a grid of blocks of one size, got {bound!r}.")

    def __call__(self, users: UserData) -> Integers:
        """Return the sum of each block in each group, in steps."""
        expected = "the person, the group and one number a block of each cell"
        return told(lambda: self._sums(users), expected)

    def _sums(self, users: UserData) -> Integers:
        bound: Any = self.grid.bound
        groups = bound.parts[0].dimension
        owners, places, blocks = self.cells(users)
        values = [np.asarray(each, dtype=np.float64) for each in blocks]
        if len(values) != len(bound.parts) or any(v.shape != owners.shape for v in values):
            raise SchemaError("Expected one number for each cell and block.")
        inside = (owners >= 0) & (owners < users.n_users) & (places >= 0) & (places < groups)
        if not inside.all():
            owners, places, values = owners[inside], places[inside], [v[inside] for v in values]
        numbers = owners.astype(np.int64) * groups + places.astype(np.int64)
        if not np.all(np.diff(numbers) > 0):
            numbers, again = np.unique(numbers, return_inverse=True)
            added = (np.bincount(again, weights=v, minlength=len(numbers)) for v in values)
            values = [each.astype(np.float64) for each in added]
        owners, places = np.divmod(numbers, groups)
        found = np.empty((len(values), groups), dtype=np.int64)
        for number, (value, part) in enumerate(zip(values, bound.parts, strict=True)):
            known = np.where(np.isnan(value), 0.0, value)[None]
            steps = capped_steps(known, owners, users.n_users, bound=part, step=self.grid.step)
            found[number] = _totals(places, steps[0], groups)
        return found.ravel()


def _totals(groups: Integers, steps: Floats, size: int) -> Integers:
    """Return the exact sum of whole steps in each group, by the quicker of two ways."""
    largest = max(-float(steps.min(initial=0.0)), float(steps.max(initial=0.0)))
    if len(steps) * largest < _EXACT:
        return np.bincount(groups, weights=steps, minlength=size).astype(np.int64)
    totals = np.zeros(size, dtype=np.int64)
    np.add.at(totals, groups, steps.astype(np.int64))
    return totals
