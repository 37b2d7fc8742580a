"""Ids are read from whatever they come in, one by one."""

import uuid

import numpy as np
import pyarrow as pa
import pytest

from quorate.exceptions import SchemaError
from quorate.users.id_forms import arrow_columns, as_text, columns_of_rows, is_array


def test_a_list_of_ids_is_one_column_and_a_list_of_rows_several():
    (ids,) = columns_of_rows([7, "ann"])
    assert ids.dtype == object
    assert [each.tolist() for each in columns_of_rows([(1, "a"), (2, "b")])] == [[1, 2], ["a", "b"]]


@pytest.mark.parametrize("rows", [[[1], [1, 2]], [[], []], [[1], 1]], ids=str)
def test_rows_of_several_lengths_are_refused(rows):
    with pytest.raises(SchemaError, match="several lengths"):
        columns_of_rows(rows)


def test_what_speaks_arrow_is_read_and_all_else_is_left():
    assert arrow_columns(np.array([1])) is None
    assert arrow_columns(pa.array([1, 2]))[0].to_pylist() == [1, 2]
    pairs = pa.table({"a": [1], "b": ["x"]}).to_struct_array()
    assert [each.to_pylist() for each in arrow_columns(pairs)] == [[1], ["x"]]


def test_the_text_of_an_object_does_not_depend_on_its_neighbours():
    known = uuid.UUID(int=7)
    alone = as_text(np.array(["ann"], dtype=object)).cast(pa.large_binary())
    beside = as_text(np.array(["ann", known, (1,), 2.0, 1.5], dtype=object))
    assert beside[0].as_py() == alone[0].as_py()
    assert beside.to_pylist()[1:] == [str(known).encode(), None, b"2", None]


def test_a_text_is_no_column():
    assert [is_array(each) for each in (np.zeros(2), pa.array([1]), "ann", 7)] == [
        True,
        True,
        False,
        False,
    ]
