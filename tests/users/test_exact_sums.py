"""Sums per user are exact sums, rounded once: nothing but the user's own numbers can move a bit."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from quorate.users import exact_sums
from quorate.users.data import UserData
from quorate.users.exact_sums import exact_sum, sums_by_user
from quorate.users.grouping import order_by_user


def kinds(rng, n, d):
    """Return matrices whose sums are hard in different ways."""
    normal = rng.normal(size=(n, d))
    wild = normal.copy()
    wild[rng.integers(n, size=4)] = [[1e308], [-1e308], [np.inf], [np.nan]]
    cancelling = np.concatenate([normal, -normal * (1 + 2.0**-52 * (np.arange(n)[:, None] % 3))])
    return {
        "normal": normal,
        "many scales": np.ldexp(normal, rng.integers(-60, 60, size=(n, d))),
        "all scales": np.ldexp(normal, rng.integers(-1060, 1000, size=(n, d))),
        "integers": rng.integers(-2, 3, size=(n, d)).astype(float),
        "decimals": np.round(normal, 2),
        "wild": wild,
        "cancelling": cancelling,
        "tiny": np.round(normal * 20) * 5e-324,
        "sparse": normal * (rng.random((n, d)) < 0.2),
        "huge": np.where(np.arange(n)[:, None] == 3, 1e16, normal),
    }


def offsets_of(codes, n_users):
    return np.concatenate([[0], np.cumsum(np.bincount(codes, minlength=n_users))])


def same(a, b):
    return np.array_equal(a, b, equal_nan=True)


@pytest.mark.parametrize("kind", list(kinds(np.random.default_rng(0), 8, 1)))
@pytest.mark.parametrize("block", [7, 2**17])
class TestExact:
    def test_every_sum_is_the_exact_one_rounded_once(self, kind, block, monkeypatch):
        monkeypatch.setattr(exact_sums, "_BLOCK", block)
        rng = np.random.default_rng(1)
        for d in (1, 3):
            values = kinds(rng, 60, d)[kind]
            codes = rng.integers(0, 7, len(values)).astype(np.int32)
            weights = rng.normal(size=len(values))
            order, offsets = order_by_user(codes, 8), offsets_of(codes, 8)
            for factors in (None, weights):
                with np.errstate(all="ignore"):
                    products = values if factors is None else values * factors[:, None]
                    found = sums_by_user(values, offsets, order=order, weights=factors)
                    expected = [[exact_sum(c) for c in products[codes == u].T] for u in range(8)]
                assert same(found, np.array(expected))

    def test_neither_the_order_nor_the_others_move_a_bit(self, kind, block, monkeypatch):
        monkeypatch.setattr(exact_sums, "_BLOCK", block)
        rng = np.random.default_rng(2)
        values = kinds(rng, 60, 2)[kind]
        codes = np.sort(rng.integers(0, 6, len(values)))
        alone = [sums_by_user(values[codes == u], np.array([0, sum(codes == u)])) for u in range(6)]
        for _ in range(5):
            mixed = rng.permutation(len(values))
            found = sums_by_user(
                values[mixed], offsets_of(codes, 6), order=order_by_user(codes[mixed], 6)
            )
            assert same(found, np.concatenate(alone))


def test_plain_sums_do_depend_on_the_order():
    rng = np.random.default_rng(3)
    values = rng.normal(size=(50, 3))
    plain = {values[rng.permutation(50)].sum(axis=0).tobytes() for _ in range(20)}
    exact = {
        sums_by_user(values[rng.permutation(50)], np.array([0, 50])).tobytes() for _ in "12345"
    }
    assert len(plain) > 1
    assert len(exact) == 1


@given(st.lists(st.floats(allow_nan=False, allow_infinity=False, width=64), max_size=12))
@settings(max_examples=200, deadline=None)
def test_floats_of_all_sizes_give_the_sum_of_python(numbers):
    values = np.array(numbers, dtype=np.float64)[:, None]
    found = sums_by_user(values, np.array([0, len(values)]))[0, 0]
    assert found == exact_sum(values[:, 0])
    if np.abs(values).max(initial=0.0) < 2.0**900:
        assert found == math.fsum(numbers)


def test_users_without_records_have_zero():
    assert sums_by_user(np.zeros((0, 2)), np.array([0, 0, 0])).tolist() == [[0, 0], [0, 0]]
    assert sums_by_user(np.ones((4, 1)), np.array([0, 0, 4, 4])).tolist() == [[0], [4], [0]]


def test_user_means_follow_from_the_records_and_not_from_their_order():
    rng = np.random.default_rng(4)
    ids, rows = rng.integers(0, 40, 600), np.ldexp(rng.normal(size=(600, 3)), 3)
    first = UserData.from_arrays(rows, users=ids).user_means()
    mixed = rng.permutation(600)
    assert np.array_equal(first, UserData.from_arrays(rows[mixed], users=ids[mixed]).user_means())
