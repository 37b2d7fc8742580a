r"""The rounds of a fit: the queries about people, their order and their budget.

1. *Numbers of records*: a noisy tally of how many records people have. It gives a cap K
   (:mod:`quorate.tabulate.tails`), and then the total number of records, with at most K from each
   person.
2. *Repeats*: how often two records of a person agree, column by column; every person counts once.
3. *Columns*: the table of each single column. The contribution of a person to all of them is one
   vector (:class:`~quorate.synth.contributions.Contrasts`). A tally of the lengths of these vectors
   gives the cap on them.
4. *Choice*: how far the table of each pair of columns is from independence, for all pairs at once.
   While it is still sealed, each table is compared with the public one of independent columns. The
   result is one number per pair; one person changes it by at most K. The tree then consists of the
   strongest dependences; the number of records is connected to one column.
5. *Pairs*: the tables of the tree; again one vector per person, with a tally of their lengths
   before. Tables are shrunk towards independence (:mod:`quorate.synth.shrinkage`).
6. *Check*: how far the table of each pair of columns is from that of the finished model. This is
   measured, not derived: it includes noise, merged levels and every dependence that the tree leaves
   out.

Half of the budget is for pairs, a quarter for columns, an eighth for the choice and a sixteenth for
the check; the first two rounds share the last sixteenth. These are parts of :math:`\mu^2`, in
Gaussian differential privacy. AIM [2]_ chooses tables one at a time with the exponential mechanism,
each after the last was measured. For a tree the order does not matter: two columns that are not
connected are independent in every earlier model, so their score does not change. Releasing all
scores at once has Gaussian noise of :math:`K\sqrt{P}/\mu` for P pairs. Making d - 1 choices has
noise of :math:`2K\sqrt{\pi(d-1)/2}/\mu`, times a logarithm, which is more for up to some thirty
columns.

References
----------
.. [1] McKenna, Miklau, Sheldon. Winning the NIST contest: a scalable and general approach to
   differentially private synthetic data. J. Privacy Confidentiality 11(3), 2021, arXiv:2108.04978.
.. [2] McKenna, Mullins, Sheldon, Miklau. AIM: an adaptive and iterative mechanism for
   differentially private synthetic data. VLDB 2022, arXiv:2201.12677.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import reduce

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri

from quorate.core.account.account import Account
from quorate.core.bounds.blocks import Blocks
from quorate.core.bounds.grid import SUM_LIMIT, Ball, Bound, Grid
from quorate.core.people import People
from quorate.core.public_randomness import public_generator
from quorate.core.sealed import Sealed
from quorate.mechanisms.noisy_numbers import NoisyNumbers
from quorate.mechanisms.stated_error import chance_of_each
from quorate.mechanisms.sums import GaussianSum, fitting_grid
from quorate.synth.columns import SynthColumn
from quorate.synth.contributions import Contrasts, Lengths, RecordBins, Repeats, Tables
from quorate.synth.released import PairError, RepeatRate, SynthError, SyntheticModel
from quorate.synth.shrinkage import nearest_shares, shrunk
from quorate.synth.tree import Forest, Measured, Tree, join_tables, spanning_forest
from quorate.tabulate.tails import Tail, ladder, whole_ladder

__all__ = ["Fitted", "Rounds"]

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]

# Nobody counts with more than 2^20 records; lengths are told apart by half doublings.
_MOST, _STEPS = 2.0**20, 2
# Parts of mu^2. The check has what is left, a sixteenth.
_PAIRS, _COLUMNS = Fraction(1, 2), Fraction(1, 4)
_CHOICE, _HELD, _REPEATS = Fraction(1, 8), Fraction(1, 32), Fraction(1, 32)
# The part of a round of tables that pays for its tally of lengths.
_LOOK = Fraction(1, 32)
# The weight of the table of numbers of records: a person is in one of its rows with all records, so
# that its vector is the longest, and no table of two columns follows from it.
_LINK = 0.5
# machine: time grows with the cube of the number of levels.
_LEVELS = 64
# How often chances are corrected until values repeat as often as people's.
_CORRECTIONS = 12
# Counts of people are multiplied by this: little discrete noise is then close to continuous noise.
_FINE = 64
_CONFIDENCE = 0.95  # public: 95 % is the convention of stated errors
_COVERS = (
    "All that the model leaves out, as measured after it was fitted: privacy noise, merged levels "
    "and dependences that are not in the tree; and records beyond the cap, estimated from a "
    "tally of people with an assumed tail. Not sampling error, neither of the people nor of a "
    "finite number of synthetic people."
)


@dataclass(frozen=True, kw_only=True)
class Fitted:
    """Everything that all rounds released.

    Attributes
    ----------
    model : SyntheticModel
    repeats : tuple of RepeatRate
    error : SynthError
    lengths : tuple of float
        The caps on the length of a person's contribution: to the tables of columns, and of pairs.

    Examples
    --------
    >>> sorted(Fitted.__annotations__)
    ['error', 'lengths', 'model', 'repeats']
    """

    model: SyntheticModel
    repeats: tuple[RepeatRate, ...]
    error: SynthError
    lengths: tuple[float, float]


class Rounds:
    """The rounds of one fit; see the module.

    Parameters
    ----------
    people : People
        People whose records are codes (:class:`~quorate.synth.columns.Coded`).
    columns : sequence of SynthColumn
    account : Account
        The budget; :meth:`run` spends all of it.
    hub : int, default=-1
        The index of a column on which all others may depend; -1 for none.

    Examples
    --------
    >>> from quorate.core.guarantees import Relation
    >>> from quorate.core.users.data import UserData
    >>> columns = [SynthColumn(name=name, labels=("no", "yes")) for name in ("ill", "old")]
    >>> codes = np.random.default_rng(0).integers(0, 2, (4000, 2)).astype(float)
    >>> data = UserData(codes, offsets=range(0, 4001, 2))
    >>> account = Account.open(epsilon=1.0, delta=1e-6, relation=Relation.ADD_REMOVE)
    >>> found = Rounds(People(data, Relation.ADD_REMOVE), columns, account).run()
    >>> found.error.pairs[0].columns, bool(account.square_left < 1e-9)
    (('ill', 'old'), True)
    """

    def __init__(
        self, people: People, columns: Sequence[SynthColumn], account: Account, *, hub: int = -1
    ) -> None:
        self.people, self.columns, self.account, self.hub = people, tuple(columns), account, hub
        self.whole = account.square_left
        self.edges = tuple(whole_ladder(_MOST, _STEPS).tolist())
        # The number of records of a person is one more column, the last.
        self.size = len(self.columns) + 1
        self.codes = tuple(
            tuple(range(n)) for n in [*(c.size for c in self.columns), len(self.edges)]
        )
        self.free = [n for n in (self.size - 1, *range(self.size - 1)) if n != hub]
        # Tables are chosen among the pairs of all nodes but the hub, and checked for all columns.
        self.candidates = [p for p in itertools.combinations(range(self.size), 2) if hub not in p]
        self.checked = list(itertools.combinations(range(self.size - 1), 2))

    def run(self) -> Fitted:
        """Spend the budget; return what was released."""
        tail, held = self._held()
        rates = self._repeats()
        alone, first = self._alone(held)
        levels = self._levels(alone, held)
        forest, dependence = self._forest(alone, levels, held)
        tree, second = self._tree(forest, alone, levels, held, dependence)
        model = self._model(tree, alone, levels, held)
        stays, repeats = _stays(model, rates, [column.name for column in self.columns])
        model = SyntheticModel(**{**vars(model), "stays": stays})
        return Fitted(
            model=model,
            repeats=repeats,
            error=self._checked(model, held, tail),
            lengths=(first, second),
        )

    # Who there is.

    def _held(self) -> tuple[Tail, _Held]:
        tail = self._tally(RecordBins(self.edges), self.edges, _HELD * 3 / 4)
        # What this cap cuts is in the stated bounds.
        cap = tail.cap(math.sqrt(len(self.candidates) / float(_CHOICE * self.whole)))
        count = Tables(((),), self.codes, self.edges)
        (total,), noise = self._counted(count, cap, _HELD / 4)
        total = max(float(total), noise, 1.0)
        return tail, _Held(tuple(_seen(tail).tolist()), self.edges, cap, total, noise)

    def _repeats(self) -> tuple[Floats, Floats]:
        """Return how often records of a person agree in each column, and the errors."""
        size = self.size
        work = Repeats(size - 1)
        mechanism = self._gaussian(work.bound, _REPEATS * self.whole)
        found = mechanism.release(
            self.people.total(work, mechanism.grid), count=0.0, account=self.account
        )
        several, noise = float(found[-1]), mechanism.standard_error
        if several < 4 * noise:  # noise alone may be this large
            return np.full(size - 1, np.nan), np.full(size - 1, math.inf)
        return np.clip(found[:-1] / several, 0.0, 1.0), np.full(size - 1, noise / several)

    # Columns.

    def _alone(self, held: _Held) -> tuple[list[Measured], float]:
        """Release the table of each column, as shares of all records."""
        work = Contrasts(tuple(column.size for column in self.columns))
        cells = float(np.mean(work.sizes / work.weights))
        cap = self._length(work, math.sqrt(len(work.sizes) + 1), cells, _COLUMNS, held)
        work = replace(work, longest=cap)
        mechanism = self._gaussian(work.bound, _COLUMNS * (1 - _LOOK) * self.whole)
        totals = self.people.total(work, mechanism.grid)
        found = mechanism.release(totals, count=0.0, account=self.account)
        noise = mechanism.standard_error
        records = max(float(found[-1]), noise, work.TIMES) / work.TIMES
        shares = work.shares(found, records)
        noises = noise / records / work.weights
        return [
            Measured((n,), *each) for n, each in enumerate(zip(shares, noises, strict=True))
        ], cap

    def _levels(self, alone: list[Measured], held: _Held) -> tuple[tuple[int, ...], ...]:
        """Merge codes of columns with many codes, and rare numbers of records."""
        found = [
            _merged(nearest_shares(table.counts), ordered=column.ordered)
            if column.size > _LEVELS
            else tuple(range(column.size))
            for table, column in zip(alone, self.columns, strict=True)
        ]
        return (*found, _merged(held.shares(math.inf), ordered=True))

    # Choice.

    def _forest(
        self, alone: list[Measured], levels: tuple[tuple[int, ...], ...], held: _Held
    ) -> tuple[Forest, float]:
        """Return the tree, and the mean distance of its tables from independence.

        The number of records is connected to one column only, the one that depends on it most. Its
        tables have many cells, and the noise of all tables is proportional to the longest
        contribution.
        """
        shares = [*(nearest_shares(table.counts) for table in alone), held.shares(held.cap)]
        known = [_by_level(own, each) for own, each in zip(levels, shares, strict=True)]
        expected = [known[a][:, None] * known[b] for a, b in self.candidates]
        tables = [Tables((pair,), levels, self.edges) for pair in self.candidates]
        found, _ = self._distances(tables, expected, held, _CHOICE * self.whole)
        weights = np.zeros((self.size, self.size))
        for (a, b), distance in zip(self.candidates, found, strict=True):
            weights[a, b] = weights[b, a] = distance
        last, columns = self.free[0], self.free[1:]
        columns.sort(key=lambda node: -weights[last, node])
        forest = spanning_forest(weights, columns)
        link = last if weights[last, columns[0]] > 0 else -1
        forest = Forest((last, *forest.order), (-1, link, *forest.parents[1:]))
        edges = [weights[pair] for pair in forest.pairs if pair[1] >= 0]
        return forest, min(1.0, float(np.mean(edges)) / held.total) if edges else 0.0

    # Pairs.

    def _tree(
        self,
        forest: Forest,
        alone: list[Measured],
        levels: tuple[tuple[int, ...], ...],
        held: _Held,
        dependence: float,
    ) -> tuple[Tree, float]:
        """Measure the tables of the tree, shrink them, and join them."""
        hub = () if self.hub < 0 else (self.hub,)
        names = [(*hub, *((parent,) if parent >= 0 else ()), node) for node, parent in forest.pairs]
        names = [nodes for nodes in names if len(nodes) > 1]
        found: list[Measured] = []
        length = 0.0
        if names:
            # The distance of three columns from independence has not been measured.
            dependence = 1.0 if hub else dependence
            weights = tuple(_LINK if self.size - 1 in nodes else 1.0 for nodes in names)
            tables = Tables(tuple(names), levels, self.edges, weights)
            found, length = self._measured(tables, _PAIRS, held, dependence)
        ordered = [*(column.ordered for column in self.columns), True]
        # Rare labels that were merged have no order.
        ordered = [
            o and tuple(own) == tuple(sorted(own)) for o, own in zip(ordered, levels, strict=True)
        ]
        shares = [_together(node, alone, levels, found) for node in range(self.size - 1)]
        shares.append(_by_level(levels[-1], held.shares(math.inf)))
        joined = {}
        for table in found:
            known = [shares[node] for node in table.nodes]
            if self.size - 1 in table.nodes:
                # Clipping changes the distribution of numbers of records: take this table's own.
                axis = table.nodes.index(self.size - 1)
                others = tuple(place for place in range(len(known)) if place != axis)
                known[axis] = nearest_shares(table.counts.sum(axis=others))
            joined[table.nodes] = shrunk(
                table.counts, table.noise, known, [ordered[node] for node in table.nodes]
            )
        return join_tables(forest, shares, joined, hub=self.hub), length

    # Check.

    def _model(
        self,
        tree: Tree,
        alone: list[Measured],
        levels: tuple[tuple[int, ...], ...],
        held: _Held,
    ) -> SyntheticModel:
        within = []
        for table, own in zip(alone, levels, strict=False):
            shares, groups = nearest_shares(table.counts), np.array(own)
            whole, size = _by_level(own, shares), np.bincount(own)
            even = 1.0 / size[groups]
            inside = shares / np.where(whole > 0, whole, 1.0)[groups]
            within.append(np.where(whole[groups] > 0, inside, even))
        # By itself the number of records is known best from the tally of people.
        shares = _by_level(levels[-1], held.shares(math.inf))
        return SyntheticModel(
            columns=self.columns,
            levels=levels,
            within=tuple(within),
            tree=tree.with_root(shares),
            edges=self.edges,
            people=held.people,
            stays=(0.0,) * len(self.columns),
        )

    def _checked(self, model: SyntheticModel, held: _Held, tail: Tail) -> SynthError:
        capped = _by_level(model.levels[-1], held.shares(held.cap))
        expected = model.tables(model.tree.with_root(capped))
        tables = [Tables((pair,), self.codes, self.edges) for pair in self.checked]
        found, noise = self._distances(
            tables, [expected[pair] for pair in self.checked], held, self.account.square_left
        )
        # The number of records that shares are of has noise too.
        beta = chance_of_each(1 - _CONFIDENCE, len(tables) + 1)
        times = -float(ndtri(beta))
        # Distances are one-sided, and so is how far too low one may be; the total errs either way.
        slack = times * noise - float(ndtri(beta / 2)) * held.noise
        low = max(held.total + float(ndtri(beta / 2)) * held.noise, 1.0)
        cut = tail.worst(held.cap)[0] if tail.known else math.inf
        beyond = cut / (low + cut) if math.isfinite(cut) else 1.0
        full = held.shares(math.inf)
        beyond += 0.5 * float(np.abs(full - held.shares(held.cap)).sum())
        names = [column.name for column in self.columns]
        pairs = tuple(
            PairError(
                columns=(names[a], names[b]),
                distance=min(1.0, max(0.0, float(distance) / held.total)),
                bound=min(1.0, max(0.0, float(distance) + slack) / low + beyond),
            )
            for (a, b), distance in zip(self.checked, found, strict=True)
        )
        return SynthError(
            confidence=_CONFIDENCE,
            bound=max(pair.bound for pair in pairs),
            coordinates=tuple(pair.bound for pair in pairs),
            worst=math.inf,
            covers=_COVERS,
            pairs=pairs,
            records_cap=held.cap,
        )

    # What is asked.

    def _tally(self, work: RecordBins | Lengths, edges: Sequence[float], share: Fraction) -> Tail:
        """Release a tally of people's lengths for a part of the budget."""
        counts = _FINE * self.people.tally(work, len(edges))
        found, noise = self._noisy(counts, share * self.whole)
        # A tail is about Laplace noise; of this scale it exceeds as much in 19 of 20 cases, and
        # more in rarer ones.
        scale = noise * float(ndtri(_CONFIDENCE)) / math.log(1 / (2 * (1 - _CONFIDENCE)))
        return Tail(edges=np.array(edges), counts=found / _FINE, size=scale / _FINE, steps=_STEPS)

    def _gaussian(self, bound: Bound, square: Fraction) -> GaussianSum:
        relation = self.people.relation
        multiplier = self.account.multiplier(square)
        grid = fitting_grid(
            bound,
            n_users=self.people.size_bound,
            relation=relation,
            noise=multiplier * bound.l2_diameter,
        )
        return GaussianSum(grid=grid, noise_multiplier=multiplier, relation=relation)

    def _counted(self, tables: Tables, cap: float, share: Fraction) -> tuple[Floats, float]:
        """Release tables to which each person adds a vector of at most this length."""
        bound = Blocks((Ball(cap, dimension=tables.size, signed=False),))
        mechanism = self._gaussian(bound, share * self.whole)
        totals = self.people.cell_totals(tables, mechanism.grid)
        found = mechanism.release(totals, count=0.0, account=self.account)
        return np.asarray(found, dtype=np.float64), mechanism.standard_error

    def _length(
        self,
        work: Tables | Contrasts,
        longest: float,
        cells: float,
        share: Fraction,
        held: _Held,
        dependence: float = 1.0,
    ) -> float:
        """Return the clipping length of contributions to tables of so many cells each.

        ``longest`` is the largest length of the contribution of one record.
        """
        edges = tuple(ladder(1.0, _MOST * longest, _STEPS).tolist())
        tail = self._tally(Lengths(work, edges), edges, share * _LOOK)
        # Half of what noise makes of all cells of a table lies above it.
        noise = cells / math.sqrt(2 * math.pi * float(share * (1 - _LOOK) * self.whole))
        return _cap(tail, noise / held.total, dependence)

    def _measured(
        self, tables: Tables, share: Fraction, held: _Held, dependence: float
    ) -> tuple[list[Measured], float]:
        """Release tables as shares of all records."""
        longest = math.sqrt(len(tables.tables))
        cells = tables.size / len(tables.tables)
        cap = self._length(tables, longest, cells, share, held, dependence)
        found, deviation = self._counted(tables, cap, share * (1 - _LOOK))
        parts = tables.split(found)
        times = np.array(tables.weights)
        weights = times**2 / np.array(tables.sizes)
        total = float(np.average([part.sum() for part in parts], weights=weights))
        total = max(total, deviation / math.sqrt(weights.sum()), 1.0)
        noises = deviation / total / times
        return [
            Measured(nodes, part / total, float(noise))
            for nodes, part, noise in zip(tables.tables, parts, noises, strict=True)
        ], cap

    def _distances(
        self, tables: list[Tables], expected: list[Floats], held: _Held, square: Fraction
    ) -> tuple[Floats, float]:
        """Release how far tables exceed public ones, in records, and the noise of these numbers."""
        sealed = [
            self._above(table, shares, held) for table, shares in zip(tables, expected, strict=True)
        ]
        numbers = reduce(Sealed.beside, (each for each, _ in sealed))
        step = sealed[0][1]
        found, noise = self._noisy(numbers, square)
        return found * step, noise * step

    def _noisy(self, numbers: Sealed, square: Fraction) -> tuple[Floats, float]:
        """Release sealed numbers for a part of mu squared, and the deviation of their noise."""
        mechanism = NoisyNumbers(
            size=numbers.shape[0],
            moves=numbers.moves,
            noise_multiplier=self.account.multiplier(square),
            relation=self.people.relation,
        )
        found = mechanism.release(numbers, account=self.account)
        return found.astype(np.float64), mechanism.sigma

    def _above(self, table: Tables, shares: Floats, held: _Held) -> tuple[Sealed, float]:
        """Return the number of records by which a table exceeds a public one, in all cells."""
        bound = Blocks((Ball(held.cap, dimension=table.size, norm=1, signed=False),))
        # A thousandth of a record tells a user's records apart, and leaves room for all people.
        relation, size = self.people.relation, self.people.size_bound
        fine = fitting_grid(bound, n_users=size, relation=relation, noise=held.cap)
        grid = Grid(bound, max(fine.step, 2.0**-10))
        public = np.rint(np.minimum(shares.ravel() * held.total / grid.step, 2.0**61))
        counts = self.people.cell_totals(table, grid) - public.astype(np.int64)
        return counts.clip(0, SUM_LIMIT - 1).sum(), grid.step


