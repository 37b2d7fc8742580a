"""Levels that add up: least squares by another way, errors that are stated, three levels of 200."""

import numpy as np
import pyarrow as pa
import pytest

from quorate import UserData, UserTable
from quorate.core.noise import SeededNoise, use_noise
from quorate.exceptions import ParameterError, SchemaError
from quorate.tabulate.hierarchies import Tree, consistent

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


LEAVES = [(f"c{c}", f"r{r}", f"t{t}") for c in range(4) for r in range(5) for t in range(10)]


@pytest.fixture(scope="module")
def cities():
    """Visits of people to 200 cities, whose names say nothing without their region."""
    rng = np.random.default_rng(5)
    places = rng.integers(0, 200, 40_000)
    by = {
        name: [LEAVES[i][k] for i in places] for k, name in enumerate(("country", "region", "city"))
    }
    who, spent = rng.integers(0, 6000, 40_000), rng.uniform(0, 10, 40_000)
    return pa.table({"who": who, **by, "spent": spent})


def nested(**changes):
    given = {
        "epsilon": 1.0,
        "delta": 1e-6,
        "by": ["country", "region", "city"],
        "keys": LEAVES,
        "levels": True,
        "statistics": {"visits": "count", "people": "users", "spent": "sum"},
        "bounds": {"spent": (0, 10)},
    }
    return UserTable(**(given | changes))


class TestLevelsOfOneTable:
    def test_counts_and_sums_of_200_leaves_add_up(self, cities):
        with use_noise(SeededNoise(0)):
            found = nested().fit(cities, users="who")
        frame = found.table_.to_pandas()
        assert len(frame) == 4 + 20 + 200
        assert found.keys_[:5] == (*((f"c{c}", None, None) for c in range(4)), ("c0", "r0", None))
        depth = frame[["country", "region", "city"]].notna().sum(axis=1)
        for name in ("visits", "spent"):
            for level, by in ((1, ["country"]), (2, ["country", "region"])):
                own = frame[depth == level].set_index(by)[name]
                below = frame[depth == level + 1].groupby(by)[name].sum()
                np.testing.assert_allclose(own.loc[below.index], below, rtol=1e-9)
        assert found.guarantee_.epsilon == 1.0

    def test_errors_of_every_level_are_at_most_those_without_adding_up(self, cities, monkeypatch):
        """Seen and stated: the same releases, with and without least squares."""
        truth = cities.to_pandas().groupby(["country", "region", "city"]).size()
        levels = [
            truth.groupby(["country"]).sum(),
            truth.groupby(["country", "region"]).sum(),
            truth,
        ]
        exact = [
            levels[sum(label is not None for label in row) - 1].loc[
                row[0] if row[1] is None else tuple(label for label in row if label is not None)
            ]
            for row in Tree(tuple(LEAVES)).nodes
        ]
        ends, seen, stated = [4, 24], np.zeros((2, 3)), np.zeros((2, 3))
        asked = {"statistics": {"visits": "count"}, "cap": 20}
        for seed in range(15):
            for way in (0, 1):
                with use_noise(SeededNoise(seed)), monkeypatch.context() as patch:
                    if way:
                        patch.setattr(Tree, "added_up", lambda self, found: found)
                    found = nested(**asked).fit(cities, users="who").table_
                off = np.split((found["visits"].to_numpy() - exact) ** 2, ends)
                errors = np.split(found["visits_error"].to_numpy() ** 2, ends)
                seen[way] += [each.mean() for each in off]
                stated[way] += [each.mean() for each in errors]
        assert (stated[0] <= stated[1]).all()
        assert (seen[0] < seen[1]).all()

    def test_bounds_hold_and_never_sum_what_caps_cut(self, cities):
        with use_noise(SeededNoise(1)):
            found = nested(statistics={"visits": "count"}).fit(cities, users="who").table_
        frame = found.to_pandas()
        truth = cities.to_pandas().groupby("country").size()
        top = frame[frame.region.isna()].set_index("country")
        assert (np.abs(top.visits - truth) <= top.visits_bound).all()
        leaves = frame[frame.city.notna()].groupby("country").visits_bound.sum()
        assert (top.visits_bound < 0.6 * leaves).all()

    @pytest.mark.parametrize(
        ("wrong", "says"),
        [
            ({"keys": {"country": ["c0"], "region": ["r0"], "city": ["t0"]}}, "list of rows"),
            ({"by": "city", "keys": ["t0"]}, "list of rows"),
            ({"others": True}, "no others"),
            ({"largest": 3}, "no largest"),
            ({"levels": "yes"}, "levels"),
            ({"keys": [("c0", "r0")]}, "3 labels"),
            ({"keys": [LEAVES[0]] * 2}, "different rows"),
            ({"keys": [("c0", "r0", None)]}, "none missing"),
        ],
        ids=str,
    )
    def test_what_it_refuses(self, wrong, says, cities):
        with pytest.raises(ParameterError, match=says):
            nested(**wrong).fit(cities, users="who")

    def test_ids_have_to_be_a_column(self, cities):
        with pytest.raises(ParameterError, match="name of its column"):
            nested().fit(cities.drop_columns(["who"]), users=cities["who"])


