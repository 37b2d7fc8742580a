"""Answers rounded with a shared offset, and algorithms that become stable by it."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import product

import numpy as np
import pytest

from quorate.core.users import UserData
from quorate.exceptions import ParameterError
from quorate.learners.concepts import Constant
from quorate.papers.queries.algorithms import (
    ConjunctionQueries,
    DecisionListQueries,
    HalfspaceQueries,
)
from quorate.papers.queries.statistical import NonAdaptive, StatisticalQuery
from quorate.papers.stability.codes import DecisionListCode
from quorate.papers.stability.query_rule import (
    QueryRule,
    RoundedOracle,
    code_of,
    query_records,
    round_together,
)
from quorate.papers.stability.rules import plurality
from quorate.papers.stability.shared_seed import SharedSeed

MEAN = StatisticalQuery(function=lambda X, y: X[:, 0], tolerance=0.3)


def answer(values, offset, *, steps=None):
    X = np.asarray(values, dtype=float)[:, None]
    return RoundedOracle(X, np.zeros(len(X)), offsets=np.array([offset]), steps=steps).ask(MEAN)


@dataclass(frozen=True)
class TwoMeans(NonAdaptive):
    """Two queries; the rule says which of the two answers is larger."""

    n_features: int = 2

    def queries(self):
        return tuple(
            StatisticalQuery(function=lambda X, y, j=j: X[:, j], tolerance=0.75) for j in (0, 1)
        )

    def conclude(self, answers):
        return Constant(int(answers[0] > answers[1]))


@pytest.mark.claim("G10: Algorithm 5", "G10: Lemma 32")
class TestRounding:
    def test_two_users_disagree_as_often_as_their_means_are_apart(self):
        """u = .37, u' = .383, ten steps: exactly .13."""
        offsets = SharedSeed(0).uniforms("offsets", np.arange(40_000))
        apart = [
            round_together(0.37, u, steps=10) != round_together(0.383, u, steps=10)
            for u in offsets.tolist()
        ]
        assert abs(np.mean(apart) - 0.13) < 0.006

    def test_answers_are_unbiased_and_within_a_step(self):
        offsets = (np.arange(1000) + 0.5) / 1000
        answers = [answer([0.2, 0.5], u, steps=7) for u in offsets]
        assert np.mean(answers) == pytest.approx(0.35, abs=1e-3)
        assert max(abs(a - 0.35) for a in answers) <= 1 / 7

    def test_the_published_number_of_steps_keeps_the_tolerance(self):
        for offset in (0.0, 0.5, 0.999):
            assert abs(answer([0.2, 0.5], offset) - 0.35) <= 0.3 / 3

    def test_agreement_over_all_samples_is_the_product_formula(self):
        """Two queries, two records each, all samples of 0 and 1: enumerated over offsets."""
        steps, grid = 3, (np.arange(120) + 0.5) / 120
        means = [np.mean(sample) for sample in product((0, 1), repeat=2)]
        for first, second in product(means, repeat=2):
            same = np.mean(
                [
                    round_together(first, u, steps=steps) == round_together(second, u, steps=steps)
                    for u in grid
                ]
            )
            assert same == pytest.approx(max(0.0, 1 - steps * abs(first - second)), abs=0.01)

    def test_an_offset_of_each_users_own_is_caught(self):
        """The broken twin: without a shared offset users near a step disagree half of the time."""
        rng = np.random.default_rng(1)
        own = np.mean(
            [
                round_together(0.37, rng.random(), steps=10)
                != round_together(0.372, rng.random(), steps=10)
                for _ in range(3000)
            ]
        )
        assert own > 0.2  # shared: .02


class TestRule:
    def test_fresh_parts_are_disjoint(self):
        X = np.arange(10.0)[:, None] / 10
        oracle = RoundedOracle(X, np.zeros(10), offsets=np.zeros(2), steps=1000, parts=2)
        first, second = oracle.answer([MEAN, MEAN])
        assert (first, second) == (pytest.approx(0.4, abs=1e-3), pytest.approx(0.5, abs=1e-3))

    @pytest.mark.claim("G10: Theorem 5")
    def test_users_agree_on_conjunctions(self):
        rng = np.random.default_rng(2)
        X = rng.integers(0, 2, size=(30 * 1000, 6))
        data = UserData.from_arrays(X, X[:, 1] & X[:, 4], users=np.repeat(range(30), 1000))
        rule = QueryRule(ConjunctionQueries(6, tolerance=0.05))
        key, share = plurality(rule.decide(data, SharedSeed(3)))
        assert share >= 0.8
        assert np.array_equal(
            rule.concept(key, SharedSeed(3)).predict(X[:200]), X[:200, 1] & X[:200, 4]
        )

    @pytest.mark.claim("G10: Corollary 33")
    def test_users_agree_on_decision_lists(self):
        rng = np.random.default_rng(3)
        X = rng.integers(0, 2, size=(20 * 2000, 4))
        y = np.where(X[:, 2] == 1, 0, X[:, 0])
        data = UserData.from_arrays(X, y, users=np.repeat(range(20), 2000))
        rule, shares = QueryRule(DecisionListQueries(4, length=3, tolerance=0.1), steps=8), []
        for seed in range(3):
            key, share = plurality(rule.decide(data, SharedSeed(seed)))
            shares.append(share)
            assert np.mean(rule.concept(key, SharedSeed(seed)).predict(X) != y) <= 0.01
        assert np.mean(shares) >= 0.7

    def test_users_agree_on_halfspaces(self):
        rng = np.random.default_rng(4)
        X = rng.integers(0, 2, size=(12 * 6000, 3))
        y = (X.sum(axis=1) >= 2).astype(int)
        data = UserData.from_arrays(X, y, users=np.repeat(range(12), 6000))
        rule, shares = QueryRule(HalfspaceQueries(3), steps=8), []
        for seed in range(4):
            key, share = plurality(rule.decide(data, SharedSeed(seed)))
            shares.append(share)
            assert np.mean(rule.concept(key, SharedSeed(seed)).predict(X) != y) <= 0.01
        assert np.mean(shares) >= 0.6

    def test_an_algorithm_that_fails_on_someone_gives_the_default(self):
        class Fragile(ConjunctionQueries):
            def conclude(self, answers):
                if answers[0] > 0.5:
                    raise ValueError(answers)
                return super().conclude(answers)

        X = np.array([[0.0, 1.0], [1.0, 1.0]])
        data = UserData.from_arrays(X, [1, 1], users=[0, 1])
        keys = QueryRule(Fragile(2, tolerance=0.1)).decide(data, SharedSeed(0))
        assert keys.tolist()[0] == 0

    def test_an_unknown_algorithm_needs_a_code(self):
        with pytest.raises(ParameterError, match="code="):
            QueryRule(TwoMeans())
        rule = QueryRule(TwoMeans(), code=DecisionListCode(2))
        data = UserData.from_arrays([[1.0, 0.0], [0.0, 1.0]], users=[0, 1])
        assert rule.decide(data, SharedSeed(0)).tolist() == [1, 0]
        with pytest.raises(ParameterError):
            QueryRule("conjunctions")

    def test_codes_fit_their_algorithms(self):
        assert code_of(DecisionListQueries(3, length=2)).size == 2 * 13**2
        assert code_of(ConjunctionQueries(3)).size == 28


def test_records_needed():
    few = query_records(queries=9, tolerance=0.25, beta=0.1)
    assert few == pytest.approx((12 * 9 / 0.1) ** 2 * np.log(180) / 2)
    published = query_records(queries=9, tolerance=0.25, beta=0.1, constants="published")
    assert published > 1e5 * few
