"""The rule sees public numbers only, and is sensible at its ends."""

import pytest

from quorate.distributions.categories.rule import (
    BALL_SHARES,
    ball_noise,
    likeness_worth_asking,
    polytope_noise,
    polytope_shares,
)

MU = 0.2367


def test_shares_add_up():
    assert sum(BALL_SHARES) == pytest.approx(1.0)


@pytest.mark.parametrize("categories", [2, 6, 20])
def test_more_users_leave_more_for_the_mean(categories):
    taken = [
        sum(polytope_shares(users=n, categories=categories, epsilon=1.0))
        for n in (300, 1000, 4000, 10**6)
    ]
    assert taken == sorted(taken, reverse=True)
    assert 0.15 < taken[-1] <= taken[0] < 0.5


def test_noise_falls_with_users_and_likeness():
    for noise, budget in ((ball_noise, {"mu": MU}), (polytope_noise, {"epsilon": 1.0})):
        for spread in (0.3, 0.1, 0.02):
            found = [
                noise(users=n, categories=10, spread=spread, **budget) for n in (500, 1000, 5000)
            ]
            assert found == sorted(found, reverse=True)
        found = [
            noise(users=1000, categories=10, spread=spread, **budget) for spread in (0.3, 0.1, 0.02)
        ]
        assert found == sorted(found, reverse=True)


def test_few_people_are_not_asked_unless_they_are_known_to_be_alike():
    known = {"categories": 6, "epsilon": 1.0, "mu": 0.0}
    assert likeness_worth_asking(users=240, **known) is None
    assert likeness_worth_asking(users=240, **known, alike=True).norm == 1
    few, many = (likeness_worth_asking(users=n, **known) for n in (1000, 9000))
    assert few.share > many.share


def test_many_categories_need_more_people():
    known = {"users": 300, "epsilon": 1.0, "mu": 0.0}
    assert likeness_worth_asking(categories=10, **known) is not None
    assert likeness_worth_asking(categories=11, **known) is None
    assert likeness_worth_asking(users=300, categories=100, epsilon=1.0, mu=MU).norm == 2
    assert likeness_worth_asking(users=300, categories=20, epsilon=1.0, mu=MU) is None


def test_few_categories_need_more_people():
    known = {"epsilon": 1.0, "mu": 0.0}
    assert likeness_worth_asking(users=300, categories=4, **known) is None
    assert likeness_worth_asking(users=300, categories=5, **known) is not None
    assert likeness_worth_asking(users=1000, categories=4, **known) is not None


def test_many_categories_need_delta():
    known = {"users": 3000, "categories": 1000, "epsilon": 1.0}
    assert likeness_worth_asking(**known, mu=0.0) is None
    assert likeness_worth_asking(**known, mu=MU).norm == 2


@pytest.mark.parametrize("users", [300, 1000, 1001, 3000, 10**6])
def test_people_who_are_known_to_be_alike_are_believed_sooner(users):
    known = {"users": users, "categories": 6, "epsilon": 1.0, "mu": MU}
    asked, believed = likeness_worth_asking(**known), likeness_worth_asking(**known, alike=True)
    assert asked.close >= (0.65 if users >= 1000 else 0.55)
    assert asked.close > believed.close
    assert asked.share <= 0.06


def test_a_test_of_many_people_costs_little():
    asked = likeness_worth_asking(users=10_000, categories=20, epsilon=1.0, mu=MU)
    assert asked.share <= 0.02
    assert asked.close >= 0.65


def test_all_pairs_of_few_people_are_looked_at_and_of_no_more():
    known = {"categories": 6, "mu": 0.0}
    assert likeness_worth_asking(users=300, epsilon=1.0, **known).everybody
    assert not likeness_worth_asking(users=1000, epsilon=1.0, **known).everybody
    # A small budget makes many people few, but their pairs would not fit.
    assert likeness_worth_asking(users=1024, epsilon=0.3, **known).everybody
    assert not likeness_worth_asking(users=1025, epsilon=0.3, **known).everybody
    assert not likeness_worth_asking(users=300, categories=100, epsilon=1.0, mu=MU).everybody


def test_an_answer_makes_the_radius_cheaper():
    known = {"users": 300, "categories": 6, "epsilon": 1.0}
    (first, second), (same, less) = (
        polytope_shares(**known, answered=answered) for answered in (False, True)
    )
    assert less < second
    assert same == pytest.approx(first, abs=0.02)
