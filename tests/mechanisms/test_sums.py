"""Noisy sums and counts keep their promise: exact laws, every small world, twins that must fail."""

import inspect
import math
import re
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from contributions import UnclippedInterval
from drawing import Drawing
from goodness import FALSE_ALARM, counts_in, law_in, p_value
from quorate.auditing import SmallWorld, audit_exactly, discrete_gaussian_mass, replay
from quorate.core.bounds.grid import Ball, Box, Grid, Interval
from quorate.core.bounds.simplex import Simplex
from quorate.core.guarantees import Numerics, Pure, Relation
from quorate.core.noise import SecureNoise, SeededNoise
from quorate.exceptions import GridOverflowError, ParameterError, SchemaError
from quorate.mechanisms.laplace import LaplaceSum
from quorate.mechanisms.noisy_count import NoisyCount
from quorate.mechanisms.sums import GaussianSum, choose_grid
from sealing import release_by_hand

REPLACE, ADD_REMOVE = Relation.REPLACE, Relation.ADD_REMOVE
every_relation = pytest.mark.parametrize("relation", Relation, ids=lambda r: r.name)

COARSE = Grid(Interval(0.0, 4.0, centre=1.0), 1.0)
"""From one step below the centre to three above."""

HOSTILE = (math.nan, math.inf, -1e308, 0.0, 1.0, 2.9, 4.0, 1e308)
"""What a user may hold: both ends of the bound, and whatever lies beyond."""

WORLD = SmallWorld(records=HOSTILE, n_users=2)


FINE = Grid(Interval(-1.0, 1.0), 2.0**-5)
CALIBRATED = GaussianSum.calibrated(FINE, epsilon=1.0, delta=1e-3)


class HalfTheSigma(GaussianSum):
    sigma = property(lambda self: GaussianSum.sigma.func(self) / 2)


class NarrowSensitivity(GaussianSum):
    """One step short in each of few steps: visible on a coarse grid."""

    sensitivity_squared = property(
        lambda self: (math.isqrt(GaussianSum.sensitivity_squared.fget(self)) - 1) ** 2
    )


def audit_gaussian(mechanism, *, claim, grid=FINE, records=(-9.0, 0.25, math.nan, 9.0)):
    """Audit with the exact law of the noise; the contributions run through the real grid."""
    world = SmallWorld(records=records, n_users=2)
    reach = math.ceil(12 * mechanism.sigma)

    def law(values):
        total = int(grid.encode_sum(np.array(values, dtype=float).reshape(-1, 1))[0])
        return discrete_gaussian_mass(total, sigma=mechanism.sigma, window=(-reach, reach))

    return audit_exactly(law, world, claim)


