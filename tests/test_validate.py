"""Parameters are refused in one wording, numbers are exact, arrays are read without a word."""

import math
from fractions import Fraction

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from quorate import _validate
from quorate._validate import exact, float_down, float_up, pure_loss, root_down, root_up
from quorate.exceptions import ParameterError, SchemaError

NAN = float("nan")
rationals = st.builds(Fraction, st.integers(-(10**30), 10**30), st.integers(1, 10**30))
REJECTED = [
    (_validate.positive, [0, -1, math.inf, NAN, "1", None, True]),
    (_validate.non_negative, [-1e-300, math.inf, NAN, None, np.True_]),
    (_validate.finite, [math.inf, -math.inf, NAN, "x"]),
    (_validate.positive_integer, [0, -3, 1.0, NAN, True, "2"]),
    (_validate.non_negative_integer, [-1, 0.0, NAN, False]),
    (_validate.probability, [0, 1, NAN, -0.1]),
    (_validate.fraction, [-0.1, 1.1, NAN]),
    (_validate.delta, [1, -1e-12, NAN]),
]
ACCEPTED = [
    (_validate.positive, [1, 0.5, np.float64(2), Fraction(1, 3)]),
    (_validate.non_negative, [0, 0.0, 3]),
    (_validate.finite, [-3, 0.0, 1e308]),
    (_validate.positive_integer, [1, np.int64(7), 2**80]),
    (_validate.non_negative_integer, [0, 5]),
    (_validate.probability, [0.5, 1e-300]),
    (_validate.fraction, [0, 1, 0.5]),
    (_validate.delta, [0, 0.0, 1e-9]),
]


def pairs(table):
    return [
        pytest.param(check, value, id=f"{check.__name__}-{value!r}")
        for check, values in table
        for value in values
    ]


@pytest.mark.parametrize(("check", "value"), pairs(REJECTED))
def test_a_rejected_value_is_named_and_quoted(check, value):
    with pytest.raises(ParameterError) as caught:
        check(epsilon=value)
    assert "epsilon" in str(caught.value)
    assert repr(value) in str(caught.value)
    assert str(caught.value).endswith(".")


@pytest.mark.parametrize(("check", "value"), pairs(ACCEPTED))
def test_an_accepted_value_passes(check, value):
    check(epsilon=value)


@pytest.mark.parametrize(("lower", "upper"), [(1, 0), (0, 0), (NAN, 1), (0, math.inf)])
def test_bounds_must_be_finite_and_in_order(lower, upper):
    with pytest.raises(ParameterError, match="lower < upper"):
        _validate.ordered(lower, upper, name="bound")


def test_a_choice_must_be_listed_with_its_own_type():
    _validate.one_of(("auto", 1), algorithm="auto")
    with pytest.raises(ParameterError, match="'auto'"):
        _validate.one_of(("auto",), algorithm="fast")
    with pytest.raises(ParameterError, match="one of"):
        _validate.one_of((1,), records=True)


def test_a_dtype_is_public_and_may_be_refused():
    _validate.integer_dtype(table=np.dtype(np.uint8))
    with pytest.raises(SchemaError, match="float64"):
        _validate.integer_dtype(table=np.dtype(np.float64))


def test_an_array_given_in_place_of_a_number_is_not_printed():
    with pytest.raises(ParameterError, match=r"bound=<ndarray>\.$"):
        _validate.positive(bound=np.array([51.2, 77.7]))


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


class TestFinite:
    def test_finite_sums_that_overflow_are_still_finite(self):
        assert _validate.all_finite(np.array([1.7e308, 1.7e308]))
        assert not _validate.all_finite(np.array([1.0, np.nan]))


class TestDescriptions:
    @pytest.mark.parametrize("value", [(0, 9), "auto", 3.5, None, [0.0, np.float64(1.0)], ()])
    def test_small_parameters_are_quoted(self, value):
        assert _validate.described(value) == repr(value)

    @pytest.mark.parametrize(
        "value",
        [
            np.full(3, 31337.5),
            [31337.5] * 5,
            [[31337.5], [1.0]],
            pd.Series([31337.5]),
            {"a": 31337.5},
            (np.full(2, 31337.5), 1.0),
        ],
    )
    def test_what_may_be_data_is_not(self, value):
        words = _validate.described(value)
        assert "31337" not in words
        assert type(value).__name__ in words


@pytest.mark.parametrize("number", [2, 3, 5, 6, 7, Fraction(1, 3), Fraction(2, 7), 10**30 + 1])
def test_roots_are_rounded_where_their_names_say(number):
    up, down = root_up(Fraction(number)), root_down(Fraction(number))
    assert Fraction(down) ** 2 < number < Fraction(up) ** 2
    assert math.nextafter(down, math.inf) == up


def test_a_loss_is_an_exact_fraction():
    assert pure_loss(1, 3.0) == Fraction(1, 3)
    with pytest.raises(ParameterError, match="sensitivity > 0"):
        pure_loss(0, 3.0)


@pytest.mark.parametrize("values", [[[1.0]], [], 3.0, [1e300], [math.nan], [math.inf]])
def test_a_public_vector_is_finite_flat_and_of_a_usual_size(values):
    with pytest.raises(ParameterError, match="Expected centre to be"):
        _validate.public_vector(values, "centre")


def test_a_public_vector_is_a_copy():
    given = np.zeros(2)
    _validate.public_vector(given, "centre")[0] = 1.0
    assert given[0] == 0.0


def test_answers_are_kept_and_what_cannot_be_kept_is_refused_in_our_words():
    asked = []

    @_validate.remembered
    def half(value):
        _validate.positive(value=value)
        asked.append(value)
        return value / 2

    assert [half(3.0), half(3.0), half(3)] == [1.5, 1.5, 1.5]
    assert asked == [3.0, 3], "an integer is not taken for the float that it equals"
    for wrong in ([1.0], np.ones(2), {}):
        with pytest.raises(ParameterError):
            half(wrong)
