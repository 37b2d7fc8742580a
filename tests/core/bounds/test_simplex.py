"""Shares enforce themselves; what all bounds have in common is in ``test_bounds.py``."""

import numpy as np
import pytest

from contributions import fine_grid, violations
from quorate.core.bounds.grid import Grid
from quorate.core.bounds.simplex import Simplex
from quorate.core.guarantees import Relation


def test_a_simplex_holds_in_ten_thousand_dimensions():
    d = 10_000
    values = np.random.default_rng(1).exponential(size=(3, d))
    for scale in (1e-9, 1.0, 1e9, 1e304):
        grid = Grid(Simplex(d), 2.0**-20)
        assert violations(grid, grid.encode(values * scale)) == set()


def test_a_user_of_a_simplex_is_the_same_in_every_company():
    rng = np.random.default_rng(3)
    values = rng.normal(size=(50, 7)) * 10.0 ** rng.integers(-3, 300, size=(50, 1))
    values[::9, 2] = np.nan
    grid = Grid(Simplex(7), 2.0**-40)
    together = grid.encode(values)
    alone = np.concatenate([grid.encode(row[None, :]) for row in values])
    assert np.array_equal(together, alone)
    assert np.array_equal(together, grid.encode(np.asfortranarray(values)))


class SimplexOfSums(Simplex):
    """A twin that divides by the sum and leaves negative shares where they are."""

    def offsets_in_steps(self, values, step, *, out):
        np.multiply(values, ((1 / step) / np.maximum(values.sum(axis=1), 1.0))[:, None], out=out)


def test_negative_shares():
    grid = fine_grid(SimplexOfSums(3))
    assert violations(grid, grid.encode([[-5.0, 3.0, 3.0], [1.0, 0.0, 0.0]])) == set(Relation)


def test_shares_are_kept_and_wholes_divided():
    rows = [[0.25, 0.5], [2.0, 6.0], [-1.0, 0.5], [np.inf, 1.0], [0.0, np.nan], [1e308, 1e308]]
    expected = [[0.25, 0.5], [0.25, 0.75], [0.0, 0.5], [0.0, 0.0], [0.0, 0.0], [0.5, 0.5]]
    assert Simplex(2).clip(rows) == pytest.approx(np.array(expected), abs=1e-12)


@pytest.mark.parametrize("relation", Relation)
@pytest.mark.parametrize("size", [1, 2, 3, 7])
def test_the_change_is_that_of_the_worst_two_users(size, relation):
    """Somebody with a whole in one place, or with nothing, in the place of another; no less."""
    step = 2.0**-10
    grid = Grid(Simplex(size), step)
    users = grid.encode(np.vstack([np.eye(size), np.zeros(size)]))
    pairs = [(one, other) for one in users for other in users]
    if relation is Relation.ADD_REMOVE:
        pairs = [(one, np.zeros(size)) for one in users]
    moved = [np.asarray(one) - other for one, other in pairs]
    l1, squared = (max(np.sum(np.abs(each) ** power) for each in moved) for power in (1, 2))
    told = grid.bound.change_in_steps(step, relation)
    # A whole is a little below 1, so that rounding never lifts it above.
    assert l1 <= told[0] <= l1 + 4
    assert squared <= told[1] <= squared + 8 / step
