r"""Quantiles of all groups by parallel binary searches with noisy vectors of comparisons.

Each person has a median of their own in each group they are in. A comparison asks each person about
the threshold of the group. For the quantile at q a person votes q if the median lies above the
threshold, q - 1 if below, and the middle of both if it is equal. The sum over people is positive as
long as fewer than a share q of them lie below the threshold. The number of people in a group need
not be known. At the median the votes are plus and minus one half. At other quantiles the longer
vote is up to twice as long, and so is the noise. A person's votes over the groups are one vector,
clipped to a length like the others of a table. So being in many groups costs no more.

Every threshold is released, and so is the noisy sum at it. If a sum is far from zero, the quantile
is almost surely on one side of its threshold. So the search gives a confidence interval as well as
a point.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from quorate._validate import float_down
from quorate.core.account.account import Account
from quorate.core.bounds.blocks import Blocks
from quorate.core.bounds.grid import Ball
from quorate.core.people import People
from quorate.core.users.data import UserData
from quorate.data.by_group.person_cells import ValueColumn, cells_of
from quorate.mechanisms.laplace import LaplaceSum
from quorate.mechanisms.sums import GaussianSum, fitting_grid
from quorate.tabulate.released import CONFIDENCE, Estimates, tail_factor

__all__ = ["LOOKS", "group_quantiles"]

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]

LOOKS = 12
"""How often a range is halved: to a 4096th."""


@dataclass(frozen=True)
class _Votes:
    """Everybody's votes at the thresholds of all groups, clipped to a length."""

    place: int
    thresholds: tuple[float, ...]
    bound: Ball
    fraction: float = 0.5

    def __call__(self, part: UserData) -> tuple[Integers, Integers, list[Floats]]:
        cells = cells_of(part)
        side = np.sign(cells.X[:, self.place] - np.array(self.thresholds)[cells.groups])
        votes, longest = side / 2 + (self.fraction - 0.5), _longest(self.fraction)
        # A vote for equality may be zero, but the user is clipped as if it had full length.
        present = np.bincount(cells.owners, minlength=cells.n_users)
        lengths = np.sqrt(present) if self.bound.norm == 2 else present
        own = np.maximum(lengths[cells.owners] * longest, longest)
        return cells.owners, cells.groups, [votes * np.minimum(1.0, self.bound.radius / own)]


def _longest(fraction: float) -> float:
    """Return the absolute value of the larger vote, for one side or the other."""
    return max(fraction, 1.0 - fraction)


def group_quantiles(
    people: People,
    column: ValueColumn,
    place: int,
    *,
    fraction: float = 0.5,
    groups: int,
    length: float,
    norm: int,
    account: Account,
) -> Estimates:
    """Release a quantile over people of their own medians, in every group.

    Parameters
    ----------
    people : People
        People whose records are in cells.
    column : ValueColumn
        The column whose range is searched.
    place : int
        The index of people's own medians in a cell.
    fraction : float, default=0.5
        The quantile, between 0 and 1.
    groups : int
    length : float
        Clipping length of a person's vector of presence over the groups; public or released.
    norm : {1, 2}
    account : Account
        The budget; all that is left is spent.

    Examples
    --------
    >>> from quorate.core.guarantees import Relation
    >>> waits = np.column_stack([np.zeros(2001), np.ones(2001), np.linspace(0, 10, 2001)])
    >>> found = group_quantiles(
    ...     People(UserData(waits, offsets=range(2002)), Relation.REPLACE),
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
    own = Ball(length * _longest(fraction), dimension=groups, norm=norm)
    bound, relation, size = Blocks((own,)), account.relation, people.size_bound
    mechanism: GaussianSum | LaplaceSum
    if norm == 2:
        multiplier = account.multiplier(account.square_left, count=LOOKS)
        noise = multiplier * bound.l2_diameter
        grid = fitting_grid(bound, n_users=size, relation=relation, noise=noise)
        mechanism = GaussianSum(grid=grid, noise_multiplier=multiplier, relation=relation)
    else:
        epsilon = float_down(Fraction(account.left) / LOOKS)
        noise = bound.l1_diameter / epsilon
        grid = fitting_grid(bound, n_users=size, relation=relation, noise=noise)
        mechanism = LaplaceSum(grid=grid, epsilon=epsilon, relation=relation)
    low, high = np.full(groups, column.lower), np.full(groups, column.upper)
    thresholds, sums = [], []
    for _ in range(LOOKS):
        middle = low / 2 + high / 2
        totals = people.cell_totals(_Votes(place, tuple(middle.tolist()), own, fraction), grid)
        found = mechanism.release(totals, count=0.0, account=account)
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
    """Return the largest error of the quantile if the noise of every sum is at most ``margin``."""
    lower = np.where(noisy > margin, looked, column.lower).max(axis=0)
    upper = np.where(noisy < -margin, looked, column.upper).min(axis=0)
    reach = np.maximum(values - lower, upper - values)
    return np.asarray(np.maximum(reach, (column.upper - column.lower) / math.ldexp(1.0, LOOKS)))
