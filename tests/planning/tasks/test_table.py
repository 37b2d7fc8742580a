"""Plans for tables: what a fit takes, and how far its cells are off."""

import math

import numpy as np
import pyarrow as pa
import pytest

from quorate import UserTable
from quorate.core.guarantees import Relation
from quorate.core.noise import SeededNoise, use_noise
from quorate.exceptions import ParameterError
from quorate.planning import plan
from quorate.planning.tasks.table import TableTask

GROUPS, USERS, RECORDS = 8, 2000, 10


def people(activity, taste, seed):
    """Return records of people whose numbers are log-normal, each with groups they like."""
    rng = np.random.default_rng(seed)
    busy = rng.lognormal(0.0, activity, USERS)
    who = rng.choice(USERS, size=USERS * RECORDS, p=busy / busy.sum())
    likes = np.cumsum(rng.dirichlet([taste / GROUPS] * GROUPS, USERS), axis=1)
    group = (likes[who] < rng.random((len(who), 1))).sum(axis=1).clip(0, GROUPS - 1)
    return pa.table({"who": who, "group": group, "x": rng.normal(3.0, 1.0, len(who))})


@pytest.mark.parametrize(("activity", "taste"), [(1.0, 5.0), (0.5, 5.0), (0.5, 50.0)])
def test_cells_keep_the_error_about_as_often_as_planned(activity, taste):
    """Seeded: 24 tables of 8 groups; planned for nine of ten cells."""
    task = TableTask(
        size=GROUPS,
        records=RECORDS,
        delta=1e-6,
        scale=math.exp(2.326 * activity - activity**2 / 2),
        between=1.0 / (1.0 + taste),
        relation=Relation.ADD_REMOVE,
    )
    planned, average = task.error(USERS, 1.0), USERS * RECORDS / GROUPS
    counts, means = [], []
    for seed in range(24):
        records = people(activity, taste, seed)
        table = UserTable(
            1.0,
            delta=1e-6,
            by="group",
            keys=list(range(GROUPS)),
            statistics={"n": "count", "x": "mean"},
            bounds={"x": (-20.0, 20.0)},
            relation=Relation.ADD_REMOVE,
        )
        with use_noise(SeededNoise(seed)):
            found = table.fit(records, users="who").table_
        group, x = records["group"].to_numpy(), records["x"].to_numpy()
        exact = np.bincount(group, minlength=GROUPS)
        counts.append((found["n"].to_numpy() - exact) / average)
        means.append(found["x"].to_numpy() - np.bincount(group, x, GROUPS) / exact)
    assert 0.8 <= np.mean(np.abs(counts) <= planned) < 1.0
    assert np.mean(np.abs(means) <= planned) >= 0.8
    # The control: a plan for half of the error is not kept.
    assert np.mean(np.abs(counts) <= planned / 2) < 0.8


def test_all_hold_the_same_means_that_nothing_is_lost():
    task = TableTask(scale=1.0, records=30, size=4)
    assert task._lost(0.3) == 0.0
    assert TableTask(scale=6.0, records=30)._lost(0.3) > 0.1
    assert task.error(10**9, 1.0) < 1e-4


def test_lengths_lie_between_those_of_one_group_and_of_all():
    ends = [TableTask(size=50, between=b)._length(100.0, 2) for b in (0.0, 1.0)]
    assert ends[0] == pytest.approx(math.sqrt(100 + 9900 / 50))
    assert ends[1] == pytest.approx(100.0)
    assert TableTask(between=0.0)._length(100.0, 1) == 100.0
    assert TableTask(between=0.0)._length(0.5, 2) == 0.5


def test_more_groups_and_more_columns_cost_more():
    errors = [plan("table", users=9000, epsilon=1.0, size=g).error for g in (2, 20, 200)]
    assert errors == sorted(errors)
    errors = [plan("table", users=9000, epsilon=1.0, dimension=d).error for d in (0, 1, 5)]
    assert errors == sorted(errors)


def test_busy_people_cost_more_than_group_privacy_says():
    found = plan("table", users=20_000, epsilon=1.0, delta=1e-6, records=50, size=50, between=0.1)
    assert found.error < min(baseline.error for baseline in found.baselines)
    assert plan("table", users=200, epsilon=1.0).baselines == ()


@pytest.mark.parametrize(
    "numbers", [{"scale": 0.5}, {"scale": 99.0}, {"size": 0}, {"dimension": -1}]
)
def test_what_nobody_can_hold_is_refused(numbers):
    with pytest.raises(ParameterError):
        plan("table", users=9, epsilon=1.0, **numbers)


def test_anything_at_all_is_half_of_a_group():
    assert TableTask().lower(epsilon=1.0, error=0.6).users == 1.0
    assert TableTask().lower(epsilon=0.1, error=0.1).users > 10
