"""Plans for a choice among candidates."""

import math

import numpy as np
import pytest

from quorate.core.guarantees import Relation
from quorate.core.noise import SeededNoise, use_noise
from quorate.core.users import UserData
from quorate.exceptions import ParameterError
from quorate.learners import LossSelector
from quorate.planning import plan
from quorate.planning.tasks.select import SelectTask


@pytest.mark.parametrize("records", [4, 16, 100])
@pytest.mark.parametrize("users", [30, 249, 250])
@pytest.mark.parametrize("alike", [False, True])
def test_the_way_is_what_the_selector_does(records, users, alike):
    losses = np.random.default_rng(0).random((users, 5))
    with use_noise(SeededNoise(0)):
        selector = LossSelector(1.0, records=records, alike=alike)
        selector.fit(UserData(losses, offsets=range(users + 1)))
    task = SelectTask(size=5, records=records, alike=alike)
    assert task.algorithm(users, 1.0)[0] == selector.algorithm_.name


@pytest.mark.parametrize("size", [2, 40, 5000])
@pytest.mark.parametrize("alike", [False, True])
def test_more_users_never_plan_a_larger_error(size, alike):
    task = SelectTask(size=size, records=64, between=0.0, alike=alike)
    errors = [task.error(n, 1.0) for n in (20, 100, 240, 249, 250, 300, 340, 341, 400, 2000, 10**6)]
    assert errors == sorted(errors, reverse=True)


def test_very_many_candidates_are_compared_with_a_reference():
    assert SelectTask(size=10_000, records=64).algorithm(100, 1.0)[0] == "reference"


def kept(n, records, error, repetitions=60):
    hits = 0
    for repetition in range(repetitions):
        rng = np.random.default_rng([n, repetition])
        mean = rng.uniform(0.3, 0.7, 40)
        held = rng.binomial(records, mean, (n, 40)) / records
        with use_noise(SeededNoise([n, repetition])):
            selector = LossSelector(1.0, records=records, alike=True)
            selector.fit(UserData(held, offsets=range(n + 1)))
        hits += mean[selector.index_] - mean.min() <= error
    return hits / repetitions


@pytest.mark.parametrize(("records", "error"), [(32, 0.03), (4, 0.06)])
def test_the_planned_users_keep_the_error_and_a_tenth_of_them_does_not(records, error):
    # The true chance is about 0.98; below 0.75 in 60 runs happens less than once in 10^8 times.
    known = {"size": 40, "records": records, "scale": 0.7, "alike": True}
    users = plan("select", epsilon=1.0, error=error, **known).users
    assert kept(users, records, error) >= 0.75
    assert kept(users // 10, records, error) < 0.75


def test_losses_in_other_units_change_nothing_but_the_units():
    cents = SelectTask(size=20, records=64, bounds=(0.0, 100.0))
    assert cents.error(300, 1.0) == pytest.approx(
        100 * SelectTask(size=20, records=64).error(300, 1)
    )
    few = SelectTask(size=20, records=2, bounds=(0.0, 100.0))
    assert few.error(300, 1.0) == pytest.approx(
        100 * SelectTask(size=20, records=2).error(300, 1.0)
    )


def test_no_epsilon_tells_two_candidates_apart_that_look_alike():
    task = SelectTask(size=2, records=64, confidence=0.99)
    assert task.error(100, 1000.0) >= 0.5 * math.sqrt(math.log(25) / (2 * 6400))
    assert SelectTask(confidence=0.999).error(2, 1000.0) == 1.0


def test_one_candidate_needs_no_choice():
    assert SelectTask(size=1).lower(epsilon=1.0, error=0.1).users == 1
    assert SelectTask(size=1).error(1, 1.0) == 0.0
    assert SelectTask(size=1, records=64).sums_error(1, 1.0) == 0.0


def test_clipping_to_the_range_is_a_baseline_where_it_is_not_the_way():
    assert "clip to range" in SelectTask(records=64).baselines()
    assert "clip to range" not in SelectTask(records=4).baselines()


def test_a_difference_as_wide_as_the_range_is_certain():
    bound = SelectTask(bounds=(0.0, 1.0)).lower(epsilon=1.0, error=1.0)
    assert bound.users >= 1


def test_users_who_come_and_go_need_half_the_noise():
    added = SelectTask(records=4, relation=Relation.ADD_REMOVE)
    assert added.error(300, 0.5) == pytest.approx(SelectTask(records=4).error(300, 1.0))


@pytest.mark.parametrize("wrong", [{"size": 0}, {"bounds": 0.0}, {"scale": 0.0}])
def test_numbers_outside_their_range_are_refused(wrong):
    with pytest.raises(ParameterError, match="Expected"):
        SelectTask(**wrong)


def test_people_who_differ_are_worth_less_and_the_plan_says_what_it_assumes():
    alike, unsaid, apart = (
        SelectTask(size=20, records=4, between=between) for between in (0.0, None, 1.0)
    )
    assert alike.error(1000, 1.0) < unsaid.error(1000, 1.0) < apart.error(1000, 1.0)
    assert "between" in unsaid.assumptions[0]
    assert alike.assumptions == apart.assumptions == ()
    # Nobody who holds the same record four times is worth more than a single record.
    assert apart.error(1000, 1.0) == SelectTask(size=20, records=1).error(1000, 1.0)


@pytest.mark.parametrize("baseline", ["group privacy", "item to user (constants 1)"])
def test_people_are_sampled_by_every_way(baseline):
    alike, apart = (
        SelectTask(size=20, records=4, between=between, delta=1e-6) for between in (0.0, 0.9)
    )
    assert alike.baselines()[baseline](10_000, 5.0) < apart.baselines()[baseline](10_000, 5.0)


@pytest.mark.parametrize(("records", "votes"), [(7, False), (8, True), (64, True)])
def test_what_a_majority_costs_is_in_the_plan_of_few_people_and_of_no_others(records, votes):
    # Records are looked at roughly: people who hold 8 may be taken for people who hold 16.
    task, none = (SelectTask(size=20, records=records, between=b) for b in (0.25, 0.0))
    assert (task._majority(200, 1.0) > 0.015) == votes
    assert task._majority(10**4, 1.0) == none._majority(200, 1.0) == 0.0
    assert task.error(10**12, 1.0) < 1e-5
