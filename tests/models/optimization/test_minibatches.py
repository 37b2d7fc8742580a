"""Minibatches of users: means over a secret sample, a public number of steps."""

import numpy as np
import pytest

from quorate.core.account.account import Account
from quorate.core.account.compose import price
from quorate.core.bounds.grid import Ball
from quorate.core.guarantees import Gaussian, Relation
from quorate.core.noise import SeededNoise, use_noise
from quorate.core.people import People
from quorate.core.users import UserData
from quorate.data.engines import UserMeans
from quorate.exceptions import NumericalFailure, ParameterError
from quorate.mechanisms.user_releases import BoundedVectors
from quorate.mechanisms.user_sample import UserSample
from quorate.models.optimization.minibatches import (
    check_public_steps,
    open_sampled_run,
    sampled_mean,
    setup_mu,
)
from sealing import start_run


def sampled_run(people, sample, steps):
    account = Account.open(epsilon=50.0, delta=1e-2)
    account.reserve_chain(sample.total(Gaussian(10.0), steps))
    return start_run(people, account, sample=sample)


class TestSampledMean:
    def test_the_mean_is_unbiased(self):
        people = UserData(np.ones((2000, 1)), offsets=np.arange(2001))
        with use_noise(SeededNoise(0)):
            run = sampled_run(people, UserSample(rate=0.1, multiplier=1.0), 50)
            statistic = UserMeans(Ball(1.0, dimension=1))
            found = [sampled_mean(run, statistic).value[0] for _ in range(50)]
        assert np.mean(found) == pytest.approx(1.0, abs=6 * 0.07 / np.sqrt(50))

    def test_an_empty_sample_is_released_like_any_other(self):
        people = UserData(np.ones((3, 1)), offsets=np.arange(4))
        with use_noise(SeededNoise(0)):
            run = sampled_run(people, UserSample(rate=1e-9, multiplier=1.0), 1)
            assert sampled_mean(run, UserMeans(Ball(1.0, dimension=1))).value.shape == (1,)


class TestPublicSteps:
    @pytest.mark.parametrize(
        ("records", "relation"), [("auto", Relation.REPLACE), (20, Relation.ADD_REMOVE)]
    )
    def test_a_number_of_steps_that_was_released_is_refused(self, records, relation):
        with pytest.raises(ParameterError, match="steps="):
            check_public_steps(steps=None, records=records, relation=relation)
        check_public_steps(steps=5, records=records, relation=relation)


PEOPLE = UserData(np.ones((4000, 1)), offsets=np.arange(4001))


def planned_run(relation=Relation.REPLACE, steps=6):
    account = Account.open(epsilon=1.0, delta=1e-6, relation=relation)
    return open_sampled_run(People(PEOPLE, relation), account, rate=0.1, steps=steps)


def test_minibatches_leave_a_part_for_the_setup():
    account = Account.open(epsilon=1.0, delta=1e-6)
    expected = setup_mu(account)
    assert 0 < expected < account.mu
    open_sampled_run(People(PEOPLE, Relation.REPLACE), account, rate=0.1, steps=5)
    assert account.mu == pytest.approx(expected, rel=1e-9)


@pytest.mark.parametrize("relation", Relation)
def test_setup_and_minibatches_together_keep_the_budget(relation):
    run = planned_run(relation)
    for _ in range(6):
        sampled_mean(run, BoundedVectors(UserData.user_means, Ball(1.0, dimension=1)))
    run.account.pay(Gaussian(run.account.multiplier(run.account.square_left)))
    cost = price(run.account.event, delta=1e-6, relation=relation)
    assert 0.9 < cost <= 1.0


def test_a_step_more_than_planned_is_refused():
    run = planned_run(steps=2)
    statistic = BoundedVectors(UserData.user_means, Ball(1.0, dimension=1))
    sampled_mean(run, statistic)
    sampled_mean(run, statistic)
    with pytest.raises(NumericalFailure, match="does not fit"):
        sampled_mean(run, statistic)


def test_minibatches_need_a_public_number_of_steps():
    account = Account.open(epsilon=1.0, delta=1e-6)
    with pytest.raises(ParameterError, match="steps"):
        open_sampled_run(People(PEOPLE, Relation.REPLACE), account, rate=0.1, steps=None)


def test_without_a_rate_there_is_no_sample():
    account = Account.open(epsilon=1.0, delta=1e-6)
    run = start_run(PEOPLE, account)
    with pytest.raises(ParameterError, match="minibatches"):
        sampled_mean(run, BoundedVectors(UserData.user_means, Ball(1.0, dimension=1)))
