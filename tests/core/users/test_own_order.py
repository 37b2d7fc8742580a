"""Nothing but which records a user holds decides which of them comes first."""

from itertools import pairwise

import numpy as np
import pyarrow as pa
import pytest

from quorate.core.users import UserData, own_order
from quorate.core.users.grouping import mix
from quorate.core.users.public_choices import in_own_order
from quorate.core.users.store import offsets_of, order_of_addition, settled_users
from quorate.data.engines.layout import Layout


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


def kept(data, records, **given):
    """Return the multiset of records that a cap keeps of each user, by key."""
    capped = data.cap(records, **given)
    rows = capped.X if capped.y is None else np.column_stack([capped.X, capped.y])
    starts = pairwise(capped.offsets.tolist())
    return {
        int(key): sorted(map(tuple, rows[first:last].tolist()))
        for key, (first, last) in zip(capped.keys(), starts, strict=True)
    }


def small_records(seed=0, rows=600):
    """Return records of few values, many of them equal, and whose they are."""
    rng = np.random.default_rng(seed)
    X, y = rng.integers(0, 3, (rows, 2)).astype(float), rng.integers(0, 2, rows).astype(float)
    return X, y, rng.integers(0, 12, rows)


class TestChoice:
    """Which records a cap keeps: what a user holds decides, by a keyed hash."""

    @pytest.mark.parametrize("records", [1, 7, 40])
    def test_no_arrival_moves_it(self, records):
        X, y, ids = small_records()
        expected = kept(UserData.from_arrays(X, y, users=ids), records, random_state=3)
        for seed in range(3):
            turned = np.random.default_rng(seed).permutation(len(ids))
            data = UserData.from_arrays(X[turned], y[turned], users=ids[turned])
            assert kept(data, records, random_state=3) == expected

    @pytest.mark.parametrize("constant", [0, 2**64 - 1])
    def test_records_made_to_share_a_hash_are_told_apart_by_their_numbers(
        self, constant, monkeypatch
    ):
        """Whoever knows the seed may look for such records: they follow from arrival no more."""

        def same(rows, _targets, places, *_):
            return np.full(len(places), constant, dtype=np.uint64)

        monkeypatch.setattr(own_order, "_hashes", same)
        monkeypatch.setattr(
            own_order, "_end_hashes", lambda rows, _: np.full(len(rows), constant, np.uint64)
        )
        rng = np.random.default_rng(4)
        X, y, ids = (
            rng.normal(size=(90, 2)),
            rng.integers(0, 2, 90).astype(float),
            np.arange(90) % 4,
        )
        y[:40], X[40:60] = 1.0, X[40]
        data = UserData.from_arrays(X, y, users=ids)
        for seed in range(3):
            turned = np.random.default_rng(seed).permutation(90)
            other = UserData.from_arrays(X[turned], y[turned], users=ids[turned])
            assert kept(other, 5, random_state=1) == kept(data, 5, random_state=1)
            for order in (in_own_order, settled):
                assert np.array_equal(order(other).X, order(data).X)
                assert np.array_equal(order(other).y, order(data).y)

    def test_words_that_share_what_is_sorted_of_them_are_told_apart(self, monkeypatch):
        """Only leading bits are sorted: words that differ in their last ones meet there."""
        monkeypatch.setattr(own_order, "_NUMBERED", 5)
        rows, words = np.arange(12.0)[:, None], np.arange(12, dtype=np.uint64)
        for seed in range(4):
            turned = np.random.default_rng(seed).permutation(12)
            found = own_order.contents_of(
                rows[turned], None, np.arange(12), np.array([0, 12]), words[turned]
            )
            assert rows[turned][found.placed()].ravel().tolist() == list(range(12))

    def test_it_is_drawn_by_the_seed_and_by_the_user(self):
        x = np.tile(np.arange(20.0), 50)
        data = UserData.from_arrays(x, users=np.repeat(np.arange(50), 20))
        one, other = (data.cap(3, random_state=seed).X.reshape(50, 3) for seed in (1, 2))
        assert (np.sort(one) != np.sort(other)).any(axis=1).mean() > 0.9
        # Everybody holds the same, and keeps something else: a pair agrees with chance 1 / 1140.
        assert len({tuple(sorted(each)) for each in one.tolist()}) > 40

    def test_every_number_of_a_record_takes_part(self):
        """Also the target, and the middle of wide records."""
        for changed in range(4):
            X, y = np.zeros((400, 3)), np.zeros(400)
            (y if changed == 3 else X[:, changed])[:] = np.tile(np.arange(40.0), 10)
            data = UserData.from_arrays(X, y, users=np.repeat(np.arange(10), 40))
            capped = data.cap(5, random_state=0)
            values = (capped.y if changed == 3 else capped.X[:, changed]).reshape(10, 5)
            assert len({tuple(sorted(each)) for each in values.tolist()}) == 10

    def test_copies_are_as_likely_as_other_records(self):
        """Of nine copies and three others four are kept: 4 / 12 of the copies, on average."""
        x = np.tile([0.0] * 9 + [1.0, 2.0, 3.0], 4000)
        data = UserData.from_arrays(x, users=np.repeat(np.arange(4000), 12))
        values = data.cap(4, random_state=5).X.ravel()
        counts = np.bincount(values.astype(int)) / 4000
        # The copies that are kept have variance 4 * 9/12 * 3/12 * 8/11; others are one or none.
        assert abs(counts[0] - 3.0) < 6 * np.sqrt(6 / 11 / 4000)
        assert np.abs(counts[1:] - 1 / 3).max() < 6 * np.sqrt(2 / 9 / 4000)

    @pytest.mark.parametrize("kind", ["i1", "i8", "u2", "f2", "f4", "f8"])
    def test_numbers_count_and_not_their_types(self, kind):
        X, y, ids = small_records()
        expected = kept(UserData.from_arrays(X, y, users=ids), 5, random_state=0)
        table = pa.table({"id": ids, "a": X[:, 0].astype(kind), "b": X[:, 1].astype(kind), "y": y})
        asked = {"user": "id", "features": ["a", "b"], "target": "y"}
        assert kept(UserData.from_frame(table, **asked), 5, random_state=0) == expected
        layout = Layout.of(table.schema, cap=5, random_state=0, **asked)
        pieces = layout.together(map(layout.records, table.to_batches(70)))
        assert kept(pieces, 5, random_state=0) == expected
        arrays = UserData.from_arrays(X.astype(kind), y, users=ids)
        assert kept(arrays, 5, random_state=0) == expected

    def test_zeros_of_either_sign_are_copies(self):
        rng = np.random.default_rng(0)
        X, _, ids = small_records()
        signs = np.where(rng.random(X.shape) < 0.5, -1.0, 1.0)
        one = UserData.from_arrays(X, users=ids).cap(4, random_state=0)
        other = UserData.from_arrays(np.where(X == 0, X * signs, X), users=ids)
        assert np.array_equal(in_own_order(one).X, in_own_order(other.cap(4, random_state=0)).X)

    def test_the_own_order_follows_from_a_public_word(self):
        X, y, ids = small_records()
        data = UserData.from_arrays(X, y, users=ids)
        one, again, other = (in_own_order(data, word=word).X for word in (1, 1, 2))
        assert np.array_equal(one, again)
        assert not np.array_equal(one, other)

    @pytest.mark.parametrize("records", [1, 3])
    def test_few_are_remembered_by_the_smallest_words(self, records, monkeypatch):
        """Of a user with many different records, whatever comes first; others keep all."""
        monkeypatch.setattr(own_order, "_REMEMBERED", 4)
        X, y, ids = small_records()
        expected = kept(UserData.from_arrays(X, y, users=ids), records, random_state=3)
        turned = np.random.default_rng(2).permutation(len(ids))
        data = UserData.from_arrays(X[turned], y[turned], users=ids[turned])
        assert kept(data, records, random_state=3) == expected
        assert data.cap(30, random_state=0).record_counts().tolist() == [30] * 12


def settled(users):
    """Return users whose records lie as they are added up."""
    return settled_users(users, None, np.copy)
