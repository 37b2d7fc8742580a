"""UserQueries: adaptive questions, a budget fixed in advance, isolation of users."""

import copy
import pickle
import sys
import warnings
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.exceptions import NotFittedError

from quorate.auditing import replay
from quorate.core.account.compose import price
from quorate.core.guarantees import Nothing, Relation
from quorate.core.noise import SeededNoise, use_noise
from quorate.core.users import UserData
from quorate.exceptions import NumericalFailure, ParameterError, QueriesExhaustedError, SealedError
from quorate.means import UserQueries

RNG = np.random.default_rng(0)
IDS = np.arange(4000) // 2
RECORDS = RNG.normal(size=(4000, 2)) + 5.0
DATA = UserData.from_arrays(RECORDS, users=IDS)
# How many records a question saw; beside it, because it may keep nothing itself.


def desk(data=DATA, **parameters):
    defaults = {
        "epsilon": 2.0,
        "delta": 1e-6,
        "queries": 3,
        "bounds": 100.0,
        "dimension": 2,
        "random_state": 0,
    }
    return UserQueries(**(defaults | parameters)).fit(data)


def average(records):
    return records.mean(axis=0)


@pytest.mark.claim("U4: Theorem 3")
class TestBudget:
    @pytest.mark.parametrize("algorithm", ["auto", "clip", "ball"])
    @pytest.mark.parametrize("queries", [1, 7])
    def test_all_answers_together_cost_what_was_declared(self, algorithm, queries):
        answers = desk(algorithm=algorithm, queries=queries)
        assert answers.guarantee_.epsilon == 2.0
        assert answers.guarantee_.events == (Nothing(),)
        for asked in range(queries):
            before = answers.remaining
            answers.ask(average)
            assert answers.remaining == before - 1
            [event] = answers.guarantee_.events
            cost = price(event, delta=1e-6)
            assert cost <= 2.0
            # Each question has an equal share of mu squared, which epsilon hardly undercuts.
            assert cost >= 0.85 * 2.0 * ((asked + 1) / queries) ** 0.5

    @pytest.mark.parametrize("constants", ["published", "calibrated"])
    def test_winsorized_answers_cost_no_more(self, constants):
        answers = desk(algorithm="winsorized", radius=3.0, constants=constants)
        assert answers.ask(average).algorithm.name == "winsorized"
        [event] = answers.guarantee_.events
        assert price(event, delta=1e-6) <= 2.0

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
        assert answers._desk.people is None
        assert answers.remaining == 0
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
    def test_a_question_sees_one_user_at_a_time(self, tmp_path):
        seen = tmp_path / "seen"  # a list would be something that the question keeps

        def watch(records):
            with seen.open("a") as file:
                file.write(f"{len(records)}\n")
            return records.mean(axis=0)

        desk().ask(watch)
        # The first call sees made-up records, and so do those about three made-up people, who are
        # asked together and alone.
        assert list(map(int, seen.read_text().split())) == [2, *[1, 3, 2] * 2, *[2] * 2000]

    def test_a_question_that_keeps_what_it_saw_is_refused(self):
        kept = []

        def keep(records):
            kept.append(records)
            return records.mean(axis=0)

        with pytest.raises(SealedError, match="stored something"):
            desk().ask(keep)

    def test_a_question_cannot_change_what_the_next_one_sees(self):
        def vandal(records):
            records[:] = 0.0
            return records.mean(axis=0)

        with pytest.raises(ParameterError, match="read-only"):
            desk().ask(vandal)

    def test_users_for_whom_a_question_fails_are_absent_from_the_answer(self):
        def fragile(records):
            if records[0, 0] > 5.5:
                raise ValueError(str(records))
            if records[0, 0] > 5.0:
                return np.zeros(9)
            if records[0, 0] > 4.8:
                return np.log(-records.mean(axis=0))
            return np.full(2, 3.0)

        with use_noise(SeededNoise(0)):
            answer = desk(bounds=(0.0, 20.0), algorithm="clip").ask(fragile)
        # Ten times the noise: the probability of a false alarm is below 1e-6. As the centre they
        # would pull it to 7.
        assert np.linalg.norm(answer.value - 3.0) < 10 * answer.error.standard_error < 4.0

    def test_a_question_that_fails_for_everybody_says_nothing(self):
        def hopeless(records):
            if records.any():
                raise ValueError
            return np.zeros(2)

        with use_noise(SeededNoise(0)):
            answer = desk(bounds=(0.0, 20.0)).ask(hopeless)
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


