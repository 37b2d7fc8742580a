"""Frames and files are opened by their schema; schemas may raise, rows may not."""

import decimal
import traceback

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from quorate.data import frames, tables
from quorate.data.columns.ids import group
from quorate.exceptions import SchemaError

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
        loaded = frames.load(frames.open_frame(sources()[name]), **DETAIL)
        assert np.array_equal(loaded.rows, [[1, 1], [np.nan, 0], [3, 1]], equal_nan=True)
        assert loaded.names == ("a", "b")
        assert loaded.ids[0].to_pylist() == [1, 2, 1]

    def test_a_folder_of_parquet_files(self, tmp_path):
        for i in range(3):
            pq.write_table(pa.table(COLUMNS), tmp_path / f"part-{i}.parquet")
        loaded = frames.load(frames.open_parquet(tmp_path), **DETAIL)
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
        rows = frames.load(table, **DETAIL).rows
        assert rows[0, :4].tolist() == [1.0, 2.0**64, 0.5, 1.25]
        assert np.isnan(rows[1, [0, 2, 3]]).all()
        assert np.isnan(rows[:, 4]).all()

    def test_the_index_of_a_pandas_frame_is_no_feature(self):
        frame = pd.DataFrame({"id": [1, 2], "a": [1.0, 2.0]}, index=[10, 20])
        frame.index.name = "row"
        assert frames.load(frames.open_frame(frame), **DETAIL).names == ("a",)

    def test_an_odd_column_that_nobody_asked_for_does_no_harm(self):
        frame = pd.DataFrame({"id": [1, 2], "a": [1.0, 2.0], "odd": [1, "one"]})
        assert frames.open_frame(frame, ["a", "id"]).column_names == ["a", "id"]

    @pytest.mark.parametrize("odd", [[1, 2], [1, "secret"], [None, None], [b"x", {}]])
    def test_a_column_of_objects_is_text_whatever_it_holds(self, odd):
        frame = pd.DataFrame({"id": [1, 2], "a": [1.0, 2.0], "odd": pd.Series(odd, dtype=object)})
        assert frames.load(frames.open_frame(frame), **DETAIL).names == ("a",)
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
        assert group(frames.load(frames.open_frame(frame), **DETAIL).ids).codes.tolist() == [
            0,
            0,
            -1,
        ]

    def test_columns_with_numbers_for_names_and_one_name_twice(self):
        frame = pd.DataFrame([[1.0, 2.0]])
        assert frames.open_frame(frame, ["1"]).column_names == ["1"]
        with pytest.raises(SchemaError, match="twice"):
            frames.open_frame(pd.concat([frame, frame], axis=1))

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
            frames.load(pa.table(COLUMNS), **{**DETAIL, **wrong})

    def test_what_is_no_table_is_refused(self, tmp_path):
        with pytest.raises(SchemaError, match="Arrow stream"):
            frames.open_frame([[1]])
        with pytest.raises(SchemaError, match="found nothing"):
            frames.open_parquet(tmp_path / "missing")
        broken = tmp_path / "broken.parquet"
        broken.write_bytes(b"this is no parquet file")
        with pytest.raises(SchemaError, match="could not be read"):
            frames.open_parquet(broken)


class TestPieces:
    """A piece of a table in pandas is read as the whole is declared, cell by cell."""

    whole = pa.schema([("x", pa.float64()), ("id", pa.int64()), ("name", pa.large_string())])

    def read(self, **columns):
        return frames.open_frame(pd.DataFrame(columns), declared=self.whole)

    def test_what_is_as_declared_stays(self):
        found = self.read(x=[1.5, 2.5], id=[7, 8], name=["a", "b"])
        assert found.to_pydict() == {"x": [1.5, 2.5], "id": [7, 8], "name": ["a", "b"]}

    @pytest.mark.parametrize(
        "odd", ["thirty", None, b"\xff", [1.0], object()], ids=lambda odd: type(odd).__name__
    )
    def test_one_cell_turns_nobody_elses_number_into_text(self, odd):
        column = pd.Series([1.5, odd], dtype=object)
        found = self.read(x=column, id=[7, 8], name=["a", "b"])
        assert found.column("x").type == pa.float64()
        assert frames.floats(found.column("x").chunk(0))[0] == 1.5

    def test_a_missing_id_turns_no_other_into_a_float(self):
        found = self.read(x=[1.0] * 4, id=[7.0, np.nan, 8.5, 1e300], name=list("abcd"))
        assert found.column("id").to_pylist() == [7, None, None, None]
        found = self.read(x=[1.0] * 2, id=pd.Series([7, "x"], dtype=object), name=list("ab"))
        assert found.column("id").to_pylist() == [7, None]

    def test_names_that_happen_to_be_numbers_are_names(self):
        found = self.read(x=[1.0, 2.0], id=[7, 8], name=[5, 6])
        assert found.column("name").to_pylist() == ["5", "6"]

    def test_numbers_that_happen_to_be_text_are_numbers(self):
        found = self.read(x=["1.5", "two"], id=[7, 8], name=["a", "b"])
        assert frames.floats(found.column("x").chunk(0)).tolist()[0] == 1.5
        assert np.isnan(frames.floats(found.column("x").chunk(0))[1])


def test_files_of_several_types_are_refused_whatever_they_hold(tmp_path):
    import pyarrow.parquet as pq

    for number, kind in enumerate((pa.int32(), pa.int64())):
        pq.write_table(pa.table({"x": pa.array([1], kind)}), tmp_path / f"{number}.parquet")
    with pytest.raises(SchemaError, match="one type for the column 'x'"):
        frames.open_parquet(tmp_path)
    pq.write_table(pa.table({"x": pa.array([1], pa.int32())}), tmp_path / "1.parquet")
    assert frames.open_parquet(tmp_path).count_rows() == 2


class TestWhatArrowSays:
    """Its messages quote cells and lines: nothing of them is passed on, not even as a cause."""

    SECRET = "row 7: Jane Doe, HIV positive"

    def failing(self, *_, **__):
        raise pa.ArrowInvalid(self.SECRET)

    def refused(self, job):
        with pytest.raises(SchemaError) as caught:
            job()
        raised = caught.value
        assert "Jane" not in "".join(traceback.format_exception(raised))
        assert raised.__cause__ is None
        assert raised.__context__ is None

    def test_of_a_frame(self, monkeypatch):
        class Stream:
            columns = ("a",)

            def __arrow_c_stream__(self, requested_schema=None):
                raise pa.ArrowInvalid(TestWhatArrowSays.SECRET)

        self.refused(lambda: frames.open_frame(Stream()))

    def test_of_a_parquet_file(self, monkeypatch, tmp_path):
        import pyarrow.dataset as ds

        (tmp_path / "people.parquet").write_bytes(b"not at all")
        monkeypatch.setattr(ds, "dataset", self.failing)
        self.refused(lambda: frames.open_parquet(tmp_path / "people.parquet"))

    def test_of_a_page(self):
        class Dataset:
            def to_batches(self, **_):
                yield pa.record_batch({"a": [1]})
                raise pa.ArrowInvalid(TestWhatArrowSays.SECRET)

        self.refused(lambda: list(frames.batches_of(Dataset(), ["a"])))
