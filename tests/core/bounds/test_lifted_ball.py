"""The lifted ball: lifts cost nothing, in exact integers and for every input; audits with twins."""

import itertools
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from quorate.core.bounds.grid import Ball, Grid
from quorate.core.bounds.lifted_ball import LiftedBall, lift
from quorate.core.guarantees import Relation
from quorate.means.present_mean import OrAbsent, gaussian_vote, marked

COORDINATE = st.floats(-3.0, 3.0) | st.sampled_from([1e308, -1e308, math.nan, math.inf, 1.0, -1.0])


def largest_change(rows):
    """Return the largest squared distance of two integer rows."""
    return max(
        int(np.sum((a - b) ** 2)) for a, b in itertools.combinations_with_replacement(rows, 2)
    )


class TestSensitivity:
    @given(st.lists(st.tuples(COORDINATE, COORDINATE), min_size=2, max_size=8), st.integers(-20, 0))
    def test_no_two_users_are_farther_apart_than_in_a_ball(self, points, power):
        rows = np.column_stack([np.array(points), np.zeros(len(points))])
        with np.errstate(all="ignore"):
            grid = Grid(LiftedBall(1.0, centre=[0.2, -0.1]), step=2.0**power)
            ball = Ball(1.0, dimension=2).change_in_steps(grid.step, Relation.REPLACE)[1]
            encoded = grid.encode(rows).astype(object)
        assert largest_change(encoded) <= ball
        assert grid.bound.change_in_steps(grid.step, Relation.REPLACE)[1] == ball
        alone = grid.bound.change_in_steps(grid.step, Relation.ADD_REMOVE)[1]
        assert max(int(np.sum(row**2)) for row in encoded) <= alone

    @given(st.lists(st.tuples(COORDINATE, COORDINATE), min_size=2, max_size=8), st.integers(-20, 0))
    def test_a_cone_is_free_under_both_relations(self, points, power):
        rows = np.column_stack([np.array(points), np.zeros(len(points))])
        with np.errstate(all="ignore"):
            grid = Grid(LiftedBall(1.0, centre=[0.2, -0.1], cone=True), step=2.0**power)
            encoded = grid.encode(rows).astype(object)
        for relation, moved in (
            (Relation.REPLACE, largest_change(encoded)),
            (Relation.ADD_REMOVE, max(int(np.sum(row**2)) for row in encoded)),
        ):
            ball = Ball(1.0, dimension=2).change_in_steps(grid.step, relation)[1]
            assert moved <= ball
            assert grid.bound.change_in_steps(grid.step, relation)[1] == ball

    def test_a_lift_of_the_other_shape_is_not_free_for_one_who_comes(self):
        """The broken twin: the high lift with the price of a cone."""
        rows = np.array([[0.0, 0.0]])
        encoded = Grid(LiftedBall(1.0, centre=[0.0]), step=2.0**-16).encode(rows)[0]
        cone = LiftedBall(1.0, centre=[0.0], cone=True)
        assert int(encoded[1]) ** 2 > cone.change_in_steps(2.0**-16, Relation.ADD_REMOVE)[1]

    def test_opposite_points_and_the_middle_reach_the_diameter(self):
        rows = np.array([[1.0, 0.0], [-1.0, 0.0], [0.0, 0.0], [0.5, 0.0]])
        encoded = Grid(LiftedBall(1.0, centre=[0.0]), step=2.0**-16).encode(rows)
        assert largest_change(encoded.astype(object)) == pytest.approx(4 * 2.0**32, rel=1e-4)

    def test_a_vote_for_absent_is_free_as_well(self):
        lifted = LiftedBall(1.0, centre=[0.0, 0.0])
        bound = OrAbsent(lifted, gaussian_vote(lifted))
        assert bound.vote == pytest.approx(1.0)
        assert bound.l2_diameter == pytest.approx(lifted.l2_diameter)
        rows = marked(np.array([[0.0, 0.0, 0.0], [np.nan, np.nan, 0.0], [1.0, 0.0, 0.0]]))
        grid = Grid(bound, step=2.0**-20)
        encoded = grid.encode(rows).astype(object)
        assert largest_change(encoded) <= bound.change_in_steps(grid.step, Relation.REPLACE)[1]

    def test_a_twin_with_a_higher_lift_is_caught(self):
        heights = lift(np.linspace(0.0, 1.0, 101))
        places = np.linspace(0.0, 1.0, 101)
        rows = np.column_stack([np.concatenate([places, -places]), np.tile(1.1 * heights, 2)])
        assert max(np.sum((a - b) ** 2) for a in rows for b in rows[:5]) > 4.01


class TestLift:
    def test_it_falls_from_the_centre_to_the_edge(self):
        heights = lift(np.linspace(0.0, 1.0, 50))
        assert np.all(np.diff(heights) < 0)
        assert heights[0] == pytest.approx(math.sqrt(3.0))
        assert heights[-1] == 0.0


@pytest.mark.parametrize("cone", [False, True])
def test_nobody_adds_nothing_where_the_place_of_the_lift_says_so(cone):
    bound = LiftedBall(1.0, centre=[0.5, 0.0], cone=cone)
    rows = np.array([[0.5, 0.0, 0.0], [np.nan, np.nan, np.nan], [9.0, 9.0, np.nan]])
    found = bound.clip(rows)
    assert found[0, -1] > 0.9
    assert not found[1:].any()
