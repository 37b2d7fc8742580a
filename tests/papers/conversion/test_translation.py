"""The formulas of the translation: printed figures, inverses, and the orders of the theorems."""

import math

import pytest

from quorate.exceptions import ParameterError
from quorate.papers.conversion.translation import (
    corollary_3_users,
    crossover_records,
    deletion_reach,
    item_to_user,
    local_deletion,
    one_record_each,
    solved_users,
    subsampled,
    super_users,
    theorem_11_users,
    utility_budget,
)

BUDGET = {"epsilon": 1.0, "delta": 1e-6}


@pytest.mark.parametrize("epsilon", [0.01, 0.5, 3.0])
@pytest.mark.parametrize("rate", [0.01, 0.5])
def test_a_sample_costs_what_theorem_7_says(epsilon, rate):
    """ln(1 + rate (e^epsilon - 1)) and rate delta, written from the paper."""
    printed = math.log(1 + rate * (math.exp(epsilon) - 1)), rate * 1e-6
    assert subsampled(epsilon=epsilon, delta=1e-6, rate=rate) == pytest.approx(printed)


@pytest.mark.claim("F2: Theorem 10")
def test_the_figures_of_theorem_10():
    assert item_to_user(records=10_000, **BUDGET)[0] == pytest.approx(1.508e-4, rel=1e-3)
    assert deletion_reach(**BUDGET) == 48


def test_group_privacy_allows_more_below_the_crossover_and_less_above():
    crossover = crossover_records(**BUDGET)
    assert crossover == 4231
    assert item_to_user(records=crossover - 1, **BUDGET)[0] < 1 / (crossover - 1)
    assert item_to_user(records=crossover, **BUDGET)[0] >= 1 / crossover


@pytest.mark.claim("F2: Theorem 10", "F2: Lemma 19")
def test_the_solved_inequality_is_tight():
    """One user less, and the sample would not be private enough."""
    m = 50
    users = solved_users(lambda e, d: 30 / e + 1000, records=m, **BUDGET)
    target, inner = item_to_user(records=m, **BUDGET)
    aside = 4 * deletion_reach(**BUDGET)

    def enough(n):
        allowed = utility_budget(users=n, records=m, **BUDGET)[0]
        load = math.expm1(target) * (30 / target + 1000)
        return load / ((n - aside) * m) <= math.expm1(allowed)

    assert inner > 0
    assert enough(users)
    assert not enough(users - 1)


@pytest.mark.claim("F2: Theorem 11", "F2: Corollary 3")
def test_orders_of_the_theorems():
    needed = lambda e, d: 1000 / e  # noqa: E731

    def private(m):
        return theorem_11_users(needed, records=m, **BUDGET) - 4 * deletion_reach(**BUDGET)

    assert private(100) / private(400) == pytest.approx(2)

    def corollary(m, private_records, statistical_records):
        return corollary_3_users(
            private_records=private_records,
            statistical_records=statistical_records,
            power=1,
            records=m,
            **BUDGET,
        ) - math.log(1e6)

    assert corollary(100, 50, 0) / corollary(400, 50, 0) == pytest.approx(2)
    assert corollary(100, 0, 5000) / corollary(400, 0, 5000) == pytest.approx(4)


@pytest.mark.claim("F2: Observation 28")
def test_simple_ways_enclose_every_method():
    assert one_record_each(100.0) == 100.0
    assert super_users(100.0, records=64) == 2
    assert super_users(64.0, records=64) == 1


@pytest.mark.claim("F2: Theorem 17")
class TestLocalDeletion:
    def test_deleting_more_users_moves_the_law_further(self):
        common = {"epsilon": 1e-8, "delta": 1e-12, "users": 1000, "records": 10**5, "beta": 0.01}
        near, far = (local_deletion(deleted=r, **common)[0] for r in (4, 64))
        # r sqrt(ln(n)): a factor 16, less what the logarithm of the choices saves.
        assert 4 < far / near < 16

    def test_group_privacy_of_the_deleted_records_is_a_cap(self):
        near = local_deletion(epsilon=1e-3, delta=1e-6, users=100, deleted=1, records=1, beta=0.01)
        assert near == pytest.approx((1e-3, 1e-6))

    def test_more_deleted_than_there_are_is_refused(self):
        with pytest.raises(ParameterError, match="at most 3 deleted"):
            local_deletion(epsilon=1e-3, delta=1e-6, users=3, deleted=4, records=1, beta=0.01)


def test_refusals():
    with pytest.raises(ParameterError, match="some number of records"):
        solved_users(lambda e, d: 1e40, records=10, **BUDGET)