class TestGaussianPrivacy:
    @every_relation
    def test_the_true_epsilon_of_all_small_data_sets_is_the_claim(self, relation):
        mechanism = GaussianSum.calibrated(FINE, epsilon=1.0, delta=1e-3, relation=relation)
        audit = audit_gaussian(mechanism, claim=mechanism.guarantee)
        assert audit.holds
        assert audit.tightness > 0.99

    def test_the_release_uses_this_law(self):
        many = Grid(Box([-1.0] * 4000, [1.0] * 4000), FINE.step)
        mechanism = Drawing(GaussianSum(grid=many, noise_multiplier=0.05), SecureNoise())
        draws = mechanism.release(np.zeros(4000, np.int64), count=0) / FINE.step
        window = (-300, 300)
        law = discrete_gaussian_mass(0, sigma=mechanism.sigma, window=(-3000, 3000))
        assert p_value(counts_in(draws, window), law_in(law.get, window)) > FALSE_ALARM

    @pytest.mark.parametrize("kind", [HalfTheSigma, NarrowSensitivity])
    def test_too_little_noise_is_caught(self, kind):
        fields = {"noise_multiplier": CALIBRATED.noise_multiplier, "delta": 1e-3}
        twin = kind(grid=FINE, **fields)
        assert not audit_gaussian(twin, claim=CALIBRATED.guarantee).holds

    def test_a_missing_clip_is_caught(self):
        grid = Grid(UnclippedInterval(-1.0, 1.0), 2.0**-5)
        records = (-1.5, 0.0, 1.5)
        assert audit_gaussian(CALIBRATED, claim=CALIBRATED.guarantee, records=records).holds
        audit = audit_gaussian(CALIBRATED, claim=CALIBRATED.guarantee, grid=grid, records=records)
        assert not audit.holds

    def test_a_bound_from_the_data_is_caught(self):
        """Noise scaled to the largest value seen tells how large it was."""

        def law(values):
            grid = Grid(Interval(-1.0, max(1.0, *values)), 2.0**-5)
            mechanism = replace(CALIBRATED, grid=grid)
            total = int(grid.encode_sum(np.array(values).reshape(-1, 1))[0])
            return discrete_gaussian_mass(total, sigma=mechanism.sigma, window=(-4000, 4000))

        world = SmallWorld(records=(0.0, 1.0, 4.0), n_users=2)
        assert not audit_exactly(law, world, CALIBRATED.guarantee, thorough=False).holds

    def test_the_wrong_relation_is_caught(self):
        twin = replace(CALIBRATED, relation=ADD_REMOVE)
        assert not audit_gaussian(twin, claim=CALIBRATED.guarantee).holds

    def test_forgetting_the_slack_of_the_discrete_gaussian_changes_sigma(self):
        exact = Fraction(CALIBRATED.noise_multiplier) ** 2 * CALIBRATED.sensitivity_squared
        assert Fraction(CALIBRATED.sigma) ** 2 - 4 >= exact
        below = math.nextafter(CALIBRATED.sigma, 0.0)
        assert Fraction(below) ** 2 - 4 < exact

    @given(multiplier=st.floats(0.01, 100), radius=st.floats(1e-3, 1e3), d=st.integers(1, 1000))
    @settings(max_examples=80)
    def test_sigma_never_falls_below_its_exact_value(self, multiplier, radius, d):
        for relation in Relation:
            grid = choose_grid(Ball(radius, dimension=d), n_users=10)
            mechanism = GaussianSum(grid=grid, noise_multiplier=multiplier, relation=relation)
            exact = Fraction(multiplier) ** 2 * mechanism.sensitivity_squared + 4
            assert exact <= Fraction(mechanism.sigma) ** 2 <= exact * (1 + Fraction(1, 2**50))
            assert Fraction(mechanism.sensitivity) ** 2 >= mechanism.sensitivity_squared


MECHANISMS = [
    LaplaceSum(grid=COARSE, epsilon=1.0),
    LaplaceSum(grid=COARSE, epsilon=1.0, relation=ADD_REMOVE),
    GaussianSum.calibrated(FINE, epsilon=1.0, delta=1e-6),
]


class TestSensitivity:
    @settings(max_examples=100)
    @given(data=st.data())
    def test_no_neighbours_differ_by_more(self, data):
        mechanism = data.draw(st.sampled_from(MECHANISMS))
        grid = mechanism.grid
        elements = st.one_of(st.sampled_from(HOSTILE), st.floats())
        rows = data.draw(arrays(np.float64, (4, 1), elements=elements))
        whole, fewer = grid.encode_sum(rows[:3]), grid.encode_sum(rows[:2])
        replaced = grid.encode_sum(rows[[0, 1, 3]])
        moved = whole - (replaced if mechanism.relation is REPLACE else fewer)
        assert np.abs(moved).sum() <= mechanism.sensitivity

    def test_some_neighbours_reach_it(self):
        low, high = COARSE.encode([[-9.0], [9.0]])
        assert int((high - low).sum()) == MECHANISMS[0].sensitivity == 4
        assert int(high[0]) == MECHANISMS[1].sensitivity == 3


def parameters_of(mechanism):
    """Return what to build the mechanism from, so that it draws the ambient noise."""
    names = [name for name in mechanism.__dataclass_fields__ if name != "noise"]
    return {name: getattr(mechanism, name) for name in names}


class TestReplay:
    @pytest.mark.parametrize("mechanism", MECHANISMS, ids=lambda m: type(m).__name__)
    @pytest.mark.parametrize("hostile", HOSTILE)
    def test_only_the_noisy_values_depend_on_the_data(self, mechanism, hostile):
        def run(values):
            return type(mechanism)(**parameters_of(mechanism)).release_values(values, count=0)

        assert replay(run, np.array([0.5, 1.0]), np.array([0.5, hostile])).same

    def test_an_error_about_a_value_is_caught(self):
        def run(values):
            if not np.isfinite(values).all():
                raise ValueError("not finite")
            return LaplaceSum(grid=COARSE, epsilon=1.0).release_values(values, count=0)

        assert not replay(run, np.array([0.5, 1.0]), np.array([0.5, np.nan])).same


