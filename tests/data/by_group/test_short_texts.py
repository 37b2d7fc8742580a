"""Short labels are found by their bytes: exactly, wherever a column was cut, whatever it holds."""

import numpy as np
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from quorate.data.by_group.keys import column_places
from quorate.data.by_group.short_texts import ShortTexts

TEXTS = st.one_of(st.text(max_size=4), st.text(max_size=14), st.sampled_from(["a", "a\0", "", "ä"]))


@given(st.lists(TEXTS, unique=True, min_size=1, max_size=40), st.lists(st.none() | TEXTS))
def test_texts_are_found_as_python_finds_them(labels, others):
    column = [*others, *labels, None]
    found = ShortTexts.of(tuple(labels))
    if found is None:
        assert max(len(label.encode()) for label in labels) > 12
        return
    wanted = [labels.index(text) if text in labels else -1 for text in column]
    views = pa.array(column, pa.string_view())
    assert found.places(views).tolist() == wanted
    assert found.places(views.slice(1)).tolist() == wanted[1:]
    assert found.places(pa.chunked_array([views, views.slice(2)])).tolist() == wanted + wanted[2:]


def test_many_blocks_and_a_frame_agree_with_arrow():
    rng = np.random.default_rng(0)
    labels = [f"group {place}" for place in range(50)]
    texts = rng.choice([*labels, "group 51", "a longer label than fits"], 50_000)
    frame = pl.DataFrame({"group": texts})
    found = column_places(pa.table(frame).column(0), tuple(labels), name="group")
    plain = column_places(pa.array(texts.tolist(), pa.string()), tuple(labels), name="group")
    assert np.array_equal(found, plain)


def test_labels_that_differ_late_are_told_apart():
    """The control: a look at the first word only would take one for the other."""
    labels = ["group one", "group two"]
    found = ShortTexts.of(tuple(labels))
    assert found.places(pa.array(["group two", "group six"], pa.string_view())).tolist() == [1, -1]
    words = np.frombuffer(pa.array(labels, pa.string_view()).buffers()[1], np.uint64)
    assert words[0] == words[2]
    assert words[1] != words[3]


def test_labels_that_no_single_piece_tells_apart_are_found_by_all_of_them():
    """The control: each piece of four bytes is the same for two of the labels."""
    labels = [a + b + c for a in ("aaaa", "bbbb") for b in ("cccc", "dddd") for c in ("ee", "ff")]
    found = ShortTexts.of(tuple(labels))
    assert found.slots.piece is None
    texts = [*labels, "aaaacccceg", "aaaaccccee\0"]
    assert found.places(pa.array(texts, pa.string_view())).tolist() == [*range(8), -1, -1]


@pytest.mark.parametrize(
    "labels", [[], ["a label of 17 bytes"], ["twice", "twice"], list(map(str, range(300)))]
)
def test_what_is_long_or_many_or_not_different_is_left_to_arrow(labels):
    assert ShortTexts.of(tuple(labels)) is None
