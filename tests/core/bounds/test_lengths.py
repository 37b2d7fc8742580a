"""One length across all groups: no person exceeds it, in exact integers, whatever they send."""

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from quorate.core.bounds.grid import Ball
from quorate.core.bounds.lengths import capped_steps, lengths_of
from quorate.core.guarantees import Relation
from quorate.exceptions import ParameterError

NUMBERS = st.floats(allow_nan=False, allow_infinity=False) | st.sampled_from([0.1, 1e16, -1e200])
ROWS = st.lists(st.lists(NUMBERS, min_size=6, max_size=6), min_size=2, max_size=2)


def squared(steps):
    return sum(int(step) ** 2 for step in np.ravel(steps))


def total(steps):
    return sum(abs(int(step)) for step in np.ravel(steps))


@given(ROWS, st.sampled_from([1, 2]), st.booleans(), st.sampled_from([1.0, 0.3, 1e6]))
def test_nobody_exceeds_the_length_and_no_two_people_differ_by_more(rows, norm, signed, radius):
    bound = Ball(radius, dimension=6, norm=norm, signed=signed)
    owners, step = np.repeat([0, 1], 6), 2.0**-20
    steps = capped_steps(np.array(rows).reshape(1, -1), owners, 2, bound=bound, step=step)
    one, other = steps[0, :6], steps[0, 6:]
    reach = Fraction(radius) / Fraction(step)
    for own in (one, other):
        assert (total(own) if norm == 1 else squared(own)) <= reach**norm
    l1, l2 = bound.change_in_steps(step, Relation.REPLACE)
    assert total(one - other) <= l1
    assert squared(one - other) <= l2
    l1, l2 = bound.change_in_steps(step, Relation.ADD_REMOVE)
    assert total(one) <= l1
    assert squared(one) <= l2


@given(ROWS, st.sampled_from([1, 2]), st.sampled_from([1.0, 2.0, 5.0, 6.0]))
def test_no_coordinate_exceeds_its_entry_and_no_two_people_differ_by_more(rows, norm, radius):
    bound = Ball(radius, dimension=6, norm=norm, signed=False, entry=1.0)
    owners, step = np.repeat([0, 1], 6), 2.0**-20
    steps = capped_steps(np.array(rows).reshape(1, -1), owners, 2, bound=bound, step=step)
    one, other = steps[0, :6], steps[0, 6:]
    assert steps.max() <= 2**20
    l1, l2 = bound.change_in_steps(step, Relation.REPLACE)
    assert total(one - other) <= l1 <= 6 * 2**20
    assert squared(one - other) <= l2 <= 6 * 2**40
    l1, l2 = bound.change_in_steps(step, Relation.ADD_REMOVE)
    assert total(one) <= l1
    assert squared(one) <= l2
    for relation in Relation:
        assert bound.change(relation)[0] >= bound.change_in_steps(step, relation)[0] * step
        assert bound.change(relation)[1] ** 2 >= bound.change_in_steps(step, relation)[1] * step**2


def test_a_twin_without_the_entry_is_caught():
    """The control: presence that is not cut to one exceeds what everybody in all groups costs."""
    bound = Ball(6.0, dimension=6, norm=1, signed=False)
    steps = capped_steps(np.full((1, 6), 0.0), np.zeros(6, int), 1, bound=bound, step=2.0**-20)
    longer = capped_steps(
        np.array([[6.0, 0, 0, 0, 0, 0]]), np.zeros(6, int), 1, bound=bound, step=2.0**-20
    )
    tight = Ball(6.0, dimension=6, norm=2, signed=False, entry=1.0)
    assert squared(longer - steps) > tight.change_in_steps(2.0**-20, Relation.REPLACE)[1]


