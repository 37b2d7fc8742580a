"""Sums of 32-bit floats: the same bits as in the order of addition, whoever needs that order."""

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from quorate.core.users import exact_sums
from quorate.core.users.exact_sums import sums_in_any_order
from quorate.core.users.store import RecordStore, offsets_of

single = st.floats(width=32, allow_nan=False, allow_infinity=False)
close = st.floats(min_value=-4.0, max_value=4.0, width=32)


def numbered(values, owners, n_users):
    rows = np.array(values, dtype=np.float32)
    codes = np.array(owners, dtype=np.int32)
    offsets = offsets_of(np.bincount(codes, minlength=n_users))
    return rows, codes, offsets


def assert_as_if_wide(rows, codes, offsets):
    narrow = RecordStore(rows, None, codes)
    wide = RecordStore(rows.astype(np.float64), None, codes)
    mine = narrow.own_sums(offsets)
    assert mine.dtype == np.float64
    assert mine.tobytes() == wide.own_sums(offsets).tobytes()


class TestSameBits:
    @settings(max_examples=150, deadline=None)
    @given(
        st.lists(
            st.tuples(st.one_of(single, close, st.sampled_from([0.0, -0.0, 1e-45])), close),
            min_size=1,
            max_size=40,
        ),
        st.data(),
    )
    def test_whatever_the_numbers_are(self, values, data):
        owners = data.draw(st.lists(st.integers(0, 3), min_size=len(values), max_size=len(values)))
        assert_as_if_wide(*numbered(values, owners, 5))

    @pytest.mark.parametrize("in_order", [False, True])
    def test_many_users_of_whom_few_hold_tiny_numbers(self, in_order):
        rng = np.random.default_rng(0)
        codes = rng.integers(0, 300, 40_000).astype(np.int32)
        codes = np.sort(codes) if in_order else codes
        rows = rng.standard_normal((40_000, 3)).astype(np.float32)
        rows[rng.integers(0, 40_000, 20), 1] *= np.float32(1e-12)
        offsets = offsets_of(np.bincount(codes, minlength=300))
        assert_as_if_wide(rows, None if in_order else codes, offsets)

    def test_without_the_order_the_tiny_numbers_would_be_lost(self):
        """The control: in the order of arrival a sum has other last bits."""
        rng = np.random.default_rng(0)
        values = rng.standard_normal((400, 30)) * 10.0 ** rng.integers(-20, 1, (400, 30))
        rows, codes, offsets = numbered(values, [0] * 400, 1)
        arrived, rounded = sums_in_any_order(rows, codes, 1, 400)
        assert rounded.all()
        assert (arrived != sums_in_any_order(rows[::-1], codes, 1, 400)[0]).any()
        mine = RecordStore(rows, None, codes).own_sums(offsets)
        assert (mine != arrived).any()
        assert np.allclose(mine, arrived)
        assert_as_if_wide(rows, codes, offsets)

    def test_more_users_than_records_in_a_block(self, monkeypatch):
        monkeypatch.setattr(exact_sums, "_ROWS", 8)
        rng = np.random.default_rng(1)
        rows = rng.standard_normal((500, 2)).astype(np.float32)
        codes = rng.integers(0, 100, 500).astype(np.int32)
        assert_as_if_wide(rows, codes, offsets_of(np.bincount(codes, minlength=100)))

    def test_numbers_that_are_no_numbers_take_the_order(self):
        rows, codes, offsets = numbered([[np.inf], [1.0], [1e-30], [2.0]], [0, 1, 1, 1], 2)
        assert sums_in_any_order(rows, codes, 2, 3)[1].tolist() == [False, True]
        assert_as_if_wide(rows, codes, offsets)


class TestSafety:
    @settings(max_examples=100, deadline=None)
    @given(st.lists(st.one_of(single, close), min_size=1, max_size=30))
    def test_a_sum_that_is_not_said_to_be_rounded_is_exact(self, values):
        """One user for each number of records; each holds the first ones."""
        owners = [user for user in range(len(values)) for _ in range(user + 1)]
        held = np.array([values[i] for user in range(len(values)) for i in range(user + 1)])
        rows, codes, _ = numbered(held[:, None], owners, len(values))
        for turned in (slice(None), slice(None, None, -1)):
            sums, rounded = sums_in_any_order(rows[turned], codes[turned], len(values), len(values))
            for user in np.flatnonzero(~rounded):
                own = rows[codes == user, 0].tolist()
                assert Fraction(float(sums[user, 0])) == sum(map(Fraction, own), Fraction(0))

    def test_the_limit_is_needed(self):
        """The broken twin: who is taken to hold fewer records is told a sum that is rounded."""
        rows = np.full((512, 1), 2.0 - 2.0**-23, dtype=np.float32)
        rows[0] = 2.0**-24 * (1 + 2.0**-23)
        owners = np.zeros(512, np.int32)
        assert sums_in_any_order(rows, owners, 1, 512)[1].all()
        sums, rounded = sums_in_any_order(rows, owners, 1, 8)
        assert not rounded.any()
        exact = sum(map(Fraction, rows[:, 0].tolist()), start=Fraction(0))
        assert Fraction(float(sums[0, 0])) != exact

    @pytest.mark.parametrize("width", [1, 3, 2000])
    @pytest.mark.parametrize("block", [100, 2**15])
    def test_no_row_is_missed_wherever_it_lies(self, width, block, monkeypatch):
        monkeypatch.setattr(exact_sums, "_ROWS", block)
        rows = np.ones((1500, width), dtype=np.float32)
        places = [0, 700, 1023, 1499]
        rows[places, -1] = 1e-20
        rows[5] = 0.0
        owners = np.minimum(np.arange(1500), 1499 - np.arange(1500)).astype(np.int32)
        rounded = sums_in_any_order(rows, owners, 750, 100)[1]
        assert np.flatnonzero(rounded).tolist() == sorted({min(p, 1499 - p) for p in places})

    def test_rows_that_lie_apart_are_the_same(self):
        rng = np.random.default_rng(3)
        apart = rng.standard_normal((3000, 5)).astype(np.float32)[:, 1:4]
        owners = rng.integers(0, 7, 3000).astype(np.int32)
        mine = sums_in_any_order(apart, owners, 7, 3000)
        other = sums_in_any_order(np.ascontiguousarray(apart), owners, 7, 3000)
        assert all(map(np.array_equal, mine, other))

    def test_nobody_holds_nothing(self):
        sums, rounded = sums_in_any_order(np.empty((0, 2), np.float32), np.empty(0, int), 3, 0)
        assert not sums.any()
        assert not rounded.any()
