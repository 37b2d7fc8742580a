"""Parts of a cell: what people hold of them, how long it is, and what a cap cuts."""

import numpy as np
import pytest

from quorate.grid import Box, Grid
from quorate.mechanisms.choices.private_cap import PrivateCap
from quorate.tabulate.gathering.cells import ValueColumn, cells_of
from quorate.tabulate.parts import (
    Boxed,
    Cut,
    Excess,
    Holders,
    Part,
    Totals,
    ladder,
    record_ladder,
    value_ladder,
)
from quorate.users import UserData

COLUMN = ValueColumn(1, 0.0, 8.0)
# Ann has 3 and 1 records, of sums 4 and 6; Bob nothing; Cid 10 of sum 50.
CELLS = UserData(
    np.array(
        [
            [0.0, 3.0, (4.0 - 12.0) / COLUMN.step],
            [1.0, 1.0, (6.0 - 4.0) / COLUMN.step],
            [1.0, 10.0, (50.0 - 40.0) / COLUMN.step],
        ]
    ),
    offsets=[0, 2, 2, 3],
)


def test_values_are_what_people_hold():
    cells = cells_of(CELLS)
    assert Part("rows").values(cells).tolist() == [3.0, 1.0, 10.0]
    assert Part("people").values(cells).tolist() == [1.0, 1.0, 1.0]
    np.testing.assert_allclose(Part("sums", COLUMN).values(cells), [4.0, 6.0, 50.0])
    np.testing.assert_allclose(Part("sums", COLUMN, 0, 5.0).values(cells), [-11.0, 1.0, 0.0])
    assert not Part("sums", COLUMN).signed
    assert Part("sums", COLUMN, 0, 5.0).signed


@pytest.mark.parametrize("norm", [1, 2])
def test_a_cap_pulls_a_person_in_across_groups(norm):
    bound = Part("rows").bound(2.0, 2, norm)
    found = Totals(Part("rows"), bound, 2.0**-20)(CELLS) * 2.0**-20
    length = 4.0 if norm == 1 else np.sqrt(10.0)
    np.testing.assert_allclose(found, [3 * 2 / length, 1 * 2 / length + 2.0], atol=1e-4)


def test_one_group_is_a_box():
    whole = UserData(np.array([[0.0, 4.0, 0.0], [0.0, 9.0, 0.0]]), offsets=[0, 1, 1, 2])
    grid = Grid(Box([0.0, 0.0], [1.0, 1.0], centre=[0.0, 0.0]), step=2.0**-10)
    work = Boxed((Part("rows"), Part("people")), (8.0, 1.0), grid)
    assert (work(whole) / 2**10).tolist() == [1.5, 2.0]


def test_what_is_cut_is_measured_person_by_person():
    grid = Grid(Box(np.zeros(2), np.ones(2), centre=np.zeros(2)), step=2.0**-20)
    # Caps of 3: Ann loses 1 of 4, a third of a cap; Cid 7, more than two caps.
    found = Cut((Part("rows"),), (3.0,), (3.0,), 1, grid)(CELLS) / 2**20
    np.testing.assert_allclose(found, [1 / 3 + 1, (7 / 3 - 1) / 2], atol=1e-5)
    nobody = UserData(np.empty((0, 2)), offsets=[0])
    assert Cut((Part("rows"),), (3.0,), (3.0,), 1, grid)(nobody).tolist() == [0, 0]


def test_who_holds_nothing_does_not_count():
    assert Holders(Part("rows"))(CELLS).tolist() == [2]
    assert Holders(Part("sums", COLUMN, 0, 5.0))(CELLS).tolist() == [1]


def test_excess_is_that_of_lengths():
    look = PrivateCap(caps=(2.0, 8.0), aim=1.0, epsilon=1.0)
    assert (Excess(Part("rows"), 1, look)(CELLS) / 2**20).tolist() == [2.0, 0.25]


def test_ladders_are_round_and_reach_their_ends():
    assert {20.0, 30.0, 100.0, 1e6} <= set(record_ladder())
    assert record_ladder(1.0) == (1.0,)
    assert record_ladder(3.0) == (1.0, 2.0, 3.0)
    assert record_ladder(132.0)[-1] == 132.0
    for steps in (record_ladder(), record_ladder(77.0), ladder(1e-4, 1.0)):
        assert np.all(np.diff(steps) > 0)
        assert np.max(np.array(steps)[11:] / np.array(steps)[10:-1], initial=1) < 1.34
    points = value_ladder(-3.0, 5.0)
    assert points[0] == -3.0
    assert points[-1] == 5.0
    assert 0.0 in points


def test_caps_of_sums_follow_the_cap_of_records():
    caps = Part("sums", COLUMN, 0, 2.0).caps(10.0)
    assert caps[-1] == 6.0 * 10.0
    assert Part("sums", COLUMN, 0, 2.0).usual(caps) == 60.0
    alone = Part("sums", COLUMN).caps(None)
    assert alone[-1] == 8.0 * 1e6
    assert Part("sums", COLUMN).usual(alone) == 8.0
    assert Part("rows").usual(record_ladder()) == 1.0
