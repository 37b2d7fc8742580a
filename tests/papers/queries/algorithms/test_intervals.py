"""Intervals: the best one, agnostically, up to two tolerances a cell."""

import numpy as np
import pytest

from quorate.exceptions import ParameterError
from quorate.learners.concepts import Intervals
from quorate.papers.queries import Population
from quorate.papers.queries.algorithms import IntervalQueries
from quorate.papers.queries.oracles import ExactOracle, RandomlyMovedOracle

HOURS = Intervals(12)
X = np.repeat(np.arange(12.0), 2)[:, np.newaxis]
Y = np.tile([0.0, 1.0], 12)


def mixed(seed):
    return Population(X, Y, np.random.default_rng(seed).dirichlet(np.ones(24)))


def errors(population):
    return np.array([population.error(HOURS.concept(i)) for i in range(HOURS.size)])


@pytest.mark.parametrize("seed", range(8))
def test_the_best_interval_is_found_exactly(seed):
    population = mixed(seed)
    found = IntervalQueries(HOURS).run(ExactOracle(population))
    assert population.error(found) == pytest.approx(errors(population).min())


@pytest.mark.parametrize("seed", range(8))
def test_moved_answers_cost_at_most_two_tolerances_a_cell(seed):
    population = mixed(seed)
    found = IntervalQueries(HOURS, tolerance=0.01).run(
        RandomlyMovedOracle(population, random_state=seed)
    )
    assert population.error(found) <= errors(population).min() + 2 * 12 * 0.01


def test_something_else_than_intervals_is_refused():
    with pytest.raises(ParameterError, match="Intervals"):
        IntervalQueries(24)
