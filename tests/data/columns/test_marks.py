"""An order of each user's own says which records come first, and arrival does not."""

import datetime
import decimal
import sqlite3

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from quorate.core.noise import SeededNoise, use_noise
from quorate.core.users import UserData
from quorate.core.users.public_choices import in_own_order
from quorate.data.columns.marks import as_marks, marks_of
from quorate.data.engines import MemoryCrowd
from quorate.data.engines.files import FileCrowd
from quorate.data.engines.layout import Layout
from quorate.exceptions import ParameterError, SchemaError
from quorate.tabulate import UserTable

DAYS = [datetime.date(2020, 1, 5), None, datetime.date(2019, 3, 1), datetime.date(2020, 1, 6)]
ORDERED = [2, 0, 3, 1]


@pytest.mark.parametrize(
    "order",
    [
        [5, np.nan, -1, 6],
        np.array([5, 9, -1, 6], dtype=np.int8),
        np.array([2**63, 2**64 - 1, 3, 2**63 + 1], dtype=np.uint64),
        np.array([0.5, np.nan, -0.5, np.inf], dtype=np.float32),
        np.array([-0.5, np.nan, -np.inf, 0.0]),
        np.array(["2020-01-05", "NaT", "2019-03-01", "2020-01-06"], dtype="M8[ns]"),
        pa.array(DAYS),
        pa.array(DAYS, pa.date64()),
        pa.chunked_array([DAYS[:1], DAYS[1:]]).cast(pa.timestamp("us")),
        pa.array([decimal.Decimal("0.5"), None, decimal.Decimal("-1"), decimal.Decimal("7")]),
        pd.Series([5, None, -1, 6], dtype="Int64"),
        pd.to_datetime(pd.Series(DAYS)),
        pl.Series(DAYS),
    ],
)
def test_every_declared_type_has_its_order(order):
    assert np.argsort(as_marks(order), kind="stable").tolist() == ORDERED


@given(st.lists(st.floats(width=64) | st.none(), min_size=1))
def test_floats_have_the_order_of_numbers(values):
    marks = marks_of(pa.array(values, pa.float64()))
    known = np.array([np.nan if value is None else value for value in values])
    assert (np.diff(known[np.argsort(marks, kind="stable")][~np.isnan(np.sort(known))]) >= 0).all()
    assert marks_of(pa.array([0.0]))[0] == marks_of(pa.array([-0.0]))[0]


@pytest.mark.parametrize(
    "order",
    [
        np.array(["9", "10"]),
        np.array([1, "x"], dtype=object),
        pd.Series(["9", "10"]),
        pa.array(["9", "10"]),
        pa.array(["9", "10"]).dictionary_encode(),
        np.zeros((2, 2)),
        np.array([1j, 2j]),
        "day",
        [1, 2, 3],
    ],
)
def test_what_has_no_order_is_refused(order):
    with pytest.raises(SchemaError, match="order="):
        UserData.from_arrays([[1.0], [2.0]], users=[1, 1], order=order)


def visits():
    """Return 400 visits of 30 people on 20 days, many on the same, some without values."""
    rng = np.random.default_rng(0)
    x = rng.integers(0, 6, 400) / 2.0
    x[::17] = np.nan
    days = np.array("2024-01-01", "M8[D]") + rng.integers(0, 20, 400)
    return pa.table({"id": rng.integers(0, 30, 400), "x": x, "day": pa.array(days)})


def first_by_hand(table, records):
    """Return the days of each person's first records, by id."""
    frame = table.to_pandas().dropna(subset=["x"]).sort_values("day", kind="stable")
    return {who: rows["day"].tolist()[:records] for who, rows in frame.groupby("id")}


def test_a_cap_keeps_the_first_records():
    table = visits()
    day = table.column("day").to_numpy().astype(float)
    rows = np.column_stack([table.column("x").to_numpy(), day])
    data = UserData.from_arrays(
        rows, users=table.column("id").to_numpy(), order=table.column("day")
    ).cap(4, random_state=0)
    kept = np.split(data.X[:, 1], data.offsets[1:-1])
    base = pd.Timestamp("1970-01-01")
    for days, expected in zip(kept, first_by_hand(table, 4).values(), strict=True):
        assert days.tolist() == [(pd.Timestamp(each) - base).days for each in expected]


def places(table):
    """Return the same visits in every place that keeps them, in another order."""
    rng = np.random.default_rng(3)
    turned = table.take(pa.array(rng.permutation(table.num_rows)))
    asked = {"user": "id", "features": ["x"], "order": "day"}
    layout = Layout.of(table.schema, **asked)
    capped = Layout.of(table.schema, cap=4, random_state=7, **asked)
    files = FileCrowd.from_batches(turned.to_batches(50), layout, n_parts=3)
    yield "frame", UserData.from_frame(turned, **asked).cap(4, random_state=7)
    frame = turned.to_pandas(date_as_object=False)
    yield "pandas", UserData.from_frame(frame, **asked).cap(4, random_state=7)
    yield (
        "parts",
        MemoryCrowd(UserData.from_frame(turned, **asked), n_parts=3).cap(4, random_state=7),
    )
    yield "files", files.cap(4, random_state=7)
    _ = files.map(in_own_order)  # now they lie in the order of users
    yield "settled files", files.cap(4, random_state=7)
    yield "pieces", capped.together(map(capped.records, turned.to_batches(37)))


