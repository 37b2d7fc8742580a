r"""Medians of all groups at once: one binary search for each, all comparisons in one noisy vector.

Each person has a median of their own in each group they are in. A look compares it with the
threshold of the group: plus one half if it lies above, minus one half if below. The sum over people
is positive as long as more of them want a larger answer, and nobody has to know how many people a
group has. A person's votes over the groups are one vector, pulled in to a length as everywhere in a
table, so being in many groups costs no more.

Every look is at a threshold that was released, and its noisy sum stays: where it is far from zero,
the median is surely on one side. So the search gives an interval as well as a point.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from quorate._validate import float_down
from quorate.accounting.account import Account
from quorate.core.by_hand import sealed_by_hand
from quorate.core.moves import GridMoves
from quorate.mechanisms.laplace import LaplaceSum
from quorate.mechanisms.sums import GaussianSum, fitting_grid
from quorate.tabulate.gathering.cells import ValueColumn, cells_of, totals_by_group
from quorate.tabulate.lengths import Lengths, capped_steps
from quorate.tabulate.released import CONFIDENCE, Estimates, tail_factor
from quorate.users.crowd import Crowd
from quorate.users.data import UserData

__all__ = ["LOOKS", "group_medians"]

Floats = NDArray[np.float64]

LOOKS = 12
"""How often a range is halved: to a 4096th."""


@dataclass(frozen=True)
class _Votes:
    """The sum over people of their votes at the thresholds of all groups, in steps."""

    place: int
    thresholds: tuple[float, ...]
    bound: Lengths
    step: float

    def __call__(self, part: UserData) -> NDArray[np.int64]:
        cells = cells_of(part)
        owners, groups, size = cells.owners, cells.groups, cells.n_users
        votes = np.sign(cells.X[:, self.place] - np.array(self.thresholds)[groups]) / 2
        # Who agrees with a threshold still has the length of somebody who is there.
        lengths = np.sqrt if self.bound.norm == 2 else np.asarray
        present = np.bincount(owners, minlength=size)
        own = lengths(present)[owners] / 2
        pulled = votes * np.minimum(1.0, self.bound.radius / np.maximum(own, 0.5))
        steps = capped_steps(pulled[None], owners, size, bound=self.bound, step=self.step)
        return totals_by_group(groups, steps[0], self.bound.dimension)


def group_medians(
    crowd: Crowd,
    column: ValueColumn,
    place: int,
    *,
    groups: int,
    length: float,
    norm: int,
    account: Account,
) -> Estimates:
    """Release the median over people of their own medians, in every group.

    Parameters
    ----------
    crowd : Crowd
        Of cells.
    column : ValueColumn
        Whose range is searched.
    place : int
        Where the own medians stand in a cell.
    groups : int
    length : float
        Of a person's presence over the groups, public or released.
    norm : {1, 2}
    account : Account
        All that is left of it is spent.

    Examples
    --------
    >>> waits = np.column_stack([np.zeros(2001), np.ones(2001), np.linspace(0, 10, 2001)])
    >>> found = group_medians(
    ...     UserData(waits, offsets=range(2002)),
    ...     ValueColumn(column=1, lower=0.0, upper=100.0),
    ...     2,
    ...     groups=1,
    ...     length=1.0,
    ...     norm=2,
    ...     account=Account.open(epsilon=5.0, delta=1e-6),
    ... )
    >>> bool(abs(found.values[0] - 5.0) < 0.5), bool(found.bounds[0] < 1.0)
    (True, True)
    """
    bound = Lengths(length / 2, groups, norm=norm, signed=True)
    relation = account.relation
    mechanism: GaussianSum | LaplaceSum
    if norm == 2:
        multiplier = account.multiplier(account.square_left, count=LOOKS)
        noise = multiplier * bound.l2_diameter
        grid = fitting_grid(bound, n_users=crowd.n_users, relation=relation, noise=noise)
        mechanism = GaussianSum(grid=grid, noise_multiplier=multiplier, relation=relation)
    else:
        epsilon = float_down(Fraction(account.left) / LOOKS)
        noise = bound.l1_diameter / epsilon
        grid = fitting_grid(bound, n_users=crowd.n_users, relation=relation, noise=noise)
        mechanism = LaplaceSum(grid=grid, epsilon=epsilon, relation=relation)
    low, high = np.full(groups, column.lower), np.full(groups, column.upper)
    thresholds, sums = [], []
    for _ in range(LOOKS):
        middle = low / 2 + high / 2
        votes = _Votes(place, tuple(middle.tolist()), bound, grid.step)
        totals = crowd.add_up(votes, whole=True)
        sealed = sealed_by_hand(totals, GridMoves(grid, relation), relation)
        found = mechanism.release(sealed, count=0.0, account=account)
        low, high = np.where(found > 0, middle, low), np.where(found > 0, high, middle)
        thresholds.append(middle)
        sums.append(found)
    values = low / 2 + high / 2
    looked, noisy = np.array(thresholds), np.array(sums)
    kind = "gaussian" if norm == 2 else "laplace"
    sure = mechanism.standard_error * tail_factor(kind, beta=(1.0 - CONFIDENCE) / LOOKS)
    # The finest step of the search, and where the noise decided nothing.
    bounds = _reach(values, looked, noisy, sure, column)
    errors = _reach(values, looked, noisy, mechanism.standard_error, column)
    return Estimates(values=values, errors=errors, bounds=bounds)


def _reach(
    values: Floats, looked: Floats, noisy: Floats, margin: float, column: ValueColumn
) -> Floats:
    """Return how far the median can be if no look erred by more than ``margin``."""
    lower = np.where(noisy > margin, looked, column.lower).max(axis=0)
    upper = np.where(noisy < -margin, looked, column.upper).min(axis=0)
    reach = np.maximum(values - lower, upper - values)
    return np.asarray(np.maximum(reach, (column.upper - column.lower) / math.ldexp(1.0, LOOKS)))
