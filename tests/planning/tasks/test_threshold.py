"""Plans for cut-offs: shares of users by enumeration, ways, and real fits."""

import itertools

import numpy as np
import pytest

from quorate.core.guarantees import Relation
from quorate.core.noise import SeededNoise, use_noise
from quorate.core.users import UserData
from quorate.exceptions import ParameterError
from quorate.learners import ThresholdLearner
from quorate.planning import plan
from quorate.planning.tasks.threshold import ThresholdTask, _shares

DOMAIN = 2**32


def people(n, m, noise, seed):
    rng = np.random.default_rng(seed)
    low = int(rng.integers(0, DOMAIN - 2**16))
    cut = low + 2**15
    x = rng.integers(low, low + 2**16, n * m)
    y = (x >= cut) ^ (rng.random(n * m) < noise)
    data = UserData(x[:, None].astype(float), y.astype(float), offsets=np.arange(n + 1) * m)
    return (
        data,
        lambda found: abs(min(max(found, low), low + 2**16) - cut) / 2**16 * (1 - 2 * noise),
    )


def kept(n, error, repetitions=50):
    hits = 0
    for repetition in range(repetitions):
        data, excess = people(n, 16, 0.1, [n, repetition])
        with use_noise(SeededNoise([n, repetition])):
            found = ThresholdLearner(1.0, domain=(0, DOMAIN - 1), alike=True).fit(data).threshold_
        hits += excess(found) <= error
    return hits / repetitions


def test_the_planned_users_keep_the_error_and_a_third_of_them_does_not():
    # The true chance is about 0.97; below 0.75 in 50 runs happens less than once in 10^7 times.
    users = plan("threshold", epsilon=1.0, error=0.02, records=16, alike=True).users
    assert kept(users, 0.02) >= 0.75
    assert kept(users // 3, 0.02) < 0.75


@pytest.mark.parametrize("error_level", [0.0, 0.2])
@pytest.mark.parametrize("records", [1, 2, 5])
def test_shares_of_content_users_are_those_of_all_cases(records, error_level):
    # Every side of the cut-off and every flip of every record, in order of distance.
    best = far = 0.0
    for sides in itertools.product([0, 1], repeat=records):
        for flips in itertools.product([0, 1], repeat=records):
            chance = 0.5**records
            for flip in flips:
                chance *= error_level if flip else 1 - error_level
            right = [flip for side, flip in zip(sides, flips, strict=True) if side]
            left = [flip for side, flip in zip(sides, flips, strict=True) if not side]
            walks = [
                np.cumsum([0] + [-1 if flip else 1 for flip in walk]) for walk in (left, right)
            ]
            lowest = min(walk.min() for walk in walks)
            best += chance * (lowest == 0)
            far += chance * (walks[1][-1] == lowest)
    assert _shares(records, error_level) == pytest.approx((best, far))


def test_very_many_records_share_one_limit():
    assert _shares(500, 0.1) == _shares(64, 0.1)
    assert _shares(64, 0.1)[0] == pytest.approx((0.8 / 0.9) ** 2, abs=1e-3)


class TestWay:
    @pytest.mark.parametrize(
        ("users", "domain"), [(100, DOMAIN), (400, DOMAIN), (600, DOMAIN), (100, 1000), (600, 1000)]
    )
    @pytest.mark.parametrize("alike", [False, True])
    def test_it_is_what_the_learner_does(self, users, domain, alike):
        rng = np.random.default_rng(0)
        x = rng.integers(0, domain, users * 2)
        data = UserData(
            x[:, None].astype(float), (x > domain / 2) * 1.0, offsets=np.arange(users + 1) * 2
        )
        with use_noise(SeededNoise(0)):
            learner = ThresholdLearner(1.0, domain=(0, domain - 1), alike=alike).fit(data)
        way, reason = ThresholdTask(domain=domain, records=2, alike=alike).algorithm(users, 1.0)
        assert way == learner.algorithm_.name
        assert reason == learner.algorithm_.reason + "."

    def test_users_who_come_and_go_are_served_by_their_records(self):
        known = {"relation": Relation.ADD_REMOVE}
        assert ThresholdTask(records=3, **known).algorithm(10**6, 1.0)[0] == "two_stages"
        known["alike"] = True
        assert ThresholdTask(records=3, **known).algorithm(10**6, 1.0)[0] == "own_best"
        assert ThresholdTask(records=20, **known).algorithm(10**6, 1.0)[0] == "median"


def test_the_domain_enters_by_its_logarithm():
    needed = [
        plan("threshold", epsilon=1.0, error=0.05, records=32, domain=2**bits, alike=True).users
        for bits in (16, 32, 48)
    ]
    first, second = needed[1] - needed[0], needed[2] - needed[1]
    assert first > 0
    assert 0.5 < first / second < 2.0


def test_records_of_users_who_are_alike_divide_the_error_once_the_crowd_is_visible():
    few, many = (ThresholdTask(records=m, alike=True).error(1000, 1.0) for m in (8, 32))
    assert few / many == pytest.approx(4.0, rel=0.01)


@pytest.mark.parametrize("size", [1000, DOMAIN])
@pytest.mark.parametrize("alike", [False, True])
def test_more_users_never_plan_a_larger_error(size, alike):
    task = ThresholdTask(records=8, domain=size, alike=alike)
    errors = [task.error(n, 1.0) for n in range(20, 700, 20)]
    assert errors == sorted(errors, reverse=True)


def test_a_small_domain_is_decided_by_duels():
    small = ThresholdTask(domain=1000, records=8)
    assert small.algorithm(100, 1.0)[0] == "duels"
    assert small.error(400, 1.0) < small.error(60, 1.0)


def test_people_who_differ_are_promised_less_and_the_plan_says_what_it_takes_for_granted():
    known = {"epsilon": 1.0, "users": 2000, "records": 5}
    alike, half, apart = (
        plan("threshold", **known, **said) for said in ({"alike": True}, {}, {"between": 0.9})
    )
    assert alike.error < half.error < apart.error
    assert any("between" in line for line in half.advice)
    assert not any("between" in line for line in (*alike.advice, *apart.advice))


@pytest.mark.parametrize("records", [1, 3, 40])
def test_forecasts_fall_across_all_ways(records):
    task = ThresholdTask(records=records)
    errors = [task.error(n, 1.0) for n in (30, 60, 150, 199, 200, 900, 1990, 2010, 10**4, 10**6)]
    assert errors == sorted(errors, reverse=True)
    assert errors[-1] < errors[4] / 50


@pytest.mark.parametrize("wrong", [{"domain": 0}, {"error_level": 0.5}, {"error_level": -0.1}])
def test_numbers_outside_their_range_are_refused(wrong):
    with pytest.raises(ParameterError, match="Expected"):
        ThresholdTask(**wrong)
