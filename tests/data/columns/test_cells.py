"""A cell without a declared type is read by one rule, by itself, and never raises."""

import datetime
import enum
import uuid
import warnings
from collections import namedtuple
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from quorate.data.columns import cells
from quorate.data.columns.cells import (
    as_array,
    axes_of,
    columns_of_rows,
    number_written,
    numbers,
    text_of,
)
from quorate.data.labels import label_of
from quorate.data.tables import as_feature_matrix

Pair = namedtuple("Pair", ["one", "other"])


class Colour(enum.StrEnum):
    RED = "red"


def _raise(*_args):
    raise RuntimeError("31337")


class Furious:
    """A cell whose every method raises."""

    __float__ = __int__ = __index__ = __str__ = __repr__ = __len__ = __iter__ = _raise
    __eq__ = __bool__ = __array__ = __getattr__ = __hash__ = _raise
    __class__ = property(_raise)


class FuriousText(str):
    __str__ = encode = __eq__ = __len__ = strip = _raise
    __hash__ = _raise


class FuriousBytes(bytes):
    __bytes__ = __iter__ = __len__ = __eq__ = __getitem__ = strip = _raise
    __hash__ = _raise


class FuriousInt(int):
    __str__ = __repr__ = __float__ = __int__ = __index__ = __eq__ = _raise
    __hash__ = _raise


class FuriousFloat(float):
    __str__ = __repr__ = __float__ = __int__ = is_integer = __eq__ = _raise
    __hash__ = _raise


class FuriousDate(datetime.date):
    __str__ = isoformat = __eq__ = __ne__ = _raise
    __hash__ = _raise


class FuriousList(list):
    __len__ = __iter__ = __getitem__ = _raise


class FuriousKind(type):
    __hash__ = __eq__ = _raise


class OfFuriousKind(metaclass=FuriousKind):
    pass


NO_NUMBERS = [
    None,
    "x",
    b"\xff",
    "\ud800",
    {},
    10**400,
    1j,
    object(),
    pd.NA,
    pd.NaT,
    [1, 2],
    (1.0,),
    {1},
    np.ma.masked,
    np.zeros(2),
    memoryview(b"1"),
    Decimal("sNaN"),
    datetime.date(2020, 1, 1),
    Furious(),
    FuriousList([1.0]),
    OfFuriousKind(),
]
NO_TEXTS = [None, 1.5, float("nan"), (1,), [b"a"], {}, pd.NA, pd.NaT, Furious(), OfFuriousKind()]
NO_TEXTS += [10**5000, np.float32(0.5), np.datetime64("NaT"), Fraction(1)]


NO_ROWS = [[31337], [1, 2, 3], 5.0, None, "ab", Furious(), [], np.zeros((2, 2)), {1, 2}]


class TestNumbers:
    # Some of them raise even when a test is given their names: their places will do.
    @pytest.mark.parametrize("place", range(len(NO_NUMBERS)))
    def test_what_is_no_number_is_missing_and_changes_nothing_else(self, place):
        cell = NO_NUMBERS[place]
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            read = as_array([[1, "2.5"], [cell, True], [2**70, Decimal("0.5")]])
        expected = [[1.0, 2.5], [np.nan, 1.0], [2.0**70, 0.5]]
        assert np.array_equal(read, expected, equal_nan=True)
        assert read.dtype == np.float64
        matrix, _ = as_feature_matrix([[1.0], [cell], [2.0]])
        assert np.array_equal(matrix, [[1.0], [np.nan], [2.0]], equal_nan=True)
        assert np.array_equal(as_array([1.0, cell, 2.0]), [1.0, np.nan, 2.0], equal_nan=True)

    def test_plain_values_are_numbers(self):
        for cell, number in (
            (True, 1.0),
            (np.bool_(True), 1.0),
            (np.int8(-3), -3.0),
            (np.float32(0.5), 0.5),
            (np.array(2.5), 2.5),
            (Fraction(1, 4), 0.25),
            ("1.5", 1.5),
            (b" 2 ", 2.0),
            (bytearray(b"3"), 3.0),
            ("true", 1.0),
            ("False", 0.0),
            ("1_0", 10.0),
            (FuriousInt(5), 5.0),
            (FuriousFloat(2.5), 2.5),
            (FuriousText("7"), 7.0),
        ):
            assert numbers([cell, object()])[0] == number

    held = st.one_of(
        st.floats(),
        st.integers(-(2**80), 2**80),
        st.booleans(),
        st.decimals(allow_nan=False),
        st.sampled_from(["1.5", " 2 ", "1_0", "nan", b"3", np.float32(0.1), np.int8(3)]),
    )

    @given(st.lists(held, min_size=1, max_size=6))
    @settings(max_examples=150)
    def test_numbers_read_one_by_one_are_those_read_at_once(self, held):
        at_once = np.asarray(held, dtype=np.float64)
        one_by_one = as_array([*held, None, {}])[:-2]
        assert np.array_equal(at_once, one_by_one, equal_nan=True)
        assert np.array_equal(at_once, as_array(held), equal_nan=True)

    def test_octets_are_numbers_as_in_a_file(self):
        assert number_written(b"1e3") == 1000.0
        assert np.isnan(number_written(b"\xff"))
        assert np.isnan(number_written("\uff11".encode()))


