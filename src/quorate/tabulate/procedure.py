r"""The common procedure of all counts, sums and means, overall or by group.

1. Under add/remove the number of users is released, for a fiftieth of epsilon.
2. A noisy tally shows in how many groups people are. It decides between Laplace and Gaussian noise.
3. Sums are taken relative to a rough private median of people's means, so the noise depends on how
   much people differ and not on how large their values are.
4. For each part one noisy tally shows how long people's contributions are. The cap and the clipping
   bias are derived from it (:mod:`quorate.tabulate.tails`), so no second query is needed.
5. The rest of the budget is for noise: all parts of all groups are released at once, as one vector
   per part, clipped to its cap. Parts with Laplace noise share the noise of the part with the
   longest contributions (:class:`~quorate.mechanisms.blocks.BlockSum`).

If a cap or the number of groups is stated, no budget is spent on finding it.
:mod:`quorate.tabulate.budget` has the cost of each step.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from quorate._validate import exact, float_down
from quorate.core.account.account import Account
from quorate.core.bounds.blocks import Blocks
from quorate.core.guarantees import Relation
from quorate.core.people import People
from quorate.data.by_group.person_cells import ValueColumn
from quorate.mechanisms.blocks import BlockSum
from quorate.mechanisms.choices.quantiles import PrivateQuantile
from quorate.mechanisms.laplace import LaplaceSum
from quorate.mechanisms.noisy_count import NoisyCount
from quorate.mechanisms.noisy_tally import NoisyTally
from quorate.mechanisms.sums import GaussianSum, fitting_grid
from quorate.tabulate.budget import COUNT_SHARE, ROUGH, Outlook, Terms, evenness
from quorate.tabulate.parts import Held, LengthLabels, OwnMeans, Part, value_ladder
from quorate.tabulate.released import (
    CONFIDENCE,
    COVERS,
    COVERS_STATED,
    COVERS_UNSEEN,
    Released,
    tail_factor,
)
from quorate.tabulate.tails import Tail, ladder, whole_ladder

__all__ = ["Procedure", "number_of_users"]

Floats = NDArray[np.float64]
Name = str | int

# machine: whole multiples of 2^-33 below 2^20 have 53 binary digits, so that sums are exact.
_DIGITS = 33
# Nobody counts with more than 2^20 records, and sums are told apart down to 2^-10 of what is
# possible: a million, and a thousandth.
_MOST, _FINEST = 2.0**20, 2.0**-10
# public: so many times its bound no error is in a thousand tables.
_TIMES = 10.0


def number_of_users(people: People, account: Account) -> float:
    """Return the number of users: public under replacement, otherwise released.

    >>> from quorate.core.users import UserData
    >>> five = People(UserData(np.ones((5, 1)), offsets=range(6)), Relation.REPLACE)
    >>> number_of_users(five, Account.open(epsilon=1.0))
    5.0
    """
    if account.relation is Relation.REPLACE:
        return float(people.n_users)
    epsilon = short(exact(COUNT_SHARE) * account.left)
    count = NoisyCount(epsilon=epsilon, relation=account.relation)
    return float(max(1, count.release(people.everybody(), account=account)))


def short(epsilon: Fraction | float) -> float:
    """Return a number at most epsilon, with so few digits that sums of several are exact.

    >>> short(0.1), short(0.75)
    (0.09999999997671694, 0.75)
    """
    whole = float_down(exact(epsilon))
    return math.ldexp(math.floor(math.ldexp(whole, _DIGITS)), -_DIGITS) or whole


class Procedure:
    """The steps of one table; see the module.

    Parameters
    ----------
    people : People
        People whose records are in cells.
    account : Account
        The budget; :meth:`run` spends all that is left.
    groups : int
    columns : sequence of ValueColumn
        The columns that are summed.
    records, count_people : bool
        Whether records, and users, are counted.
    caps : dict, optional
        Stated caps: of ``"rows"``, or of a column by its index.
    held : float, optional
        In how many groups a user counts fully, if this is stated.
    algorithm : {"auto", "laplace", "gaussian"}, default="auto"
    several : bool, default=False
        Whether another statistic than counts depends on the number of groups, as medians do.
    """

    def __init__(
        self,
        people: People,
        account: Account,
        *,
        groups: int,
        columns: Sequence[ValueColumn] = (),
        records: bool = False,
        count_people: bool = False,
        caps: Mapping[Name, float] | None = None,
        held: float | None = None,
        algorithm: str = "auto",
        several: bool = False,
    ) -> None:
        self.crowd, self.account, self.groups = people, account, groups
        self.columns, self.records, self.people = tuple(columns), records, count_people
        self.caps = dict(caps or {})
        self.algorithm = algorithm
        names: list[Name] = ["rows"] * records + [*range(len(self.columns))]
        unknown = [name for name in names if name not in self.caps]
        # Two people in one of two groups are as far apart as two in both of them.
        few = groups > 1 + (account.relation is Relation.REPLACE)
        chosen = algorithm == "auto" and account.square_left > 0 and groups > 1
        asks = held is None and (few if count_people or several else chosen)
        self.terms = Terms(
            epsilon=float(account.left),
            mu=0.0 if algorithm == "laplace" else math.sqrt(float(account.square_left)),
            relation=account.relation,
            groups=groups,
            parts=max(1, len(names) + count_people),
            looks=len(unknown) + asks,
            centres=len(self.columns) * records,
        )
        looked = self.terms.looks > 0 or (records and bool(self.columns))
        self.n_users = number_of_users(people, account) if looked else 1.0
        self.purse: Account = account
        self.tails: dict[Name, Tail] = {}
        # Nobody knows yet: as likely in few of the groups as in many.
        self.held = held if held is not None else math.sqrt(groups)
        if asks:
            part, seen = Part("people"), self._outlook()
            edges = whole_ladder(groups, seen.steps)
            self.tails["people"] = self._look(part, seen, 1, edges, seen.steps, closed=True)
            self.held = self.tails["people"].cap(self._pressure(seen))
        elif held is None:
            self.held = float(groups)
        self.held = min(float(groups), self.held)
        self.seen = self._outlook()
        self.norm, self.gaussian = self.seen.norm, self.seen.norm == 2
        self.purse = account.rest() if self.gaussian else account.part_of(epsilon=account.left)

    @property
    def covers(self) -> str:
        """What stated errors cover."""
        if not all(tail.known for tail in self.tails.values()):
            return COVERS_UNSEEN
        return COVERS if self.terms.looks else COVERS_STATED

    def run(self, people: People | None = None) -> dict[Name, Released]:
        """Spend the rest of the budget; return the released parts by name.

        ``people`` are the same users with sums, if they had only counts before.
        """
        self.crowd = self.crowd if people is None else people
        parts: dict[Name, Part] = {"rows": Part("rows")} if self.records else {}
        parts |= {place: self._column(place) for place in range(len(self.columns))}
        caps = self._all_caps(parts)
        if self.people:
            parts["people"], caps["people"] = Part("people"), self.held ** (1 / self.norm)
        return self._bounded(parts, caps, *self._noisy(parts, caps))

    def _outlook(self) -> Outlook:
        """Return the expected costs and noise, from public and released numbers."""
        return self.terms.outlook(self.held, users=self.n_users, algorithm=self.algorithm)

    def _pressure(self, seen: Outlook) -> float:
        """Return the noise of all groups together, divided by a cap."""
        return self.groups * seen.noise / (evenness(self.held) if seen.norm == 2 else 1.0)

    def _look(
        self,
        part: Part,
        seen: Outlook,
        norm: int,
        edges: Floats,
        steps: int,
        closed: bool = False,  # noqa: FBT001, FBT002 - the order of Tail's arguments
        unseen: int = 0,
    ) -> Tail:
        """Release a tally of the lengths of people's contributions."""
        size, relation = len(edges), self.account.relation
        mechanism = NoisyTally(size=size, epsilon=short(seen.look), relation=relation)
        work = LengthLabels(part, norm, tuple(edges.tolist()))
        found = mechanism.release(self.crowd.tally(work, size), account=self.purse)
        return Tail(
            edges=edges,
            counts=found.astype(np.float64),
            size=mechanism.scale,
            steps=steps,
            closed=closed,
            unseen=unseen,
            whole=part.column is None and norm == 1,
            # Everybody who is counted has at least one record, which represents lengths from 1/2.
            shortest=0.5 if part.column is None else 0.0,
        )

    def _column(self, place: int) -> Part:
        """Return the sum of a column, relative to its typical value if records are counted too."""
        part = Part("sums", self.columns[place], place)
        if not self.records:
            return part
        points = value_ladder(self.columns[place].lower, self.columns[place].upper)
        median = PrivateQuantile(
            domain=(0, len(points) - 1),
            epsilon=short(min(ROUGH / self.n_users, self.seen.look)),
            relation=self.account.relation,
        )
        own = self.crowd.each(OwnMeans(part, tuple(points.tolist()))).present()
        found = median.release(own.map(_integers), account=self.purse)
        return Part("sums", self.columns[place], place, float(points[found]))

    def _all_caps(self, parts: dict[Name, Part]) -> dict[Name, float]:
        caps: dict[Name, float] = {}
        for name, part in parts.items():
            if name not in self.caps:
                tail = self._look(part, self.seen, self.norm, *self._edges(part, caps.get("rows")))
                if part.column and "rows" in self.tails:
                    # A value has a finite mean. So the tail of sums falls at least like 1/x
                    # (Markov) or that of records.
                    tail = replace(tail, least=min(1.0, self.tails["rows"].index(1 - CONFIDENCE)))
                self.tails[name] = tail
                caps[name] = tail.cap(self._pressure(self.seen))
            else:
                caps[name] = self.caps[name]
        return caps

    def _edges(self, part: Part, rows: float | None) -> tuple[Floats, int, bool, int]:
        """Return the edges of a tally, and ``steps``, ``closed`` and ``unseen`` of :class:`Tail`.

        If nobody is detected, the bound assumes the worst. For sums of capped records, every value
        is at the end of its range. For other sums, a person has one record with such a value.
        """
        column, steps = part.column, self.seen.steps
        if column is None:
            edges = ladder(1.0, _MOST, steps) if self.gaussian else whole_ladder(_MOST, steps)
            return edges, steps, False, 0
        if rows is not None:
            reach = max(column.upper - part.centre, part.centre - column.lower) * rows
            edges = ladder(reach * _FINEST, reach, steps)
            return edges, steps, True, len(edges) - 1
        reach = max(abs(column.lower), abs(column.upper))
        edges = ladder(reach * _FINEST, reach * _MOST, steps)
        return edges, steps, False, -int(math.log2(_FINEST)) * steps

    def _noisy(
        self, parts: dict[Name, Part], caps: dict[Name, float]
    ) -> tuple[dict[Name, Floats], dict[Name, float], float]:
        """Release all parts at once; return them, their standard deviations, and the noise tail."""
        relation, purse = self.account.relation, self.purse
        made = [part.bound(caps[n], self.groups, self.norm, relation) for n, part in parts.items()]
        units = [unit for _, unit in made]
        bound = Blocks(tuple(each for each, _ in made))
        size, kind = self.crowd.size_bound, "gaussian"
        mechanism: GaussianSum | LaplaceSum
        if self.gaussian:
            multiplier = purse.multiplier(purse.square_left)
            noise = multiplier * bound.l2_diameter
            grid = fitting_grid(bound, n_users=size, relation=relation, noise=noise)
            mechanism = GaussianSum(grid=grid, noise_multiplier=multiplier, relation=relation)
        else:
            epsilon = short(purse.left)
            grid = fitting_grid(bound, n_users=size, relation=relation, noise=1 / epsilon)
            mechanism, kind = LaplaceSum(grid=grid, epsilon=epsilon, relation=relation), "laplace"
            joint = BlockSum(grid=grid, epsilon=epsilon, relation=relation)
            # One part, or many groups, gain nothing from joint noise, which is drawn more slowly.
            if joint.standard_error < mechanism.standard_error:
                mechanism, kind = joint, "blocks"
        totals = self.crowd.cell_totals(Held(tuple(parts.values()), tuple(units)), grid)
        found = mechanism.release(totals, count=0.0, account=purse).reshape(len(parts), -1)
        deviation = mechanism.standard_error
        tail = tail_factor(kind, beta=1 - CONFIDENCE, parts=len(parts), groups=self.groups)
        values = {n: each * unit for n, each, unit in zip(parts, found, units, strict=True)}
        return values, {n: deviation * u for n, u in zip(parts, units, strict=True)}, tail

    def _bounded(
        self,
        parts: dict[Name, Part],
        caps: dict[Name, float],
        values: dict[Name, Floats],
        deviations: dict[Name, float],
        tail: float,
    ) -> dict[Name, Released]:
        """Return what was released, with clipping included in the errors and bounds."""
        first = next(iter(parts))
        # A group that drowns in noise may hold as much as the noise.
        size = np.maximum(np.abs(values[first]), deviations[first])
        share = size / size.sum()
        even = evenness(self.held) if self.gaussian else 1.0
        found: dict[Name, Released] = {}
        rows = nothing = (0.0 * share,) * 3
        for name, part in parts.items():
            noise = np.full(share.shape, deviations[name])
            lost, at_most, far = nothing
            errors = noise
            if part.column and self.records:
                # Who is cut in records is cut in sums in proportion.
                lost, at_most, far = (each * caps[name] / caps["rows"] for each in rows)
            cut = self.tails.get(name)
            if cut is not None and not (name == "people" and self.held >= self.groups):
                cap = self.held if name == "people" else caps[name]
                spread = 1.0 if name == "people" else even
                usual, (worst, persons, _) = cut.cut(cap), cut.worst(cap)
                all_far, _, one_far = cut.worst(cap, far=True)
                liked = spread * _share_at_most(share, persons)
                more = max(0.0, worst - usual) if cut.known else math.inf
                errors = np.hypot(noise, usual * spread * share)
                lost, at_most = lost + usual * liked, np.hypot(at_most, more * liked)
                # One person may hold everything in one group, however small that is.
                far = np.maximum(far, np.maximum(one_far, liked * all_far))
            if name == "rows":
                rows = lost, at_most, far
            found[name] = Released(
                values=values[name],
                errors=errors,
                # Noise of the look and of the cells are independent of each other.
                bounds=np.maximum(far / _TIMES, lost + np.hypot(tail * noise, at_most)),
                cap=caps[name],
                centre=part.centre,
                column=part.column,
            )
        return found


def _share_at_most(share: Floats, persons: float) -> Floats:
    """Return an upper bound on one group's share of the clipping bias of ``persons`` people.

    People with large contributions may prefer some groups, so the odds are doubled. People may also
    be few, so the bound is at least the share plus two standard deviations (one case in forty).
    """
    liked = 2 * share / (1 + share)
    deviation = np.sqrt(share * (1 - share) / max(1.0, persons))
    return np.asarray(np.minimum(1.0, np.maximum(liked, share + 2 * deviation)))


def _integers(places: Floats) -> NDArray[np.int64]:
    return places.astype(np.int64)
