"""Nothing but which records a user holds decides in which order they are added up."""

from itertools import pairwise

import numpy as np
import pytest

from quorate.users import hash_order
from quorate.users.store import offsets_of, order_of_addition


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
        offsets, owners = offsets_of(counts), np.repeat(np.arange(84), counts)
        rows = rng.normal(size=(len(owners), 2))
        rows[::3] = rows[offsets[owners][::3]]
        expected = np.lexsort((hash_order._hashes(rows, None), owners))
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
        monkeypatch.setattr(hash_order, "_hashes", lambda *_: hashes)
        assert order_of_addition(rows, None, np.array([0, 8])).tolist() == list(range(8))[::-1]

    def test_narrow_records_lie_in_the_same_order(self):
        rng = np.random.default_rng(4)
        rows = rng.normal(size=(500, 3)).astype(np.float32)
        codes, offsets = None, np.array([0, 200, 500])
        wide = order_of_addition(rows.astype(np.float64), None, offsets, codes)
        assert np.array_equal(order_of_addition(rows, None, offsets, codes), wide)
