"""The exact audit of every mechanism: true epsilon at most the claim, and close to it.

Each case runs the real ``release`` on every outcome of its noise, for every data set of a small
world, behind the bound on contributions that belongs to it. Worlds contain records far outside the
bound, so that the bound is audited too. Beside each honest case stand its broken twins: the noise
halved, the clip removed, a bound taken from the data, a sensitivity off by one, the noise of the
other relation. Every one of them must be caught; where a mechanism cannot make one of the mistakes,
its case says why.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cache

import numpy as np
import pytest

from quorate.auditing import Cells, Law, SmallWorld, audit_exactly, enumerate_runs
from quorate.core.bounds.grid import Ball, Box, Grid, Interval
from quorate.core.by_hand import line_by_hand, rows_by_hand
from quorate.core.guarantees import Guarantee, Numerics, Relation
from quorate.core.questions.lines import opened_line
from quorate.mechanisms.choices.choose import ChooseBest, Selection
from quorate.mechanisms.choices.ordered import ChooseOrdered
from quorate.mechanisms.choices.quantiles import FloatQuantile, PrivateQuantile
from quorate.mechanisms.laplace import LaplaceSum
from quorate.mechanisms.noisy_count import NoisyCount
from quorate.mechanisms.sums import GaussianSum
from sealing import moved, numbers_of, release_by_hand

REPLACE, ADD_REMOVE = Relation.REPLACE, Relation.ADD_REMOVE


@dataclass(frozen=True)
class Twin:
    """A run with a mistake in it; ``relation`` is what it claims, if that is the mistake."""

    run: Callable
    relation: Relation | None = None


@dataclass(frozen=True, kw_only=True)
class Case:
    """A mechanism on a small world: ``run`` maps a data set to one release.

    Mechanisms are frozen: one of each kind serves all runs, as it may in a program.
    """

    name: str
    make: Callable
    run: Callable
    world: SmallWorld
    twins: dict[str, Twin]
    cells: Cells = field(default_factory=Cells)

    @property
    def claim(self) -> Guarantee:
        return self.make().guarantee

    def law(self, run: Callable) -> Callable[[tuple], Law]:
        return lambda records: enumerate_runs(lambda _: run(records), cells=self.cells)


@cache
def off_by_one(kind):
    """Return the mechanism with a sensitivity that is one step too small, on the seal as well."""

    class Mistaken(kind):
        @property
        def sensitivity(self):
            return super().sensitivity - 1

        @property
        def sensitivity_squared(self):
            return (math.isqrt(super().sensitivity_squared) - 1) ** 2

        def _add_noise(self, sums, account):
            squared = self.sensitivity_squared if hasattr(kind, "sensitivity_squared") else None
            short = moved(
                numbers_of(sums), self.sensitivity, squared=squared, relation=self.relation
            )
            return super()._add_noise(short, account)

    return Mistaken


def as_rows(records, dimension):
    return np.array(records, dtype=np.float64).reshape(-1, dimension)


def noisy_sum(name, kind, grid, relation, world, cells, **parameters):
    """Sums: every twin exists, but for the off-by-one of a sensitivity of 1.

    ``count`` is public under REPLACE and some estimate otherwise.
    """
    dimension = grid.bound.dimension

    @cache
    def make(kind=kind, **changes):
        return kind(**({"grid": grid, "relation": relation} | parameters | changes))

    def run(records, kind=kind, **changes):
        return make(kind, **changes).release_values(as_rows(records, dimension), count=3)

    def without_clip(records):
        finite = np.nan_to_num(as_rows(records, dimension), nan=0.0, posinf=99.0, neginf=-99.0)
        totals = np.rint(finite / grid.step).astype(np.int64).sum(axis=0)
        return release_by_hand(make(), totals, count=3)

    def bound_from_the_data(records):
        rows = np.nan_to_num(as_rows(records, dimension), nan=0.0, posinf=99.0, neginf=-99.0)
        limits = np.maximum(np.abs(rows).max(axis=0, initial=grid.step), grid.step)
        bound = Box(-limits, limits)
        mistaken = dataclasses.replace(make(), grid=Grid(bound, grid.step))
        return mistaken.release_values(rows, count=3)

    noise, factor = next(iter(parameters.items()))
    less_noise = {noise: factor * 2 if noise == "epsilon" else factor / 2}
    twins = {
        "noise halved": Twin(lambda d: run(d, **less_noise)),
        "clip removed": Twin(without_clip),
        "bound from the data": Twin(bound_from_the_data),
        "wrong relation": Twin(lambda d: run(d, relation=ADD_REMOVE), relation=REPLACE),
    }
    if make().sensitivity > 1:
        twins["off-by-one sensitivity"] = Twin(lambda d: run(d, kind=off_by_one(kind)))
    return Case(
        name=f"{kind.__name__}-{name}-{relation.name}",
        make=make,
        run=run,
        world=world,
        cells=cells,
        twins=twins,
    )


def laplace_sums(relation):
    """Beyond all totals the likelihood ratio is constant, so a few wide cells show all of it."""
    cells = Cells(width=0.5, reach=2.5)
    line = SmallWorld(records=(-9.0, -1.0, 0.3, 1.0, math.nan, math.inf), n_users=2)
    grid = Grid(Interval(-1.0, 1.0), step=0.25)
    yield noisy_sum("Interval", LaplaceSum, grid, relation, line, cells, epsilon=1.0)

    ages = SmallWorld(records=(-9.0, 0.0, 60.0, 100.0, 1e300), n_users=2)
    grid = Grid(Interval(0.0, 100.0, centre=20.0), step=4.0)
    yield noisy_sum("off-centre", LaplaceSum, grid, relation, ages, cells, epsilon=1.0)

    cells = Cells(width=1.0, reach=2.0)
    corners = ((1.0, 1.0), (-1.0, -1.0), (7.0, -7.0), (math.nan, 0.4))
    plane = SmallWorld(records=corners, n_users=2, ordered=False)
    grid = Grid(Box([-1.0, -1.0], [1.0, 1.0]), step=0.5)
    yield noisy_sum("Box", LaplaceSum, grid, relation, plane, cells, epsilon=1.0)

    grid = Grid(Ball(1.0, dimension=2), step=2.0**-10)
    yield noisy_sum("Ball", LaplaceSum, grid, relation, plane, cells, epsilon=1.0)


def gaussian_sums(relation):
    """One user is enough: what the others add moves both totals.

    A ball's contributions end strictly inside it and are then truncated, up to two steps of
    thirty-two; a sensitivity off by one is within that slack and no violation.
    """
    given = {"noise_multiplier": 2.7, "delta": 1e-3}  # epsilon is 0.94
    line = SmallWorld(records=(-9.0, 1.0, math.nan), n_users=1)
    grid = Grid(Interval(-1.0, 1.0), step=2.0**-4)
    cells = Cells(width=0.05, reach=4.0)
    yield noisy_sum("Interval", GaussianSum, grid, relation, line, cells, **given)

    plane = SmallWorld(records=((1.0, 0.0), (-5.0, 0.0), (math.nan, 1.0)), n_users=1)
    grid = Grid(Ball(1.0, dimension=2), step=2.0**-5)
    cells = Cells(width=0.4, reach=3.2)
    ball = noisy_sum("Ball", GaussianSum, grid, relation, plane, cells, **given)
    del ball.twins["off-by-one sensitivity"]
    yield ball


def noisy_count(relation):
    """The sensitivity is 1 under both relations, so the noise of the other relation is right too.

    Nor can it be one too small; the off-by-one twin counts each user twice instead.
    """

    @cache
    def make(**changes):
        return NoisyCount(**({"epsilon": 1.0, "relation": relation} | changes))

    def run(records, **changes):
        return make(**changes).release_values(np.array(records, dtype=np.float64))

    def largest(records):
        return max([1.0, *(abs(r) for r in records if math.isfinite(r))])

    return Case(
        name=f"NoisyCount-{relation.name}",
        make=make,
        run=run,
        world=SmallWorld(records=(0.0, 1.0, 7.0, math.nan), n_users=2),
        cells=Cells(reach=3.0),
        twins={
            "noise halved": Twin(lambda d: run(d, epsilon=2.0)),
            "clip removed": Twin(lambda d: release_by_hand(make(), int(np.nansum(np.array(d))))),
            "bound from the data": Twin(
                lambda d: release_by_hand(make(epsilon=1 / largest(d)), int(np.nansum(np.array(d))))
            ),
            "off-by-one sensitivity": Twin(lambda d: run((*d, *d))),
        },
    )


def votes(records, *, low, high):
    """Scores: each user adds a vector that is cut to [low, high] in every coordinate."""
    return np.clip(np.array(records, dtype=np.int64).reshape(-1, 2), low, high).sum(axis=0)


def largest_vote(records):
    return max([1, *(abs(v) for record in records for v in record)])


def choice_twins(run, relation, one_sided, epsilon, sensitivity):
    """A choice is given its sensitivity, so the twins of a bound belong to whoever adds up scores.

    A user who can also lower a score is the fifth mistake of a one-sided choice.
    """
    twins = {
        "noise halved": Twin(lambda d: run(d, epsilon=2 * epsilon)),
        "clip removed": Twin(lambda d: run(d, low=-99, high=99)),
        "bound from the data": Twin(
            lambda d: run(d, low=-99, high=99, sensitivity=largest_vote(d))
        ),
        "off-by-one sensitivity": Twin(lambda d: run(d, sensitivity=sensitivity - 1)),
        "wrong relation": Twin(
            lambda d: run(d, relation=ADD_REMOVE, sensitivity=2), relation=REPLACE
        ),
    }
    if one_sided:
        twins["not one-sided"] = Twin(lambda d: run(d, low=-2))
    elif relation is ADD_REMOVE:
        twins["one-sided noise"] = Twin(lambda d: run(d, one_sided=True))
    return twins


def choose_best(selection, relation, *, one_sided=False):
    """At epsilon = 1 and three users the exponential mechanism reaches 73 % only.

    The other candidates' weight stays in its denominator; it vanishes as epsilon times the number
    of users grows, so the audit takes epsilon = 4. Permute-and-flip reaches its claim at any.
    """
    epsilon = 4.0
    low, high = (0, 2) if one_sided else (-2, 2)
    sensitivity = high - low if relation is REPLACE else high

    @cache
    def make(**changes):
        given = {
            "candidates": 2,
            "epsilon": epsilon,
            "sensitivity": sensitivity,
            "relation": relation,
            "one_sided": one_sided,
            "selection": selection,
        }
        return ChooseBest(**(given | changes))

    def run(records, low=low, high=high, **changes):
        return release_by_hand(make(**changes), votes(records, low=low, high=high))

    return Case(
        name=f"ChooseBest-{selection.name}-{relation.name}{'-one-sided' if one_sided else ''}",
        make=make,
        run=run,
        world=SmallWorld(records=((2, -2), (-2, 2), (0, 0), (9, -9), (-9, 0)), n_users=3),
        twins=choice_twins(run, relation, one_sided, epsilon, sensitivity),
    )


def choose_ordered(relation, *, one_sided=False):
    """One point against forty; every user adds a loss to each of the two pieces."""
    epsilon = 2.0
    low, high = (0, 2) if one_sided else (-2, 2)
    sensitivity = high - low if relation is REPLACE else high
    lengths = np.array([1, 40], dtype=np.uint64)

    @cache
    def make(**changes):
        given = {
            "epsilon": epsilon,
            "sensitivity": sensitivity,
            "relation": relation,
            "one_sided": one_sided,
        }
        return ChooseOrdered(**(given | changes))

    def run(records, low=low, high=high, **changes):
        losses = votes(records, low=low, high=high)
        return release_by_hand(make(**changes), lengths, losses, lower=-3)

    return Case(
        name=f"ChooseOrdered-{relation.name}{'-one-sided' if one_sided else ''}",
        make=make,
        run=run,
        world=SmallWorld(records=((2, -2), (-2, 2), (0, 2), (9, -9), (-9, 0)), n_users=2),
        twins=choice_twins(run, relation, one_sided, epsilon, sensitivity),
    )


class MistakenQuantile(PrivateQuantile):
    """A rank that counts one step too little, on the seal of its losses as well."""

    @property
    def sensitivity(self):
        return super().sensitivity - 1

    def losses(self, lower, upper):
        pieces = opened_line(super().losses(lower, upper))
        return line_by_hand(*pieces, sensitivity=self.sensitivity, relation=self.relation)


def private_quantile(relation, quantile, *, n_users, values):
    """The values put nearly the whole domain between the two that one user may hold.

    The clip to the domain is part of cutting it into pieces and cannot be left out; the twin that
    leaves out a bound lets each user give two values. Under add/remove at quantile 1/2 the
    sensitivity is 1, so there is no off-by-one; quantile 0.9 has it.
    """

    @cache
    def make(kind=PrivateQuantile, **changes):
        given = {"domain": (0, 40), "epsilon": 1.0, "quantile": quantile, "relation": relation}
        return kind(**(given | changes))

    def run(records, kind=PrivateQuantile, **changes):
        return release_by_hand(make(kind, **changes), np.array(records, dtype=np.int64))

    def domain_from_the_data(records):
        return run(records, domain=(0, max([1, *records])))

    twins = {
        "noise halved": Twin(lambda d: run(d, epsilon=2.0)),
        "clip removed": Twin(lambda d: run((*d, *d))),
        "bound from the data": Twin(domain_from_the_data),
        "wrong relation": Twin(lambda d: run(d, relation=ADD_REMOVE), relation=REPLACE),
    }
    if make().sensitivity > 1:
        twins["off-by-one sensitivity"] = Twin(lambda d: run(d, kind=MistakenQuantile))
    return Case(
        name=f"PrivateQuantile-{relation.name}-{quantile}",
        make=make,
        run=run,
        world=SmallWorld(records=values, n_users=n_users, ordered=False),
        twins=twins,
    )


def quantile_of_limits(relation):
    """Users give pairs of limits, also in reversed order; otherwise as above."""

    @cache
    def make(**changes):
        return PrivateQuantile(
            **({"domain": (0, 24), "epsilon": 1.0, "relation": relation} | changes)
        )

    def run(records, **changes):
        limits = np.array(records, dtype=np.int64).reshape(-1, 2)
        mechanism = make(**changes)
        lower, upper = (rows_by_hand(each, mechanism.relation) for each in limits.T)
        return mechanism.release_between(lower, upper)

    return Case(
        name=f"PrivateQuantile.release_between-{relation.name}",
        make=make,
        run=run,
        world=SmallWorld(records=((0, 0), (1, 1), (24, 24), (24, -9)), n_users=3, ordered=False),
        twins={
            "noise halved": Twin(lambda d: run(d, epsilon=2.0)),
            "clip removed": Twin(lambda d: run((*d, *d))),
            "wrong relation": Twin(lambda d: run(d, relation=ADD_REMOVE), relation=REPLACE),
        },
    )


def float_quantile(relation):
    """NaN, infinities and values outside the range are records like any other.

    The sensitivity is that of the quantile above, whose case has the twins of a wrong one.
    """

    @cache
    def make(**changes):
        given = {"lower": 0.0, "upper": 6.0, "resolution": 0.25, "epsilon": 1.0}
        return FloatQuantile(**(given | {"relation": relation} | changes))

    def run(records, **changes):
        return release_by_hand(make(**changes), np.array(records, dtype=np.float64))

    def range_from_the_data(records):
        return run(records, upper=max([1.0, *(r for r in records if r < 9)]))

    return Case(
        name=f"FloatQuantile-{relation.name}",
        make=make,
        run=run,
        world=SmallWorld(
            records=(math.nan, -math.inf, 0.25, 5.9, math.inf), n_users=3, ordered=False
        ),
        twins={
            "noise halved": Twin(lambda d: run(d, epsilon=2.0)),
            "clip removed": Twin(lambda d: run((*d, *d))),
            "bound from the data": Twin(range_from_the_data),
            "wrong relation": Twin(lambda d: run(d, relation=ADD_REMOVE), relation=REPLACE),
        },
    )


CASES = [
    *(case for relation in Relation for case in laplace_sums(relation)),
    *(case for relation in Relation for case in gaussian_sums(relation)),
    *(noisy_count(relation) for relation in Relation),
    *(choose_best(selection, relation) for selection in Selection for relation in Relation),
    *(choose_best(selection, ADD_REMOVE, one_sided=True) for selection in Selection),
    *(choose_ordered(relation) for relation in Relation),
    choose_ordered(ADD_REMOVE, one_sided=True),
    *(private_quantile(r, 0.5, n_users=3, values=(-7, 1, 50)) for r in Relation),
    *(private_quantile(r, 0.9, n_users=5, values=(-7, 39, 50)) for r in Relation),
    *(quantile_of_limits(relation) for relation in Relation),
    *(float_quantile(relation) for relation in Relation),
]
every_case = pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
every_twin = pytest.mark.parametrize(
    ("case", "twin"),
    [
        pytest.param(case, twin, id=f"{case.name}: {name}")
        for case in CASES
        for name, twin in case.twins.items()
    ],
)


@every_case
def test_the_true_epsilon_is_at_most_the_claim_and_close_to_it(case):
    assert case.claim.numerics is Numerics.EXACT
    audit = audit_exactly(case.law(case.run), case.world, case.claim)
    assert audit.holds, str(audit)
    assert audit.tightness >= 0.9, str(audit)


@every_twin
def test_the_broken_twin_is_caught(case, twin):
    claim = dataclasses.replace(case.claim, relation=twin.relation or case.claim.relation)
    audit = audit_exactly(case.law(twin.run), case.world, claim, thorough=False)
    assert not audit.holds, str(audit)


class TestLawsThatMechanismsState:
    """``probabilities`` is what planners and readers see; it is the law of ``release``."""

    @pytest.mark.parametrize("selection", Selection, ids=lambda s: s.name)
    def test_choose_best(self, selection):
        def make():
            return ChooseBest(candidates=4, epsilon=1.3, selection=selection)

        scores = np.array([3, -2, 5, 5])
        law = enumerate_runs(lambda _: release_by_hand(make(), scores))
        assert [law[i] for i in range(4)] == pytest.approx(make().probabilities(scores), rel=1e-12)

    def test_choose_ordered(self):
        def make():
            return ChooseOrdered(epsilon=1.3)

        lengths, losses = np.array([2, 0, 3], dtype=np.uint64), np.array([1, -9, 4])
        law = enumerate_runs(lambda _: release_by_hand(make(), lengths, losses, lower=10))
        stated = make().probabilities(lengths, losses)
        expected = [stated[0] / 2] * 2 + [stated[2] / 3] * 3
        assert [law[u] for u in range(10, 15)] == pytest.approx(expected, rel=1e-12)
        weights = [2 * math.exp(-0.65 * 1), 3 * math.exp(-0.65 * 4)]
        assert stated[0] == pytest.approx(weights[0] / sum(weights), rel=1e-12)

    def test_private_quantile(self):
        def make():
            return PrivateQuantile(domain=(-3, 4), epsilon=1.3, quantile=0.9)

        values = np.array([-9, 0, 2, 2, 7])
        law = enumerate_runs(lambda _: release_by_hand(make(), values))
        stated = make().probabilities(values)
        assert [law[u] for u in range(-3, 5)] == pytest.approx(stated, rel=1e-12)
