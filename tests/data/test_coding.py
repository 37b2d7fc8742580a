"""Categories, dates and booleans become numbers by public rules that no value can break."""

import datetime

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from quorate.core.users import UserData
from quorate.data.coding import (
    Category,
    CodedTable,
    Coding,
    Days,
    coded_columns,
    coding_of,
    names_given,
)
from quorate.data.engines.layout import Layout
from quorate.exceptions import ParameterError, SchemaError

DAY = datetime.date(2020, 1, 3)
COLUMNS = {
    "id": [1, 2, 1, 3],
    "age": [50.0, 61.0, None, 40.0],
    "region": ["north", "mars", "south", None],
    "visit": [DAY, None, DAY, DAY],
    "smokes": [True, False, True, None],
}
CATEGORIES = {"region": ["north", "south"]}
DATES = {"visit": ("2020-01-01", "2020-12-31")}
NAMES = ("age", "region=north", "region=south", "visit (days since 2020-01-01)", "smokes")
NAN = float("nan")
ROWS = [
    [50.0, 1.0, 0.0, 2.0, 1.0],
    [61.0, 0.0, 0.0, NAN, 0.0],
    [NAN, 0.0, 1.0, 2.0, 1.0],
    [40.0, NAN, NAN, 2.0, NAN],
]
FEATURES = ["age", "region", "visit", "smokes"]


def frames():
    arrow = pa.table(COLUMNS)
    pandas = arrow.to_pandas().astype({"smokes": "boolean"})
    kinds = {"region": pl.Categorical}
    return {
        "arrow": arrow,
        "pandas": pandas,
        "categorical": pandas.assign(region=pandas["region"].astype("category")),
        "datetime": pandas.assign(visit=pd.to_datetime(pandas["visit"])),
        "written": pandas.assign(visit=["2020-01-03", "no day", "2020-01-03T00:00", "2020-01-03"]),
        "polars": pl.DataFrame(COLUMNS),
        "polars categorical": pl.DataFrame(COLUMNS)
        .with_columns(pl.col("region").cast(pl.String))
        .cast(kinds),
    }


CODING = Coding.of(FEATURES, coded_columns(CATEGORIES, DATES))


class TestCoding:
    @pytest.mark.parametrize("name", list(frames()))
    def test_every_frame_gives_the_same_numbers(self, name):
        frame = frames()[name]
        assert CODING.names == NAMES
        assert np.array_equal(CODING.matrix(frame), ROWS, equal_nan=True)

    def test_a_row_is_coded_by_itself(self):
        table = pa.table(COLUMNS)
        alone = [CODING.matrix(table.slice(place, 1))[0] for place in range(4)]
        assert np.array_equal(alone, CODING.matrix(table), equal_nan=True)

    @given(st.lists(st.text(max_size=3) | st.none(), max_size=6))
    def test_a_category_that_is_not_listed_has_zeros_and_null_is_missing(self, cells):
        rows = Category("c", ("a", "b")).encode(pa.array(cells, type=pa.string()))
        for cell, row in zip(cells, rows, strict=True):
            want = [NAN, NAN] if cell is None else [float(cell == "a"), float(cell == "b")]
            assert np.array_equal(row, want, equal_nan=True)

    def test_categories_of_numbers_are_compared_as_numbers(self):
        column = pa.array([1.0, 2.0, 3.0, None, NAN, np.inf])
        rows = Category("c", (1, 2)).encode(column)
        want = [[1, 0], [0, 1], [0, 0], [NAN, NAN], [NAN, NAN], [NAN, NAN]]
        assert np.array_equal(rows, want, equal_nan=True)
        booleans = Category("c", (True,)).encode(pa.array([True, False]))
        assert booleans.tolist() == [[1.0], [0.0]]

    def test_times_count_as_parts_of_days_in_utc(self):
        noon = datetime.datetime(2020, 1, 3, 12)
        days = Days("visit", *DATES["visit"])
        for unit in ("s", "ms", "us", "ns"):
            assert days.encode(pa.array([noon, None], pa.timestamp(unit)))[0, 0] == 2.5
            zoned = pa.array([noon], pa.timestamp(unit, tz="Asia/Tokyo"))
            assert days.encode(zoned)[0, 0] == 2.5
        assert days.encode(pa.array([DAY], pa.date64())).tolist() == [[2.0]]

    @pytest.mark.parametrize("ticks", [-(2**63) + 1, 2**63 - 1, 0])
    def test_no_moment_raises(self, ticks):
        for kind in (pa.timestamp("s"), pa.timestamp("ns"), pa.date64()):
            column = pa.array([ticks], pa.int64()).cast(pa.timestamp("ms")).cast(pa.int64())
            found = Days("visit", *DATES["visit"]).encode(
                pa.Array.from_buffers(kind, 1, column.buffers())
            )
            assert np.isfinite(found).all()

    @pytest.mark.parametrize(
        "values",
        [[], ["a", "a"], ["a", 1], [NAN], [np.inf], [None], "north", None, 5, {"a": 1}.keys()],
    )
    def test_lists_that_are_none_are_refused(self, values):
        with pytest.raises(ParameterError):
            coded_columns({"region": values})

    @pytest.mark.parametrize(
        "pair",
        [("2020-01-01", 5), ("2021-01-01", "2020-01-01"), ("2020-01-01",), ("a", "b"), "2020"],
    )
    def test_ranges_that_are_none_are_refused(self, pair):
        with pytest.raises(ParameterError):
            coded_columns(None, {"visit": pair})

    def test_a_column_is_a_category_or_a_date(self):
        with pytest.raises(ParameterError, match="got both"):
            coded_columns({"visit": ["a"]}, DATES)
        with pytest.raises(ParameterError, match="dictionary"):
            coded_columns(["region"])

    @pytest.mark.parametrize(
        ("name", "kind"),
        [
            ("region", pa.int64()),
            ("region", pa.date32()),
            ("visit", pa.float64()),
            ("visit", pa.time32("s")),
            ("age", pa.string()),
            ("age", pa.date32()),
        ],
        ids=str,
    )
    def test_types_that_do_not_fit_are_refused_from_the_schema(self, name, kind):
        table = pa.table(COLUMNS)
        schema = table.schema.set(table.schema.names.index(name), pa.field(name, kind))
        with pytest.raises(SchemaError, match=name):
            CODING.check(schema)

    def test_columns_that_are_not_there_are_refused(self):
        with pytest.raises(SchemaError, match="region"):
            Coding.of(["age"], coded_columns(CATEGORIES))
        schema = pa.table(COLUMNS).schema
        with pytest.raises(SchemaError, match="Expected a column 'planet'"):
            coding_of(schema, features=["planet"], others=["id"], categories=CATEGORIES, dates=None)

    def test_names_that_clash_are_refused(self):
        table = pa.table({"a=b": [1.0], "a": ["b"]})
        with pytest.raises(SchemaError, match="different names"):
            Coding.of(["a=b", "a"], coded_columns({"a": ["b"]})).matrix(table)

    def test_a_coding_is_recognised_by_its_names(self):
        coded = coded_columns(CATEGORIES, DATES)
        assert Coding.recognised(NAMES, coded) == CODING
        for wrong in (NAMES[:2], NAMES[2:], ("age",)):
            with pytest.raises(SchemaError, match="same categories and dates"):
                Coding.recognised(wrong, coded)
        later = coded_columns(CATEGORIES, {"visit": ("2020-01-02", "2020-12-31")})
        with pytest.raises(SchemaError):
            Coding.recognised(NAMES, later)

    @pytest.mark.parametrize("strange", [5, [], [1], None])
    def test_names_are_texts(self, strange):
        with pytest.raises(ParameterError, match="names of columns"):
            names_given(strange)