class TestFrozenDesk:
    """What was charged is what can be spent, whatever is set afterwards."""

    @pytest.mark.parametrize("algorithm", ["clip", "winsorized"])
    def test_parameters_set_after_fit_buy_nothing(self, algorithm):
        answers = desk(queries=2, algorithm=algorithm, radius=3.0)
        before = answers.ask(average).error.standard_error
        answers.set_params(
            queries=100, epsilon=1e4, delta=0.5, bounds=1e-3, algorithm="clip", radius=1.0
        )
        assert answers.remaining == 1
        assert answers.ask(average).error.standard_error == pytest.approx(before, rel=0.2)
        with pytest.raises(QueriesExhaustedError, match="queries=2"):
            answers.ask(average)

    @pytest.mark.parametrize("duplicate", [copy.copy, copy.deepcopy, clone])
    def test_copies_answer_nothing(self, duplicate):
        answers = desk(queries=1)
        with pytest.raises((QueriesExhaustedError, NotFittedError)):
            duplicate(answers).ask(average)
        assert answers.remaining == 1

    def test_asking_before_fit_is_refused(self):
        answers = UserQueries(1.0, delta=1e-6, bounds=1.0)
        with pytest.raises(NotFittedError):
            answers.ask(average)
        with pytest.raises(NotFittedError):
            _ = answers.remaining

    def test_a_fit_without_an_account_is_refused_and_changes_nothing(self, monkeypatch):
        def closed(**_):
            raise NumericalFailure("no account today")

        answers = desk(queries=2)
        monkeypatch.setattr("quorate.core.account.account.Account.open", closed)
        with pytest.raises(NumericalFailure):
            answers.fit(DATA)
        assert answers.remaining == 2


class TestWrongQuestions:
    @pytest.mark.parametrize(
        "query",
        [
            lambda records: records.men(axis=0),
            lambda records: records.mean(),
            lambda records: records.mean(axis=0, keepdims=True),
            lambda records: "many",
            lambda records: None,
        ],
    )
    def test_they_are_refused_and_cost_nothing(self, query):
        answers = desk(queries=1)
        with pytest.raises(ParameterError, match="made-up"):
            answers.ask(query)
        assert answers.remaining == 1

    def test_a_number_is_an_answer_in_one_dimension(self):
        with use_noise(SeededNoise(0)):
            answer = desk(dimension=1, bounds=100.0).ask(lambda records: records.mean())
        assert abs(answer.value[0] - 5.0) < 0.5


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
            {"bounds": None},
            {"radius": 0.0},
        ],
        ids=str,
    )
    def test_bad_parameters_are_refused(self, options):
        with pytest.raises(ParameterError):
            desk(**options)


class TestForeignCode:
    """Neither the errors nor the warnings of a question come out, from any number of threads."""

    def test_questions_in_threads_show_no_warning_and_restore_the_filters(self):
        desk = UserQueries(epsilon=1.0, delta=1e-6, queries=8, bounds=9.0)
        desk.fit(np.arange(400.0).reshape(-1, 1), users=np.arange(400) // 2)
        filters = list(warnings.filters)

        def noisy(records):
            warnings.warn(f"patient {records[0, 0]}", stacklevel=1)
            return np.log(-np.abs(records)).mean()

        with ThreadPoolExecutor(4) as pool:
            answers = [pool.submit(desk.ask, noisy) for _ in range(8)]
            assert all(answer.result() for answer in answers)
        assert warnings.filters == filters

    def test_a_question_that_exits_makes_the_user_absent(self):
        X = np.r_[np.zeros(300), 9.0].reshape(-1, 1)
        desk = UserQueries(epsilon=1.0, delta=1e-6, queries=2, bounds=9.0).fit(X, users=range(301))

        def leaves(records):
            if records[0, 0] == 9.0:
                raise SystemExit("patient 301")
            return 0.0

        assert np.isfinite(desk.ask(leaves).value).all()
        with pytest.raises(ParameterError, match="made-up"):
            desk.ask(lambda records: sys.exit("now"))