class TestTexts:
    @pytest.mark.parametrize("place", range(len(NO_TEXTS)))
    def test_what_has_no_plain_text_is_missing_and_changes_nothing_else(self, place):
        held = cells.objects(["ann", NO_TEXTS[place], 7])
        assert cells.texts(held).to_pylist() == ["ann", None, "7"]

    def test_plain_values_are_texts(self):
        for cell, text in (
            (Colour.RED, b"red"),
            (np.str_("ann"), b"ann"),
            (bytearray(b"ann"), b"ann"),
            (b"\xff", b"\xff"),
            ("\ud800", b"\xed\xa0\x80"),
            (7.0, b"7"),
            (np.float32(7), b"7"),
            (np.int8(7), b"7"),
            (True, b"True"),
            (np.bool_(False), b"False"),
            (uuid.UUID(int=7), str(uuid.UUID(int=7)).encode()),
            (datetime.date(2020, 1, 2), b"2020-01-02"),
            (FuriousDate(2020, 1, 2), b"2020-01-02"),
            (pd.Timestamp("2020-01-02 03:04"), b"2020-01-02 03:04:00"),
            (np.datetime64("2020-01-02"), b"2020-01-02"),
            (FuriousText("ann"), b"ann"),
            (FuriousBytes(b"ann"), b"ann"),
            (FuriousInt(7), b"7"),
            (FuriousFloat(7.0), b"7"),
        ):
            assert text_of(cell) == text
            assert type(text_of(cell)) is bytes

    def test_the_type_of_a_column_follows_from_no_cell(self):
        for odd in ("bob", 7, b"\xff", "\ud800", None, float("nan"), 1.5, Furious()):
            column = cells.texts(cells.objects(["ann", odd]))
            assert column.type == pa.large_string()
            assert column[0].as_py() == "ann"


class TestRows:
    def test_shapes_are_those_of_most_rows(self):
        assert as_array([]).shape == (0,)
        assert as_array([[], []]).shape == (2, 0)
        assert as_array([1, [2], 3]).shape == (3,)
        assert as_array(["ab", "cd", [1]]).shape == (3,)
        assert as_array([[1], 2, [3]]).shape == (3, 1)
        assert as_array([[1, 2], [3], [4, 5]]).shape == (3, 2)
        assert [axes_of(held) for held in ([], [1], [[1]], [[[1]]], [[[1]], [1], [2]])] == [
            1,
            1,
            2,
            3,
            2,
        ]

    @pytest.mark.parametrize("number", range(len(NO_ROWS)))
    @pytest.mark.parametrize("place", [0, 1, 2])
    def test_a_row_of_another_width_is_missing_wherever_it_stands(self, number, place):
        rows, row = [[1.0, 2.0], (3.0, 4.0), np.array([5.0, 6.0])], NO_ROWS[number]
        rows[place] = row
        expected = np.array([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]])
        expected[place] = np.nan
        assert np.array_equal(as_array(rows), expected, equal_nan=True)
        ids = columns_of_rows(rows)
        assert [len(column) for column in ids] == [3, 3]
        assert [column[place] for column in ids] == [None, None]

    def test_rows_of_every_kind_are_rows(self):
        masked = np.ma.array([5.0, 6.0], mask=[False, True])
        rows = [[1, 2], Pair(3, 4), np.array([5, 6]), masked, FuriousList([7, 8])]
        expected = [[1, 2], [3, 4], [5, 6], [5, np.nan], [7, 8]]
        assert np.array_equal(as_array(rows), expected, equal_nan=True)

    def test_of_two_widths_as_common_the_smaller_one_counts(self):
        assert as_array([[1, 2], [3]]).shape == as_array([[3], [1, 2]]).shape == (2, 1)


class TestArrays:
    def test_an_array_keeps_its_type(self):
        for dtype in ("i2", "f4", "U3", "O"):
            assert as_array(np.zeros(2, dtype)).dtype == np.dtype(dtype)

    @pytest.mark.parametrize("dtype", ["i8", "f4", "?"])
    def test_what_is_masked_is_missing(self, dtype):
        masked = np.ma.array(np.ones((2, 1), dtype), mask=[[False], [True]])
        assert np.array_equal(as_array(masked), [[1.0], [np.nan]], equal_nan=True)
        assert np.array_equal(as_feature_matrix(masked)[0], [[1.0], [np.nan]], equal_nan=True)


def test_one_long_row_of_rows_does_not_give_a_list_an_axis():
    usual = [[float(i)] for i in range(9)]
    assert axes_of([*usual, [[1]] * 50]) == axes_of(usual) == 2


class LoudDate(datetime.datetime):
    """A date whose every method can be heard."""

    def heard(self, *_):
        warnings.warn("31337", stacklevel=1)
        return "tea"

    __str__ = isoformat = __eq__ = heard
    __hash__ = None


def test_a_date_is_not_asked_what_it_says():
    """Warnings are errors here, and then the cell would be missing."""
    cell = LoudDate(2020, 1, 5)
    assert text_of(cell)[:10] == b"2020-01-05"
    assert label_of(cell)[:10] == "2020-01-05"


class AnyClass(type):
    """A class that says it is that of plain numbers."""

    def __hash__(cls):
        return hash(float)

    def __eq__(cls, other):
        return True


class Impostor(metaclass=AnyClass):
    def __float__(self):
        return 2.0


def test_a_type_is_what_it_is_and_not_what_it_says():
    alone, beside = [1.0, Impostor()], [1.0, Impostor(), "x"]
    assert np.array_equal(numbers(alone), numbers(beside)[:2], equal_nan=True)
    assert np.isnan(numbers(alone)[1])
