"""Records keep their user, whatever order they lie in."""

import pickle

import numpy as np
import pytest

from quorate.users.store import RecordStore, offsets_of


def test_records_are_gathered_by_user_with_their_targets():
    rng = np.random.default_rng(0)
    codes = rng.integers(0, 5, 40)
    rows = rng.normal(size=(40, 2))
    store = RecordStore(rows, rows[:, 0] + 1, codes)
    ordered = store.gather(np.arange(40), n_users=5)
    expected = np.concatenate([rows[codes == user] for user in range(5)])
    np.testing.assert_array_equal(ordered.rows, expected)
    np.testing.assert_array_equal(ordered.targets, expected[:, 0] + 1)
    assert ordered.codes is None


def test_ordered_records_are_gathered_by_place():
    store = RecordStore(np.arange(4.0)[:, None], None, None)
    assert store.gather(np.array([3, 1]), n_users=2).rows.ravel().tolist() == [3.0, 1.0]


@pytest.mark.parametrize("counts", [[], [0, 0], [2, 0, 3]])
def test_offsets_climb_from_zero_to_the_number_of_records(counts):
    offsets = offsets_of(np.array(counts, dtype=np.int64))
    assert offsets[0] == 0
    assert np.diff(offsets).tolist() == counts


def test_a_store_that_was_sent_adds_up_the_same_and_carries_no_pattern():
    rng = np.random.default_rng(3)
    codes, rows = rng.integers(0, 6, 80), rng.normal(size=(80, 3))
    offsets = offsets_of(np.bincount(codes, minlength=6))
    store = RecordStore(rows, None, codes)
    before = len(pickle.dumps(RecordStore(rows, None, codes, store.order(offsets))))
    weighted = store.sums(offsets, rows, rows[:, 0].copy())
    sent = pickle.dumps(store)
    assert len(sent) <= before + 100
    assert np.array_equal(pickle.loads(sent).sums(offsets, rows, rows[:, 0].copy()), weighted)


def test_weights_do_not_stay_in_the_pattern():
    rows, offsets = np.arange(6.0)[:, None], np.array([0, 3, 6])
    store = RecordStore(rows, None, None)
    plain = store.sums(offsets, rows)
    store.sums(offsets, rows, np.full(6, 7.0))
    assert np.array_equal(store.sums(offsets, rows), plain)
