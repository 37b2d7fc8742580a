"""What is usual among people: a rough median of one number a person, on a public ladder.

Sums are counted from what is usual, in units of how much people usually differ from it: then a
record and a value of one record weigh the same in a person's length, and share the noise. The
ladder has many points near zero, or near the end of the range that is closest to it, so a range
that is far too wide costs little.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from quorate._validate import exact
from quorate.accounting.account import Account
from quorate.mechanisms.choices.quantiles import PrivateQuantile
from quorate.mechanisms.sums import NoisySearch, looks_needed
from quorate.tabulate.gathering.cells import ValueColumn, cells_of
from quorate.tabulate.looks import LADDER, SEEN, Shape, found_length, seen_purely, spendable
from quorate.users.crowd import Crowd
from quorate.users.data import UserData

__all__ = [
    "median_price",
    "rough_median",
    "tail_target",
    "usual_units",
    "usual_values",
    "value_ladder",
]

Floats = NDArray[np.float64]

# Largest share of the budget that one median may cost.
_SHARE = Fraction(1, 25)
# All medians, and all lengths for units, together cost at most this share.
_ALL = Fraction(1, 5)
# A median is given up if its rank is likely to be off by more than this part of the people.
_OFF = 1 / 16
_UNIT_SHARE = Fraction(1, 50)
# Sums are looked for from a million times less than the half width of a range on.
_FINEST = 2.0**-12
_EVENLY = 1024
_HALVINGS, _BETWEEN = 30, 4


@lru_cache(maxsize=64)
def value_ladder(lower: float, upper: float) -> Floats:
    """Return public candidates in a range: evenly spaced, and closer and closer towards zero.

    >>> ladder = value_ladder(0.0, 1024.0)
    >>> ladder[0], ladder[-1], bool(np.all(np.diff(ladder) > 0))
    (np.float64(0.0), np.float64(1024.0), True)
    >>> int(np.sum(ladder < 1.0)) > 60
    True
    """
    anchor, width = min(max(0.0, lower), upper), upper - lower
    steps = 2.0 ** -np.arange(_HALVINGS)[:, None] * (1 - np.arange(_BETWEEN) / (2 * _BETWEEN))
    near = np.concatenate([[0.0], steps.ravel(), -steps.ravel()]) * width + anchor
    points = np.concatenate([np.linspace(lower, upper, _EVENLY + 1), near])
    ladder = np.unique(np.clip(points, lower, upper))
    ladder.flags.writeable = False
    return ladder


@dataclass(frozen=True)
class _Places:
    """The place of each person's number on a ladder; the last one for who has none."""

    values: Callable[[UserData], Floats]
    ladder: tuple[float, ...]

    def __call__(self, part: UserData) -> NDArray[np.int64]:
        found = self.values(part)
        return np.searchsorted(np.array(self.ladder), found[~np.isnan(found)]).astype(np.int64)


def rough_median(
    crowd: Crowd,
    values: Callable[[UserData], Floats],
    ladder: Floats,
    *,
    account: Account,
    n_users: float,
    columns: int = 1,
) -> float | None:
    """Return about the median of one number a person; None if that would cost too much.

    Whether it does is seen from public numbers. People without a number, which is NaN, do not
    count.

    >>> ages = UserData(np.arange(4000.0)[:, None] % 100, offsets=range(4001))
    >>> account = Account.open(epsilon=1.0, delta=1e-6)
    >>> ladder = np.arange(0.0, 128.0)
    >>> found = rough_median(
    ...     ages, lambda people: people.X[:, 0], ladder, account=account, n_users=4000.0
    ... )
    >>> 30 < found < 70
    True
    """
    price, largest = median_price(account, ladder.size, n_users, columns)
    if price > largest:
        return None
    if spendable(account):
        looks = looks_needed(ladder.size)
        search = NoisySearch(
            thresholds=ladder,
            target=n_users / 2,
            noise_multiplier=account.multiplier(price, count=looks),
            relation=account.relation,
        )
        found = search.release_counts(crowd.counts(values, ladder), account=account, at_once=True)
        return float(ladder[found])
    domain = (0, ladder.size - 1)
    places = crowd.map(_Places(values, tuple(ladder.tolist())))
    paid = PrivateQuantile(domain=domain, epsilon=price, relation=account.relation)
    place = paid.release(np.concatenate([np.empty(0, np.int64), *places]), account=account)
    return float(ladder[place])