@dataclass(frozen=True)
class _Held:
    """The released numbers of people by number of records, with the cap and the total."""

    people: tuple[float, ...]
    edges: tuple[float, ...]
    cap: float
    total: float
    noise: float

    def shares(self, cap: float) -> Floats:
        """Return the share of the records in each bin, with at most ``cap`` from each person."""
        edges = np.array(self.edges)
        below = np.array([0.0, *self.edges[:-1]])
        typical = np.minimum((below + 1 + edges) / 2, cap)
        held = np.array(self.people) * typical
        return np.asarray(held / held.sum())


def _seen(tail: Tail) -> Floats:
    """Return the number of people up to each edge, without negative and noise-only counts."""
    found = np.where(np.arange(len(tail.edges)) <= tail.top, np.maximum(tail.counts, 0.0), 0.0)
    return found if found.sum() > 0 else np.eye(len(found))[0]


def _cap(tail: Tail, noise: float, dependence: float) -> float:
    """Return the edge that minimises noise plus clipping bias.

    Only shares matter, so the clipping bias depends only on how clipping changes the relative
    weights of people. It is at most half of the sum of these changes. ``noise`` is the error of a
    table by noise, in total variation per unit of length. A table at distance d from its prediction
    is shrunk, which makes its error d n / sqrt(d^2 + n^2) for noise of n.

    >>> alike = Tail(edges=ladder(1.0, 8.0, 1), counts=np.array([0.0, 0.0, 0.0, 900.0]), size=1.0)
    >>> _cap(alike, 0.01, 1.0)
    1.0
    >>> differ = Tail(edges=ladder(1.0, 8.0, 1), counts=np.array([9e3, 0.0, 0.0, 9e3]), size=1.0)
    >>> _cap(differ, 0.001, 1.0)
    8.0
    """
    people, edges = _seen(tail), tail.edges[: tail.top + 1]
    people = people[: len(edges)]
    whole = people * edges
    loss = []
    for edge in edges:
        kept = people * np.minimum(edges, edge)
        moved = 0.5 * np.abs(kept / kept.sum() - whole / whole.sum()).sum()
        off = noise * edge * whole.sum() / kept.sum()
        loss.append(math.hypot(off * dependence / math.hypot(off, dependence), moved))
    return float(edges[int(np.argmin(loss))])


