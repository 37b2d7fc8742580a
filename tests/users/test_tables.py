"""Tables become matrices of floats; schemas may raise, rows may not."""

import decimal

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from quorate.exceptions import ParameterError, SchemaError
from quorate.users import tables
from quorate.users.grouping import group

COLUMNS = {"id": [1, 2, 1], "a": [1.0, None, 3.0], "b": [True, False, True], "c": ["x", "y", "z"]}
DETAIL = {"users": ["id"], "features": None, "target": None}


def sources():
    arrow = pa.table(COLUMNS)
    connection = duckdb.connect()
    return {
        "pyarrow": arrow,
        "pandas": pd.DataFrame(COLUMNS),
        "polars": pl.DataFrame(COLUMNS),
        "duckdb": connection.from_arrow(arrow),
        "reader": pa.RecordBatchReader.from_batches(arrow.schema, arrow.to_batches()),
    }


class TestLoad:
    @pytest.mark.parametrize("name", list(sources()))
    def test_every_arrow_source_gives_the_same_matrix(self, name):
        loaded = tables.load(tables.open_frame(sources()[name]), **DETAIL)
        assert np.array_equal(loaded.rows, [[1, 1], [np.nan, 0], [3, 1]], equal_nan=True)
        assert loaded.names == ("a", "b")
        assert loaded.ids[0].to_pylist() == [1, 2, 1]

    def test_a_folder_of_parquet_files(self, tmp_path):
        for i in range(3):
            pq.write_table(pa.table(COLUMNS), tmp_path / f"part-{i}.parquet")
        loaded = tables.load(tables.open_parquet(tmp_path), **DETAIL)
        assert loaded.rows.shape == (9, 2)
        assert len(loaded.ids[0]) == 9

    def test_numbers_of_every_kind_are_read(self):
        table = pa.table(
            {
                "id": [1, 1],
                "small": pa.array([1, None], pa.int8()),
                "large": pa.array([2**64 - 1, 0], pa.uint64()),
                "half": pa.array([np.float16(0.5), None], pa.float16()),
                "exact": pa.array([decimal.Decimal("1.25"), None]),
                "nothing": pa.array([None, None], pa.float64()),
            }
        )
        rows = tables.load(table, **DETAIL).rows
        assert rows[0, :4].tolist() == [1.0, 2.0**64, 0.5, 1.25]
        assert np.isnan(rows[1, [0, 2, 3]]).all()
        assert np.isnan(rows[:, 4]).all()

    def test_the_index_of_a_pandas_frame_is_no_feature(self):
        frame = pd.DataFrame({"id": [1, 2], "a": [1.0, 2.0]}, index=[10, 20])
        frame.index.name = "row"
        assert tables.load(tables.open_frame(frame), **DETAIL).names == ("a",)

    def test_an_odd_column_that_nobody_asked_for_does_no_harm(self):
        frame = pd.DataFrame({"id": [1, 2], "a": [1.0, 2.0], "odd": [1, "one"]})
        assert tables.open_frame(frame, ["a", "id"]).column_names == ["a", "id"]

    @pytest.mark.parametrize("odd", [[1, 2], [1, "secret"], [None, None], [b"x", {}]])
    def test_a_column_of_objects_is_text_whatever_it_holds(self, odd):
        frame = pd.DataFrame({"id": [1, 2], "a": [1.0, 2.0], "odd": pd.Series(odd, dtype=object)})
        assert tables.load(tables.open_frame(frame), **DETAIL).names == ("a",)
        for wrong in (frame, frame[["odd"]]):
            with pytest.raises(SchemaError) as caught:
                tables.as_matrix(wrong)
            assert str(caught.value) == (
                "Expected numbers in column 'odd', got text; convert it with .astype(float), or "
                "name its public values in categories=."
            )
            assert caught.value.__context__ is None

    def test_ids_in_a_column_of_objects_are_compared_as_text(self):
        frame = pd.DataFrame({"id": pd.Series(["1", 1, None], dtype=object), "a": [1.0, 2.0, 3.0]})
        assert group(tables.load(tables.open_frame(frame), **DETAIL).ids).codes.tolist() == [
            0,
            0,
            -1,
        ]

    def test_columns_with_numbers_for_names_and_one_name_twice(self):
        frame = pd.DataFrame([[1.0, 2.0]])
        assert tables.open_frame(frame, ["1"]).column_names == ["1"]
        with pytest.raises(SchemaError, match="twice"):
            tables.open_frame(pd.concat([frame, frame], axis=1))

    @pytest.mark.parametrize(
        ("wrong", "words"),
        [
            ({"users": ["nobody"]}, "column 'nobody'"),
            ({"features": ["a", "z"]}, "column 'z'"),
            ({"features": ["c"]}, "numbers in column 'c'"),
            ({"target": "t"}, "column 't'"),
            ({"features": []}, "at least one"),
        ],
    )
    def test_a_wrong_schema_is_refused_by_name(self, wrong, words):
        with pytest.raises(SchemaError, match=words):
            tables.load(pa.table(COLUMNS), **{**DETAIL, **wrong})

    def test_what_is_no_table_is_refused(self, tmp_path):
        with pytest.raises(SchemaError, match="Arrow stream"):
            tables.open_frame([[1]])
        with pytest.raises(SchemaError, match="found nothing"):
            tables.open_parquet(tmp_path / "missing")
        broken = tmp_path / "broken.parquet"
        broken.write_bytes(b"this is no parquet file")
        with pytest.raises(SchemaError, match="could not read"):
            tables.open_parquet(broken)


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
