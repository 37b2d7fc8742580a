"""Records in released coordinates are those of one user each, to the last bit."""

import pickle
from dataclasses import replace
from functools import partial
from itertools import pairwise

import numpy as np
import pytest
from threadpoolctl import threadpool_limits

from quorate.core.users import UserData
from quorate.core.users.data import numbered_records
from quorate.core.users.store import records_at, rounded_users, rows_as_they_lie, settled_users
from quorate.models.class_losses import SmoothedHingeLoss, SoftmaxLoss
from quorate.models.coordinates.geometry import Geometry, Room, Whitened, WhitenedLoss
from quorate.models.coordinates.one_round import Centred
from quorate.models.losses import LogisticLoss, alike_users
from quorate.models.regression_losses import HuberLoss, SquaredLoss

# Many of one and of two records: a product of all of them is computed in another way than each.
HELD = [0, 1, 3, 3, 40, 57, 40, 2, 0, 130, 40, 700, 5, *[1] * 9, *[2] * 9]


def people(features=20, *, seed=0, shift=0):
    rng = np.random.default_rng(seed)
    room = np.empty(sum(HELD) * features + 16)
    rows = room[shift : shift + sum(HELD) * features].reshape(-1, features)
    rows[:] = rng.normal(size=rows.shape) + 3.0
    return UserData(rows, rng.integers(0, 2, sum(HELD)) * 1.0, offsets=np.cumsum([0, *HELD]))


def settled(users):
    return settled_users(users, lambda rows, _: rows, np.copy, by_count=True)


def geometry(features=20, seed=1):
    root = np.random.default_rng(seed).normal(size=(features, features))
    return Geometry(centre=np.linspace(2.0, 4.0, features), whitening=root @ root.T / features)


def turned(users, change, *, upright=False):
    """Return the records of each key before they are rounded, as bytes."""
    whole = np.empty(users.X.shape)
    for records, block in change._blocks(users, upright=upright):
        whole[records] = block.reshape(-1, whole.shape[1])
    owned = zip(users.keys().tolist(), pairwise(users.offsets.tolist()), strict=True)
    order = users.order_of_addition()
    return {key: sorted(row.tobytes() for row in whole[order[a:b]]) for key, (a, b) in owned}


def with_one_product(users, change):
    """Do the same with one product over everybody: the broken twin."""
    whole = (users.X - change.centre) @ change.whitening
    owned = zip(users.keys().tolist(), pairwise(users.offsets.tolist()), strict=True)
    order = users.order_of_addition()
    return {key: sorted(row.tobytes() for row in whole[order[a:b]]) for key, (a, b) in owned}


def differing(turn, features=20):
    """Return how many users come out otherwise alone, or elsewhere in memory, than among others."""
    change = Whitened(geometry(features).centre, geometry(features).whitening)
    among = people(features)
    expected = turn(among, change)
    count = sum(turn(settled(among), change)[key] != bits for key, bits in expected.items())
    for user, key in enumerate(among.keys().tolist()):
        alone = turn(settled(among.take([user])), change)
        count += alone[key] != expected[key]
    return count


@pytest.mark.parametrize("features", [1, 7, 20, 90])
def test_nobody_moves_a_bit_of_anybody_elses_records(features):
    assert differing(turned, features) == 0
    assert differing(partial(turned, upright=True), features) == 0


def test_one_product_over_everybody_is_caught():
    assert differing(with_one_product) > 0


def test_a_giant_users_records_do_not_depend_on_threads():
    rows = np.random.default_rng(5).normal(size=(5040, 90))
    users = UserData(rows, offsets=[0, 5000, 5040])
    change = Whitened(geometry(90).centre, geometry(90).whitening)
    found = []
    for threads in (1, 2):
        with threadpool_limits(threads):
            found.append(list(turned(users, change).values()))
    assert found[0] == found[1]


def in_place(users, change):
    """Return the records of each key, centred first and turned where they lay, as bytes."""
    users = settled(users)
    found = Whitened(None, change.whitening, by_count=True)(Centred(change.centre)(users))
    np.testing.assert_allclose(found.X, change(users).X, rtol=1e-4, atol=1e-4)
    owned = zip(users.keys().tolist(), pairwise(users.offsets.tolist()), strict=True)
    return {key: sorted(row.tobytes() for row in found.X[a:b]) for key, (a, b) in owned}


