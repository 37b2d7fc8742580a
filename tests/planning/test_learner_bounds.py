"""Theorems about agnostic learners with all constants, against their steps one by one."""

import math

import pytest

from quorate.learners.generalization import (
    agnostic_records,
    agnostic_users,
    realizable_users,
    relative_deviation,
)
from quorate.planning import learner_bounds
from quorate.planning.learner_bounds import (
    counted_users,
    cut_off_users,
    item_learner_records,
    min_error_users,
    user_learner_users,
)

KNOWN = {"epsilon": 1.0, "alpha": 0.1, "beta": 0.07}


@pytest.mark.claim("L1: Theorem 3.4")
class TestTheorem34:
    """Theorem 3.4 of Li, Wang, Ye."""

    def test_with_much_privacy_sampling_decides(self):
        found = item_learner_records(vc_dimension=3, log_size=4.0, **KNOWN | {"epsilon": 99.0})
        assert found == agnostic_records(vc_dimension=3, alpha=0.1 / 18, beta=0.07 / 5)

    def test_with_little_the_exponential_mechanism_does(self):
        # Lemma 2.6 at a sensitivity of 2/n: (4 / (n eps)) ln(5 |H| / beta) <= alpha / 18.
        found = item_learner_records(vc_dimension=1, log_size=9.0, **KNOWN | {"epsilon": 1e-6})
        loss = 4.0 / (found * 1e-6) * (9.0 + math.log(5.0 / 0.07))
        assert loss == pytest.approx(0.1 / 18)


class TestCounts:
    """Lemmas 4.2 and 4.3."""

    def test_a_small_class_is_counted(self):
        known = {"vc_dimension": 9, "records": 16, "alpha": 0.1, "beta": 0.05}
        found = int(counted_users(log_size=math.log(20), **known))
        chance = {"labelings": 20, "gamma": 0.05, "xi": 0.05}
        assert relative_deviation(n=found, **chance) <= 0.025
        assert relative_deviation(n=found - 2, **chance) > 0.025

    @pytest.mark.parametrize("log_size", [60.0, 5000.0])
    def test_a_large_class_goes_by_its_dimension(self, log_size):
        known = {"vc_dimension": 1, "records": 2, "alpha": 0.1, "beta": 0.05}
        assert counted_users(log_size=log_size, **known) <= agnostic_users(**known)
        assert counted_users(log_size=5000.0, **known) == agnostic_users(**known)


@pytest.mark.claim("L4: Theorem 4.6")
class TestTheorem46:
    """Theorem 4.6 and Lemma 4.5."""

    SHAPE = {"vc_dimension": 2, "log_size": 20.0}  # noqa: RUF012 - never written to

    def test_lemma_4_5_keeps_noise_within_its_part(self):
        found = min_error_users(records=4, **self.SHAPE, **KNOWN | {"epsilon": 1e-9})
        rounds = math.ceil(math.log2(20))
        # P[|Lap(T / (n eps))| > sqrt(m) alpha / 5600] = beta / (2 T)
        tail = math.exp(-math.sqrt(4) * 0.1 / 5600 * found * 1e-9 / rounds)
        assert tail == pytest.approx(0.07 / (2 * rounds))

    def test_every_step_is_within_the_whole(self):
        whole = user_learner_users(records=4, **self.SHAPE, **KNOWN)
        unit, part = 2.0 * 0.1, 0.07 / 7
        assert whole >= realizable_users(vc_dimension=2, records=4, alpha=unit / 2100, beta=part)
        assert whole >= math.log(1 / part) / 2 * (134400 / unit) ** 2
        estimate = {"epsilon": 0.5, "alpha": 0.1 / 6, "beta": part}
        assert whole >= min_error_users(records=4, **self.SHAPE, **estimate)

    def test_records_beyond_one_over_alpha_squared_are_dropped(self):
        few, many = (user_learner_users(records=m, **self.SHAPE, **KNOWN) for m in (100, 10**6))
        assert few == many

    def test_it_falls_with_records(self):
        few, many = (user_learner_users(records=m, **self.SHAPE, **KNOWN) for m in (1, 64))
        assert 20 < few / many < 200


@pytest.mark.claim("L6: Theorem 5.2")
class TestTheorem52:
    """Theorem 5.2."""

    def test_only_the_medians_see_the_domain(self, monkeypatch):
        # Where the domain decides, a thousand times the logarithm is a thousand times the users.
        sizes = [cut_off_users(log_size=x, records=9, **KNOWN) for x in (1e9, 1e12)]
        assert sizes[1] / sizes[0] == pytest.approx(1000.0, rel=0.01)
        monkeypatch.setattr(learner_bounds, "_choice", lambda **_: 0.0)
        monkeypatch.setattr(learner_bounds, "_MEDIAN_DEVIATION", 0.0)
        without = [cut_off_users(log_size=x, records=9, **KNOWN) for x in (1e9, 1e12)]
        assert without[0] == without[1]

    def test_the_noise_of_all_rounds_stays_within_its_part(self):
        epsilon = 1e-12
        found = cut_off_users(log_size=0.0, records=100, **KNOWN | {"epsilon": epsilon})
        rounds = math.ceil(math.log(20) / math.log(1.5))
        reach = 10.0 * 0.1 / (25200 * rounds)
        # Three draws a round of scale 1 / (n eps'), eps' = eps / (2 x 4 T); one quarter of beta.
        tail = 3 * rounds * math.exp(-reach * found * epsilon / (8 * rounds))
        assert tail <= 0.07 / 4 * (1 + 1e-9)

    def test_medians_are_shared_by_m_alpha_users(self):
        # The first round's mass is 1, so one record decides there whatever m is.
        one, many = (cut_off_users(log_size=1e9, records=m, **KNOWN) for m in (1, 100))
        assert 3 < one / many < 100
