"""Plans of distributions against what the estimators reach."""

import itertools

import numpy as np
import pytest

from crowds_of_shares import alike, zipf
from quorate.core.guarantees import Relation
from quorate.core.noise import SeededNoise, use_noise
from quorate.distributions import DiscreteDistribution, EmpiricalCDF, GaussianDistribution
from quorate.planning import plan
from quorate.planning.tasks.distribution import CdfTask, NormalTask, SharesTask

TASKS = [
    SharesTask(size=20, records=8),
    SharesTask(size=20, records=256, delta=1e-6),
    CdfTask(records=4),
    NormalTask(dimension=2, records=16),
    NormalTask(dimension=5, records=16, delta=1e-6),
]
every_task = pytest.mark.parametrize("task", TASKS, ids=repr)


@every_task
class TestShape:
    def test_errors_fall_with_users_and_epsilon(self, task):
        by_users = [task.error(n, 1.0) for n in (100, 1000, 10_000, 100_000)]
        by_epsilon = [task.error(5000, e) for e in (0.1, 0.5, 1.0, 4.0)]
        for errors in (by_users, by_epsilon):
            assert all(a >= b for a, b in itertools.pairwise(errors))

    def test_what_is_needed_is_less_than_what_suffices(self, task):
        error = task.error(20_000, 1.0)
        lower = task.lower(epsilon=1.0, error=error)
        assert lower.users <= 20_000
        assert task.upper(epsilon=1.0, error=error).users > 0

    def test_a_plan_can_be_made(self, task):
        known = dict(task.description)
        answer = plan(
            task.name, users=5000, epsilon=1.0, records=task.records, delta=task.delta, **known
        )
        assert answer.error > 0
        assert answer.algorithm == task.algorithm(5000, 1.0)[0]


def share_within(errors, planned):
    return np.mean(np.array(errors) <= planned)


class TestForecasts:
    @pytest.mark.parametrize(
        ("size", "users", "records", "delta"),
        [(6, 500, 4, 0.0), (30, 2000, 4, 0.0), (20, 2000, 200, 1e-6), (300, 1500, 8, 0.0)],
    )
    def test_shares(self, size, users, records, delta):
        errors = []
        for seed in range(12):
            labels, ids = alike(users, records, size, seed=seed)
            with use_noise(SeededNoise(seed)):
                one = DiscreteDistribution(1.0, categories=range(size), delta=delta)
                one.fit(labels, users=ids)
            errors.append(0.5 * np.abs(one.pmf_ - zipf(size)).sum())
        planned = SharesTask(size=size, records=records, delta=delta, between=0.0).error(users, 1.0)
        assert share_within(errors, planned) >= 0.75
        assert planned <= 2.5 * np.mean(errors)

    def test_distribution_functions(self):
        errors = []
        for seed in range(12):
            values = np.random.default_rng(seed).random(4000)
            with use_noise(SeededNoise(seed)):
                one = EmpiricalCDF(1.0, bounds=(0.0, 1.0), cells=256)
                one.fit(values, users=np.arange(4000) // 4)
            errors.append(np.abs(one.cdf_ - one.edges_).max())
        planned = CdfTask(size=256, records=4, between=0.0).error(1000, 1.0)
        assert share_within(errors, planned) >= 0.75
        assert planned <= 3.0 * np.mean(errors)

    def test_normal_means(self):
        errors = []
        for seed in range(20):
            rows = np.random.default_rng(seed).normal(7.0, 1.0, size=(3200, 1))
            with use_noise(SeededNoise(seed)):
                one = GaussianDistribution(1.0, bounds=1000.0, covariance=[[1.0]])
                one.fit(rows, users=np.arange(3200) // 16)
            errors.append(abs(one.mean_[0] - 7.0))
        planned = NormalTask(records=16, between=0.0).error(200, 1.0)
        assert share_within(errors, planned) >= 0.8
        assert planned <= 4.0 * np.mean(errors)


def test_a_private_number_of_users_has_its_own_noise():
    known = {"size": 10, "records": 4}
    added = SharesTask(relation=Relation.ADD_REMOVE, **known).error(2000, 1.0)
    assert added < SharesTask(**known).error(2000, 1.0)