@pytest.mark.parametrize("features", [1, 7, 20, 90])
def test_nobody_moves_a_bit_of_records_that_are_turned_where_they_lie(features):
    around, among = geometry(features), people(features)
    change = Whitened(around.centre, around.whitening)
    expected, before = in_place(among, change), among.X.copy()
    for user, key in enumerate(among.keys().tolist()):
        assert in_place(among.take([user]), change)[key] == expected[key]
    np.testing.assert_array_equal(among.X, before)


@pytest.mark.parametrize("number", [False, True])
def test_records_are_turned_rounded_and_otherwise_left_alone(number):
    users, around = settled(people()), geometry()
    whitening = np.asarray(0.7) if number else around.whitening
    found = Whitened(around.centre, whitening)(users)
    exact = (users.X - around.centre) @ (0.7 * np.eye(20) if number else whitening)
    assert found.X.dtype == np.float32
    np.testing.assert_allclose(found.X, exact, rtol=1e-6, atol=1e-5)
    np.testing.assert_array_equal(found.y, users.y)
    np.testing.assert_array_equal(found.offsets, users.offsets)
    np.testing.assert_array_equal(found.keys(), users.keys())
    np.testing.assert_array_equal(found.order_of_addition(), users.order_of_addition())
    # They stay rounded in every part.
    assert {part.X.dtype.name for part in found.batches(100)} == {"float32"}
    assert found.take([4, 1]).X.dtype == np.float32


LOSSES = [
    SquaredLoss(),
    HuberLoss(intercept=False),
    LogisticLoss(),
    SmoothedHingeLoss(),
    SoftmaxLoss(classes=3),
]


@pytest.mark.parametrize("loss", LOSSES, ids=repr)
def test_gradients_are_those_of_records_turned_in_64_bits(loss):
    # Without an intercept nothing is centred.
    users, around = (
        settled(people()),
        replace(geometry(), centre=geometry().centre * loss.intercept),
    )
    theta = np.random.default_rng(2).normal(size=loss.dimension(20)) * 0.2
    moved = (users.X - around.centre) @ around.whitening
    exact = loss.user_gradients(UserData(moved, users.y, offsets=users.offsets), theta)
    change = Whitened(around.centre, around.whitening)
    found = WhitenedLoss(loss, around).user_gradients(change(users), theta)
    np.testing.assert_allclose(found, exact, atol=1e-5 * np.abs(exact).max())


@pytest.mark.parametrize("loss", LOSSES, ids=repr)
def test_gradients_in_32_bits_see_nobody_else_and_no_place_in_memory(loss):
    theta = np.random.default_rng(3).normal(size=loss.dimension(20))
    change = Whitened(geometry().centre, geometry().whitening, by_count=True)
    among = people()
    whole = change(settled(among))
    expected = dict(zip(whole.keys().tolist(), loss.user_gradients(whole, theta), strict=True))
    for user, key in enumerate(among.keys().tolist()):
        alone = loss.user_gradients(change(settled(among.take([user]))), theta)
        assert alone[0].tobytes() == expected[key].tobytes()
    # The same rounded records, four bytes further each time; as they lie, and one by one.
    rows, upright = rows_as_they_lie(whole)
    assert upright
    for given, stretches in ((rows, whole._store._upright), (whole.X, ())):
        expected = loss.user_gradients(rounded_users(settled(among), given, stretches), theta)
        for shift in range(1, 9):
            room = np.empty(given.size + 16, dtype=np.float32)
            moved = room[shift : shift + given.size].reshape(given.shape)
            moved[:] = given
            found = loss.user_gradients(rounded_users(settled(among), moved, stretches), theta)
            assert found.tobytes() == expected.tobytes()


