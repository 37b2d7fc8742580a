"""Errors of sums and ratios: what is stated holds."""

import numpy as np
import pytest

from quorate.tabulate.blocks import Block
from quorate.tabulate.gathering.cells import ValueColumn
from quorate.tabulate.looks import Shape
from quorate.tabulate.released import Estimates, TableError, arrow_table, means, plain, totals

COUNTS, SUMS, CENTRE = np.array([40.0, 400.0, 4000.0]), np.array([80.0, -500.0, 900.0]), 3.0


def block(rng, *, gaussian):
    draw = rng.normal if gaussian else lambda _, scale, size: rng.laplace(0, scale / 2**0.5, size)
    column = ValueColumn(2, -50.0, 50.0)
    return Block(
        counts=COUNTS + draw(0, 8.0, 3),
        sums=(SUMS + draw(0, 20.0, 3))[None],
        count_errors=np.full(3, 8.0),
        sum_errors=np.full((1, 3), 20.0),
        shape=Shape(columns=(column,), centres=(CENTRE,), units=(1.0,), weights=np.ones(3)),
        length=1.0,
        cut=0.0,
        gaussian=gaussian,
    )


@pytest.mark.parametrize("gaussian", [True, False])
def test_bounds_hold_as_often_as_they_say(gaussian):
    rng = np.random.default_rng(0)
    held = {"sum": [], "mean": []}
    scores = []
    for _ in range(2000):
        made = block(rng, gaussian=gaussian)
        found = totals(made, 0)
        held["sum"].append(np.abs(found.values - SUMS - CENTRE * COUNTS) <= found.bounds)
        scores.append((found.values - SUMS - CENTRE * COUNTS) / found.errors)
        found = means(made, 0)
        held["mean"].append(np.abs(found.values - CENTRE - SUMS / COUNTS) <= found.bounds)
    assert np.mean(held["sum"], axis=0).min() > 0.94
    assert np.mean(held["mean"], axis=0).min() > 0.94
    assert np.std(scores) == pytest.approx(1.0, abs=0.05)


def test_a_count_that_may_be_zero_says_nothing_about_the_mean():
    made = block(np.random.default_rng(0), gaussian=True)
    lost = Block(**{**made.__dict__, "counts": np.array([-3.0, 0.0, 4000.0])})
    found = means(lost, 0)
    assert found.bounds[:2].tolist() == [100.0, 100.0]
    assert found.bounds[2] < 1.0
    assert np.all(np.isfinite(found.values))
    assert np.all(np.abs(found.values) <= 50.0)


def test_tables_and_words():
    one = plain(np.array([1.0, 2.0]), np.ones(2), gaussian=True)
    table = arrow_table(("a", "b"), ((1, "x"), (2, "y")), {"n": one})
    assert table.column_names == ["a", "b", "n", "n_error", "n_bound"]
    assert table.to_pandas()["n"].tolist() == [1.0, 2.0]
    assert (
        arrow_table(
            (), ((),), {"n": Estimates(values=np.ones(1), errors=np.ones(1), bounds=np.ones(1))}
        ).num_rows
        == 1
    )
    assert "people" not in str(TableError(standard_error={"n": 1.0}))
