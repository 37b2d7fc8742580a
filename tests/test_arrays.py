"""Lists and arrays are read without a word about what they hold."""

import warnings
from decimal import Decimal

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from quorate import arrays
from quorate.estimators import as_feature_matrix
from quorate.exceptions import SchemaError

NO_NUMBERS = [None, "x", {}, 10**400, 1j, object(), pd.NA, [1, 2], {1}, np.ma.masked]


class Bomb:
    """A value that quotes itself when it is read."""

    def __float__(self):
        raise RuntimeError("31337")


class TestLists:
    @pytest.mark.parametrize("cell", [*NO_NUMBERS, Bomb()], ids=lambda cell: type(cell).__name__)
    def test_what_is_no_number_is_missing_and_changes_nothing_else(self, cell):
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            read = arrays.as_array([[1, "2.5"], [cell, True], [2**70, Decimal("0.5")]])
        expected = [[1.0, 2.5], [np.nan, 1.0], [2.0**70, 0.5]]
        assert np.array_equal(read, expected, equal_nan=True)
        assert read.dtype == np.float64
        matrix, _ = as_feature_matrix([[1.0], [cell], [2.0]])
        assert np.array_equal(matrix, [[1.0], [np.nan], [2.0]], equal_nan=True)

    numbers = st.one_of(
        st.floats(),
        st.integers(-(2**80), 2**80),
        st.booleans(),
        st.decimals(allow_nan=False),
        st.sampled_from(["1.5", " 2 ", "1_0", "nan", b"3", np.float32(0.1), np.int8(3)]),
    )

    @given(st.lists(numbers, min_size=1, max_size=6))
    @settings(max_examples=150)
    def test_numbers_read_one_by_one_are_those_read_at_once(self, held):
        at_once = np.asarray(held, dtype=np.float64)
        one_by_one = arrays.as_array([*held, None, {}])[:-2]
        assert np.array_equal(at_once, one_by_one, equal_nan=True)

    @pytest.mark.parametrize(
        "ragged", [[[1], [31337, 2]], [[1], 31337], [np.zeros((2, 2)), np.zeros((2, 3))]]
    )
    def test_rows_of_several_lengths_are_a_wrong_shape(self, ragged):
        with pytest.raises(SchemaError, match="several lengths") as caught:
            arrays.as_array(ragged)
        assert "31337" not in str(caught.value)
        assert caught.value.__context__ is None

    def test_shapes_are_kept(self):
        assert arrays.as_array([]).shape == (0,)
        assert arrays.as_array([[], []]).shape == (2, 0)
        assert arrays.as_array([[[1]], [["x"]]]).shape == (2, 1, 1)


class TestArrays:
    def test_an_array_keeps_its_type(self):
        for dtype in ("i2", "f4", "U3", "O"):
            assert arrays.as_array(np.zeros(2, dtype)).dtype == np.dtype(dtype)

    @pytest.mark.parametrize("dtype", ["i8", "f4", "?"])
    def test_what_is_masked_is_missing(self, dtype):
        masked = np.ma.array(np.ones((2, 1), dtype), mask=[[False], [True]])
        assert np.array_equal(arrays.as_array(masked), [[1.0], [np.nan]], equal_nan=True)
        assert np.array_equal(as_feature_matrix(masked)[0], [[1.0], [np.nan]], equal_nan=True)


class TestFinite:
    def test_finite_sums_that_overflow_are_still_finite(self):
        assert arrays.all_finite(np.array([1.7e308, 1.7e308]))
        assert not arrays.all_finite(np.array([1.0, np.nan]))


class TestDescriptions:
    @pytest.mark.parametrize("value", [(0, 9), "auto", 3.5, None, [0.0, np.float64(1.0)], ()])
    def test_small_parameters_are_quoted(self, value):
        assert arrays.described(value) == repr(value)

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
        words = arrays.described(value)
        assert "31337" not in words
        assert type(value).__name__ in words
