"""Plans for people who differ: the share between them, what is assumed, and pilots."""

import itertools
import math
from types import SimpleNamespace

import numpy as np
import pytest

from quorate.core.noise import SeededNoise, use_noise
from quorate.exceptions import ParameterError
from quorate.means import UserVariation
from quorate.means.variation import VariationError
from quorate.planning import plan
from quorate.planning.tasks.distribution import CdfTask, NormalTask, SharesTask
from quorate.planning.tasks.mean import MeanTask

MANY = {"dimension": 5, "records": 50, "scale": 2.0, "delta": 1e-6}
ASKED = {"users": 3000, "epsilon": 1.0, **MANY}


class TestBetween:
    def test_a_user_mean_varies_as_the_two_parts_of_the_variance_say(self):
        task = MeanTask(records=50, scale=2.0, between=0.3)
        assert task.deviation == pytest.approx(2.0 * math.sqrt(0.3 + 0.7 / 50))
        assert task.between_deviation == pytest.approx(2.0 * math.sqrt(0.3))

    def test_people_who_are_alike_shrink_with_their_records(self):
        alike = MeanTask(between=0.0, **MANY)
        assert alike.deviation == pytest.approx(2.0 / math.sqrt(50))
        same = MeanTask(heterogeneity=0.0, **MANY)
        assert alike.error(3000, 1.0) == same.error(3000, 1.0)

    @pytest.mark.parametrize("kind", [MeanTask, NormalTask, SharesTask, CdfTask])
    def test_errors_rise_with_what_lies_between_people(self, kind):
        shares = (0.0, 0.1, 0.3, 0.7, 1.0)
        errors = [kind(records=50, between=share).error(3000, 1.0) for share in shares]
        assert all(a < b for a, b in itertools.pairwise(errors))

    def test_the_share_and_the_units_of_the_data_say_the_same(self):
        # Variances 3 between people and 1 within: three quarters of 4.
        units = MeanTask(records=9, scale=1.0, heterogeneity=math.sqrt(3.0))
        share = MeanTask(records=9, scale=2.0, between=0.75)
        assert units.share_between == pytest.approx(0.75)
        assert units.deviation == pytest.approx(share.deviation)
        assert units.deviation == pytest.approx(math.sqrt(3.0 + 1.0 / 9.0))

    def test_both_at_once_are_refused(self):
        with pytest.raises(ParameterError, match="one of between and heterogeneity"):
            plan("mean", between=0.5, heterogeneity=1.0, **ASKED)

    @pytest.mark.parametrize("share", [-0.1, 1.1, math.nan])
    def test_a_share_lies_between_nothing_and_all(self, share):
        with pytest.raises(ParameterError, match="between"):
            plan("mean", between=share, **ASKED)

    def test_people_who_differ_are_allowed_to_be_skewed(self):
        alike, different = (
            MeanTask(between=share, dimension=3, delta=1e-6).error(20_000, 1.0)
            for share in (0.0, 0.01)
        )
        assert different == pytest.approx(1.2 * alike)
        few = MeanTask(between=0.5, dimension=3, delta=1e-6)
        assert few.error(20, 1.0) <= few.clip_error(20, 1.0)


class TestWhatIsAssumed:
    @pytest.mark.parametrize("task", ["mean", "shares", "cdf", "normal"])
    def test_a_half_is_assumed_and_the_plan_says_so(self, task):
        known = {"users": 3000, "epsilon": 1.0, "records": 50}
        silent, stated = plan(task, **known), plan(task, between=0.5, **known)
        assert silent.error == stated.error
        assert any("Assumes that half" in text for _, text in silent.rows)
        assert not any("Assumes" in text for _, text in stated.rows)

    def test_it_is_said_when_the_error_is_out_of_reach_too(self):
        answer = plan("mean", users=50, error=1e-9, **MANY)
        assert answer.epsilon is None
        assert "Assumes that half" in answer.advice[-1]

    def test_stated_units_assume_nothing(self):
        answer = plan("mean", heterogeneity=1.0, **ASKED)
        assert not any("Assumes" in line for line in answer.advice)


class TestFloor:
    def floor(self, **numbers):
        answer = plan("mean", epsilon=numbers.pop("epsilon", 1.0), error=0.1, **numbers)
        found = [bound for bound in answer.necessary if bound.theorem == "sampling of people"]
        return answer.users_needed, found[0].users if found else None

    def test_it_is_the_sampling_of_people_alone(self):
        # The 0.9 quantile of chi-square with one degree of freedom is 2.7055.
        needed, floor = self.floor(scale=2.0, between=0.25, records=10)
        assert floor == pytest.approx(2.7055 * 1.0 / 0.01, rel=1e-4)
        assert floor <= needed

    def test_no_records_and_no_epsilon_beat_it(self):
        _, floor = self.floor(between=0.5, records=10)
        needed, same = self.floor(between=0.5, records=10**9, epsilon=1000.0)
        assert floor == same <= needed

    def test_people_who_are_alike_have_none(self):
        assert self.floor(between=0.0, records=10)[1] is None


def test_records_of_the_same_people_are_not_taken_for_other_people():
    task = MeanTask(between=0.5, **MANY)
    people = task.between_deviation * math.sqrt(5 / 3000)
    # Without noise to speak of, simpler ways still see 3,000 people.
    assert task.group_error(3000, 100.0) > people
    assert MeanTask(between=0.0, **MANY).group_error(3000, 100.0) < people / 3


class TestPilot:
    def test_a_share_above_the_estimate_and_the_fewest_records_are_planned_with(self):
        found = VariationError(share=(0.4, 0.6), between=(0.125, 0.5), records=(7.9, 12.0))
        pilot = SimpleNamespace(between_=0.25, error_=found)
        known = {"users": 3000, "epsilon": 1.0, "scale": 2.0}
        answer = plan("mean", pilot=pilot, **known)
        assert answer.records == 7
        assert dict(answer.size)["between"] == 0.3125
        assert answer.error == plan("mean", records=7, between=0.3125, **known).error

    def test_a_paid_pilot_keeps_its_forecast_above_the_truth(self):
        rng = np.random.default_rng(3)
        people = np.repeat(np.arange(2000), 10)
        values = rng.normal(size=(2000, 3))[people] + rng.normal(size=(20_000, 3))
        with use_noise(SeededNoise(3)):
            pilot = UserVariation(1.0, bounds=8.0).fit(values, users=people)
        known = {"users": 5000, "epsilon": 1.0, "dimension": 3, "scale": math.sqrt(2.0)}
        truth = plan("mean", between=0.5, records=10, **known).error
        assert truth <= plan("mean", pilot=pilot, **known).error <= 1.3 * truth

    def test_it_must_be_fitted_and_wanted_and_not_contradicted(self):
        known = {"users": 100, "epsilon": 1.0, "pilot": UserVariation(1.0, bounds=1.0)}
        with pytest.raises(ParameterError, match="fitted"):
            plan("mean", **known)
        with pytest.raises(ParameterError, match="no use of a pilot"):
            plan("median", **known)
        for stated in ({"records": 3}, {"between": 0.1}, {"heterogeneity": 1.0}):
            with pytest.raises(ParameterError, match="got both"):
                plan("mean", **known, **stated)
