"""Small paid looks at how people differ, before a table is released.

A table is as good as its cap: too high, and everybody's noise is that of the busiest person; too
low, and busy people lose what they hold. Where groups differ in size, a small one should get less
noise than a large one, and where a value is added up, it should be counted from its usual size, in
units of its usual spread. None of this is public knowledge, so a few percent of the budget look for
it:

* :mod:`quorate.tabulate.usual`: a median over people, one number a person;
* :func:`group_weights`: how a person's squared length is spread over the groups, one vector of
  length 1 a person;
* :func:`found_length`: a length that a planned number of people exceed.

How many people may exceed it is a function of public numbers. Noise of size s times the length R
hits D coordinates, so lowering R by dR saves s sqrt(D) dR, and costs each person above R as much:
in length if all of them lean the same way, and less the more their groups differ. Both are equal at
s sqrt(D) people in one group; with G groups G^(1/3) times as many did best on tables of people who
differ in activity and taste (``benchmarks/tables.py``).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import partial

import numpy as np
from numpy.typing import NDArray

from quorate._validate import exact, float_down
from quorate.accounting.account import Account
from quorate.accounting.costs import as_gaussian
from quorate.grid import Grid, Interval
from quorate.guarantees import Relation
from quorate.mechanisms.choices.quantiles import PrivateQuantile
from quorate.mechanisms.laplace import LaplaceSum
from quorate.mechanisms.noisy_count import NoisyCount
from quorate.mechanisms.sums import GaussianSum, NoisySearch, fitting_grid, looks_needed
from quorate.tabulate.gathering.cells import Cells, ValueColumn, cells_of, totals_by_group
from quorate.tabulate.lengths import Lengths, capped_steps
from quorate.users.crowd import Crowd
from quorate.users.data import UserData

__all__ = [
    "COUNT_SHARE",
    "LADDER",
    "SEEN",
    "WEIGHT_SHARE",
    "Shape",
    "cut_target",
    "found_length",
    "group_weights",
    "noise_norm",
    "number_of_users",
    "pure_is_better",
    "pure_part",
    "rounded_length",
    "seen_purely",
    "spendable",
]

Floats = NDArray[np.float64]

LADDER = np.arange(-24.0, 8.0, 0.5)
"""Candidate lengths as powers of one half: from 2^24 records down to less than one."""

COUNT_SHARE = Fraction(1, 50)
"""What is paid for the number of people where it is not public."""
WEIGHT_SHARE = Fraction(3, 100)
"""What is paid for the sizes of the groups."""
_SEARCH_SHARE = Fraction(1, 10)
# A search that could not tell half of the people from nobody would answer anything, up to the
# longest length there is: it may have this part of what is left.
_BLIND_SHARE = Fraction(2, 5)
SEEN = 4.0
"""A search is sure of what is so many standard deviations of its noise away."""

# A pure search now and then answers anything. Lengths beyond this are the less likely the longer
# they are, in points of the ladder's most likely step, so that none of them costs much on average.
_USUAL, _POINTS = 32.0, 2**20
_MIDDLE = 0.25
_DIGITS = 1024
# Shares of people are stated in so many parts.
_PARTS = 10_000


def spendable(account: Account) -> bool:
    """Tell whether an account pays Gaussian noise, or pure privacy only.

    >>> spendable(Account.open(epsilon=1.0, delta=1e-6)), spendable(Account.open(epsilon=1.0))
    (True, False)
    """
    return account.square > 0


def pure_is_better(account: Account, coordinates: int) -> bool:
    r"""Tell whether Laplace noise errs less than Gaussian noise, from public numbers.

    For vectors of D coordinates the L1 length is up to :math:`\sqrt D` times the L2 length, so
    noise of standard deviation :math:`\sqrt{2D}/\varepsilon` stands against :math:`1/\mu`.

    >>> account = Account.open(epsilon=1.0, delta=1e-6)
    >>> pure_is_better(account, 8), pure_is_better(account, 9)
    (True, False)
    """
    return 2.0 * coordinates * float(account.square) < float(account.epsilon) ** 2


def noise_norm(account: Account, coordinates: int, algorithm: str = "auto") -> int:
    """Return which lengths noise is about: 1 for Laplace noise, 2 for Gaussian noise.

    >>> account = Account.open(epsilon=1.0, delta=1e-6)
    >>> noise_norm(account, 8), noise_norm(account, 9), noise_norm(account, 9, "laplace")
    (1, 2, 1)
    """
    wanted = "laplace" if pure_is_better(account, coordinates) else "gaussian"
    return 2 if (wanted if algorithm == "auto" else algorithm) == "gaussian" else 1


def pure_part(account: Account, share: Fraction) -> Fraction:
    """Return an epsilon whose price is about this share of the account.

    >>> pure_part(Account.open(epsilon=1.0), Fraction(1, 4))
    Fraction(1, 4)
    """
    if not spendable(account):
        return share * account.epsilon
    # Small losses cost the square of sqrt(pi/2) epsilon; a little less, for what is not small.
    part = exact(math.sqrt(float(share * account.square) / (math.pi / 2)) * 0.99)
    while as_gaussian(part) > share * account.square:
        part *= Fraction(9, 10)
    return part


@dataclass(frozen=True, kw_only=True)
class Shape:
    """What is public or released about a table before its cells: sizes, units and weights.

    Attributes
    ----------
    columns : tuple of ValueColumn
    centres : tuple of float
        What the values of each column are counted from.
    units : tuple of float
        What counts as much as one record.
    weights : array of shape (groups,)
        How much a cell of each group counts in a length; its noise is divided by it.
    counted : bool
        Whether the number of records is one of the coordinates.
    norm : {1, 2}
    first : int
        Where the sums of the first column stand in a cell.

    Examples
    --------
    >>> column = ValueColumn(column=1, lower=0.0, upper=8.0)
    >>> shape = Shape(columns=(column,), centres=(5.0,), units=(2.0,), weights=np.ones(2))
    >>> cells = UserData([[1.0, 3.0, 2.0 / column.step]], offsets=[0, 1])
    >>> shape.vectors(cells_of(cells)).tolist()
    [[3.0], [-0.5]]
    """

    columns: tuple[ValueColumn, ...] = ()
    centres: tuple[float, ...] = ()
    units: tuple[float, ...] = ()
    weights: Floats
    counted: bool = True
    norm: int = 2
    first: int = 2

    @property
    def groups(self) -> int:
        """How many groups there are."""
        return len(self.weights)

    @property
    def coordinates(self) -> int:
        """How many coordinates a cell has."""
        return int(self.counted) + len(self.columns)

    @property
    def signed(self) -> bool:
        """Whether a coordinate can be negative."""
        pairs = zip(self.columns, self.centres, strict=True)
        return any(centre > column.lower for column, centre in pairs)

    def bound(self, radius: float) -> Lengths:
        """Return where the vector of one person over all groups must lie."""
        return Lengths(radius, self.groups * self.coordinates, norm=self.norm, signed=self.signed)

    def vectors(self, cells: Cells) -> Floats:
        """Return the weighted coordinates, each for all cells."""
        values = np.empty((self.coordinates, len(cells.X)))
        # A group is always in the table, so nothing is clipped: it is the quickest way to look up.
        weights, first = np.take(self.weights, cells.groups, mode="clip"), int(self.counted)
        if self.counted:
            np.multiply(cells.X[:, 1], weights, out=values[0])
        for place in range(len(self.columns)):
            self._sums(cells, place, weights, self.units[place], out=values[first + place])
        return values

    def powers(self, cells: Cells) -> Floats:
        """Return each person's length, squared if it is the root of a sum of squares.

        About the same coordinates are asked for again in other units: they are added up once.
        """
        key, total = self.weights.tobytes(), np.zeros(cells.n_users)
        if self.counted:
            total += cells.known((key, self.norm), lambda: self._powers_of_records(cells))
        for place, column in enumerate(self.columns):
            what = (key, self.norm, column, self.first + place, self.centres[place])
            powers = cells.known(what, partial(self._powers_of_sums, cells, place))
            total += (column.half_width / self.units[place]) ** self.norm * powers
        return total

    def _powers_of_records(self, cells: Cells) -> Floats:
        return cells.weighed(self._power(cells.X[:, 1]), self._power(self.weights))

    def _powers_of_sums(self, cells: Cells, place: int) -> Floats:
        values = np.empty(len(cells.X))
        self._sums(cells, place, None, self.columns[place].half_width, out=values)
        return cells.weighed(self._power(values), self._power(self.weights))

    def _power(self, values: Floats) -> Floats:
        return np.abs(values) if self.norm == 1 else np.square(values)

    def _sums(
        self, cells: Cells, place: int, weights: Floats | None, unit: float, *, out: Floats
    ) -> None:
        column = self.columns[place]
        np.multiply(cells.X[:, self.first + place], column.step / unit, out=out)
        out += cells.X[:, 1] * ((column.middle - self.centres[place]) / unit)
        if weights is not None:
            out *= weights


def number_of_users(crowd: Crowd, account: Account) -> float:
    """Return how many people there are: public under replacement, otherwise bought.

    >>> number_of_users(UserData(np.ones((5, 1)), offsets=range(6)), Account.open(epsilon=1.0))
    5.0
    """
    if account.relation is Relation.REPLACE:
        return float(crowd.n_users)
    if not spendable(account):
        count = NoisyCount(epsilon=COUNT_SHARE * account.epsilon, relation=account.relation)
        return float(max(1, count.release(crowd.n_users, account=account)))
    grid = Grid(Interval(0.0, 1.0, centre=0.0), step=2.0**-28)
    multiplier = account.multiplier(COUNT_SHARE * account.square)
    total = GaussianSum(grid=grid, noise_multiplier=multiplier, relation=account.relation)
    steps = np.array([crowd.n_users * 2**28], dtype=np.int64)
    return max(1.0, float(total.release(steps, count=0.0, account=account)[0]))


@dataclass(frozen=True)
class _Portions:
    """The sum over people of how their length is spread over the groups, in steps."""

    bound: Lengths
    step: float
    power: int

    def __call__(self, part: UserData) -> NDArray[np.int64]:
        cells = cells_of(part)
        # At least 1 in all, so everybody is pulled in to it.
        powers = cells.X[:, 1] ** self.power
        steps = capped_steps(
            powers[None],
            cells.owners,
            cells.n_users,
            bound=self.bound,
            step=self.step,
        )
        return totals_by_group(cells.groups, steps[0], self.bound.dimension)


def group_weights(
    crowd: Crowd, *, groups: int, norm: int, presence: bool, account: Account, n_users: float
) -> Floats:
    r"""Return how much a record of each group counts in a person's length.

    Let :math:`Y_g` be the part of people's squared length that lies in group g. For a given budget
    the errors of all groups, each relative to the root of its size, have the least sum of squares
    with weights :math:`Y_g^{-1/2}` for Gaussian noise, and :math:`Y_g^{-2/3}` for Laplace noise.
    Parts that drown in their own noise count as just visible.

    >>> cells = UserData(np.array([[0.0, 5.0]] * 990 + [[1.0, 5.0]] * 10), offsets=range(1001))
    >>> account = Account.open(epsilon=9.0, delta=1e-6)
    >>> weights = group_weights(
    ...     cells, groups=2, norm=2, presence=False, account=account, n_users=1000.0
    ... )
    >>> bool(weights[1] > 2 * weights[0])
    True
    """
    if groups == 1:
        return np.ones(1)
    # One vector of portions a person: they add up to 1.
    bound = Lengths(1.0, groups, norm=1, signed=False)
    mechanism: GaussianSum | LaplaceSum
    relation = account.relation
    if spendable(account):
        multiplier = account.multiplier(WEIGHT_SHARE * account.square)
        grid = fitting_grid(bound, n_users=crowd.n_users, relation=relation, noise=2 * multiplier)
        mechanism = GaussianSum(grid=grid, noise_multiplier=multiplier, relation=relation)
    else:
        epsilon = float_down(WEIGHT_SHARE * account.epsilon)
        grid = fitting_grid(bound, n_users=crowd.n_users, relation=relation, noise=2 / epsilon)
        mechanism = LaplaceSum(grid=grid, epsilon=epsilon, relation=relation)
    # Squares add up to the squared length, which Gaussian noise is about.
    totals = crowd.add_up(_Portions(bound, grid.step, 0 if presence else norm), whole=True)
    found = mechanism.release(totals, count=0.0, account=account)
    portions = np.maximum(found, 2.0 * mechanism.standard_error)
    weights = portions ** (-1 / 2 if norm == 2 else -2 / 3)
    # On average over people's records a weight of 1.
    power = 2 if norm == 2 else 1
    mean = float(np.sum(portions * weights**power) / np.sum(portions)) ** (1 / power)
    return np.asarray(weights / mean)


def seen_purely(epsilon: float) -> float:
    """Return how many people a quantile on the ladder hardly ever misses, at ``epsilon``.

    >>> round(seen_purely(0.1))
    129
    """
    return 2.0 / epsilon * math.log(10.0 * LADDER.size)


def cut_target(
    *, noise: float, shape: Shape, account: Account, n_users: float
) -> tuple[float, float]:
    """Return how many people a length should leave above it, and the search's part of the budget.

    From public numbers: the part is a share of the squared budget, or of epsilon. A search finds
    nothing that drowns in its own noise, so no fewer people are left above than it can see.

    Parameters
    ----------
    noise : float
        Standard deviation of the noise over the length.
    shape : Shape
    account : Account
    n_users : float

    Examples
    --------
    >>> account = Account.open(epsilon=1.0, delta=1e-6)
    >>> target, part = cut_target(
    ...     noise=4.5, shape=Shape(weights=np.ones(50)), account=account, n_users=20_000.0
    ... )
    >>> round(target), round(part / float(account.square), 3)
    (131, 0.1)
    """
    spread = math.sqrt(shape.groups * shape.coordinates) * shape.groups ** (1 / 3)
    wanted = max(1.0, min(noise * spread, n_users / 3.0))
    if spendable(account):
        looks, largest = looks_needed(LADDER.size), float(_SEARCH_SHARE * account.square)
        blind = min(4.0 * looks * (SEEN / n_users) ** 2, float(_BLIND_SHARE * account.square_left))
        part = min(looks * (SEEN / wanted) ** 2, max(largest, blind))
        seen = SEEN * math.sqrt(looks / part)
    else:
        blind = min(seen_purely(n_users / 2.0), float(_BLIND_SHARE * account.left))
        part = max(float(_SEARCH_SHARE * account.epsilon), blind)
        seen = seen_purely(part)
    return max(1.0, min(max(wanted, seen), n_users / 2.0)), part


@dataclass(frozen=True)
class _Depths:
    """Minus the power of two of each person's length; never reached by who holds nothing."""

    shape: Shape

    def __call__(self, part: UserData) -> Floats:
        cells = cells_of(part)
        with np.errstate(divide="ignore"):
            return np.asarray(np.log2(self.shape.powers(cells)) * (-1.0 / self.shape.norm))


