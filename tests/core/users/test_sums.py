"""Sums per user: nothing but which records a user holds can move a bit."""

import numpy as np
import pytest

from quorate.core.users.data import UserData
from quorate.core.users.grouping import mix, order_by_user
from quorate.core.users.store import order_of_addition, sums_by_user


def kinds(rng, n, d):
    """Return matrices whose sums are hard in different ways."""
    normal = rng.normal(size=(n, d))
    wild = normal.copy()
    wild[rng.integers(n, size=4)] = [[1e308], [-1e308], [np.inf], [np.nan]]
    return {
        "normal": normal,
        "all scales": np.ldexp(normal, rng.integers(-1060, 1000, size=(n, d))),
        "integers": rng.integers(-2, 3, size=(n, d)).astype(float),
        "decimals": np.round(normal, 2),
        "wild": wild,
        "cancelling": np.concatenate([normal, -normal * (1 + 2.0**-52)]),
        "huge": np.where(np.arange(n)[:, None] % 5 == 3, 1e16, normal),
    }


def offsets_of(codes, n_users):
    return np.concatenate([[0], np.cumsum(np.bincount(codes, minlength=n_users))])


def sums(values, codes, n_users=7, targets=None, weights=None):
    with np.errstate(all="ignore"):
        offsets = offsets_of(codes, n_users)
        order = order_of_addition(values, targets, offsets, codes)
        return sums_by_user(values, offsets, order, weights)


def same(a, b):
    return np.array_equal(a, b, equal_nan=True)


@pytest.mark.parametrize("kind", kinds(np.random.default_rng(0), 8, 1))
def test_neither_the_order_nor_the_others_move_a_bit(kind):
    rng = np.random.default_rng(1)
    values = kinds(rng, 90, 3)[kind]
    codes = rng.integers(0, 7, len(values)).astype(np.int32)
    targets = rng.integers(0, 2, len(values)).astype(float)
    expected = sums(values, codes, targets=targets, weights=targets - 0.3)
    for _ in range(5):
        mixed = rng.permutation(len(values))
        others = rng.permutation(len(values))
        held = (values[mixed], codes[mixed])
        found = sums(*held, targets=targets[mixed], weights=targets[mixed] - 0.3)
        assert same(found, expected)
        # Everybody but user 0 changes.
        changed = np.where((codes == 0)[:, None], values, values[others])
        assert same(sums(changed, codes)[0], sums(values, codes)[0])


def test_plain_sums_do_depend_on_the_order():
    rng = np.random.default_rng(3)
    values, codes = rng.normal(size=(50, 3)), np.zeros(50, np.int32)
    orders = [rng.permutation(50) for _ in range(20)]
    offsets = np.array([0, 50])
    plain = {sums_by_user(values[o], offsets, np.arange(50)).tobytes() for o in orders}
    ours = {sums(values[o], codes, 1).tobytes() for o in orders}
    assert len(plain) > 1
    assert len(ours) == 1


def test_hashes_that_need_all_their_bits_are_told_apart(monkeypatch):
    rng = np.random.default_rng(4)
    values, codes = rng.normal(size=(60, 2)), np.repeat(np.arange(3), 20)
    low = np.arange(60, dtype=np.uint64)
    table = {row.tobytes(): word for row, word in zip(values, low, strict=True)}

    def close(rows, targets):
        return np.array([table[row.tobytes()] for row in rows], dtype=np.uint64)

    monkeypatch.setattr("quorate.core.users.own_order._end_hashes", close)
    mixed = rng.permutation(60)
    assert same(sums(values, codes, 3), sums(values[mixed], codes[mixed], 3))


def test_the_order_is_by_user_and_complete():
    rng = np.random.default_rng(5)
    codes = rng.integers(0, 7, 100).astype(np.int32)
    order = order_of_addition(rng.normal(size=(100, 2)), None, offsets_of(codes, 9), codes)
    assert sorted(order.tolist()) == list(range(100))
    assert (np.diff(codes[order]) >= 0).all()
    few = np.array([1, 0, 1, 0])
    rows = np.zeros((4, 1))
    assert (order_of_addition(rows, None, np.array([0, 2, 4]), few) == order_by_user(few, 2)).all()


def test_sums_and_weights_are_what_they_say():
    rng = np.random.default_rng(6)
    codes, values = rng.integers(0, 7, 50).astype(np.int32), rng.standard_normal((50, 3))
    weights = rng.standard_normal(50)
    expected = [(values * weights[:, None])[codes == u].sum(axis=0) for u in range(8)]
    assert np.allclose(sums(values, codes, 8, weights=weights), expected)
    assert sums(np.zeros((0, 2)), np.zeros(0, np.int32), 2).tolist() == [[0, 0], [0, 0]]


def test_user_means_follow_from_the_records_and_not_from_their_order():
    rng = np.random.default_rng(4)
    ids, rows = rng.integers(0, 40, 600), rng.normal(size=(600, 3))
    first = UserData.from_arrays(rows, users=ids)
    mixed = rng.permutation(600)
    second = UserData.from_arrays(rows[mixed], users=ids[mixed])
    assert np.array_equal(first.user_means(), second.user_means())
    parts = [part.user_means() for part in second.batches(50)]
    assert np.array_equal(first.user_means(), np.concatenate(parts))


def test_the_sign_of_a_zero_and_the_bits_of_a_nan_move_nothing():
    """SQLite and PostgreSQL store -0.0 as 0.0, and a missing value has many bit patterns."""
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(60, 2))
    rows[::7, 1] = 0.0
    rows[3, 1] = np.nan
    other = rows.copy()
    other[::7, 1] = -0.0
    other[3, 1] = np.array([0xFFF8000000000001], dtype=np.uint64).view(np.float64)[0]
    offsets = np.arange(0, 61, 6)
    first, second = (order_of_addition(each, None, offsets) for each in (rows, other))
    assert np.array_equal(first, second)


def test_records_made_to_have_one_hash_are_added_up_as_if_their_owner_were_alone():
    """The hash is public, so a user can hold different records that share it.

    Their order must not be left to a sort that looks at everybody; a second hash decides it.
    """
    odd = [int(each) for each in (mix(np.arange(3, dtype=np.uint64)) | np.uint64(1))]
    inverse = pow(odd[1], -1, 2**64)
    first = np.array([1.0, 1e16]).view(np.uint64)
    whole = (int(first[0]) * odd[0] + int(first[1]) * odd[1]) % 2**64
    crafted = [first.view(np.float64)]
    for value in np.arange(3.0, 103.0):
        bits = int(np.array([value]).view(np.uint64)[0])
        other = ((whole - bits * odd[0]) * inverse) % 2**64
        crafted.append(np.array([bits, other], dtype=np.uint64).view(np.float64))
    held = np.array(crafted)
    held = held[np.all(np.isfinite(held), axis=1)]
    assert len(held) > 50
    alone = order_of_addition(held, None, np.array([0, len(held)]))
    assert np.array_equal(
        held[::-1][order_of_addition(held[::-1], None, np.array([0, len(held)]))], held[alone]
    )
    rng = np.random.default_rng(0)
    for size in (3, 50, 400):
        others = rng.normal(size=(size, 2))
        rows = np.concatenate([held, others])
        order = order_of_addition(rows, None, np.array([0, len(held), len(rows)]))
        assert np.array_equal(order[: len(held)], alone)
