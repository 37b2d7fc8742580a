"""Frames and crowds give the same records; mistakes are seen from names and types."""

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from quorate.core.users import UserData
from quorate.data.by_group.conditions import as_conditions
from quorate.data.by_group.person_cells import ToCells
from quorate.data.by_group.reading import Reading, checked_names, ids_of, names_of, with_names
from quorate.exceptions import ParameterError, SchemaError

TABLE = {
    "who": [1, 1, 2, 3, 3],
    "city": [1, 2, 1, None, 2],
    "price": [1.0, 2.0, None, 4.0, 5.0],
}
READING = Reading(
    by=("city",), keys=((1, 2),), values=("price",), where=as_conditions({"price": (0, 4)})
)


def under_users(rows, ids):
    return UserData.from_arrays(rows, users=ids)


def cells(records):
    made = records.cells(ToCells(records.numbers, len(records.keys)))
    return sorted(map(tuple, made.X.tolist()))


@pytest.mark.parametrize("frame", [pa.table, pl.DataFrame, pd.DataFrame])
def test_every_frame_gives_the_same_cells(frame):
    X = frame(TABLE)
    READING.check(X)
    records = READING.read(X, under_users, TABLE["who"])
    assert cells(records) == [(0.0, 1.0), (1.0, 1.0)]


def test_a_crowd_gives_the_same_cells():
    rows = np.array([[1, 1.0], [2, 2.0], [2, 5.0], [9, 1.0]])
    crowd = UserData(rows, offsets=[0, 2, 4], feature_names=["city", "price"])
    READING.check(crowd)
    assert cells(READING.read(crowd, under_users)) == [(0.0, 1.0), (1.0, 1.0)]


def test_text_columns_of_conditions():
    reading = Reading(where=as_conditions({"city": ["b"]}))
    X = pa.table({"city": ["a", "b", None]})
    records = reading.read(X, under_users, [1, 2, 3])
    assert cells(records) == [(0.0, 1.0)]


def test_a_number_may_stand_in_for_a_missing_value_but_never_for_a_key():
    reading = Reading(by=("city",), keys=((1, 2),), values=("price",), missing=0.0)
    records = reading.read(pa.table(TABLE), under_users, TABLE["who"])
    assert cells(records) == [(0.0, 1.0), (0.0, 1.0), (1.0, 1.0), (1.0, 1.0)]


def test_a_record_without_its_value_or_its_person_is_in_no_cell():
    reading = Reading(by=("city",), keys=((1, 2),), values=("price",))
    records = reading.read(pa.table(TABLE), under_users, [1, 1, 2, 3, None])
    assert cells(records) == [(0.0, 1.0), (1.0, 1.0)]
    assert records.crowd.n_users == 3


@pytest.mark.parametrize(
    "reading",
    [
        Reading(by=("town",), keys=((1,),)),
        Reading(by=("city",), keys=(("a",),)),
        Reading(values=("name",)),
        Reading(where=as_conditions({"name": (0, 1)})),
    ],
)
def test_mistakes_are_seen_without_rows(reading):
    empty = pa.table({"city": pa.array([], pa.int64()), "name": pa.array([], pa.string())})
    with pytest.raises(SchemaError):
        reading.check(empty)


def test_a_crowd_holds_no_text():
    crowd = UserData([[1.0]], offsets=[0, 1], feature_names=["city"])
    with pytest.raises(SchemaError, match="numbers"):
        Reading(by=("city",), keys=(("a",),)).check(crowd)


def test_names():
    assert names_of(with_names([[1.0, 2.0]])) == ("x0", "x1")
    assert ids_of(None, [1]) == [1]
    with pytest.raises(SchemaError):
        names_of(np.zeros((1, 1)))
    with pytest.raises(ParameterError):
        checked_names(["a", "a"])
    with pytest.raises(ParameterError):
        checked_names("visits", reserved=["visits"])
