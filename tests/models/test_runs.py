"""How the account of a fit is divided before anything is released."""

import numpy as np
import pytest

from quorate.accounting.account import Account
from quorate.accounting.compose import price
from quorate.accounting.events import Gaussian
from quorate.bounds import Ball
from quorate.exceptions import NumericalFailure, ParameterError
from quorate.guarantees import Relation
from quorate.models.runs import check_budget, open_run, sampled_mean, setup_mu
from quorate.releases.user_releases import BoundedVectors
from quorate.users import UserData

PEOPLE = UserData(np.ones((4000, 1)), offsets=np.arange(4001))


def sampled_run(relation=Relation.REPLACE, steps=6):
    account = Account.open(epsilon=1.0, delta=1e-6, relation=relation)
    return open_run(PEOPLE, account, rate=0.1, steps=steps)


def test_minibatches_leave_a_part_for_the_setup():
    account = Account.open(epsilon=1.0, delta=1e-6)
    expected = setup_mu(account, rate=0.1)
    assert 0 < expected < account.mu
    open_run(PEOPLE, account, rate=0.1, steps=5)
    assert account.mu == pytest.approx(expected, rel=1e-9)


@pytest.mark.parametrize("relation", Relation)
def test_setup_and_minibatches_together_keep_the_budget(relation):
    run = sampled_run(relation)
    for _ in range(6):
        sampled_mean(run, BoundedVectors(UserData.user_means, Ball(1.0, dimension=1)))
    run.account.pay(Gaussian(run.account.multiplier(run.account.square_left)))
    cost = price(run.account.event, delta=1e-6, relation=relation)
    assert 0.9 < cost <= 1.0


def test_a_step_more_than_planned_is_refused():
    run = sampled_run(steps=2)
    statistic = BoundedVectors(UserData.user_means, Ball(1.0, dimension=1))
    sampled_mean(run, statistic)
    sampled_mean(run, statistic)
    with pytest.raises(NumericalFailure, match="does not fit"):
        sampled_mean(run, statistic)


def test_minibatches_need_a_public_number_of_steps():
    account = Account.open(epsilon=1.0, delta=1e-6)
    with pytest.raises(ParameterError, match="steps"):
        open_run(PEOPLE, account, rate=0.1)


def test_without_a_rate_there_is_no_sample():
    account = Account.open(epsilon=1.0, delta=1e-6)
    run = open_run(PEOPLE, account)
    with pytest.raises(ParameterError, match="minibatches"):
        sampled_mean(run, BoundedVectors(UserData.user_means, Ball(1.0, dimension=1)))


@pytest.mark.parametrize(
    "change", [{"epsilon": 0.0}, {"delta": 0.0}, {"delta": 1.0}, {"rate": 1.0}]
)
def test_nonsense_is_refused(change):
    with pytest.raises(ParameterError):
        check_budget(**{"epsilon": 1.0, "delta": 1e-6} | change)


def test_pure_privacy_is_refused_with_a_reason():
    with pytest.raises(ParameterError, match="Gaussian noise"):
        check_budget(epsilon=1.0, delta=0.0)
