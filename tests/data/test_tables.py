"""Tables become matrices of floats; schemas may raise, rows may not."""

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from quorate.data import tables
from quorate.exceptions import ParameterError, SchemaError


class TestMatrices:
    def test_c_ordered_floats_are_not_copied(self):
        X = np.ones((3, 2))
        assert np.shares_memory(tables.as_matrix(X)[0], X)

    @pytest.mark.parametrize(
        "X",
        [
            [[1, 2], [3, None]],
            pd.DataFrame([[1, 2], [3, None]]),
            pl.DataFrame({"0": [1, 3], "1": [2, None]}),
        ],
    )
    def test_gaps_become_nan(self, X):
        assert np.array_equal(tables.as_matrix(X)[0], [[1, 2], [3, np.nan]], equal_nan=True)

    def test_nullable_columns_of_a_frame_are_numbers(self):
        frame = pd.DataFrame({"a": pd.array([1, None], dtype="Int64"), "b": [True, False]})
        rows, names = tables.as_matrix(frame)
        assert names == ("a", "b")
        assert np.array_equal(rows, [[1, 1], [np.nan, 0]], equal_nan=True)

    @pytest.mark.parametrize(
        "X", [np.array([["a"]]), np.zeros((1, 1, 1)), np.zeros((2, 0)), np.array([[1j]])]
    )
    def test_other_shapes_and_types_are_refused(self, X):
        with pytest.raises(SchemaError):
            tables.as_matrix(X)

    @pytest.mark.parametrize("held", [[1, 2], [1, "x"], [None, None], ["long text", "x"]])
    def test_objects_are_refused_by_their_type_alone(self, held):
        for X in (np.array(held, dtype=object), pd.Series(held, dtype=object)):
            with pytest.raises(SchemaError) as caught:
                tables.as_matrix(X)
            assert "objects of no declared type" in str(caught.value)
            with pytest.raises(SchemaError) as caught:
                tables.as_vector(X)
            assert str(caught.value) == (
                "Expected numbers as targets, got objects of no declared type; name the labels "
                "with classes=, or convert them with .astype(float)."
            )

    @pytest.mark.parametrize("dtype", ["U", "S", np.dtypes.StringDType()])
    def test_text_is_called_text_however_long_it_is(self, dtype):
        for read in (tables.as_matrix, tables.as_vector):
            messages = set()
            for held in ("a", "a much longer text"):
                with pytest.raises(SchemaError, match="got text") as caught:
                    read(np.array([held], dtype=dtype))
                messages.add(str(caught.value))
            assert len(messages) == 1

    @pytest.mark.parametrize(
        "X",
        [
            pd.Series([1, None], dtype="Int64"),
            pl.Series([1, None]),
            pa.array([1, None]),
            pa.chunked_array([[1], [None]]),
        ],
    )
    def test_one_column_is_one_feature(self, X):
        assert np.array_equal(tables.as_matrix(X)[0], [[1.0], [np.nan]], equal_nan=True)

    @pytest.mark.parametrize(
        "y",
        [
            [1, 0],
            pd.DataFrame({"y": [1, 0]}, index=[7, 8]),
            pl.DataFrame({"y": [1, 0]}),
            pa.table({"y": [1, 0]}),
            (1, 0),
            np.array([[1], [0]]),
            pd.Series([1, 0]),
            pa.array([1, 0]),
            pl.Series([1, 0]),
        ],
    )
    def test_targets_from_any_container(self, y):
        assert tables.as_vector(y).tolist() == [1.0, 0.0]

    @pytest.mark.parametrize(
        "y",
        [
            np.array(["a"]),
            pd.Series(["a"]),
            pd.DataFrame({"y": ["a"]}),
            pl.DataFrame({"y": ["a"]}),
            pd.DataFrame({"y": [1], "z": [1]}),
            pl.DataFrame({"y": [1], "z": [1]}),
            np.zeros((2, 2)),
        ],
    )
    def test_targets_that_are_no_numbers_are_refused(self, y):
        with pytest.raises(SchemaError):
            tables.as_vector(y)


class TestLabels:
    @pytest.mark.parametrize(
        "y",
        [
            ["no", "yes", "other", None],
            np.array(["no", "yes", "other", ""]),
            np.array(["no", "yes", 3.5, None], dtype=object),
            np.ma.array(["no", "yes", "no", "yes"], mask=[False, False, True, True]),
            pd.DataFrame({"y": ["no", "yes", "other", None]}),
            pd.Series(["no", "yes", "other", None], dtype="category"),
            pl.Series(["no", "yes", "other", None]),
            pa.chunked_array([["no", "yes"], ["other", None]]),
        ],
    )
    def test_labels_become_places_and_strangers_become_missing(self, y):
        places = tables.as_labels(y, classes=("no", "yes"))
        assert np.array_equal(places, [0, 1, np.nan, np.nan], equal_nan=True)

    def test_numeric_classes_are_compared_as_numbers(self):
        places = tables.as_labels(np.array([1, -1, 0]), classes=(-1, 1.0))
        assert np.array_equal(places, [1, 0, np.nan], equal_nan=True)

    @pytest.mark.parametrize("classes", [(False, True), np.array([False, True]), (np.int8(0), 1.0)])
    def test_classes_of_numpy_are_those_of_python(self, classes):
        assert tables.as_labels(np.array([True, False]), classes).tolist() == [1.0, 0.0]

    @pytest.mark.parametrize("classes", [(), ("a",), ("a", "a")])
    def test_classes_must_be_two_different_ones(self, classes):
        with pytest.raises(ParameterError, match="classes"):
            tables.as_labels(["a"], classes)


class TestMissing:
    def test_nothing_is_copied_if_nothing_is_missing(self):
        rows = np.ones((3, 2))
        kept, _, _ = tables.without_missing(rows, None, np.zeros(3, int), "drop")
        assert kept is rows

    def test_a_number_replaces_features_but_not_targets(self):
        rows, targets = np.array([[np.nan, 1], [2, -np.inf], [3, 4]]), np.array([1.0, 2.0, np.nan])
        kept, y, codes = tables.without_missing(rows, targets, np.array([0, 1, 2]), 9.0)
        assert kept.tolist() == [[9, 1], [2, 9]]
        assert y.tolist() == [1, 2]
        assert codes.tolist() == [0, 1]

    @pytest.mark.parametrize("missing", [None, "mean", np.nan, np.inf, True])
    def test_other_rules_are_refused(self, missing):
        with pytest.raises(ParameterError, match="missing"):
            tables.check_missing(missing)
