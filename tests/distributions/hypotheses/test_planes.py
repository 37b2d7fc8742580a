"""Covariances in the plane: Scheffe probabilities, radii of covers by brute force, choices."""

import numpy as np
import pytest
from scipy.stats import multivariate_normal

from quorate.auditing import replay
from quorate.core.noise import SeededNoise, use_noise
from quorate.core.users import UserData
from quorate.distributions.hypotheses.clip import Clip, Votes
from quorate.distributions.hypotheses.planes import PlaneFamily, plane_cover
from quorate.distributions.hypotheses.selection import HypothesisSelector
from quorate.exceptions import ParameterError
from sealing import duels_of

FIVE = PlaneFamily(
    [
        [[1.0, 0.0], [0.0, 1.0]],
        [[2.0, 0.7], [0.7, 1.0]],
        [[3.0, -1.0], [-1.0, 1.5]],
        [[1.0, 0.0], [0.0, 4.0]],
        [[1.0, 0.0], [0.0, 1.0]],
    ]
)

MOVED = PlaneFamily(FIVE.covariances, [[0.0, 0.0], [0.5, 0.1], [-0.2, 1.0], [0.0, 0.0], [1.0, 1.0]])


def covariances(rng, kappa, count):
    """Return covariances between I and kappa I, in all directions."""
    angles, logs = rng.uniform(0, np.pi, count), rng.uniform(0, np.log(kappa), (count, 2))
    turn = np.stack([np.cos(angles), -np.sin(angles), np.sin(angles), np.cos(angles)], axis=1)
    turn = turn.reshape(-1, 2, 2)
    found = np.einsum("mij,mj,mkj->mik", turn, np.exp(logs), turn)
    return 0.5 * (found + found.transpose(0, 2, 1))


def nearest_variation(family, truth):
    """Return the smallest total variation of N(0, truth) from one of the three nearest members."""
    members = np.asarray(family.covariances)
    ratios = np.linalg.eigvals(np.linalg.inv(truth) @ members).real
    nearest = np.argsort((np.log(ratios) ** 2).sum(axis=1))[:3]
    both = PlaneFamily(np.concatenate([[truth], members[nearest]]))
    # TV = P(P > P') - P'(P > P'), and the last term is 1 - P'(P' > P).
    return min(both.scheffe[0, 1:] + both.scheffe[1:, 0] - 1.0)


class TestScheffe:
    @pytest.mark.parametrize("family", [FIVE, MOVED], ids=["centred", "moved"])
    def test_probabilities_agree_with_draws(self, family):
        for member in range(family.size):
            X = family.sample(member, 40_000, random_state=member)
            heights = family._heights(X)
            found = (heights[:, member, None] > heights).mean(axis=0)
            assert found == pytest.approx(family.scheffe[member], abs=0.015)

    def test_equal_members_have_no_set(self):
        assert FIVE.scheffe[0, 4] == FIVE.scheffe[4, 0] == 0.0

    def test_densities_integrate_to_one(self):
        line = np.linspace(-12, 12, 241)
        grid = np.stack(np.meshgrid(line, line), axis=-1).reshape(-1, 2)
        for member in range(4):
            assert np.exp(FIVE.log_density(grid, member)).sum() * 0.01 == pytest.approx(1.0)


