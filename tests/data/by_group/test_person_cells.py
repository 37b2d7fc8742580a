"""Cells are exact sums of a person's own records, in any order and company."""

import threading

import numpy as np
import pytest

from quorate.core.users import UserData
from quorate.core.users.data import numbered_records
from quorate.data.by_group import background
from quorate.data.by_group import person_cells as cells_module
from quorate.data.by_group import person_cells as module
from quorate.data.by_group.person_cells import GroupColumn, ToCells, ValueColumn, cells_of

VALUE = ValueColumn(column=1, lower=-2.0, upper=6.0)


def people(n=400, users=23, groups=5, seed=0):
    rng = np.random.default_rng(seed)
    rows = np.column_stack([rng.integers(-1, groups + 1, n), rng.normal(2.0, 3.0, n)])
    return rows, rng.integers(0, users, n)


def expected(rows, ids, groups):
    """Return what a dictionary would hold."""
    held = {}
    for (group, value), owner in zip(rows, ids, strict=True):
        if 0 <= group < groups:
            held.setdefault((owner, int(group)), []).append(np.clip(value, -2.0, 6.0))
    return {key: (len(v), sum(v), float(np.median(v))) for key, v in held.items()}


@pytest.mark.parametrize("dense", [0, 4])
def test_cells_are_what_a_dictionary_would_hold(monkeypatch, dense):
    monkeypatch.setattr(module, "_DENSE", dense)
    rows, ids = people()
    cells = ToCells(GroupColumn(5), 5, sums=(VALUE,), medians=(VALUE,))(
        UserData.from_arrays(rows, users=ids)
    )
    held = cells_of(cells)
    owners, groups, X = held.owners, held.groups, held.X
    names = np.unique(ids)
    found = {
        (names[o], g): (x[1], x[2] * VALUE.step + x[1] * VALUE.middle, x[3])
        for o, g, x in zip(owners.tolist(), groups.tolist(), X.tolist(), strict=True)
    }
    wanted = expected(rows, ids, 5)
    assert found.keys() == wanted.keys()
    for key, numbers in wanted.items():
        assert found[key] == pytest.approx(numbers, abs=1e-8)


def test_the_order_of_records_changes_no_bit():
    rows, ids = people()
    order = np.random.default_rng(1).permutation(len(rows))
    change = ToCells(GroupColumn(5), 5, sums=(VALUE,))
    one = change(UserData.from_arrays(rows, users=ids))
    other = change(UserData.from_arrays(rows[order], users=ids[order]))
    assert np.array_equal(one.X, other.take(np.argsort(np.argsort(one.keys()))).X) or {
        tuple(x) for x in one.X.tolist()
    } == {tuple(x) for x in other.X.tolist()}


def test_both_ways_of_adding_up_are_exact(monkeypatch):
    rows, ids = people()
    change = ToCells(GroupColumn(5), 5, sums=(VALUE,))
    quick = change(UserData.from_arrays(rows, users=ids)).X
    monkeypatch.setattr(module, "_EXACT", 0.0)
    assert np.array_equal(change(UserData.from_arrays(rows, users=ids)).X, quick)


def test_somebody_elses_records_change_no_cell_of_mine():
    rows, ids = people()
    change = ToCells(GroupColumn(5), 5, sums=(VALUE,), medians=(VALUE,))
    mine = change(UserData.from_arrays(rows[ids != 0], users=ids[ids != 0])).X
    huge = np.column_stack([np.zeros(900), np.full(900, 1e308)])
    more = np.concatenate([rows[ids != 0], huge])
    owners = np.concatenate([ids[ids != 0], np.zeros(900, ids.dtype)])
    crowd = UserData.from_arrays(more, users=owners)
    both = change(crowd)
    others = both.take(np.flatnonzero(crowd.record_counts() != 900))
    assert {tuple(x) for x in others.X.tolist()} == {tuple(x) for x in mine.tolist()}


