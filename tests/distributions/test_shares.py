"""What users hold of each category, each from their own records."""

import numpy as np
import pytest

from crowds_of_shares import crowd_of
from quorate.core.bounds.grid import Grid, Interval
from quorate.core.users import UserData
from quorate.distributions.shares import (
    CategoryCodes,
    IntervalCodes,
    ShareRows,
    Weights,
    dense_shares,
)
from sealing import total_of


class TestShares:
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

    @pytest.mark.parametrize("value", [-1.0, 0.5, 3.0, 1e308, -0.0])
    def test_what_is_no_category_is_none(self, value):
        expected = 0 if value == 0 else -1
        assert CategoryCodes(3)(crowd_of([[value]])).tolist() == [expected]

    def test_intervals_are_closed_on_the_left_and_open_at_the_ends(self):
        codes = IntervalCodes((0.0, 1.0, 2.0))(crowd_of([[-1e308, 0, 0.999, 1.0, 2.0, 1e308]]))
        assert codes.tolist() == [0, 0, 0, 1, 1, 1]


@pytest.mark.parametrize(("up", "expected"), [(False, 64 + 21), (True, 64 + 22)])
def test_weights_are_whole_steps_that_the_grid_keeps(up, expected):
    line = Interval(0.0, 1.0, centre=0.0)
    weights = Weights(CategoryCodes(2), line, steps=64, cap=3, up=up)
    crowd = crowd_of([[0.0, 1.0, 1.0, 0.0], [1.0, 9.0], [], [5.0]])
    assert total_of(crowd, weights, Grid(line, 2.0**-6)).tolist() == [expected]


def test_rows_of_shares_are_each_users_own():
    rng = np.random.default_rng(0)
    table = rng.integers(-1, 3, size=(60, 2)).astype(float)
    users = np.sort(rng.integers(0, 12, 60))
    coders, sizes = (CategoryCodes(3, column=0), CategoryCodes(3, column=1)), (3, 3)
    rows = ShareRows(coders, sizes)(UserData.from_arrays(table, users=users))
    for place, user in enumerate(np.unique(users)):
        mine = table[users == user]
        alone = ShareRows(coders, sizes)(UserData.from_arrays(mine, users=[user] * len(mine)))
        assert rows.record_counts()[place] == alone.record_counts()[0]
        together = rows.take([place]).X
        assert np.array_equal(together, alone.X)
        assert together.sum(axis=1) == pytest.approx([2.0] * len(together))
