"""The budget of a fit."""

import pytest

from quorate.accounting.compose import price
from quorate.exceptions import ParameterError
from quorate.guarantees import Relation
from quorate.models.budget import Budget
from quorate.releases.allowance import Allowance


def test_the_whole_allowance_costs_the_budget():
    budget = Budget(epsilon=1.0, delta=1e-6)
    cost = price(Allowance(budget.mu).event, delta=1e-6, relation=Relation.REPLACE)
    assert 0.999 < cost <= 1.0 + 1e-9


def test_minibatches_leave_a_part_for_the_setup():
    whole = Budget(epsilon=1.0, delta=1e-6)
    part = Budget(epsilon=1.0, delta=1e-6, rate=0.1)
    assert 0 < part.mu < whole.mu


def test_without_a_rate_there_is_no_sample():
    with pytest.raises(ParameterError, match="rate"):
        Budget(epsilon=1.0, delta=1e-6).sample(10)


@pytest.mark.parametrize("relation", Relation)
def test_setup_and_minibatches_together_keep_the_budget(relation):
    budget = Budget(epsilon=1.0, delta=1e-6, rate=0.1, relation=relation)
    event = budget.sample(10).total(Allowance(budget.mu).event, 10)
    assert 0.9 < price(event, delta=1e-6, relation=relation) <= 1.0 + 1e-9


@pytest.mark.parametrize(
    "change", [{"epsilon": 0.0}, {"delta": 0.0}, {"delta": 1.0}, {"rate": 1.0}]
)
def test_nonsense_is_refused(change):
    with pytest.raises(ParameterError):
        Budget(**{"epsilon": 1.0, "delta": 1e-6} | change)


def test_pure_privacy_is_refused_with_a_reason():
    with pytest.raises(ParameterError, match="Gaussian noise"):
        Budget(epsilon=1.0, delta=0.0)