@pytest.mark.claim("F8: Theorem 46")
class TestCover:
    @pytest.mark.parametrize("constants", ["calibrated", "published"])
    @pytest.mark.parametrize(("kappa", "alpha"), [(1.0, 0.9), (1.6, 0.9), (2.5, 0.95)])
    def test_every_covariance_has_a_member_within_a_tenth_of_alpha(self, kappa, alpha, constants):
        family = plane_cover(0.0, kappa, alpha, constants=constants)
        for truth in covariances(np.random.default_rng(0), kappa, 60):
            assert nearest_variation(family, truth) <= 0.1 * alpha

    @pytest.mark.parametrize(("radius", "kappa"), [(0.3, 1.3), (0.5, 1.0), (0.2, 1.6)])
    def test_mean_and_covariance_together_have_a_member_within_a_tenth(self, radius, kappa):
        """Total variation by a sum over a fine grid of the plane, from the densities alone."""
        alpha, rng = 0.95, np.random.default_rng(0)
        family = plane_cover(radius, kappa, alpha)
        line = np.linspace(-7.0, 7.0, 141)
        plane = np.stack(np.meshgrid(line, line), axis=-1)
        worst = 0.0
        for spread in covariances(rng, kappa, 25):
            mean = rng.normal(size=2)
            mean *= radius * rng.uniform() ** 0.3 / np.linalg.norm(mean)
            truth = multivariate_normal(mean, spread).pdf(plane)
            inverse, far = np.linalg.inv(spread), np.asarray(family.means) - mean
            ratios = np.linalg.eigvals(inverse @ np.asarray(family.covariances)).real
            guess = 0.5 * (np.log(ratios) ** 2).sum(axis=1)
            guess += np.einsum("mi,ij,mj->m", far, inverse, far)
            worst = max(
                worst, min(self.distance(family, i, truth, plane) for i in guess.argsort()[:4])
            )
        assert 0.02 < worst <= 0.1 * alpha

    @staticmethod
    def distance(family, index, truth, plane):
        member = np.exp(family.log_density(plane.reshape(-1, 2), index)).reshape(truth.shape)
        return 0.5 * np.abs(member - truth).sum() * 0.01

    def test_a_coarser_grid_would_not_do(self):
        family = plane_cover(0.0, 2.5, 0.95)
        found = [
            nearest_variation(family, t) for t in covariances(np.random.default_rng(0), 2.5, 12)
        ]
        assert max(found) > 0.1 * 0.4

    def test_relative_steps_need_far_fewer_points(self):
        small, large = (
            plane_cover(0.0, 2.5, 0.9, constants=c).size for c in ("calibrated", "published")
        )
        assert 4 * small < large

    def test_refusals(self):
        for wrong in (
            {"kappa": 0.5},
            {"kappa": np.inf},
            {"radius": -1.0},
            {"radius": np.nan},
            {"alpha": 0.0},
            {"constants": "best"},
        ):
            with pytest.raises(ParameterError):
                plane_cover(**{"radius": 1.0, "kappa": 2.0, "alpha": 0.5} | wrong)
        with pytest.raises(ParameterError, match="at most"):
            plane_cover(0.0, 100.0, 0.1)
        for wrong in (np.zeros((0, 2, 2)), np.eye(2), [[[1.0, 2.0], [2.0, 1.0]]]):
            with pytest.raises(ParameterError):
                PlaneFamily(wrong)
        with pytest.raises(ParameterError, match="finite means"):
            PlaneFamily([np.eye(2)], [[0.0, np.inf]])


class TestChoice:
    @pytest.mark.parametrize("clip", [None, Votes()])
    def test_a_covariance_is_found(self, clip):
        truth = np.array([[2.0, 0.6], [0.6, 1.2]])
        X = np.random.default_rng(0).multivariate_normal([0.0, 0.0], truth, 40 * 40)
        family = plane_cover(0.0, 2.5, 0.95)
        with use_noise(SeededNoise(0)):
            one = HypothesisSelector(family, clip=clip).fit(X, users=np.arange(1600) // 40)
        chosen = PlaneFamily(np.asarray(family.covariances)[one.index_][None])
        assert nearest_variation(chosen, truth) < 0.2

    @pytest.mark.parametrize("clip", [Clip(0.5), Votes()])
    @pytest.mark.parametrize("sent", [[[1e308, -1e308]], [[np.nan, 0.0]] * 9, [[0.0, 0.0]] * 50])
    def test_whatever_one_user_sends_looks_the_same(self, clip, sent):
        others = np.random.default_rng(1).normal(size=(12, 2))

        def run(mine):
            X, users = np.concatenate([others, mine]), [*np.arange(12) // 3, *[9] * len(mine)]
            return HypothesisSelector(FIVE, clip=clip).fit(X, users=users).index_

        report = replay(run, [[0.3, 0.4]], sent)
        assert report.same, str(report)

    def test_a_user_is_the_same_in_every_company(self):
        rng = np.random.default_rng(2)
        X, users = rng.normal(size=(60, 2)), np.arange(60) // 6
        whole = UserData.from_arrays(X, users=users)
        for clip in (Clip(0.5), Votes()):
            alone = sum(duels_of(FIVE, whole.take([user]), clip) for user in range(10))
            assert np.array_equal(duels_of(FIVE, whole, clip), alone)
