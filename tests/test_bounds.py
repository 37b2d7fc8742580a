"""Every bound enforces itself, in integers, on whatever a user sends."""

import math
import pickle
from fractions import Fraction
from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from contributions import fine_grid, violations
from quorate.core.bounds.grid import Ball, Bound, Box, Grid, Interval
from quorate.core.bounds.simplex import Simplex
from quorate.core.guarantees import Relation
from quorate.exceptions import ParameterError

HOSTILE = [np.nan, np.inf, -np.inf, 1e308, -1e308, 1.7e308, 5e-324, 0.0, -0.0, 1.0, 3.0, -7.5]
values_of_users = st.one_of(st.sampled_from(HOSTILE), st.floats(), st.floats(-20, 20))

BOUNDS = [
    Interval(-1.0, 3.0),
    Interval(0.0, 10.0, centre=0.0),
    Box([0.0, -5.0, 1.0], [1.0, 5.0, 1.5]),
    Box([-1.0, 0.0, -3.0], [0.0, 1.0, 4.0], centre=[0.0, 0.0, 0.0]),
    Ball(3.0, dimension=3),
    Ball(math.sqrt(7), centre=[1.0, -2.0, 0.1]),
    Ball(1e-70, dimension=3),
    Ball(1e70, centre=[1e70, 0.0, 0.0]),
    Simplex(3),
    Simplex(1),
]
every_bound = pytest.mark.parametrize("bound", BOUNDS, ids=repr)


def roots_rounded_down():
    """Return (a, b, r) with r the float nearest to sqrt(a^2 + b^2), and below it."""
    found = []
    for a, b in product(range(1, 40), repeat=2):
        radius = math.sqrt(a * a + b * b)
        if Fraction(radius) ** 2 < a * a + b * b:
            found.append((a, b, radius))
    return found


class TestSensitivity:
    @every_bound
    @settings(max_examples=60)
    @given(data=st.data())
    def test_no_values_of_two_users_differ_by_more_than_the_sensitivity(self, bound, data):
        shape = (4, bound.dimension)
        values = data.draw(arrays(np.float64, shape, elements=values_of_users))
        grid = fine_grid(bound)
        assert violations(grid, grid.encode(values)) == set()

    @every_bound
    def test_random_directions_stay_inside(self, bound):
        rng = np.random.default_rng(0)
        grid = fine_grid(bound)
        values = bound.centre + bound.largest_offset * rng.standard_normal((300, bound.dimension))
        assert violations(grid, grid.encode(values)[:60]) == set()

    @pytest.mark.parametrize(
        ("bound", "first", "second"),
        [
            (Interval(-1.0, 3.0), [-9.0], [9.0]),
            (Box([0.0, -4.0], [2.0, 4.0]), [-9.0, -9.0], [9.0, 9.0]),
            (Ball(4.0, dimension=1), [-9.0], [9.0]),
            (Simplex(3), [1, 0, 0], [0, 1, 0]),
            (Simplex(2), [9, -3], [0, 1e308]),
        ],
        ids=repr,
    )
    def test_some_pair_comes_within_a_step_of_the_sensitivity(self, bound, first, second):
        grid = fine_grid(bound)
        mine, theirs = grid.encode([first])[0], grid.encode([second])[0]
        reached = int(np.abs(mine - theirs).sum())
        claimed = grid.l1_sensitivity(Relation.REPLACE)
        assert claimed - 2 <= reached <= claimed

    def test_a_ball_holds_where_the_float_radius_is_below_the_true_root(self):
        triples = roots_rounded_down()
        assert len(triples) > 100
        for a, b, radius in triples:
            grid = Grid(Ball(radius, dimension=2), 1.0)
            assert violations(grid, grid.encode([[a, b], [-a, -b]])) == set()

    def test_a_ball_holds_in_ten_thousand_dimensions(self):
        d = 10_000
        values = np.random.default_rng(1).standard_normal((3, d))
        for radius in (100.0, math.sqrt(d) * 8, 1e5):
            grid = Grid(Ball(radius, dimension=d), 2.0**-3)
            assert violations(grid, grid.encode(values * 1e9)) == set()

    def test_the_real_radii_bound_the_clipped_offsets(self):
        rng = np.random.default_rng(2)
        for bound in BOUNDS:
            spread = 3 * bound.largest_offset
            values = bound.centre + spread * rng.standard_normal((200, bound.dimension))
            offsets = bound.clip(values)
            assert np.abs(offsets).sum(axis=1).max() <= bound.l1_radius * (1 + 1e-15)
            assert np.linalg.norm(offsets, axis=1).max() <= bound.l2_radius * (1 + 1e-15)
            assert bound.l1_diameter <= 2 * bound.l1_radius * (1 + 1e-9)
            assert bound.l2_diameter <= 2 * bound.l2_radius * (1 + 1e-9)


