"""What a descent leaves behind is what it released, and noise is told from what people say."""

import itertools
import math
from dataclasses import replace

import numpy as np
import pytest

from quorate.accounting.account import Account
from quorate.guarantees import Gaussian
from quorate.models import LinearRegression, LogisticRegression
from quorate.models.coordinates.geometry import Geometry
from quorate.models.last_look import evidence_of
from quorate.models.optimization.descent import AveragedDescent, Minimum, OptimizerState, descend
from quorate.models.optimization.descent_noise import (
    are_doubtful,
    are_drowned,
    are_only_noise,
    distance_over_noise,
    parameter_noise,
)
from quorate.models.optimization.gradients import ClippedGradients, DescentStep, TraceStep
from quorate.models.regression_losses import SquaredLoss
from quorate.noise import SeededNoise, use_noise
from quorate.users import UserData
from sealing import start_run


def test_the_path_leads_to_the_end():
    people = UserData(np.ones((400, 1)), np.full(400, 2.0), offsets=np.arange(401))
    with use_noise(SeededNoise(0)):
        minimum = descend(
            start_run(people, Account.open(epsilon=2.0, delta=1e-6)),
            SquaredLoss(intercept=False),
            steps=6,
            optimizer=AveragedDescent(step_size=1.0),
            gradients=ClippedGradients(),
            initial=np.zeros(1),
            curvature=1.0,
            penalty=0.1,
        )
    path = minimum.path
    assert all(isinstance(step, DescentStep) for step in path)
    assert [step.noise for step in path] == [step.noise for step in minimum.trace]
    for step, after in itertools.pairwise(path):
        pull = (0.1 + step.shrinkage) * step.theta
        moved = step.theta - (step.gradient + pull) / step.curvature
        np.testing.assert_allclose(after.theta, moved)
    assert (minimum.penalty, minimum.optimizer) == (0.1, AveragedDescent(step_size=1.0))


def descent(truth, rng, *, noise=0.1, steps=20, curvature=0.8):
    """Return where a descent on noisy gradients of a quadratic ends, as a fit would."""
    optimizer = AveragedDescent(step_size=1.0)
    state = OptimizerState.start(np.zeros(truth.size), steps=steps)
    path, trace = [], []
    for step in range(steps):
        theta = optimizer.query(state)
        gradient = curvature * (theta - truth) + noise * rng.normal(size=truth.size)
        path.append(
            DescentStep(theta=theta, gradient=gradient, noise=noise, curvature=1.0, shrinkage=0.0)
        )
        trace.append(TraceStep(step=step, radius=0.5, gradient_norm=1.0, noise=noise, penalty=0.0))
        state = optimizer.update(state, gradient, curvature=1.0, precision=1.0)
    return Minimum(
        theta=optimizer.aggregate(state),
        event=Gaussian(1.0),
        trace=tuple(trace),
        path=tuple(path),
        optimizer=optimizer,
    )


def judged(minimum):
    features = minimum.theta.size - 1
    geometry = Geometry(np.zeros(features), np.asarray(1.0))
    noise = parameter_noise(minimum, SquaredLoss(), geometry, whitened=False, sampled=False)
    penalized = ~SquaredLoss().unpenalized(features)
    return are_only_noise(minimum, noise, penalized=penalized)


class TestDescents:
    def test_of_noise_alone_most_are_seen_through(self):
        rng = np.random.default_rng(0)
        assert np.mean([judged(descent(np.zeros(9), rng)) for _ in range(60)]) > 0.8

    def test_of_people_who_agree_none_are(self):
        rng = np.random.default_rng(1)
        truth = np.append(np.full(8, 0.2), 0.0)
        assert not any(judged(descent(truth, rng)) for _ in range(60))

    def test_an_intercept_alone_is_no_coefficient(self):
        rng = np.random.default_rng(2)
        truth = np.append(np.zeros(8), 50.0)
        assert np.mean([judged(descent(truth, rng)) for _ in range(60)]) > 0.8


class TestMeasure:
    minimum = descent(np.append(np.full(4, 3.0), 0.0), np.random.default_rng(3))
    penalized = np.array([True] * 4 + [False])

    def over(self, noise):
        return distance_over_noise(self.minimum, noise, penalized=self.penalized)

    def test_four_times_the_covariance_is_a_quarter(self):
        assert self.over(4.0 * np.eye(5)) == pytest.approx(self.over(np.eye(5)) / 4.0)

    def test_the_noise_of_the_intercept_is_left_out(self):
        noise = np.diag([1.0, 1.0, 1.0, 1.0, 1e9])
        assert self.over(noise) == pytest.approx(self.over(np.eye(5)))

    def test_where_noise_cannot_be_told_the_gain_decides(self):
        known = {"penalized": self.penalized}
        assert not are_only_noise(self.minimum, "Nobody knows.", **known)
        lost = Minimum(
            theta=self.minimum.theta,
            event=Gaussian(1.0),
            trace=self.minimum.trace,
            path=self.minimum.path,
            gain=-3.0,
            gain_error=1.0,
        )
        assert are_only_noise(lost, "Nobody knows.", **known)


def test_the_more_few_users_tell_the_shorter_a_way_shows_something():
    """The covariance of 300 users with 100 records was fifty times too cautious."""
    minimum = descent(np.append(np.full(4, 3.0), 0.0), np.random.default_rng(3))
    penalized = np.array([True] * 4 + [False])
    over = distance_over_noise(minimum, np.eye(5), penalized=penalized)
    noise = 2.0 * over * np.eye(5)

    def shown(signal):
        return evidence_of(minimum, noise, penalized=penalized, signal=signal)

    assert [shown(signal) > 1.0 for signal in (None, 3.0, 9.0, 35.0)] == [False, False, True, True]


def test_a_radius_search_that_went_wrong_drowns_gradients():
    # Seen at 300 users with one record each: a radius of 55,705 and an excess risk of 8,217.
    assert are_drowned(6060.0, 21, largest=1.0)
    assert are_drowned(0.74, 21, largest=1.0)
    assert not are_drowned(0.24, 21, largest=1.0)
    assert not are_drowned(math.inf, 21, largest=None)


@pytest.mark.parametrize("model", [LinearRegression, LogisticRegression])
def test_a_fit_on_useless_features_ends_as_a_constant_and_one_on_useful_ones_does_not(model):
    rng = np.random.default_rng(4)
    X = rng.normal(size=(3000, 8))
    chance = rng.normal(size=3000)
    useful = X @ np.full(8, 0.5) + 0.3 * chance
    names = []
    for target in (chance, useful):
        y = target if model is LinearRegression else (target > 0).astype(float)
        people = UserData(X, y, offsets=np.arange(0, 3001, 10))
        with use_noise(SeededNoise(5)):
            names.append(model().fit(people).algorithm_.name)
    assert names == ["constant", "few"]


def test_after_one_step_only_drowning_is_asked_about():
    minimum = descent(np.zeros(5), np.random.default_rng(4))
    one = replace(minimum, path=minimum.path[:1], trace=minimum.trace[:1])
    penalized = np.array([True] * 4 + [False])

    def unknown(_):
        raise AssertionError

    slight = minimum.path[0].noise
    assert are_doubtful(one, unknown, penalized=penalized, largest=slight)
    assert not are_doubtful(one, unknown, penalized=penalized, largest=2.0 * slight)
    assert not are_doubtful(one, unknown, penalized=penalized, largest=None)
    assert are_doubtful(minimum, lambda _: 1e9 * np.eye(5), penalized=penalized, largest=1e9)
    assert not are_doubtful(minimum, None, penalized=penalized, largest=1e9)
