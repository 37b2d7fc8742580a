"""The nearest distribution, and bounds of how far it is from the truth."""

import numpy as np
import pytest

from crowds_of_shares import zipf
from quorate.distributions.projection import (
    balanced_bound,
    balanced_noise,
    gaussian_bound,
    laplace_bound,
    laplace_sum,
    mixed_bound,
    nearest_distribution,
)

RUNS = 400


def total_variation(first, second):
    return 0.5 * np.abs(first - second).sum()


def worst(values):
    """The distance of the nearest distribution among many, found by search."""
    rng = np.random.default_rng(1)
    others = rng.dirichlet(np.full(values.size, 0.5), size=4000)
    return np.sqrt(((others - values) ** 2).sum(axis=1)).min()


class TestNearestDistribution:
    def test_no_other_distribution_is_nearer(self):
        rng = np.random.default_rng(0)
        for _ in range(20):
            values = rng.normal(0.3, 0.5, size=3)
            found, level = nearest_distribution(values)
            assert found.sum() == pytest.approx(1.0)
            assert found.min() >= 0
            assert np.allclose(np.maximum(values - level, 0), found)
            assert np.linalg.norm(found - values) <= worst(values) + 1e-9

    def test_a_distribution_stays(self):
        assert np.allclose(nearest_distribution(zipf(9))[0], zipf(9))


@pytest.mark.parametrize("categories", [2, 7, 60, 500])
class TestBounds:
    def held(self, categories, noise, bound):
        truth, rng, held, errors, bounds = zipf(categories), np.random.default_rng(3), 0, [], []
        for _ in range(RUNS):
            found, level = nearest_distribution(truth + noise(rng))
            error = total_variation(found, truth)
            stated = bound(level)
            held += error <= stated
            errors.append(error)
            bounds.append(stated)
        return held / RUNS, np.mean(bounds) / np.mean(errors)

    def test_laplace(self, categories):
        share, ratio = self.held(
            categories,
            lambda rng: rng.laplace(0, 0.004, categories),
            lambda level: laplace_bound(scale=0.004, categories=categories, level=level, beta=0.05),
        )
        assert share >= 0.95 - 3 * np.sqrt(0.05 * 0.95 / RUNS)
        assert ratio < 4.5

    def test_gaussian(self, categories):
        share, ratio = self.held(
            categories,
            lambda rng: rng.normal(0, 0.004, categories),
            lambda level: gaussian_bound(
                sigma=0.004, categories=categories, level=level, beta=0.05
            ),
        )
        assert share >= 0.95 - 3 * np.sqrt(0.05 * 0.95 / RUNS)
        assert ratio < 5.5

    def test_a_third_of_the_bound_is_not_enough(self, categories):
        share, _ = self.held(
            categories,
            lambda rng: rng.laplace(0, 0.004, categories),
            lambda level: (
                0.35 * laplace_bound(scale=0.004, categories=categories, level=level, beta=0.05)
            ),
        )
        assert share < 0.85


def test_a_level_that_cut_the_noise_away_makes_the_bound_smaller():
    known = {"scale": 0.001, "categories": 1000, "beta": 0.05}
    assert laplace_bound(level=0.003, **known) < 0.2 * laplace_bound(level=0.0, **known)
    assert laplace_bound(level=-0.003, **known) == laplace_bound(level=0.003, **known)


@pytest.mark.parametrize("terms", [1, 6, 40, 200])
@pytest.mark.parametrize("beta", [0.1, 0.02])
def test_a_sum_of_laplace_noise_is_held_as_often_as_is_said(terms, beta):
    sums = np.random.default_rng(5).laplace(size=(20_000, terms)).sum(axis=1)
    limit = laplace_sum(terms, beta)
    assert np.mean(sums > limit) <= beta + 0.004
    assert np.mean(sums > 0.5 * limit) > beta


@pytest.mark.parametrize("pure", [True, False])
@pytest.mark.parametrize("categories", [3, 20])
def test_noise_of_two_kinds_is_held_as_often_as_is_said(pure, categories):
    rng, truth = np.random.default_rng(7), zipf(categories)
    known = {"inner": 0.002, "outer": 0.01, "centre": truth, "pure": pure}
    limit = mixed_bound(**known, beta=0.05)
    make = rng.laplace if pure else rng.normal
    found = []
    for _ in range(RUNS):
        other = make(size=categories)
        noise = 0.002 * make(size=categories) + 0.01 * (other - other.sum() * truth)
        found.append(total_variation(nearest_distribution(truth + noise)[0], truth))
    assert np.mean(np.array(found) <= limit) >= 0.95
    assert max(found) > 0.5 * limit


class TestBalancedNoise:
    def test_draws_add_up_to_zero_and_have_the_stated_length(self):
        noise = balanced_noise(20_000, 6)
        assert np.abs(noise.sum(axis=1)).max() < 1e-9
        # Five dimensions: the length is a gamma variable with mean 5.
        assert np.abs(noise).sum(axis=1).mean() == pytest.approx(5.0, rel=0.02)

    @pytest.mark.parametrize("categories", [3, 7, 21])
    @pytest.mark.parametrize("scale", [0.002, 0.03])
    def test_the_bound_holds_for_fresh_noise(self, categories, scale):
        rng, held, runs = np.random.default_rng(1), 0, 400
        truth = np.arange(1.0, categories + 1) ** -1
        truth /= truth.sum()
        for _ in range(runs):
            while True:
                noise = rng.laplace(size=categories - 1)
                if rng.exponential() >= abs(noise.sum()):
                    break
            noise = scale * np.append(noise, -noise.sum())
            found, level = nearest_distribution(truth + noise)
            bound = balanced_bound(scale=scale, categories=categories, level=level, beta=0.05)
            held += total_variation(found, truth) <= bound
            assert bound < 1.0
        assert held >= 0.95 * runs
