"""Declared types in one word; no value is looked at."""

import numpy as np
import pyarrow as pa
import pytest

from quorate.data.columns import kinds
from quorate.exceptions import SchemaError

TEXTS = [pa.string(), pa.large_string(), pa.string_view(), pa.binary(), pa.large_binary()]
NUMBERS = [pa.int8(), pa.uint64(), pa.float16(), pa.float64(), pa.bool_(), pa.decimal128(9, 2)]
OTHERS = [pa.date32(), pa.timestamp("us"), pa.duration("s"), pa.list_(pa.int8()), pa.null()]


@pytest.mark.parametrize("kind", TEXTS, ids=str)
def test_text_is_text_and_no_number(kind):
    assert kinds.is_text(kind)
    assert not kinds.is_numeric(kind)
    assert kinds.kind_of(kind) == "text"


@pytest.mark.parametrize("kind", NUMBERS, ids=str)
def test_numbers_are_numbers_and_no_text(kind):
    assert kinds.is_numeric(kind)
    assert not kinds.is_text(kind)
    kinds.check_numeric("age", kind)


@pytest.mark.parametrize("kind", [*TEXTS, *OTHERS], ids=str)
def test_what_holds_no_numbers_is_refused_by_name(kind):
    with pytest.raises(SchemaError, match="Expected numbers in column 'age'"):
        kinds.check_numeric("age", kind)


def test_a_refusal_says_what_can_be_done():
    with pytest.raises(SchemaError, match="categories="):
        kinds.check_numeric("region", pa.string())
    with pytest.raises(SchemaError, match=r"bounds=\{\.\.\., 'visit': \('2020-01-01'"):
        kinds.check_numeric("visit", pa.timestamp("ns", tz="UTC"))


@pytest.mark.parametrize("length", [1, 9])
def test_the_word_for_a_numpy_type_does_not_tell_the_longest_text(length):
    assert kinds.kind_of(np.dtype(f"U{length}")) == "text"
    assert kinds.kind_of(np.dtype(f"S{length}")) == "text"


@pytest.mark.parametrize("kind", [pa.string(), pa.string_view(), pa.large_binary()], ids=str)
def test_texts_of_every_type_are_compared_as_the_same_bytes(kind):
    column = pa.array(["a", "ü", None]).cast(kind)
    assert kinds.as_octets(column).to_pylist() == [b"a", "ü".encode(), None]


def test_what_python_cannot_hold_is_missing():
    far = pa.array([0, 2**61], pa.int64()).view(pa.timestamp("s"))
    assert [value is None for value in kinds.held(far)] == [False, True]
    octets = pa.array([b"a", b"\xff"], pa.binary())
    text = pa.Array.from_buffers(pa.string(), 2, octets.buffers())
    assert kinds.held(text) == ["a", None]


@pytest.mark.parametrize("kind", [pa.string_view(), pa.binary_view()])
@pytest.mark.parametrize("view", [(100, 0, 7, 9), (100, 0, 0, 9), (100, 0, -1, 0), (-5, 0, 0, 0)])
def test_a_view_that_points_nowhere_is_missing_and_followed_by_nobody(kind, view):
    usual = pa.array([b"tea", b"a text that is too long for a view", None, b"rum"], kind)
    valid, views, *texts = usual.buffers()
    held = np.frombuffer(views, np.int32).copy().reshape(-1, 4)
    held[0] = view
    broken = pa.Array.from_buffers(kind, 4, [valid, pa.py_buffer(held.tobytes()), *texts])
    expected = kinds.as_octets(usual).to_pylist()
    # pytest would show the broken array itself, and follow its view.
    found, rest = (kinds.as_octets(each).to_pylist() for each in (broken, broken.slice(1)))
    assert found == [None, *expected[1:]]
    assert rest == expected[1:]
