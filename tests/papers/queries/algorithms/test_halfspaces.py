"""Chow parameters: exact for votes of equal weight, good for the rest."""

import numpy as np
import pytest

from quorate.learners.concepts.numeric.halfspaces import Halfspace
from quorate.papers.queries import Population
from quorate.papers.queries.algorithms import HalfspaceQueries
from quorate.papers.queries.oracles import ExactOracle, against_all_signs


def halfspace(*weights, offset=0.0):
    return Halfspace(
        weights=weights, offset=offset, names=tuple(f"x{j}" for j in range(len(weights)))
    )


def test_the_answers_are_the_chow_parameters():
    rule = halfspace(1.0, 1.0, 1.0, 0.0)
    population = Population.uniform_cube(4, rule)
    answers = ExactOracle(population).answer(HalfspaceQueries(4).queries())
    signs = 2 * population.X - 1
    labels = 2 * population.y - 1
    expected = [labels.mean(), *(labels[:, None] * signs).mean(axis=0)]
    assert answers == pytest.approx(expected)


@pytest.mark.parametrize("rule", [halfspace(1.0, -1.0, 1.0, 0.0), halfspace(1.0, 1.0, offset=-1.0)])
def test_votes_of_equal_weight_are_exact_against_all_oracles(rule):
    population = Population.uniform_cube(len(rule.weights), rule)
    algorithm = HalfspaceQueries(len(rule.weights))
    assert max(population.error(h) for h in against_all_signs(algorithm, population)) == 0.0


def test_other_votes_come_close():
    rng = np.random.default_rng(0)
    errors = []
    for _ in range(20):
        rule = halfspace(*rng.normal(size=8), offset=0.3)
        population = Population.uniform_cube(8, rule)
        errors.append(population.error(HalfspaceQueries(8).run(ExactOracle(population))))
    assert np.mean(errors) < 0.1
