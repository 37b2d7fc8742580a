"""Plans for linear and logistic regressions."""

import math

import numpy as np
import pytest

from quorate.core.guarantees import Relation
from quorate.core.noise import SeededNoise, use_noise
from quorate.core.users import UserData
from quorate.exceptions import ParameterError
from quorate.models import LinearRegression
from quorate.planning import plan
from quorate.planning.tasks.models import LinearTask, LogisticTask

BOTH = pytest.mark.parametrize("kind", [LinearTask, LogisticTask])


def kept(n, error, repetitions=15):
    hits = 0
    for repetition in range(repetitions):
        rng = np.random.default_rng([n, repetition])
        weights = np.array([0.6, -0.8, 0.0, 0.0, 0.0, 0.0])
        X = rng.normal(size=(n * 10, 6))
        y = X @ weights + rng.normal(size=n * 10)
        data = UserData(X, y, offsets=np.arange(n + 1) * 10)
        with use_noise(SeededNoise([n, repetition])):
            model = LinearRegression(2.0, delta=1e-6, hopeless="constant").fit(data)
        hits += (np.sum((model.coef_ - weights) ** 2) + model.intercept_**2) / 2 <= error
    return hits / repetitions


def test_the_planned_users_keep_the_error_and_a_third_of_them_does_not():
    # The true chance is above 0.95 (60 of 60 runs kept the error); 8 or more misses in 15 happen
    # less than once in 10^6 times.
    known = {"dimension": 6, "records": 10, "delta": 1e-6, "between": 0.0}
    users = plan("linear", epsilon=2.0, error=0.01, **known).users
    assert kept(users, 0.01) >= 0.5
    assert kept(users // 3, 0.01) < 0.5


@BOTH
def test_very_many_users_leave_sampling_error_only(kind):
    task = kind(dimension=3, delta=1e-6, between=0.0)
    # Half of a chi-square quantile with 4 degrees of freedom at 0.96.
    assert task.error(10**10, 1.0) == pytest.approx(5.01e-10, rel=0.01)


@BOTH
def test_records_divide_the_error(kind):
    few, many = (kind(delta=1e-6, between=0.0, records=m).error(10**5, 1.0) for m in (10, 100))
    assert 8 < few / many < 20


@BOTH
def test_users_who_come_and_go_need_half_the_noise(kind):
    added = kind(delta=1e-6, relation=Relation.ADD_REMOVE)
    assert added.error(1000, 1.0) < kind(delta=1e-6).error(1000, 1.0)


@BOTH
def test_what_the_estimator_refuses_the_plan_calls_a_refusal(kind):
    task = kind(dimension=600, delta=1e-6)
    way, reason = task.algorithm(100, 1.0)
    assert way == "refuse"
    assert "users the noise exceeds any gradient" in reason
    assert task.error(100, 1.0) == task.largest_error
    assert task.algorithm(10**6, 1.0)[0] == "descent"


@BOTH
def test_without_delta_there_is_no_model(kind):
    with pytest.raises(ParameterError, match="Expected delta > 0"):
        kind()


def test_residuals_of_twice_the_size_cost_four_times_as_much():
    known = {"delta": 1e-6, "between": 0.0}
    small, large = (LinearTask(scale=s, **known).error(10**6, 1.0) for s in (0.1, 0.2))
    assert large / small == pytest.approx(4.0, rel=0.01)
    # What clips cut away of targets of people who differ does not follow from residuals.
    small, large = (LinearTask(delta=1e-6, scale=s).error(10**6, 1.0) for s in (0.1, 0.2))
    assert small < large < 2 * small


class TestLeCam:
    def test_two_linear_models_have_the_stated_excess_half_way(self):
        # Coefficients +-a with a^2 / 2 = error; the divergence is (2 a)^2 / (2 scale^2).
        error, scale = 0.02, 1.5
        a = math.sqrt(2 * error)
        divergence = LinearTask(delta=1e-6, scale=scale).divergence(error)
        assert divergence == pytest.approx((2 * a) ** 2 / (2 * scale**2))

    @pytest.mark.parametrize("error", [0.001, 0.01, 0.05])
    def test_two_logistic_models_have_the_stated_excess_half_way(self, error):
        x = np.random.default_rng(0).normal(size=400_000)
        x /= np.sqrt(np.mean(x**2))
        a = math.sqrt(10 * error)
        up, down = (1 / (1 + np.exp(-sign * a * x)) for sign in (1, -1))
        half_way = math.log(2) - np.mean(-up * np.log(up) - (1 - up) * np.log(1 - up))
        assert half_way >= error
        divergence = np.mean(up * np.log(up / down) + (1 - up) * np.log((1 - up) / (1 - down)))
        assert divergence <= LogisticTask(delta=1e-6).divergence(error)

    def test_it_is_not_claimed_where_the_expansion_fails(self):
        task = LogisticTask(delta=1e-6)
        assert task.lower(epsilon=1.0, error=0.05).holds
        assert not task.lower(epsilon=1.0, error=0.2).holds


def test_numbers_outside_their_range_are_refused():
    with pytest.raises(ParameterError, match="dimension"):
        LogisticTask(dimension=0, delta=1e-6)
    with pytest.raises(ParameterError, match="scale"):
        LinearTask(scale=0.0, delta=1e-6)


@pytest.mark.parametrize("task", ["linear", "logistic"])
def test_people_who_differ_are_promised_less_than_people_who_are_alike(task):
    known = {"users": 3000, "epsilon": 1.0, "records": 20, "delta": 1e-6}
    alike, half, apart = (plan(task, between=share, **known) for share in (0.0, None, 0.9))
    assert alike.error < half.error < apart.error
    assert any("between" in line for line in half.advice)
    assert not any("between" in line for line in alike.advice)


@pytest.mark.parametrize("task", ["linear", "logistic"])
def test_no_number_of_records_replaces_people_who_differ(task):
    known = {"users": 3000, "epsilon": 1.0, "delta": 1e-6}
    few, many = (plan(task, records=m, **known).error for m in (10, 10**6))
    assert many > few / 2
    few, many = (plan(task, records=m, between=0.0, **known).error for m in (10, 10**6))
    assert many < few / 25


@BOTH
def test_few_people_who_differ_leave_more_unreached_than_many(kind):
    known = {"dimension": 5, "records": 20, "delta": 1e-6}
    few, many = (
        kind(**known).error(users, 1.0) / kind(between=0.0, **known).error(users, 1.0)
        for users in (2000, 10**8)
    )
    # With very many people their variance and skew are left, and nothing else.
    assert many < 100 < few