def median_price(
    account: Account, size: int, n_users: float, columns: int = 1
) -> tuple[Fraction, Fraction]:
    """Return what a rough median on a ladder of ``size`` points costs, and what it may cost.

    It may cost less if it is one of very many.

    Squares where the account pays Gaussian noise, epsilons otherwise; from public numbers.

    >>> account = Account.open(epsilon=1.0)
    >>> [price <= most for price, most in (median_price(account, 999, n) for n in (900, 90_000))]
    [False, True]
    """
    off, share = max(1.0, _OFF * n_users), min(_SHARE, _ALL / columns)
    if spendable(account):
        return exact(looks_needed(size) / off**2), share * account.square
    at_one = PrivateQuantile(domain=(0, size - 1), epsilon=1, relation=account.relation)
    return exact(at_one.error_bound(0.2) / (2.0 * off)), share * account.epsilon


@dataclass(frozen=True)
class _OwnMeans:
    """The mean of a column over all cells of each person; NaN for nobody's."""

    place: int
    column: ValueColumn

    def __call__(self, part: UserData) -> Floats:
        cells = cells_of(part)
        sums, counts = cells.totals(2 + self.place), cells.totals(1)
        with np.errstate(all="ignore"):
            return np.asarray(self.column.middle + sums / counts * self.column.step)


def usual_values(
    crowd: Crowd, columns: tuple[ValueColumn, ...], *, account: Account, n_users: float
) -> tuple[float, ...]:
    """Return about the median over people of their own mean of each column.

    With too few people it is the middle of the range.

    >>> column = ValueColumn(column=1, lower=0.0, upper=8.0)
    >>> cells = UserData(np.tile([0.0, 1.0, 2.0 / column.step], (5000, 1)), offsets=range(5001))
    >>> account = Account.open(epsilon=1.0, delta=1e-6)
    >>> usual_values(cells, (column,), account=account, n_users=5000.0)
    (6.0,)
    """
    found = []
    for place, column in enumerate(columns):
        median = rough_median(
            crowd,
            _OwnMeans(place, column),
            value_ladder(column.lower, column.upper),
            account=account,
            n_users=n_users,
            columns=len(columns),
        )
        found.append(column.middle if median is None else median)
    return tuple(found)


def usual_units(
    crowd: Crowd,
    columns: tuple[ValueColumn, ...],
    centres: tuple[float, ...],
    *,
    weights: Floats,
    counted: bool,
    norm: int,
    account: Account,
    n_users: float,
) -> tuple[float, ...]:
    """Return what should count as much as one record, in each column.

    With it, the sums of busy people are about as long as their counts: the lengths that one in a
    hundred people exceeds are the same. Where hardly anybody differs from the centre, or with too
    few people, it is the half width of the range.

    >>> column = ValueColumn(column=1, lower=0.0, upper=8.0)
    >>> cells = UserData(np.tile([0.0, 4.0, 2.0 / column.step], (9000, 1)), offsets=range(9001))
    >>> account = Account.open(epsilon=4.0, delta=1e-6)
    >>> units = usual_units(
    ...     cells,
    ...     (column,),
    ...     (6.0,),
    ...     weights=np.ones(1),
    ...     counted=True,
    ...     norm=2,
    ...     account=account,
    ...     n_users=9000.0,
    ... )
    >>> 1.0 < units[0] < 2.0
    True
    """
    widths = tuple(column.half_width for column in columns)
    target, part = tail_target(account, n_users, len(columns))
    if not columns or target > n_users / 4:
        return widths
    records = 1.0
    if counted:
        shape = Shape(weights=weights, norm=norm)
        records = found_length(
            crowd, shape, account=account, target=target, part=part, n_users=n_users
        )
    found = []
    for place, column in enumerate(columns):
        unit = column.half_width * _FINEST
        shape = Shape(
            columns=(column,),
            centres=(centres[place],),
            units=(unit,),
            weights=weights,
            counted=False,
            norm=norm,
            first=2 + place,
        )
        length = found_length(
            crowd, shape, account=account, target=target, part=part, n_users=n_users
        )
        rare = length <= 2.0 ** (1 - LADDER[-1])
        found.append(widths[place] if rare else length * unit / records)
    return tuple(found)


def tail_target(account: Account, n_users: float, columns: int = 1) -> tuple[float, float]:
    """Return how many people a length for units should leave above it, and what it may cost.

    >>> target, part = tail_target(Account.open(epsilon=1.0, delta=1e-6), 20_000.0)
    >>> round(target), round(part, 6)
    (293, 0.001121)
    """
    wanted, share = n_users / 100.0, min(_UNIT_SHARE, _ALL / (1 + columns))
    if spendable(account):
        looks = looks_needed(LADDER.size)
        part = min(looks * (SEEN / max(1.0, wanted)) ** 2, float(share * account.square))
        seen = SEEN * (looks / part) ** 0.5
    else:
        part = float(share * account.epsilon)
        seen = seen_purely(part)
    return max(wanted, seen), part
