"""Optimisers: small objects that move along released gradients."""

import numpy as np
import pytest

from quorate.exceptions import ParameterError
from quorate.models.optimizers import (
    Adam,
    AveragedDescent,
    OptimizerState,
    RandomIterateDescent,
    RestartedDescent,
)

CURVATURES = np.array([0.2, 0.5, 1.0])
TARGET = np.array([1.0, -2.0, 0.5])


def run(optimizer, *, steps=60, noise=0.0, seed=0, start=None):
    rng = np.random.default_rng(seed)
    state = OptimizerState.start(np.zeros(3) if start is None else start, steps=steps)
    for _ in range(steps):
        gradient = CURVATURES * (optimizer.query(state) - TARGET) + noise * rng.normal(size=3)
        state = optimizer.update(state, gradient, curvature=1.0, precision=1.0)
    assert state.step == steps
    return optimizer.aggregate(state)


OPTIMIZERS = [
    AveragedDescent(),
    AveragedDescent(momentum=0.5),
    RestartedDescent(condition=5.0),
    Adam(learning_rate=0.2),
]


@pytest.mark.parametrize("optimizer", OPTIMIZERS, ids=repr)
class TestConvergence:
    def test_it_finds_the_minimum_of_a_quadratic(self, optimizer):
        assert np.abs(run(optimizer, steps=120) - TARGET).max() < 0.15

    def test_it_survives_noise(self, optimizer):
        assert np.abs(run(optimizer, steps=200, noise=0.1) - TARGET).max() < 0.5


class TestAveraging:
    def test_the_average_is_calmer_than_the_last_iterate(self):
        averaged = [run(AveragedDescent(), steps=100, noise=0.5, seed=s) for s in range(40)]
        last = [run(AveragedDescent(tail=0.01), steps=100, noise=0.5, seed=s) for s in range(40)]
        assert np.var(averaged, axis=0).sum() < 0.5 * np.var(last, axis=0).sum()

    def test_precise_iterates_weigh_more(self):
        state = OptimizerState.start(np.zeros(1), steps=2)
        state = state.moved(np.array([1.0]), weight=1.0).moved(np.array([4.0]), weight=2.0)
        assert state.average[0] == pytest.approx(3.0)

    def test_without_any_weight_the_last_iterate_is_returned(self):
        state = OptimizerState.start(np.zeros(1), steps=2).moved(np.array([5.0]), weight=0.0)
        assert AveragedDescent().aggregate(state)[0] == 5.0


class TestProjection:
    @pytest.mark.parametrize(
        "optimizer",
        [
            AveragedDescent(radius=1.0),
            RestartedDescent(radius=1.0),
            RandomIterateDescent(radius=1.0),
        ],
    )
    def test_parameters_stay_in_the_ball(self, optimizer):
        assert np.linalg.norm(run(optimizer)) <= 1.0 + 1e-12


class TestRandomIterate:
    def test_it_returns_one_of_its_iterates(self):
        optimizer = RandomIterateDescent(random_state=3)
        state, seen = OptimizerState.start(np.zeros(3), steps=10), []
        for _ in range(10):
            state = optimizer.update(
                state, CURVATURES * (state.theta - TARGET), curvature=1.0, precision=1.0
            )
            seen.append(state.theta)
        assert any(np.array_equal(optimizer.aggregate(state), theta) for theta in seen)

    def test_which_one_depends_on_the_seed(self):
        ends = {tuple(run(RandomIterateDescent(random_state=s), steps=10)) for s in range(8)}
        assert len(ends) > 1


class TestRefusals:
    @pytest.mark.parametrize("make", [AveragedDescent, RestartedDescent, RandomIterateDescent])
    def test_a_step_size_must_be_positive(self, make):
        with pytest.raises(ParameterError, match="step_size"):
            make(step_size=0.0)

    def test_momentum_stays_below_one(self):
        with pytest.raises(ParameterError, match="momentum"):
            AveragedDescent(momentum=1.0)
        with pytest.raises(ParameterError, match="decay"):
            Adam(decay=1.0)

    def test_there_must_be_a_step(self):
        with pytest.raises(ParameterError, match="steps"):
            OptimizerState.start(np.zeros(1), steps=0)
