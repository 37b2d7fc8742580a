"""Directed rounding: never to the cheap side, and no further than needed."""

import math
from fractions import Fraction

import mpmath
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from quorate.accounting.rounding import (
    decimal_down,
    decimal_up,
    exact,
    exp_down,
    float_down,
    float_up,
    root_down,
    root_up,
)
from quorate.exceptions import ParameterError

rationals = st.builds(Fraction, st.integers(-(10**30), 10**30), st.integers(1, 10**30))
positive = st.floats(1e-200, 1e200)


class TestFloats:
    @given(rationals)
    def test_up_is_above_and_the_float_before_it_below(self, value):
        up = float_up(value)
        assert Fraction(up) >= value > Fraction(math.nextafter(up, -math.inf))

    @given(rationals)
    def test_down_is_below_and_the_float_after_it_above(self, value):
        down = float_down(value)
        assert Fraction(down) <= value < Fraction(math.nextafter(down, math.inf))

    @given(st.floats(allow_nan=False, allow_infinity=False))
    def test_a_float_stays_itself(self, value):
        assert float_up(value) == float_down(value) == value

    def test_what_no_float_can_hold_becomes_infinite_upwards_only(self):
        assert float_up(Fraction(10) ** 400) == math.inf
        assert float_down(Fraction(10) ** 400) == np.finfo(float).max
        assert float_up(-(Fraction(10) ** 400)) == -np.finfo(float).max

    def test_numpy_numbers_are_read_exactly(self):
        assert exact(np.int64(2**62)) == 2**62
        assert exact(np.float32(0.1)) == Fraction(float(np.float32(0.1)))

    def test_rounding_to_nearest_would_be_caught(self):
        tenth = Fraction(1, 10)
        assert Fraction(float(Fraction(1, 3))) < Fraction(1, 3)
        assert float_up(Fraction(1, 3)) > float(Fraction(1, 3))
        assert Fraction(float(tenth)) > tenth > Fraction(float_down(tenth))


@pytest.mark.parametrize("number", [2, 3, 5, 6, 7, Fraction(1, 3), Fraction(2, 7), 10**30 + 1])
def test_roots_are_rounded_where_their_names_say(number):
    up, down = root_up(Fraction(number)), root_down(Fraction(number))
    assert Fraction(down) ** 2 < number < Fraction(up) ** 2
    assert math.nextafter(down, math.inf) == up


class TestDecimals:
    @given(positive)
    def test_up_is_above_by_less_than_a_unit_in_the_ninth_digit(self, value):
        assert value <= decimal_up(value) <= value * (1 + 2e-8)

    @given(positive)
    def test_down_is_below_by_less_than_a_unit_in_the_ninth_digit(self, value):
        assert value * (1 - 2e-8) <= decimal_down(value) <= value

    @pytest.mark.parametrize("value", [0.1, 0.2, 0.3, 0.7, 1.0, 2.5, 1e-6, 123.456])
    def test_a_short_decimal_stays_itself(self, value):
        assert decimal_up(value) == decimal_down(value) == value

    def test_zero_and_below_have_no_digits_to_round(self):
        assert decimal_up(0.0) == decimal_down(0.0) == 0.0
        assert decimal_up(-1.5) == -1.5


class TestExponential:
    @given(st.fractions(0, 700, max_denominator=10**12))
    def test_it_is_below_the_truth_by_less_than_a_part_in_two_to_the_120(self, value):
        with mpmath.workprec(400):
            truth = mpmath.exp(mpmath.mpf(value.numerator) / value.denominator)
            found = exp_down(value)
            ratio = mpmath.mpf(found.numerator) / found.denominator / truth
            # mpmath's own rounding is at 2**-390.
            assert 1 - mpmath.mpf(2) ** -120 < ratio <= 1 + mpmath.mpf(2) ** -380

    def test_the_nearest_float_would_be_caught(self):
        """math.exp rounds to nearest, upwards as often as not."""
        assert any(Fraction(math.exp(x / 16)) > exp_down(x / 16) for x in range(1, 64))

    @pytest.mark.parametrize("value", [-1, 701, math.inf])
    def test_exponents_out_of_reach_are_refused(self, value):
        with pytest.raises((ParameterError, OverflowError)):
            exp_down(value)
