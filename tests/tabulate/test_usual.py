"""Rough medians over people: found where they are affordable, given up where they are not."""

import numpy as np
import pytest

from quorate.accounting.account import Account
from quorate.guarantees import Relation
from quorate.noise import SeededNoise
from quorate.tabulate.gathering.cells import ValueColumn
from quorate.tabulate.usual import rough_median, usual_units, usual_values, value_ladder
from quorate.users import UserData

COLUMN = ValueColumn(1, 0.0, 1e6)


def cells(n):
    """Return people whose values are near 50, in a range up to a million."""
    rng = np.random.default_rng(0)
    values = rng.gamma(25.0, 2.0, n)
    steps = np.rint((values - COLUMN.middle) / COLUMN.step)
    return UserData(np.column_stack([np.zeros(n), np.ones(n), steps]), offsets=range(n + 1))


def account(delta, relation=Relation.REPLACE):
    return Account.open(epsilon=1.0, delta=delta, relation=relation, noise=SeededNoise(0))


@pytest.mark.parametrize("delta", [0.0, 1e-6])
@pytest.mark.parametrize("relation", Relation)
def test_a_range_that_is_far_too_wide_costs_little(delta, relation):
    purse = account(delta, relation)
    (value,) = usual_values(cells(20_000), (COLUMN,), account=purse, n_users=2e4)
    assert 35 < value < 70
    (unit,) = usual_units(
        cells(20_000),
        (COLUMN,),
        (value,),
        weights=np.ones(1),
        counted=True,
        norm=2,
        account=purse,
        n_users=2e4,
    )
    assert 5 < unit < 200


@pytest.mark.parametrize("delta", [0.0, 1e-6])
def test_what_hardly_anybody_holds_is_counted_in_half_widths(delta):
    rows = np.tile([0.0, 1.0, 0.0], (20_000, 1))
    rows[:5, 2] = 9.0 / COLUMN.step
    (unit,) = usual_units(
        UserData(rows, offsets=range(20_001)),
        (COLUMN,),
        (COLUMN.middle,),
        weights=np.ones(1),
        counted=True,
        norm=2,
        account=account(delta),
        n_users=2e4,
    )
    assert unit == COLUMN.half_width


@pytest.mark.parametrize("delta", [0.0, 1e-6])
def test_with_few_people_nothing_is_spent(delta):
    purse = account(delta)
    assert usual_values(cells(30), (COLUMN,), account=purse, n_users=30.0) == (COLUMN.middle,)
    assert purse.left == purse.epsilon
    assert purse.square_left == purse.square


@pytest.mark.parametrize("delta", [0.0, 1e-6])
def test_people_without_a_number_do_not_count(delta):
    rows = np.concatenate([np.full(2000, 5.0), np.full(9000, np.nan)])
    crowd = UserData(np.zeros((11_000, 1)), offsets=range(11_001))
    found = rough_median(
        crowd,
        lambda part: rows[: part.n_users],
        np.arange(10.0),
        account=account(delta),
        n_users=2000.0 if delta else 11_000.0,
    )
    assert found == 5.0


def test_ladders_stay_in_their_range():
    for lower, upper in ((-3.0, 9.0), (100.0, 101.0), (-7.0, -2.0)):
        ladder = value_ladder(lower, upper)
        assert ladder[0] == lower
        assert ladder[-1] == upper