class TestRelease:
    def test_the_noise_of_a_laplace_sum_has_its_law(self):
        many = Grid(Box([0.0] * 4000, [4.0] * 4000), 1.0)
        mechanism = Drawing(LaplaceSum(grid=many, epsilon=8000.0), SecureNoise())
        draws = mechanism.release(np.full(4000, 5), count=0) - 5
        decay = math.exp(-1 / mechanism.scale)
        law = law_in(lambda z: (1 - decay) / (1 + decay) * decay ** abs(z), (-20, 20))
        assert p_value(counts_in(draws, (-20, 20)), law) > FALSE_ALARM
        wrong = law_in(lambda z: (1 - decay**2) / (1 + decay**2) * decay ** (2 * abs(z)), (-20, 20))
        assert p_value(counts_in(draws, (-20, 20)), wrong) < FALSE_ALARM

    @pytest.mark.parametrize("kind", ["laplace", "gaussian"])
    def test_a_release_is_the_sum_in_the_units_of_the_data(self, kind):
        bound = Box([0.0, 100.0], [2.0, 200.0])
        grid = choose_grid(bound, n_users=5000)
        values = np.random.default_rng(0).uniform([0.0, 100.0], [2.0, 200.0], (5000, 2))
        mechanism = (
            Drawing(LaplaceSum(grid=grid, epsilon=1.0), SeededNoise(1))
            if kind == "laplace"
            else Drawing(GaussianSum(grid=grid, noise_multiplier=1.0), SeededNoise(1))
        )
        released = mechanism.release_values(values)
        error = np.abs(released - values.sum(axis=0)).max()
        assert 0 < error <= mechanism.error_bound(1e-7) + grid.rounding_error(5000)

    def test_totals_of_an_engine_and_values_give_the_same(self):
        values = np.array([0.5, 3.0, 9.0])
        first = Drawing(LaplaceSum(grid=COARSE, epsilon=1.0), SeededNoise(3)).release_values(values)
        totals = COARSE.encode_sum(values)
        again = Drawing(LaplaceSum(grid=COARSE, epsilon=1.0), SeededNoise(3)).release(
            totals, count=3
        )
        assert first == again

    def test_under_add_remove_the_number_of_rows_is_private(self):
        mechanism = LaplaceSum(grid=COARSE, epsilon=1.0, relation=ADD_REMOVE)
        with pytest.raises(ParameterError, match="count="):
            mechanism.release_values([1.0, 2.0])
        around_zero = Grid(Interval(-1.0, 1.0), 0.25)
        free = LaplaceSum(grid=around_zero, epsilon=1.0, relation=ADD_REMOVE)
        assert free.release_values([1.0]).shape == (1,)

    def test_a_test_double_voids_the_guarantee(self):
        for mechanism in (*MECHANISMS, NoisyCount(epsilon=1.0)):
            assert mechanism.guarantee.numerics is Numerics.EXACT
            assert not Drawing(mechanism, SeededNoise(0)).guarantee.holds


class TestUtility:
    @pytest.mark.parametrize("beta", [0.5, 0.05, 1e-6])
    @pytest.mark.parametrize("d", [1, 7])
    def test_the_bound_of_a_laplace_sum_is_the_smallest(self, beta, d):
        grid = Grid(Box([0.0] * d, [4.0] * d), 0.5)
        mechanism = LaplaceSum(grid=grid, epsilon=0.7)
        steps = mechanism.error_bound(beta) / grid.step

        def fails(t):
            tail = 2 * math.exp(-(t + 1) / mechanism.scale) / (1 + math.exp(-1 / mechanism.scale))
            return -math.expm1(d * math.log1p(-tail))

        assert steps == int(steps)
        assert fails(steps) <= beta * (1 + 1e-9)
        assert steps == 0 or fails(steps - 1) > beta

    @pytest.mark.parametrize("beta", [0.5, 0.05, 1e-6])
    @pytest.mark.parametrize("d", [1, 7])
    def test_the_bound_of_a_gaussian_coordinate_is_within_two_steps_of_the_smallest(self, beta, d):
        bound = Box([-1.0] * d, [1.0] * d)
        mechanism = GaussianSum(grid=Grid(bound, 2.0**-3), noise_multiplier=0.5)
        steps = int(mechanism.error_bound(beta) / mechanism.grid.step)
        z = np.arange(-2000, 2001)
        mass = np.exp(-0.5 * (z / mechanism.sigma) ** 2)
        mass /= mass.sum()

        def fails(t):
            return -math.expm1(d * math.log1p(-mass[np.abs(z) > t].sum()))

        assert fails(steps) <= beta
        assert fails(steps - 2) > beta

    def test_the_bound_of_a_gaussian_norm_holds_and_is_not_loose(self):
        grid = choose_grid(Ball(1.0, dimension=20), n_users=1)
        mechanism = Drawing(GaussianSum(grid=grid, noise_multiplier=2.0), SeededNoise(5))
        zero = np.zeros(20, np.int64)
        norms = np.array([np.linalg.norm(mechanism.release(zero, count=1)) for _ in range(4000)])
        bound = mechanism.norm_bound(0.1)
        # 400 of 4000 may exceed it; the seed is fixed, six standard deviations are 114.
        assert np.count_nonzero(norms > bound) < 400 + 114
        assert np.count_nonzero(norms > 0.95 * bound) > 400 + 114

    def test_the_tail_inequality_behind_the_gaussian_bounds(self):
        from scipy.special import ndtr

        for sigma in (0.5, 1.0, 8.0, 30.0):
            z = np.arange(-2000, 2001)
            mass = np.exp(-0.5 * (z / sigma) ** 2)
            tail = np.cumsum((mass / mass.sum())[::-1])[::-1]
            m = np.arange(1, int(8 * sigma) + 2)
            assert (tail[2000 + m] <= ndtr(-(m - 1) / sigma) * (1 + 1e-12)).all()

    def test_standard_errors_are_those_of_the_noise(self):
        z = np.arange(-4000, 4001)
        laplace = LaplaceSum(grid=COARSE, epsilon=0.3)
        mass = np.exp(-np.abs(z) / laplace.scale)
        deviation = math.sqrt((mass / mass.sum()) @ z**2) * COARSE.step
        assert laplace.standard_error == pytest.approx(deviation, rel=1e-9)
        mass = np.exp(-0.5 * (z / CALIBRATED.sigma) ** 2)
        deviation = math.sqrt((mass / mass.sum()) @ z**2) * FINE.step
        assert CALIBRATED.standard_error == pytest.approx(deviation, rel=1e-9)


