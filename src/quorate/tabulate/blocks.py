"""The releases that a table is made of: records, people, and their errors.

A *block* is one vector a person over all groups, one length, one noisy sum. Records and sums of
values share a block: a person who exceeds the length is scaled down as a whole, so that sums and
counts shrink alike and a mean, their ratio, stays a weighted mean. People are a block of their own,
since somebody with a thousand records is still one person.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from quorate._validate import float_down
from quorate.accounting.account import Account
from quorate.mechanisms.laplace import LaplaceSum
from quorate.mechanisms.sums import GaussianSum, fitting_grid
from quorate.tabulate.gathering.cells import cells_of, totals_by_group
from quorate.tabulate.lengths import Lengths, capped_steps
from quorate.tabulate.looks import (
    Shape,
    cut_target,
    found_length,
    rounded_length,
    spendable,
)
from quorate.users.crowd import Crowd
from quorate.users.data import UserData, ordered_users

__all__ = ["Block", "noise_of_unit", "noisy_sum", "presence_of", "release_block", "tail_factor"]

Floats = NDArray[np.float64]
Noisy = GaussianSum | LaplaceSum


def tail_factor(*, gaussian: bool, beta: float) -> float:
    """Return how many standard deviations noise exceeds with chance ``beta``, on either side.

    >>> [round(tail_factor(gaussian=kind, beta=0.05), 3) for kind in (True, False)]
    [1.96, 2.118]
    """
    from scipy.special import ndtri

    if gaussian:
        return -float(ndtri(beta / 2))
    return -math.log(beta) / math.sqrt(2.0)


@dataclass(frozen=True, kw_only=True)
class Block:
    """What one block released.

    Attributes
    ----------
    counts : array of shape (groups,) or None
    sums : array of shape (columns, groups)
        About the centres of the shape, in the units of the data.
    count_errors, sum_errors
        Standard deviations of the noise.
    shape : Shape
    length : float
        What everybody was pulled in to.
    cut : float
        About how many people were above it; 0 if the length was stated.
    gaussian : bool
    """

    counts: Floats | None
    sums: Floats
    count_errors: Floats
    sum_errors: Floats
    shape: Shape
    length: float
    cut: float
    gaussian: bool


def noisy_sum(bound: Lengths, *, account: Account, n_users: int) -> Noisy:
    """Return the sum that spends all that is left of ``account``.

    >>> account = Account.open(epsilon=1.0)
    >>> noisy_sum(Lengths(2.0, 3, norm=1, signed=False), account=account, n_users=9).epsilon
    1.0
    """
    relation = account.relation
    if spendable(account):
        multiplier = account.multiplier(account.square_left)
        noise = multiplier * bound.l2_diameter
        grid = fitting_grid(bound, n_users=n_users, relation=relation, noise=noise)
        return GaussianSum(grid=grid, noise_multiplier=multiplier, relation=relation)
    epsilon = float_down(account.left)
    noise = bound.l1_diameter / epsilon
    grid = fitting_grid(bound, n_users=n_users, relation=relation, noise=noise)
    return LaplaceSum(grid=grid, epsilon=epsilon, relation=relation)


def noise_of_unit(shape: Shape, account: Account) -> float:
    """Return the standard deviation of the noise over the length, before the search is paid.

    >>> account = Account.open(epsilon=2.0)
    >>> round(noise_of_unit(Shape(weights=np.ones(3), norm=1), account), 3)
    1.414
    """
    reach = shape.bound(1.0).change(account.relation)[shape.norm - 1]
    if spendable(account):
        return reach / math.sqrt(float(account.square_left))
    return math.sqrt(2.0) * reach / float(account.left)


@dataclass(frozen=True)
class _Totals:
    """The exact sum of everybody's capped vector, in steps: coordinates x groups."""

    shape: Shape
    bound: Lengths
    step: float

    def __call__(self, part: UserData) -> NDArray[np.int64]:
        cells = cells_of(part)
        vectors = self.shape.vectors(cells)
        steps = capped_steps(vectors, cells.owners, cells.n_users, bound=self.bound, step=self.step)
        size = self.shape.groups
        return np.concatenate([totals_by_group(cells.groups, each, size) for each in steps])


def release_block(
    crowd: Crowd, shape: Shape, *, account: Account, n_users: float, length: float | None
) -> Block:
    """Find a length unless it is stated, and spend the rest on the noisy sum.

    Parameters
    ----------
    crowd : Crowd
        Of cells.
    shape : Shape
    account : Account
        Everything that is left of it is spent.
    n_users : float
        Public or released.
    length : float or None

    Examples
    --------
    >>> cells = UserData(np.tile([0.0, 5.0], (1000, 1)), offsets=range(1001))
    >>> block = release_block(
    ...     cells,
    ...     Shape(weights=np.ones(1)),
    ...     account=Account.open(epsilon=5.0, delta=1e-6),
    ...     n_users=1000.0,
    ...     length=5.0,
    ... )
    >>> bool(abs(block.counts[0] - 5000) < 50)
    True
    """
    cut = 0.0
    if length is None:
        noise = noise_of_unit(shape, account)
        cut, part = cut_target(noise=noise, shape=shape, account=account, n_users=n_users)
        length = found_length(crowd, shape, account=account, target=cut, part=part, n_users=n_users)
    bound = shape.bound(rounded_length(length))
    mechanism = noisy_sum(bound, account=account, n_users=crowd.n_users)
    totals = crowd.add_up(_Totals(shape, bound, mechanism.grid.step), whole=True)
    found = mechanism.release(totals, count=0.0, account=account)
    found = found.reshape(shape.coordinates, shape.groups) / shape.weights
    errors = mechanism.standard_error / shape.weights
    first = int(shape.counted)
    units = np.array(shape.units)[:, None]
    return Block(
        counts=found[0] if shape.counted else None,
        sums=found[first:] * units,
        count_errors=errors,
        sum_errors=errors * units,
        shape=shape,
        length=bound.radius,
        cut=cut,
        gaussian=isinstance(mechanism, GaussianSum),
    )


@dataclass(frozen=True)
class _Presence:
    """Counts each cell once."""

    def __call__(self, part: UserData) -> UserData:
        X = np.column_stack([part.X[:, 0], np.ones(len(part.X))])
        return ordered_users(X, None, part.offsets, part.keys(), part.unit, None)


def presence_of(crowd: Crowd) -> Crowd:
    """Return the cells of a crowd with a count of 1: who is in which group.

    >>> presence_of(UserData([[3.0, 7.0]], offsets=[0, 1])).X.tolist()
    [[3.0, 1.0]]
    """
    return crowd.derive(_Presence())
