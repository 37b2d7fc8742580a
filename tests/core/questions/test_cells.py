"""Sums over cells: what one person moves, whatever a statistic says, and nobody else's bits."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from quorate.core.bounds.blocks import Blocks
from quorate.core.bounds.grid import Ball, Box, Grid
from quorate.core.guarantees import Relation
from quorate.core.people import People
from quorate.core.questions import cells as module
from quorate.core.users import UserData
from quorate.exceptions import GridOverflowError, ParameterError, SchemaError
from sealing import numbers_of

GROUPS = 3
CELL = st.tuples(
    st.integers(-1, 2**40) | st.integers(0, GROUPS),
    st.floats(allow_nan=True) | st.sampled_from([0.5, 1e308, -1e308]),
    st.floats(allow_nan=True) | st.just(1.0),
)
PERSON = st.lists(CELL, max_size=6)


def held(users):
    """Say that each record is a cell: its group, and what it holds of two blocks."""
    rows = users.X
    return users.user_index(), rows[:, 0].astype(np.int64), [rows[:, 1], rows[:, 2]]


def crowd(*people):
    rows = np.array([cell for person in people for cell in person], dtype=float).reshape(-1, 3)
    offsets = np.concatenate([[0], np.cumsum([len(person) for person in people])])
    return UserData(rows, offsets=offsets)


def grid(norm):
    parts = (
        Ball(2.0, dimension=GROUPS, norm=norm, signed=False),
        Ball(1.0, dimension=GROUPS, norm=norm),
    )
    return Grid(Blocks(parts), step=2.0**-20)


def total(people, norm, relation=Relation.ADD_REMOVE):
    return People(people, relation).cell_totals(held, grid(norm))


def broken(found, moves):
    """Whether a change is longer than a seal says, in any of the lengths it states."""
    moved = found.astype(object)
    longest = max(sum(abs(moved[:GROUPS])), sum(abs(moved[GROUPS:])))
    return (
        sum(abs(moved)) > moves.l1
        or sum(moved**2) > moves.l2_squared
        or longest > moves.joint("blocks_laplace")[1]
    )


@pytest.mark.parametrize("norm", [1, 2])
@settings(max_examples=80)
@given(mine=PERSON, theirs=PERSON, others=st.lists(PERSON, max_size=2))
def test_one_person_moves_no_more_than_the_seal_says(norm, mine, theirs, others):
    whole = total(crowd(*others, mine), norm)
    without = numbers_of(total(crowd(*others, []), norm))
    assert not broken(numbers_of(whole) - without, whole.moves)
    replaced = total(crowd(*others, theirs), norm, Relation.REPLACE)
    assert not broken(numbers_of(whole) - numbers_of(replaced), replaced.moves)


@pytest.mark.parametrize("norm", [1, 2])
def test_cells_are_rows_of_a_bounded_total(norm):
    rng = np.random.default_rng(0)
    dense = rng.normal(size=(40, 2, GROUPS))
    people = [[(g, *dense[i, :, g]) for g in range(GROUPS)] for i in range(40)]
    expected = grid(norm).encode(dense.reshape(40, -1)).sum(axis=0)
    assert np.abs(numbers_of(total(crowd(*people), norm)) - expected).max() <= 40


def test_a_group_that_is_said_twice_is_one_cell():
    """The twin counts the same cell several times and exceeds the L2 norm."""
    twice = [(0, 1.0, 1.0)] * 6
    found = total(crowd(twice), 2)
    once = total(crowd([(0, 6.0, 6.0)]), 2)
    assert np.array_equal(numbers_of(found), numbers_of(once))
    assert not broken(numbers_of(found), found.moves)
    apart = module.capped_steps(
        np.ones((1, 6)), np.zeros(6, int), 1, bound=grid(2).bound.parts[0], step=2.0**-20
    )
    assert broken(np.r_[apart.sum(), np.zeros(5)], found.moves)


@pytest.mark.parametrize("relation", list(Relation))
def test_sums_that_might_wrap_around_are_refused(relation):
    """A thousand times 2^52 steps are more than 62 bits hold."""
    fine = Grid(Blocks((Ball(1.0, dimension=GROUPS),)), step=2.0**-52)
    people = People(crowd(*[[(0, 1.0, 1.0)]] * 1024), relation)
    with pytest.raises(GridOverflowError, match="can exceed"):
        people.cell_totals(held, fine)


def test_a_twin_that_bounds_each_group_by_itself_is_caught(monkeypatch):
    def each_alone(values, owners, n_users, *, bound, step):
        del owners, n_users
        return np.trunc(np.clip(values, -bound.radius, bound.radius) / step)

    monkeypatch.setattr(module, "capped_steps", each_alone)
    found = total(crowd([(g, 9.0, 9.0) for g in range(GROUPS)]), 1)
    assert broken(numbers_of(found), found.moves)


def test_nobody_moves_another_ones_last_bit():
    rng = np.random.default_rng(1)
    mine = [(g, *rng.normal(size=2)) for g in range(GROUPS)]
    alone = numbers_of(total(crowd(mine), 2))
    for others in (1, 7, 90):
        company = [[(g, *rng.normal(size=2)) for g in range(GROUPS)] for _ in range(others)]
        both = numbers_of(total(crowd(*company, mine), 2))
        assert np.array_equal(both - numbers_of(total(crowd(*company), 2)), alone)


def test_what_is_no_cell_counts_nowhere_and_errors_say_nothing():
    outside = [(-1, 1.0, 1.0), (GROUPS, 1.0, 1.0), (2**40, 1.0, 1.0), (0, np.nan, np.nan)]
    assert not numbers_of(total(crowd(outside), 1)).any()
    people = People(crowd([(0, 31337.0, 1.0)]), Relation.REPLACE)
    for wrong in (
        lambda users: 1 / 0,
        lambda users: (users.user_index(), users.X[:, 0].astype(int), [users.X[:, 1]]),
        lambda users: (users.user_index(), users.X[:, 0].astype(int), [users.X[:0, 1]] * 2),
    ):
        with pytest.raises(SchemaError, match="withheld") as caught:
            people.cell_totals(wrong, grid(1))
        assert "31337" not in str(caught.value)
    with pytest.raises(ParameterError):
        people.cell_totals(held, Grid(Box([0.0], [1.0]), step=0.5))
