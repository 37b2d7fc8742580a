"""A private descent: its states, the point that it returns, and curvature seen on the way."""

import numpy as np
import pytest

from quorate.accounting.account import Account
from quorate.exceptions import ParameterError
from quorate.models import SquaredLoss
from quorate.models.optimization import descent
from quorate.models.optimization.descent import AveragedDescent, OptimizerState, descend
from quorate.models.optimization.gradients import GradientRelease, GradientRun, ReleasedGradient
from quorate.releases.user_releases import UserReleases
from quorate.users import UserData


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

    def __init__(self, steepness, *, noise, seed):
        super().__init__(steepness)
        self.noise = noise
        self.generator = np.random.default_rng(seed)

    def release(self, theta, step):
        value = self.steepness * (theta - 1.0) + self.noise * self.generator.normal(size=theta.size)
        return ReleasedGradient(value, noise=self.noise, whole=self.noise, radius=1.0)


class TestSteepness:
    def end(self, steepness, curvature=1.0, agreed=0.0):
        people = UserData(np.ones((3, 2)), np.ones(3), offsets=np.arange(4))
        return descend(
            UserReleases.start(people, Account.open(epsilon=1.0, delta=1e-6)),
            SquaredLoss(intercept=False),
            steps=30,
            optimizer=AveragedDescent(),
            gradients=Fixed(steepness),
            initial=np.zeros(2),
            curvature=curvature,
            shrinkage=0.0,
            agreed=agreed,
        ).theta

    def test_steps_are_longer_where_users_agree(self):
        """The radius is one; what is left shrinks by 1 - 1.2 x .02 x pace a step."""
        left = [1.0 - self.end([0.02, 0.02], agreed=agreed)[0] for agreed in (0.5, 1.69, 1e6)]
        assert left[0] > 1.1 * left[1] > 1.21 * left[2]

    def test_a_curvature_above_its_bound_is_noticed(self):
        np.testing.assert_allclose(self.end([5.0, 1.0]), 1.0, atol=0.01)

    def test_without_the_guard_the_descent_runs_away(self, monkeypatch):
        monkeypatch.setattr(AveragedDescent, "keeps_curvature", True)
        assert np.abs(self.end([5.0, 1.0])).max() > 100.0

    def test_noise_is_not_taken_for_curvature(self):
        guard = descent._Steepness(1.0)
        noisy = {"noise": 1.0, "whole": 1.0, "radius": 1.0}
        guard.after(np.zeros(1), ReleasedGradient(np.array([-1.0]), **noisy))
        assert guard.after(np.ones(1), ReleasedGradient(np.array([1.0]), **noisy)) == 1.0
        sure = {"noise": 1e-3, "whole": 1e-3, "radius": 1.0}
        guard.after(np.zeros(1), ReleasedGradient(np.array([-1.0]), **sure))
        assert guard.after(np.ones(1), ReleasedGradient(np.array([0.7]), **sure)) == pytest.approx(
            1.7
        )

    def heavy(self, optimizer, *, noise, steps=60, size=30, seed=0):
        """Return the curvatures taken on the way down a parabola of steepness 1/30."""
        gradients = Noisy(np.full(size, 1.0 / size), noise=noise, seed=seed)
        people = UserData(np.ones((3, size)), np.ones(3), offsets=np.arange(4))
        minimum = descend(
            UserReleases.start(people, Account.open(epsilon=1.0, delta=1e-6)),
            SquaredLoss(intercept=False),
            steps=steps,
            optimizer=optimizer,
            gradients=gradients,
            initial=np.zeros(size),
            curvature=1.0,
            shrinkage=0.0,
        )
        return [step.curvature for step in minimum.path]

    @pytest.mark.claim("U5: Proposition 3")
    def test_published_steps_are_those_of_the_declared_curvature(self):
        """They used to end at 20.5: noise was taken for curvature."""
        published = AveragedDescent(radius=1.0, constants="published")
        assert set(self.heavy(published, noise=1.0)) == {1.0}
