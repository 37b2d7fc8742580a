"""Ordered domains: positions agree with comparisons, in integers and in floats."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from quorate.concepts import OrderedDomain
from quorate.concepts.numeric.domains import at_least
from quorate.exceptions import ParameterError


class TestIntegers:
    @given(
        lower=st.integers(-(2**63), 2**63 - 1),
        span=st.integers(0, 2**63 - 1),
        step=st.integers(1, 2**40),
        x=st.one_of(st.integers(-(2**63), 2**63 - 1), st.just(0)),
    )
    def test_the_position_is_exact_over_all_64_bit_integers(self, lower, span, step, x):
        points = min(span, 2**63 - 1 - lower) // step + 1
        domain = OrderedDomain(lower=lower, points=points, step=step)
        expected = min(max(0, (x - lower) // step), points - 1)
        assert int(domain.position(np.array([x], dtype=np.int64))[0]) == expected

    @given(x=st.floats(allow_nan=False), lower=st.integers(-(2**62), 2**62))
    def test_floats_are_rounded_down_exactly_and_clipped(self, x, lower):
        domain = OrderedDomain(lower=lower, points=2**61)
        whole = x if math.isinf(x) else math.floor(x)
        expected = min(max(whole, lower), lower + 2**61 - 1) - lower
        assert int(domain.position([x])[0]) == expected

    def test_nan_is_low_and_unsigned_integers_are_understood(self):
        domain = OrderedDomain(lower=5, points=10)
        assert domain.position([math.nan, 7.9]).tolist() == [0, 2]
        assert domain.position(np.array([2**64 - 1, 6], dtype=np.uint64)).tolist() == [9, 1]
        assert domain.position(np.array([True, False])).tolist() == [0, 0]

    @given(data=st.data(), points=st.integers(1, 2**63))
    def test_floats_near_the_ends_are_exact(self, data, points):
        lower = data.draw(st.integers(-(2**63), 2**63 - points))
        domain = OrderedDomain(lower=lower, points=points)
        for end in (lower, lower + points - 1):
            for x in (
                np.nextafter(float(end), -np.inf),
                float(end),
                np.nextafter(float(end), np.inf),
            ):
                expected = min(max(math.floor(x), lower), lower + points - 1) - lower
                assert int(domain.position([x])[0]) == expected

    def test_all_2_to_the_63_non_negative_integers_are_a_domain(self):
        domain = OrderedDomain.between(0, 2**63 - 1)
        assert domain.points == 2**63
        top = domain.position(np.array([2**63 - 1], dtype=np.int64))
        assert int(top[0]) == 2**63 - 1
        assert int(domain.position([1e300])[0]) == 2**63 - 1

    def test_numpy_integers_do_not_overflow(self):
        domain = OrderedDomain.between(np.int64(-(2**62)), np.int64(2**62 - 1), step=np.int8(1))
        assert domain.points == 2**63
        assert domain == OrderedDomain(lower=-(2**62), points=2**63)


class TestFloats:
    @given(
        lower=st.floats(-1e6, 1e6),
        step=st.floats(1e-6, 1e3),
        points=st.integers(1, 2**20),
        x=st.floats(allow_nan=False),
        near=st.integers(0, 2**20),
    )
    def test_the_position_counts_the_grid_points_at_or_below(self, lower, step, points, x, near):
        domain = OrderedDomain(lower=lower, points=points, step=step)
        grid_point = domain.value(min(near, points - 1))
        edges = [np.nextafter(grid_point, -np.inf), grid_point, np.nextafter(grid_point, np.inf)]
        for value in [x, *edges]:
            j = int(domain.position([value])[0])
            assert 0 <= j < points
            assert j == 0 or domain.value(j) <= value
            assert j == points - 1 or domain.value(j + 1) > value

    def test_decimal_steps_reach_the_last_point(self):
        assert OrderedDomain.between(0.0, 0.3, step=0.1).points == 4
        assert OrderedDomain.between(0.0, 0.35, step=0.1).points == 4
        assert OrderedDomain.between(0, 1, step=0.25).points == 5

    def test_nan_is_low(self):
        assert OrderedDomain(lower=0.5, points=3).position([math.nan]).tolist() == [0]


class TestComparison:
    @given(cut=st.integers(-(2**64), 2**64), near=st.integers(-3, 3))
    def test_floats_are_compared_with_integers_exactly(self, cut, near):
        x = float(cut)
        for _ in range(abs(near)):
            x = math.nextafter(x, math.copysign(math.inf, near))
        assert at_least(np.array([x]), cut)[0] == (int(x) >= cut if x == int(x) else x >= cut)

    @given(cut=st.integers(-(2**64), 2**64), x=st.integers(-(2**63), 2**63 - 1))
    def test_integers_are_compared_exactly(self, cut, x):
        assert at_least(np.array([x]), cut)[0] == (x >= cut)


class TestRefusals:
    @pytest.mark.parametrize(
        "wrong",
        [
            {"lower": math.nan, "points": 3},
            {"lower": math.inf, "points": 3},
            {"lower": 0, "points": 0},
            {"lower": 0, "points": 2.5},
            {"lower": 0, "points": 3, "step": 0},
            {"lower": 0, "points": 3, "step": math.nan},
            {"lower": 0, "points": 2**63 + 1},
            {"lower": 2**63 - 1, "points": 2},
            {"lower": -(2**63) - 1, "points": 2},
            {"lower": 0.0, "points": 2**51},
            {"lower": 1e300, "points": 3, "step": 1.0},
            {"lower": 1e308, "points": 3, "step": 1e308},
        ],
    )
    def test_a_domain_that_numbers_cannot_express_is_refused(self, wrong):
        with pytest.raises(ParameterError, match="Expected"):
            OrderedDomain(**wrong)

    @pytest.mark.parametrize("wrong", [(3, 2), (0, math.inf), (math.nan, 1)])
    def test_bounds_out_of_order_are_refused(self, wrong):
        with pytest.raises(ParameterError, match="Expected"):
            OrderedDomain.between(*wrong)

    @pytest.mark.parametrize("upper", [1e308, 2.0**50, 1e17])
    def test_bounds_too_far_apart_for_floats_are_refused(self, upper):
        with pytest.raises(ParameterError, match="coarser step"):
            OrderedDomain.between(-upper, upper)
