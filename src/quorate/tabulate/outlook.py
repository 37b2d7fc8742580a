"""How much noise a table will have, from public numbers: what a fit pays, and nothing drawn.

The same decisions as in :class:`~quorate.tabulate.user_table.UserTable`, in the same order, on an
account that nobody draws from.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from quorate._validate import exact
from quorate.accounting.account import Account
from quorate.accounting.account_parts import forgo
from quorate.guarantees import Relation
from quorate.tabulate.blocks import noise_of_unit
from quorate.tabulate.gathering.cells import ValueColumn
from quorate.tabulate.looks import (
    COUNT_SHARE,
    WEIGHT_SHARE,
    Shape,
    cut_target,
    noise_norm,
    spendable,
)
from quorate.tabulate.usual import median_price, tail_target, value_ladder

__all__ = ["Outlook", "outlook", "sum_outlook"]


@dataclass(frozen=True, kw_only=True)
class Outlook:
    """What public numbers say about the noise of a table of counts and sums.

    Attributes
    ----------
    norm : {1, 2}
        Which lengths noise is about: 1 for Laplace, 2 for Gaussian noise.
    noise : float
        Standard deviation of the noise in a cell, over the length that everybody is pulled in to.
    stated : float
        The same if the length is stated and nothing is looked for.
    cut : float
        About how many people will be above the length.
    coordinates : int
        How many numbers a cell has.
    measured : bool, default=True
        Whether enough people answer to say what values are usual and how much they differ;
        otherwise sums are counted in parts of their range.
    """

    norm: int
    noise: float
    stated: float
    cut: float
    coordinates: int
    measured: bool = True


def outlook(
    *,
    users: int,
    epsilon: float,
    delta: float,
    relation: Relation,
    groups: int,
    columns: int,
) -> Outlook:
    """Return what a table of counts, and of sums or means of so many columns, pays and adds.

    A look that a fit might spare itself, as too few people answer it, counts as paid for.

    >>> seen = outlook(
    ...     users=20_000,
    ...     epsilon=1.0,
    ...     delta=1e-6,
    ...     relation=Relation.ADD_REMOVE,
    ...     groups=50,
    ...     columns=1,
    ... )
    >>> seen.norm, round(seen.noise, 1), round(seen.cut)
    (2, 4.6, 163)
    """
    account = Account.open(epsilon=epsilon, delta=delta, relation=relation)
    norm = noise_norm(account, groups * (1 + columns))
    rest = account.rest() if norm == 2 else account.part_of(epsilon=account.left)
    value = ValueColumn(column=0, lower=0.0, upper=1.0)
    shape = Shape(
        columns=(value,) * columns,
        centres=(0.5,) * columns,
        units=(0.5,) * columns,
        weights=np.ones(groups),
        norm=norm,
    )
    stated = noise_of_unit(shape, rest)
    if relation is not Relation.REPLACE:
        forgo(rest, COUNT_SHARE * _whole(rest))
    if groups > 1:
        forgo(rest, WEIGHT_SHARE * _whole(rest))
    block, ladder = rest.rest(), value_ladder(value.lower, value.upper).size
    measured = True
    if columns:
        price, largest = median_price(block, ladder, users, columns)
        forgo(block, columns * min(price, largest))
        target, part = tail_target(block, users, columns)
        measured = price <= largest and target <= users / 4
        forgo(block, (1 + columns) * exact(part))
    noise = noise_of_unit(shape, block)
    cut, part = cut_target(noise=noise, shape=shape, account=block, n_users=users)
    forgo(block, exact(part))
    return Outlook(
        norm=norm,
        noise=noise_of_unit(shape, block),
        stated=stated,
        cut=cut,
        coordinates=1 + columns,
        measured=measured,
    )


def sum_outlook(
    *, users: int, epsilon: float, delta: float, relation: Relation, columns: int
) -> Outlook:
    """Return what the sum of one of so many columns pays and adds, its cap found privately.

    The same decisions as in :class:`~quorate.tabulate.user_sum.UserSum`.

    >>> seen = sum_outlook(
    ...     users=20_000, epsilon=1.0, delta=0.0, relation=Relation.REPLACE, columns=1
    ... )
    >>> seen.norm, round(seen.noise, 1), round(seen.cut)
    (1, 1.6, 129)
    """
    account = Account.open(epsilon=epsilon, delta=delta, relation=relation)
    norm = noise_norm(account, columns)
    rest = account.rest() if norm == 2 else account.part_of(epsilon=account.left)
    shape = Shape(
        columns=(ValueColumn(column=0, lower=0.0, upper=1.0),),
        centres=(0.0,),
        units=(1.0,),
        weights=np.ones(1),
        counted=False,
        norm=norm,
    )
    stated = noise_of_unit(shape, rest.rest().part(Fraction(1, columns)))
    if relation is not Relation.REPLACE:
        forgo(rest, COUNT_SHARE * _whole(rest))
    part = rest.rest().part(Fraction(1, columns))
    noise = noise_of_unit(shape, part)
    cut, price = cut_target(noise=noise, shape=shape, account=part, n_users=users)
    forgo(part, exact(price))
    return Outlook(
        norm=norm, noise=noise_of_unit(shape, part), stated=stated, cut=cut, coordinates=1
    )


def _whole(account: Account) -> Fraction:
    return account.square if spendable(account) else account.epsilon