def _together(
    node: int,
    alone: Sequence[Measured],
    levels: Sequence[Sequence[int]],
    tables: Sequence[Measured],
) -> Floats:
    """Return the distribution of a column from all tables that contain it.

    Each table has the inverse variance of its noise as weight.
    """
    own = levels[node]
    weights = [1.0 / (alone[node].noise ** 2 * len(own) / (max(own) + 1))]
    sums = [_by_level(own, alone[node].counts)]
    for table in tables:
        if node in table.nodes:
            axis = table.nodes.index(node)
            others = tuple(place for place in range(table.counts.ndim) if place != axis)
            cells = table.counts.size / table.counts.shape[axis]
            weights.append(1.0 / (table.noise**2 * cells))
            sums.append(table.counts.sum(axis=others))
    return nearest_shares(np.average(sums, axis=0, weights=weights))


def _by_level(levels: Sequence[int], values: Floats) -> Floats:
    return np.asarray(np.bincount(levels, weights=values), dtype=np.float64)


def _merged(shares: Floats, *, ordered: bool) -> tuple[int, ...]:
    """Return the level of each code: each level holds a share of at least 1/64.

    If codes are ordered, neighbours are merged; otherwise all rare codes form one level.

    >>> _merged(np.array([0.49, 0.005, 0.505]), ordered=True)
    (0, 1, 1)
    >>> _merged(np.array([0.4, 0.01, 0.3, 0.28, 0.01]), ordered=False)
    (0, 3, 1, 2, 3)
    """
    least = 1.0 / _LEVELS
    if not ordered:
        common = np.flatnonzero(shares >= least)[: _LEVELS - 1]
        found = np.full(len(shares), len(common))
        found[common] = np.arange(len(common))
        return tuple(found.tolist())
    levels, level, held = [], 0, 0.0
    left = np.cumsum(shares[::-1])[::-1]
    for place, share in enumerate(shares.tolist()):
        if held >= least and left[place] >= least:
            level, held = level + 1, 0.0
        levels.append(level)
        held += share
    return tuple(levels)


