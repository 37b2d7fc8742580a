"""Softened errors and shared Gumbel numbers: the law, the agreement and the limit."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest

from quorate.core.users import UserData
from quorate.exceptions import ParameterError
from quorate.learners.concepts import Thresholds
from quorate.learners.concepts.tables import FiniteTable
from quorate.papers.stability.correlated_sampling import agreement_probability
from quorate.papers.stability.rules import plurality
from quorate.papers.stability.shared_seed import SharedSeed
from quorate.papers.stability.softmax import (
    LISTED,
    SoftmaxRule,
    published_records,
    published_sharpness,
)

CLASS = FiniteTable([[0, 0, 0], [0, 0, 1], [0, 1, 1], [1, 1, 1]])
GAMMA = 3.0


def samples(m):
    """All samples of m records on three points, each labelled by hypothesis 2."""
    return list(itertools.product(range(3), repeat=m))


def errors(sample):
    return [
        np.mean([CLASS.table[h, x] != CLASS.table[2, x] for x in sample]) for h in range(CLASS.size)
    ]


def keys_of(many, seeds, rule):
    x = np.array(many).ravel()
    data = UserData.from_arrays(
        x[:, None], CLASS.table[2, x].astype(int), users=np.repeat(np.arange(len(many)), 2)
    )
    return np.array([rule.decide(data, SharedSeed(seed)) for seed in seeds])


@pytest.mark.claim("G6: Algorithm 3")
class TestLaw:
    def test_agreement_over_all_samples_is_the_formula(self):
        """Four hypotheses, two records, three points: every pair of samples."""
        many = samples(2)
        keys = keys_of(many, range(1500), SoftmaxRule(CLASS, gamma=GAMMA))
        weights = [dict(enumerate(np.exp(-GAMMA * np.array(errors(s))))) for s in many]
        for i, j in [(0, 1), (0, 8), (3, 5), (4, 8)]:
            share = np.mean(keys[:, i] == keys[:, j])
            expected = agreement_probability(weights[i], weights[j])
            assert abs(share - expected) < 5 * 0.5 / math.sqrt(1500)

    def test_marginals_are_the_weights(self):
        many = samples(2)
        keys = keys_of(many, range(1500), SoftmaxRule(CLASS, gamma=GAMMA))
        for i in range(len(many)):
            weights = np.exp(-GAMMA * np.array(errors(many[i])))
            share = np.bincount(keys[:, i], minlength=4) / 1500
            assert np.abs(share - weights / weights.sum()).max() < 0.06

    def test_bad_hypotheses_are_rare(self):
        """P[err > alpha] <= |H| e^(-gamma alpha / 2) for samples that are large enough."""
        rng = np.random.default_rng(0)
        x = rng.integers(0, 3, size=2000)
        data = UserData.from_arrays(x[:, None], CLASS.table[2, x], users=np.repeat(range(4), 500))
        rule = SoftmaxRule(CLASS, gamma=40.0)
        bad = [np.count_nonzero(rule.decide(data, SharedSeed(seed)) != 2) for seed in range(200)]
        assert sum(bad) / 800 <= 4 * math.exp(-40.0 * (1 / 3) / 2) + 0.01


class TestForms:
    def test_large_ordered_classes_use_the_tree(self):
        rng = np.random.default_rng(1)
        size = LISTED + 1
        x = rng.integers(0, size, size=3000)
        data = UserData.from_arrays(x[:, None], x >= 20_000, users=np.repeat(range(10), 300))
        keys = SoftmaxRule(Thresholds(0, size), sharpness=math.inf).decide(data, SharedSeed(2))
        assert np.all(np.abs(keys - 20_000) < 2000)
        assert plurality(keys)[1] >= 0.2

    def test_sharper_weights_agree_less_and_err_less(self):
        rng = np.random.default_rng(2)
        shares, errors = [], []
        for sharpness in (2.0, 8.0, 64.0):
            agreed, off = [], []
            for seed in range(6):
                x = rng.integers(0, 1000, size=40 * 100)
                y = (x >= 500) ^ (rng.random(len(x)) < 0.1)
                data = UserData.from_arrays(
                    x[:, None], y.astype(int), users=np.repeat(range(40), 100)
                )
                rule = SoftmaxRule(Thresholds(0, 999), sharpness=sharpness)
                keys = rule.decide(data, SharedSeed(seed))
                agreed.append(plurality(keys)[1])
                off.append(np.abs(keys - 500).mean())
            shares.append(np.mean(agreed))
            errors.append(np.mean(off))
        assert shares[0] > shares[1] > shares[2]
        assert errors[0] > errors[1] > errors[2]

    def test_a_seed_drawn_by_each_user_destroys_the_agreement(self):
        """The broken twin: seeds that are not shared."""
        rng = np.random.default_rng(3)
        x = rng.integers(0, 1000, size=4000)
        data = UserData.from_arrays(x[:, None], x >= 500, users=np.repeat(range(40), 100))
        rule = SoftmaxRule(Thresholds(0, 999), sharpness=4.0)
        shared = plurality(rule.decide(data, SharedSeed(0)))[1]
        own = plurality(np.array([rule.decide(data, SharedSeed(s))[s] for s in range(40)]))[1]
        assert shared > 0.5
        assert own < 0.2

    @pytest.mark.parametrize("bad", [0.0, -1.0, math.nan, "sharp"])
    def test_what_is_no_sharpness_is_refused(self, bad):
        with pytest.raises((ParameterError, TypeError)):
            SoftmaxRule(CLASS, sharpness=bad)
        with pytest.raises(ParameterError):
            SoftmaxRule("thresholds")


@pytest.mark.claim("G6: Theorem 26")
def test_published_constants_are_those_of_the_paper():
    assert published_sharpness(log2_size=8, alpha=0.1, beta=0.1) == pytest.approx(406.05, abs=0.1)
    assert 2e16 < published_records(log2_size=8, alpha=0.1, beta=0.1) < 4e16
