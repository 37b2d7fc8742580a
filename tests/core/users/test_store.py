"""Records keep their user, whatever order they lie in, and nobody moves another one's bits."""

import pickle
from itertools import pairwise

import numpy as np
import pytest

from quorate.core.users import UserData
from quorate.core.users.data import numbered_records
from quorate.core.users.store import (
    RecordStore,
    minus_row,
    offsets_of,
    records_at,
    row_lengths,
    row_products,
    settled_users,
)

RNG = np.random.default_rng(7)


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


def test_settled_users_have_the_sums_that_they_had():
    rng = np.random.default_rng(1)
    X, codes = rng.standard_normal((500, 3)), rng.integers(0, 40, 500)
    people = UserData.from_arrays(X, X[:, 0], users=codes)
    settled = settled_users(people, lambda rows, _: rows, lambda targets: targets)
    assert np.array_equal(settled.user_sums(), people.user_sums())
    weighted = people.user_sums(weights=people.y)
    assert np.array_equal(settled.user_sums(weights=settled.y), weighted)
    assert np.array_equal(settled.order_of_addition(), np.arange(500))
    for part, whole in zip(settled.batches(60), people.batches(60), strict=True):
        assert np.array_equal(part.user_sums(), whole.user_sums())
    # The broken twin: as the records came, the last bits are others.
    owned = [people.X[a:b].tolist() for a, b in pairwise(people.offsets)]
    assert any(
        sum(np.array(rows)).tolist() != sums.tolist()
        for rows, sums in zip(owned, people.user_sums(), strict=True)
    )


@pytest.mark.parametrize("by_count", [False, True])
def test_records_are_put_in_their_places_when_all_are_asked_for(by_count):
    rng = np.random.default_rng(4)
    X, codes = rng.standard_normal((500, 3)), rng.integers(0, 40, 500)
    people = UserData.from_arrays(X, X[:, 0], users=codes)
    moved = settled_users(people, lambda rows, _: rows, np.negative, by_count=by_count)

    def deferred():
        return settled_users(people, None, np.negative, by_count=by_count)

    def lies_as_it_came(data):
        return np.shares_memory(data._store.rows, X)

    late = deferred()
    assert late.user_sums().tobytes() == moved.user_sums().tobytes()
    assert np.array_equal(late.y, moved.y)
    assert np.array_equal(late.order_of_addition(), moved.order_of_addition())
    for places in (slice(7, 90), rng.permutation(500)[:60], np.arange(12).reshape(3, 4)):
        assert np.array_equal(records_at(late, places), moved.X[places])
    assert np.array_equal(late.take([3, 1]).X, moved.take([3, 1]).X)
    own = rng.standard_normal((500, 2))
    assert late.user_sums(own).tobytes() == moved.user_sums(own).tobytes()
    # The caller's own table given as values stands for one row per record in the order of X.
    assert late.user_sums(X).tobytes() == moved.user_sums(X).tobytes()
    assert lies_as_it_came(late)
    assert np.array_equal(pickle.loads(pickle.dumps(late)).X, moved.X)
    assert np.array_equal(numbered_records(deferred())[0], moved.X)
    for part, other in zip(deferred().batches(60), moved.batches(60), strict=True):
        assert np.array_equal(part.X, other.X)
        assert part.user_sums().tobytes() == other.user_sums().tobytes()
    assert np.array_equal(late.X, moved.X)
    assert not lies_as_it_came(late)
    assert np.array_equal(people.X, UserData.from_arrays(X, users=codes).X)


def test_settling_does_not_see_the_order_of_arrival():
    rng = np.random.default_rng(2)
    X, codes = rng.standard_normal((300, 2)), np.sort(rng.integers(0, 20, 300))
    turned = rng.permutation(300)
    kept = [
        settled_users(UserData.from_arrays(rows, users=who), lambda r, _: 2 * r, lambda t: t)
        for rows, who in ((X, codes), (X[turned], codes[turned]))
    ]
    assert np.array_equal(kept[0].X, kept[1].X)
    assert np.array_equal(kept[0].user_sums(), kept[1].user_sums())


