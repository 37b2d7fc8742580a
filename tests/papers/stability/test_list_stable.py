"""Short lists that samples share, and one hypothesis from many lists."""

from __future__ import annotations

import math
import pickle
from itertools import product

import numpy as np
import pytest
from scipy.stats import binom

from quorate.core.users import UserData
from quorate.exceptions import ParameterError
from quorate.learners.concepts import Conjunctions
from quorate.learners.concepts.boolean.booleans import all_patterns
from quorate.learners.concepts.dimensions import TooMuchWork
from quorate.learners.concepts.tables import FiniteTable
from quorate.papers.stability import list_stable, littlestone
from quorate.papers.stability.list_stable import (
    ListLearner,
    ListRule,
    _gumbel,
    filter_records,
    published_chunks,
)
from quorate.papers.stability.proved_lists import ProvedListLearner
from quorate.papers.stability.rules import plurality
from quorate.papers.stability.shared_seed import SharedSeed


def intervals(points):
    rows = [
        [a <= x < b for x in range(points)] for a in range(points) for b in range(a, points + 1)
    ]
    return FiniteTable(np.unique(np.array(rows, dtype=int), axis=0))


CLASSES = {
    "points": FiniteTable(np.eye(64, dtype=int)),
    "thresholds": FiniteTable(np.tri(65, 64, -1).astype(int)),
    "intervals": intervals(10),
    "conjunctions": FiniteTable(
        np.unique(Conjunctions(4).predictions(all_patterns(4)).T, axis=0), domain=all_patterns(4)
    ),
}


def people(concepts, target, *, users, records, rng):
    points = concepts.table.shape[1]
    law = np.full(points, 1 / points)
    if concepts is CLASSES["points"]:
        law = np.full(points, 0.5 / (points - 1))
        law[target] = 0.5
    x = rng.choice(points, p=law / law.sum(), size=users * records)
    return UserData.from_arrays(
        concepts.points[x],
        concepts.table[target, x].astype(int),
        users=np.repeat(np.arange(users), records),
    )


