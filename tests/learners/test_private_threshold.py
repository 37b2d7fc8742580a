"""The published search for a cut-off (L5, L6): it lands, its median is L5's, exact audits."""

from itertools import pairwise

import numpy as np
import pytest
from sklearn.base import clone

from quorate.auditing import Cells, enumerate_runs
from quorate.core.account.account import Account
from quorate.core.noise import SeededNoise, use_noise
from quorate.core.users import UserData
from quorate.learners import PrivateThreshold, private_threshold
from quorate.learners.concepts import Thresholds
from quorate.learners.private_threshold import median_in_range
from quorate.learners.scores.base import Along
from quorate.learners.scores.more_than import separating_rate
from rule_worlds import RELATIONS, asked, audit


def values(n, m, seed, cut=600, high=1000, noise=0.05):
    rng = np.random.default_rng(seed)
    x = rng.integers(0, high, n * m)
    y = (x >= cut) ^ (rng.random(n * m) < noise)
    return UserData(x.reshape(-1, 1).astype(float), y.astype(float), offsets=np.arange(n + 1) * m)


@pytest.mark.claim("L5: Lemma 5.1")
class TestMedian:
    def test_it_splits_the_records_within_the_factor_of_lemma_51(self):
        data = values(400, 8, 0)
        walk = asked(data).walk(Along(Thresholds(0, 2**32)))
        with use_noise(SeededNoise(0)):
            found = median_in_range(
                walk, first=0, last=2**32, mass=1.0, account=Account.open(epsilon=2.0)
            )
        share = np.mean(data.X[:, 0] < found)
        assert 1 / 3 <= share <= 2 / 3

    def test_a_narrow_range_is_respected(self):
        walk = asked(values(50, 4, 0)).walk(Along(Thresholds(0, 999)))
        for seed in range(20):
            with use_noise(SeededNoise(seed)):
                found = median_in_range(
                    walk, first=300, last=303, mass=1e-3, account=Account.open(epsilon=0.1)
                )
            assert 300 <= found <= 303


def printed_law(data, *, first, last, mass, epsilon):
    """Return Lemma 5.1's exponential mechanism by its definition; x = 1 is the first point."""
    rate = separating_rate(mass / 2, 2 * mass / 3)
    users = [data.X[a:b, 0] + 1 for a, b in pairwise(data.offsets)]
    losses = []
    for u in range(first, last + 1):
        left = sum(np.sum((first <= x) & (x <= u - 1)) > np.floor(rate * len(x)) for x in users)
        right = sum(np.sum((u + 1 <= x) & (x <= last)) > np.floor(rate * len(x)) for x in users)
        losses.append(max(left, right))
    weights = np.exp(-epsilon * np.array(losses) / 2)
    return weights / weights.sum()


@pytest.mark.claim("L5: Lemma 5.1", "L6: Algorithm 1")
class TestAsPrinted:
    @pytest.mark.parametrize(("first", "last"), [(0, 6), (2, 5), (3, 4)])
    @pytest.mark.parametrize("mass", [1e-3, 0.5, 1.0])
    def test_the_median_counts_what_lemma_51_counts(self, first, last, mass):
        data = values(7, 4, 1, cut=3, high=6)
        walk = asked(data).walk(Along(Thresholds(0, 5)))
        known = {"first": first, "last": last, "mass": mass}

        def law(**options):
            found = enumerate_runs(
                lambda noise: median_in_range(
                    walk, account=Account.open(epsilon=1.3), **known, **options
                )
            )
            return np.array([found.get(u, 0.0) for u in range(first, last + 1)])

        expected = printed_law(data, epsilon=1.3, **known)
        np.testing.assert_allclose(law(published=True), expected, atol=1e-9)
        if (first, last) == (0, 6):  # calibrated counts less
            assert np.abs(law() - expected).max() > 1e-3

    def test_a_median_in_round_k_sees_as_many_records_as_lemma_51_keeps(self, monkeypatch):
        seen = []

        def watch(walk, **known):
            seen.append(int(walk.people._held_crowd().record_counts().max()))
            return known["first"]

        monkeypatch.setattr(private_threshold, "median_in_range", watch)
        learner = PrivateThreshold(99.0, domain=(0, 999), constants="published", records=16)
        with use_noise(SeededNoise(1)):
            learner.set_params(error_level=0.05).fit(values(50, 16, 0))
        rounds = len(seen)
        assert rounds > 3
        assert seen == [min(16, int(1.5**k + 1e-9)) for k in range(rounds)]

    def test_a_side_without_cut_offs_has_no_noisy_count(self, monkeypatch):
        # It is infinite: noise on a count of everybody could make it win.
        rounds, drawn = [], []

        class Counting(SeededNoise):
            def discrete_laplace(self, values, *, scale):
                drawn.extend(values)
                return super().discrete_laplace(values, scale=scale)

        def first_cut_off(walk, *, first, **_):
            rounds.append(first)
            return first

        monkeypatch.setattr(private_threshold, "median_in_range", first_cut_off)
        learner = PrivateThreshold(
            99.0, domain=(0, 999), constants="published", records=16, error_level=0.05
        )
        with use_noise(Counting(1)):
            learner.fit(values(50, 16, 0))
        assert len(drawn) == 2 * len(rounds) > 4


@pytest.mark.claim("L6: Theorem 5.2")
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
