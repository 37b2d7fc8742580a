"""Conjunctions and disjunctions: exact against every oracle within the tolerance."""

from itertools import combinations

import numpy as np
import pytest

from quorate.exceptions import ParameterError
from quorate.learners.concepts import Conjunctions, Constant, Disjunctions, Literals
from quorate.papers.queries import OneRound, Population, Reduction
from quorate.papers.queries.algorithms import (
    ConjunctionQueries,
    DisjunctionQueries,
    UniformConjunctionQueries,
)
from quorate.papers.queries.oracles import ExactOracle, MovedOracle, against_all_signs


def conjunction(chosen, features):
    if not chosen:
        return Constant(1)
    names = tuple(f"x{j}" for j in range(features))
    return Literals(literals=tuple((j, True) for j in chosen), any_of=False, names=names)


class TestAnyDistribution:
    @pytest.mark.parametrize(
        ("algorithm", "concepts"),
        [
            (ConjunctionQueries(3, negations=True), Conjunctions(3)),
            (DisjunctionQueries(3, negations=True), Disjunctions(3)),
        ],
    )
    def test_all_rules_are_found_whatever_the_oracle_does(self, algorithm, concepts):
        for index in range(concepts.size):
            population = Population.uniform_cube(3, concepts.concept(index))
            errors = [population.error(h) for h in against_all_signs(algorithm, population)]
            assert max(errors) == 0.0

    def test_the_error_is_at_most_two_tolerances_for_each_literal(self):
        """A distribution that hides literals just below the cut."""
        rule = conjunction([0], 3)
        cube = Population.uniform_cube(3, rule)
        hidden = 0.039  # of the positive mass violates each of the other two
        shares = {(1, 1, 1): 0.5, (1, 0, 1): hidden, (1, 1, 0): hidden}
        weights = [shares.get(tuple(row), 0.0) for row in cube.X.tolist()]
        weights[0] = 1 - sum(weights)
        population = Population(cube.X, cube.y, np.array(weights))
        algorithm = ConjunctionQueries(3, tolerance=0.02)
        worst = max(population.error(h) for h in against_all_signs(algorithm, population))
        assert worst == pytest.approx(2 * hidden)
        assert worst <= 2 * 0.02 * 3

    def test_some_record_of_a_user_speaks_louder_than_the_mean(self):
        rule = conjunction([0, 1, 2], 6)
        population = Population.uniform_cube(6, rule, records=16)
        mean, some = (
            min(
                population.mean(q) for q in ConjunctionQueries(6, reduction=reduction).queries()[3:]
            )
            for reduction in (Reduction.MEAN, Reduction.ANY)
        )
        assert mean == pytest.approx(1 / 16)
        assert some == pytest.approx(1 - (15 / 16) ** 16)


class TestUniform:
    @pytest.mark.parametrize("records", [1, 4])
    def test_monotone_conjunctions_of_up_to_three_of_eight_are_exact(self, records):
        """All 93 rules against the oracles that move all answers one way, and exactly."""
        algorithm = UniformConjunctionQueries(8, literals=3, records=records)
        for k in range(4):
            for chosen in combinations(range(8), k):
                rule = conjunction(chosen, 8)
                population = Population.uniform_cube(8, rule, records=records)
                for sign in (-1.0, 0.0, 1.0):
                    oracle = MovedOracle(population, moves=[sign] * 8)
                    assert algorithm.run(oracle) == rule

    def test_one_rule_against_all_oracles(self):
        rule = conjunction([0, 3, 5], 8)
        population = Population.uniform_cube(8, rule)
        found = set(against_all_signs(UniformConjunctionQueries(8), population))
        assert found == {rule}

    def test_a_larger_tolerance_would_confuse_two_rules(self):
        rule = conjunction([0, 3, 5], 8)
        population = Population.uniform_cube(8, rule)
        algorithm = UniformConjunctionQueries(8)
        answers = ExactOracle(population).answer(algorithm.queries())
        moved = answers.copy()
        moved[0] -= 1.1 * algorithm.tolerance
        moved[1] += 1.1 * algorithm.tolerance
        assert algorithm.conclude(answers) == rule
        assert algorithm.conclude(moved) != rule

    def test_it_asks_one_round_of_one_query_a_feature(self):
        population = Population.uniform_cube(5, Constant(1))
        door = OneRound(ExactOracle(population))
        UniformConjunctionQueries(5).run(door)
        assert (door.n_queries, door.n_rounds) == (5, 1)

    @pytest.mark.parametrize(("features", "literals"), [(3, 4), (60, 6), (3, 0)])
    def test_too_many_sets_are_refused(self, features, literals):
        with pytest.raises(ParameterError, match="literals"):
            UniformConjunctionQueries(features, literals=literals)
