"""Shrinkage: nearer to the truth than what was measured, whatever the truth is."""

import numpy as np
import pytest

from quorate.synth.shrinkage import fitted_to, nearest_shares, shrunk

SIZE = 12
EVEN = np.full(SIZE, 1 / SIZE)


def worlds():
    """Return shares of two columns: independent, smooth, sparse, and one that copies the other."""
    rng = np.random.default_rng(1)
    places = np.arange(SIZE)
    smooth = np.exp(-((places[:, None] - places) ** 2) / 20)
    return {
        "independent": np.outer(rng.dirichlet(np.full(SIZE, 0.5)), EVEN),
        "smooth": smooth / smooth.sum(),
        "sparse": rng.dirichlet(np.full(SIZE**2, 0.1)).reshape(SIZE, SIZE),
        "same": np.diag(EVEN),
    }


def off(found, table):
    return 0.5 * np.abs(found - table).sum()


def errors(name, noise, ordered):
    """Return the mean error: shrunk, as the nearest distribution, as measured, and independent."""
    table, rng, runs = worlds()[name], np.random.default_rng(0), []
    shares = [table.sum(axis=1), table.sum(axis=0)]
    for _ in range(5):
        noisy = table + rng.normal(0.0, noise, table.shape)
        found = shrunk(noisy, noise, shares, [ordered, ordered])
        assert found.min() >= 0
        assert found.sum() == pytest.approx(1.0)
        runs.append([off(each, table) for each in (found, nearest_shares(noisy), noisy)])
    return *np.mean(runs, axis=0), off(np.outer(*shares), table)


@pytest.mark.parametrize("name", worlds())
@pytest.mark.parametrize("noise", [0.0003, 0.003, 0.03])
@pytest.mark.parametrize("ordered", [False, True])
def test_the_error_is_smaller_than_that_of_the_table_and_of_independence(name, noise, ordered):
    found, plain, raw, alone = errors(name, noise, ordered)
    assert found < 0.98 * raw
    # Of no more use than independence where that is right, or where noise hides everything.
    assert found < 1.15 * alone + 0.15 * plain
    # The nearest distribution is hard to beat where nearly all cells are empty.
    assert found < (1.5 if name == "same" else 1.1) * plain


@pytest.mark.parametrize("noise", [0.0003, 0.003, 0.03])
def test_much_is_gained_where_columns_are_independent_or_neighbours_alike(noise):
    found, plain, *_ = errors("independent", noise, False)
    assert found < 0.1 * plain
    found, plain, *_ = errors("smooth", noise, True)
    assert found < 0.75 * plain


def test_order_is_used_where_neighbours_are_alike():
    table, rng = worlds()["smooth"], np.random.default_rng(0)
    shares = [table.sum(axis=1), table.sum(axis=0)]
    noisy = table + rng.normal(0.0, 0.005, table.shape)
    plain, smooth = (
        off(shrunk(noisy, 0.005, shares, [each, each]), table) for each in (False, True)
    )
    assert smooth < 0.8 * plain


def test_three_columns_keep_dependences_of_two_and_of_three():
    rng = np.random.default_rng(0)
    pair = np.array([[0.4, 0.1], [0.1, 0.4]])
    two = np.multiply.outer(pair, EVEN)
    three = np.array([[[0.25, 0.0], [0.0, 0.25]], [[0.0, 0.25], [0.25, 0.0]]])
    for table, most in ((two, 0.5), (three, 1.1)):
        shares = [table.sum(axis=tuple({0, 1, 2} - {axis})) for axis in range(3)]
        noisy = table + rng.normal(0.0, 0.003, table.shape)
        found = shrunk(noisy, 0.003, shares, [False] * 3)
        assert off(found, table) < most * off(nearest_shares(noisy), table)


def test_levels_without_records_and_without_noise():
    shares = [np.array([0.0, 1.0]), np.array([0.5, 0.0, 0.5])]
    found = shrunk(np.outer(*shares), 1e-9, shares, [True, True])
    assert np.isfinite(found).all()
    assert found == pytest.approx(np.outer(*shares))


def test_marginals_are_met():
    rng = np.random.default_rng(0)
    table, rows, columns = rng.random((3, 4)), rng.dirichlet(np.ones(3)), rng.dirichlet(np.ones(4))
    found = fitted_to(table, [(0,), (1,)], [rows, columns])
    assert found.sum(axis=1) == pytest.approx(rows)
    assert found.sum(axis=0) == pytest.approx(columns)
    # Ratios of odds stay as they were.
    odds = (found[0, 0] * found[1, 1]) / (found[0, 1] * found[1, 0])
    assert odds == pytest.approx(table[0, 0] * table[1, 1] / (table[0, 1] * table[1, 0]))