@pytest.mark.parametrize("loss", [*LOSSES, SoftmaxLoss(classes=33)], ids=repr)
def test_numbers_that_lie_by_feature_are_the_same_records(loss):
    users = settled(people())
    whole = Whitened(geometry().centre, geometry().whitening, by_count=True)(users)
    rows, upright = rows_as_they_lie(whole)
    assert upright
    assert not np.array_equal(rows, whole.X)
    lying = rounded_users(users, np.array(whole.X))
    assert not rows_as_they_lie(lying)[1]
    theta = np.random.default_rng(4).normal(size=loss.dimension(20))
    expected = loss.user_gradients(lying, theta)
    np.testing.assert_allclose(loss.user_gradients(whole, theta), expected, atol=1e-5)
    # Who asks for the records changes nothing about them, nor about parts of the users.
    np.testing.assert_allclose(loss.user_gradients(whole, theta), expected, atol=1e-5)
    parts = list(whole.batches(150))
    assert any(rows_as_they_lie(part)[1] for part in parts)
    found = np.concatenate([loss.user_gradients(part, theta) for part in parts])
    assert found.tobytes() == loss.user_gradients(whole, theta).tobytes()
    np.testing.assert_array_equal(np.concatenate([part.X for part in parts]), lying.X)


def test_upright_records_come_back_lying():
    users = settled(people())
    whole = Whitened(geometry().centre, geometry().whitening, by_count=True)(users)
    lying = rounded_users(users, np.array(whole.X))
    some = [11, 4, 9, 0]
    np.testing.assert_array_equal(whole.take(some).X, lying.take(some).X)
    np.testing.assert_array_equal(whole.user_sums(), lying.user_sums())
    np.testing.assert_array_equal(settled(whole).X, settled(lying).X)
    np.testing.assert_array_equal(records_at(whole, slice(7, 99)), lying.X[7:99])
    np.testing.assert_array_equal(numbered_records(whole)[0], lying.X)
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(whole)).X, lying.X)
    exact = (users.X - geometry().centre) @ geometry().whitening
    np.testing.assert_allclose(whole.X, exact, rtol=1e-6, atol=1e-5)


def test_users_who_do_not_lie_by_count_keep_their_records_lying():
    # Some of them lie alone or side by side with others like them, and some do not.
    users = settled_users(people(), lambda rows, _: rows, np.copy)
    whole = Whitened(geometry().centre, geometry().whitening, by_count=True)(users)
    assert not rows_as_they_lie(whole)[1]
    assert not rows_as_they_lie(Whitened(np.zeros(20), np.eye(20), by_count=True)(people()))[1]


def test_nobody_decides_how_the_numbers_of_others_lie():
    """Sampled users lie by their keys: that all hold equally many is no public fact."""
    rng = np.random.default_rng(0)
    rows, change = rng.normal(size=(2401, 20)), Whitened(geometry().centre, geometry().whitening)
    one, other = np.arange(61) * 40, np.arange(61) * 40 + (np.arange(61) > 30)
    loss, theta = SquaredLoss(), np.linspace(-1.0, 1.0, 21)
    found = []
    for held, offsets in ((rows[np.r_[:1240, 1241:2401]], one), (rows, other)):
        users = UserData(held, np.zeros(len(held)), offsets=offsets, ids=np.arange(60))
        users = settled_users(users, None, np.copy)
        found.append(np.delete(loss.user_gradients(change(users), theta), 30, axis=0))
    assert found[0].tobytes() == found[1].tobytes()


def test_values_that_32_bits_cannot_hold_stop_nobody():
    rows = np.array([[1e308, 1.0], [1.0, 1.0], [-1e300, 0.0]])
    users = UserData(rows, np.ones(3), offsets=[0, 1, 2, 3])
    found = Whitened(np.zeros(2), 5.0 * np.eye(2))(users)
    assert np.isfinite(found.X[1]).all()
    assert not np.isfinite(found.X[0]).all()
    gradients = LogisticLoss().user_gradients(found, np.ones(3))
    assert np.isfinite(gradients[1]).all()


def test_users_who_are_alike_come_once_each():
    users, seen = people(3), []
    for alike, held in alike_users(users):
        owners = np.arange(users.n_users)[alike.owners]
        seen += owners.tolist()
        assert held.shape == (len(owners), HELD[owners[0]], 3)
        np.testing.assert_array_equal(users.X[alike.records], held.reshape(-1, 3))
    assert sorted(seen) == [user for user, held in enumerate(HELD) if held]
    assert list(alike_users(users.nobody())) == []


def test_a_room_grows_and_is_used_again():
    room = Room()
    small, large = room.like((2, 3)), room.like((5, 4))
    assert small.shape == (2, 3)
    assert np.shares_memory(large, room.like((2, 2)))
