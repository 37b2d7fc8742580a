"""A private descent: its states, the point that it returns, and curvature seen on the way."""

import numpy as np
import pytest

from quorate.core.account.account import Account
from quorate.core.users import UserData
from quorate.exceptions import ParameterError
from quorate.models import SquaredLoss
from quorate.models.optimization import descent
from quorate.models.optimization.descent import AveragedDescent, OptimizerState, descend
from quorate.models.optimization.gradients import GradientRelease, GradientRun, ReleasedGradient
from sealing import start_run


def test_precise_iterates_weigh_more():
    state = OptimizerState.start(np.zeros(1), steps=2)
    state = state.moved(np.array([1.0]), weight=1.0).moved(np.array([4.0]), weight=2.0)
    assert state.average[0] == pytest.approx(3.0)


def test_without_any_weight_the_last_iterate_is_returned():
    state = OptimizerState.start(np.zeros(1), steps=2).moved(np.array([5.0]), weight=0.0)
    assert AveragedDescent().aggregate(state)[0] == 5.0


def test_there_must_be_a_step():
    with pytest.raises(ParameterError, match="steps"):
        OptimizerState.start(np.zeros(1), steps=0)


class Fixed(GradientRelease, GradientRun):
    """Exact gradients of a parabola of the given steepness."""

    def __init__(self, steepness):
        self.steepness = np.asarray(steepness)

    def start(self, run, loss, *, steps):
        return self

    def release(self, theta, step):
        return ReleasedGradient(self.steepness * (theta - 1.0), noise=1e-9, whole=1e-9, radius=1.0)


class Noisy(Fixed):
    """Gradients of a parabola with Gaussian noise of a known size."""

    def __init__(self, steepness, *, noise, seed, clip=np.inf):
        super().__init__(steepness)
        self.noise, self.clip = noise, clip
        self.generator = np.random.default_rng(seed)

    def release(self, theta, step):
        value = self.steepness * (theta - 1.0)
        value *= min(1.0, self.clip / max(np.linalg.norm(value), 1e-300))
        value += self.noise * self.generator.normal(size=theta.size)
        return ReleasedGradient(value, noise=self.noise, whole=self.noise, radius=1.0)


class TestSteepness:
    def end(self, steepness, curvature=1.0):
        people = UserData(np.ones((3, 2)), np.ones(3), offsets=np.arange(4))
        return descend(
            start_run(people, Account.open(epsilon=1.0, delta=1e-6)),
            SquaredLoss(intercept=False),
            steps=30,
            optimizer=AveragedDescent(),
            gradients=Fixed(steepness),
            initial=np.zeros(2),
            curvature=curvature,
            shrinkage=0.0,
        ).theta

    def test_a_curvature_above_its_bound_is_noticed(self):
        np.testing.assert_allclose(self.end([5.0, 1.0]), 1.0, atol=0.01)

    def test_without_the_guard_the_descent_runs_away(self, monkeypatch):
        monkeypatch.setattr(AveragedDescent, "keeps_curvature", True)
        assert np.abs(self.end([5.0, 1.0])).max() > 100.0

    def test_noise_is_not_taken_for_curvature(self):
        guard = descent._Steepness(1.0, steps=40)
        noisy = {"noise": 1.0, "whole": 1.0, "radius": 1.0}
        guard.after(np.zeros(1), ReleasedGradient(np.array([-1.0]), **noisy), size=0.0)
        assert guard.after(np.ones(1), ReleasedGradient(np.array([1.0]), **noisy), size=1.0) == 1.0
        sure = {"noise": 1e-3, "whole": 1e-3, "radius": 1.0}
        guard.after(np.zeros(1), ReleasedGradient(np.array([-1.0]), **sure), size=1.0)
        seen = guard.after(np.ones(1), ReleasedGradient(np.array([0.7]), **sure), size=1.0)
        assert seen == pytest.approx(1.7, abs=1e-5)

    @pytest.mark.parametrize(("noise", "size"), [(0.3, 1.2), (2.0, 0.8), (50.0, 1.0)])
    def test_one_step_in_twenty_takes_noise_for_curvature(self, noise, size):
        """At the bound itself, where the alarm is nearest; noise used to add 1 / size to it."""
        d, rng, alarms = 30, np.random.default_rng(0), 0
        known = {"noise": noise, "whole": noise, "radius": 1.0}
        for _ in range(400):
            guard, theta = descent._Steepness(1.0, steps=1), np.ones(d)
            first, second = noise * rng.normal(size=(2, d))
            guard.after(theta, ReleasedGradient(theta + first, **known), size=0.0)
            there = theta - size * (theta + first)
            alarms += guard.after(there, ReleasedGradient(there + second, **known), size=size) > 1.0
        assert alarms <= 37  # binomial: more than 37 of 400 at 1/20 have a probability of 1e-4

    def heavy(self, optimizer, monkeypatch, *, noise, steps=60, size=30, seed=0):
        """Return the curvatures taken on the way down a parabola of steepness 1/30."""
        people, taken = UserData(np.ones((3, size)), np.ones(3), offsets=np.arange(4)), []
        update = type(optimizer).update

        def watched(self, state, gradient, *, curvature, precision):
            taken.append(curvature)
            return update(self, state, gradient, curvature=curvature, precision=precision)

        with monkeypatch.context() as patch:
            patch.setattr(type(optimizer), "update", watched)
            descend(
                start_run(people, Account.open(epsilon=1.0, delta=1e-6)),
                SquaredLoss(intercept=False),
                steps=steps,
                optimizer=optimizer,
                gradients=Noisy(np.full(size, 1.0 / size), noise=noise, seed=seed),
                initial=np.zeros(size),
                curvature=1.0,
                shrinkage=0.0,
            )
        return taken

    def test_heavy_noise_raises_no_alarm(self, monkeypatch):
        """Of 40 runs one in twenty may; before, every run ended at twenty times the curvature."""
        alarms = 0
        for seed in range(40):
            taken = self.heavy(AveragedDescent(), monkeypatch, noise=0.05, seed=seed)
            alarms += len(set(taken)) > 1
        assert alarms <= 8  # binomial: more than 8 of 40 at 1/20 have a probability of 2e-4

    @pytest.mark.claim("U5: Proposition 3")
    def test_published_steps_are_those_of_the_declared_curvature(self, monkeypatch):
        """They used to end at 20.5: noise was taken for curvature."""
        published = AveragedDescent(radius=1.0, constants="published")
        assert set(self.heavy(published, monkeypatch, noise=1.0)) == {1.0}