def own_records(crowd):
    """Return what everybody holds, in their own order, under their keys."""
    parts = crowd.map(in_own_order)
    return {
        int(key): part.X[start:stop].tobytes()
        for part in parts
        for key, start, stop in zip(part.keys(), part.offsets[:-1], part.offsets[1:], strict=True)
    }


def test_every_place_keeps_the_same_first_records():
    table = visits()
    whole = UserData.from_frame(table, user="id", features=["x"], order="day")
    expected = own_records(whole.cap(4, random_state=7))
    for name, crowd in places(table):
        assert own_records(crowd) == expected, name
    # The controls: another seed decides otherwise among visits of one day, and so does no order.
    assert own_records(whole.cap(4, random_state=8)) != expected
    without = UserData.from_frame(table, user="id", features=["x"])
    assert own_records(without.cap(4, random_state=7)) != expected


def test_doors_of_files_and_databases(tmp_path):
    table = visits().set_column(2, "day", pa.array(np.arange(400)[::-1] // 7))
    pq.write_table(table, tmp_path / "visits.parquet")
    asked = {"user": "id", "features": ["x"], "order": "day"}
    expected = own_records(UserData.from_frame(table, **asked).cap(3, random_state=0))
    read = UserData.from_parquet(tmp_path, **asked)
    assert own_records(read.cap(3, random_state=0)) == expected
    large = FileCrowd.from_parquet(tmp_path, n_parts=2, cap=3, random_state=0, **asked)
    assert own_records(large) == expected
    with sqlite3.connect(":memory:") as base:
        table.to_pandas().astype({"id": str}).to_sql("visits", base, index=False)
        found = UserData.from_sql(base, "select * from visits", **asked).cap(3, random_state=0)
    days = UserData.from_frame(table, user="id", features=["x", "day"], order="day")
    assert sorted(found.record_counts()) == sorted(days.cap(3).record_counts())


@pytest.mark.parametrize("order", ["nobody", "id"])
def test_columns_without_an_order_are_refused_before_a_row_is_read(order):
    table = visits().set_column(0, "id", pa.array(["a"] * 400))
    for door in (UserData.from_frame, Layout.of):
        source = table if door == UserData.from_frame else table.schema
        with pytest.raises(SchemaError):
            door(source, user="id", features=["x"], order=order)


def test_csv_has_no_order(tmp_path):
    (tmp_path / "a.csv").write_text("id,x,day\n1,2,3\n")
    with pytest.raises(SchemaError, match="order="):
        UserData.from_csv(tmp_path / "a.csv", user="id", features=["x"], order="day")


class TestTables:
    def table(self):
        """Everybody has tea on the first day and coffee ever since."""
        people = 400
        drinks = np.tile(["coffee", "tea", "coffee"], people)
        days = np.tile([2, 1, 3], people)
        return pa.table({"who": np.repeat(np.arange(people), 3), "drink": drinks, "day": days})

    def keys(self, **given):
        with use_noise(SeededNoise(0)):
            return (
                UserTable(
                    4.0,
                    delta=1e-6,
                    by="drink",
                    keys="popular",
                    statistics={"n": "count"},
                    random_state=0,
                )
                .fit(self.table(), users="who", **given)
                .keys_
            )

    def test_everybody_votes_for_the_first_key(self):
        others = (None,)  # the last row is about all other keys
        assert self.keys(order="day") == (("tea",), others)
        assert self.keys(order=np.tile([1, 3, 2], 400)) == (("coffee",), others)
        assert self.keys() == (("coffee",), ("tea",), others)

    @pytest.mark.parametrize("order", ["drink", "nobody", [1, 2], np.array(["a"] * 1200)])
    def test_what_has_no_order_costs_nothing(self, order):
        with pytest.raises(SchemaError):
            self.keys(order=order)

    def test_an_order_that_says_nothing_is_refused(self):
        table = UserTable(1.0, by="drink", keys=["tea"], statistics={"n": "count"})
        with pytest.raises(ParameterError, match="popular"):
            table.fit(self.table(), users="who", order="day")
        crowd = UserData.from_arrays(np.ones((3, 1)), users=[1, 2, 3])
        table = UserTable(1.0, delta=1e-5, by="x0", keys="popular", statistics={"n": "count"})
        with pytest.raises(ParameterError, match="crowd"):
            table.fit(crowd, order=[1, 2, 3])
