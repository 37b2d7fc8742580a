"""The finest grid on which a noisy sum has room, from public numbers alone."""

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from quorate.core.bounds.grid import Ball, Interval
from quorate.core.guarantees import Relation
from quorate.exceptions import GridOverflowError, ParameterError
from quorate.mechanisms.sums import choose_grid, fitting_grid, public_size


def test_an_absurd_number_of_users_is_refused_in_words():
    with pytest.raises(GridOverflowError, match="larger than the bound"):
        choose_grid(Interval(-1.0, 1.0), n_users=10**400)


@settings(max_examples=100)
@given(
    n=st.integers(0, 2**50),
    radius=st.floats(1e-70, 1e70),
    noise=st.one_of(st.none(), st.floats(0, 1e6)),
)
def test_a_chosen_grid_never_overflows(n, radius, noise):
    bound = Ball(radius, dimension=3)
    noise = None if noise is None else noise * radius
    grid = choose_grid(bound, n_users=n, noise_scale=noise)
    grid.check_sum(n)
    reach = n * grid.max_steps + 64 * Fraction(noise or 0) / Fraction(grid.step)
    assert reach <= 2**52
    assert grid.max_steps <= 2**40


def test_a_chosen_grid_is_the_finest():
    for n in (1, 1000, 10**6, 10**9):
        bound = Ball(1.0, dimension=2)
        grid = choose_grid(bound, n_users=n)
        finer = grid.step / 2
        needed = n + 64 * Fraction(bound.l1_diameter)
        assert 1 / finer > 2**40 or needed / Fraction(finer) * 2**10 > 2**62


def test_impossible_sums_are_refused():
    with pytest.raises(GridOverflowError, match="larger than the bound"):
        choose_grid(Ball(1.0, dimension=1), n_users=2**60)
    with pytest.raises(GridOverflowError, match="larger than the bound"):
        choose_grid(Ball(1.0, dimension=1), n_users=10, noise_scale=1e30)


@pytest.mark.parametrize(
    "wrong",
    [
        {"n_users": -1},
        {"n_users": 2.5},
        {"noise_scale": np.nan},
        {"max_steps": 1},
        {"max_steps": 2**53},
    ],
)
def test_a_choice_needs_public_numbers_that_make_sense(wrong):
    with pytest.raises(ParameterError):
        choose_grid(Ball(1.0, dimension=1), **{"n_users": 5, **wrong})


def test_a_private_number_of_users_chooses_no_grid():
    sizes = {public_size(n, Relation.ADD_REMOVE) for n in (0, 1, 1000, 10**6)}
    assert len(sizes) == 1
    bound, known = Interval(0.0, 1.0), {"relation": Relation.ADD_REMOVE, "noise": 1.0}
    assert fitting_grid(bound, n_users=1, **known) == fitting_grid(bound, n_users=2**31, **known)
