"""Errors of sums and ratios: what is stated holds."""

import numpy as np
import pytest

from quorate.data.by_group.person_cells import ValueColumn
from quorate.mechanisms.laplace import cube_deviation
from quorate.tabulate.released import (
    Estimates,
    Released,
    TableError,
    arrow_table,
    means,
    tail_factor,
    totals,
)

COUNTS, SUMS, CENTRE = np.array([40.0, 400.0, 4000.0]), np.array([80.0, -500.0, 900.0]), 3.0
COLUMN = ValueColumn(2, -50.0, 50.0)


def released(rng, *, kind):
    """Return sums about a centre and numbers of records, with noise."""
    draw = {
        "gaussian": rng.normal,
        "laplace": lambda _, scale, size: rng.laplace(0, scale / 2**0.5, size),
    }[kind]

    def made(truth, deviation, **others):
        return Released(
            values=truth + draw(0, deviation, 3),
            errors=np.full(3, deviation),
            bounds=np.full(3, deviation * tail_factor(kind, beta=0.05)),
            cap=1.0,
            **others,
        )

    return made(SUMS, 20.0, centre=CENTRE, column=COLUMN), made(COUNTS, 8.0)


@pytest.mark.parametrize("kind", ["gaussian", "laplace"])
def test_bounds_hold_as_often_as_they_say(kind):
    rng = np.random.default_rng(0)
    held, scores = {"sum": [], "mean": []}, []
    for _ in range(2000):
        sums, records = released(rng, kind=kind)
        found = totals(sums, records)
        held["sum"].append(np.abs(found.values - SUMS - CENTRE * COUNTS) <= found.bounds)
        scores.append((found.values - SUMS - CENTRE * COUNTS) / found.errors)
        found = means(sums, records)
        held["mean"].append(np.abs(found.values - CENTRE - SUMS / COUNTS) <= found.bounds)
    assert np.mean(held["sum"], axis=0).min() > 0.94
    assert np.mean(held["mean"], axis=0).min() > 0.94
    assert np.std(scores) == pytest.approx(1.0, abs=0.05)


def test_a_count_that_may_be_zero_says_nothing_about_the_mean():
    sums, records = released(np.random.default_rng(0), kind="gaussian")
    few = Released(**{**records.__dict__, "values": np.array([-3.0, 0.0, 4000.0])})
    found = means(sums, few)
    # The whole range lies within the bound.
    assert np.all(found.values[:2] + found.bounds[:2] >= 50.0)
    assert np.all(found.values[:2] - found.bounds[:2] <= -50.0)
    assert found.bounds[2] < 1.0
    assert np.all(np.abs(found.values) <= 50.0)


def test_sums_without_records_are_as_they_are():
    sums, _ = released(np.random.default_rng(0), kind="gaussian")
    assert totals(sums, None) is sums


@pytest.mark.parametrize("parts", [1, 2, 3, 7])
def test_one_coordinate_of_noise_of_the_largest_exceeds_its_tail_as_often_as_said(parts):
    rng = np.random.default_rng(parts)
    draws = rng.gamma(parts + 1, size=200_000) * rng.uniform(-1, 1, 200_000)
    reach = tail_factor("cube", beta=0.05, parts=parts) * cube_deviation(parts)
    assert np.mean(np.abs(draws) > reach) == pytest.approx(0.05, abs=0.002)
    assert np.std(draws) == pytest.approx(cube_deviation(parts), rel=0.02)


def test_tables_and_words():
    one = Estimates(values=np.array([1.0, 2.0]), errors=np.ones(2), bounds=np.ones(2))
    table = arrow_table(("a", "b"), ((1, "x"), (2, "y")), {"n": one})
    assert table.column_names == ["a", "b", "n", "n_error", "n_bound"]
    assert table.to_pandas()["n"].tolist() == [1.0, 2.0]
    single = Estimates(values=np.ones(1), errors=np.ones(1), bounds=np.ones(1))
    assert arrow_table((), ((),), {"n": single}).num_rows == 1
    error = TableError(standard_error={"n": 1.0}, caps={}, smallest_key=31)
    assert str(error).endswith("a key of 31 people or more is always found")
