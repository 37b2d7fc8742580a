"""Several simplices at once."""

import numpy as np
import pytest

from quorate.core.bounds.grid import Grid
from quorate.core.bounds.simplices import Simplices
from quorate.core.guarantees import Relation
from quorate.exceptions import ParameterError


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
