"""What a cell says as a label follows from the cell and its column's type alone."""

import datetime
import decimal

import numpy as np
import pyarrow as pa
import pytest

from odd_cells import OBJECTS
from odd_doors import from_octets
from quorate.data.labels import PrivateLabels, check_labelled, label_of
from quorate.exceptions import SchemaError


@pytest.mark.parametrize("name", OBJECTS)
def test_no_cell_raises_or_moves_another(name):
    usual = PrivateLabels.of_cells(["b", "a", "b", 7])
    odd = PrivateLabels.of_cells(["b", OBJECTS[name], "b", 7])
    others = [0, 2, 3]
    told = [[each.label(each.numbers[place]) for place in others] for each in (usual, odd)]
    assert told[0] == told[1] == ["b", "b", 7]


@pytest.mark.parametrize(
    ("cell", "label"),
    [
        ("tea", "tea"),
        (b"tea", "tea"),
        (b"\xff", None),
        ("\ud800", None),
        (True, 1),
        (np.int8(7), 7),
        (7.0, 7),
        (7.5, None),
        (2.0**53, None),
        (2**64, 2**64),
        (10**5000, None),
        (decimal.Decimal("7.0"), 7),
        (decimal.Decimal("7.5"), None),
        (decimal.Decimal("1e999999"), None),
        (datetime.date(2020, 1, 2), "2020-01-02"),
        (datetime.datetime(2020, 1, 2, 3), "2020-01-02T03:00:00"),
        (None, None),
        (["tea"], None),
    ],
    ids=lambda cell: type(cell).__name__,
)
def test_labels(cell, label):
    assert label_of(cell) == label


@pytest.mark.parametrize(
    "kind", [pa.string(), pa.string_view(), pa.binary(), pa.dictionary(pa.int8(), pa.string())]
)
def test_octets_that_are_no_text_are_missing(kind):
    found = PrivateLabels.of_arrow(from_octets([b"b", b"\xff", b"a", None], kind))
    assert found.labels == ("a", "b")
    assert np.array_equal(found.numbers, [1.0, np.nan, 0.0, np.nan], equal_nan=True)


@pytest.mark.parametrize(
    ("kind", "day"), [(pa.date32(), 1), (pa.date64(), 86_400_000), (pa.timestamp("s"), 86_400)]
)
def test_days_that_no_calendar_has_are_missing(kind, day):
    storage = pa.int32() if kind.bit_width == 32 else pa.int64()
    ticks = [day, 2 ** (kind.bit_width - 1) - 1, 3_000_000 * day, None]
    found = PrivateLabels.of_arrow(pa.array(ticks, storage).view(kind))
    assert len(found.labels) == 1
    assert np.isnan(found.numbers).tolist() == [False, True, True, True]


@pytest.mark.parametrize("kind", [pa.float16(), pa.float32(), pa.decimal128(9, 1), pa.null()])
def test_other_types_and_columns_without_rows(kind):
    assert PrivateLabels.of_arrow(pa.array([], kind)).labels == ()
    assert PrivateLabels.of_arrow(pa.chunked_array([], kind)).numbers.size == 0
    check_labelled("key", kind)


@pytest.mark.parametrize("kind", [pa.list_(pa.int8()), pa.struct([]), pa.duration("s")], ids=str)
def test_types_without_labels_are_refused(kind):
    with pytest.raises(SchemaError, match="Expected text, whole numbers or dates"):
        check_labelled("key", kind)


def test_an_order_of_labels_of_both_kinds():
    assert PrivateLabels.of_cells(["b", 10, "a", 9, True]).labels == (1, 9, 10, "a", "b")


@pytest.mark.parametrize("kind", [pa.decimal32(9, 2), pa.decimal64(18, 2), pa.decimal128(20, 2)])
def test_decimals_of_every_width_are_labels(kind):
    column = pa.array(
        [decimal.Decimal("7.00"), None, decimal.Decimal("2.50"), decimal.Decimal("7.00")], kind
    )
    found = PrivateLabels.of_arrow(pa.chunked_array([column]))
    assert found.labels == (7,)
    assert np.array_equal(found.numbers, [0.0, np.nan, np.nan, 0.0], equal_nan=True)
