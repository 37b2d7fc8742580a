"""The published search for a cut-off (L5, L6): it lands, its median is L5's, exact audits."""

import numpy as np
import pytest
from sklearn.base import clone

from quorate.auditing import Cells
from quorate.concepts import Thresholds
from quorate.guarantees import Relation
from quorate.learners import PrivateThreshold
from quorate.learners.private_threshold import median_in_range
from quorate.learners.scores import MistakeLine
from quorate.learners.scores.more_than import separating_rate
from quorate.noise import SeededNoise, use_noise
from quorate.users import UserData
from rule_worlds import RELATIONS, audit


def values(n, m, seed, cut=600, high=1000, noise=0.05):
    rng = np.random.default_rng(seed)
    x = rng.integers(0, high, n * m)
    y = (x >= cut) ^ (rng.random(n * m) < noise)
    return UserData(x.reshape(-1, 1).astype(float), y.astype(float), offsets=np.arange(n + 1) * m)


class TestMedian:
    def test_it_splits_the_records_within_the_factor_of_lemma_51(self):
        line = MistakeLine(concepts=Thresholds(0, 2**32), users=values(400, 8, 0))
        with use_noise(SeededNoise(0)):
            found = median_in_range(
                line.events,
                line.held,
                first=0,
                last=2**32,
                rate=separating_rate(1 / 2, 2 / 3),
                epsilon=2.0,
                relation=Relation.REPLACE,
            )
        share = np.mean(line.users.X[:, 0] < found)
        assert 1 / 3 <= share <= 2 / 3

    def test_a_narrow_range_is_respected(self):
        line = MistakeLine(concepts=Thresholds(0, 999), users=values(50, 4, 0))
        for seed in range(20):
            with use_noise(SeededNoise(seed)):
                found = median_in_range(
                    line.events,
                    line.held,
                    first=300,
                    last=303,
                    rate=0.0,
                    epsilon=0.1,
                    relation=Relation.REPLACE,
                )
            assert 300 <= found <= 303


class TestLearning:
    def test_it_lands_with_many_users(self):
        excess = []
        for seed in range(10):
            with use_noise(SeededNoise(seed)):
                learner = PrivateThreshold(4.0, domain=(0, 2**20)).fit(values(1000, 16, seed))
            excess.append(abs(np.clip(learner.threshold_, 0, 1000) - 600) / 1000)
        assert np.median(excess) < 0.03

    def test_published_constants_run_and_need_far_more_users(self):
        with use_noise(SeededNoise(0)):
            learner = PrivateThreshold(
                50.0, domain=(0, 2**20), constants="published", records=16, excess=0.2
            ).fit(values(2000, 16, 0))
        assert abs(np.clip(learner.threshold_, 0, 1000) - 600) < 300


class TestPrivacy:
    @pytest.mark.parametrize("relation", RELATIONS, ids=lambda r: r.name)
    def test_the_exact_audit_of_a_whole_fit_holds(self, relation, record_property):
        learner = PrivateThreshold(domain=(0, 1), error_level=0.1, relation=relation)
        few = ((), ((0, 1),), ((0, 0), (1, 1)), ((0, 1), (0, 1), (1, 0)))
        found = audit(
            lambda data: clone(learner).fit(data).index_,
            relation,
            records=few,
            cells=Cells(width=1.0, reach=2.0),
            max_runs=100_000,
        )
        record_property("tightness", found.tightness)
        assert found.holds, str(found)