def test_everybody_keeps_a_place():
    data = UserData.from_arrays([[9.0, 1.0], [0.0, 1.0]], users=[1, 2])
    cells = ToCells(GroupColumn(2), 2, sums=(VALUE,))(data)
    assert cells.n_users == 2
    assert cells.record_counts().sum() == 1


def test_values_beyond_the_range_count_as_its_ends():
    steps = VALUE.steps(np.array([1e308, -1e308, 2.0])) * VALUE.step
    assert steps.tolist() == [4.0, -4.0, 0.0]


def test_nan_in_a_crowd_counts_as_the_middle():
    crowd = UserData([[0.0, np.nan], [0.0, np.inf]], offsets=[0, 1, 2])
    cells = ToCells(GroupColumn(1), 1, sums=(VALUE,), medians=(VALUE,))(crowd)
    assert (cells.X[:, 2] * VALUE.step).tolist() == [0.0, 4.0]
    assert cells.X[:, 3].tolist() == [2.0, 6.0]


def test_two_threads_count_as_one_does(monkeypatch):
    rng = np.random.default_rng(3)
    rows = np.column_stack([rng.integers(-1, 5, 900), rng.normal(size=900)]).astype(float)
    people = UserData.from_arrays(rows, users=rng.integers(0, 40, 900))
    change = ToCells(GroupColumn(5), 5, sums=(VALUE,), medians=(VALUE,))
    alone = change(people)
    monkeypatch.setattr(background, "_MANY_ROWS", 1)
    assert np.array_equal(change(people).X, alone.X)


def test_counts_are_there_before_the_sums_and_stay_what_they_are(monkeypatch):
    """Sums come later, beside whoever looks at the counts, and are then all there."""
    monkeypatch.setattr(background, "_MANY_ROWS", 1)
    rows, ids = people()
    crowd = UserData.from_arrays(rows, users=ids)
    change = ToCells(GroupColumn(5), 5, sums=(VALUE,), medians=(VALUE,))
    numbered, users = numbered_records(crowd)
    columns, groups = [numbered[:, 0], numbered[:, 1]], GroupColumn(5)(numbered)
    places = np.where(groups < 0, -1, 5 * users.astype(np.int64) + groups)
    may_add = threading.Event()
    steps = ValueColumn.steps

    def waiting(self, values):
        assert may_add.wait(60)
        return steps(self, values)

    monkeypatch.setattr(ValueColumn, "steps", waiting)
    counts, whole = change.in_turn(crowd, places, columns)
    seen = counts.X.copy()
    assert counts.X.shape[1] == 2
    may_add.set()
    found = whole()
    assert np.array_equal(found.X[:, :2], seen)
    assert np.array_equal(found.X, change(crowd).X)


def test_a_cell_of_very_many_records_is_added_up_exactly():
    """The control of the quick way: floats lose the last steps of so many records."""
    values = np.tile([VALUE.upper, VALUE.middle + VALUE.step], 150_000)
    rows = np.column_stack([np.zeros(len(values)), values])
    people = UserData.from_arrays(rows, users=np.zeros(len(values), dtype=int))
    steps = VALUE.steps(values)
    exact = sum(map(int, steps.tolist()))
    quick = cells_module._Sums.of(np.zeros(len(values), np.int64), 1, steps)
    assert quick.exact(np.zeros(len(values), np.int64), len(values)).tolist() == [exact]
    assert ToCells(GroupColumn(1), 1, sums=(VALUE,))(people).X[0, 2] == float(exact)
    assert int(quick.totals[0]) != exact


def test_people_are_weighed_each_by_themselves():
    rows, ids = people()
    crowd = ToCells(GroupColumn(5), 5, sums=(VALUE,))(UserData.from_arrays(rows, users=ids))
    cells, weights = cells_of(crowd), np.array([1.0, 0.1, 3.0, 7.0, 0.3])
    found = cells.weighed(cells.X[:, 2], weights)
    for person in range(crowd.n_users):
        own = cells.owners == person
        total = 0.0
        for value, group in zip(cells.X[own, 2], cells.groups[own], strict=True):
            total += value * weights[group]
        assert found[person] == total
