"""A user's shares never add up to more than a whole, whatever the user holds."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from crowds_of_shares import crowd_of
from quorate.distributions.shares import (
    CategoryCodes,
    IntervalCodes,
    ShareTotals,
    dense_shares,
    held,
)

LABELS = st.sampled_from([0.0, 1.0, 2.0, 3.0, 0.5, -1.0, 7.0, 1e300])
USERS = st.lists(st.lists(LABELS, max_size=9), min_size=1, max_size=5)


class RoundedShares(ShareTotals):
    """A twin that rounds shares up."""

    def __call__(self, part):
        users, places, counts, records = held(part, self.coder, self.categories)
        totals = np.zeros(self.categories + 1, dtype=np.int64)
        wholes = np.maximum(records, self.cap)[users]
        np.add.at(totals, places, -(-counts * self.steps // wholes))
        return totals


def broken(work, lists):
    """Whether some user alone leaves the simplex of ``steps``."""
    found = [work(crowd_of([mine])) for mine in lists]
    return any((alone < 0).any() or alone.sum() > work.steps for alone in found)


class TestSensitivity:
    @settings(max_examples=150)
    @given(lists=USERS, steps=st.sampled_from([1, 7, 64, 2**30]), cap=st.sampled_from([1, 2, 5]))
    def test_nobody_leaves_the_simplex(self, lists, steps, cap):
        work = ShareTotals(CategoryCodes(4), 4, steps=steps, cap=cap)
        assert not broken(work, lists)

    def test_rounding_up_is_caught(self):
        assert broken(RoundedShares(CategoryCodes(4), 4, steps=64), [[0, 1, 2]])

    @settings(max_examples=60)
    @given(lists=USERS)
    def test_totals_are_sums_over_users_alone(self, lists):
        work = ShareTotals(CategoryCodes(4), 4, steps=2**30, cap=3)
        alone = sum(work(crowd_of([mine])) for mine in lists)
        assert np.array_equal(work(crowd_of(lists)), alone)

    def test_some_pair_reaches_the_diameter(self):
        work = ShareTotals(CategoryCodes(2), 2, steps=64)
        first, second = work(crowd_of([[0, 0]])), work(crowd_of([[1]]))
        assert np.abs(first - second).sum() == 2 * 64


class TestShares:
    def test_people_count_once_and_absent_people_last(self):
        crowd = crowd_of([[0, 0, 1, 1], [1], [], [9.0]])
        assert ShareTotals(CategoryCodes(2), 2, steps=4)(crowd).tolist() == [2, 6, 8]

    def test_records_count_up_to_the_cap(self):
        crowd = crowd_of([[0] * 8, [1], []])
        assert ShareTotals(CategoryCodes(2), 2, steps=4, cap=4)(crowd).tolist() == [4, 1, 3 + 4]

    def test_rows_are_the_shares_in_every_block_size(self, monkeypatch):
        crowd = crowd_of([[0, 1, 1, 2], [], [2], [0, 0]])
        expected = [[0.25, 0.5, 0.25], [0, 0, 0], [0, 0, 1], [1, 0, 0]]
        for block in (1, 6, 2**20):
            monkeypatch.setattr("quorate.distributions.shares._BLOCK", block)
            rows = np.zeros((4, 3))
            absent = np.zeros(4, bool)
            for place, shares, gone in dense_shares(crowd, CategoryCodes(3), 3):
                rows[place], absent[place] = shares, gone
            assert rows.tolist() == expected
            assert absent.tolist() == [False, True, False, False]

    def test_a_giant_user_overflows_nothing(self):
        crowd = crowd_of([np.zeros(200_000), [1]])
        totals = ShareTotals(CategoryCodes(2), 2, steps=2**30)(crowd)
        assert totals.tolist() == [2**30, 2**30, 0]

    @pytest.mark.parametrize("value", [-1.0, 0.5, 3.0, 1e308, -0.0])
    def test_what_is_no_category_is_none(self, value):
        expected = 0 if value == 0 else -1
        assert CategoryCodes(3)(crowd_of([[value]])).tolist() == [expected]

    def test_intervals_are_closed_on_the_left_and_open_at_the_ends(self):
        codes = IntervalCodes((0.0, 1.0, 2.0))(crowd_of([[-1e308, 0, 0.999, 1.0, 2.0, 1e308]]))
        assert codes.tolist() == [0, 0, 0, 1, 1, 1]
