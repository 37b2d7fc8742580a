"""Days from what people write; a text that is no date is missing, never an error."""

import datetime

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from quorate.data.dates import days_of, days_written, written

BERLIN = datetime.timezone(datetime.timedelta(hours=1))


@pytest.mark.parametrize(
    ("moment", "days"),
    [
        ("1970-01-01", 0.0),
        ("1970-01-02T12:00:00", 1.5),
        (datetime.date(1969, 12, 31), -1.0),
        (datetime.datetime(1970, 1, 2, 6), 1.25),
        (datetime.datetime(1970, 1, 2, 1, tzinfo=BERLIN), 1.0),
        (np.datetime64("1970-01-11"), 10.0),
        (pd.Timestamp("1970-01-02 06:00"), 1.25),
    ],
)
def test_a_moment_is_a_number_of_days(moment, days):
    assert days_of(moment) == days


@pytest.mark.parametrize("strange", [5, 5.0, None, "soon", "5", "", True, (1970, 1, 1)])
def test_what_is_no_date_has_no_days(strange):
    assert days_of(strange) is None


@given(st.dates())
def test_a_column_of_text_agrees_with_python(day):
    texts = pa.array([day.isoformat(), f" {day.isoformat()}T06:00:00Z"])
    own = float(day.toordinal() - datetime.date(1970, 1, 1).toordinal())
    assert days_written(texts).tolist() == [own, own + 0.25]
    assert written(own) == day.isoformat()


STRANGE = [
    "2021-02-29",
    "2021-13-01",
    "2021-00-10",
    "2021-01-00",
    "2021-1-1",
    "01.02.2021",
    "3/4/21",
    "2021-01-01T24:00:00",
    "2021-01-01T10:60",
    "2021-01-01T10:10:61",
    "2021-01-01 Berlin",
    "20210101",
    "",
    "\x00",
    "٢٠٢١-٠١-٠١",
]


def test_a_text_that_is_no_date_is_missing_whoever_stands_beside_it():
    assert np.isnan(days_written(pa.array(STRANGE))).all()
    beside = days_written(pa.array([*STRANGE, "2021-01-01", None]))
    assert np.isnan(beside[:-2]).all()
    assert beside[-2] == days_of("2021-01-01")
    assert np.isnan(beside[-1])


@given(st.lists(st.binary(max_size=20) | st.none(), max_size=5))
def test_no_bytes_raise(cells):
    found = days_written(pa.array(cells, type=pa.large_binary()))
    alone = [days_written(pa.array([cell], type=pa.large_binary()))[0] for cell in cells]
    assert np.array_equal(found, np.array(alone, dtype=float), equal_nan=True)
