r"""One procedure behind every count, sum and mean, of all records or by group.

1. Under add/remove the number of people is released, for a fiftieth of epsilon.
2. How many groups a person counts in is looked for; it decides between Laplace and Gaussian noise.
3. Sums are counted from a rough median of people's own means, so that they pay for how much people
   differ and not for how large their values are.
4. One look a part finds its cap; one more measurement says what all caps cut.
5. What is left is noise: one vector per person and part, its length capped. In one group all parts
   share noise of the largest coordinate.

The measured clipped amount is added back to statistics that cannot be negative. The bounds include
the rest: the error of the measurement, a tail beyond twice the cap, and that clipped users may be
in other groups than most. :mod:`quorate.tabulate.budget` says what each of the steps costs.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from quorate._validate import exact, float_down
from quorate.accounting.account import Account
from quorate.accounting.costs import as_gaussian
from quorate.core.by_hand import rows_by_hand, sealed_by_hand
from quorate.core.moves import GridMoves, Moves
from quorate.core.sealed import Sealed
from quorate.grid import Bound, Box
from quorate.guarantees import Relation
from quorate.mechanisms.choices.private_cap import PrivateCap
from quorate.mechanisms.choices.quantiles import PrivateQuantile
from quorate.mechanisms.laplace import CubeSum, LaplaceSum
from quorate.mechanisms.noisy_count import NoisyCount
from quorate.mechanisms.sums import GaussianSum, fitting_grid
from quorate.tabulate.budget import (
    COUNT_SHARE,
    COUNTED,
    FEW,
    LEAST,
    ROUGH,
    TOP,
    Terms,
    evenness,
)
from quorate.tabulate.gathering.cells import ValueColumn, cells_of
from quorate.tabulate.parts import (
    Boxed,
    Cut,
    Excess,
    Holders,
    Part,
    Totals,
    record_ladder,
    value_ladder,
)
from quorate.tabulate.released import (
    CONFIDENCE,
    COVERS,
    COVERS_STATED,
    Released,
    tail_factor,
)
from quorate.users.crowd import Crowd
from quorate.users.data import UserData

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["Procedure", "number_of_users"]

Floats = NDArray[np.float64]
Noisy = GaussianSum | LaplaceSum

# Epsilons are whole multiples of 2^-33.
_DIGITS = 33
# Caps that a look compares whatever the number of people.
_SPAN = 100.0
# A Pareto tail of index 2, the heaviest with a variance, has a quarter beyond each doubling; from a
# half on nothing is too long.
_LIGHT, _HEAVY = 0.25, 0.5
# Those who are cut may be in a group with so many times the odds of everybody's records.
_ODDS = 2.0


def number_of_users(crowd: Crowd, account: Account) -> float:
    """Return the number of users: public under replacement, otherwise released.

    >>> number_of_users(UserData(np.ones((5, 1)), offsets=range(6)), Account.open(epsilon=1.0))
    5.0
    """
    if account.relation is Relation.REPLACE:
        return float(crowd.n_users)
    epsilon = short(exact(COUNT_SHARE) * account.left)
    count = NoisyCount(epsilon=epsilon, relation=account.relation)
    return float(max(1, count.release(_claimed_count(crowd.n_users, count), account=account)))


def short(epsilon: Fraction | float) -> float:
    """Return at most an epsilon, with so few digits that several of them add up without rounding.

    >>> short(0.1), short(0.75)
    (0.09999999997671694, 0.75)
    """
    whole = float_down(exact(epsilon))
    return math.ldexp(math.floor(math.ldexp(whole, _DIGITS)), -_DIGITS) or whole


def in_sight(
    caps: tuple[float, ...], aim: float, n_users: float, *, usual: float
) -> tuple[tuple[float, ...], float]:
    """Return the caps that so many people can tell apart, and the aim of a look among them.

    Where aim * ln(longest/shortest) exceeds the number of people, the shortest cap beats the
    longest even if it cuts everybody; half of that is allowed. Caps up to two powers of ten apart
    are always looked at: those around the ``usual`` one, as many powers below and above as there
    are caps.

    >>> [len(in_sight((1.0, 10.0, 1e4), 50.0, n, usual=1.0)[0]) for n in (200, 2000)]
    [2, 3]
    """
    aim = max(1.0, min(aim, FEW * n_users))
    span = min(max(math.exp(min(n_users / (2 * aim), 50.0)), _SPAN), caps[-1] / caps[0])
    whole = math.log(caps[-1] / caps[0])
    below = math.log(usual / caps[0]) / whole if whole else 0.0
    low, high = usual * span**-below, usual * span ** (1 - below)
    kept = tuple(c for c in caps if low * (1 - 1e-9) <= c <= high * (1 + 1e-9)) or caps[:1]
    most = n_users / (2 * math.log(kept[-1] / kept[0])) if len(kept) > 1 else aim
    return kept, max(1.0, min(aim, most))


@dataclass(frozen=True)
class _OwnMeans:
    """The place of each person's own mean of a column on a ladder."""

    part: Part
    ladder: tuple[float, ...]

    def __call__(self, people: UserData) -> NDArray[np.int64]:
        cells = cells_of(people)
        counts = cells.totals(1)
        held = counts > 0
        column = self.part.column
        assert column is not None  # noqa: S101 - for type checkers: records have no mean
        means = column.middle + cells.totals(2 + self.part.place)[held] / counts[held] * column.step
        return np.minimum(np.searchsorted(self.ladder, means), len(self.ladder) - 1).astype(int)


