"""Optimisers: small objects that move along released gradients."""

import numpy as np
import pytest

from quorate.exceptions import ParameterError
from quorate.models.optimization.descent import AveragedDescent, OptimizerState
from quorate.models.optimization.optimizers import Adam, RandomIterateDescent, RestartedDescent

CURVATURES = np.array([0.2, 0.5, 1.0])
TARGET = np.array([1.0, -2.0, 0.5])


def run(optimizer, *, steps=60, noise=0.0, seed=0, start=None, known=0.0):
    rng = np.random.default_rng(seed)
    start = np.zeros(3) if start is None else start
    state = OptimizerState.start(start, steps=steps, noise=known)
    for _ in range(steps):
        gradient = CURVATURES * (optimizer.query(state) - TARGET) + noise * rng.normal(size=3)
        state = optimizer.update(state, gradient, curvature=1.0, precision=1.0)
    assert state.step == steps
    return optimizer.aggregate(state)


def slope(theta):
    """Return the gradient of the sum of t^2 / (1 + t^2), which is not convex."""
    return 2.0 * theta / (1.0 + theta**2) ** 2


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
    def test_it_returns_a_point_at_which_a_gradient_was_taken(self):
        """The bound is about theta_0 to theta_{T-1}; the point after the last step is not asked."""
        ends = set()
        for seed in range(60):
            optimizer = RandomIterateDescent(random_state=seed)
            state, asked = OptimizerState.start(np.zeros(3), steps=10), []
            for _ in range(10):
                asked.append(state.theta)
                state = optimizer.update(
                    state, CURVATURES * (state.theta - TARGET), curvature=1.0, precision=1.0
                )
            end = optimizer.aggregate(state)
            ends.update(t for t in range(10) if np.array_equal(end, asked[t]))
        assert ends == set(range(10))

    def test_which_one_depends_on_the_seed(self):
        ends = {tuple(run(RandomIterateDescent(random_state=s), steps=10)) for s in range(8)}
        assert len(ends) > 1

    def test_each_iterate_comes_back_equally_often(self):
        # Drawn anew at each step the last of ten came back in 46 % of runs.
        ends = np.zeros(10)
        optimizer = RandomIterateDescent(random_state=None)
        for _ in range(500):
            state = OptimizerState.start(np.zeros(1), steps=10)
            for _ in range(10):
                state = optimizer.update(state, -np.ones(1), curvature=1.0, precision=1.0)
            ends[int(optimizer.aggregate(state)[0])] += 1
        assert ends.sum() == 500
        assert ends.min() > 20
        assert ends.max() < 90