class TestRefusals:
    @pytest.mark.parametrize("epsilon", [0.0, -1.0, math.nan, math.inf, None, "1"])
    def test_an_epsilon_that_makes_no_sense(self, epsilon):
        for build in (
            lambda e: LaplaceSum(grid=COARSE, epsilon=e),
            lambda e: NoisyCount(epsilon=e),
        ):
            with pytest.raises(ParameterError, match="epsilon"):
                build(epsilon)

    @pytest.mark.parametrize("multiplier", [0.0, -1.0, math.nan, math.inf])
    def test_a_multiplier_that_makes_no_sense(self, multiplier):
        with pytest.raises(ParameterError, match="noise_multiplier"):
            GaussianSum(grid=FINE, noise_multiplier=multiplier)

    @pytest.mark.parametrize("delta", [-0.1, 1.0, math.nan])
    def test_a_delta_that_makes_no_sense(self, delta):
        with pytest.raises(ParameterError, match="delta"):
            GaussianSum(grid=FINE, noise_multiplier=1.0, delta=delta)

    @pytest.mark.parametrize("beta", [0.0, 1.0, -1.0, math.nan])
    def test_a_chance_that_makes_no_sense(self, beta):
        for mechanism in (*MECHANISMS, NoisyCount(epsilon=1.0)):
            with pytest.raises(ParameterError, match="beta"):
                mechanism.error_bound(beta)
        with pytest.raises(ParameterError, match="beta"):
            CALIBRATED.norm_bound(beta)

    def test_gaussian_noise_on_too_coarse_a_grid(self):
        with pytest.raises(ParameterError, match="finer grid"):
            GaussianSum(grid=Grid(Simplex(3), 1.0), noise_multiplier=1.0)
        assert GaussianSum(grid=Grid(Simplex(3), 2.0**-20), noise_multiplier=1.0).sigma > 8

    def test_noise_that_does_not_fit(self):
        grid = Grid(Ball(1.0, dimension=2), 2.0**-50)
        with pytest.raises(GridOverflowError, match="choose_grid"):
            LaplaceSum(grid=grid, epsilon=1e-6)
        with pytest.raises(GridOverflowError, match="choose_grid"):
            GaussianSum(grid=grid, noise_multiplier=1e6)
        with pytest.raises(ParameterError, match="epsilon"):
            NoisyCount(epsilon=1e-300)

    def test_something_else_than_a_grid(self):
        with pytest.raises(ParameterError, match="Grid"):
            LaplaceSum(grid=None, epsilon=1.0)
        with pytest.raises(ParameterError, match="Grid"):
            GaussianSum(grid=(0.0, 1.0), noise_multiplier=1.0)

    @pytest.mark.parametrize("totals", [np.zeros(2, int), np.zeros((1, 1), int), np.zeros(1)])
    def test_totals_that_are_none(self, totals):
        with pytest.raises(SchemaError):
            release_by_hand(LaplaceSum(grid=COARSE, epsilon=1.0), totals, count=0)

    def test_empty_data_one_user_and_a_user_without_records_are_data(self):
        for values in (np.empty((0, 1)), [[1.0]], [[math.nan]]):
            assert LaplaceSum(grid=COARSE, epsilon=1.0).release_values(values).shape == (1,)