class CarelessBall(Ball):
    """A twin that forgets the float error of the norm."""

    def offsets_in_steps(self, values, step, *, out):
        norms = np.sqrt(np.vecdot(values, values))
        np.multiply(values, ((self.radius / step) / np.maximum(norms, self.radius))[:, None], out)


class UnclippedBox(Box):
    """A twin that forgets to clip."""

    def offsets_in_steps(self, values, step, *, out):
        np.multiply(values - self.centre, 1 / step, out=out)


class BoundFromTheData(Interval):
    """A twin that takes its limits from what users sent."""

    def offsets_in_steps(self, values, step, *, out):
        largest = max(self.largest_offset, np.abs(values - self.centre).max())
        np.multiply(np.clip(values - self.centre, -largest, largest), 1 / step, out=out)


class TestBrokenTwinsAreCaught:
    def test_a_norm_without_its_float_error(self):
        caught = 0
        for a, b, radius in roots_rounded_down():
            grid = Grid(CarelessBall(radius, dimension=2), 1.0)
            caught += violations(grid, grid.encode([[a, b], [-a, -b]])) == set(Relation)
        assert caught > 100

    def test_no_clip(self):
        grid = fine_grid(UnclippedBox([0.0, 0.0], [1.0, 1.0]))
        assert violations(grid, grid.encode([[0.0, 5.0], [0.5, 0.5]])) == set(Relation)

    def test_a_bound_from_the_data(self):
        grid = fine_grid(BoundFromTheData(0.0, 1.0))
        assert violations(grid, grid.encode([[40.0], [0.5]])) == set(Relation)

    def test_rounding_to_the_nearest_step(self):
        bound = Ball(1.0, dimension=2)
        nearest = np.rint(bound.clip([[0.63, 0.77], [-0.63, -0.77]]) * 4).astype(int)
        assert violations(Grid(bound, 0.25), nearest) == set(Relation)
        assert (
            violations(Grid(bound, 0.25), Grid(bound, 0.25).encode([[0.63, 0.77], [-0.63, -0.77]]))
            == set()
        )

    def test_a_sensitivity_that_is_one_too_small(self):
        grid = fine_grid(Interval(-1.0, 3.0))
        true = {r: grid.bound.change_in_steps(grid.step, r) for r in Relation}
        short = {r: (l1 - 1, l2) for r, (l1, l2) in true.items()}
        integers = grid.encode([[-9.0], [9.0]])
        assert violations(grid, integers) == set()
        assert violations(grid, integers, changes=short) == set(Relation)

    def test_the_sensitivity_of_the_other_relation(self):
        grid = fine_grid(Interval(-1.0, 3.0))
        radius = grid.bound.change_in_steps(grid.step, Relation.ADD_REMOVE)
        swapped = dict.fromkeys(Relation, radius)
        integers = grid.encode([[-9.0], [9.0]])
        assert violations(grid, integers, changes=swapped) == {Relation.REPLACE}


