"""All heavy hitters alike, and more stability from several seeds."""

from __future__ import annotations

import numpy as np
import pytest

from quorate.core.users import UserData
from quorate.exceptions import ParameterError
from quorate.learners.concepts import Thresholds
from quorate.papers.stability.reproducible import AmplifiedRule, HeavyHitterRule, Members
from quorate.papers.stability.rules import StableRule, plurality
from quorate.papers.stability.shared_seed import SharedSeed
from quorate.papers.stability.softmax import SoftmaxRule


def values(law, *, users, records, rng):
    x = rng.choice(len(law), p=law, size=users * records)
    return UserData.from_arrays(x[:, None].astype(float), users=np.repeat(range(users), records))


class TestHeavyHitters:
    LAW = np.array([0.4, 0.3, *np.full(10, 0.03)])

    def test_users_find_the_same_complete_set(self):
        rng, rule = np.random.default_rng(0), HeavyHitterRule(12)
        for seed in range(5):
            data = values(self.LAW, users=40, records=800, rng=rng)
            key, share = plurality(rule.decide(data, SharedSeed(seed)))
            assert key == 0b11
            assert share > 0.8

    def test_the_threshold_lies_where_it_should(self):
        rule = HeavyHitterRule(4, low=0.2, high=0.3)
        thresholds = [rule.threshold(SharedSeed(s)) for s in range(300)]
        assert min(thresholds) >= 0.2
        assert max(thresholds) <= 0.3
        assert np.mean(thresholds) == pytest.approx(0.25, abs=0.01)

    def test_two_users_disagree_as_often_as_their_shares_are_apart(self):
        rule = HeavyHitterRule(2, low=0.1, high=0.9)
        x = np.r_[np.zeros(50), np.ones(50), np.zeros(54), np.ones(46)]
        data = UserData.from_arrays(x[:, None], users=np.repeat([0, 1], 100))
        keys = np.array([rule.decide(data, SharedSeed(s)) for s in range(2000)])
        apart = np.mean(keys[:, 0] != keys[:, 1])
        assert apart == pytest.approx(0.08 / 0.8, abs=0.03)  # .04 for each of the two values

    def test_odd_values_are_ignored(self):
        rule = HeavyHitterRule(3)
        X = np.array([[np.nan], [np.inf], [-1.0], [7.0], [0.5], [2.0]])
        data = UserData.from_arrays(X, users=[0] * 6, missing=-9.0)
        assert rule.decide(data, SharedSeed(0)).tolist() == [4]
        assert rule.concept(4, SharedSeed(0)) == Members((2,))

    def test_refusals(self):
        for bad in ({"points": 300}, {"points": 3, "low": 0.5, "high": 0.2}, {"points": 0}):
            with pytest.raises(ParameterError):
                HeavyHitterRule(**bad)


class Coin(StableRule):
    """Agrees under even seeds only; under odd ones each chunk has an answer of its own."""

    size, n_features = 1000, 1

    def decide(self, users, seed):
        word = int(seed.words("coin", np.zeros(1, dtype=int))[0])
        if word % 2 == 0:
            return np.full(users.n_users, word % 1000)
        sums = [
            int(users.X[a:b].sum()) for a, b in zip(users.offsets, users.offsets[1:], strict=False)
        ]
        return np.array([s % 1000 for s in sums])

    def concept(self, key, seed):
        return Members((key,))


class TestAmplification:
    def test_few_who_agree_become_most(self):
        """A rule that agrees under half of the seeds becomes one that nearly always does."""
        rng = np.random.default_rng(1)
        data = values(np.full(50, 0.02), users=30, records=64, rng=rng)
        alone = [plurality(Coin().decide(data, SharedSeed(s)))[1] for s in range(30)]
        rule = AmplifiedRule(Coin(), seeds=8, chunks=4)
        together = [plurality(rule.decide(data, SharedSeed(s)))[1] for s in range(30)]
        assert np.mean(alone) < 0.7
        assert np.mean(together) > 0.95

    def test_the_key_names_the_rule_under_the_seed_that_was_kept(self):
        rng = np.random.default_rng(2)
        x = rng.integers(0, 99, size=4000)
        data = UserData.from_arrays(x[:, None], x >= 40, users=np.repeat(range(20), 200))
        rule = AmplifiedRule(SoftmaxRule(Thresholds(0, 98)), seeds=4, chunks=4)
        key, _ = plurality(rule.decide(data, SharedSeed(3)))
        found = rule.concept(key, SharedSeed(3)).predict(x[:, None])
        assert np.mean(found != (x >= 40)) < 0.1

    def test_chunks_are_all_of_a_users_records_in_order(self):
        data = UserData.from_arrays(np.arange(10.0)[:, None], users=[0] * 7 + [1] * 3)
        parts = AmplifiedRule(Coin(), chunks=4)._parts(data)
        assert parts.n_users == 8
        assert parts.offsets.tolist() == [0, 1, 3, 5, 7, 7, 8, 9, 10]

    def test_refusals(self):
        for bad in ({"low": 0.9, "high": 0.5}, {"seeds": 0}, {"rule": "coin"}):
            with pytest.raises(ParameterError):
                AmplifiedRule(**({"rule": Coin()} | bad))
