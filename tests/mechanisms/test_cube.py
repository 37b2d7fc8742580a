"""Noise of the largest coordinate: its law, its norm, all small neighbours, broken twins."""

from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from drawing import Drawing
from goodness import FALSE_ALARM, p_value
from quorate._validate import pure_loss
from quorate.auditing import enumerate_runs
from quorate.core.bounds.grid import Ball, Box, Grid, Interval
from quorate.core.bounds.or_absent import OrAbsent
from quorate.core.guarantees import Pure, Relation
from quorate.core.noise import SecureNoise, SeededNoise
from quorate.exceptions import EnumerationError, GridOverflowError, ParameterError
from quorate.mechanisms.laplace import CubeSum, LaplaceSum, cube_deviation
from quorate.mechanisms.sums import choose_grid

every_relation = pytest.mark.parametrize("relation", Relation, ids=lambda r: r.name)
SQUARE = Grid(Box([-1.0, -1.0], [1.0, 1.0]), step=0.5)
"""Offsets of -2 to 2 steps in each of two coordinates."""
REACH = 60
WORLD = list(product(range(-2, 3), repeat=2))
"""All that one user can add, in steps."""


def norm(z, inside=None):
    """Return the norm of the proof."""
    sizes = [abs(int(v)) for v in z]
    return max(sizes[:inside]) + sum(sizes[inside:] if inside is not None else [])


def joint_law(scale):
    """Return the mass of two coordinates, on a window that holds nearly all."""
    axis = np.abs(np.arange(-REACH, REACH + 1))
    weights = np.exp(-np.maximum(axis[:, None], axis[None, :]) / scale)
    return weights / weights.sum()


