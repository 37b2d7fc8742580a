"""Plans for a learner by agreement, in the three models of trust."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.stats import binom

from quorate.core.by_hand import votes_by_hand
from quorate.core.guarantees import Relation
from quorate.core.noise import SeededNoise, use_noise
from quorate.core.users import UserData
from quorate.learners.concepts import Thresholds
from quorate.local.randomizers.bucket_counts import BucketCounts
from quorate.local.reliability import users_needed
from quorate.local.shuffling.count_noise import calibrated_noise
from quorate.mechanisms.choices.stable_choice import StableChoice
from quorate.mechanisms.choices.universe import ChooseKey
from quorate.papers.stability import SoftmaxRule, plurality
from quorate.papers.stability.shared_seed import SharedSeed
from quorate.planning import plan
from quorate.planning.tasks.agreement import (
    AgreementTask,
    BucketAgreementTask,
    LocalAgreementTask,
    ShuffleAgreementTask,
    best_share,
    central_failure,
    expected_share,
)

SETTING = {"size": 2**14, "records": 1024, "epsilon": 1.0, "error": 0.03, "error_level": 0.1}


def crowd(rng, *, users, records, size=2**14):
    cut = int(rng.integers(size // 8, 7 * size // 8))
    x = rng.integers(0, size, size=users * records)
    y = (x >= cut) ^ (rng.random(len(x)) < 0.1)
    return UserData.from_arrays(
        x[:, None].astype(float), y.astype(int), users=np.repeat(np.arange(users), records)
    )


@pytest.mark.claim("G5: Theorem 1", "G7: Theorem 2", "G8: Theorem 3", "G11: Theorem 35")
class TestGoals:
    def test_the_users_that_the_issue_asks_for(self):
        assert plan("agreement", **SETTING).users <= 50
        assert plan("agreement", delta=1e-6, **SETTING).users <= 50
        assert plan("agreement-shuffle", delta=1e-6, **SETTING).users <= 100
        assert plan("agreement-local", **SETTING).users <= 400

    def test_a_known_share_replaces_the_usual_one(self):
        few = plan("agreement-local", plurality=0.95, **SETTING).users
        many = plan("agreement-local", plurality=0.4, **SETTING).users
        assert many > 4 * few


class TestShares:
    @pytest.mark.parametrize(("records", "sharpness"), [(64, 4.0), (256, 8.0)])
    def test_they_are_close_to_what_crowds_show(self, records, sharpness):
        rng, shares, best = np.random.default_rng(records), [], []
        rule = SoftmaxRule(Thresholds(0, 2**14 - 2), sharpness=sharpness)
        for repetition in range(5):
            data = crowd(rng, users=40, records=records)
            seeds = [SharedSeed(repetition, task=str(i)) for i in range(16)]
            own = [plurality(rule.decide(data, seed))[1] for seed in seeds]
            shares += own
            best.append(max(own))
        assert abs(np.quantile(shares, 0.1) - expected_share(sharpness, records)) <= 0.12
        assert abs(np.mean(best) - best_share(sharpness, records)) <= 0.12

    def test_sharper_weights_agree_less_and_more_records_agree_more(self):
        for share in (expected_share, best_share):
            assert share(4.0, 64) >= share(16.0, 64)
            assert share(16.0, 1024) >= share(16.0, 16)


class TestFailures:
    @pytest.mark.parametrize("relation", list(Relation))
    @pytest.mark.parametrize("delta", [0.0, 1e-6])
    def test_central_failures_are_those_of_the_mechanisms(self, relation, delta):
        """Simulated votes and real selections against the sum."""
        size, users, share = 2**64 if delta else 2**14, 70 if delta else 34, 0.7
        known = {"epsilon": 1.0, "relation": relation}
        if relation is Relation.ADD_REMOVE:
            users //= 2
        expected = central_failure(
            users=users, share=share, size=size, seeds=1, delta=delta, **known
        )
        rng, missed = np.random.default_rng(1), 0
        choice = StableChoice(delta=delta, **known) if delta else ChooseKey(size=size, **known)
        with use_noise(SeededNoise(2)):
            for _ in range(300):
                won = int(rng.binomial(users, share))
                rivals = {10 + i: n for i, n in enumerate(rng.multinomial(users - won, [0.25] * 4))}
                votes = votes_by_hand({7: won, **rivals}, relation)
                missed += choice.release(votes) != 7
        assert missed / 300 == pytest.approx(expected, abs=0.09)

    def test_local_users_are_close_to_exact_tails(self):
        for size, epsilon, share in [(2**14, 1.0, 0.5), (2**14, 0.5, 0.8), (2**20, 1.0, 0.6)]:
            task = LocalAgreementTask(size=size, plurality=share)
            exact = users_needed(candidates=size, epsilon=epsilon, plurality=share, beta=0.05)
            assert 0.8 <= task.needed(epsilon, share=share) / exact <= 1.25

    def test_shuffled_users_are_those_of_exact_tails(self):
        """Exact tails by ``users_needed``, which take half a minute each: noted here."""
        exact = [
            (2**14, 1.0, 1e-6, 112),
            (2**14, 2.0, 1e-6, 60),
            (2**14, 0.5, 1e-6, 193),
            (2**14, 1.0, 1e-9, 136),
            (2**20, 1.0, 1e-6, 132),
            (2**8, 1.0, 1e-6, 88),
        ]
        for size, epsilon, delta, users in exact:
            task = ShuffleAgreementTask(size=size, plurality=0.5, delta=delta)
            assert 0.85 <= task.needed(epsilon, share=0.5) / users <= 1.15

    def test_shuffling_never_needs_more_users_than_nothing(self):
        for epsilon in (0.1, 1.0, 8.0):
            shuffled = ShuffleAgreementTask(delta=1e-6).needed(epsilon, share=0.5)
            assert shuffled <= LocalAgreementTask().needed(epsilon, share=0.5)
        assert ShuffleAgreementTask().needed(1.0, share=0.5) == LocalAgreementTask().needed(
            1.0, share=0.5
        )


class TestForm:
    def test_the_way_names_the_selection_and_the_sharpness(self):
        name, reason = AgreementTask(records=1024, delta=1e-6).algorithm(50, 1.0)
        assert name == "pure_choice"
        assert "sharpness=" in reason
        assert AgreementTask(size=2**64, delta=1e-6).algorithm(200, 1.0)[0] == "truncated_noise"
        assert "shuffled" in ShuffleAgreementTask(delta=1e-6).algorithm(100, 1.0)[0]

    def test_limits_name_their_theorems(self):
        task = AgreementTask(delta=1e-6)
        assert "Lemma 4" in task.lower(epsilon=1.0, error=0.03).note
        assert task.upper(epsilon=1.0, error=0.03).theorem in ("Theorem 25", "Theorem 30")
        assert LocalAgreementTask().upper(epsilon=0.5, error=0.03).users == pytest.approx(
            (14 + math.log(10)) / 0.25
        )

    def test_one_hypothesis_needs_nobody(self):
        assert AgreementTask(size=1).error(1, 1.0) == 0.0


class TestBuckets:
    """Theorem 35: counts that are never above the truth, so one bucket's noise decides."""

    KNOWN = (
        (4.0, 1e-6, 0.5),
        (2.0, 1e-6, 0.5),
        (1.0, 1e-6, 0.5),
        (1.0, 1e-9, 0.8),
        (0.5, 1e-6, 0.6),
    )

    @pytest.mark.parametrize(("epsilon", "delta", "share"), KNOWN)
    def test_users_are_those_whose_votes_are_ahead_of_the_noise(self, epsilon, delta, share):
        """Exactly: Z is exceeded with beta / 4, and votes fall short with beta / 4."""
        task = BucketAgreementTask(size=2**14, plurality=share, delta=delta)
        users = int(task.needed(epsilon, share=share))
        reached = calibrated_noise(epsilon, delta, buckets=2).quantile(0.1 / 4)
        # Of four rivals each has a quarter of the votes that are not the winner's.
        votes = binom.ppf(0.1 / 4, users, share)
        assert 0.85 < (votes - (users - votes) / 4) / reached < 1.15

    def test_they_do_not_grow_with_the_hypotheses_and_end_where_buckets_do(self):
        few, many = (
            BucketAgreementTask(size=size, plurality=0.5, delta=1e-6).needed(1.0, share=0.5)
            for size in (2, 2**14)
        )
        assert few == many
        large = BucketAgreementTask(size=2**15, plurality=0.5, delta=1e-6)
        assert large.needed(1.0, share=0.5) == math.inf
        assert BucketAgreementTask(plurality=0.5).needed(1.0, share=0.5) == math.inf

    def test_so_many_users_find_the_hypothesis(self):
        """Simulated votes and real messages; at most one in ten may fail, of sixty so many."""
        users = int(BucketAgreementTask(plurality=0.5, delta=1e-6).needed(1.0, share=0.5))
        counts = BucketCounts(buckets=16, users=users, epsilon=1.0, delta=1e-6, complement=True)
        rng, missed = np.random.default_rng(0), 0
        with use_noise(SeededNoise(0)):
            for _ in range(60):
                keys = rng.choice(5, size=users, p=[0.5, *[0.125] * 4])
                missed += counts.choose(counts.messages(keys)) != 0
        assert missed <= 15

    @pytest.mark.parametrize("epsilon", [0.001, 0.3, 7.0, 100.0])
    def test_a_plan_ends(self, epsilon):
        """It did not: exact noise of a small epsilon takes minutes, and was asked for each step."""
        found = plan("agreement-buckets", delta=1e-6, **SETTING | {"epsilon": epsilon})
        assert found.users > 0
