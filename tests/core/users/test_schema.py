"""Types and shapes are read from zero rows: no value decides, and no record is looked at."""

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from quorate.data.tables import check_ids, check_targets, without_rows
from quorate.exceptions import ParameterError, SchemaError


@pytest.mark.parametrize(
    "table",
    [
        np.zeros((5, 2)),
        pd.DataFrame({"a": [1.0], "b": [2.0]}),
        pl.DataFrame({"a": [1.0], "b": [2.0]}),
        pa.table({"a": [1.0], "b": [2.0]}),
    ],
    ids=["numpy", "pandas", "polars", "pyarrow"],
)
def test_the_columns_stay_and_the_rows_go(table):
    empty = without_rows(table)
    assert empty.shape == (0, 2)
    assert type(empty) is type(table)


@pytest.mark.parametrize("values", [[1.0], (1, 2), "text", None, 7, range(3), np.float64(2.0)])
def test_what_declares_no_type_is_left_alone(values):
    assert without_rows(values) is None


class Watched(np.ndarray):
    """An array that tells when one of its entries is read."""

    def __array_function__(self, *_):
        raise AssertionError("read")


def test_a_column_of_the_right_type_passes_unread():
    check_ids(np.arange(3).view(Watched))
    check_ids(["ann", 7, None])
    check_ids(pd.Series(["ann", "bob"]))
    check_targets([object()], None)


@pytest.mark.parametrize(
    "ids", [np.zeros(3), np.zeros(3, bool), pd.Series([0.5]), pa.array([0.5]), np.zeros(3, "m8[s]")]
)
def test_types_that_name_nobody_are_refused(ids):
    with pytest.raises(SchemaError, match="ids"):
        check_ids(ids)


@pytest.mark.parametrize(
    "ids",
    [
        (np.arange(3), np.arange(3)),
        [np.arange(3), np.arange(3)],
        ([1, 2], [3, 4]),
        [[1, 2], [3, 4]],
        np.zeros((3, 2), int),
        pd.DataFrame({"a": [1], "b": [2]}),
    ],
)
def test_several_columns_are_refused_because_the_guarantee_must_name_them(ids):
    with pytest.raises(ParameterError, match="Several id columns"):
        check_ids(ids)


@pytest.mark.parametrize(
    ("y", "classes"),
    [
        (np.array(["a"]), None),
        (np.array([1], object), None),
        (np.zeros((3, 2)), None),
        (np.array([[["a"]]]), ("a", "b")),
        (np.array(["a"]), (0, 1)),
        ([1], ("a", "a")),
    ],
)
def test_targets_that_cannot_be_read_are_refused(y, classes):
    with pytest.raises((SchemaError, ParameterError)):
        check_targets(y, classes)
