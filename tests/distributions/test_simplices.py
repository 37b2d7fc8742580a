"""Several simplices at once."""

import numpy as np
import pytest

from crowds_of_shares import crowd_of
from quorate.distributions.shares import CategoryCodes, IntervalCodes, ShareTotals
from quorate.distributions.simplices import ManyTotals, ShareRows, Simplices
from quorate.exceptions import ParameterError
from quorate.grid import Grid
from quorate.guarantees import Relation
from quorate.users import UserData


def broken(grid, rows):
    """Whether two users are farther apart than the bound says."""
    l1, squared = grid.bound.change_in_steps(grid.step, Relation.REPLACE)
    moves = np.abs(rows[:, None, :] - rows[None, :, :]).astype(object)
    return (moves.sum(axis=-1) > l1).any() or ((moves**2).sum(axis=-1) > squared).any()


class OneWhole(Simplices):
    """A twin that forgets all simplices but one."""

    def _wholes(self, relation):
        return 2


class TestBound:
    def test_no_two_users_are_farther_apart_than_the_bound_says(self):
        rng = np.random.default_rng(0)
        rows = rng.normal(size=(40, 7)) * 10.0 ** rng.integers(-2, 300, size=(40, 1))
        rows[3, 2] = np.nan
        grid = Grid(Simplices((2, 4, 1)), 2.0**-10)
        assert not broken(grid, grid.encode(rows))

    def test_forgetting_a_simplex_is_caught(self):
        grid = Grid(OneWhole((2, 2)), 2.0**-10)
        assert broken(grid, grid.encode([[1.0, 0, 1.0, 0], [0, 1.0, 0, 1.0]]))

    def test_bounds_compare_by_value(self):
        assert Simplices((2, 3)) == Simplices((2, 3))
        assert Simplices((2, 3)) != Simplices((3, 2))

    @pytest.mark.parametrize("sizes", [(), (0,), [2, 3]])
    def test_sizes_that_make_no_sense_are_refused(self, sizes):
        with pytest.raises(ParameterError):
            Simplices(sizes)


class TestTotals:
    def test_each_set_is_what_it_would_be_alone(self):
        crowd = crowd_of([[0, 1, 2, 2], [], [1.0], [7.0]])
        coders = (CategoryCodes(3), IntervalCodes((0.0, 1.5, 9.0)))
        both = ManyTotals(coders, (3, 2), steps=100, cap=2, absent=(True, False))(crowd)
        first = ShareTotals(coders[0], 3, steps=100, cap=2)(crowd)
        second = ShareTotals(coders[1], 2, steps=100, cap=2)(crowd)[:-1]
        assert both.tolist() == [*first.tolist(), *second.tolist()]


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
