"""The decision sees public numbers only, and is sensible at its ends."""

import itertools

import numpy as np
import pytest

from quorate.core.guarantees import Relation
from quorate.distributions.categories.expected_errors import (
    DIAMETER,
    ExpectedErrors,
    Likeness,
    stretch,
)
from quorate.estimators import Route

MU = 0.2367


def errors(users=1000, categories=10, epsilon=1.0, mu=MU):
    return ExpectedErrors(users=users, categories=categories, epsilon=epsilon, mu=mu)


@pytest.mark.parametrize("norm", [1, 2])
def test_noise_falls_with_users_and_likeness(norm):
    for spread in (0.3, 0.1, 0.02):
        found = [errors(users=n).ball(norm, spread)[0] for n in (500, 1000, 5000)]
        assert found == sorted(found, reverse=True)
    found = [errors().ball(norm, spread)[0] for spread in (0.3, 0.1, 0.02)]
    assert found == sorted(found, reverse=True)


@pytest.mark.parametrize("norm", [1, 2])
def test_shares_leave_something_for_the_last_mean_and_more_with_more_users(norm):
    taken = [sum(errors(users=n).ball(norm, 0.1)[1]) for n in (1000, 4000, 10**6)]
    assert taken == sorted(taken, reverse=True)
    assert 0.0 < taken[-1] <= taken[0] < 1.0


@pytest.mark.parametrize(("norm", "categories"), [(1, 6), (2, 6), (1, 100), (2, 100)])
def test_nearly_all_normal_users_are_within_the_stretched_distance(norm, categories):
    rows = np.random.default_rng(0).normal(size=(200_000, categories))
    lengths = np.linalg.norm(rows, ord=norm, axis=1)
    typical = lengths.mean() if norm == 1 else np.sqrt((lengths**2).mean())
    for share in (0.75, 0.99):
        inside = np.mean(lengths <= typical * stretch(norm, categories, share))
        assert inside == pytest.approx(share, abs=0.02)


@pytest.mark.parametrize(
    ("name", "answers", "users", "loss"), [("asking", 1, 8.0, 0.5), ("searching", 16, 4.0, 4.0)]
)
def test_a_price_minimises_itself_and_what_a_wrong_answer_may_cost(name, answers, users, loss):
    known = errors(users=3000)

    def expected_loss(price):
        return price + loss * answers * np.exp(-price * known.users / users)

    prices = np.linspace(0.001, 0.1, 10_000)
    best = prices[np.argmin([expected_loss(price) for price in prices])]
    assert getattr(known, name) == pytest.approx(best, rel=0.01)


def test_a_question_of_many_people_costs_little_and_reaches_farther():
    few, many = (errors(users=n, mu=0.0, categories=6).question() for n in (300, 10_000))
    assert many.epsilon < 0.01 < few.epsilon
    assert few.spread < many.spread
    assert few.reach > few.spread  # a pair is farther apart than a user from the centre


def test_few_people_are_asked_only_if_they_are_known_to_be_alike():
    few = errors(users=220, categories=10, mu=0.0)
    assert few.question() is None
    assert few.question(alike=True).norm == 1
    assert errors(users=20, mu=0.0).question(alike=True) is None


def test_many_categories_need_delta():
    assert errors(users=3000, categories=1000, mu=0.0).question() is None
    assert errors(users=3000, categories=1000).question().norm == 2


@pytest.mark.parametrize(("relation", "weighted"), [(Relation.ADD_REMOVE, False), (None, True)])
def test_nobody_is_asked_where_a_private_number_would_decide(relation, weighted):
    decided = errors().decide(relation=relation or Relation.REPLACE, weighted=weighted)
    assert decided.name == "laplace"


@pytest.mark.parametrize("mu", [0.0, MU, 2.0])
def test_no_public_number_is_refused(mu):
    sizes = itertools.product((1, 2, 17, 10**9), (2, 3, 10**5), (1e-6, 1.0, 300.0))
    for users, categories, epsilon in sizes:
        known = errors(users=users, categories=categories, epsilon=epsilon, mu=mu)
        decided = known.decide(relation=Relation.REPLACE)
        assert isinstance(decided, Route | Likeness)
        for norm in (1, 2):
            assert known.ball(norm, DIAMETER[norm] / 2.0)[0] > 0.0
        route, error = known.expected(decided, 0.1)
        assert route.name in ("laplace", "polytope", "ball")
        assert 0.0 < error < np.inf