class TestLists:
    def test_a_list_is_no_longer_than_two_to_the_dimension(self):
        for concepts in CLASSES.values():
            learner = ListLearner(concepts, alpha=0.3)
            rng = np.random.default_rng(0)
            data = people(concepts, 3, users=60, records=12, rng=rng)
            assert max(map(len, learner.lists(data))) <= learner.longest

    def test_how_often_a_hypothesis_is_listed_over_all_samples(self):
        """eta, exactly, for thresholds on four points and samples of three records."""
        concepts = FiniteTable(np.tri(5, 4, -1).astype(int))
        learner = ListLearner(concepts, alpha=0.02)
        for target in range(5):
            listed = 0
            many = list(product(range(4), repeat=3))
            for sample in many:
                x = np.array(sample)
                data = UserData.from_arrays(x[:, None], concepts.table[target, x], users=[0] * 3)
                truth = sum(int(bit) << i for i, bit in enumerate(concepts.table[target]))
                listed += truth in learner.lists(data)[0]
            assert listed / len(many) > 0.25

    def test_no_hypothesis_fits_a_contradiction(self):
        learner = ListLearner(CLASSES["thresholds"])
        data = UserData.from_arrays([[1], [1]], [0, 1], users=[0, 0])
        assert learner.lists(data) == [()]

    @pytest.mark.claim("G3: Lemma 19")
    def test_the_filter_drops_what_errs_on_fresh_records(self):
        learner = ListLearner(CLASSES["intervals"], alpha=0.2)
        rng = np.random.default_rng(1)
        fresh = people(CLASSES["intervals"], 7, users=1, records=400, rng=rng)
        truth = sum(int(bit) << i for i, bit in enumerate(CLASSES["intervals"].table[7]))
        assert learner.filtered([(truth, truth ^ 0b1111100000)], fresh) == [(truth,)]
        assert learner.filtered([()], fresh) == [()]

    def test_filter_records_are_exact_tails(self):
        known = {"longest": 8, "alpha": 0.2, "zeta": 0.05}
        published, exact = filter_records(**known, constants="published"), filter_records(**known)
        assert published == math.ceil(100 * math.log(160) / 0.04)
        assert 8 * binom.cdf(math.floor(0.3 * exact), exact, 0.4) <= 0.05
        assert 8 * binom.cdf(math.floor(0.3 * (exact - 1)), exact - 1, 0.4) > 0.05

    @pytest.mark.parametrize("kind", [ListLearner, ProvedListLearner])
    def test_nothing_of_a_sample_is_kept(self, kind):
        """A memory of version spaces would say which samples were seen."""
        concepts, states = FiniteTable(np.tri(9, 8, -1).astype(int)), []
        for target in (1, 6):
            learner = kind(concepts, alpha=0.1)
            data = people(concepts, target, users=40, records=12, rng=np.random.default_rng(0))
            assert any(learner.lists(data))
            states.append(pickle.dumps(learner))
        assert states[0] == states[1]

    def test_a_version_space_of_too_many_steps_has_no_list_whoever_came_before(self):
        """An error would be about people, and a shared count of steps about all of them."""
        learner = ListLearner(FiniteTable(np.tri(40, 39, -1).astype(int)))
        object.__setattr__(learner.spaces, "max_steps", 200)
        few, many = 0b11 << 20, learner.spaces.everything
        assert learner.list_of(many) == ()
        alone = learner.list_of(few)
        for _ in range(50):
            learner.list_of(many)
        assert learner.list_of(few) == alone != ()

    def test_a_class_that_takes_too_many_steps_is_refused_before_records(self, monkeypatch):
        table = FiniteTable(np.random.default_rng(0).integers(0, 2, (64, 32)))
        monkeypatch.setattr(
            list_stable,
            "VersionSpaces",
            lambda table: littlestone.VersionSpaces(table, max_steps=50),
        )
        with pytest.raises(TooMuchWork):
            ListLearner(table)

    def test_a_class_that_is_no_small_table_is_refused(self):
        with pytest.raises(ParameterError, match="FiniteTable"):
            ListLearner(Conjunctions(3))
        with pytest.raises(ParameterError, match="256"):
            ListLearner(FiniteTable(np.zeros((2, 300), dtype=int)))


