"""A table filled in one pass holds what a dictionary would hold; else it is given up."""

import sys

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from quorate.data.by_group import background
from quorate.data.by_group import filling as module
from quorate.data.by_group.filling import add_into, fill
from quorate.data.by_group.person_cells import STEPS, ValueColumn

PRICE = ValueColumn(column=0, lower=-2.0, upper=6.0)
AGE = ValueColumn(column=1, lower=0.0, upper=90.0)


def found(owners, groups, values, *, seats, size, sums):
    """Return the cells of records that lie in arrays, or None."""
    return fill(
        lambda rows: owners[rows],
        lambda rows: (groups[rows], [column[rows] for column in values]),
        rows=len(owners),
        seats=seats,
        groups=size,
        sums=sums,
    )


def expected(owners, groups, values, *, seats, size, sums):
    held, taken = {}, set()
    for place, (owner, group) in enumerate(zip(owners.tolist(), groups.tolist(), strict=True)):
        if owner < seats:
            taken.add(owner)
        if owner < seats and group < size:
            held.setdefault((owner, group), []).append(place)
    number = {owner: place for place, owner in enumerate(sorted(taken))}
    steps = [column.steps(values[column.column]) for column in sums]
    cells = {
        (number[owner], group): (len(rows), *(int(each[rows].sum()) for each in steps))
        for (owner, group), rows in held.items()
    }
    return sorted(taken), cells


@pytest.mark.parametrize("many", [1, 10**9])
@pytest.mark.parametrize("sums", [(), (PRICE,), (AGE, PRICE)])
def test_it_holds_what_a_dictionary_would_hold(monkeypatch, many, sums):
    monkeypatch.setattr(background, "_MANY_ROWS", many)
    monkeypatch.setattr(module, "_BLOCK", 64)
    rng = np.random.default_rng(0)
    owners, groups = rng.integers(0, 31, 900), rng.integers(0, 6, 900)
    owners[owners == 7] = 8  # a seat that nobody takes
    groups[owners == 9] = 5  # somebody without a record of any use
    values = [rng.normal(2.0, 3.0, 900), rng.uniform(-9, 99, 900)]
    values[0][::9], values[1][::7] = np.nan, 1e308
    asked = {"seats": 30, "size": 5, "sums": sums}
    made = found(owners, groups, values, **asked)
    taken, cells = expected(owners, groups, values, **asked)
    assert np.flatnonzero(made.taken).tolist() == taken
    assert 7 not in taken
    numbers = zip(made.counts.tolist(), *(each.tolist() for each in made.sums), strict=True)
    places = zip(made.owners.tolist(), made.groups.tolist(), strict=True)
    assert dict(zip(places, numbers, strict=True)) == cells
    assert list(zip(made.owners, made.groups, strict=True)) == sorted(cells)
    for person in range(len(taken)):
        own = slice(made.starts[person], made.starts[person + 1])
        assert np.all(made.owners[own] == person)
    assert made.starts[-1] == len(cells)


@given(
    st.lists(
        st.tuples(
            st.integers(0, 3),
            st.integers(0, 2),
            st.one_of(st.floats(), st.sampled_from([-2.0, 6.0, 2.0, 1e308, -1e308])),
        ),
        min_size=1,
        max_size=60,
    )
)
def test_values_of_any_size_are_added_up_as_they_should_be(records):
    owners, groups, values = (np.array(each) for each in zip(*records, strict=True))
    values = values.astype(np.float64)
    asked = {"seats": 3, "size": 2, "sums": (PRICE,)}
    made = found(owners, groups, [values], **asked)
    _, cells = expected(owners, groups, [values], **asked)
    numbers = zip(made.counts.tolist(), made.sums[0].tolist(), strict=True)
    places = zip(made.owners.tolist(), made.groups.tolist(), strict=True)
    assert dict(zip(places, numbers, strict=True)) == cells


@pytest.mark.parametrize("value", [-1e308, 2.0, 1e308])
def test_a_cell_that_holds_too_much_is_seen(value):
    """The last number of records that fits does not depend on values by more than it should."""
    for rows, fits in [(2**13 - 1, True), (2**14, False), (2**14 + 1, False), (2**15, False)]:
        zeros = np.zeros(rows, dtype=np.int64)
        values = [np.full(rows, value)]
        made = found(zeros, zeros, values, seats=1, size=1, sums=(PRICE,))
        if made is not None:
            assert made.counts.tolist() == [rows]
            assert made.sums[0].tolist() == [int(PRICE.steps(values[0]).sum())]
        assert (made is not None) or not fits
        assert (made is None) or rows < 2**14


def test_cells_that_err_in_both_directions_are_seen():
    """One count would be read off as too small, others as too large: not by as much."""
    owners = np.concatenate([np.zeros(2**14, int), np.repeat(np.arange(1, 40), 2**13)])
    values = [np.where(owners == 0, -1e308, 1e308)]
    assert found(owners, 0 * owners, values, seats=40, size=1, sums=(PRICE,)) is None


def test_too_many_records_are_not_tried():
    def read(rows):
        raise AssertionError("nobody should read")

    assert fill(read, read, rows=2**27, seats=1, groups=1, sums=()) is None


def test_values_are_added_without_scipys_way_too(monkeypatch):
    rng = np.random.default_rng(1)
    rows, columns, values = rng.integers(0, 4, 50), rng.integers(0, 3, 50), rng.integers(-9, 9, 50)
    quick, slow = np.zeros((4, 3), np.int64), np.zeros((4, 3), np.int64)
    add_into(quick, rows, columns, values)
    monkeypatch.setitem(sys.modules, "scipy.sparse._sparsetools", None)
    add_into(slow, rows, columns, values)
    assert np.array_equal(quick, slow)
    assert slow.sum() == values.sum()


@given(st.lists(st.floats(), min_size=1, max_size=30))
def test_whole_steps_are_the_steps(values):
    values = np.array(values)
    for column in (PRICE, AGE, ValueColumn(0, 0.0, 1e-300), ValueColumn(0, -1e300, 1e300)):
        whole = column.whole_steps(values)
        assert whole.dtype == np.int64
        assert whole.tolist() == column.steps(values).astype(np.int64).tolist()
        assert np.all(np.abs(whole) <= int(STEPS))


def test_halves_of_a_step_go_to_the_even_one_either_way():
    column = ValueColumn(0, -STEPS, STEPS)
    values = np.array([0.5, 1.5, 2.5, -0.5, -1.5, STEPS - 0.5])
    assert column.whole_steps(values).tolist() == [0, 2, 2, 0, -2, int(STEPS)]
    assert column.steps(values).tolist() == column.whole_steps(values).tolist()
