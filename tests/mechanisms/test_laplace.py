"""Laplace sums keep their promise: exact laws, every small world, twins that must fail."""

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from contributions import UnclippedInterval
from drawing import Drawing
from quorate.auditing import Cells, SmallWorld, audit_exactly, enumerate_runs
from quorate.core.account.account import noise_for
from quorate.core.bounds.grid import Ball, Box, Grid, Interval
from quorate.core.guarantees import Relation
from quorate.exceptions import NumericalFailure
from quorate.mechanisms.laplace import LaplaceSum
from quorate.mechanisms.sums import choose_grid
from sealing import moved, numbers_of

REPLACE, ADD_REMOVE = Relation.REPLACE, Relation.ADD_REMOVE
every_relation = pytest.mark.parametrize("relation", Relation, ids=lambda r: r.name)

COARSE = Grid(Interval(0.0, 4.0, centre=1.0), 1.0)
"""From one step below the centre to three above."""

HOSTILE = (math.nan, math.inf, -1e308, 0.0, 1.0, 2.9, 4.0, 1e308)
"""What a user may hold: both ends of the bound, and whatever lies beyond."""

WORLD = SmallWorld(records=HOSTILE, n_users=2)


class HalfTheNoise(LaplaceSum):
    """Pays for one release and draws another."""

    def _add_noise(self, sums, account):
        noise = noise_for(account, self.event)
        return noise.discrete_laplace(numbers_of(sums), scale=self.scale / 2)


class HalfTheScale(LaplaceSum):
    scale = property(lambda self: LaplaceSum.scale.fget(self) / 2)


class OneStepShort(LaplaceSum):
    """Draws what a step less would need; the seal knows better."""

    sensitivity = property(lambda self: LaplaceSum.sensitivity.fget(self) - 1)


class ShortSeal(OneStepShort):
    """Says on the seal, too, that one user moves a step less."""

    def _add_noise(self, sums, account):
        short = moved(numbers_of(sums), self.sensitivity, relation=self.relation)
        return super()._add_noise(short, account)


def laplace_law(build, values):
    """Return the law of what the real code releases for these users."""
    rows = np.array(values, dtype=float).reshape(-1, 1)
    return enumerate_runs(
        lambda noise: build(rows, noise).release_values(rows, count=0), cells=Cells(reach=8.0)
    )


def audit_laplace(build, *, relation, world=WORLD, epsilon=2.0, thorough=True):
    claim = LaplaceSum(grid=COARSE, epsilon=epsilon, relation=relation).guarantee
    return audit_exactly(lambda values: laplace_law(build, values), world, claim, thorough=thorough)


def honest(relation, kind=LaplaceSum, grid=COARSE):
    def build(rows, noise):
        return Drawing(kind(grid=grid, epsilon=2.0, relation=relation), noise)

    return build


class TestLaplacePrivacy:
    @every_relation
    def test_the_true_epsilon_of_all_small_data_sets_is_the_claim(self, relation):
        audit = audit_laplace(honest(relation), relation=relation)
        assert audit.holds
        assert audit.tightness > 0.999

    @every_relation
    def test_two_coordinates(self, relation):
        grid = Grid(Box([0.0, -1.0], [1.0, 1.0], centre=[0.0, 0.0]), 1.0)
        world = SmallWorld(records=((0.0, -9.0), (9.0, 9.0), (math.nan, 0.0)), n_users=2)
        claim = LaplaceSum(grid=grid, epsilon=3.0, relation=relation).guarantee

        def law(values):
            rows = np.array(values, dtype=float).reshape(-1, 2)

            def run(noise):
                mechanism = Drawing(LaplaceSum(grid=grid, epsilon=3.0, relation=relation), noise)
                return mechanism.release_values(rows, count=0)

            return enumerate_runs(run, cells=Cells(reach=6.0))

        audit = audit_exactly(law, world, claim)
        assert audit.holds
        assert audit.tightness > 0.999

    @every_relation
    @pytest.mark.parametrize("kind", [HalfTheNoise, ShortSeal])
    def test_too_little_noise_is_caught(self, kind, relation):
        assert not audit_laplace(honest(relation, kind), relation=relation, thorough=False).holds

    @every_relation
    @pytest.mark.parametrize("kind", [HalfTheScale, OneStepShort])
    def test_a_scale_that_costs_more_than_is_promised_is_refused_by_the_account(
        self, kind, relation
    ):
        twin = kind(grid=COARSE, epsilon=2.0, relation=relation)
        with pytest.raises(NumericalFailure, match="nothing was drawn"):
            twin.release_values(np.zeros(3), count=3)

    @every_relation
    def test_a_missing_clip_is_caught(self, relation):
        grid = Grid(UnclippedInterval(0.0, 4.0, centre=1.0), 1.0)
        world = SmallWorld(records=(0.0, 4.0, 6.0), n_users=2)
        assert audit_laplace(honest(relation), relation=relation, world=world).holds
        broken = audit_laplace(honest(relation, grid=grid), relation=relation, world=world)
        assert not broken.holds

    @every_relation
    def test_a_bound_from_the_data_is_caught(self, relation):
        def build(rows, noise):
            upper = max(2.0, float(np.nan_to_num(rows, posinf=0.0).clip(0, 6).max(initial=0.0)))
            grid = Grid(Interval(0.0, upper, centre=1.0), 1.0)
            return Drawing(LaplaceSum(grid=grid, epsilon=2.0, relation=relation), noise)

        world = SmallWorld(records=(0.0, 1.0, 6.0), n_users=2)
        assert not audit_laplace(build, relation=relation, world=world, thorough=False).holds

    def test_the_wrong_relation_is_caught(self):
        assert not audit_laplace(honest(ADD_REMOVE), relation=REPLACE, thorough=False).holds
        # The other way round it is only waste.
        audit = audit_laplace(honest(REPLACE), relation=ADD_REMOVE)
        assert audit.holds
        assert audit.tightness < 0.8

    @given(epsilon=st.floats(0.002, 50), radius=st.floats(1e-3, 1e3), d=st.integers(1, 50))
    @settings(max_examples=80)
    def test_the_scale_never_falls_below_its_exact_value(self, epsilon, radius, d):
        for relation in Relation:
            grid = choose_grid(Ball(radius, dimension=d), n_users=10)
            mechanism = LaplaceSum(grid=grid, epsilon=epsilon, relation=relation)
            exact = Fraction(mechanism.sensitivity) / Fraction(epsilon)
            assert exact <= Fraction(mechanism.scale) <= exact * (1 + Fraction(1, 2**50))