@pytest.mark.claim("G4: Algorithm 1")
class TestRule:
    @pytest.mark.claim("G4: Theorem 20")
    @pytest.mark.parametrize("name", CLASSES)
    def test_most_users_find_the_same_accurate_hypothesis(self, name):
        """The goal: a plurality of .8 at 1024 records."""
        concepts, rng = CLASSES[name], np.random.default_rng(2)
        rule, shares = ListRule(ListLearner(concepts)), []
        for seed in range(4):
            target = int(rng.integers(concepts.size))
            data = people(concepts, target, users=30, records=1024, rng=rng)
            key, share = plurality(rule.decide(data, SharedSeed(seed)))
            shares.append(share)
            found = rule.concept(key, SharedSeed(seed)).predict(concepts.points)
            assert np.mean(found != concepts.table[target]) <= 0.02
        assert np.mean(shares) >= 0.8

    def test_keys_by_position_are_caught(self):
        """The broken twin: the number of a hypothesis is its place in the user's own list.

        Samples are small, so that users hold lists of several hypotheses in different orders.
        """

        class ByPosition(ListRule):
            @staticmethod
            def _gumbels(hypotheses, stream):
                return [_gumbel(place, stream) for place in range(len(hypotheses))]

        concepts, rng = CLASSES["thresholds"], np.random.default_rng(3)
        learner = ListLearner(concepts, alpha=0.05)
        crowds = [people(concepts, 31, users=40, records=320, rng=rng) for _ in range(8)]

        def agreement(kind):
            rule = kind(learner, chunk=40, first=4, others=4, share=0.2, gamma=0.5)
            keys = (rule.decide(crowd, SharedSeed(s)) for s, crowd in enumerate(crowds))
            return np.mean([plurality(each)[1] for each in keys])

        assert agreement(ByPosition) < 0.8 * agreement(ListRule)

    def test_two_users_agree_as_often_as_their_weights_say(self):
        """Three hypotheses and known lists: the formula, also where what is kept differs."""
        rule = ListRule(ListLearner(CLASSES["points"]), first=4, others=4, gamma=2.0)
        one = [(1, 2), (1, 2), (2, 4), (1,), (1, 2), (2,), (1, 4), (2,)]
        two = [(1, 4), (1, 4), (1, 4), (4,), (1,), (1, 4), (4,), (4, 2)]

        def weights(lists):
            kept = [h for h in (1, 2, 4) if sum(h in each for each in lists[:4]) >= 2]
            return {h: math.exp(2.0 * sum(h in each for each in lists[4:]) / 4) for h in kept}

        seeds = 3000
        keys = [SharedSeed(seed).keys("lists") for seed in range(seeds)]
        same = np.mean([rule._one(one, key) == rule._one(two, key) for key in keys])
        assert set(weights(one)) == {1, 2}
        assert set(weights(two)) == {1, 4}
        shares = []
        for law in (weights(one), weights(two)):
            shares.append({h: law.get(h, 0.0) / sum(law.values()) for h in (1, 2, 4)})
        p, q = shares
        # Both race to 1, all that they may share: it wins for both unless another is faster.
        expected = 1 / sum(max(p[h] / p[1], q[h] / q[1]) for h in (1, 2, 4))
        assert abs(same - expected) < 5 * 0.5 / math.sqrt(seeds)

    def test_few_records_give_the_default(self):
        rule = ListRule(ListLearner(CLASSES["points"]))
        data = UserData.from_arrays([[1.0]] * 70, [1] * 70, users=[0] * 70)
        assert rule.decide(data, SharedSeed(0)).tolist() == [0]

    def test_records_beyond_the_chunks_are_left_out_by_public_coins(self):
        """Which records take part depends on the seed and what is held, not on what came first."""
        rule = ListRule(ListLearner(CLASSES["points"]), chunk=8, first=2, others=2)
        x = np.arange(50)
        data = UserData.from_arrays(x[:, None].astype(float), np.zeros(50, int), users=[0] * 50)
        kept = rule._chunks(data, SharedSeed(1))[0].X[:, 0]
        assert len(kept) == 32
        turned = UserData.from_arrays(
            x[::-1, None].astype(float), np.zeros(50, int), users=[0] * 50
        )
        assert np.array_equal(rule._chunks(turned, SharedSeed(1))[0].X[:, 0], kept)
        assert set(rule._chunks(data, SharedSeed(2))[0].X[:, 0]) != set(kept)
        assert not np.array_equal(rule._chunks(data, SharedSeed(2))[0].X[:, 0], kept)

    def test_published_constants(self):
        tau, gamma, first, others = published_chunks(longest=8, eta=0.5, beta=0.1)
        spread = math.log(8 / (0.1 * 0.25))
        assert (tau, gamma) == (0.25, 1e6 * spread / 0.25)
        assert first == 1e6 * spread / 0.25**2
        assert others == math.ceil(1e6 * gamma**2 * spread / 0.1**4)

    def test_the_published_rule_has_the_constants_of_theorem_20(self):
        """Written from the theorem and the proofs of it and of Lemma 19."""
        learner = ListLearner(CLASSES["points"], alpha=0.05)
        eta, beta, chunk = 0.08, 0.05, 60
        rule = ListRule.published(learner, chunk=chunk, eta=eta, beta=beta)
        tau, spread = 0.5 * eta, math.log(learner.longest / (beta * 0.5 * eta))
        gamma = 1e6 * spread / tau
        assert (rule.share, rule.gamma) == pytest.approx((tau, gamma))
        assert rule.first == math.ceil(1e6 * spread / tau**2)
        assert rule.others == math.ceil(1e6 * gamma**2 * spread / beta**4)
        wrong = (beta * eta**2 / (1e6 * math.log(learner.longest / eta))) ** 2
        assert rule.fresh == math.ceil(100 * math.log(learner.longest / wrong) / 0.05**2)
        assert rule.records_needed == (rule.first + rule.others) * (chunk + rule.fresh)
