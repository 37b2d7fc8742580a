"""Plans for parities and the smallest error: what the learners themselves ask for."""

import numpy as np
import pytest

from quorate.core.guarantees import Relation
from quorate.core.noise import SeededNoise, use_noise
from quorate.exceptions import ParameterError
from quorate.learners import ParityLearner, PrivateMinError
from quorate.learners.concepts import Thresholds
from quorate.planning import plan
from quorate.planning.tasks.exact_rules import ParityTask, SmallestErrorTask


def test_a_parity_is_found_with_the_users_that_a_plan_asks_for():
    error = 0.5 * 2**-1.25  # one of the errors that a plan can speak of
    found = plan("parity", epsilon=2.0, error=error, dimension=6)
    asked = ParityLearner(2.0, inputs="any", error=error, failure=1 - 0.9)
    assert found.users == asked.users_needed(6)
    rng = np.random.default_rng(0)
    X = (rng.random((found.users, 6)) < 0.5).astype(int)
    y = (X[:, 1] + X[:, 4]) % 2
    right = 0
    for seed in range(10):
        learner = ParityLearner(2.0, inputs="any", error=error, failure=0.11)
        with use_noise(SeededNoise(seed)):
            right += (learner.fit(X, y, users=range(len(X))).predict(X) == y).mean() >= 1 - error
    assert right >= 9
    (coins,) = found.sufficient
    assert coins.users < found.users / 5


def test_the_smallest_error_is_found_with_the_users_that_a_plan_asks_for():
    task = SmallestErrorTask(size=50, records=16)
    error = 0.5 * 2**-1.75  # one of the errors that a plan can speak of
    users = plan("smallest-error", epsilon=1.0, error=error, size=50, records=16).users
    assert users == task.users_for(error, 1.0)
    off = []
    for seed in range(6):
        rng = np.random.default_rng(seed)
        x = rng.integers(0, 50, users * 16)
        y = (x >= 25) ^ (rng.random(len(x)) < 0.2)
        learner = PrivateMinError(Thresholds(0, 49), 1.0, excess=error, records=16)
        with use_noise(SeededNoise(seed)):
            learner.fit(x[:, None], y.astype(int), users=np.repeat(np.arange(users), 16))
        off.append(abs(learner.min_error_ - 0.2))
    assert np.mean(np.array(off) <= error) >= 5 / 6


def test_refusals_and_limits():
    with pytest.raises(ParameterError, match="REPLACE"):
        ParityTask(relation=Relation.ADD_REMOVE)
    assert ParityTask().lower(epsilon=1.0, error=0.3).users == 1.0
    assert ParityTask(dimension=40).lower(epsilon=1.0, error=0.1).users > 20
    assert ParityTask().error(1, 1.0) == ParityTask().largest_error
    assert SmallestErrorTask().assumptions
