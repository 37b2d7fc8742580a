"""Moves are never too small: held against brute force over small data sets."""

import itertools
from fractions import Fraction

import numpy as np
import pytest

from quorate.core.bounds.grid import Ball, Box, Grid, Interval
from quorate.core.bounds.simplex import Simplex
from quorate.core.guarantees import Relation
from quorate.core.moves import GridMoves, Moves
from quorate.exceptions import ParameterError

VALUES = [-9.0, -1.0, -0.3, 0.0, 0.4, 1.0, 9.0, np.nan, np.inf]


def changes(rows, relation):
    """Return every change of a sum by one user who holds one of some rows."""
    rows = [row.astype(object) for row in rows]
    if relation is Relation.ADD_REMOVE:
        return [*rows, *(-row for row in rows)]
    return [one - other for one, other in itertools.product(rows, rows)]


def broken(moves, found):
    """Return which lengths are smaller than a change that there is."""
    wrong = set()
    for change in found:
        size = [abs(each) for each in change]
        spread = max(change) - min(change) if len(change) > 1 else size[0]
        lengths = sum(size), sum(each**2 for each in size), max(size), spread
        stated = moves.l1, moves.l2_squared, moves.largest, moves.spread
        names = ("l1", "l2_squared", "largest", "spread")
        wrong |= {
            name for name, length, most in zip(names, lengths, stated, strict=True) if length > most
        }
    return wrong


BOUNDS = {
    "interval": Interval(-1.0, 1.0),
    "sum": Interval(0.0, 1.0, centre=0.0),
    "box": Box([-1.0, 0.0], [1.0, 0.5], centre=[0.0, 0.0]),
    "ball": Ball(1.0, dimension=2),
    "shares": Simplex(2),
}


@pytest.mark.parametrize("relation", Relation)
@pytest.mark.parametrize("name", BOUNDS)
def test_no_user_moves_a_total_further_than_its_grid_says(name, relation):
    bound = BOUNDS[name]
    grid = Grid(bound, step=0.25)
    rows = grid.encode(np.array(list(itertools.product(VALUES, repeat=bound.dimension))))
    moves = GridMoves(grid, relation)
    assert broken(moves, changes(list(rows), relation)) == set()
    # A broken twin: the same check sees lengths of half of a user.
    half = Moves(*(Fraction(each, 2) for each in (moves.l1, moves.l2_squared, moves.largest, 0)))
    assert "l1" in broken(half, changes(list(rows), relation))


@pytest.mark.parametrize("relation", Relation)
def test_counts_move_by_one_in_one_direction(relation):
    thresholds = np.array([0.0, 1.0, 2.0])
    rows = [(value <= thresholds).astype(np.int64) for value in (-1.0, 0.5, 1.5, 9.0)]
    found = changes(rows, relation)
    assert broken(Moves.of_counts(3), found) == set()
    assert broken(Moves.of_counts(2), found) == {"l1", "l2_squared"}


@pytest.mark.parametrize("relation", Relation)
def test_a_tally_moves_by_what_leaves_one_cell_and_enters_another(relation):
    rows = [np.eye(3, dtype=np.int64)[place] for place in range(3)]
    assert broken(Moves.of_tally(relation), changes(rows, relation)) == set()


def test_scores_of_users_who_add_at_least_nothing_move_one_way():
    rows = [np.array(each) for each in itertools.product((0, 1, 2), repeat=2)]
    one_way = Moves.of_scores(2, coordinates=2, one_sided=True)
    assert broken(one_way, changes(rows, Relation.ADD_REMOVE)) == set()
    assert broken(one_way, changes(rows, Relation.REPLACE)) == {"spread"}
    both = Moves.of_scores(2, coordinates=2, one_sided=False)
    assert broken(both, changes(rows, Relation.REPLACE)) == set()


class TestArithmetic:
    ONE = tuple(np.array(each) for each in itertools.product((-1, 0, 2), repeat=2))
    MOVES = Moves(4, 8, 2, 3)

    def pairs(self):
        return list(itertools.product(self.ONE, self.ONE))

    def test_of_a_sum(self):
        assert broken(self.MOVES, self.ONE) == set()
        found = [one + other for one, other in self.pairs()]
        assert broken(self.MOVES.plus(self.MOVES), found) == set()
        assert "l2_squared" in broken(Moves(8, 16, 4, 6), found)

    def test_of_a_multiple(self):
        found = [-3 * each for each in self.ONE]
        assert broken(self.MOVES.times(-3), found) == set()

    def test_of_two_vectors_side_by_side(self):
        found = [np.concatenate(pair) for pair in self.pairs()]
        assert broken(self.MOVES.beside(self.MOVES), found) == set()

    def test_of_some_coordinates(self):
        found = [each[:1] for each in self.ONE]
        assert broken(self.MOVES.of_some(1), found) == set()
        assert self.MOVES.of_some(1).l1 == 2

    @pytest.mark.parametrize("length", [-1, 0.5, float("nan"), None])
    def test_lengths_are_exact(self, length):
        with pytest.raises(ParameterError, match="exact"):
            Moves(length, 1, 1, 1)


@pytest.mark.parametrize("relation", Relation)
def test_several_tallies_move_each_as_one(relation):
    """Every user has a label in each; a twin that takes them for one tally is caught."""
    labels = itertools.product([-1, 0, 1, 2], repeat=2)
    rows = [np.r_[np.arange(2) == one, np.arange(2) == other].astype(int) for one, other in labels]
    found = changes(rows, relation)
    assert broken(Moves.of_tally(relation, labellings=2), found) == set()
    assert broken(Moves.of_tally(relation), found) == {"l1", "l2_squared"}
