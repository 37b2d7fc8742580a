"""Oracles that know the distribution keep their tolerances, and an adversary uses all of them."""

import numpy as np
import pytest

from quorate.exceptions import ParameterError
from quorate.learners.concepts import Constant
from quorate.papers.queries import Population, StatisticalQuery
from quorate.papers.queries.algorithms import HalfspaceQueries
from quorate.papers.queries.oracles import (
    ExactOracle,
    MovedOracle,
    RandomlyMovedOracle,
    against_all_signs,
)

CUBE = Population.uniform_cube(2, Constant(1))
QUERIES = [
    StatisticalQuery(function=lambda X, y: X[:, 0], tolerance=0.1),
    StatisticalQuery(function=lambda X, y: 3 * y - X[:, 1], low=-5, high=5, tolerance=0.5),
]


def test_the_exact_oracle_answers_with_means():
    assert ExactOracle(CUBE).answer(QUERIES).tolist() == [0.5, 2.5]


def test_moves_are_in_tolerances_and_follow_the_order_of_the_queries():
    oracle = MovedOracle(CUBE, moves=[1.0, -1.0, 0.5])
    assert oracle.answer(QUERIES) == pytest.approx([0.6, 2.0])
    assert oracle.ask(QUERIES[0]) == pytest.approx(0.55)
    with pytest.raises(ParameterError, match="at most 3 queries"):
        oracle.ask(QUERIES[0])


def test_random_moves_stay_within_the_tolerance_and_reach_far():
    oracle = RandomlyMovedOracle(CUBE, random_state=3)
    moves = np.array([oracle.ask(QUERIES[1]) - 2.5 for _ in range(400)]) / 0.5
    assert np.max(np.abs(moves)) <= 1
    assert np.max(moves) > 0.9
    assert np.min(moves) < -0.9


def test_all_signs_are_all_signs():
    assert len(list(against_all_signs(HalfspaceQueries(2), CUBE))) == 8
    with pytest.raises(ParameterError, match="too many oracles"):
        next(against_all_signs(HalfspaceQueries(30), Population.uniform_cube(2, Constant(0))))


@pytest.mark.parametrize("move", [1.01, -2.0, np.nan])
def test_a_move_beyond_the_tolerance_is_refused(move):
    with pytest.raises(ParameterError, match="between -1 and 1"):
        MovedOracle(CUBE, moves=[move])
