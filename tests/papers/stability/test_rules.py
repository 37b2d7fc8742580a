"""Promises that every stable rule keeps: one key a user, from this user's records alone."""

from __future__ import annotations

import math

import numpy as np
import pytest

from quorate.core.users import UserData
from quorate.learners.concepts import Conjunctions, Parities, Thresholds
from quorate.learners.concepts.tables import FiniteTable
from quorate.papers.queries.algorithms import (
    ConjunctionQueries,
    DecisionListQueries,
    HalfspaceQueries,
)
from quorate.papers.stability.decision_lists import DecisionListRule
from quorate.papers.stability.list_stable import ListLearner, ListRule
from quorate.papers.stability.query_rule import QueryRule
from quorate.papers.stability.representations import HashedPoints
from quorate.papers.stability.reproducible import AmplifiedRule, HeavyHitterRule
from quorate.papers.stability.rules import key_array, plurality
from quorate.papers.stability.shared_seed import SharedSeed
from quorate.papers.stability.softmax import SoftmaxRule

RULES = {
    "thresholds": SoftmaxRule(Thresholds(0, 40)),
    "huge thresholds": SoftmaxRule(Thresholds(0, 2**40)),
    "ties": SoftmaxRule(Thresholds(0, 40), sharpness=math.inf),
    "points": SoftmaxRule(HashedPoints(2**32)),
    "conjunctions": SoftmaxRule(Conjunctions(3), gamma=30.0),
    "parities": SoftmaxRule(Parities(3)),
    "lists": ListRule(ListLearner(FiniteTable(np.tri(9, 8, -1))), chunk=5, first=2, others=2),
    "decision lists": DecisionListRule(3, length=2),
    "2-decision lists": DecisionListRule(3, length=2, width=2),
    "heavy hitters": HeavyHitterRule(9, low=0.05, high=0.6),
    "amplified": AmplifiedRule(SoftmaxRule(Thresholds(0, 40)), seeds=3, chunks=2),
    "query conjunctions": QueryRule(ConjunctionQueries(3, tolerance=0.2), steps=4),
    "query decision lists": QueryRule(DecisionListQueries(3, length=2, tolerance=0.2), steps=4),
    "query halfspaces": QueryRule(HalfspaceQueries(3), steps=8),
}
every_rule = pytest.mark.parametrize("rule", RULES.values(), ids=RULES)
ODD = [math.nan, math.inf, -math.inf, 1e308, -1e308, 0.5, -0.0, 1.0, 7.0]


def crowd(d, *, users=12, seed=0):
    """Users of very different sizes, some with odd values and odd labels, one with nothing."""
    rng = np.random.default_rng(seed)
    held = rng.integers(1, 40, size=users)
    owner = np.repeat(np.arange(users), held)
    X = rng.integers(0, 2 if d > 1 else 9, size=(len(owner), d)).astype(float)
    odd = rng.random(X.shape) < 0.1
    X[odd] = rng.choice(ODD, size=odd.sum())
    y = (X[:, 0] > 0.5).astype(float)
    y[rng.random(len(y)) < 0.1] = 5.0
    return X, y, owner


def data_of(X, y, owner):
    return UserData.from_arrays(X, y, users=owner, missing=0.0)


@every_rule
class TestEveryRule:
    def test_keys_are_numbers_below_the_size_and_name_rules(self, rule):
        X, y, owner = crowd(rule.n_features)
        keys = rule.decide(data_of(X, y, owner), SharedSeed(3))
        assert len(keys) == 12
        assert all(0 <= int(key) < rule.size for key in keys)
        concept = rule.concept(int(keys[0]), SharedSeed(3))
        assert set(concept.predict(np.nan_to_num(X[:20]))) <= {0, 1}

    def test_a_key_is_a_function_of_one_users_records(self, rule):
        """Alone, in another order, among others: the same key, to the last bit."""
        X, y, owner = crowd(rule.n_features)
        seed = SharedSeed(4)
        together = [int(key) for key in rule.decide(data_of(X, y, owner), seed)]
        for user in range(12):
            own = owner == user
            assert int(rule.decide(data_of(X[own], y[own], owner[own]), seed)[0]) == together[user]
        others = np.random.default_rng(1).permutation(12)
        order = np.argsort(others[owner], kind="stable")
        again = rule.decide(data_of(X[order], y[order], others[owner[order]]), seed)
        assert [int(again[others[user]]) for user in range(12)] == together

    def test_the_same_seed_gives_the_same_keys_and_another_one_others(self, rule):
        X, y, owner = crowd(rule.n_features, users=30)
        y = np.random.default_rng(2).integers(0, 2, size=len(y))
        data = data_of(X, y, owner)
        first = rule.decide(data, SharedSeed(5)).tolist()
        assert rule.decide(data, SharedSeed(5)).tolist() == first
        assert any(rule.decide(data, SharedSeed(s)).tolist() != first for s in range(6, 12))

    def test_users_who_hold_the_same_records_agree(self, rule):
        X, y, _ = crowd(rule.n_features, users=1)
        copies = data_of(np.tile(X, (3, 1)), np.tile(y, 3), np.repeat([0, 1, 2], len(y)))
        assert len(set(rule.decide(copies, SharedSeed(6)).tolist())) == 1


def test_keys_are_machine_integers_where_they_fit():
    assert key_array([0, 5], size=2**63).dtype == np.int64
    assert key_array([2**200], size=2**201)[0] == 2**200


def test_the_plurality_is_the_most_common_key():
    assert plurality(np.array([3, 3, 9, 4], dtype=object)) == (3, 0.5)
