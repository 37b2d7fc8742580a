"""Directed rounding: never to the cheap side, and no further than needed."""

import math
from fractions import Fraction

import mpmath
import pytest
from hypothesis import given
from hypothesis import strategies as st

from quorate.core.account.rounding import decimal_down, decimal_up, exp_down
from quorate.exceptions import ParameterError

positive = st.floats(1e-200, 1e200)


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