class Halved(CubeSum):
    """A twin that pays for half a side."""

    sensitivity = property(lambda self: CubeSum.sensitivity.fget(self) // 2)


class FirstOnly(Box):
    """A twin that clips the first coordinate only."""

    def offsets_in_steps(self, values, step, *, out):
        super().offsets_in_steps(values, step, out=out)
        out[:, 1:] = np.nan_to_num(values[:, 1:], nan=0.0, posinf=0.0, neginf=0.0) / step


class KeptAlways(SeededNoise):
    """A twin that keeps every side that is proposed."""

    def _cube(self, values, scale):
        half = int(self._add("geometric", np.zeros(values.size + 1, np.int64), scale).sum())
        return values + [self._uniform_below(2 * half + 1) - half for _ in values]


class TestLaw:
    @pytest.mark.parametrize(("source", "draws"), [(SecureNoise(), 2000), (SeededNoise(3), 4000)])
    @pytest.mark.parametrize("scale", [0.6, 1.7])
    def test_noise_has_the_stated_joint_mass(self, source, draws, scale):
        assert self.fit(source, draws, scale=scale) > FALSE_ALARM

    @pytest.mark.parametrize(("drawn", "tested"), [(1.7, 2.0), (1.7, 1.45)])
    def test_another_scale_is_noticed(self, drawn, tested):
        assert self.fit(SeededNoise(3), 4000, scale=drawn, law=tested) < FALSE_ALARM

    def test_a_side_that_is_never_drawn_again_is_noticed(self):
        assert self.fit(KeptAlways(3), 4000, scale=0.6) < FALSE_ALARM

    def fit(self, source, draws, *, scale, law=None):
        counts = np.zeros((2 * REACH + 1, 2 * REACH + 1), dtype=int)
        zeros = np.zeros(2, dtype=np.int64)
        for _ in range(draws):
            first, second = source.cube_laplace(zeros, scale=scale)
            counts[first + REACH, second + REACH] += 1
        return p_value(counts.ravel(), joint_law(law or scale).ravel())

    @pytest.mark.parametrize("source", [SecureNoise(), SeededNoise(1)])
    def test_it_is_added_to_the_values_and_saturates(self, source):
        values = np.array([-(10**12), 10**12, 2**63 - 1])
        noisy = source.cube_laplace(values, scale=3.0)
        assert np.abs(noisy[:2] - values[:2]).max() < 1000
        assert noisy[2] > 2**63 - 1000

    def test_scales_whose_integers_might_saturate_are_refused(self):
        with pytest.raises(ParameterError):
            SecureNoise().cube_laplace(np.zeros(2, np.int64), scale=2.0**49)
        with pytest.raises(GridOverflowError):
            CubeSum(grid=Grid(SQUARE.bound, step=2.0**-40), epsilon=2.0**-10)

    def test_one_coordinate_is_laplace_noise(self):
        laplace = self.law_of_one(LaplaceSum)
        assert self.law_of_one(CubeSum) == pytest.approx(laplace)

    def law_of_one(self, kind):
        mechanism = kind(grid=Grid(Interval(-1.0, 1.0), step=0.5), epsilon=1.0)
        values = np.array([[1.0]])
        return enumerate_runs(
            lambda noise: float(Drawing(mechanism, noise).release_values(values)[0])
        )

    def test_an_enumeration_refuses_a_joint_draw(self):
        mechanism = CubeSum(grid=SQUARE, epsilon=1.0)
        with pytest.raises(EnumerationError):
            enumerate_runs(
                lambda noise: Drawing(mechanism, noise).release_values(np.array([[1.0, 0.0]]))
            )


OR_ABSENT = OrAbsent(Box([-1.0, 0.0, -3.0], [1.0, 4.0, 1.0]), 2.5)


class TestPrivacy:
    @every_relation
    @pytest.mark.parametrize("bound", [OR_ABSENT.inner, OR_ABSENT], ids=["box", "or absent"])
    @settings(max_examples=60, deadline=None)
    @given(
        rows=st.lists(
            st.lists(st.floats(allow_nan=True), min_size=3, max_size=3), min_size=2, max_size=2
        ),
        absent=st.lists(st.booleans(), min_size=2, max_size=2),
    )
    def test_no_user_moves_the_sum_farther_than_is_paid_for(self, bound, relation, rows, absent):
        values = np.array(rows)
        if bound is OR_ABSENT:
            values = np.column_stack([values, np.array(absent, dtype=float)])
        grid = Grid(bound, step=2.0**-12)
        mine, theirs = grid.encode(values)
        other = theirs if relation is Relation.REPLACE else np.zeros_like(theirs)
        paid = CubeSum(grid=grid, epsilon=1.0, relation=relation).sensitivity
        assert norm(mine - other, 3) <= paid

    @every_relation
    def test_somebody_moves_it_as_far(self, relation):
        grid = Grid(OR_ABSENT, step=2.0**-12)
        people = grid.encode(np.array([[-9.0, -9, -9, 0], [9.0, 9, 9, 0], [np.nan] * 3 + [1.0]]))
        nobody = np.zeros((1, 4), dtype=np.int64)
        others = people if relation is Relation.REPLACE else nobody
        worst = max(norm(a - b, 3) for a, b in product(people, others))
        assert worst == CubeSum(grid=grid, epsilon=1.0, relation=relation).sensitivity

    def test_a_bound_that_does_not_clip_is_caught(self):
        grid = Grid(FirstOnly([-1.0, -1.0], [1.0, 1.0]), step=2.0**-12)
        mine, theirs = grid.encode(np.array([[0.0, 9.0], [0.0, 0.0]]))
        assert norm(mine - theirs) > CubeSum(grid=grid, epsilon=1.0).sensitivity

    @pytest.mark.parametrize("kind", [CubeSum, Halved])
    @every_relation
    def test_no_output_is_likelier_than_epsilon_allows(self, kind, relation):
        mechanism = kind(grid=SQUARE, epsilon=0.8, relation=relation)
        worst = self.worst_loss(mechanism, relation)
        if kind is CubeSum:
            assert worst == pytest.approx(0.8, abs=1e-9)
        else:
            assert worst > 0.8 + 1e-6

    def worst_loss(self, mechanism, relation):
        """Compare the laws of the totals of all neighbours in a small world, output by output."""
        integers = np.array(WORLD)
        others = integers if relation is Relation.REPLACE else np.zeros((1, 2), dtype=np.int64)
        axis = np.arange(-8, 9)
        outputs = np.stack(np.meshgrid(axis, axis), axis=-1).reshape(-1, 2)

        def logs(totals):
            return -np.abs(outputs - totals).max(axis=1) / mechanism.scale

        return max(np.abs(logs(a) - logs(b)).max() for a, b in product(integers, others))

    def test_it_is_priced_as_it_is_drawn(self):
        mechanism = CubeSum(grid=SQUARE, epsilon=0.3)
        assert mechanism.event == Pure(0.3)
        assert pure_loss(mechanism.sensitivity, mechanism.scale) <= 0.3

    def test_a_vote_beside_the_box_has_noise_of_its_own(self):
        grid = Grid(OR_ABSENT, step=2.0**-4)
        mechanism, source = CubeSum(grid=grid, epsilon=1.0), SeededNoise(5)
        drawing = Drawing(mechanism, source)
        votes = [drawing.release(np.zeros(4, np.int64), count=0)[3] for _ in range(3000)]
        expected = grid.step * mechanism.scale * np.sqrt(2.0)
        assert np.std(votes) == pytest.approx(expected, rel=0.1)

    def test_a_bound_without_a_box_gets_independent_noise(self):
        grid = Grid(Ball(1.0, dimension=2), step=2.0**-10)
        mechanism = CubeSum(grid=grid, epsilon=1.0)
        plain = LaplaceSum(grid=grid, epsilon=1.0)
        assert mechanism.sensitivity == plain.sensitivity
        values = np.array([[0.2, -0.5], [0.1, 0.9]])
        released = [
            Drawing(each, SeededNoise(4)).release_values(values) for each in (mechanism, plain)
        ]
        assert released[0].tolist() == released[1].tolist()
        assert mechanism.error_bound(0.1) == plain.error_bound(0.1)


class TestUtility:
    def noise(self, kind, dimension, runs=1500, step=2.0**-12):
        ones = np.ones(dimension)
        mechanism, source = (
            kind(grid=Grid(Box(-ones, ones), step=step), epsilon=1.0),
            SeededNoise(0),
        )
        law = source.discrete_laplace if kind is LaplaceSum else source.cube_laplace
        zeros = np.zeros(dimension, dtype=np.int64)
        return mechanism, step * np.array([law(zeros, scale=mechanism.scale) for _ in range(runs)])

    @pytest.mark.parametrize("dimension", [2, 3, 8])
    def test_the_noise_is_as_wide_as_is_said(self, dimension):
        mechanism, noise = self.noise(CubeSum, dimension)
        assert noise.std() == pytest.approx(mechanism.standard_error, rel=0.06)
        assert mechanism.standard_error == pytest.approx(2.0 * cube_deviation(dimension), rel=1e-3)

    def test_what_is_said_is_from_above_on_a_coarse_grid(self):
        mechanism, noise = self.noise(CubeSum, 2, step=1.0)
        assert noise.std() < mechanism.standard_error

    @pytest.mark.parametrize(("dimension", "factor"), [(2, 0.72), (5, 0.54)])
    def test_it_is_smaller_than_independent_noise(self, dimension, factor):
        (_, cube), (_, laplace) = (self.noise(kind, dimension) for kind in (CubeSum, LaplaceSum))
        assert np.sqrt(np.mean(cube**2)) < (factor + 0.04) * np.sqrt(np.mean(laplace**2))

    @pytest.mark.parametrize("step", [2.0**-12, 0.5])
    def test_error_bounds_hold_and_are_not_loose(self, step):
        mechanism, noise = self.noise(CubeSum, 3, step=step)
        largest = np.abs(noise).max(axis=1)
        assert np.mean(largest > mechanism.error_bound(0.1)) < 0.12
        assert np.mean(largest > 0.75 * mechanism.error_bound(0.1)) > 0.1

    def test_a_vote_counts_in_the_bound(self):
        small = CubeSum(grid=choose_grid(OR_ABSENT, n_users=10), epsilon=1.0)
        inner = CubeSum(grid=choose_grid(OR_ABSENT.inner, n_users=10), epsilon=1.0)
        assert small.error_bound(0.05) > inner.error_bound(0.05)