@pytest.mark.parametrize("who", [[0, 0, 1, 1], [1, 0, 0, 1], [0, 1, 0, 1]])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_a_change_in_place_never_touches_the_records_of_the_caller(who, dtype):
    rows = np.array([[4.0], [1.0], [3.0], [2.0]], dtype=dtype)
    people = UserData.from_arrays(rows, users=who)
    rooms = []

    def doubled(values, out):
        rooms.append(out)
        return np.multiply(values, 2.0, out=out)

    sums = people.user_sums()
    changed = settled_users(people, doubled, np.copy)
    np.testing.assert_array_equal(changed.user_sums(), 2.0 * sums)
    np.testing.assert_array_equal(people.user_sums(), sums)
    np.testing.assert_array_equal(rows.ravel(), [4.0, 1.0, 3.0, 2.0])
    # Rows that were put in order are a copy already, and no second one is made.
    assert len(rooms) == 1
    if people.order_of_addition().tolist() != [0, 1, 2, 3]:
        assert rooms[0] is not None


def test_by_count_users_lie_side_by_side_under_their_keys():
    rng = np.random.default_rng(3)
    X, codes = rng.standard_normal((400, 2)), rng.integers(0, 60, 400)
    people = UserData.from_arrays(X, X[:, 0], users=codes)
    alike = settled_users(people, lambda r, out: 3 * r, lambda t: -t, by_count=True)
    counts = alike.record_counts()
    assert np.all(np.diff(counts) >= 0)
    assert len(set(counts.tolist())) > 3
    assert np.array_equal(alike.order_of_addition(), np.arange(400))
    places = np.argsort(alike.keys())[np.argsort(np.argsort(people.keys()))]
    assert np.array_equal(alike.keys()[places], people.keys())
    plain = settled_users(people, lambda r, out: 3 * r, lambda t: -t)
    assert alike.user_sums()[places].tobytes() == plain.user_sums().tobytes()
    weighted = alike.user_sums(weights=alike.y)[places]
    assert weighted.tobytes() == plain.user_sums(weights=plain.y).tobytes()
    # Where everybody holds equally many, or more than the one before, nothing moves.
    even = UserData(X, offsets=np.arange(0, 401, 4))
    kept = settled_users(even, lambda r, out: r, np.copy, by_count=True)
    assert np.array_equal(kept.keys(), even.keys())


@pytest.mark.parametrize("width", [1, 3, 8, 17, 300])
def test_a_row_gives_the_same_bits_whatever_stands_around_it(width):
    rows, weights = RNG.standard_normal((41, width)), RNG.standard_normal((3, width))
    products, lengths = row_products(rows, weights), row_lengths(rows)
    for few in (rows[5:6], rows[3:20], np.asfortranarray(rows[::2])):
        places = [np.flatnonzero((rows == row).all(axis=1))[0] for row in few]
        assert np.array_equal(row_products(few, weights), products[places])
        assert np.array_equal(row_lengths(few), lengths[places])


def test_they_are_products_and_lengths():
    rows, weights = RNG.standard_normal((9, 5)), RNG.standard_normal((2, 5))
    assert np.allclose(row_products(rows, weights), rows @ weights.T)
    assert np.allclose(row_lengths(rows), np.linalg.norm(rows, axis=1))


def test_an_overflow_is_no_warning():
    with np.errstate(all="raise"):
        assert row_lengths(np.full((1, 2), 1e200)) == np.inf


@pytest.mark.parametrize(
    "shape", [(0, 3), (3, 0), (1, 1), (200, 3), (5, 700), (20_000, 3), (2, 20_000), (40, 100, 9)]
)
def test_a_row_is_taken_away_number_by_number(shape):
    rows, row = RNG.standard_normal(shape), RNG.standard_normal(shape[-1])
    out = np.empty(shape)
    assert minus_row(rows, row, out) is out
    assert np.array_equal(out, rows - row)
    minus_row(rows, row, rows)
    assert np.array_equal(rows, out)


def test_two_records_lie_in_one_order_whoever_else_holds_more():
    rng = np.random.default_rng(11)
    for _ in range(20):
        own, two, three = (rng.normal(size=(held, 3)) for held in (2, 2, 3))
        orders = []
        for records in (own, own[::-1]):
            for others in (two, three):
                people = UserData(
                    np.concatenate([records, others]), offsets=[0, 2, 2 + len(others)]
                )
                orders.append(people.X[people.order_of_addition()[:2]].tobytes())
        assert len(set(orders)) == 1
