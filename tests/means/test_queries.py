"""UserQueries: adaptive questions, a budget fixed in advance, isolation of users."""

import pickle

import numpy as np
import pytest

from quorate.accounting.compose import price
from quorate.auditing import replay
from quorate.exceptions import ParameterError, QueriesExhaustedError
from quorate.guarantees import Relation
from quorate.means import UserQueries
from quorate.noise import SeededNoise, use_noise
from quorate.users import UserData

RNG = np.random.default_rng(0)
IDS = np.arange(4000) // 2
RECORDS = RNG.normal(size=(4000, 2)) + 5.0
DATA = UserData.from_arrays(RECORDS, users=IDS)


def desk(data=DATA, **parameters):
    defaults = {
        "epsilon": 2.0,
        "delta": 1e-6,
        "queries": 3,
        "bound": 100.0,
        "dimension": 2,
        "random_state": 0,
    }
    return UserQueries(**(defaults | parameters)).fit(data)


def average(records):
    return records.mean(axis=0)


class TestBudget:
    @pytest.mark.parametrize("algorithm", ["auto", "clip", "ball"])
    @pytest.mark.parametrize("queries", [1, 7])
    def test_all_answers_together_cost_what_was_declared(self, algorithm, queries):
        answers = desk(algorithm=algorithm, queries=queries)
        [event] = answers.guarantee_.events
        assert price(event, delta=1e-6) <= 2.0
        run_squares = []

        for _ in range(queries):
            before = answers.remaining
            answers.ask(average)
            assert answers.remaining == before - 1
            run_squares.append(answers._budget.mu**2 / queries)
        assert sum(run_squares) <= answers._budget.mu**2 * (1 + 1e-12)

    @pytest.mark.parametrize("constants", ["published", "calibrated"])
    def test_winsorized_answers_cost_no_more(self, constants):
        answers = desk(algorithm="winsorized", radius=3.0, constants=constants)
        [event] = answers.guarantee_.events
        assert price(event, delta=1e-6) <= 2.0
        assert answers.ask(average).algorithm.name == "winsorized"

    def test_the_question_after_the_last_is_refused(self):
        answers = desk(queries=1)
        answers.ask(average)
        with pytest.raises(QueriesExhaustedError, match="queries=1"):
            answers.ask(average)

    def test_a_refused_question_is_not_a_function(self):
        answers = desk(queries=1)
        with pytest.raises(ParameterError, match="function"):
            answers.ask("mean")
        assert answers.remaining == 1

    def test_a_saved_object_holds_no_records_and_answers_nothing(self):
        answers = pickle.loads(pickle.dumps(desk()))
        assert not hasattr(answers, "_records")
        assert answers.guarantee_.epsilon == 2.0
        with pytest.raises(QueriesExhaustedError):
            answers.ask(average)


class TestUtility:
    def test_questions_may_depend_on_answers(self):
        with use_noise(SeededNoise(0)):
            answers = desk()
            first = answers.ask(average)
            second = answers.ask(lambda records: (records > first.value).mean(axis=0))
        assert np.abs(first.value - 5.0).max() < 0.5
        assert np.abs(second.value - 0.5).max() < 0.2
        assert first.error.standard_error < 1.0


class TestIsolation:
    def test_a_question_sees_one_user_at_a_time(self):
        seen = []

        def watch(records):
            seen.append(len(records))
            return records.mean(axis=0)

        desk().ask(watch)
        assert seen == [2] * 2000

    def test_errors_warnings_and_wrong_shapes_count_as_the_centre(self):
        def fragile(records):
            if records[0, 0] > 5.0:
                raise ValueError(str(records))
            if records[0, 0] > 4.5:
                return np.zeros(9)
            return np.log(-records.mean(axis=0))

        with use_noise(SeededNoise(0)):
            answer = desk(bound=(0.0, 20.0)).ask(fragile)
        assert np.abs(answer.value - 10.0).max() < 1.0

    @pytest.mark.parametrize("relation", list(Relation))
    def test_neighbours_with_the_same_answers_look_the_same(self, relation):
        if relation is Relation.REPLACE:
            changed = RECORDS.copy()
            changed[IDS == 3] = -1e300
            neighbour = UserData.from_arrays(changed, users=IDS)
        else:
            neighbour = UserData.from_arrays(RECORDS[IDS != 3], users=IDS[IDS != 3])

        def run(data):
            answers = desk(data, relation=relation)
            first = answers.ask(average)
            return first, answers.ask(lambda records: records.max(axis=0) - first.value)

        report = replay(run, DATA, neighbour)
        assert report.same, str(report)

    def test_a_twin_that_lets_errors_through_is_caught(self):
        changed = RECORDS.copy()
        changed[IDS == 3] = -1e300
        neighbour = UserData.from_arrays(changed, users=IDS)

        def leaky(data):
            if data.user_means().min() < -1e100:
                raise ValueError("a user is strange")
            return desk(data).ask(average)

        assert not replay(leaky, DATA, neighbour).same


class TestRefusal:
    @pytest.mark.parametrize(
        "options",
        [
            {"queries": 0},
            {"dimension": 0},
            {"delta": 0.0},
            {"algorithm": "core"},
            {"algorithm": "winsorized"},
            {"algorithm": "winsorized", "radius": 1.0, "relation": Relation.ADD_REMOVE},
            {"bound": None},
            {"radius": 0.0},
        ],
        ids=str,
    )
    def test_bad_parameters_are_refused(self, options):
        with pytest.raises(ParameterError):
            desk(**options)
