"""Several vectors a person: how far one user moves them, by brute force under both relations."""

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from quorate.core.bounds.blocks import Blocks
from quorate.core.bounds.grid import Ball, Grid
from quorate.core.guarantees import Relation
from quorate.core.moves import GridMoves

STEP = 2.0**-20
ROWS = st.lists(st.lists(st.floats(allow_nan=True), min_size=6, max_size=6), min_size=2, max_size=2)


def blocks(norm, entry=np.inf):
    counts = Ball(2.0, dimension=3, norm=norm, signed=False, entry=entry)
    return Blocks((counts, Ball(1.0, dimension=3, norm=norm)))


def change(one, other):
    moved = (one - other).astype(object)
    longest = max(sum(abs(moved[:3])), sum(abs(moved[3:])))
    return sum(abs(moved)), sum(moved**2), longest


@pytest.mark.parametrize("norm", [1, 2])
@pytest.mark.parametrize("relation", Relation)
@given(rows=ROWS)
def test_nobody_moves_a_sum_further_than_it_says(norm, relation, rows):
    for bound in (blocks(norm), blocks(norm, entry=1.0)):
        mine, theirs = Grid(bound, step=STEP).encode(np.array(rows))
        other = theirs if relation is Relation.REPLACE else np.zeros_like(mine)
        l1, l2, longest = change(mine, other)
        assert l1 <= bound.change_in_steps(STEP, relation)[0]
        assert l2 <= bound.change_in_steps(STEP, relation)[1]
        assert longest <= bound.joint_in_steps(STEP, relation)[2]
        real = bound.change(relation)
        assert real[0] >= bound.change_in_steps(STEP, relation)[0] * STEP
        assert real[1] ** 2 >= bound.change_in_steps(STEP, relation)[1] * STEP**2


@pytest.mark.parametrize("relation", Relation)
def test_somebody_moves_it_as_far(relation):
    bound = blocks(1)
    rows = [[9.0, 0, 0, -9, 0, 0], [0.0, 9, 0, 9, 0, 0]]
    people = [*Grid(bound, step=STEP).encode(np.array(rows))]
    others = people if relation is Relation.REPLACE else [np.zeros(6, np.int64)]
    found = np.array([change(a, b) for a, b in itertools.product(people, others)], dtype=float)
    l1, l2 = bound.change_in_steps(STEP, relation)
    said = np.array([l1, l2, bound.joint_in_steps(STEP, relation)[2]])
    if relation is Relation.REPLACE:
        said[1] = found[:, 1].max()  # the squared L2 norm of L1 balls is not attained
    assert np.all(found.max(axis=0) > 0.999 * said)


def test_a_twin_that_bounds_all_blocks_together_is_caught():
    """One length for both: a person who fills one block fills the other as well."""
    together = Ball(2.0, dimension=6, norm=1)
    mine = Grid(blocks(1), step=STEP).encode(np.array([[9.0, 0, 0, 9, 0, 0]]))[0]
    assert sum(abs(mine)) > together.change_in_steps(STEP, Relation.ADD_REMOVE)[0]


def test_a_seal_says_how_many_blocks_there_are():
    moves = GridMoves(Grid(blocks(1), step=0.5), Relation.ADD_REMOVE)
    assert moves.joint("blocks_laplace") == ((2, 3), 4)
    alone = GridMoves(Grid(Ball(1.0, dimension=2, norm=1), step=0.5), Relation.REPLACE)
    assert alone.joint("blocks_laplace") == ((0,), 4)


def test_blocks_of_several_sizes_have_no_joint_noise():
    unlike = Blocks((Ball(1.0, dimension=3, norm=1), Ball(1.0, dimension=2, norm=1)))
    assert unlike.joint_in_steps(0.5, Relation.REPLACE) is None


def test_blocks_compare_by_value():
    assert blocks(1) == blocks(1) != blocks(2)
    assert len({blocks(1), blocks(1), blocks(2)}) == 2