class TestNumberTypes:
    """Parameters of every type are read by value, and claims are rounded to the safe side."""

    FINE = Grid(Interval(-1.0, 1.0), 2.0**-30)

    @pytest.mark.parametrize("kind", [np.int8, np.int64, np.uint64, np.float32, Fraction, int])
    def test_a_multiplier_of_another_type_gives_the_same_noise(self, kind):
        """The squared sensitivity is 2^62 here: in 64-bit integers its product wrapped around."""
        given_one = GaussianSum(grid=self.FINE, noise_multiplier=kind(3))
        assert given_one.sigma == GaussianSum(grid=self.FINE, noise_multiplier=3.0).sigma

    @given(multiplier=st.fractions(1, 50, max_denominator=10**20))
    def test_no_more_noise_is_claimed_than_an_exact_multiplier_gives(self, multiplier):
        claimed = GaussianSum(grid=self.FINE, noise_multiplier=multiplier).event.noise_multiplier
        assert multiplier * (1 - Fraction(1, 2**52)) <= claimed <= multiplier

    @pytest.mark.parametrize("multiplier", [1e155, 1e200, 1.7e308])
    def test_absurd_noise_is_refused_at_once(self, multiplier):
        with pytest.raises(GridOverflowError, match="choose_grid"):
            GaussianSum(grid=COARSE, noise_multiplier=multiplier)

    def test_unsigned_totals_are_refused_by_dtype(self):
        """Beyond 2^63 they would wrap around, far away from a neighbour's total."""
        with pytest.raises(SchemaError, match="uint64"):
            release_by_hand(LaplaceSum(grid=COARSE, epsilon=1.0), np.array([3], np.uint64), count=0)


class TestNumberOfUsers:
    """How many users there are is public under one relation and private under the other."""

    FINEST = Grid(Interval(-1.0, 1.0), 2.0**-52)

    def run(self, rows):
        mechanism = LaplaceSum(grid=self.FINEST, epsilon=1.0, relation=ADD_REMOVE)
        return mechanism.release_values(np.zeros(len(rows)))

    def test_a_private_number_decides_on_no_error(self):
        """One more user than 1023 was an error here, with the number of users in its text."""
        assert replay(self.run, [0] * 1023, [0] * 1024).same

    def test_an_error_about_the_number_would_be_caught(self):
        def refuses(rows):
            self.FINEST.check_sum(len(rows))
            return self.run(rows)

        assert not replay(refuses, [0] * 1023, [0] * 1024).same

    def test_a_public_number_is_refused_before_a_sum_saturates(self):
        mechanism = LaplaceSum(grid=self.FINEST, epsilon=1.0, relation=REPLACE)
        assert mechanism.release_values(np.ones(1023)).shape == (1,)
        with pytest.raises(GridOverflowError, match="n_users=1024"):
            mechanism.release_values(np.ones(1024))
        with pytest.raises(GridOverflowError, match="n_users=1024"):
            release_by_hand(mechanism, np.array([2**62]), count=1023.5)


class TestContract:
    @pytest.mark.parametrize("kind", [LaplaceSum, GaussianSum, NoisyCount])
    def test_the_docstring_says_what_the_guarantee_says(self, kind):
        doc = inspect.getdoc(kind)
        sections = ["Privacy", "Utility", "Complexity", "Parameters", "References", "Examples"]
        assert [s for s in re.findall(r"^(\w[\w ]*)\n-+$", doc, re.M) if s in sections] == sections
        for promise in ("trust : central", "numerics : exact", *(r.value for r in Relation)):
            assert promise in " ".join(doc.split())

    def test_events_are_what_was_asked_for(self):
        assert LaplaceSum(grid=COARSE, epsilon=0.5).event == Pure(0.5)
        assert NoisyCount(epsilon=0.5).event == Pure(0.5)
        assert LaplaceSum(grid=COARSE, epsilon=0.1).guarantee.epsilon == 0.1
        assert CALIBRATED.guarantee.epsilon == pytest.approx(1.0, rel=1e-6)
        assert CALIBRATED.guarantee.epsilon <= 1.0
        assert CALIBRATED.guarantee.delta == 1e-3
