"""Groups are public or popular; nothing else about keys ever comes out."""

import datetime

import numpy as np
import pyarrow as pa
import pytest

from odd_doors import from_octets
from quorate.data.by_group.keys import NumberKeys, as_keys, column_places, key_rows
from quorate.exceptions import ParameterError, SchemaError, UnboundedContributionError


@pytest.mark.parametrize(
    ("values", "labels"),
    [
        (["b", "a", "z"], ("a", "b")),
        ([2, 1, 9], (1, 2)),
        ([2.0, 1.0, 9.5], (1, 2)),
        (
            [datetime.date(2020, 1, 2), datetime.date(2020, 1, 1), datetime.date(2021, 1, 1)],
            (datetime.date(2020, 1, 1), datetime.date(2020, 1, 2)),
        ),
    ],
)
def test_places_of_labels_of_any_kind(values, labels):
    plain = pa.chunked_array([values, [None]])
    for column in (plain, plain.dictionary_encode()):
        assert column_places(column, labels, name="key").tolist() == [1, 0, -1, -1]


def test_views_of_text_as_other_libraries_make_them():
    column = pa.array(["b", "q"]).cast(pa.string_view())
    assert column_places(column, ("a", "b"), name="key").tolist() == [1, -1]


def test_labels_that_do_not_fit_the_type_are_refused_without_a_record():
    with pytest.raises(SchemaError, match="of the type of the column"):
        column_places(pa.array([], pa.int64()), ("a",), name="key")


@pytest.mark.parametrize("keys", ["a", 3, [], ["a", "a"], ["a", None], [float("nan")]])
def test_strange_keys_are_refused(keys):
    with pytest.raises(ParameterError):
        as_keys(keys, ("city",))


def test_keys_must_be_stated():
    with pytest.raises(UnboundedContributionError):
        as_keys(None, ("city",))
    with pytest.raises(ParameterError):
        as_keys(["a"], ("city", "year"))
    with pytest.raises(ParameterError):
        as_keys({"city": ["a"]}, ("city", "year"))


def test_products_of_keys():
    assert key_rows(as_keys({"a": [1, 2], "b": ["x"]}, ("a", "b"))) == ((1, "x"), (2, "x"))


@pytest.mark.parametrize(
    "kind",
    [
        pa.string(),
        pa.large_string(),
        pa.string_view(),
        pa.binary(),
        pa.binary_view(),
        pa.dictionary(pa.int8(), pa.string()),
        pa.dictionary(pa.int32(), pa.string_view()),
    ],
    ids=str,
)
def test_octets_that_are_no_text_are_no_key_and_move_no_other(kind):
    octets = [b"b", b"\xff", b"a", b"\xed\xa0\x80", None]
    for labels in (("a", "b"), ("a", "b", "longer than twelve letters")):
        column = from_octets(octets, kind)
        assert column_places(column, labels, name="key").tolist() == [1, -1, 0, -1, -1]


def test_places_that_a_dictionary_does_not_have_are_missing():
    indices = pa.array([1, 7, 0, -3], pa.int8())
    column = pa.DictionaryArray.from_arrays(indices, pa.array(["a", "b"]), safe=False)
    assert column_places(column, ("a", "b"), name="key").tolist() == [1, -1, 0, -1]


def test_numbers_are_found_in_texts_as_they_are_written():
    assert column_places(pa.array(["2", "1", "x"]), (1, 2), name="key").tolist() == [1, 0, -1]


@pytest.mark.parametrize("kind", [pa.list_(pa.int8()), pa.run_end_encoded(pa.int32(), pa.int8())])
def test_types_that_hold_no_keys_are_refused_without_a_record(kind):
    with pytest.raises(SchemaError, match="of the type of the column"):
        column_places(pa.array([], kind), (1,), name="key")


def test_no_keys_find_no_group():
    assert NumberKeys((0,), ((),), ())(np.ones((2, 1))).tolist() == [-1, -1]
