"""Gradients winsorized as published."""

import math

import numpy as np
import pytest

from quorate.core.account.account import Account
from quorate.core.account.compose import price
from quorate.core.guarantees import Gaussian, Relation
from quorate.core.users import UserData
from quorate.exceptions import ParameterError
from quorate.mechanisms.means.winsorized import RotatedWinsorizedMean
from quorate.models.optimization.winsorized_gradients import WinsorizedGradients, uniform_radius
from released_steps import LOSS, all_steps, people
from sealing import start_run


@pytest.mark.claim("U5: Algorithm 3")
class TestWinsorized:
    strategy = WinsorizedGradients(bound=5.0, radius=2.0, random_state=0)

    def test_all_steps_together_keep_the_budget(self):
        run, _, _ = all_steps(self.strategy, steps=3)
        cost = price(run.account.event, delta=1e-6, relation=Relation.REPLACE)
        assert 0.9 < cost <= 1.0

    def test_with_many_users_it_finds_the_gradient(self):
        _, _, released = all_steps(
            self.strategy, budget={"epsilon": 8.0}, steps=1, data=people(20_000)
        )
        np.testing.assert_allclose(released[0].value, [-1.0, 1.0], atol=0.3)

    def test_published_constants_are_noisier(self):
        published = WinsorizedGradients(bound=5.0, radius=2.0, constants="published")
        account = Account.open(epsilon=1.0, delta=1e-6)
        size = {"n_users": 5000, "dimension": 2, "steps": 4}
        assert (
            published.mechanism(account, **size).coordinate.noise_scale
            > self.strategy.mechanism(account, **size).coordinate.noise_scale
        )

    @pytest.mark.claim("U5: Theorem 4")
    def test_published_constants_divide_gamma_by_three_and_by_the_steps(self):
        # Theorem 4: log(3 T d n / gamma).
        published = WinsorizedGradients(bound=5.0, radius=2.0, gamma=0.05, constants="published")
        account = Account.open(epsilon=1.0, delta=1e-6)
        mean = published.mechanism(account, n_users=5000, dimension=4, steps=6)
        expected = 10.0 * 2.0 * math.sqrt(math.log(3 * 6 * 4 * 5000 / 0.05) / 4)
        assert mean.coordinate_radius == pytest.approx(expected)

    def test_every_step_has_a_rotation_of_its_own(self, monkeypatch):
        seen = []
        original = RotatedWinsorizedMean.release

        def spy(mechanism, vectors, *, rotation, account):
            seen.append(rotation.signs.tolist())
            return original(mechanism, vectors, rotation=rotation, account=account)

        monkeypatch.setattr(RotatedWinsorizedMean, "release", spy)
        rows = np.zeros((50, 16))
        data = UserData(rows, np.zeros(50), offsets=np.arange(51))
        for _ in range(2):
            all_steps(self.strategy, steps=3, data=data, theta=np.zeros(16))
        assert len({tuple(signs) for signs in seen[:3]}) == 3
        assert seen[:3] == seen[3:]  # and the same ones again from the same seed

    @pytest.mark.parametrize(
        "budget",
        [
            {"epsilon": 1.0, "relation": Relation.ADD_REMOVE},
            {"epsilon": 1.0, "rate": 0.1},
        ],
    )
    def test_what_its_proof_does_not_cover_is_refused(self, budget):
        with pytest.raises(ParameterError, match="ClippedGradients"):
            all_steps(self.strategy, budget=budget)

    def test_it_cannot_follow_another_release(self):
        account = Account.open(epsilon=1.0, delta=1e-6)
        run = start_run(people(), account)
        account.pay(Gaussian(10.0))
        with pytest.raises(ParameterError, match="whole budget"):
            self.strategy.start(run, LOSS, steps=2)

    def test_values_that_are_no_numbers_do_no_harm(self):
        data = people(200)
        rows = np.array(data.X)
        rows[0] = 1e200
        broken = UserData(rows, data.y, offsets=data.offsets)
        _, _, released = all_steps(self.strategy, steps=1, data=broken)
        assert np.all(np.isfinite(released[0].value))


KNOWN = {"spread": 1.0, "smoothness": 1.0, "diameter": 2.0, "gamma": 0.05}


@pytest.mark.claim("U5: Proposition 1")
class TestProposition1:
    def test_no_user_is_outside_at_any_parameter(self):
        # Gradients theta - z of squared distances from normal z: the deviation is that of a mean.
        rng = np.random.default_rng(0)
        radius = uniform_radius(records=25, dimension=3, n_users=400, **KNOWN)
        furthest = [
            np.linalg.norm(rng.normal(size=(400, 3)) / 5.0, axis=1).max() for _ in range(40)
        ]
        assert max(furthest) <= radius
        # Without its logarithms, sigma sqrt(d / m), users would be outside in every run.
        assert min(furthest) > math.sqrt(3 / 25)

    def test_it_falls_with_records_and_grows_with_the_set(self):
        few = uniform_radius(records=10, dimension=5, n_users=100, **KNOWN)
        many = uniform_radius(records=1000, dimension=5, n_users=100, **KNOWN)
        assert 6 < few / many < 10
        wide = uniform_radius(records=10, dimension=5, n_users=100, **KNOWN | {"diameter": 2000.0})
        assert few < wide < 2.0 * few
