"""Phased minimisation: faithful where published, running where calibrated."""

import math

import numpy as np
import pytest

from quorate.core.account.account import Account
from quorate.core.account.compose import price
from quorate.core.guarantees import Relation
from quorate.core.noise import SeededNoise, use_noise
from quorate.core.users import UserData
from quorate.exceptions import NotEnoughUsersError, ParameterError
from quorate.models import PhasedMinimizer, SquaredLoss

SETTING = {
    "epsilon": 1.0,
    "delta": 1e-6,
    "gradient_bound": 6.0,
    "gradient_spread": 1.0,
    "smoothness": 9.0,
    "radius": 4.5,
    "records": 100,
}


@pytest.mark.claim("U6: Algorithm 4")
class TestPlan:
    def test_sizes_halve_and_pulls_grow_fourfold(self):
        phases = PhasedMinimizer(**SETTING, phases=3).schedule(n_users=5000, dimension=20)
        assert [phase.n_users for phase in phases] == [2500, 1250, 625]
        strengths = [phase.strength for phase in phases]
        assert strengths[1] == pytest.approx(4 * strengths[0])
        assert strengths[2] == pytest.approx(16 * strengths[0])

    def test_the_pull_is_the_papers(self):
        # sqrt(G min(G, sigma sqrt d) / (n m) + sigma^2 d^2 / (n^2 m eps^2)) / R
        phased = PhasedMinimizer(**SETTING)
        expected = math.sqrt(6.0 * math.sqrt(20) / (5000 * 100) + 20**2 / (5000**2 * 100)) / 4.5
        assert phased.strength(n_users=5000, dimension=20) == pytest.approx(expected)

    def test_as_published_r_is_the_diameter(self):
        size = {"n_users": 5000, "dimension": 20}
        calibrated = PhasedMinimizer(**SETTING).strength(**size)
        published = PhasedMinimizer(**SETTING, constants="published").strength(**size)
        assert published == pytest.approx(calibrated / 2.0)

    def test_as_published_users_are_within_the_radius_of_proposition_1(self):
        phased = PhasedMinimizer(**SETTING, constants="published")
        strategy = phased._strategy(2500, 20, np.random.default_rng(0))
        logarithms = 20 * math.log(5 + 90 * 9 / math.sqrt(20 / 100)) + math.log(2500 / (0.01 / 3))
        assert strategy.radius == pytest.approx(math.sqrt(32 / 100 * logarithms))
        account = Account.open(epsilon=1.0, delta=1e-6)
        mean = strategy.mechanism(account, n_users=2500, dimension=20, steps=7)
        expected = 10 * strategy.radius * math.sqrt(math.log(32 * 2500 * 21 / 0.01) / 32)
        assert mean.coordinate_radius == pytest.approx(expected)

    def test_as_published_steps_are_those_of_proposition_3(self):
        phased = PhasedMinimizer(**SETTING, constants="published")
        assert phased._optimizer(np.zeros(2), 3.0).inner.constants == "published"
        assert phased._optimizer(np.zeros(2), 3.0).inner.condition == pytest.approx(12.0 / 3.0)

    @pytest.mark.parametrize("n_users", [5000, 10**6])
    def test_as_published_the_last_phase_has_nobody(self, n_users):
        phased = PhasedMinimizer(**SETTING, constants="published")
        with pytest.raises(NotEnoughUsersError, match="calibrated"):
            phased.schedule(n_users=n_users, dimension=20)

    @pytest.mark.claim("U6: Corollary 2")
    def test_as_published_the_first_phase_asks_for_thousands_of_steps(self):
        few = SETTING | {"records": 1, "gradient_bound": 1.0, "gradient_spread": 1.0}
        phases = PhasedMinimizer(**few, constants="published").schedule(n_users=5000, dimension=20)
        assert phases[0].steps > 1000


@pytest.mark.claim("U6: Theorem 5")
class TestRun:
    def people(self, n=4000, m=5):
        rows = np.random.default_rng(0).normal(size=(n * m, 1))
        return UserData(rows, 2.0 * rows[:, 0], offsets=np.arange(0, n * m + 1, m))

    def test_the_promise_is_that_of_one_phase(self):
        setting = SETTING | {"records": 5, "smoothness": 2.0}
        with use_noise(SeededNoise(0)):
            found = PhasedMinimizer(**setting, random_state=0).minimize(
                self.people(), SquaredLoss()
            )
        cost = price(found.guarantee.events[0], delta=1e-6, relation=Relation.REPLACE)
        assert 0.99 < cost <= 1.0 + 1e-9
        assert abs(found.theta[0] - 2.0) < 0.7

    def test_a_user_takes_part_in_one_phase_only(self, monkeypatch):
        from quorate.models.optimization import phased as module

        seen = []
        original = module.descend

        def spy(run, loss, **options):
            seen.append(set(run.data._held_crowd().X[:, 0].tolist()))
            return original(run, loss, **options)

        monkeypatch.setattr(module, "descend", spy)
        setting = SETTING | {"records": 5, "smoothness": 2.0}
        with use_noise(SeededNoise(0)):
            PhasedMinimizer(**setting, phases=3, random_state=0).minimize(
                self.people(), SquaredLoss()
            )
        assert len(seen) == 3
        assert not seen[0] & seen[1]
        assert not seen[0] & seen[2]
        assert not seen[1] & seen[2]

    def test_as_published_it_runs_where_it_can(self):
        tiny = SETTING | {
            "epsilon": 4.0,
            "records": 1,
            "smoothness": 0.01,
            "gradient_bound": 0.02,
            "gradient_spread": 10.0,
            "radius": 0.001,
        }
        phased = PhasedMinimizer(**tiny, constants="published", random_state=0)
        with use_noise(SeededNoise(0)):
            found = phased.minimize(self.people(300, 1), SquaredLoss(intercept=False))
        assert found.guarantee.epsilon == 4.0
        assert np.linalg.norm(found.theta) <= 0.001 + 1e-12


class TestRefusals:
    @pytest.mark.parametrize(
        "change", [{"radius": 0.0}, {"records": 0}, {"constants": "best"}, {"delta": 0.0}], ids=str
    )
    def test_nonsense(self, change):
        with pytest.raises(ParameterError):
            PhasedMinimizer(**SETTING | change)
