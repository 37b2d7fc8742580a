"""ThresholdLearner: huge domains, both directions, few users, exact audits of whole fits."""

import numpy as np
import pytest
from sklearn.base import clone

from quorate.core.guarantees import Relation
from quorate.core.noise import SeededNoise, use_noise
from quorate.core.users import UserData
from quorate.exceptions import ParameterError
from quorate.learners import ThresholdLearner, selection
from quorate.learners.concepts import Direction
from quorate.learners.threshold import threshold_class
from rule_worlds import RELATIONS, audit

DOMAIN = (0, 2**32 - 1)


def lab_values(n, m, noise, seed, cut=5_000_000, window=2**16):
    rng = np.random.default_rng(seed)
    x = rng.integers(cut - window // 2, cut + window // 2, n * m)
    y = (x >= cut) ^ (rng.random(n * m) < noise)
    data = UserData(x.reshape(-1, 1).astype(float), y.astype(float), offsets=np.arange(n + 1) * m)
    return data, lambda found: abs(np.clip(found - cut, -window / 2, window / 2)) / window


class TestLearning:
    @pytest.mark.parametrize(
        ("n", "m", "limit"), [(100, 16, 0.012), (100, 256, 0.001), (300, 4, 0.01), (1000, 1, 0.008)]
    )
    def test_most_fits_are_close_over_four_billion_points(self, n, m, limit):
        # The benchmark measures the 90th percentile below the limit; twelve of twenty-four fits
        # above twice the limit would need a far worse learner (false alarm below 1e-6).
        misses = 0
        for seed in range(24):
            data, excess = lab_values(n, m, 0.1, seed)
            with use_noise(SeededNoise(seed)):
                learner = ThresholdLearner(1.0, domain=DOMAIN).fit(data)
            misses += 0.8 * excess(learner.threshold_) > 2 * limit
        assert misses < 12

    @pytest.mark.parametrize("direction", [Direction.ABOVE, Direction.BELOW, Direction.EITHER])
    @pytest.mark.parametrize(
        "algorithm", ["auto", "median", "crossing", "own_best", "capped_regret", "two_stages"]
    )
    def test_the_side_is_respected(self, direction, algorithm):
        data, excess = lab_values(400, 16, 0.0, 0)
        flipped = UserData(data.X, 1 - data.y, offsets=data.offsets)
        learner = ThresholdLearner(4.0, domain=DOMAIN, direction=direction, algorithm=algorithm)
        with use_noise(SeededNoise(0)):
            learner.fit(data if direction is Direction.ABOVE else flipped)
        assert excess(learner.threshold_) < 0.01
        ends = np.array([[0.0], [2.0**32 - 1]])
        expected = [0, 1] if direction is Direction.ABOVE else [1, 0]
        assert learner.predict(ends).tolist() == expected

    def test_floats_live_on_a_public_grid(self):
        rng = np.random.default_rng(0)
        x = rng.random(300 * 8)
        data = UserData(x.reshape(-1, 1), (x >= 0.37) * 1.0, offsets=np.arange(301) * 8)
        learner = ThresholdLearner(4.0, domain=(0.0, 1.0), step=2.0**-20).fit(data)
        assert abs(learner.threshold_ - 0.37) < 0.02
        assert isinstance(learner.threshold_, float)

    def test_floats_need_no_step(self):
        x = np.random.default_rng(0).random(300 * 8)
        data = UserData(x.reshape(-1, 1), (x >= 0.37) * 1.0, offsets=np.arange(301) * 8)
        assert abs(ThresholdLearner(4.0, domain=(0.0, 1.0)).fit(data).threshold_ - 0.37) < 0.02

    def test_unequal_records_are_fine(self):
        rng = np.random.default_rng(0)
        counts = rng.integers(0, 60, 300)
        x = rng.integers(0, 10_000, counts.sum())
        y = (x >= 6000) ^ (rng.random(x.size) < 0.1)
        data = UserData(
            x.reshape(-1, 1).astype(float), y.astype(float), offsets=np.r_[0, np.cumsum(counts)]
        )
        with use_noise(SeededNoise(0)):
            learner = ThresholdLearner(2.0, domain=DOMAIN).fit(data)
        assert abs(learner.threshold_ - 6000) < 300


class TestStep:
    @pytest.mark.parametrize(
        ("domain", "points"),
        [
            ((0, 9), 10),
            ((np.int64(0), np.int64(9)), 10),
            ((0.0, 1.0), 2**32 + 1),
            ((0, 1.0), 2**32 + 1),
            ((-3.0, 3.0), 3 * 2**31 + 1),
            ((1e9, 1e9 + 1.0), 2**23 + 1),
            ((2.5, 2.5), 1),
            ((0.0, 1e-300), None),
            ((-8e307, 8e307), None),
        ],
        ids=str,
    )
    def test_the_default_resolves_the_domain(self, domain, points):
        found = threshold_class(domain, step=None, direction=Direction.ABOVE)
        if points is None:
            assert 2**32 <= found.domain.points <= 2**33
        else:
            assert found.domain.points == points

    def test_a_stated_step_is_kept(self):
        found = threshold_class((0.0, 1.0), step=0.25, direction=Direction.ABOVE)
        assert found.domain.points == 5

    @pytest.mark.parametrize("domain", [(0.0, np.inf), (np.nan, 1.0), (1.0, 0.0)])
    def test_ends_that_are_none_are_refused(self, domain):
        with pytest.raises(ParameterError):
            threshold_class(domain, step=None, direction=Direction.ABOVE)


class TestWrongParameters:
    @pytest.mark.parametrize(
        "domain", [np.full(3, 31337.5), (np.full(3, 31337.5), 1.0), [31337.5] * 9]
    )
    def test_data_in_place_of_a_domain_are_not_quoted(self, domain):
        with pytest.raises(ParameterError, match="domain") as caught:
            ThresholdLearner(domain=domain).fit([[1.0]], [1], users=[1])
        assert "31337" not in str(caught.value)


class TestDecision:
    def test_the_fewest_take_slack_few_a_median_and_more_two_stages(self):
        ways = {30: "slack_median", 60: "median", 300: "two_stages", 2100: "two_stages"}
        for users, way in ways.items():
            data, _ = lab_values(users, 8, 0.1, 0)
            learner = ThresholdLearner(domain=DOMAIN).fit(data)
            assert learner.algorithm_.name == way
            assert f"{users} users" in learner.algorithm_.reason

    def test_many_users_who_are_alike_approve_of_their_own_best(self):
        many, _ = lab_values(400, 8, 0.1, 0)
        learner = ThresholdLearner(domain=DOMAIN, alike=True).fit(many)
        assert learner.algorithm_.name == "own_best"
        assert "alike" in learner.algorithm_.reason

    def test_likeness_is_a_yes_or_a_no(self):
        with pytest.raises(ParameterError, match="alike"):
            ThresholdLearner(domain=DOMAIN, alike="yes").fit([[1.0]], [1], users=[1])

    def test_users_who_differ_are_served_better_than_by_approvals(self):
        # To three of five users 1 begins at 0.3, with one record in eight below 0.7; to the others
        # it begins at 0.7, and all their records lie in between: they mind 0.3 much more.
        rng = np.random.default_rng(0)
        n, m = 1500, 8
        most = np.arange(n)[:, None] % 5 < 3
        between, outside = 0.3 + 0.4 * rng.random((n, m)), rng.random((n, m)) * 0.3
        outside += 0.7 * (rng.random((n, m)) < 0.5)
        x = np.where(most & (np.arange(m) > 0), outside, between)
        y = x >= np.where(most, 0.3, 0.7)
        data = UserData(
            np.floor(x.reshape(-1, 1) * 2**20), y.ravel() * 1.0, offsets=np.arange(n + 1) * m
        )

        def errors(way):
            with use_noise(SeededNoise(0)):
                learner = ThresholdLearner(domain=DOMAIN, **way).fit(data)
            return np.mean(learner.predict(data.X) != data.y)

        assert errors({}) < 0.1 < 0.3 < errors({"alike": True})

    def test_a_private_number_of_users_is_not_asked_for(self):
        data, _ = lab_values(400, 8, 0.1, 0)
        learner = ThresholdLearner(domain=DOMAIN, relation=Relation.ADD_REMOVE).fit(data)
        assert learner.algorithm_.name == "two_stages"
        assert "400" not in learner.algorithm_.reason
        assert learner.records_ is None

    def test_a_private_number_of_users_who_are_alike_buys_the_records_instead(self):
        data, _ = lab_values(400, 8, 0.1, 0)
        known = {"relation": Relation.ADD_REMOVE, "alike": True}
        learner = ThresholdLearner(domain=DOMAIN, **known).fit(data)
        assert learner.records_ is not None
        assert learner.algorithm_.name in ("median", "own_best")
        assert learner.guarantee_.epsilon == 1.0


class TestPrivacy:
    @pytest.mark.parametrize("relation", RELATIONS, ids=lambda r: r.name)
    @pytest.mark.parametrize(
        "algorithm",
        ["auto", "own_best", "median", "slack_median", "capped_regret", "regret", "two_stages"],
    )
    def test_the_exact_audit_of_a_whole_fit_holds(
        self, algorithm, relation, monkeypatch, record_property
    ):
        monkeypatch.setattr(selection, "MAX_DUELLISTS", 1)
        learner = ThresholdLearner(
            domain=(0, 1), algorithm=algorithm, relation=relation, random_state=0
        )
        found = audit(lambda data: clone(learner).fit(data).threshold_, relation)
        record_property("tightness", found.tightness)
        assert found.holds, str(found)


def test_a_missing_domain_is_refused_and_never_read_from_the_data():
    with pytest.raises(ValueError, match="must not be taken from the data"):
        threshold_class(None, step=1, direction=Direction.ABOVE)