class TestCodedTable:
    @pytest.mark.parametrize("name", ["arrow", "pandas", "polars"])
    def test_it_has_the_shape_of_the_numbers_and_reads_when_it_is_asked(self, name, monkeypatch):
        read = []
        original = Coding.matrix
        monkeypatch.setattr(
            Coding, "matrix", lambda self, table: read.append(1) or original(self, table)
        )
        frame = frames()[name]
        table = CodedTable(frame.select(FEATURES) if name != "pandas" else frame[FEATURES], CODING)
        assert table.shape == (4, 5)
        assert table[:0].shape == (0, 5)
        assert tuple(table.column_names) == NAMES
        assert read == []
        assert table[1:3].matrix().shape == (2, 5)
        assert pa.table(table).column_names == list(NAMES)


class TestUsers:
    def test_a_frame_of_users_is_coded_as_it_is_grouped(self):
        people = UserData.from_frame(
            pa.table(COLUMNS), user="id", categories=CATEGORIES, dates=DATES, missing=0.0
        )
        assert people.feature_names == NAMES
        assert people.n_users == 3
        assert people.X[people.user_index() == 1].tolist() == [[61.0, 0.0, 0.0, 0.0, 0.0]]

    def test_missing_values_follow_the_rule_of_records(self):
        people = UserData.from_frame(
            pa.table(COLUMNS), user="id", categories=CATEGORIES, dates=DATES
        )
        assert people.record_counts().tolist() == [1, 0, 0]

    def test_parts_of_a_crowd_hold_the_same_records(self):
        table = pa.table(COLUMNS)
        layout = Layout.of(table.schema, user="id", categories=CATEGORIES, dates=DATES)
        assert layout.schema.feature_names == NAMES
        parts = layout.users(layout.records(table.to_batches()[0]))
        whole = UserData.from_frame(table, user="id", categories=CATEGORIES, dates=DATES)
        assert sorted(map(tuple, parts.X)) == sorted(map(tuple, whole.X))
        assert sorted(parts.keys()) == sorted(whole.keys())

    def test_without_them_text_is_no_feature(self):
        people = UserData.from_frame(pa.table(COLUMNS), user="id")
        assert people.feature_names == ("age", "smokes")
