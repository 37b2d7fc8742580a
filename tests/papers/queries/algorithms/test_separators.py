"""Linear separators of arbitrary points, by queries; stable, and then private."""

import numpy as np
import pytest

from quorate.core.users import UserData
from quorate.papers.queries.algorithms import HalfspaceQueries, SeparatorQueries
from quorate.papers.queries.oracles import ExactOracle
from quorate.papers.queries.populations import Population
from quorate.papers.stability import QueryRule, StableLearner

FEATURES, POINTS = 8, 24


def world(seed, *, doubling=False):
    """Return 24 arbitrary points of the cube, split by a plane of unknown margin."""
    rng = np.random.default_rng(seed)
    X = np.unique(rng.integers(0, 2, (60, FEATURES)), axis=0)
    rng.shuffle(X)
    X = X[:POINTS].astype(float)
    weights = rng.normal(size=FEATURES)
    if doubling:  # the smallest margins: every weight is as large as all lighter ones together
        weights = 2.0 ** -np.arange(FEATURES) * np.sign(weights)
    y = ((2 * X - 1) @ weights + 0.2 * rng.normal() > 0).astype(float)
    return Population(X, y, np.full(len(X), 1 / len(X)))


class Adversary(ExactOracle):
    """Keeps every tolerance and is as little help as it can be."""

    def __init__(self, population, how, seed=0):
        super().__init__(population)
        self.how, self.generator = how, np.random.default_rng(seed)

    def _answer(self, queries):
        answers = super()._answer(queries)
        tolerance = np.array([query.tolerance for query in queries])
        match self.how:
            case "high":
                return answers + tolerance
            case "low":
                return answers - tolerance
            case "signs":
                return answers + tolerance * self.generator.choice([-1, 1], len(queries))
            case "alike":  # moves answers of one round towards each other
                return np.clip(np.mean(answers), answers - tolerance, answers + tolerance)


@pytest.mark.claim("G10: Corollary 33")
@pytest.mark.parametrize("doubling", [False, True])
class TestArbitraryPoints:
    def test_exact_answers_leave_no_error(self, doubling):
        for seed in range(12):
            population = world(seed, doubling=doubling)
            rule = SeparatorQueries(FEATURES).run(ExactOracle(population))
            assert population.error(rule) == 0.0

    @pytest.mark.parametrize("how", ["high", "low", "signs", "alike"])
    def test_answers_within_the_tolerance_leave_one_point_at_most(self, how, doubling):
        """Of 24 points one weighs .042; 2.5 tolerances are .05."""
        for seed in range(8):
            population = world(seed, doubling=doubling)
            oracle = Adversary(population, how, seed)
            rule = SeparatorQueries(FEATURES, tolerance=0.02).run(oracle)
            assert population.error(rule) <= 0.05
            assert oracle.n_queries <= SeparatorQueries(FEATURES).max_queries


def test_chow_parameters_do_not_separate_arbitrary_points():
    """Why there is another algorithm beside them: they are right for fair coins only."""
    errors = [world(s).error(HalfspaceQueries(8).run(ExactOracle(world(s)))) for s in range(12)]
    assert max(errors) > 0.1


def test_a_point_that_was_found_is_not_found_again():
    """The proof: with heavy points there are at most as many conditions as points."""
    for seed in range(6):
        oracle = ExactOracle(world(seed))
        SeparatorQueries(FEATURES, cuts=POINTS).run(oracle)
        errors = [batch for batch in oracle.asked if len(batch) == 1]
        assert len(errors) <= POINTS + 1
        assert not any(len(batch) == FEATURES + 1 for batch in oracle.asked)


def test_light_points_are_separated_by_means():
    """On the whole cube no point weighs twice the tolerance."""
    rng = np.random.default_rng(5)
    cube = ((np.arange(256)[:, None] >> np.arange(8)) & 1).astype(float)
    y = ((2 * cube - 1) @ rng.normal(size=8) + 0.3 > 0).astype(float)
    population = Population(cube, y, np.full(256, 1 / 256))
    oracle = ExactOracle(population)
    assert population.error(SeparatorQueries(8).run(oracle)) <= 0.05
    assert any(len(batch) == 9 for batch in oracle.asked)


def people(n, m, *, seed=0):
    """Return users who draw from eight uneven points of three features, and the points."""
    points = ((np.arange(8)[:, None] >> np.arange(3)) & 1).astype(float)
    likely = np.array([0.2, 0.15, 0.05, 0.1, 0.2, 0.05, 0.1, 0.15])
    labels = ((2 * points - 1) @ [3.0, -2.0, 1.0] + 0.5 > 0).astype(float)
    rows = np.random.default_rng(seed).choice(8, size=n * m, p=likely)
    data = UserData(points[rows], labels[rows], offsets=np.arange(0, n * m + 1, m))
    return data, points, labels


@pytest.mark.claim("G10: Corollary 33")
@pytest.mark.parametrize(
    ("trust", "users", "options"),
    [
        ("central", 30, {"delta": 1e-6}),
        ("central", 30, {}),
        ("local", 200, {}),
    ],
    ids=["approximate", "pure", "local"],
)
def test_stable_and_then_private(trust, users, options):
    data, points, labels = people(users, 2000)
    rule = QueryRule(SeparatorQueries(3, tolerance=0.05, cuts=8, largest=7), steps=12)
    learner = StableLearner(rule, trust, epsilon=2.0, random_state=1, **options).fit(data)
    assert np.array_equal(learner.predict(points), labels)
