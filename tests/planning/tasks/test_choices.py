"""Votes between hypotheses: margins against exact enumeration, and laws of the excess."""

import math
from functools import partial
from typing import ClassVar

import pytest
from hypothesis import given
from hypothesis import strategies as st

from quorate.core.guarantees import Relation
from quorate.planning.tasks.choices import (
    VoteModel,
    label_divergence,
    label_preference,
    normal_preference,
    published_agnostic,
    rule_limit,
    unavoidable_excess,
)
from quorate.planning.tasks.concept import ConceptTask


def exact_preference(excess, records, error_level):
    """Enumerate how many of the records speak for, against, or not at all."""
    differ = excess / (1 - 2 * error_level)
    right, wrong = differ * (1 - error_level), differ * error_level
    margin = share = 0.0
    for a in range(records + 1):
        for b in range(records + 1 - a):
            c = records - a - b
            ways = math.factorial(records) // (
                math.factorial(a) * math.factorial(b) * math.factorial(c)
            )
            chance = ways * right**a * wrong**b * (1 - differ) ** c
            margin += chance * ((a > b) - (a < b))
            share += chance * (a != b)
    return margin, share


@pytest.mark.parametrize("error_level", [0.0, 0.1, 0.3])
@pytest.mark.parametrize(("records", "excess"), [(5, 0.01), (20, 0.02), (40, 0.05)])
def test_margin_and_share_are_those_of_multinomial_records(records, excess, error_level):
    margin, share = label_preference(excess, records=records, error_level=error_level)
    exact = exact_preference(excess, records, error_level)
    assert margin == pytest.approx(exact[0], rel=0.06)
    assert share == pytest.approx(exact[1], rel=0.08)


def test_very_many_records_are_nearly_normal_without_a_jump():
    known = {"error_level": 0.45, "excess": 0.004}
    below = label_preference(records=49_000, **known)[0]
    above = label_preference(records=51_000, **known)[0]
    assert below == pytest.approx(above, abs=0.02)


def test_normal_margins_are_two_sided_chances():
    assert normal_preference(0.0) == (0.0, 1.0)
    assert normal_preference(1.96)[0] == pytest.approx(0.95, abs=1e-3)


class TestVotes:
    KNOWN: ClassVar = {"epsilon": 1.0, "options": 500, "beta": 0.1, "largest": 0.4}

    @given(users=st.integers(10, 10**6), records=st.integers(1, 100))
    def test_more_users_never_hurt(self, users, records):
        told = partial(label_preference, records=records, error_level=0.1)
        fewer = VoteModel().excess(told, users=users, **self.KNOWN)
        more = VoteModel().excess(told, users=users + users // 3, **self.KNOWN)
        assert 0 < more <= fewer <= 0.4

    def test_users_just_tell_the_excess_that_is_returned(self):
        told = partial(label_preference, records=8, error_level=0.2)
        found = VoteModel().excess(told, users=200, **self.KNOWN)
        margin, share = told(found)
        doubt = math.log(10)
        noise = 3.2 * doubt + 0.4 * math.log(500) + 0.5 * math.sqrt(doubt * 200 * share)
        assert 200 * margin == pytest.approx(noise, rel=1e-6)

    def test_too_few_users_for_all_hypotheses_together_learn_nothing(self):
        told = partial(label_preference, records=1000, error_level=0.1)
        assert VoteModel().excess(told, users=5, **self.KNOWN) == 0.4


def test_worlds_without_noise_differ_for_certain_on_a_share_of_the_records():
    assert label_divergence(0.1, error_level=0.0) == (math.inf, pytest.approx(0.1))


def test_divergence_is_that_of_two_coins_on_the_share_that_differs():
    divergence, distance = label_divergence(0.06, error_level=0.2)
    share = 0.06 / 0.6
    coin = 0.8 * math.log(0.8 / 0.2) + 0.2 * math.log(0.2 / 0.8)
    assert divergence == pytest.approx(share * coin)
    assert distance == pytest.approx(share * 0.6)


def test_the_unavoidable_excess_is_the_sampling_term_of_the_limit():
    excess = unavoidable_excess(users=50, records=4, error_level=0.2, beta=0.01)
    divergence, _ = label_divergence(excess, error_level=0.2)
    assert 200 * divergence == pytest.approx(math.log(25))
    assert unavoidable_excess(users=50, records=4, error_level=0.0, beta=0.01) == 0.0


class TestLimits:
    def test_a_rich_class_needs_theorem_40_of_ghazi(self):
        task = ConceptTask(size=2**200, vc=200, records=1, error_level=0.3)
        known = {"error_level": 0.3, "vc": 200, "log_places": math.log(2)}
        bound = rule_limit(task, epsilon=1.0, error=0.01, **known)
        assert bound.theorem.startswith("Theorem 40")

    def test_with_delta_packing_is_not_claimed(self):
        task = ConceptTask(records=100, delta=1e-3)
        known = {"error_level": 0.1, "vc": 1, "log_places": 50.0}
        assert rule_limit(task, epsilon=1.0, error=0.1, **known).users < 10

    def test_one_record_takes_the_bound_of_theorem_3_4_of_kasiviswanathan(self):
        task = ConceptTask(records=1)
        bound = published_agnostic(task, epsilon=0.5, error=0.1, vc=3, log_size=5.0)
        # Its proof: 2 |H| e^(-2 n (alpha/3)^2) and |H| e^(-epsilon n alpha/6) share beta = 0.1.
        assert bound.users == math.ceil((5 + math.log(30)) * max(9 / 0.02, 6 / 0.05))

    def test_many_records_take_theorem_4_6_of_li_while_they_are_few_enough(self):
        few = published_agnostic(
            ConceptTask(records=16), epsilon=1.0, error=0.1, vc=1, log_size=5.0
        )
        many = published_agnostic(
            ConceptTask(records=1000), epsilon=1.0, error=0.1, vc=1, log_size=5.0
        )
        assert few.holds
        assert not many.holds
        assert few.users > 1e6

    def test_adding_users_halves_the_claims(self):
        known = {"error_level": 0.1, "vc": 1, "log_places": math.log(2)}
        replace = rule_limit(ConceptTask(records=64), epsilon=0.01, error=0.1, **known)
        added = rule_limit(
            ConceptTask(records=64, relation=Relation.ADD_REMOVE), epsilon=0.01, error=0.1, **known
        )
        assert added.users < replace.users
