"""Ids and columns are read from whatever they come in, and refused by their form alone."""

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

from quorate.data.columns.id_forms import (
    are_columns,
    arrow_columns,
    check_form,
    check_same_rows,
    column_of_pandas,
    is_array,
)
from quorate.data.frames import open_frame
from quorate.exceptions import SchemaError


def test_what_speaks_arrow_is_read_and_all_else_is_left():
    assert arrow_columns(np.array([1])) is None
    assert arrow_columns(pa.array([1, 2]))[0].to_pylist() == [1, 2]
    pairs = pa.table({"a": [1], "b": ["x"]}).to_struct_array()
    assert [each.to_pylist() for each in arrow_columns(pairs)] == [[1], ["x"]]


class Furious:
    """An id that raises whatever it is asked."""

    __array__ = None

    def __getattr__(self, name):
        raise RuntimeError("31337")


def test_a_text_is_no_column():
    held = (np.zeros(2), pa.array([1]), "ann", 7, Furious(), np.int64(7))
    assert [is_array(each) for each in held] == [True, True, False, False, False, False]


def test_a_list_of_ids_stays_one_whatever_is_in_it():
    assert not are_columns(["ann", np.zeros(2)])
    assert not are_columns([np.zeros(2), "ann"])
    assert are_columns([np.zeros(2), np.zeros(2)])
    assert are_columns((["ann"], np.zeros(1)))


@pytest.mark.parametrize("users", [("ann", "bob", "cy"), ("ann", ["bob"], "cy"), (7,) * 3])
def test_a_tuple_of_ids_is_refused_without_their_number(users):
    with pytest.raises(SchemaError, match="tuple of something else") as caught:
        are_columns(users)
    assert "3" not in str(caught.value)


@pytest.mark.parametrize("given", [{1, 2}, {"a": 1}, iter([1]), map(str, [1]), "text", b"text", 7])
def test_what_is_neither_array_nor_list_nor_table_is_refused_by_its_type(given):
    with pytest.raises(SchemaError, match=type(given).__name__):
        check_form(X=given)


class TestIndex:
    def test_rows_in_another_order_are_refused(self):
        frame = pd.DataFrame({"x": [1.0, 2.0, 3.0]}, index=[7, 8, 9])
        users = pd.Series([1, 2, 3], index=[7, 8, 9])
        check_same_rows(X=frame, y=None, users=users)
        for other in (users.sample(frac=1.0, random_state=1), users.reset_index(drop=True)):
            with pytest.raises(SchemaError, match="same index"):
                check_same_rows(X=frame, users=other)
        check_same_rows(X=frame, users=users.to_numpy()[::-1])

    def test_targets_are_looked_at_too(self):
        frame = pd.DataFrame({"x": [1.0, 2.0]})
        with pytest.raises(SchemaError, match="same index"):
            check_same_rows(X=frame, y=pd.Series([0, 1])[::-1], users=[1, 2])

    def test_equal_labels_of_another_kind_are_equal(self):
        frame = pd.DataFrame({"x": [1.0, 2.0]})
        check_same_rows(X=frame, users=pd.Series([1, 2], index=pd.Index([0, 1])))

    def test_labels_that_raise_are_other_labels(self):
        class Odd:
            def __eq__(self, other):
                raise RuntimeError("31337")

            __hash__ = object.__hash__

        frame = pd.DataFrame({"x": [1.0]}, index=pd.Index([Odd()], dtype=object))
        with pytest.raises(SchemaError, match="same index") as caught:
            check_same_rows(X=frame, users=pd.Series([1], index=pd.Index([Odd()], dtype=object)))
        assert "31337" not in str(caught.value)
        assert caught.value.__context__ is None


class TestPandas:
    def test_objects_are_texts_whatever_they_are(self):
        for held in (["a", "b"], ["a", 7], ["a", b"\xff"], ["a", "\ud800"], ["a", object()]):
            column = column_of_pandas(pd.Series(held, dtype=object))
            assert column.type == pa.large_string()
            assert column[0].as_py() == "a"

    def test_categories_that_are_objects_are_texts(self):
        column = column_of_pandas(pd.Series([1, "a", None, 1]).astype("category"))
        assert column.to_pylist() == ["1", "a", None, "1"]

    def test_a_category_that_is_no_utf8_is_one_beside_others(self):
        """It ended the fit of everybody whose labels stand in the same column."""
        for odd in ("a", "\ud800"):
            held = pd.array(["a", odd, None], dtype=pd.StringDtype("python"))
            frame = pd.DataFrame({"drink": pd.Categorical(held)})
            for column in (column_of_pandas(frame["drink"]), open_frame(frame).column(0).chunk(0)):
                assert column.type == pa.dictionary(pa.int8(), pa.large_string())
                octets = column.dictionary.cast(pa.large_binary()).to_pylist()
                assert [octets[i] for i in column.indices.to_pylist()[:2]] == [
                    b"a",
                    odd.encode("utf-8", "surrogatepass"),
                ]
                assert column.null_count == 1

    def test_text_that_is_no_utf8_is_read_beside_others(self):
        text = pd.Series(["a", "\ud800", None], dtype=pd.StringDtype("python"))
        column = column_of_pandas(text)
        assert column.cast(pa.large_binary()).to_pylist() == [b"a", b"\xed\xa0\x80", None]
        assert column.type == column_of_pandas(text[:1]).cast(pa.large_string()).type

    def test_a_type_that_arrow_does_not_know_is_none(self):
        assert column_of_pandas(pd.Series([1j])) is None
