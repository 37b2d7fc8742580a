"""Parts of a cell: what people hold of them, how long it is, and in which unit it is added up."""

import numpy as np
import pytest

from quorate.core.guarantees import Relation
from quorate.core.users import UserData
from quorate.data.by_group.person_cells import ValueColumn, cells_of
from quorate.tabulate.parts import Held, HeldOften, LengthLabels, OwnMeans, Part, value_ladder

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
@pytest.mark.parametrize("relation", Relation)
@pytest.mark.parametrize("groups", [1, 3])
@pytest.mark.parametrize("part", [Part("rows"), Part("people"), Part("sums", COLUMN, 0, 5.0)])
def test_one_person_moves_every_part_by_one_unit(part, groups, relation, norm):
    for cap in (0.3, 2.0):
        bound, unit = part.bound(cap, groups, norm, relation)
        assert bound.change(relation)[norm - 1] == pytest.approx(1.0)
        assert bound.radius * unit == pytest.approx(cap)
        assert bound.signed == part.signed


def test_presence_in_all_groups_costs_a_person_no_more_than_all_of_them():
    _, unit = Part("people").bound(5.0, 5, 1, Relation.REPLACE)
    assert unit == 5.0


def test_cells_hold_parts_in_their_units():
    owners, groups, values = Held((Part("rows"), Part("people")), (2.0, 4.0))(CELLS)
    assert owners.tolist() == [0, 0, 2]
    assert groups.tolist() == [0, 1, 1]
    assert [each.tolist() for each in values] == [[1.5, 0.5, 5.0], [0.25, 0.25, 0.25]]


@pytest.mark.parametrize(("norm", "ann"), [(1, 2), (2, 2)])
def test_labels_are_of_lengths_over_all_groups(norm, ann):
    edges = (1.0, 2.0, 4.0, 8.0)
    assert LengthLabels(Part("rows"), norm, edges)(CELLS).tolist() == [ann, -1, 3]
    # Ann's sums about 6 are -14 and 0; Cid's is -10. Nothing has no label.
    even = UserData(np.array([[0.0, 2.0, 0.0]]), offsets=[0, 1])
    assert LengthLabels(Part("sums", COLUMN, 0, 4.0), norm, edges)(even).tolist() == [-1]


def test_a_root_of_a_whole_number_stays_at_its_edge():
    cells = UserData(np.array([[g, 1.0] for g in range(49)]), offsets=[0, 49])
    assert LengthLabels(Part("people"), 2, (7.0, 14.0))(cells).tolist() == [0]


def test_own_means_and_presence_are_a_persons_own():
    points = tuple(value_ladder(0.0, 8.0).tolist())
    found = OwnMeans(Part("sums", COLUMN), points)(CELLS)
    assert np.isnan(found[1])
    assert points[int(found[0])] == pytest.approx(2.5, abs=0.1)
    assert points[int(found[2])] == 5.0
    assert HeldOften()(CELLS).tolist() == [0, -1, 0]
    ladder = value_ladder(-3.0, 5.0)
    assert ladder[0] == -3.0
    assert ladder[-1] == 5.0
    assert 0.0 in ladder