def rounded_length(length: float) -> float:
    """Return a length with few digits, so that it is a whole number of steps on any grid.

    >>> rounded_length(2.0**0.5), rounded_length(20.0)
    (1.4140625, 20.0)
    """
    fraction, power = math.frexp(length)
    return math.ldexp(round(fraction * _DIGITS), power) / _DIGITS


@dataclass(frozen=True)
class _DepthPlaces:
    """The place of each person's length on the ladder; the last one for who holds nothing."""

    shape: Shape

    def __call__(self, part: UserData) -> NDArray[np.int64]:
        places = np.searchsorted(LADDER, _Depths(self.shape)(part))
        return np.minimum(places, LADDER.size - 1).astype(np.int64)


def found_length(
    crowd: Crowd, shape: Shape, *, account: Account, target: float, part: float, n_users: float
) -> float:
    """Return a length that about ``target`` people reach, from a public ladder, for ``part``.

    >>> cells = UserData(np.tile([0.0, 5.0], (1000, 1)), offsets=range(1001))
    >>> account = Account.open(epsilon=9.0, delta=1e-6)
    >>> shape = Shape(weights=np.ones(1))
    >>> found_length(cells, shape, account=account, target=20.0, part=0.1, n_users=1e3)
    4.7578125
    """
    if spendable(account):
        counts = crowd.counts(_Depths(shape), LADDER)
        search = NoisySearch(
            thresholds=LADDER,
            target=target,
            noise_multiplier=account.multiplier(part, count=looks_needed(LADDER.size)),
            relation=account.relation,
        )
        found = search.release_counts(counts, account=account, at_once=True)
    else:
        share = Fraction(max(1, round(_PARTS * target / max(n_users, 2 * target))), _PARTS)
        widths = np.rint(_POINTS * np.minimum(1.0, _USUAL / 2.0**-LADDER)).astype(np.int64)
        ends = np.cumsum(widths)
        quantile = PrivateQuantile(
            domain=(0, int(ends[-1]) - 1),
            quantile=share,
            epsilon=exact(part),
            relation=account.relation,
        )
        places = np.concatenate([np.empty(0, np.int64), *crowd.map(_DepthPlaces(shape))])
        # A person is content anywhere in their step of the ladder.
        last = ends[places] - 1
        point = quantile.release_between(last + 1 - widths[places], last, account=account)
        found = int(np.searchsorted(ends, point, side="right"))
    # Fewer people than that reach the step above: the middle of both.
    return rounded_length(2.0 ** (_MIDDLE - float(LADDER[found])))