class TestListedRowsAndOthers:
    def exact(self, table):
        return dict(zip(table.keys_, np.rint(table.table_["n"].to_numpy()).tolist(), strict=True))

    def fit(self, table, **known):
        with use_noise(SeededNoise(0)):
            return UserTable(1e4, statistics={"n": "count"}, cap=1, **known).fit(table, users="who")

    def test_rows_that_are_listed_and_all_others(self):
        keys = [("a", 1), ("a", 2), ("b", 1), ("c", 9), ("a", None), (None, 1), ("b", 2)]
        table = pa.table(
            {"who": range(7), "x": [x for x, _ in keys], "y": pa.array([y for _, y in keys])}
        )
        found = self.fit(table, by=["x", "y"], keys=[("b", 1), ("a", 2)], others=True)
        assert self.exact(found) == {("b", 1): 1, ("a", 2): 1, (None, None): 5}
        assert found.table_["x"].to_pylist() == ["b", "a", None]
        some = self.fit(table, by=["x", "y"], keys=[("b", 1), ("a", 2)])
        assert self.exact(some) == {("b", 1): 1, ("a", 2): 1}
        one = self.fit(table, by="x", keys=["a"], others=True)
        assert self.exact(one) == {("a",): 3, (None,): 4}

    def test_all_others_fulfil_the_conditions_too(self):
        table = pa.table({"who": range(6), "x": ["a", "a", "b", "c", None, "c"], "age": [1, 9] * 3})
        found = self.fit(table, by="x", keys=["a"], others=True, where={"age": (5, None)})
        assert self.exact(found) == {("a",): 1, (None,): 2}

    def test_a_crowd_has_them_too(self):
        crowd = UserData.from_arrays(np.array([[1.0], [2.0], [7.0], [3.5]]), users=range(4))
        found = self.fit_crowd(crowd, by="x0", keys=[2, 1], others=True)
        assert self.exact(found) == {(2,): 1, (1,): 1, (None,): 2}

    def fit_crowd(self, crowd, **known):
        with use_noise(SeededNoise(0)):
            return UserTable(1e4, statistics={"n": "count"}, cap=1, **known).fit(crowd)

    def test_the_largest_of_listed_groups_and_all_others_together(self):
        held = ["a"] * 50 + ["b"] * 30 + ["z"] * 20 + ["c"]
        table = pa.table({"who": range(len(held)), "x": held})
        found = self.fit(table, by="x", keys=["a", "b", "c"], others=True, largest=1)
        assert self.exact(found) == {("a",): 50, (None,): 51}

    def test_refusals(self):
        table = pa.table({"who": [1], "x": ["a"]})
        with pytest.raises(ParameterError, match="by="):
            self.fit(table, others=True)
        with pytest.raises(ParameterError, match="anyway"):
            self.fit(table, by="x", keys="popular", others=True, delta=1e-6)
