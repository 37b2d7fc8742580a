"""Several simplices at once."""

import numpy as np
import pytest

from quorate.core.bounds.blocks import Blocks
from quorate.core.bounds.grid import Grid
from quorate.core.bounds.simplex import Simplex
from quorate.core.guarantees import Relation
from quorate.exceptions import ParameterError


def broken(grid, rows):
    """Whether two users are farther apart than the bound says."""
    l1, squared = grid.bound.change_in_steps(grid.step, Relation.REPLACE)
    moves = np.abs(rows[:, None, :] - rows[None, :, :]).astype(object)
    return (moves.sum(axis=-1) > l1).any() or ((moves**2).sum(axis=-1) > squared).any()


class OneWhole(Blocks):
    """A twin that forgets all simplices but one."""

    def change_in_steps(self, step, relation):
        return self.parts[0].change_in_steps(step, relation)


class TestBound:
    def test_no_two_users_are_farther_apart_than_the_bound_says(self):
        rng = np.random.default_rng(0)
        rows = rng.normal(size=(40, 7)) * 10.0 ** rng.integers(-2, 300, size=(40, 1))
        rows[3, 2] = np.nan
        grid = Grid(Blocks((Simplex(2), Simplex(4), Simplex(1))), 2.0**-10)
        assert not broken(grid, grid.encode(rows))

    def test_forgetting_a_simplex_is_caught(self):
        grid = Grid(OneWhole((Simplex(2), Simplex(2))), 2.0**-10)
        assert broken(grid, grid.encode([[1.0, 0, 1.0, 0], [0, 1.0, 0, 1.0]]))

    def test_bounds_compare_by_value(self):
        assert Blocks((Simplex(2), Simplex(3))) == Blocks((Simplex(2), Simplex(3)))
        assert Blocks((Simplex(2), Simplex(3))) != Blocks((Simplex(3), Simplex(2)))

    @pytest.mark.parametrize("parts", [(), (3,), [Simplex(2)]])
    def test_parts_that_make_no_sense_are_refused(self, parts):
        with pytest.raises(ParameterError):
            Blocks(parts)
