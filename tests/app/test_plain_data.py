"""Values come back as they were, and nothing else comes back at all."""

import datetime
import json
import math

import numpy as np
import pytest

from quorate import Relation
from quorate.app.plain_data import decode, decode_scalar, encode
from quorate.core.bounds.grid import Ball, Box, Interval
from quorate.exceptions import ParameterError, SchemaError
from quorate.learners.concepts import Conjunctions, Stumps, Thresholds
from quorate.means import MeanError, Route
from quorate.mechanisms.search.rough_records import RecordRange

VALUES = [
    None,
    True,
    2**63,
    -0.1,
    math.inf,
    "text",
    [1, [2]],
    (1, (2.5, "x")),
    {"age": (0, 120), "bmi": {"inner": [1.5]}},
    {0: 1.0, 2.5: 9.0, None: 3, True: 0},
    {"visit": (datetime.date(2020, 1, 1), datetime.datetime(2021, 1, 1, 12))},
    Relation.ADD_REMOVE,
    RecordRange(4, 8),
    Route(name="clip", reason="few users"),
    MeanError(standard_error=1.0, bound=2.0, confidence=0.95, radius=3.0, cut_share=0.0),
    Thresholds(0, 2**40, name="dose"),
    Conjunctions(3),
    Stumps(cuts=((0.5, 1.5), (2.0,))),
]


def through_json(value):
    return decode(json.loads(json.dumps(encode(value), allow_nan=False)))


@pytest.mark.parametrize("value", VALUES, ids=repr)
def test_values_come_back(value):
    assert through_json(value) == value
    assert type(through_json(value)) is type(value)


@pytest.mark.parametrize("bound", [Interval(0.0, 2.0), Box([0.0], [9.0]), Ball(2.0, dimension=3)])
def test_bounds_come_back(bound):
    again = through_json(bound)
    assert type(again) is type(bound)
    np.testing.assert_array_equal(again.centre, bound.centre)
    assert again.l2_radius == bound.l2_radius


@pytest.mark.parametrize(
    "array",
    [
        np.array([0.1, np.nan, -np.inf]),
        np.arange(6).reshape(2, 3),
        np.array([[True], [False]]),
        np.array(["a", "b"], dtype=object),
        np.empty((0, 4)),
    ],
)
def test_arrays_come_back_bit_by_bit(array):
    again = through_json(array)
    np.testing.assert_array_equal(again, array)
    assert (again.dtype, again.shape) == (array.dtype, array.shape)


@pytest.mark.parametrize(
    "value", [print, object(), {(1,): "a"}, {math.nan: 1}, b"x", np.array([1j]), {1, 2}]
)
def test_what_cannot_be_read_safely_is_not_written(value):
    with pytest.raises(ParameterError):
        encode(value)


@pytest.mark.parametrize(
    "document",
    [
        {"kind": "os.system", "fields": {"command": "true"}},
        {"kind": "Path", "fields": {}},
        {"kind": "dict", "items": [["a", 1, 2]]},
        {"kind": "dict", "items": [[[1], 2]]},
        {"kind": "dict", "items": {"a": 1}},
        {"kind": ["list"], "fields": {}},
        {},
        {"kind": "Relation", "member": "__class__"},
        {"kind": "Relation", "member": ["REPLACE"]},
        {"kind": "Route", "fields": {"name": "x", "reason": "y", "__class__": "z"}},
        {"kind": "RecordRange", "fields": {"lower": -1}},
        {"kind": "RecordRange", "fields": [1]},
        {"kind": "Thresholds", "fields": {"lower": "a", "upper": None}},
        {"kind": "float", "value": "1.0"},
        {"kind": "tuple", "items": "abc"},
        {"kind": "array", "dtype": "object", "shape": [1], "values": ["x"]},
        {"kind": "array", "dtype": "float64", "shape": [10**18], "values": []},
        {"kind": "array", "dtype": "float64", "shape": [-1], "values": [1.0]},
        {"kind": "array", "dtype": "float64", "shape": [1], "values": [{"kind": "Route"}]},
        {"kind": "array", "dtype": "float64", "shape": [1], "values": ["x"]},
        {"kind": "array", "dtype": "int64", "shape": [1], "values": [2**70]},
        {"kind": "array", "dtype": "int64", "shape": [1], "values": [True]},
    ],
    ids=lambda document: json.dumps(document)[:60],
)
def test_foreign_documents_are_refused(document):
    with pytest.raises(SchemaError):
        decode(document)


def test_deep_nesting_is_refused_instead_of_exhausting_the_stack():
    document = []
    for _ in range(100):
        document = [document]
    with pytest.raises(SchemaError, match="deep"):
        decode(document)


def test_a_scalar_is_a_number_or_text():
    assert decode_scalar("a") == "a"
    with pytest.raises(SchemaError):
        decode_scalar([1])
