r"""The rounds of a fit: the queries about people, their order and their budget.

1. *Numbers of records*: a noisy tally of how many records people have. It gives a cap K
  (:mod:`quorate.tabulate.tails`), and then the total number of records, with at most K from each
  person.
2. *Repeats*: how often two records of a person agree, column by column; every person counts once.
3. *Columns*: the table of each single column. The contribution of a person to all of them is one
   vector. A tally of the lengths of these vectors gives the cap on them. Rare labels and bins that
   are within the noise are merged into one level for all later rounds.
4. *Choice*: how far the table of each pair of columns is from independence, for all pairs at once.
   While it is still sealed, each table is compared with the public one of independent columns. The
   result is one number per pair, which a person moves by at most K. The tree then consists of the
   largest dependences that exceed the noise of measuring them; a maximum-entropy model of d - 1
   tables can use these best.
5. *Pairs*: the tables of the tree; again one vector per person, with a tally of their lengths
  before.
6. *Check*: how far the table of each pair of columns is from that of the finished model. This is
   measured, not derived: it includes noise, merged levels and every dependence that the tree leaves
   out.

As in MST [1]_ a third of the budget is for columns and a third for pairs; the last third is divided
evenly among the four other rounds. These are parts of :math:`\mu^2`, in Gaussian differential
privacy. AIM [2]_ chooses tables one at a time with the exponential mechanism, each after the last
was measured. For a tree the order does not matter: two columns that are not connected are
independent in every earlier model, so their score does not change. Releasing all scores at once has
Gaussian noise of :math:`K\sqrt{P}/\mu` for P pairs. Making d - 1 choices has noise of
:math:`2K\sqrt{\pi(d-1)/2}/\mu`, times a logarithm, which is more for up to some thirty columns.

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
from dataclasses import dataclass
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
from quorate.synth.contributions import Lengths, RecordBins, Repeats, Tables
from quorate.synth.released import PairError, RepeatRate, SynthError, SyntheticModel
from quorate.synth.tree import Forest, Measured, Tree, fit_tree, spanning_forest
from quorate.tabulate.tails import Tail, ladder, whole_ladder

__all__ = ["Fitted", "Rounds"]

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]

# Nobody counts with more than 2^20 records; lengths are told apart by half doublings.
_MOST, _STEPS = 2.0**20, 2
# Of mu^2, for columns and for pairs; the four other rounds have a twelfth each.
_THIRD, _TWELFTH = Fraction(1, 3), Fraction(1, 12)
_LEVELS = 64
# How often chances are corrected until values repeat as often as people's.
_CORRECTIONS = 12
# Counts of people are multiplied by this: little discrete noise is then close to continuous noise.
_FINE = 64
_CONFIDENCE = 0.95  # public: 95 % is the convention of stated errors
_COVERS = (
    "All that the model leaves out, as measured after it was fitted: privacy noise, merged levels "
    "and dependences that are not in the tree; and records beyond the cap, as far as a tally of "
    "people shows, with a tail beyond it like that of what was seen. Not the sampling of the "
    "people themselves, nor of a finite number of synthetic ones."
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
        alone, first = self._alone()
        levels = self._levels(alone, held, first)
        forest = self._forest(alone, levels, held)
        tree, second = self._tree(forest, alone, levels)
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
        tail = self._tally(RecordBins(self.edges), self.edges, _TWELFTH * 3 / 4)
        # What this cap cuts is in the stated bounds.
        cap = tail.cap(math.sqrt(len(self.candidates) / float(_TWELFTH * self.whole)))
        count = Tables(((),), self.codes, self.edges)
        (total,), noise = self._counted(count, cap, _TWELFTH / 4)
        total = max(float(total), noise, 1.0)
        return tail, _Held(tuple(_seen(tail).tolist()), self.edges, cap, total, noise)

    def _repeats(self) -> tuple[Floats, Floats]:
        """Return how often records of a person agree in each column, and the errors."""
        size = self.size
        work = Repeats(size - 1)
        mechanism = self._gaussian(work.bound, _TWELFTH * self.whole)
        found = mechanism.release(
            self.people.total(work, mechanism.grid), count=0.0, account=self.account
        )
        several, noise = float(found[-1]), mechanism.standard_error
        if several < 4 * noise:  # so many cannot be told from nobody
            return np.full(size - 1, np.nan), np.full(size - 1, math.inf)
        return np.clip(found[:-1] / several, 0.0, 1.0), np.full(size - 1, noise / several)

    # Columns.

    def _alone(self) -> tuple[list[Measured], float]:
        tables = Tables(tuple((n,) for n in range(self.size - 1)), self.codes, self.edges)
        return self._measured(tables, _THIRD)

    def _levels(
        self, alone: list[Measured], held: _Held, length: float
    ) -> tuple[tuple[int, ...], ...]:
        """Merge codes whose counts are within three standard deviations of the noise, as in MST."""
        noise = length / math.sqrt(float(_THIRD * self.whole))
        most = min(_LEVELS, max(2, int(held.total / (3 * noise))))
        found = [
            _merged(table.counts, most, ordered=column.edges is not None)
            for table, column in zip(alone, self.columns, strict=True)
        ]
        return (*found, _merged(held.shares(math.inf), most, ordered=True))

    # Choice.

    def _forest(
        self, alone: list[Measured], levels: tuple[tuple[int, ...], ...], held: _Held
    ) -> Forest:
        shares = [*(_shares(table.counts) for table in alone), held.shares(held.cap)]
        known = [_by_level(own, each) for own, each in zip(levels, shares, strict=True)]
        expected = [known[a][:, None] * known[b] for a, b in self.candidates]
        tables = [Tables((pair,), levels, self.edges) for pair in self.candidates]
        weights = np.zeros((self.size, self.size))
        if tables:
            found, _ = self._distances(tables, expected, held, _TWELFTH * self.whole)
            # What noise alone makes of a table that is measured: half of it lies above.
            noise = max(each.noise for each in alone) / math.sqrt(2 * math.pi)
            for (a, b), table, distance in zip(self.candidates, tables, found, strict=True):
                weights[a, b] = weights[b, a] = distance - noise * table.size
        return spanning_forest(weights, self.free)

    # Pairs.

    def _tree(
        self, forest: Forest, alone: list[Measured], levels: tuple[tuple[int, ...], ...]
    ) -> tuple[Tree, float]:
        hub = () if self.hub < 0 else (self.hub,)
        names = [(*hub, *((parent,) if parent >= 0 else ()), node) for node, parent in forest.pairs]
        names = [nodes for nodes in names if len(nodes) > 1]
        coarse = [
            Measured(
                table.nodes,
                _by_level(own, table.counts),
                table.noise * math.sqrt(len(own) / (max(own) + 1)),
            )
            for table, own in zip(alone, levels, strict=False)
        ]
        length = 0.0
        if names:
            tables = Tables(tuple(names), levels, self.edges)
            found, length = self._measured(tables, _THIRD)
            coarse += found
        sizes = [max(own) + 1 for own in levels]
        return fit_tree(forest, sizes, coarse, total=1.0, hub=self.hub), length

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
            shares, groups = _shares(table.counts), np.array(own)
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

    def _measured(self, tables: Tables, share: Fraction) -> tuple[list[Measured], float]:
        """Release tables as shares of all records, with a clipping length that is found first."""
        look = share / 24
        most = _MOST * 2.0 ** math.ceil(math.log2(len(tables.tables)) / 2)
        edges = tuple(ladder(1.0, most, _STEPS).tolist())
        tail = self._tally(Lengths(tables, edges), edges, look)
        # Half of what noise makes of all cells of a table lies above it. Somebody with all of
        # their records in one cell of each table is longer than them by the root of the tables.
        noise = tables.size / len(tables.tables) / math.sqrt(2 * math.pi)
        noise /= math.sqrt(float((share - look) * self.whole))
        cap = _cap(tail, noise, math.sqrt(len(tables.tables)))
        found, deviation = self._counted(tables, cap, share - look)
        parts = tables.split(found)
        weights = np.array([1 / part.size for part in parts])
        total = float(np.average([part.sum() for part in parts], weights=weights))
        total = max(total, deviation / math.sqrt(weights.sum()), 1.0)
        return [
            Measured(nodes, part / total, deviation / total)
            for nodes, part in zip(tables.tables, parts, strict=True)
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


def _cap(tail: Tail, noise: float, times: float) -> float:
    """Return the edge that minimises noise plus clipping bias.

    Only shares matter, so clipping costs no more than the change of people's weights relative to
    each other: half of the sum of these changes. ``noise`` is the noise of a table, in records, per
    unit of length; a length is ``times`` a number of records.

    >>> alike = Tail(edges=ladder(1.0, 8.0, 1), counts=np.array([0.0, 0.0, 0.0, 900.0]), size=1.0)
    >>> _cap(alike, 10.0, 1.0)
    1.0
    >>> differ = Tail(edges=ladder(1.0, 8.0, 1), counts=np.array([9e3, 0.0, 0.0, 9e3]), size=1.0)
    >>> _cap(differ, 10.0, 1.0)
    8.0
    """
    people, edges = _seen(tail), tail.edges[: tail.top + 1]
    people = people[: len(edges)]
    whole = people * edges
    loss = []
    for edge in edges:
        kept = people * np.minimum(edges, edge)
        moved = 0.5 * np.abs(kept / kept.sum() - whole / whole.sum()).sum()
        loss.append(math.hypot(min(1.0, noise * edge * times / kept.sum()), moved))
    return float(edges[int(np.argmin(loss))])


def _by_level(levels: Sequence[int], values: Floats) -> Floats:
    return np.asarray(np.bincount(levels, weights=values), dtype=np.float64)


def _shares(counts: Floats) -> Floats:
    """Return noisy counts as shares: the nearest distribution.

    >>> _shares(np.array([0.7, 0.5, -0.1])).round(2).tolist()
    [0.6, 0.4, 0.0]
    """
    ordered = np.sort(counts)[::-1]
    levels = (np.cumsum(ordered) - 1.0) / np.arange(1, len(counts) + 1)
    level = levels[np.flatnonzero(ordered > levels)[-1]]
    return np.asarray(np.maximum(counts - level, 0.0))


def _merged(counts: Floats, most: int, *, ordered: bool) -> tuple[int, ...]:
    """Return the level of each code: each level holds a share of at least 1 / ``most``.

    If codes are ordered, neighbours are merged; otherwise all rare codes form one level.

    >>> _merged(np.array([0.4, 0.1, 0.3, 0.2]), 4, ordered=True)
    (0, 1, 1, 1)
    >>> _merged(np.array([0.4, 0.1, 0.3, 0.2]), 4, ordered=False)
    (0, 2, 1, 2)
    """
    shares, least = _shares(counts), 1.0 / most
    if not ordered:
        common = np.flatnonzero(shares >= least)
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