@pytest.mark.claim("U5: Proposition 3")
class TestStepsOfProposition3:
    """Step sizes of order one over the root of T, and what they promise."""

    def test_the_lengths_are_those_of_the_module(self):
        state = OptimizerState.start(np.zeros(1), steps=100, noise=3.0)
        move = {"curvature": 2.0, "precision": 1.0}
        published = {"constants": "published", "radius": 50.0}
        convex = AveragedDescent(**published).update(state, -np.ones(1), **move)
        assert convex.theta[0] == pytest.approx(1.0 / (2.0 + 3.0 * 10.0 / 100.0))
        other = RandomIterateDescent(**published | {"radius": 0.5})
        assert other.update(state, -np.ones(1), **move).size == pytest.approx(2**0.5 / 30.0)
        assert RandomIterateDescent(**published).update(state, -np.ones(1), **move).size == 0.5

    def test_restarted_steps_and_shares(self):
        descent = RestartedDescent(condition=3.0, radius=1e9, constants="published")
        state, lengths = OptimizerState.start(np.zeros(1), steps=20), []
        for step in range(20):
            moved = descent.update(state, -np.ones(1), curvature=2.0, precision=1.0)
            if step == 9:  # the restart
                assert moved.theta[0] == moved.average[0] < state.theta[0] + 0.5
            else:
                lengths.append(moved.theta[0] - state.theta[0])
            state = moved
        # 2 / (mu (k + 2)) with mu = 2 / 3, but never more than 1 / H.
        falling = [min(0.5, 3.0 / (k + 2)) for k in range(1, 11)]
        np.testing.assert_allclose(lengths, [0.5] * 9 + falling)

    @pytest.mark.parametrize(("steps", "noise"), [(20, 0.3), (100, 2.0), (400, 0.5)])
    def test_the_convex_bound_holds(self, steps, noise):
        optimizer = AveragedDescent(radius=3.0, constants="published")
        ends = [
            run(optimizer, steps=steps, noise=noise, seed=s, known=noise * 3**0.5)
            for s in range(20)
        ]
        excess = np.mean(((ends - TARGET) ** 2 * CURVATURES).sum(axis=1)) / 2.0
        assert excess <= 6.0**2 / (2 * steps) + 6.0 * noise * (3 / steps) ** 0.5

    def test_strongly_convex_excess_falls_as_one_over_t(self):
        optimizer = RestartedDescent(condition=5.0, radius=3.0, constants="published")
        excess = {}
        for steps in (100, 800):
            ends = [run(optimizer, steps=steps, noise=1.0, seed=s) for s in range(20)]
            excess[steps] = np.mean(((ends - TARGET) ** 2 * CURVATURES).sum(axis=1)) / 2.0
        assert excess[800] < excess[100] / 4.0

    @pytest.mark.parametrize("options", [{}, {"constants": "published", "radius": 4.0}], ids=str)
    def test_non_convex_gradients_vanish_with_more_steps(self, options):
        # The steps of the first release stay at a squared gradient of 0.9 for any number of them.
        mean = {}
        for steps in (100, 2500):
            squares = []
            for seed in range(15):
                optimizer = RandomIterateDescent(random_state=seed, **options)
                rng = np.random.default_rng(seed)
                state = OptimizerState.start(np.full(5, 1.5), steps=steps, noise=2.0)
                for _ in range(steps):
                    noise = rng.normal(size=5) * 2.0 / 5**0.5
                    gradient = slope(state.theta) + noise
                    state = optimizer.update(state, gradient, curvature=2.0, precision=1.0)
                squares.append((slope(optimizer.aggregate(state)) ** 2).sum())
            mean[steps] = np.mean(squares)
        assert mean[2500] < 0.45
        assert mean[2500] < 0.6 * mean[100]

    @pytest.mark.parametrize(("first", "later"), [(1.0, 1.0), (0.3, 0.3), (1.0, 0.01)])
    def test_a_known_radius_never_hurts(self, first, later):
        """It used to switch to short steps: .0013 with a radius of one, .00015 without.

        The noise of the first gradient decided that, also where later ones are released with less.
        """
        known = {"steps": 100, "noise": later, "known": first * 3**0.5}
        inside, free = (
            [run(AveragedDescent(radius=radius), seed=s, **known) for s in range(20)]
            for radius in (3.0, None)
        )
        error = [
            np.mean(((ends - TARGET) ** 2 * CURVATURES).sum(axis=1)) for ends in (inside, free)
        ]
        assert error[0] <= error[1]

    @pytest.mark.parametrize("noise", [0.01, 1.0])
    def test_a_radius_that_is_never_reached_changes_nothing(self, noise):
        known = {"steps": 100, "noise": noise, "known": noise * 3**0.5}
        np.testing.assert_array_equal(
            run(AveragedDescent(radius=30.0), **known), run(AveragedDescent(), **known)
        )

    @pytest.mark.parametrize("make", [AveragedDescent, RestartedDescent, RandomIterateDescent])
    def test_published_steps_need_a_radius(self, make):
        with pytest.raises(ParameterError, match="radius"):
            make(constants="published")
        with pytest.raises(ParameterError, match="constants"):
            make(constants="best")


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
