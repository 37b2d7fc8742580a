"""Levels that add up: least squares by another way, errors that are stated, three levels of 200."""

import numpy as np
import pyarrow as pa
import pytest

from quorate import UserTable
from quorate.exceptions import ParameterError, SchemaError
from quorate.noise import SeededNoise, use_noise
from quorate.tabulate.hierarchies import consistent

COUNTRIES, REGIONS, CITIES = 5, 40, 200
PARENTS = [
    {f"r{r}": f"c{r % COUNTRIES}" for r in range(REGIONS)},
    {f"t{t}": f"r{t % REGIONS}" for t in range(CITIES)},
]
KEYS = [
    [f"c{c}" for c in range(COUNTRIES)],
    [f"r{r}" for r in range(REGIONS)],
    [f"t{t}" for t in range(CITIES)],
]


def summing():
    """Return the matrix from leaves to all nodes, level by level."""
    leaves = np.eye(CITIES)
    regions = np.zeros((REGIONS, CITIES))
    for t in range(CITIES):
        regions[t % REGIONS, t] = 1.0
    countries = np.zeros((COUNTRIES, CITIES))
    for t in range(CITIES):
        countries[(t % REGIONS) % COUNTRIES, t] = 1.0
    return np.vstack([countries, regions, leaves])


def as_tables(values, errors, others=0.0):
    parts = np.split(np.arange(len(values)), [COUNTRIES, COUNTRIES + REGIONS])
    return [
        pa.table(
            {
                "key": keys,
                "n": values[part],
                "n_error": errors[part],
                "n_bound": 1.959964 * errors[part] + others,
            }
        )
        for keys, part in zip(KEYS, parts, strict=True)
    ]


def joined(tables, name):
    return np.concatenate([table[name].to_numpy() for table in tables])


@pytest.fixture(scope="module")
def world():
    rng = np.random.default_rng(0)
    truth = summing() @ rng.gamma(2.0, 50.0, CITIES)
    errors = np.concatenate([np.full(5, 9.0), rng.uniform(3.0, 8.0, 40), rng.uniform(2, 20, 200)])
    return truth, errors


def test_it_is_least_squares_with_the_known_noise(world):
    """By the dense normal equations: values, and the variances of what comes out."""
    truth, errors = world
    noisy = truth + errors * np.random.default_rng(1).normal(size=len(truth))
    found = consistent(as_tables(noisy, errors), PARENTS, columns=["n"])
    matrix, weights = summing(), np.diag(errors**-2.0)
    covariance = np.linalg.inv(matrix.T @ weights @ matrix)
    leaves = covariance @ matrix.T @ weights @ noisy
    np.testing.assert_allclose(joined(found, "n"), matrix @ leaves, rtol=1e-9)
    stated = np.sqrt(np.diag(matrix @ covariance @ matrix.T))
    np.testing.assert_allclose(joined(found, "n_error"), stated, rtol=1e-9)


def test_all_sums_are_consistent_and_no_error_grows(world):
    truth, errors = world
    before, after = np.zeros(3), np.zeros(3)
    parts = np.split(np.arange(len(truth)), [COUNTRIES, COUNTRIES + REGIONS])
    for seed in range(60):
        noisy = truth + errors * np.random.default_rng(seed).normal(size=len(truth))
        tables = consistent(as_tables(noisy, errors), PARENTS, columns=["n"])
        found = joined(tables, "n")
        np.testing.assert_allclose(found, summing() @ found[-CITIES:], rtol=1e-9)
        assert (joined(tables, "n_error") <= errors * (1 + 1e-12)).all()
        for level, part in enumerate(parts):
            before[level] += np.mean((noisy[part] - truth[part]) ** 2)
            after[level] += np.mean((found[part] - truth[part]) ** 2)
    assert (after < before).all()
    stated = tables[0]["n_error"].to_numpy() ** 2
    # The mean of 300 squares is off by 8 %, one standard deviation.
    assert after[0] / 60 == pytest.approx(stated.mean(), rel=0.25)


def test_stated_errors_are_those_that_are_seen(world):
    truth, errors = world
    ratios = []
    for seed in range(60):
        noisy = truth + errors * np.random.default_rng(seed).normal(size=len(truth))
        tables = consistent(as_tables(noisy, errors), PARENTS, columns=["n"])
        ratios.append((joined(tables, "n") - truth) / joined(tables, "n_error"))
    spread = np.array(ratios)
    assert 0.97 < spread.std() < 1.03
    assert 0.94 < np.mean(np.abs(spread) < 1.959964) < 0.96


def test_what_caps_cut_stays_in_the_bounds(world):
    """Released numbers are too small by what bounds hold beside noise: they still cover it."""
    truth, errors = world
    missing = 40.0
    noisy = truth - missing
    tables = consistent(as_tables(noisy, errors, missing), PARENTS, columns=["n"])
    assert (np.abs(joined(tables, "n") - truth) <= joined(tables, "n_bound")).all()
    bare = consistent(as_tables(noisy, errors), PARENTS, columns=["n"])
    assert not (np.abs(joined(bare, "n") - truth) <= joined(bare, "n_bound")).all()


def test_tables_of_people_add_up():
    """Through the public door: three private tables of 200 cities, with and without it."""
    rng = np.random.default_rng(3)
    who = rng.integers(0, 4000, 30_000)
    city = (who * 7 + rng.integers(0, 3, 30_000)) % CITIES
    frame = pa.table(
        {
            "who": who,
            "city": [f"t{t}" for t in city],
            "region": [f"r{t % REGIONS}" for t in city],
            "country": [f"c{(t % REGIONS) % COUNTRIES}" for t in city],
        }
    )
    tables = []
    with use_noise(SeededNoise(5)):
        for by, keys in zip(("country", "region", "city"), KEYS, strict=True):
            table = UserTable(
                1.0, delta=1e-6, by=by, keys=keys, statistics={"n": "count"}, cap=12.0
            )
            tables.append(table.fit(frame, users="who").table_)
    found = consistent(tables, PARENTS, columns=["n"])
    sums = np.bincount(np.arange(CITIES) % REGIONS, weights=found[2]["n"].to_numpy())
    np.testing.assert_allclose(found[1]["n"].to_numpy(), sums, rtol=1e-9)
    for before, after in zip(tables, found, strict=True):
        assert (after["n_error"].to_numpy() <= before["n_error"].to_numpy() * (1 + 1e-12)).all()
    apart = np.bincount(np.arange(CITIES) % REGIONS, weights=tables[2]["n"].to_numpy())
    assert not np.allclose(tables[1]["n"].to_numpy(), apart)


class TestRefused:
    def test_keys_without_a_parent_and_parents_without_a_child(self, world):
        tables = as_tables(*world)
        lost = [PARENTS[0], {key: r for key, r in PARENTS[1].items() if key != "t7"}]
        with pytest.raises(ParameterError, match="1 without a parent"):
            consistent(tables, lost, columns=["n"])
        moved = [PARENTS[0], dict.fromkeys(KEYS[2], "r0")]
        with pytest.raises(ParameterError, match="39 without a child"):
            consistent(tables, moved, columns=["n"])
        with pytest.raises(ParameterError, match="two levels"):
            consistent(tables[:1], [], columns=["n"])

    def test_columns_without_errors(self, world):
        tables = as_tables(*world)
        with pytest.raises(SchemaError, match="m_error"):
            consistent(tables, PARENTS, columns=["m"])
        with pytest.raises(ParameterError, match="above 0"):
            consistent(as_tables(world[0], 0 * world[1]), PARENTS, columns=["n"])
