"""What every task shares: checks, a description, and the baselines."""

import math

import pytest

from quorate.core.guarantees import Relation
from quorate.exceptions import ParameterError
from quorate.papers.conversion.translation import utility_budget
from quorate.planning.limits import group_privacy
from quorate.planning.tasks.mean import MeanTask
from quorate.planning.tasks.median import MedianTask


def test_a_task_describes_itself_without_what_all_tasks_share():
    task = MeanTask(dimension=3, records=5, between=0.2)
    assert dict(task.description) == {
        "dimension": 3,
        "bounds": 100.0,
        "scale": 1.0,
        "between": 0.2,
    }


def test_one_record_has_no_baseline_of_records():
    assert "group privacy" not in MedianTask().baselines()
    assert set(MedianTask(records=2).baselines()) == {"group privacy", "one record per user"}


def test_group_privacy_is_the_same_task_with_single_records():
    task = MeanTask(dimension=4, records=10, delta=1e-6, between=0.0)
    each, delta = group_privacy(epsilon=1.0, delta=1e-6, size=10)
    single = MeanTask(dimension=4, records=1, delta=delta, between=0.0)
    assert task.group_error(500, 1.0) == single.error(5000, each)
    one = MeanTask(dimension=4, delta=1e-6, between=0.0)
    assert task.one_record_error(500, 1.0) == one.error(500, 1.0)


def test_the_conversion_is_the_same_task_on_the_users_who_are_left():
    task = MeanTask(dimension=4, records=10_000, delta=1e-6, between=0.0)
    each, delta = utility_budget(epsilon=1.0, delta=1e-6, users=1000, records=10_000)
    single = MeanTask(dimension=4, records=1, delta=delta, between=0.0)
    assert task.item_to_user_error(1000, 1.0) == single.error((1000 - 192) * 10_000, each)
    assert task.item_to_user_error(192, 1.0) == task.largest_error
    assert "item to user (constants 1)" in task.baselines()
    assert "item to user (constants 1)" not in MeanTask(records=100).baselines()


def test_the_conversion_passes_group_privacy_for_very_many_records():
    few, many = (MeanTask(records=m, delta=1e-6) for m in (100, 10**7))
    assert few.item_to_user_error(1000, 1.0) > few.group_error(1000, 1.0)
    assert many.item_to_user_error(1000, 1.0) < many.group_error(1000, 1.0)


def test_a_delta_too_small_to_write_down_leaves_a_guess():
    task = MeanTask(records=10, delta=1e-6)
    assert task.group_error(10**6, 1000.0) == task.largest_error


def test_other_records_leave_the_rest_as_it_is():
    task = MeanTask(dimension=4, records=10, heterogeneity=0.5)
    assert task.with_records(20) == MeanTask(dimension=4, records=20, heterogeneity=0.5)


def test_failure_is_what_confidence_leaves():
    assert MedianTask(confidence=0.8).beta == pytest.approx(0.2)


@pytest.mark.parametrize(
    "wrong",
    [
        {"records": 0},
        {"records": 1.5},
        {"delta": -0.1},
        {"confidence": 0.0},
        {"confidence": math.nan},
        {"relation": Relation.REPLACE.value},
    ],
)
def test_shared_numbers_are_checked(wrong):
    with pytest.raises(ParameterError, match="Expected"):
        MedianTask(**wrong)


def test_group_privacy_is_tried_with_the_best_number_of_records():
    task = MedianTask(records=50)
    best = task.baselines()["group privacy"](5000, 1.0)
    tried = [task.with_records(cap).group_error(5000, 1.0) for cap in (1, 2, 4, 8, 16, 32, 50)]
    assert best == min(tried)
    assert best <= task.baselines()["one record per user"](5000, 1.0)
    assert best <= task.group_error(5000, 1.0)
