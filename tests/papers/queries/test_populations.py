"""Known distributions: exact means, also over users of several records."""

import itertools

import numpy as np
import pytest

from quorate.exceptions import ParameterError
from quorate.learners.concepts import Conjunctions, Constant
from quorate.papers.queries import Population, Reduction, StatisticalQuery

X = np.array([[0.0], [1.0], [2.0]])
SHARES = np.array([0.5, 0.3, 0.2])


def test_the_mean_of_the_largest_is_that_of_all_samples():
    """Enumerate all samples of two records."""
    population = Population(X, np.zeros(3), SHARES, records=2)
    some = StatisticalQuery(
        function=lambda X, y: X[:, 0] == 2, tolerance=0.1, boolean=True, reduction=Reduction.ANY
    )
    truth = sum(
        SHARES[i] * SHARES[j] for i, j in itertools.product(range(3), repeat=2) if 2 in (i, j)
    )
    assert population.mean(some) == pytest.approx(truth, abs=1e-15)
    real = StatisticalQuery(function=lambda X, y: X[:, 0], tolerance=0.1, reduction=Reduction.ANY)
    with pytest.raises(ParameterError, match="Boolean"):
        population.mean(real)


def test_draws_follow_the_distribution_and_the_seed():
    population = Population(X, X[:, 0], SHARES, records=5)
    people = population.draw(2000, random_state=1)
    assert np.all(people.record_counts() == 5)
    shares = np.bincount(people.X[:, 0].astype(int)) / 10_000
    # Four standard deviations of a share of ten thousand.
    assert np.all(np.abs(shares - SHARES) < 4 * 0.005)
    assert np.array_equal(people.X, population.draw(2000, random_state=1).X)


def test_errors_are_probabilities_of_a_wrong_label():
    cube = Population.uniform_cube(3, Conjunctions(3).concept(1 + 3))
    assert cube.error(Constant(0)) == 0.25
    assert cube.n_features == 3


@pytest.mark.parametrize(
    "shares", [np.array([0.5, 0.6, 0.2]), np.array([1.5, -0.3, -0.2]), np.ones(2) / 2]
)
def test_what_is_no_distribution_is_refused(shares):
    with pytest.raises(ParameterError, match="probabilities"):
        Population(X, np.zeros(3), shares)
