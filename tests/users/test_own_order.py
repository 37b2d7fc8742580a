"""Nothing but which records a user holds decides which of them comes first."""

from itertools import pairwise

import numpy as np
import pytest

from quorate.users import own_order
from quorate.users.grouping import mix
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
        expected = np.lexsort((own_order._end_hashes(rows, None), owners))
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
        """First hashes that differ in their last bit only; the next ones differ in all."""
        rows, last = np.arange(8.0)[:, None], np.arange(8, dtype=np.uint64)
        monkeypatch.setattr(own_order, "_end_hashes", lambda *_: np.uint64(2**40) + last)
        monkeypatch.setattr(own_order, "_hashes", lambda *_: last[::-1] << np.uint64(40))
        assert order_of_addition(rows, None, np.array([0, 8])).tolist() == list(range(8))[::-1]

    @pytest.mark.parametrize("others", [0, 5, 500])
    def test_how_much_of_a_hash_is_sorted_follows_from_the_own_records(self, others, monkeypatch):
        """First hashes of the first user meet in as many bits, however many others hold."""
        rng = np.random.default_rng(9)
        rows, offsets = rng.normal(size=(6 + others, 2)), np.array([0, 6, 6 + others])
        words = mix(np.arange(6 + others, dtype=np.uint64))
        words[:6] = np.array([5, 4, 3, 2, 1, 0], np.uint64) << np.uint64(5)
        monkeypatch.setattr(own_order, "_end_hashes", lambda *_: words)
        order = order_of_addition(rows, None, offsets)
        assert order[:6].tolist() == list(range(6))[::-1]

    def test_neighbours_of_two_users_do_not_meet(self, monkeypatch):
        """The last record of one and the first of the next share a first hash."""
        rows, words = np.arange(4.0)[:, None], np.array([9, 5, 9, 12], np.uint64) << np.uint64(40)
        monkeypatch.setattr(own_order, "_end_hashes", lambda *_: words)
        monkeypatch.setattr(own_order, "_hashes", None)
        assert order_of_addition(rows, None, np.array([0, 2, 4])).tolist() == [1, 0, 2, 3]

    @pytest.mark.parametrize("alike", [(0,), (0, 2), (0, 1, 2)])
    def test_records_whose_ends_are_constant_lie_in_one_order(self, alike):
        """Equal records before different ones, and users who need a second look beside others."""
        rng = np.random.default_rng(10)
        rows, owners = rng.normal(size=(400, 3)), np.repeat(np.arange(20), 20)
        rows[np.ix_(owners % 3 > 0, alike)] = 1.0
        rows[1::4] = rows[::4]
        offsets = np.arange(0, 401, 20)
        expected = order_of_addition(rows, None, offsets)
        for _ in range(5):
            came = np.lexsort((rng.random(400), owners))
            order = order_of_addition(rows[came], None, offsets)
            assert np.array_equal(rows[came][order], rows[expected])
        for user in range(20):
            own = rows[owners == user]
            alone = order_of_addition(own, None, np.array([0, 20]))
            assert np.array_equal(own[alone], rows[expected][owners == user])

    def test_narrow_records_lie_in_the_same_order(self):
        rng = np.random.default_rng(4)
        rows = rng.normal(size=(500, 3)).astype(np.float32)
        codes, offsets = None, np.array([0, 200, 500])
        wide = order_of_addition(rows.astype(np.float64), None, offsets, codes)
        assert np.array_equal(order_of_addition(rows, None, offsets, codes), wide)