class Procedure:
    """The steps of one table; see the module.

    Parameters
    ----------
    crowd : Crowd
        Of cells.
    account : Account
        Everything that is left of it is spent by :meth:`run`.
    groups : int
    columns : sequence of ValueColumn
        That are added up.
    records, people : bool
        Whether records and people are counted.
    caps : dict
        Stated caps, by the name of the part: ``"rows"``, or the place of a column.
    held : float or None
        In how many groups a person counts fully, if that is stated.
    algorithm : {"auto", "laplace", "gaussian"}

    Examples
    --------
    >>> cells = UserData(np.tile([0.0, 20.0], (2000, 1)), offsets=range(2001))
    >>> table = Procedure(cells, Account.open(epsilon=4.0), groups=1, records=True)
    >>> found = table.run()["rows"]
    >>> bool(abs(found.values[0] - 40_000) < 300), found.cap >= 20.0
    (True, True)
    """

    def __init__(
        self,
        crowd: Crowd,
        account: Account,
        *,
        groups: int,
        columns: Sequence[ValueColumn] = (),
        records: bool = False,
        people: bool = False,
        caps: dict[str | int, float] | None = None,
        held: float | None = None,
        algorithm: str = "auto",
        several: bool = False,
    ) -> None:
        self.crowd, self.account, self.groups = crowd, account, groups
        self.columns, self.records, self.people = tuple(columns), records, people
        self.caps = dict(caps or {})
        self.algorithm = algorithm
        unknown = [*(["rows"] if records else []), *range(len(self.columns))]
        unknown = [name for name in unknown if name not in self.caps]
        asked = self._asks(held, several=several)
        self.terms = Terms(
            epsilon=float(account.left),
            mu=0.0 if algorithm == "laplace" else math.sqrt(float(account.square_left)),
            relation=account.relation,
            groups=groups,
            parts=max(1, records + people + len(self.columns)),
            looks=len(unknown) + asked,
            shared=int(asked and "rows" in unknown),
            measured=len(unknown) + (people and asked) + 1 if unknown or (people and asked) else 0,
        )
        looked = bool(unknown) or asked or (records and bool(self.columns))
        self.purse, self.norm = account, 1
        self._seen: float | None = None
        self.n_users = number_of_users(crowd, account) if looked else 1.0
        self.found = asked
        self.held = min(float(groups), held or math.inf)
        gaussian = self._gaussian()
        if asked:
            epsilon = self._look(gaussian=gaussian)
            self.held = self._cap(
                Part("people"), record_ladder(float(groups)), epsilon, gaussian=gaussian
            )
        self.gaussian = self._gaussian()
        self.norm = 2 if self.gaussian else 1
        if self.gaussian:
            self.purse = account.rest()
        else:
            self.purse = account.part_of(epsilon=account.left)

    def _asks(self, held: float | None, *, several: bool) -> bool:
        """Tell whether the number of groups per user is estimated: only if it can matter."""
        if held is not None or self.groups == 1:
            return False
        if self.people or several:
            # Two people in one group each are as far apart as two in two groups.
            return self.groups > 2 or self.account.relation is Relation.ADD_REMOVE
        return self.algorithm == "auto" and self.account.square_left > 0

    def _gaussian(self) -> bool:
        if self.algorithm != "auto" or self.account.square_left == 0:
            return self.algorithm == "gaussian"
        return self.groups > 1 and self.terms.gaussian(self.held)

    def _look(self, *, gaussian: bool) -> float:
        return self.terms.look(self.held, gaussian=gaussian, n_users=self.n_users)

    def _cap(self, part: Part, caps: tuple[float, ...], epsilon: float, *, gaussian: bool) -> float:
        """Find the cap of one part privately."""
        aim = self.terms.aim(self.held, epsilon, gaussian=gaussian)
        held = self._holders(part, (COUNTED - 1) * epsilon)
        caps, aim = in_sight(caps, aim, held, usual=part.usual(caps))
        if held < LEAST / epsilon:
            # So few hold anything that a look would leave all of them above: cut as few as may be.
            return caps[-1]
        look = PrivateCap(
            caps=caps,
            aim=aim,
            epsilon=short(epsilon),
            relation=self.account.relation,
        )
        excess = self.crowd.add_up(Excess(part, self.norm, look), whole=True)
        moves = Moves.of_scores(look.sensitivity, coordinates=len(excess), one_sided=True)
        return look.release(sealed_by_hand(excess, moves, look.relation), account=self.purse)

    def _holders(self, part: Part, epsilon: float) -> float:
        """Count who holds anything: who holds nothing is above no cap, however many they are."""
        if part.column is not None or self._seen is None:
            count = NoisyCount(epsilon=short(epsilon), relation=self.account.relation)
            holders = int(self.crowd.add_up(Holders(part), whole=True)[0])
            held = float(max(1, count.release(_claimed_count(holders, count), account=self.purse)))
            if part.column is not None:
                return held
            # Who is in a group holds a record.
            self._seen = held
        return self._seen

    @property
    def covers(self) -> str:
        """What stated errors are about."""
        return COVERS if self.terms.measured else COVERS_STATED

    def run(self, crowd: Crowd | None = None) -> dict[str | int, Released]:
        """Spend all that is left; return what was released, by the name of the part.

        ``crowd`` is the same people with sums, if they had only counts so far.
        """
        self.crowd = self.crowd if crowd is None else crowd
        parts: dict[str | int, Part] = {"rows": Part("rows")} if self.records else {}
        parts |= {place: self._column(place) for place in range(len(self.columns))}
        caps, unknown = self._all_caps(parts), [n for n in parts if n not in self.caps]
        if self.people:
            parts["people"], caps["people"] = Part("people"), self.held ** (1 / self.norm)
            unknown += ["people"] if self.found else []
        spread = evenness(self.held) if self.gaussian else 1.0
        cut = self._measure(parts, caps, unknown, spread)
        sums = self._one_group if self.groups == 1 and not self.gaussian else self._by_group
        return cut.into(sums(parts, caps), parts, caps, self.held, spread)

    def _column(self, place: int) -> Part:
        """Return the sum of a column, about its usual value if records are counted too."""
        part = Part("sums", self.columns[place], place)
        if not self.records:
            return part
        points = value_ladder(self.columns[place].lower, self.columns[place].upper)
        epsilon = min(ROUGH / self.n_users, self._look(gaussian=self.gaussian))
        median = PrivateQuantile(
            domain=(0, len(points) - 1),
            epsilon=short(epsilon),
            relation=self.account.relation,
        )
        places = self.crowd.map(_OwnMeans(part, tuple(points.tolist())))
        own = np.concatenate([np.empty(0, np.int64), *places])
        found = median.release(rows_by_hand(own, median.relation), account=self.purse)
        return Part("sums", self.columns[place], place, float(points[found]))

    def _all_caps(self, parts: dict[str | int, Part]) -> dict[str | int, float]:
        caps: dict[str | int, float] = {}
        for name, part in parts.items():
            if name in self.caps:
                caps[name] = self.caps[name]
                continue
            ladder, look = part.caps(caps.get("rows")), self._look(gaussian=self.gaussian)
            caps[name] = self._cap(part, ladder, look, gaussian=self.gaussian)
        return caps

    def _measure(
        self,
        parts: dict[str | int, Part],
        caps: dict[str | int, float],
        names: list[str | int],
        spread: float,
    ) -> _Measured:
        """Measure what the caps that were found cut."""
        if not names:
            return _Measured({}, 0.0, 0.0, 0.0)
        box = Box(
            np.zeros(len(names) + 1), np.ones(len(names) + 1), centre=np.zeros(len(names) + 1)
        )
        look = self._look(gaussian=self.gaussian)
        if self.gaussian:
            square = min(as_gaussian(exact(look)), self.purse.square_left / 2)
            mechanism = self._sum(box, square=square)
        else:
            mechanism = self._sum(box, epsilon=exact(look * self.terms.measured_price), cube=True)
        work = Cut(
            tuple(parts[name] for name in names),
            tuple(caps[name] for name in names),
            tuple(caps[name] * spread for name in names),
            self.norm,
            mechanism.grid,
        )
        totals = _claimed(self.crowd.add_up(work, whole=True), mechanism)
        found = mechanism.release(totals, count=0.0, account=self.purse)
        return _Measured(
            dict(zip(names, found.tolist(), strict=False)),
            float(found[-1]),
            mechanism.standard_error,
            # Only what is measured too low is missing: one side of the noise.
            _tail(mechanism, len(found), 2 * (1 - CONFIDENCE)) * mechanism.standard_error,
        )

    def _sum(
        self,
        bound: Bound,
        *,
        epsilon: Fraction | None = None,
        square: Fraction | None = None,
        cube: bool = False,
    ) -> Noisy:
        relation, n_users = self.account.relation, self.crowd.n_users
        if square is not None:
            multiplier = self.purse.multiplier(square)
            noise = multiplier * bound.l2_diameter
            grid = fitting_grid(bound, n_users=n_users, relation=relation, noise=noise)
            return GaussianSum(grid=grid, noise_multiplier=multiplier, relation=relation)
        spent = short(self.purse.left if epsilon is None else epsilon)
        noise = bound.l1_diameter / spent
        grid = fitting_grid(bound, n_users=n_users, relation=relation, noise=noise)
        kind = CubeSum if cube else LaplaceSum
        return kind(grid=grid, epsilon=spent, relation=relation)

    def _by_group(
        self, parts: dict[str | int, Part], caps: dict[str | int, float]
    ) -> dict[str | int, tuple[Floats, float, float]]:
        """Release each part with a share of what is left."""
        shares = _shares(parts, caps)
        left, squares, made = self.purse.left, self.purse.square_left, {}
        for number, (name, part) in enumerate(parts.items()):
            last = number == len(parts) - 1
            bound = part.bound(caps[name], self.groups, self.norm)
            if self.gaussian:
                square = self.purse.square_left if last else exact(shares[name]) * squares
                mechanism = self._sum(bound, square=square)
            else:
                epsilon = self.purse.left if last else exact(shares[name]) * left
                mechanism = self._sum(bound, epsilon=epsilon)
            totals = self.crowd.add_up(Totals(part, bound, mechanism.grid.step), whole=True)
            sealed = _claimed(totals, mechanism)
            found = mechanism.release(sealed, count=0.0, account=self.purse)
            made[name] = (found, mechanism.standard_error, _tail(mechanism, 1))
        return made

    def _one_group(
        self, parts: dict[str | int, Part], caps: dict[str | int, float]
    ) -> dict[str | int, tuple[Floats, float, float]]:
        """Release all parts of one group with noise of the largest of them."""
        # Who is replaced moves a part that can be negative by twice its cap.
        wide = 2.0 if self.account.relation is Relation.REPLACE else 1.0
        units = [caps[name] * (wide if part.signed else 1.0) for name, part in parts.items()]
        upper = np.array([caps[n] / unit for n, unit in zip(parts, units, strict=True)])
        lower = np.where([part.signed for part in parts.values()], -upper, 0.0)
        box = Box(lower, upper, centre=np.zeros(len(upper)))
        mechanism = self._sum(box, cube=True)
        work = Boxed(tuple(parts.values()), tuple(units), mechanism.grid)
        totals = _claimed(self.crowd.add_up(work, whole=True), mechanism)
        found = mechanism.release(totals, count=0.0, account=self.purse)
        tail = _tail(mechanism, len(parts))
        return {
            name: (np.array([value * unit]), mechanism.standard_error * unit, tail)
            for name, value, unit in zip(parts, found, units, strict=True)
        }


