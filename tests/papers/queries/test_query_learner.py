"""One algorithm, two kinds of trust: promises, budgets and refusals of the estimator."""

import numpy as np
import pytest
from sklearn.base import clone

from quorate import Ledger, UserData
from quorate.core.account.compose import price
from quorate.core.guarantees import TRUST, Relation
from quorate.core.noise import SeededNoise, use_noise
from quorate.data.engines.memory import MemoryCrowd
from quorate.exceptions import (
    BudgetExceededError,
    ParameterError,
    QueriesExhaustedError,
    SchemaError,
)
from quorate.learners.concepts import Constant, DecisionLists, Halfspace, Intervals, Literals
from quorate.papers.queries import NonAdaptive, Population, StatisticalQuery
from quorate.papers.queries.algorithms import (
    ConjunctionQueries,
    DecisionListQueries,
    DisjunctionQueries,
    HalfspaceQueries,
    IntervalQueries,
)
from quorate.papers.queries.query_learner import QueryLearner

NAMES = ("x0", "x1", "x2", "x3")
AND = Literals(literals=((0, True), (2, True)), any_of=False, names=NAMES)
OR = Literals(literals=((0, True), (2, True)), any_of=True, names=NAMES)
MAJORITY = Halfspace(weights=(1.0, 1.0, 1.0, 0.0), offset=0.0, names=NAMES)
CUBES = [
    (ConjunctionQueries(4, tolerance=0.06), AND),
    (DisjunctionQueries(4, tolerance=0.06), OR),
    (HalfspaceQueries(4, tolerance=0.12), MAJORITY),
]


class TestLearning:
    @pytest.mark.parametrize(("algorithm", "rule"), CUBES)
    @pytest.mark.parametrize(("trust", "users"), [("central", 2000), ("local", 30_000)])
    def test_cubes(self, algorithm, rule, trust, users):
        population = Population.uniform_cube(4, rule)
        people = population.draw(users, random_state=0)
        with use_noise(SeededNoise(0)):
            learner = QueryLearner(algorithm, trust=trust, random_state=0).fit(people)
        assert population.error(learner.concept_) == 0.0
        assert learner.guarantee_.trust is TRUST[trust]
        assert learner.n_queries_ == algorithm.max_queries
        assert np.array_equal(learner.predict(population.X), population.y)

    def test_lists_and_intervals_with_a_curator(self):
        lists = Population.uniform_cube(4, DecisionLists(4).concept(600))
        with use_noise(SeededNoise(0)):
            learner = QueryLearner(
                DecisionListQueries(4, length=4, tolerance=0.015), 2.0, delta=1e-6
            ).fit(lists.draw(40_000, random_state=0))
        assert lists.error(learner.concept_) == 0.0
        hours = Intervals(24)
        day = Population.uniform(np.arange(24.0)[:, np.newaxis], hours.concept(50))
        with use_noise(SeededNoise(0)):
            learner = QueryLearner(IntervalQueries(hours)).fit(day.draw(20_000, random_state=0))
        assert day.error(learner.concept_) <= 0.05

    def test_labels_are_words_and_too_few_users_are_named(self):
        people = Population.uniform_cube(4, AND).draw(50, random_state=0)
        words = np.array(["no", "yes"])[people.y.astype(int)]
        learner = QueryLearner(
            ConjunctionQueries(4), trust="local", classes=("no", "yes"), random_state=0
        ).fit(people.X, words, users=range(50))
        assert set(learner.predict(people.X)) <= {"no", "yes"}
        assert len(learner.weak_) == 4


class TestCrowds:
    @pytest.mark.parametrize("trust", ["central", "local"])
    def test_users_answer_wherever_they_lie(self, trust):
        people = Population.uniform_cube(4, AND).draw(3000, random_state=0)
        crowd = MemoryCrowd(people, n_parts=3)
        learner = QueryLearner(ConjunctionQueries(4), 4.0, trust=trust, random_state=0)
        with use_noise(SeededNoise(0)):
            parted = clone(learner).fit(crowd)
        with use_noise(SeededNoise(0)):
            whole = clone(learner).fit(people)
        assert parted.concept_ == whole.concept_ == AND


class TestPromises:
    @pytest.mark.parametrize(
        "changes",
        [{}, {"delta": 1e-6}, {"relation": Relation.ADD_REMOVE}, {"trust": "local"}],
    )
    def test_the_guarantee_covers_what_was_drawn(self, changes):
        people = Population.uniform_cube(4, AND).draw(500, random_state=0)
        promise = (
            QueryLearner(ConjunctionQueries(4), random_state=0, **changes).fit(people).guarantee_
        )
        assert promise.holds
        assert promise.epsilon == 1.0
        (event,) = promise.events
        cost = price(event, delta=promise.delta, relation=promise.relation)
        assert 0.9 < cost <= 1.0

    def test_the_ledger_is_charged_once_and_first(self, tmp_path):
        ledger = Ledger(tmp_path / "ledger.db")
        ledger.set_budget("people", epsilon=1.5)
        people = Population.uniform_cube(4, AND).draw(500, random_state=0)
        learner = QueryLearner(ConjunctionQueries(4), ledger=ledger, data_name="people")
        learner.fit(people)
        with pytest.raises(BudgetExceededError):
            learner.fit(people)

    def test_an_algorithm_that_asks_more_than_it_said_is_stopped(self):
        class Liar(ConjunctionQueries):
            rounds = (1,)

        people = Population.uniform_cube(4, AND).draw(500, random_state=0)
        for trust in ("central", "local"):
            with pytest.raises(QueriesExhaustedError, match="nothing was asked"):
                QueryLearner(Liar(4), trust=trust).fit(people)

    def test_a_callers_own_algorithm_is_a_small_class(self):
        class Majority(NonAdaptive):
            n_features = 1

            def queries(self):
                return [StatisticalQuery(function=lambda X, y: y, tolerance=0.1, boolean=True)]

            def conclude(self, answers):
                return Constant(int(answers[0] > 0.5))

        people = UserData.from_arrays(np.zeros((400, 1)), np.arange(400) % 4 > 0, users=range(400))
        with use_noise(SeededNoise(0)):
            assert QueryLearner(Majority()).fit(people).concept_ == Constant(1)


class TestRefusals:
    @pytest.mark.parametrize(
        ("changes", "message"),
        [
            ({"algorithm": "conjunctions"}, "QueryAlgorithm"),
            ({"trust": "curator"}, "trust"),
            ({"trust": "shuffle"}, "QueryRule"),
            ({"trust": "local", "delta": 1e-6}, "delta=0"),
            ({"trust": "local", "relation": Relation.ADD_REMOVE}, "REPLACE"),
            ({"shares": (1.0,)}, "'local' only"),
            ({"trust": "local", "joint": (1.0, None)}, "each of 1 rounds"),
            ({"epsilon": 0.0}, "epsilon"),
            ({"classes": "ab"}, "classes"),
        ],
    )
    def test_parameters(self, changes, message):
        people = Population.uniform_cube(4, AND).draw(50, random_state=0)
        with pytest.raises(ParameterError, match=message):
            QueryLearner(**({"algorithm": ConjunctionQueries(4)} | changes)).fit(people)

    def test_other_columns(self):
        people = Population.uniform_cube(4, AND).draw(50, random_state=0)
        with pytest.raises(SchemaError, match="5 features"):
            QueryLearner(ConjunctionQueries(5)).fit(people)
