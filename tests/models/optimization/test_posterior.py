"""The posterior of a minimum: what noise hides stays where it was, what people say is followed."""

import numpy as np
import pytest

from quorate.models.optimization.posterior import Observed, Posterior

SIZE = 20


def walked(truth, *, noise, steps=20, curvature=1.0, seed=0, unsure=0.5, known=0):
    """Return the posterior after gradients of a quadratic; ``known`` coordinates have a prior."""
    rng = np.random.default_rng(seed)
    before = np.full(truth.size, np.inf)
    before[:known] = 1.0
    belief = Posterior(
        start=np.zeros(truth.size),
        variance_before=before,
        widest=3.0,
        unsure=np.full(truth.size, unsure),
        pull=np.zeros(truth.size),
    )
    for _ in range(steps):
        theta = belief.mean
        gradient = curvature * (theta - truth) + noise * rng.normal(size=truth.size)
        seen = Observed(theta, gradient, np.full(truth.size, noise), np.ones(truth.size))
        belief = belief.after(seen)
    return belief


@pytest.mark.parametrize("curvature", [0.3, 1.0, 2.0])
def test_the_minimum_is_found_whatever_the_curvature(curvature):
    truth = np.random.default_rng(1).normal(size=SIZE)
    found = walked(truth, noise=1e-4, curvature=curvature)
    assert np.abs(found.mean - truth).max() < 0.02


def test_noise_alone_moves_nothing():
    """Without shrinkage the squared length would be that of the noise, .2: a tenth is left."""
    noise = np.sqrt(0.2 / SIZE * 20)
    lengths = [
        float(np.sum(walked(np.zeros(SIZE), noise=noise, seed=seed).mean ** 2))
        for seed in range(10)
    ]
    assert np.mean(lengths) < 0.02


def test_what_people_say_is_not_shrunk():
    truth = np.full(SIZE, 0.5)
    assert np.linalg.norm(walked(truth, noise=0.02).mean) > 0.95 * np.linalg.norm(truth)


@pytest.mark.parametrize(("noise", "curvature"), [(0.3, 1.0), (0.05, 1.0), (0.05, 0.6)])
def test_intervals_hold_as_often_as_they_say(noise, curvature):
    inside = []
    for seed in range(25):
        truth = 0.5 * np.random.default_rng([2, seed]).normal(size=SIZE)
        found = walked(truth, noise=noise, curvature=curvature, seed=seed)
        inside.append(np.abs(found.mean - truth) < 1.96 * np.sqrt(found.variance))
    assert 0.9 <= np.mean(inside) <= 1.0


def test_half_of_the_standard_errors_would_not_hold():
    """The broken twin of the test above."""
    inside = []
    for seed in range(25):
        truth = 0.5 * np.random.default_rng([2, seed]).normal(size=SIZE)
        found = walked(truth, noise=0.3, seed=seed)
        inside.append(np.abs(found.mean - truth) < 0.98 * np.sqrt(found.variance))
    assert np.mean(inside) < 0.85


def test_a_known_prior_is_kept_without_gradients():
    belief = walked(np.ones(3), noise=1.0, steps=0, known=3)
    assert belief.mean.tolist() == [0.0] * 3
    assert belief.variance.tolist() == [1.0] * 3


def test_a_penalty_pulls_to_zero():
    """Of half (x - 1)^2 and strength / 2 x^2 the minimum is 1 / (1 + strength)."""
    belief = Posterior(
        start=np.zeros(2),
        variance_before=np.full(2, np.inf),
        widest=3.0,
        unsure=np.full(2, 0.5),
        pull=np.array([1.0, 3.0]),
    )
    for _ in range(20):
        theta = belief.mean
        belief = belief.after(Observed(theta, theta - 1.0, np.full(2, 1e-4), np.ones(2)))
    np.testing.assert_allclose(belief.mean, [0.5, 0.25], atol=0.01)


@pytest.mark.parametrize("size", [1e200, 1e-200, np.inf, np.nan])
def test_numbers_of_any_size_leave_it_finite(size):
    belief = walked(np.zeros(3), noise=1.0, steps=2)
    seen = Observed(np.full(3, 1e150), np.full(3, size), np.full(3, 1e-150), np.ones(3))
    found = belief.after(seen)
    assert np.isfinite(found.mean).all()
    assert np.isfinite(found.variance).all()
