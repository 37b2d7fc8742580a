"""One wording for every rejected parameter; NaN is rejected everywhere."""

import math
from fractions import Fraction

import numpy as np
import pytest

from quorate import _validate
from quorate.exceptions import ParameterError, SchemaError

NAN = float("nan")
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
