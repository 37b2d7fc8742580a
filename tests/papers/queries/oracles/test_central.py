"""A curator's answers: one budget for all, users count once, noise as stated."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import pytest

from quorate import UserData
from quorate.auditing import replay
from quorate.core.account.account import Account
from quorate.core.account.compose import price
from quorate.core.guarantees import Relation
from quorate.core.noise import SeededNoise
from quorate.exceptions import QueriesExhaustedError
from quorate.learners.concepts import DecisionLists, Literals
from quorate.papers.queries import Population, Reduction, StatisticalQuery
from quorate.papers.queries.algorithms import ConjunctionQueries, DecisionListQueries
from quorate.papers.queries.oracles.central import CentralOracle, QueryValues


@dataclass(frozen=True)
class Line:
    """A straight line of the first feature."""

    slope: float = 1.0
    offset: float = 0.0
    row_wise: ClassVar[bool] = True

    def __call__(self, X, y):
        return self.slope * X[:, 0] + self.offset


HALF = StatisticalQuery(function=Line(), tolerance=0.05)
WIDE = StatisticalQuery(function=Line(10.0, -5.0), low=-5, high=5, tolerance=0.5)
PEOPLE = UserData.from_arrays(np.tile([[0.0], [1.0]], (500, 1)), users=range(1000))


def account(seed=0, **changes):
    return Account.open(**({"epsilon": 1.0, "noise": SeededNoise(seed)} | changes))


class TestAnswers:
    @pytest.mark.parametrize(
        "changes",
        [
            {},
            {"delta": 1e-6},
            {"relation": Relation.ADD_REMOVE},
            {"delta": 1e-6, "relation": Relation.ADD_REMOVE},
        ],
    )
    def test_they_are_means_with_the_stated_error(self, changes):
        found, errors = [], []
        for seed in range(60):
            oracle = CentralOracle(PEOPLE, max_queries=2, account=account(seed, **changes))
            found.append(oracle.answer([HALF, WIDE]) - [0.5, 0.0])
            errors.append(oracle.standard_errors)
        scaled = np.array(found) / np.array(errors)
        assert np.abs(scaled.mean(axis=0)).max() < 5 / np.sqrt(60)
        assert scaled.std(axis=0) == pytest.approx([1.0, 1.0], rel=0.4)

    def test_pure_answers_that_are_asked_together_share_their_noise(self):
        errors = {}
        for batch in (1, 4):
            oracle = CentralOracle(PEOPLE, max_queries=4, account=account())
            for _ in range(4 // batch):
                oracle.answer([HALF] * batch)
            errors[batch] = oracle.standard_errors[0]
        # The root of 5 x 6 / 3 scales instead of four times the root of 2.
        assert errors[4] / errors[1] == pytest.approx(np.sqrt(10 / 32), rel=1e-3)

    def test_a_giant_user_counts_once(self):
        people = UserData.from_arrays(
            [[1.0]] * 5000 + [[0.0]] * 999, users=[0] * 5000 + list(range(1, 1000))
        )
        oracle = CentralOracle(people, max_queries=1, account=account())
        assert abs(oracle.ask(HALF)) < 0.02

    def test_a_conjunction_and_a_decision_list_are_learned(self):
        names = tuple(f"x{j}" for j in range(4))
        rule = Literals(literals=((0, True), (2, True)), any_of=False, names=names)
        people = Population.uniform_cube(4, rule).draw(4000, random_state=0)
        algorithm = ConjunctionQueries(4)
        oracle = CentralOracle(people, max_queries=algorithm.max_queries, account=account())
        assert algorithm.run(oracle) == rule
        listed = DecisionLists(4).concept(600)
        population = Population.uniform_cube(4, listed)
        lists = DecisionListQueries(4, length=4, tolerance=0.015)
        oracle = CentralOracle(
            population.draw(40_000, random_state=0),
            max_queries=lists.max_queries,
            account=account(epsilon=2.0, delta=1e-6),
        )
        assert population.error(lists.run(oracle)) == 0.0

    def test_few_users_are_flagged_and_many_are_not(self):
        few = CentralOracle(PEOPLE.take(range(20)), max_queries=1, account=account())
        few.ask(HALF)
        assert few.weak == ["query"]
        many = CentralOracle(PEOPLE, max_queries=1, account=account())
        many.ask(HALF)
        assert many.weak == []


class TestBudget:
    @pytest.mark.parametrize("changes", [{}, {"delta": 1e-6}, {"relation": Relation.ADD_REMOVE}])
    def test_all_queries_together_cost_the_budget_and_one_more_is_refused(self, changes):
        paying = account(**changes)
        oracle = CentralOracle(PEOPLE, max_queries=3, account=paying)
        oracle.answer([HALF, HALF])
        oracle.ask(HALF)
        with pytest.raises(QueriesExhaustedError, match="nothing was asked"):
            oracle.ask(HALF)
        cost = price(paying.event, delta=paying.declared.delta, relation=paying.relation)
        assert 0.9 < cost <= 1.0

    def test_one_user_moves_a_sum_by_at_most_its_sensitivity(self):
        """Replace one user by anything: values stay in the box, whatever the records."""
        values = QueryValues(
            (
                HALF,
                WIDE,
                StatisticalQuery(
                    function=lambda X, y: X[:, 0] > 3,
                    tolerance=0.1,
                    boolean=True,
                    reduction=Reduction.ANY,
                ),
            )
        )
        for odd in (1e308, -1e308, 0.0, 3.5):
            people = UserData.from_arrays([[odd], [odd], [0.0]], users=["a", "a", "b"])
            rows = values(people)
            assert np.all(np.abs(rows) <= 1.0)
            assert rows[1].tolist() == [-1.0, -1.0, -1.0]


@pytest.mark.parametrize("delta", [0.0, 1e-6])
def test_one_more_user_is_not_seen_in_what_is_said_about_noise(delta):
    """Under addition and removal all figures follow from the number that was bought."""

    def run(users):
        paying = Account.open(epsilon=1.0, delta=delta, relation=Relation.ADD_REMOVE)
        oracle = CentralOracle(users, max_queries=2, account=paying)
        answers = oracle.answer([HALF, WIDE])
        return answers, oracle.standard_errors, oracle.error_bound(0.05), oracle.weak

    for fewer in (999, 512, 3):
        report = replay(run, PEOPLE, PEOPLE.take(range(fewer)))
        assert report.same, str(report)
