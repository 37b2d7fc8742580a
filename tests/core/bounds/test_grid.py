"""Integers on a public grid: exact sums, exact sensitivities, no overflow."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from quorate.core.bounds.grid import Ball, Box, Grid, Interval
from quorate.core.guarantees import Relation
from quorate.exceptions import GridOverflowError, ParameterError, SchemaError
from quorate.mechanisms.sums import choose_grid


def exact_sum(integers):
    return [sum(int(z) for z in column) for column in np.asarray(integers).T]


class TestEncode:
    def test_rounding_goes_towards_the_centre(self):
        grid = Grid(Interval(0.0, 8.0), 1.0)
        values = np.array([[0.2], [3.9], [4.0], [4.1], [7.8], [8.0]])
        assert grid.encode(values).ravel().tolist() == [-3, 0, 0, 0, 3, 4]

    def test_an_error_is_below_one_step(self):
        bound = Ball(2.0, dimension=5)
        grid = Grid(bound, 2.0**-12)
        values = np.random.default_rng(0).standard_normal((500, 5))
        decoded = grid.encode(values) * grid.step
        assert np.abs(decoded - bound.clip(values)).max() < grid.step
        assert (np.abs(decoded) <= np.abs(bound.clip(values))).all()

    @pytest.mark.parametrize(
        "dtype", [np.float64, np.float32, np.float16, np.int64, np.uint8, bool]
    )
    def test_all_kinds_of_numbers_are_welcome(self, dtype):
        grid = Grid(Box([0.0, 0.0], [4.0, 4.0], centre=[0.0, 0.0]), 0.5)
        values = np.array([[0, 1], [1, 0]], dtype=dtype)
        assert grid.encode(values).tolist() == [[0, 2], [2, 0]]

    def test_long_doubles_beyond_the_range_of_floats_do_not_warn(self):
        values = np.array([[np.longdouble(1e308) * 10], [np.longdouble(1.0)]])
        assert grid_of_one().encode(values)[1, 0] == 4

    def test_memory_order_does_not_matter(self):
        values = np.random.default_rng(1).standard_normal((300, 7))
        grid = Grid(Ball(1.0, dimension=7), 2.0**-20)
        expected = grid.encode(values)
        assert (grid.encode(np.asfortranarray(values)) == expected).all()
        assert (grid.encode(values[::-1])[::-1] == expected).all()

    def test_values_stay_untouched(self):
        values = np.full((3, 2), 9.0)
        Grid(Ball(1.0, dimension=2), 0.25).encode(values)
        assert (values == 9.0).all()

    def test_one_column_may_come_flat(self):
        assert grid_of_one().encode(np.array([0.5, 9.0])).tolist() == [[2], [4]]

    @pytest.mark.parametrize(
        "values", [np.zeros((2, 3)), np.zeros(2), np.zeros((1, 1, 2)), np.float64(1.0)]
    )
    def test_another_shape_is_refused(self, values):
        with pytest.raises(SchemaError, match="2 columns"):
            Grid(Ball(1.0, dimension=2), 0.25).encode(values)

    @pytest.mark.parametrize("dtype", [object, complex, "U3", "M8[s]"])
    def test_what_is_not_a_number_is_refused_by_dtype(self, dtype):
        with pytest.raises(SchemaError, match="dtype"):
            grid_of_one().encode(np.zeros((2, 1)).astype(dtype))


counts = st.integers(1, 2000)


def grid_of_one():
    return Grid(Interval(-1.0, 1.0), 0.25)


class TestSums:
    @settings(max_examples=60)
    @given(
        n=st.integers(0, 40),
        d=st.integers(1, 4),
        scale=st.floats(0.01, 100),
        seed=st.integers(0, 2**32 - 1),
    )
    def test_the_sum_of_codes_is_the_code_of_the_sum(self, n, d, scale, seed):
        values = scale * np.random.default_rng(seed).standard_normal((n, d))
        grid = choose_grid(Ball(1.0, dimension=d), n_users=n)
        assert grid.encode_sum(values).tolist() == exact_sum(grid.encode(values)) or n == 0

    def test_many_blocks_add_up_exactly(self):
        values = np.random.default_rng(2).uniform(-2, 2, (150_000, 3))
        grid = Grid(Box([-1.0] * 3, [1.0] * 3), 2.0**-44)
        assert grid.encode_sum(values).tolist() == exact_sum(grid.encode(values))

    def test_the_finest_grid_still_adds_up_exactly(self):
        grid = Grid(Interval(-1.0, 1.0), 2.0**-52)
        values = np.full(1001, 1.0)
        assert grid.encode_sum(values).tolist() == [1001 * 2**52]

    def test_the_order_of_users_does_not_matter(self):
        values = np.random.default_rng(3).standard_normal((5000, 4)) * 1e3
        grid = choose_grid(Ball(100.0, dimension=4), n_users=5000)
        shuffled = np.random.default_rng(4).permutation(values)
        assert (grid.encode_sum(values) == grid.encode_sum(shuffled)).all()

    def test_no_users_add_up_to_zero(self):
        assert grid_of_one().encode_sum(np.empty((0, 1))).tolist() == [0]

    def test_decoding_restores_the_centre(self):
        grid = choose_grid(Box([0.0, 10.0], [2.0, 30.0]), n_users=100)
        values = np.random.default_rng(5).uniform([0.0, 10.0], [2.0, 30.0], (100, 2))
        decoded = grid.decode(grid.encode_sum(values), count=100)
        assert np.abs(decoded - values.sum(axis=0)).max() <= grid.rounding_error(100)


class TestSteps:
    @pytest.mark.parametrize("kind", [np.float32, np.float64, float])
    def test_a_step_of_a_short_type_is_taken_by_value(self, kind):
        """1 / step overflows in float32 here; the integer of a zero was -2^63."""
        grid = Grid(Interval(-(2.0**-120), 2.0**-120), kind(2.0**-140))
        assert grid.encode([[0.0], [2.0**-120], [1.0]]).ravel().tolist() == [0, 2**20, 2**20]
        assert type(grid.step) is float


class TestOverflow:
    def test_a_sum_that_could_overflow_is_refused_from_public_numbers(self):
        grid = Grid(Interval(-1.0, 1.0), 2.0**-50)
        grid.check_sum(2**12 - 1)
        with pytest.raises(GridOverflowError, match="n_users=4096"):
            grid.check_sum(2**12)

    @pytest.mark.parametrize("sign", [-1.0, 1.0])
    def test_a_sum_of_more_users_than_fit_saturates_and_never_raises(self, sign):
        """An error would tell a private number of users."""
        grid = Grid(Box([-1.0, -1.0], [1.0, 1.0]), 2.0**-52)
        for n in (1023, 1024, 1025, 2**11, 2**12 + 1):
            total = int(sign) * min(n * 2**52, 2**62)
            assert grid.encode_sum(np.full((n, 2), [sign, 0.0])).tolist() == [total, 0]

    @settings(max_examples=60)
    @given(parts=st.lists(st.integers(-(2**53), 2**53), min_size=1, max_size=9), times=counts)
    def test_halves_of_parts_add_up_to_the_cut_sum(self, parts, times):
        halves = times * sum(np.array([[p >> 32], [p & (2**32 - 1)]]) for p in parts)
        exact = max(-(2**62), min(2**62, times * sum(parts)))
        assert grid_of_one().join(halves).tolist() == [exact]

    def test_neighbours_stay_close_where_sums_saturate(self):
        """The negative control is the wrapped sum: it jumps by 2^64 between neighbours."""
        grid = Grid(Interval(-1.0, 1.0), 2.0**-52)
        whole, fewer = (grid.encode_sum(np.ones(n)).tolist()[0] for n in (2**11, 2**11 - 1))
        assert abs(whole - fewer) <= grid.l1_sensitivity(Relation.ADD_REMOVE)
        wrapped = [int(np.full(n, 2**52).sum()) for n in (2**11, 2**11 - 1)]
        assert abs(wrapped[0] - wrapped[1]) > 2**63


class TestSensitivity:
    def test_it_is_an_exact_integer(self):
        grid = Grid(Ball(1.0, dimension=3), 2.0**-40)
        assert grid.l2_sensitivity_squared(Relation.ADD_REMOVE) == 2**80
        assert grid.l2_sensitivity_squared(Relation.REPLACE) == 2**82
        assert grid.l1_sensitivity(Relation.REPLACE) == math.isqrt(3 * 2**82)

    def test_a_centre_at_the_edge_costs_replacement_nothing_and_doubles_the_radius(self):
        middle = Grid(Interval(0.0, 8.0), 1.0)
        edge = Grid(Interval(0.0, 8.0, centre=0.0), 1.0)
        replace, add = Relation.REPLACE, Relation.ADD_REMOVE
        assert [middle.l1_sensitivity(r) for r in (replace, add)] == [8, 4]
        assert [edge.l1_sensitivity(r) for r in (replace, add)] == [8, 8]

    def test_something_else_than_a_relation_is_refused(self):
        with pytest.raises(ParameterError, match="Relation"):
            grid_of_one().l1_sensitivity("replace")


class TestParameters:
    @pytest.mark.parametrize("step", [0.3, 0.0, -0.5, np.nan, np.inf, 4.0, 2.0**-60])
    def test_a_step_must_be_a_power_of_two_and_fit_the_bound(self, step):
        with pytest.raises(ParameterError, match="step"):
            Grid(Interval(-1.0, 1.0), step)

    @pytest.mark.parametrize("bound", [None, 1.0, (0.0, 1.0)])
    def test_the_bound_must_be_declared(self, bound):
        with pytest.raises(ParameterError, match="Bound"):
            Grid(bound, 1.0)
        with pytest.raises(ParameterError, match="Bound"):
            choose_grid(bound, n_users=3)
