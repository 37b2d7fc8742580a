"""Records keep their user, whatever order they lie in."""

import pickle
from itertools import pairwise

import numpy as np
import pytest

from quorate.users import store as stores
from quorate.users.store import RecordStore, offsets_of, order_of_addition


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


class TestOrderOfAddition:
    @pytest.mark.parametrize("digits", [0, 1, 9])
    def test_it_is_the_same_wherever_records_lie(self, digits):
        """User by user, or in any order with the number of their user."""
        rng = np.random.default_rng(2)
        codes = rng.integers(0, 40, 3000).astype(np.int32)
        rows = np.round(rng.normal(size=(3000, 2)), digits)
        offsets = offsets_of(np.bincount(codes, minlength=40))
        by_user = np.argsort(codes, kind="stable")
        expected = by_user[order_of_addition(rows[by_user], None, offsets)]
        order = order_of_addition(rows, None, offsets, codes)
        assert np.array_equal(np.sort(order), np.arange(3000))
        assert np.array_equal(rows[order], rows[expected])
        assert np.array_equal(codes[order], codes[expected])

    @pytest.mark.parametrize("most", [1, 40, 300])
    def test_users_who_lie_in_order_are_sorted_each_by_itself(self, most):
        """Equally many records side by side, others between them, none, one, and equal ones."""
        rng = np.random.default_rng(3)
        edges = [2, most - 1, 1, most]
        counts = np.concatenate([np.full(20, most), edges, rng.integers(0, 99, 60)])
        offsets, owners = stores.offsets_of(counts), np.repeat(np.arange(84), counts)
        rows = rng.normal(size=(len(owners), 2))
        rows[::3] = rows[offsets[owners][::3]]
        expected = np.lexsort((stores._hashes(rows, None), owners))
        order = order_of_addition(rows, None, offsets)
        assert np.array_equal(np.sort(order), np.arange(len(owners)))
        assert np.array_equal(rows[order], rows[expected])
        assert np.array_equal(owners[order], owners)

    @pytest.mark.parametrize(
        "values", [(0, 1), (-1, 1), (0, 1, 2, 4), (-2, -1, 0, 1, 2), (0.5, -0.5)]
    )
    def test_no_arrival_moves_records_of_few_values(self, values):
        """Sums of their bits meet: these have leading bits only, and signs cancel each other."""
        rng = np.random.default_rng(8)
        rows, y = rng.choice(np.array(values, float), (900, 9)), rng.choice([0.0, 1.0], 900)
        offsets = np.array([0, 300, 301, 600, 900])
        owners = np.repeat(np.arange(4), np.diff(offsets))
        came = np.lexsort((rng.random(900), owners))
        expected = order_of_addition(rows, y, offsets)
        order = order_of_addition(rows[came], y[came], offsets)
        assert np.array_equal(rows[came][order], rows[expected])
        assert np.array_equal(y[came][order], y[expected])
        for user, (first, end) in enumerate(pairwise(offsets)):
            alone = order_of_addition(rows[first:end], y[first:end], np.array([0, end - first]))
            assert np.array_equal(rows[first:end][alone], rows[expected][owners == user])

    def test_records_that_meet_in_the_bits_that_are_sorted_are_told_apart(self, monkeypatch):
        """Hashes that differ in their last bit only, and in the other direction than the places."""
        rows = np.arange(8.0)[:, None]
        hashes = np.uint64(2**40) + np.arange(8, dtype=np.uint64)[::-1]
        monkeypatch.setattr(stores, "_hashes", lambda *_: hashes)
        assert order_of_addition(rows, None, np.array([0, 8])).tolist() == list(range(8))[::-1]

    def test_narrow_records_lie_in_the_same_order(self):
        rng = np.random.default_rng(4)
        rows = rng.normal(size=(500, 3)).astype(np.float32)
        codes, offsets = None, np.array([0, 200, 500])
        wide = order_of_addition(rows.astype(np.float64), None, offsets, codes)
        assert np.array_equal(order_of_addition(rows, None, offsets, codes), wide)
