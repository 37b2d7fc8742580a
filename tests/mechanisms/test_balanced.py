"""Noise that adds up to zero: its law, its norm, every pair of small neighbours, broken twins."""

from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from drawing import Drawing
from goodness import FALSE_ALARM, p_value
from quorate.auditing import enumerate_runs
from quorate.core.bounds.grid import Grid, Interval
from quorate.core.bounds.simplex import Simplex
from quorate.core.guarantees import Pure, Relation
from quorate.core.noise import SecureNoise, SeededNoise
from quorate.exceptions import EnumerationError, GridOverflowError, ParameterError
from quorate.mechanisms.balanced import BalancedSum
from quorate.mechanisms.laplace import LaplaceSum
from quorate.mechanisms.sums import choose_grid

every_relation = pytest.mark.parametrize("relation", Relation, ids=lambda r: r.name)
COARSE = Grid(Simplex(2), step=0.5)
"""Shares of 0, 1/2 or 1."""
REACH = 40
WORLD = [(a, b) for a in range(3) for b in range(3 - a)]
"""All that one user can add, in steps."""


def norm(z):
    """Return the norm of the proof, once more and in other words."""
    rises = sum(max(int(v), 0) for v in z)
    falls = sum(max(-int(v), 0) for v in z)
    return 2 * max(rises, falls)


def joint_law(scale):
    """Return the mass of balanced noise of two coordinates, on a window that holds nearly all."""
    axis = np.arange(-REACH, REACH + 1)
    first, second = axis[:, None], axis[None, :]
    sizes = np.abs(first) + np.abs(second) + np.abs(first + second)
    weights = np.exp(-sizes / scale)
    return weights / weights.sum()