def _stays(
    model: SyntheticModel, rates: tuple[Floats, Floats], names: Sequence[str]
) -> tuple[tuple[float, ...], tuple[RepeatRate, ...]]:
    """Return the probabilities to keep typical values that give people's rates of repetition.

    Two records that both keep a value agree; others agree about as often as by chance. So the rate
    is nearly linear in the square of the probability, and a few corrections find it, for all
    columns at once and with the same public draws. Values that repeat less often than by chance are
    always drawn anew.
    """
    wanted, errors = rates
    chances = np.array([float((each**2).sum()) for each in _columns_of(model)])
    known = ~np.isnan(wanted)

    def repeats(stays: Floats) -> Floats:
        return model.repeats(stays.tolist(), public_generator(0))

    both = np.zeros(len(wanted))
    for _ in range(_CORRECTIONS):
        missing = (wanted - repeats(np.sqrt(both))) / np.maximum(1.0 - chances, 2.0**-20)
        both = np.where(known, np.clip(both + missing, 0.0, 1.0), 0.0)
    stays = np.sqrt(both)
    found = repeats(stays)
    told = tuple(
        RepeatRate(
            column=name,
            people=float(wanted[place]),
            error=float(errors[place]),
            model=float(found[place]),
            chance=float(chances[place]),
        )
        for place, name in enumerate(names)
    )
    return tuple(stays.tolist()), told


def _columns_of(model: SyntheticModel) -> list[Floats]:
    """Return the shares of the codes of each column."""
    pairs, size = model.tables(model.tree), len(model.columns)
    first = [pairs[0, 1].sum(axis=1)]
    return first + [pairs[0, place].sum(axis=0) for place in range(1, size)]
