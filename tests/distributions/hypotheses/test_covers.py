"""Covers cover: radius by brute force, sizes, and duels on a grid equal to those of all pairs."""

import math

import numpy as np
import pytest
from scipy.stats import norm

from quorate.core.users import UserData
from quorate.distributions.hypotheses.clip import Clip
from quorate.distributions.hypotheses.covers import (
    SimplexGrid,
    gaussian_cover,
    gaussian_mean_cover,
    product_cover,
    simplex_cover,
    simplex_steps,
)
from quorate.distributions.hypotheses.families import DiscreteFamily
from quorate.exceptions import ParameterError
from sealing import worst_duels_of


def variation(p, q):
    return 0.5 * np.abs(np.asarray(p) - np.asarray(q)).sum(axis=-1)


@pytest.mark.claim("F8: Theorem 43")
class TestSimplex:
    def test_members_are_all_compositions(self):
        grid = SimplexGrid(4, 6)
        assert grid.masses.shape == (grid.size, 4)
        assert len(np.unique(grid.masses, axis=0)) == grid.size == math.comb(9, 3)
        assert (grid.masses.sum(axis=1) == 6).all()
        assert (grid.masses >= 0).all()

    def test_nearest_finds_what_largest_remainders_give(self):
        grid, rng = SimplexGrid(4, 7), np.random.default_rng(0)
        for member in (0, 17, grid.size - 1):
            assert grid.nearest(grid.probabilities(member)) == member
        for pmf in rng.dirichlet(np.ones(4), 50):
            off = variation(grid.probabilities(grid.nearest(pmf)), pmf)
            assert off <= 4 / (4 * 7)

    @pytest.mark.parametrize("constants", ["calibrated", "published"])
    @pytest.mark.parametrize(("k", "alpha"), [(2, 0.2), (3, 0.3), (4, 0.5)])
    def test_the_radius_by_brute_force_over_a_fine_grid(self, k, alpha, constants):
        cover = simplex_cover(k, alpha, constants=constants)
        fine = SimplexGrid(k, 60).masses / 60
        fine = fine[np.random.default_rng(0).permutation(len(fine))[:200]]
        masses = cover.masses / cover.steps
        radius = max(variation(masses, pmf).min() for pmf in fine)
        assert radius <= 0.1 * alpha * (1 + 1e-9)

    def test_a_coarser_step_would_not_do(self):
        """The corrected step cannot be halved again."""
        k, alpha = 4, 0.5
        coarse = SimplexGrid(k, simplex_steps(k, alpha) // 2)
        middle = np.full(k, (coarse.steps / k // 1 + 0.5) / coarse.steps)
        middle[-1] = 1 - middle[:-1].sum()
        assert variation(coarse.masses / coarse.steps, middle).min() > 0.1 * alpha

    def test_the_corrected_cover_is_far_smaller(self):
        assert simplex_cover(4, 0.5).size == 1771
        assert simplex_cover(4, 0.5, constants="published").size == math.comb(83, 3)

    @pytest.mark.parametrize("clip", [Clip(0.5), Clip(1.0, own_scale=False), Clip.none(5)])
    @pytest.mark.parametrize(("k", "steps"), [(2, 5), (3, 4), (4, 3)])
    def test_the_worst_duels_are_those_of_all_pairs(self, k, steps, clip):
        grid = SimplexGrid(k, steps)
        rng = np.random.default_rng(k)
        users = np.repeat(np.arange(8), rng.integers(0, 6, 8))
        data = UserData.from_arrays(rng.integers(0, k + 1, (len(users), 1)), users=users)
        pairs = DiscreteFamily(grid.masses / steps)
        found = worst_duels_of(grid, data, clip) / grid.unit
        expected = worst_duels_of(pairs, data, clip) / pairs.unit
        # The masses of the pairs are rounded to 2^-20, the limits to whole units.
        assert found == pytest.approx(expected, rel=1e-3, abs=2 * data.n_users)

    def test_refusals(self):
        with pytest.raises(ParameterError, match="2 to 12 categories"):
            SimplexGrid(13, 2)
        with pytest.raises(ParameterError, match="at most 2000000 points"):
            simplex_cover(6, 0.05)
        with pytest.raises(ParameterError, match="all different"):
            SimplexGrid(2, 2, points=[1.0, 1.0])


@pytest.mark.claim("F8: Theorem 44")
def test_products_cover_each_coordinate():
    covers = product_cover([2, 2, 2], 0.3)
    rng = np.random.default_rng(0)
    worst = 0.0
    for _ in range(100):
        truth = rng.dirichlet(np.ones(2), 3)
        near = [c.probabilities(c.nearest(p)) for c, p in zip(covers, truth, strict=True)]
        joint, other = truth[0], near[0]
        for p, q in zip(truth[1:], near[1:], strict=True):
            joint, other = np.outer(joint, p).ravel(), np.outer(other, q).ravel()
        worst = max(worst, variation(joint, other))
    assert 0 < worst <= 0.03


class TestGaussian:
    @pytest.mark.claim("F8: Theorem 45")
    @pytest.mark.parametrize(("d", "radius", "alpha"), [(1, 3.0, 0.2), (2, 1.0, 0.4)])
    def test_means_in_the_ball_are_near_a_member(self, d, radius, alpha):
        means = np.asarray(gaussian_mean_cover(radius, d, alpha).means)
        rng = np.random.default_rng(0)
        points = rng.normal(size=(300, d))
        points *= radius * rng.random((300, 1)) ** (1 / d) / np.linalg.norm(points, axis=1)[:, None]
        points[:20] *= radius / np.linalg.norm(points[:20], axis=1)[:, None]
        nearest = np.linalg.norm(points[:, None] - means, axis=2).min(axis=1)
        assert (2 * norm.cdf(nearest / 2) - 1).max() <= 0.1 * alpha

    @pytest.mark.claim("F8: Theorem 46")
    def test_mean_and_scale_on_a_line(self):
        radius, kappa, alpha = 1.0, 2.0, 0.5
        family = gaussian_cover(radius, kappa, alpha)
        x = np.linspace(-12, 12, 4001)
        members = np.exp([family.log_density(x, i) for i in range(family.size)])
        rng, worst = np.random.default_rng(1), 0.0
        for _ in range(60):
            scale = math.sqrt(rng.uniform(1, kappa))
            density = norm.pdf(x, rng.uniform(-radius, radius), scale)
            worst = max(worst, variation(members, density).min() * (x[1] - x[0]))
        assert 0 < worst <= 0.1 * alpha

    def test_refusals(self):
        with pytest.raises(ParameterError, match="at most 4096 normal"):
            gaussian_mean_cover(100.0, 1, 0.05)
        with pytest.raises(ParameterError, match="at most 2000000 points"):
            gaussian_mean_cover(100.0, 4, 0.05)
        with pytest.raises(ParameterError, match="kappa >= 1"):
            gaussian_cover(1.0, 0.5, 0.5)