class OneWhole(BalancedSum):
    """A twin that pays for a whole that moves as if it only came or went."""

    sensitivity = property(lambda self: BalancedSum.sensitivity.fget(self) // 2)


class Unclipped(Simplex):
    """A twin that does not divide by the sum."""

    def offsets_in_steps(self, values, step, *, out):
        out[:] = np.nan_to_num(np.maximum(values, 0.0), nan=0.0, posinf=0.0) / step


class KeptAlways(SeededNoise):
    """A twin that keeps every draw: noise that does not balance."""

    def _balanced(self, values, scale):
        return self._add("discrete_laplace", values, scale)


class TestLaw:
    @pytest.mark.parametrize(("source", "draws"), [(SecureNoise(), 1200), (SeededNoise(3), 4000)])
    def test_noise_has_the_stated_joint_mass(self, source, draws):
        assert self.fit(source, draws, scale=1.7) > FALSE_ALARM

    @pytest.mark.parametrize(("drawn", "tested"), [(1.7, 2.1), (1.7, 1.4)])
    def test_another_scale_is_noticed(self, drawn, tested):
        assert self.fit(SeededNoise(3), 4000, scale=drawn, law=tested) < FALSE_ALARM

    def test_noise_that_does_not_balance_is_noticed(self):
        assert self.fit(KeptAlways(3), 4000, scale=1.7) < FALSE_ALARM

    def fit(self, source, draws, *, scale, law=None):
        counts = np.zeros((2 * REACH + 1, 2 * REACH + 1), dtype=int)
        zeros = np.zeros(2, dtype=np.int64)
        for _ in range(draws):
            first, second = source.balanced_laplace(zeros, scale=scale)
            counts[first + REACH, second + REACH] += 1
        return p_value(counts.ravel(), joint_law(law or scale).ravel())

    @pytest.mark.parametrize("source", [SecureNoise(), SeededNoise(1)])
    def test_it_is_added_to_the_values_and_saturates(self, source):
        values = np.array([-(10**12), 10**12, 2**63 - 1])
        noisy = source.balanced_laplace(values, scale=3.0)
        assert np.abs(noisy[:2] - values[:2]).max() < 1000
        assert noisy[2] > 2**63 - 1000

    def test_scales_whose_integers_might_saturate_are_refused(self):
        with pytest.raises(ParameterError):
            SecureNoise().balanced_laplace(np.zeros(2, np.int64), scale=2.0**49)
        with pytest.raises(GridOverflowError):
            BalancedSum(grid=Grid(Simplex(2), step=2.0**-40), epsilon=2.0**-10)

    def test_one_coordinate_is_laplace_noise_of_half_the_scale(self):
        laplace = self.law_of_one(LaplaceSum)
        assert self.law_of_one(BalancedSum) == pytest.approx(laplace)

    def law_of_one(self, kind):
        mechanism = kind(grid=Grid(Simplex(1), step=0.5), epsilon=1.0)
        values = np.array([[1.0]])
        return enumerate_runs(
            lambda noise: float(Drawing(mechanism, noise).release_values(values)[0])
        )

    def test_an_enumeration_refuses_a_joint_draw(self):
        mechanism = BalancedSum(grid=COARSE, epsilon=1.0)
        with pytest.raises(EnumerationError):
            enumerate_runs(
                lambda noise: Drawing(mechanism, noise).release_values(np.array([[1.0, 0.0]]))
            )


class TestPrivacy:
    @every_relation
    @settings(max_examples=60, deadline=None)
    @given(
        rows=st.lists(
            st.lists(st.floats(allow_nan=True), min_size=3, max_size=3), min_size=2, max_size=2
        )
    )
    def test_no_user_moves_the_sum_farther_than_is_paid_for(self, relation, rows):
        grid = Grid(Simplex(3), step=2.0**-12)
        mine, theirs = grid.encode(np.array(rows))
        other = theirs if relation is Relation.REPLACE else np.zeros(3, dtype=np.int64)
        assert norm(mine - other) <= BalancedSum(grid=grid, epsilon=1.0).sensitivity

    def test_a_bound_that_does_not_clip_is_caught(self):
        grid = Grid(Unclipped(3), step=2.0**-12)
        mine, theirs = grid.encode(np.array([[1.0, 1.0, 1.0], [0.0, 0.0, 0.0]]))
        assert norm(mine - theirs) > BalancedSum(grid=grid, epsilon=1.0).sensitivity

    @pytest.mark.parametrize("kind", [BalancedSum, OneWhole])
    @every_relation
    def test_no_output_is_likelier_than_epsilon_allows(self, kind, relation):
        mechanism = kind(grid=COARSE, epsilon=0.8, relation=relation)
        worst = self.worst_loss(mechanism, relation)
        if kind is BalancedSum:
            # Some pair of users comes as far as is paid for.
            assert worst == pytest.approx(0.8, abs=1e-9)
        else:
            assert worst > 0.8 + 1e-6

    def worst_loss(self, mechanism, relation):
        """Compare the laws of the totals of all neighbours in a small world, output by output."""
        integers = np.array(WORLD)
        others = integers if relation is Relation.REPLACE else np.zeros((1, 2), dtype=np.int64)
        axis = np.arange(-REACH, REACH + 1)
        outputs = np.stack(np.meshgrid(axis, axis), axis=-1).reshape(-1, 2)

        def logs(totals):
            noise = outputs - totals
            sizes = np.abs(noise).sum(axis=1) + np.abs(noise.sum(axis=1))
            return -sizes / mechanism.scale

        return max(np.abs(logs(a) - logs(b)).max() for a, b in product(integers, others))

    def test_it_is_priced_as_it_is_drawn(self):
        assert BalancedSum(grid=COARSE, epsilon=0.3).event == Pure(0.3)

    def test_a_bound_without_balance_gets_independent_noise(self):
        grid = Grid(Interval(-1.0, 1.0), step=2.0**-10)
        mechanism = BalancedSum(grid=grid, epsilon=1.0)
        assert mechanism.sensitivity == LaplaceSum(grid=grid, epsilon=1.0).sensitivity
        plain = Drawing(LaplaceSum(grid=grid, epsilon=1.0), SeededNoise(4))
        values = np.array([0.2, -0.5])
        assert Drawing(mechanism, SeededNoise(4)).release_values(values) == plain.release_values(
            values
        )


class TestUtility:
    def noise(self, kind, categories, runs=1500):
        grid = choose_grid(Simplex(categories), n_users=1)
        mechanism, source = kind(grid=grid, epsilon=1.0), SeededNoise(0)
        law = source.discrete_laplace if kind is LaplaceSum else source.balanced_laplace
        zeros = np.zeros(categories, dtype=np.int64)
        return mechanism, grid.step * np.array(
            [law(zeros, scale=mechanism.scale) for _ in range(runs)]
        )

    def test_the_noise_is_as_long_as_is_said(self):
        _, noise = self.noise(BalancedSum, 5)
        lengths = np.abs(noise).sum(axis=1) + np.abs(noise.sum(axis=1))
        # 2 k / epsilon, up to four standard errors; independent noise is a fifth longer.
        assert lengths.mean() == pytest.approx(10.0, rel=0.05)

    def test_each_coordinate_is_smaller_than_independent_noise(self):
        (_, balanced), (_, laplace) = (self.noise(kind, 5) for kind in (BalancedSum, LaplaceSum))
        for quantile in (0.5, 0.8, 0.95):
            assert np.quantile(abs(balanced), quantile) < np.quantile(abs(laplace), quantile)

    def test_error_bounds_hold(self):
        mechanism, noise = self.noise(BalancedSum, 3)
        assert np.mean(np.abs(noise).max(axis=1) > mechanism.error_bound(0.1)) < 0.1
