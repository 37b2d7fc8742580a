"""Queries: bounded values whatever the function does, rounds, digits."""

import itertools
import math
import os
import threading
import time

import numpy as np
import pytest

from quorate import UserData
from quorate.exceptions import OtherProcessError, ParameterError
from quorate.learners.concepts import Constant
from quorate.papers.queries import (
    NonAdaptive,
    OneRound,
    Population,
    QueryOracle,
    Reduction,
    StatisticalQuery,
    binary_digits,
    from_binary_digits,
)
from quorate.papers.queries.oracles import EmpiricalOracle, ExactOracle, MovedOracle

ODD = [math.nan, math.inf, -math.inf, 1e308, -1e308, 0.0, 0.7, 2.0]


def query(function, **changes):
    return StatisticalQuery(**({"function": function, "tolerance": 0.1} | changes))


class TestValues:
    @pytest.mark.parametrize(("low", "high"), [(0.0, 1.0), (-3.0, 2.0), (1.0, 1e300)])
    @pytest.mark.parametrize("boolean", [False, True])
    @pytest.mark.parametrize("reduction", list(Reduction))
    def test_no_value_leaves_the_range(self, low, high, boolean, reduction):
        asked = query(
            lambda X, y: X[:, 0], low=low, high=high, boolean=boolean, reduction=reduction
        )
        X = np.array(ODD)[:, np.newaxis]
        records = asked.on_records(X, np.zeros(len(X)))
        people = UserData(np.nan_to_num(X), np.zeros(len(X)), offsets=[0, 3, 3, len(X)])
        for values in (records, asked.on_users(people)):
            assert np.all((values >= low) & (values <= high))
        if boolean:
            assert set(records) <= {low, high}

    def test_a_user_without_records_is_the_middle(self):
        people = UserData(np.ones((2, 1)), np.ones(2), offsets=[0, 0, 2, 2])
        assert query(lambda X, y: y).on_users(people).tolist() == [0.5, 1.0, 0.5]
        nobody = UserData(np.ones((0, 1)), np.ones(0), offsets=[0, 0])
        assert query(lambda X, y: y).on_users(nobody).tolist() == [0.5]

    def test_a_user_is_a_function_of_their_own_records(self):
        """To the last bit: batches, order and neighbours do not matter."""
        rng = np.random.default_rng(0)
        asked = query(lambda X, y: X[:, 0])
        X = rng.random((300, 1))
        users = rng.integers(0, 40, size=300)
        together = asked.on_users(UserData.from_arrays(X, np.zeros(300), users=users))
        for place, user in enumerate(dict.fromkeys(np.sort(users))):
            mine = UserData.from_arrays(
                X[users == user], np.zeros(sum(users == user)), users=users[users == user]
            )
            assert asked.on_users(mine)[0] == together[place]

    def test_a_user_for_whom_the_function_raises_moves_nobody_else(self):
        def picky(X, y):
            if np.any(X == 31337.0):
                raise ValueError("I met 31337")
            return X[:, 0]

        X = np.array([[0.25], [31337.0], [0.5], [0.75]])
        people = UserData.from_arrays(X, np.zeros(4), users=["a", "b", "b", "c"])
        assert query(picky).on_users(people).tolist() == [0.25, 0.5, 0.75]
        assert query(picky).on_records(X, np.zeros(4)).tolist() == [0.25, 0.5, 0.5, 0.75]

    def test_reductions(self):
        people = UserData.from_arrays([[0.0], [1.0], [0.0]], [0, 0, 0], users=["a", "a", "b"])
        assert query(lambda X, y: X[:, 0]).on_users(people).tolist() == [0.5, 0.0]
        some = query(lambda X, y: X[:, 0], reduction=Reduction.ANY)
        assert some.on_users(people).tolist() == [1.0, 0.0]

    @pytest.mark.parametrize("function", [lambda X, y: X, lambda X, y: 1 / 0, lambda X: X[:, 0]])
    def test_a_function_that_fails_on_made_up_records_is_refused_by_name(self, function):
        people = UserData.from_arrays([[1.0]], [0], users=["a"])
        with pytest.raises(ParameterError, match="'mine'"):
            EmpiricalOracle(people).ask(query(function, name="mine"))

    @pytest.mark.parametrize(
        ("changes", "message"),
        [
            ({"function": 3}, "callable"),
            ({"tolerance": 0.0}, "tolerance"),
            ({"tolerance": math.nan}, "tolerance"),
            ({"low": 1.0}, "lower < upper"),
            ({"high": math.inf}, "range"),
            ({"low": -1.7e308, "high": 1.7e308}, "width"),
            ({"reduction": "any"}, "reduction"),
        ],
    )
    def test_refusals(self, changes, message):
        with pytest.raises(ParameterError, match=message):
            query(**({"function": lambda X, y: y} | changes))


