"""Sums of 32-bit floats: the same bits as in the order of addition, whoever needs that order."""

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from quorate.users import exact_sums
from quorate.users.exact_sums import smallest_safe, sums_in_any_order, too_small
from quorate.users.store import RecordStore, offsets_of

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
    mine = narrow.sums(offsets, narrow.rows)
    assert mine.dtype == np.float64
    assert mine.tobytes() == wide.sums(offsets, wide.rows).tobytes()


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
        arrived = sums_in_any_order(rows, codes, 1)
        assert (arrived != sums_in_any_order(rows[::-1], codes, 1)).any()
        mine = RecordStore(rows, None, codes).sums(offsets, rows)
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
        assert not np.isfinite(smallest_safe(rows, 3)).all()
        assert_as_if_wide(rows, codes, offsets)


class TestSafety:
    @settings(max_examples=100, deadline=None)
    @given(st.lists(single, min_size=1, max_size=30))
    def test_sums_of_safe_numbers_are_exact_in_every_order(self, values):
        rows = np.array(values, dtype=np.float32)[:, None]
        limits = smallest_safe(rows, len(rows))
        kept = np.delete(rows, too_small(rows, limits), axis=0)[:, 0].astype(np.float64)
        exact = sum(map(Fraction, kept.tolist()), start=Fraction(0))
        for turned in (kept, kept[::-1], np.sort(kept)):
            total = 0.0
            for value in turned.tolist():
                total += value
            assert Fraction(total) == exact

    def test_the_limit_is_needed(self):
        """The broken twin: a limit 2^6 times smaller lets a sum through that is rounded."""
        rows = np.full((512, 1), 2.0 - 2.0**-23, dtype=np.float32)
        rows[0] = 2.0**-24 * (1 + 2.0**-23)
        limits = smallest_safe(rows, len(rows))
        assert too_small(rows, limits).tolist() == [0]
        assert too_small(rows, limits / 2**6).size == 0
        exact = sum(map(Fraction, rows[:, 0].tolist()), start=Fraction(0))
        assert Fraction(float(sums_in_any_order(rows, np.zeros(512, np.int32), 1)[0, 0])) != exact

    @pytest.mark.parametrize("width", [1, 3, 2000])
    def test_no_row_is_missed_wherever_it_lies(self, width):
        rows = np.ones((1500, width), dtype=np.float32)
        places = [0, 700, 1023, 1499]
        rows[places, -1] = 1e-20
        rows[5] = 0.0
        assert too_small(rows, smallest_safe(rows, 100)).tolist() == places