def _tail(mechanism: Noisy, parts: int, beta: float = 1 - CONFIDENCE) -> float:
    """Return how many standard deviations noise of one number exceeds so often, on either side."""
    kind = "gaussian" if isinstance(mechanism, GaussianSum) else "laplace"
    if isinstance(mechanism, CubeSum):
        kind = "cube"
    return tail_factor(kind, beta=beta, parts=parts)


def _shares(parts: dict[str | int, Part], caps: dict[str | int, float]) -> dict[str | int, float]:
    """Return what each part gets of the budget that is left.

    Relative errors add up to the sum of weight/share, which is least for shares as the roots of the
    weights. What a sum adds to its error beside the centre times that of the records is its weight.
    """
    roots = {}
    for name, part in parts.items():
        beside = abs(part.centre) * caps["rows"] if part.centre else 0.0
        roots[name] = math.sqrt(caps[name] / (beside + caps[name]))
    return {name: root / sum(roots.values()) for name, root in roots.items()}


@dataclass(frozen=True)
class _Measured:
    """The amount that caps cut, in users; the tail of the first part; the noise."""

    cut: dict[str | int, float]
    tail: float
    deviation: float
    reach: float

    def into(
        self,
        sums: dict[str | int, tuple[Floats, float, float]],
        parts: dict[str | int, Part],
        caps: dict[str | int, float],
        held: float,
        spread: float,
    ) -> dict[str | int, Released]:
        """Return what was released, with what is missing added or in the bounds."""
        first, noise, tail = next(iter(sums.values()))
        # A group that drowns in noise may hold as much as the noise.
        size = np.maximum(np.abs(first), noise)
        share = size / size.sum()
        found = {}
        for name, (values, deviation, tail) in sums.items():
            part, bounds = parts[name], np.full(values.shape, tail * deviation)
            errors = np.full(values.shape, deviation)
            whole = part.kind == "people" and held >= len(values)
            if name in self.cut and not whole:
                unit, cut = caps[name] * spread, max(0.0, self.cut[name])
                kept = cut**2 / (cut**2 + self.deviation**2) if cut else 0.0
                added = 0.0 * share if part.signed else kept * cut * unit * share
                longest = float(len(values)) if part.kind == "people" else TOP
                known = held if part.kind == "people" else caps.get("rows", 1.0)
                most = self._beyond(cut, longest / known) * unit * _ODDS * share / (1 + share)
                likely = np.maximum(cut * most - added, added)
                worst = np.maximum((cut + self.reach) * most - added, added)
                values = values + added
                errors = np.hypot(errors, likely / 2)
                bounds = likely + np.hypot(bounds, worst - likely)
            found[name] = Released(
                values=values,
                errors=errors,
                bounds=bounds,
                cap=caps[name],
                centre=part.centre,
                column=part.column,
                cut=self.cut.get(name, 0.0),
            )
        return found

    def _beyond(self, cut: float, span: float) -> float:
        """Return how much is cut over what is cut up to twice the cap, from the tail.

        If each doubling leaves a share r of the people, it is 1 + 2r + (2r)^2 + ..., as often as
        the longest length there is lies above the cap. More than a half of them are left only if
        that is beyond doubt.
        """
        share = min(max(self.tail / max(cut, self.reach), _LIGHT), _HEAVY)
        share = max(share, min(1.0, (self.tail - self.reach) / max(cut, self.reach)))
        doublings = max(1, math.ceil(math.log2(max(span, 1.0))))
        return sum((2 * share) ** place for place in range(doublings))


def _claimed(totals: NDArray[np.int64], mechanism: LaplaceSum | GaussianSum) -> Sealed:
    """Seal totals by what the bound of their grid proves; they are private until then."""
    relation = mechanism.relation
    return sealed_by_hand(totals, GridMoves(mechanism.grid, relation), relation)


def _claimed_count(people: int, count: NoisyCount) -> Sealed:
    return sealed_by_hand([people], Moves.of_counts(1), count.relation)