@pytest.mark.claim("K6: Definition 5.5")
class TestRounds:
    def test_an_oracle_counts_queries_rounds_and_the_smallest_tolerance(self):
        oracle = ExactOracle(Population.uniform_cube(1, Constant(0)))
        assert (oracle.n_queries, oracle.n_rounds, oracle.smallest_tolerance) == (0, 0, math.inf)
        oracle.answer([query(lambda X, y: y), query(lambda X, y: y, tolerance=0.02)])
        oracle.ask(query(lambda X, y: y))
        assert oracle.answer([]).shape == (0,)
        assert (oracle.n_queries, oracle.n_rounds, oracle.smallest_tolerance) == (3, 2, 0.02)

    def test_a_second_round_is_refused_and_not_passed_on(self):
        oracle = ExactOracle(Population.uniform_cube(1, Constant(0)))
        door = OneRound(oracle)
        door.answer([query(lambda X, y: y)] * 3)
        with pytest.raises(ParameterError, match="one round"):
            door.ask(query(lambda X, y: y))
        assert oracle.n_queries == 3

    def test_something_else_than_a_query_is_refused(self):
        with pytest.raises(ParameterError, match="StatisticalQuery"):
            ExactOracle(Population.uniform_cube(1, Constant(0))).answer(["mean"])

    def test_a_non_adaptive_algorithm_writes_all_queries_before_any_answer(self):
        """Its queries are taken before the oracle is called, and only once."""
        order = []

        class Watching(QueryOracle):
            def _answer(self, queries):
                order.append("answer")
                return np.zeros(len(queries))

        class Learner(NonAdaptive):
            n_features = 1

            def queries(self):
                order.append("queries")
                return [query(lambda X, y: y)] * 2

            def conclude(self, answers):
                order.append("conclude")
                return Constant(len(answers))

        assert Learner().run(Watching()) == Constant(2)
        assert order == ["queries", "answer", "conclude"]
        assert Learner().rounds == (2,)
        assert Learner().max_queries == 2

    def test_an_algorithm_that_keeps_the_oracle_cannot_ask_twice(self):
        """The broken twin of non-adaptivity: it smuggles a second round through ``conclude``."""

        class Smuggler(NonAdaptive):
            n_features = 1

            def queries(self):
                return [query(lambda X, y: y)]

            def conclude(self, answers):
                return self.door.ask(query(lambda X, y: y))

        smuggler = Smuggler()
        smuggler.door = OneRound(ExactOracle(Population.uniform_cube(1, Constant(0))))
        with pytest.raises(ParameterError, match="one round"):
            smuggler.run(smuggler.door)


@pytest.mark.claim("K6: Definition 5.4")
class TestDigits:
    @pytest.mark.parametrize("tolerance", [0.3, 0.05])
    @pytest.mark.parametrize(("low", "high"), [(0.0, 1.0), (-2.0, 3.0)])
    def test_digits_give_the_mean_within_the_tolerance_whatever_the_oracle(
        self, tolerance, low, high
    ):
        """All functions of three points with values on a grid, and the worst signs of answers."""
        X = np.arange(3.0)[:, np.newaxis]
        population = Population(X, np.zeros(3), np.array([0.5, 0.3, 0.2]))
        for table in itertools.product(np.linspace(low, high, 4), repeat=3):
            values = np.array(table)
            real = StatisticalQuery(
                function=lambda X, y, values=values: values[X[:, 0].astype(int)],
                tolerance=tolerance,
                low=low,
                high=high,
            )
            digits = binary_digits(real)
            assert all(digit.boolean for digit in digits)
            truth = population.mean(real)
            for sign in (-1.0, 0.0, 1.0):
                oracle = MovedOracle(population, moves=[sign] * len(digits))
                found = from_binary_digits(real, oracle.answer(digits))
                assert abs(found - truth) <= tolerance + 1e-12

    def test_fewer_digits_would_not_do(self):
        real = query(lambda X, y: np.full(len(X), 1.0), tolerance=0.1)
        population = Population(np.zeros((1, 1)), np.zeros(1), np.ones(1))
        digits = binary_digits(real)[:-2]
        oracle = MovedOracle(population, moves=[-1.0] * len(digits))
        assert abs(from_binary_digits(real, oracle.answer(digits)) - 1.0) > 0.1

    def test_queries_about_users_have_no_digits(self):
        with pytest.raises(ParameterError, match="records"):
            binary_digits(query(lambda X, y: y, reduction=Reduction.ANY))


def test_a_function_of_the_caller_that_promises_to_look_at_rows_is_called_by_user_all_the_same():
    class Relative:
        row_wise = True

        def __call__(self, X, y):
            if np.any(X > 90):
                raise ValueError("31337")
            return np.full(len(X), 1.0 / len(X))

    def others(first):
        X = np.array([[first], [1.0], [2.0], [2.0]])
        data = UserData(X, np.zeros(4), offsets=[0, 1, 2, 4])
        return query(Relative()).on_users(data)[1:].tolist()

    assert others(1.0) == others(99.0) == [1.0, 0.5]


class _Slow(QueryOracle):
    def _answer(self, queries):
        turn = self.n_rounds
        time.sleep(0.02)
        return np.full(len(queries), float(turn))


def test_two_threads_do_not_share_a_round():
    oracle, found = _Slow(), []
    query = StatisticalQuery(function=lambda X, y: y, tolerance=0.1)
    threads = [threading.Thread(target=lambda: found.append(oracle.ask(query))) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(found) == [0.0, 1.0, 2.0]


def test_an_oracle_answers_in_its_process_alone(monkeypatch):
    oracle = _Slow()
    monkeypatch.setattr(os, "getpid", lambda: -1)
    with pytest.raises(OtherProcessError):
        oracle.ask(StatisticalQuery(function=lambda X, y: y, tolerance=0.1))
    assert oracle.asked == []