class TestPublicRules:
    def test_a_coordinate_of_a_box_that_is_not_finite_is_its_centre(self):
        offsets = Box([0.0, 0.0], [2.0, 2.0]).clip([[np.nan, 2.0], [np.inf, -np.inf]])
        assert offsets.tolist() == [[0.0, 1.0], [0.0, 0.0]]

    def test_a_row_of_a_ball_that_is_not_finite_is_the_centre(self):
        offsets = Ball(1.0, dimension=2).clip([[np.nan, 0.5], [0.5, np.inf], [0.5, 0.0]])
        assert offsets[:2].tolist() == [[0.0, 0.0], [0.0, 0.0]]
        assert offsets[2, 0] == pytest.approx(0.5)

    @pytest.mark.parametrize("huge", [1e154, 1e200, 1e308, 1.7976931348623157e308])
    def test_huge_values_are_clipped_and_keep_their_direction(self, huge):
        assert Box([-1.0], [1.0]).clip([[huge], [-huge]]).ravel().tolist() == [1.0, -1.0]
        offsets = Ball(5.0, centre=[1e70, -1.0]).clip([[-3 / 5 * huge, 4 / 5 * huge]])
        assert offsets[0] == pytest.approx([-3.0, 4.0], rel=1e-12)

    @every_bound
    def test_nothing_warns(self, bound):
        rows = np.array(HOSTILE * bound.dimension).reshape(-1, bound.dimension)
        assert np.isfinite(bound.clip(rows)).all()

    @every_bound
    def test_the_centre_is_zero(self, bound):
        assert not bound.clip(bound.centre[None, :]).any()


class TestParameters:
    @pytest.mark.parametrize(
        "build",
        [
            lambda: Interval(1.0, 1.0),
            lambda: Interval(2.0, 1.0),
            lambda: Interval(np.nan, 1.0),
            lambda: Interval(0.0, np.inf),
            lambda: Interval(0.0, 1.0, centre=2.0),
            lambda: Interval(0.0, 1.0, centre=np.nan),
            lambda: Box([0.0, 0.0], [1.0]),
            lambda: Box([0.0, 1.0], [1.0, 0.0]),
            lambda: Box([], []),
            lambda: Box([[0.0]], [[1.0]]),
            lambda: Box([0.0], [1e300]),
            lambda: Ball(0.0, dimension=1),
            lambda: Ball(-1.0, dimension=1),
            lambda: Ball(np.nan, dimension=1),
            lambda: Ball(np.inf, dimension=1),
            lambda: Ball(1e300, dimension=1),
            lambda: Ball(1e-300, dimension=1),
            lambda: Ball(1.0),
            lambda: Ball(1.0, dimension=0),
            lambda: Ball(1.0, dimension=2, centre=[0.0]),
            lambda: Ball(1.0, centre=[np.nan]),
            lambda: Simplex(0),
            lambda: Simplex(2**31),
        ],
    )
    def test_bounds_that_make_no_sense_are_refused(self, build):
        with pytest.raises(ParameterError):
            build()

    @pytest.mark.parametrize("kind", [np.float32, np.int8, Fraction])
    def test_a_radius_of_another_type_is_taken_by_value(self, kind):
        """Comparing a float32 with 2^256 warned of an overflow."""
        assert Ball(kind(3), dimension=2) == Ball(3.0, dimension=2)

    @every_bound
    def test_bounds_compare_by_value_and_travel(self, bound):
        again = pickle.loads(pickle.dumps(bound))
        assert again == bound
        assert hash(again) == hash(bound)
        assert isinstance(again, Bound)

    def test_different_bounds_differ(self):
        assert Ball(1.0, dimension=2) != Ball(1.0, dimension=3)
        assert Interval(0.0, 1.0) != Interval(0.0, 1.0, centre=0.0)
        assert Interval(0.0, 1.0) != Box([0.0], [1.0])
        assert Simplex(2) != 2

    def test_a_bound_cannot_be_changed_through_its_arrays(self):
        lower = np.zeros(2)
        box = Box(lower, [1.0, 1.0])
        lower[0] = -100.0
        assert box.lower[0] == 0.0
        with pytest.raises(ValueError, match="read-only"):
            box.centre[0] = 5.0
