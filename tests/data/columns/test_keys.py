"""Keys are functions of ids, whichever piece of a table they stand in."""

import numpy as np
import pyarrow as pa
import pytest

from quorate.data.columns.ids import group
from quorate.data.columns.keys import count_keys, keys_of, number_keys, plain_integers, row_keys
from quorate.exceptions import SchemaError

IDS = {
    "integers": np.array([7, 5, 7, -1]),
    "texts": ["eve", "ann", "eve", "bob"],
    "pairs": (["ann", "ann", "bob", "ann"], np.array([1, 2, 1, 1])),
}


def piece(ids, part):
    return tuple(each[part] for each in ids) if isinstance(ids, tuple) else ids[part]


@pytest.mark.parametrize("ids", IDS.values(), ids=IDS)
class TestKeysOfRows:
    def test_they_are_those_of_the_grouped_table(self, ids):
        keys, known = row_keys(ids)
        groups = group(ids)
        assert known.all()
        assert np.array_equal(keys, groups.keys[groups.codes])

    def test_a_piece_of_a_table_says_the_same_as_the_whole(self, ids):
        whole, _ = row_keys(ids)
        parts = [row_keys(piece(ids, part))[0] for part in (slice(0, 1), slice(1, 4))]
        assert np.array_equal(np.concatenate(parts), whole)


def test_a_row_without_an_id_is_not_known():
    keys, known = row_keys(["ann", None, "ann"])
    assert known.tolist() == [True, False, True]
    assert keys[0] == keys[2]


def test_keys_are_numbered_and_counted_in_their_order():
    keys = np.array([9, 2**63, 9, 4], dtype=np.uint64)
    codes, distinct = number_keys(keys)
    assert distinct.tolist() == [4, 9, 2**63]
    assert np.array_equal(distinct[codes], keys)
    assert count_keys(keys) == 3


@pytest.mark.parametrize("ids", [[7, 7], [7, None], [7]], ids=["twice", "nobody", "too few"])
def test_ids_beside_offsets_are_one_for_each_user(ids):
    with pytest.raises(SchemaError, match="a different id for each user"):
        keys_of(ids, 2)


def test_only_one_column_of_integers_without_gaps_is_plain():
    assert plain_integers(np.array([7, 5]))[0].tolist() == [7, 5]
    assert plain_integers(pa.array([7, 5]))[0].tolist() == [7, 5]
    for other in ([7, 5], np.array(["a"]), pa.array([7, None]), np.ones((2, 2), int)):
        found, columns = plain_integers(other)
        assert found is None
        assert isinstance(columns, tuple)
