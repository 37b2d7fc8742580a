"""Users put together by engines: the same as users grouped from a table."""

import pickle
from itertools import pairwise

import numpy as np
import pytest

from quorate.users import UserData
from quorate.users.assembly import (
    numbered_records,
    numbered_users,
    ordered_users,
    records_at,
    settled_users,
)


def test_numbered_and_ordered_users_are_those_of_the_table():
    rng = np.random.default_rng(0)
    X, codes = rng.standard_normal((60, 2)), rng.integers(0, 9, 60)
    expected = UserData.from_arrays(X, X[:, 0], users=codes)
    mine = numbered_users(X, X[:, 0], codes, expected.keys(), "user", None)
    again = ordered_users(mine.X, mine.y, mine.offsets, mine.keys(), "user", None)
    for data in (mine, again):
        assert np.array_equal(data.X, expected.X)
        assert np.array_equal(data.y, expected.y)
        assert np.array_equal(data.user_means(), expected.user_means())
    assert np.array_equal(again.public_draws(3), expected.public_draws(3))


def test_users_without_records_keep_their_places():
    keys = np.array([3, 5, 9], dtype=np.uint64)
    data = numbered_users(np.ones((2, 1)), None, np.array([2, 0]), keys, "patient", ("a",))
    assert data.record_counts().tolist() == [1, 0, 1]
    assert (data.unit, data.feature_names) == ("patient", ("a",))


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
