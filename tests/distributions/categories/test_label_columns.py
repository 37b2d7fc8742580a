"""Columns of labels from every door, and their places among public categories."""

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from odd_doors import from_octets
from quorate.distributions.categories.label_columns import (
    check_columns,
    label_columns,
    label_places,
)
from quorate.exceptions import SchemaError

CELLS = ["b", "a", "z"]
DOORS = {
    "list": CELLS,
    "list of rows": [[cell] for cell in CELLS],
    "array": np.array(CELLS),
    "column of an array": np.array(CELLS)[:, None],
    "objects": np.array(CELLS, dtype=object),
    "Arrow": pa.array(CELLS),
    "table": pa.table({"x": CELLS}),
    "pandas": pd.DataFrame({"x": CELLS}),
    "series": pd.Series(CELLS, dtype=object),
    "categories": pd.Series(CELLS, dtype="category"),
    "polars": pl.DataFrame({"x": CELLS}),
}


@pytest.mark.parametrize("name", DOORS)
def test_every_door(name):
    check_columns(DOORS[name], [("a", "b")])
    (column,) = label_columns(DOORS[name])
    places = label_places(column, ("a", "b"))
    assert np.array_equal(places, [1.0, 0.0, np.nan], equal_nan=True)


@pytest.mark.parametrize(
    "column",
    [
        np.array([2, 1, 9]),
        np.ma.array([2.0, 1.0, 9.0]),
        np.array([2, "1", b"9"], dtype=object),
        pa.array([2.0, 1.0, None]),
        pa.array(["2", "1", "x"]),
        from_octets([b"2", b"1", b"\xff"], pa.string()),
    ],
    ids=lambda column: str(getattr(column, "dtype", None) or column.type),
)
def test_categories_that_are_numbers(column):
    (held,) = label_columns(column)
    assert np.array_equal(label_places(held, (1, 2)), [1.0, 0.0, np.nan], equal_nan=True)


def test_another_number_of_columns_or_type_is_refused_without_a_cell():
    for X in (
        np.zeros((2, 2)),
        [[1, 2], [3, 4]],
        np.zeros((2, 2, 2)),
        pa.table({"a": [1], "b": [1]}),
    ):
        with pytest.raises(SchemaError):
            check_columns(X, [(1, 2)])
    with pytest.raises(SchemaError, match="Expected numbers"):
        check_columns(pa.array([], pa.date32()), [(1, 2)])
