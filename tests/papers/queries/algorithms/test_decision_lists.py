"""Decision lists: every function of three features, and the tolerance in between."""

import numpy as np
import pytest

from quorate.exceptions import ParameterError
from quorate.learners.concepts import DecisionLists
from quorate.papers.queries import OneRound, Population
from quorate.papers.queries.algorithms import DecisionListQueries
from quorate.papers.queries.oracles import ExactOracle, RandomlyMovedOracle

LISTS = DecisionLists(3)


@pytest.mark.parametrize("index", range(0, LISTS.size, 5))
def test_every_list_is_found_against_answers_within_the_tolerance(index):
    population = Population.uniform_cube(3, LISTS.concept(index))
    algorithm = DecisionListQueries(3, tolerance=0.01)
    assert population.error(algorithm.run(ExactOracle(population))) == 0.0
    for seed in range(5):
        oracle = RandomlyMovedOracle(population, random_state=seed)
        assert population.error(algorithm.run(oracle)) == 0.0
        assert [len(batch) for batch in oracle.asked] <= list(algorithm.rounds)
        assert oracle.n_rounds <= len(algorithm.rounds)


def test_wrong_labels_need_an_allowance():
    clean = Population.uniform_cube(4, DecisionLists(4).concept(600))
    X = np.concatenate([clean.X, clean.X])
    y = np.concatenate([clean.y, 1 - clean.y])
    shares = np.concatenate([np.full(16, 0.9 / 16), np.full(16, 0.1 / 16)])
    noisy = Population(X, y, shares)
    tolerant = DecisionListQueries(4, noise=0.15).run(ExactOracle(noisy))
    strict = DecisionListQueries(4, noise=0.0).run(ExactOracle(noisy))
    assert clean.error(tolerant) == 0.0
    assert clean.error(strict) > 0.0


def test_it_needs_its_rounds():
    population = Population.uniform_cube(3, LISTS.concept(40))
    with pytest.raises(ParameterError, match="one round"):
        DecisionListQueries(3).run(OneRound(ExactOracle(population)))


def test_the_length_is_kept():
    population = Population.uniform_cube(3, LISTS.concept(40))
    oracle = ExactOracle(population)
    found = DecisionListQueries(3, length=1).run(oracle)
    assert oracle.n_rounds <= 2
    assert len(getattr(found, "rules", ())) <= 1
