"""The L1 ball: nobody leaves it, whatever they send, and what one user moves is exact."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from quorate.core.bounds.grid import Ball, Grid
from quorate.core.guarantees import Relation
from quorate.exceptions import ParameterError

NUMBERS = st.floats(allow_nan=True, allow_infinity=True)


class TestBound:
    @given(
        st.lists(st.tuples(NUMBERS, NUMBERS, NUMBERS), min_size=1, max_size=6), st.integers(-9, 0)
    )
    def test_no_integer_vector_leaves_it(self, rows, power):
        bound = Ball(1.7, centre=[0.3, -0.2, 0.0], norm=1)
        grid = Grid(bound, step=2.0**power)
        sums = np.abs(grid.encode(np.array(rows))).sum(axis=1)
        assert sums.max() <= bound.change_in_steps(grid.step, Relation.ADD_REMOVE)[0]

    def test_changes_are_reached(self):
        grid = Grid(Ball(1.0, centre=[0.0, 0.0], norm=1), step=2.0**-20)
        ends = grid.encode(np.array([[9.0, 0.0], [-9.0, 0.0]]))
        moved = np.abs(ends[0] - ends[1]).sum()
        assert 0 <= grid.l1_sensitivity(Relation.REPLACE) - moved <= 2

    def test_huge_values_keep_their_direction(self):
        row = Ball(1.0, centre=[0.0, 0.0], norm=1).clip([[1e308, -1e308]])[0]
        assert row == pytest.approx([0.5, -0.5])

    def test_bounds_of_other_sizes_differ(self):
        assert Ball(1.0, centre=[0.0], norm=1) == Ball(1.0, centre=[0.0], norm=1)
        assert Ball(1.0, centre=[0.0], norm=1) != Ball(2.0, centre=[0.0], norm=1)

    def test_a_radius_is_positive(self):
        with pytest.raises(ParameterError):
            Ball(0.0, centre=[0.0], norm=1)
