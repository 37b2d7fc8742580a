"""Gradients clipped at a private radius, and what is planned for them."""

import numpy as np
import pytest

from quorate.core.account.account import Account
from quorate.core.account.compose import price
from quorate.core.account.costs import gdp_mu
from quorate.core.guarantees import Relation
from quorate.core.noise import SecureNoise
from quorate.core.users import UserData
from quorate.exceptions import ParameterError
from quorate.models.optimization.gradients import (
    ClippedGradients,
    check_budget,
    clip_length,
    plan_steps,
)
from released_steps import LOSS, all_steps, people
from sealing import start_run


class TestClipped:
    def test_a_run_spends_its_account_and_no_more(self):
        run, _, _ = all_steps(ClippedGradients())
        assert 0 <= run.account.square_left < 1e-6 * float(run.account.square)
        cost = price(run.account.event, delta=1e-6, relation=Relation.REPLACE)
        assert 0.999 < cost <= 1.0

    def test_the_radius_is_found_twice(self):
        _, _, released = all_steps(ClippedGradients())
        assert len({each.radius for each in released[:2]}) == 1
        longer = clip_length(n_users=5000, mu=gdp_mu(1.0, 1e-6), dimension=2)
        assert longer > 2.0
        assert 0.1 < released[-1].radius / longer < 7.0
        assert released[-1].radius > 1.5 * released[0].radius

    @pytest.mark.parametrize(
        ("n_users", "steps", "found"),
        [(1200, 18, [0, 2, 6]), (1200, 12, [0, 4]), (4000, 18, [0, 6]), (600, 18, [0, 6])],
    )
    def test_few_users_for_each_parameter_are_asked_soon(self, n_users, steps, found):
        rows = np.random.default_rng(0).normal(size=(n_users, 10))
        data = UserData(rows, rows.sum(axis=1), offsets=np.arange(n_users + 1))
        run, _, released = all_steps(ClippedGradients(), data=data, steps=steps, theta=np.zeros(10))
        # Each radius is another part of what was found, and the lengths of gradients stay.
        radii = [each.radius for each in released]
        changes = [t for t in range(1, steps) if radii[t] != radii[t - 1]]
        assert [0, *changes] == found
        assert 0 <= run.account.square_left < 1e-6 * float(run.account.square)

    def test_the_last_radius_is_the_longer_the_more_users_there_are_for_each_parameter(self):
        known = {"mu": 0.25, "dimension": 4}
        lengths = [clip_length(n_users=n, **known) for n in (100, 1600, 6400, 10**9)]
        assert lengths == pytest.approx([0.85, 1.366, 3.862, 4.0], rel=1e-3)

    def test_gradients_point_the_right_way(self):
        _, _, released = all_steps(ClippedGradients())
        assert released[-1].value[0] < 0 < released[-1].value[1]

    def test_a_public_radius_is_not_searched_for(self):
        _, _, released = all_steps(ClippedGradients(radius=0.25))
        assert {each.radius for each in released} == {0.25}
        assert all(np.linalg.norm(each.value) < 0.5 for each in released)

    def test_later_steps_are_more_precise(self):
        _, _, released = all_steps(ClippedGradients(radius=1.0))
        noise = [each.noise for each in released]
        assert noise == sorted(noise, reverse=True)
        assert released[0].whole == pytest.approx(released[-1].whole, rel=1e-6)

    def test_minibatches_keep_the_budget(self):
        run, _, released = all_steps(ClippedGradients(), budget={"epsilon": 1.0, "rate": 0.2})
        # Most of what is kept for the setup of a model, which sees all users, is not needed here.
        assert 0.8 < price(run.account.event, delta=1e-6, relation=Relation.REPLACE) <= 1.0
        assert released[-1].value[0] < 0 < released[-1].value[1]

    def test_a_radius_must_be_positive(self):
        with pytest.raises(ParameterError, match="radius"):
            ClippedGradients(radius=-1.0)


class TestForeseen:
    """Noise is drawn ahead for the steps up to the next search, and never for the last one."""

    @pytest.fixture
    def foreseen(self, monkeypatch):
        found, real = [], Account.draw_ahead

        def note(account, sigmas, *, size):
            found.append((list(sigmas), size))
            real(account, sigmas, size=size)

        monkeypatch.setattr(Account, "draw_ahead", note)
        return found

    @pytest.mark.parametrize(
        ("n_users", "steps", "lengths"),
        [(1200, 18, [4, 11]), (4000, 18, [6, 11]), (4000, 8, [3, 4]), (4000, 4, [])],
    )
    def test_which_steps(self, foreseen, n_users, steps, lengths):
        rows = np.random.default_rng(0).normal(size=(n_users, 10))
        data = UserData(rows, rows.sum(axis=1), offsets=np.arange(n_users + 1))
        all_steps(ClippedGradients(), data=data, steps=steps, theta=np.zeros(10))
        assert [len(sigmas) for sigmas, _ in foreseen] == lengths
        assert {size for _, size in foreseen} <= {10}

    def test_a_public_radius_leaves_only_the_last_step(self, foreseen):
        all_steps(ClippedGradients(radius=0.25), steps=12)
        assert [len(sigmas) for sigmas, _ in foreseen] == [11]

    def test_samples_of_users_draw_nothing_ahead(self, foreseen):
        all_steps(ClippedGradients(), budget={"epsilon": 1.0, "rate": 0.2})
        assert foreseen == []

    def test_all_of_it_is_used_and_paid_for(self, monkeypatch):
        """A public radius makes a run's payments public: they are the same without."""
        ahead, _, released = all_steps(ClippedGradients(radius=0.25), noise=SecureNoise(), steps=12)
        assert ahead.account._ahead._vectors == {}
        monkeypatch.setattr(Account, "draw_ahead", lambda *_, **__: None)
        later, _, others = all_steps(ClippedGradients(radius=0.25), noise=SecureNoise(), steps=12)
        assert ahead.account.event == later.account.event
        assert ahead.account.square_left == later.account.square_left
        assert [each.noise for each in released] == [each.noise for each in others]
        assert [each.whole for each in released] == [each.whole for each in others]

    def test_a_step_that_is_asked_for_twice_pays_twice(self):
        run = start_run(people(), Account.open(epsilon=8.0, delta=1e-6))
        gradients = ClippedGradients(radius=0.25).start(run, LOSS, steps=12)
        left, values = [run.account.square_left], []
        for step in (0, 1, 1):
            values.append(gradients.release(np.zeros(2), step).value.tolist())
            left.append(run.account.square_left)
        assert left[1] - left[2] == left[2] - left[3] > left[0] - left[1] > 0
        assert values[1] != values[2]


def test_more_signal_means_more_steps():
    few = plan_steps(n_users=300, mu=0.24, records=1, dimension=20)
    more = plan_steps(n_users=1000, mu=0.24, records=10, dimension=20)
    many = plan_steps(n_users=10**6, mu=0.24, records=100, dimension=20)
    assert 1 < few < more < many <= 40


@pytest.mark.parametrize(
    "change", [{"epsilon": 0.0}, {"delta": 0.0}, {"delta": 1.0}, {"rate": 1.0}]
)
def test_nonsense_is_refused(change):
    with pytest.raises(ParameterError):
        check_budget(**{"epsilon": 1.0, "delta": 1e-6} | change)


def test_pure_privacy_is_refused_with_a_reason():
    with pytest.raises(ParameterError, match="Gaussian noise"):
        check_budget(epsilon=1.0, delta=0.0)
