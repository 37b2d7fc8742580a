"""Covariances in the plane: Scheffe probabilities, radii of covers by brute force, choices."""

import numpy as np
import pytest

from quorate.auditing import replay
from quorate.distributions.hypotheses.clip import Clip, Votes
from quorate.distributions.hypotheses.planes import CovarianceFamily, covariance_cover
from quorate.distributions.hypotheses.selection import HypothesisSelector
from quorate.exceptions import ParameterError
from quorate.noise import SeededNoise, use_noise
from quorate.users import UserData

FIVE = CovarianceFamily(
    [
        [[1.0, 0.0], [0.0, 1.0]],
        [[2.0, 0.7], [0.7, 1.0]],
        [[3.0, -1.0], [-1.0, 1.5]],
        [[1.0, 0.0], [0.0, 4.0]],
        [[1.0, 0.0], [0.0, 1.0]],
    ]
)


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
    both = CovarianceFamily(np.concatenate([[truth], members[nearest]]))
    # TV = P(P > P') - P'(P > P'), and the last term is 1 - P'(P' > P).
    return min(both.scheffe[0, 1:] + both.scheffe[1:, 0] - 1.0)


class TestScheffe:
    def test_probabilities_agree_with_draws(self):
        for member in range(FIVE.size):
            X = FIVE.sample(member, 40_000, random_state=member)
            heights = FIVE._heights(X)
            found = (heights[:, member, None] > heights).mean(axis=0)
            assert found == pytest.approx(FIVE.scheffe[member], abs=0.015)

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
        family = covariance_cover(kappa, alpha, constants=constants)
        for truth in covariances(np.random.default_rng(0), kappa, 60):
            assert nearest_variation(family, truth) <= 0.1 * alpha

    def test_a_coarser_grid_would_not_do(self):
        family = covariance_cover(2.5, 0.95)
        found = [
            nearest_variation(family, t) for t in covariances(np.random.default_rng(0), 2.5, 12)
        ]
        assert max(found) > 0.1 * 0.4

    def test_relative_steps_need_far_fewer_points(self):
        small, large = (
            covariance_cover(2.5, 0.9, constants=c).size for c in ("calibrated", "published")
        )
        assert 4 * small < large

    def test_refusals(self):
        for wrong in ({"kappa": 0.5}, {"kappa": np.inf}, {"alpha": 0.0}, {"constants": "best"}):
            with pytest.raises(ParameterError):
                covariance_cover(**{"kappa": 2.0, "alpha": 0.5} | wrong)
        with pytest.raises(ParameterError, match="at most"):
            covariance_cover(100.0, 0.1)
        for wrong in (np.zeros((0, 2, 2)), np.eye(2), [[[1.0, 2.0], [2.0, 1.0]]]):
            with pytest.raises(ParameterError):
                CovarianceFamily(wrong)


class TestChoice:
    @pytest.mark.parametrize("clip", [None, Votes()])
    def test_a_covariance_is_found(self, clip):
        truth = np.array([[2.0, 0.6], [0.6, 1.2]])
        X = np.random.default_rng(0).multivariate_normal([0.0, 0.0], truth, 40 * 40)
        family = covariance_cover(2.5, 0.95)
        with use_noise(SeededNoise(0)):
            one = HypothesisSelector(family, clip=clip).fit(X, users=np.arange(1600) // 40)
        chosen = CovarianceFamily(np.asarray(family.covariances)[one.index_][None])
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
            alone = sum(FIVE.tally(whole.take([user]), clip) for user in range(10))
            assert np.array_equal(FIVE.tally(whole, clip), alone)