@given(ROWS, st.sampled_from([1, 2]), st.booleans())
def test_sparse_cells_and_dense_rows_are_bounded_alike(rows, norm, signed):
    rows = np.clip(rows, -(2.0**200), 2.0**200)  # where a cell is cut
    bound = Ball(2.0, dimension=6, norm=norm, signed=signed)
    dense = bound.clip(np.array(rows))
    cells = capped_steps(
        np.array(rows).reshape(1, -1), np.repeat([0, 1], 6), 2, bound=bound, step=2.0**-30
    )
    np.testing.assert_allclose(cells.reshape(2, 6) * 2.0**-30, dense, atol=1e-8)


def test_a_person_does_not_move_another_ones_last_bit():
    rng = np.random.default_rng(0)
    mine, bound = rng.normal(size=(2, 50)), Ball(3.0, dimension=100, norm=2, signed=True)
    alone = capped_steps(mine, np.zeros(50, np.int64), 1, bound=bound, step=2.0**-40)
    for others in (1, 7, 333):
        values = np.concatenate([rng.normal(size=(2, others)) * 1e9, mine], axis=1)
        owners = np.concatenate([np.zeros(others, np.int64), np.ones(50, np.int64)])
        both = capped_steps(values, owners, 2, bound=bound, step=2.0**-40)
        assert np.array_equal(both[:, others:], alone)


def test_a_bound_group_by_group_would_be_caught():
    """The control: cells that are cut one by one exceed the length together."""
    values = np.full((6, 1), 0.9)
    steps = np.trunc(np.clip(values, 0, 1.0) / 2.0**-20).astype(np.int64)
    assert squared(steps) > Ball(1.0, dimension=6).change_in_steps(2.0**-20, Relation.ADD_REMOVE)[1]


def test_counts_are_closer_together_than_signed_numbers():
    counts, signed = Ball(5.0, dimension=9, signed=False), Ball(5.0, dimension=9, signed=True)
    assert counts.change(Relation.REPLACE)[1] == pytest.approx(5 * np.sqrt(2))
    assert signed.change(Relation.REPLACE)[1] == pytest.approx(10)
    assert Ball(5.0, dimension=1, signed=False).change(Relation.REPLACE)[1] == pytest.approx(5)


@pytest.mark.parametrize("norm", [1, 2])
def test_two_people_with_one_signed_number_are_two_lengths_apart(norm):
    """One group of signed sums: what one person adds another may take away."""
    bound, step = Ball(5.0, dimension=1, norm=norm, signed=True), 2.0**-20
    steps = capped_steps(np.array([[1e308, -1e308]]), np.array([0, 1]), 2, bound=bound, step=step)
    apart = abs(int(steps[0, 0] - steps[0, 1]))
    assert apart > 1.9 * 5.0 / step
    l1, l2 = bound.change_in_steps(step, Relation.REPLACE)
    assert apart <= l1
    assert apart**2 <= l2
    assert pytest.approx(bound.change(Relation.REPLACE)) == (2 * 5.0, 2 * 5.0)


def test_nan_in_a_cell_is_nothing():
    bound = Ball(5.0, dimension=2)
    steps = capped_steps(np.array([[np.nan, 3.0]]), np.zeros(2, int), 1, bound=bound, step=1.0)
    assert steps.ravel().tolist() == [0, 3]


def test_missing_rows_are_nobody():
    assert Ball(1.0, dimension=2).clip([[np.nan, 1.0], [np.inf, 0.0]]).tolist() == [[0, 0], [0, 0]]


def test_entries_are_for_what_cannot_be_negative():
    for entry, signed in ((0.0, False), (1.0, True)):
        with pytest.raises(ParameterError):
            Ball(1.0, dimension=2, signed=signed, entry=entry)


@pytest.mark.parametrize("radius", [0.0, -1.0, np.nan, 1e300])
def test_strange_lengths_are_refused(radius):
    with pytest.raises((ParameterError, ValueError)):
        Ball(radius, dimension=2)


def test_lengths_add_up_person_by_person():
    values = np.array([[3.0, 0.0, 1.0], [0.0, 4.0, 1.0]])
    assert lengths_of(values, np.array([0, 0, 1]), 3, norm=1).tolist() == [7.0, 2.0, 0.0]
