"""Tables: right, as noisy as they say, the same wherever people lie, and about nobody."""

import itertools
from typing import ClassVar

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from sklearn.base import clone

from bill import MOVES, Bill
from quorate import Ledger, Relation, UserData, UserTable
from quorate.auditing import replay
from quorate.core.noise import SeededNoise, use_noise
from quorate.data.engines import MemoryCrowd
from quorate.exceptions import ParameterError, QuorateError, SchemaError
from quorate.mechanisms.blocks import BlockSum
from quorate.mechanisms.laplace import LaplaceSum
from quorate.mechanisms.sums import GaussianSum
from sealing import numbers_of

KEYS = ["a", "b", "c", "d", "e"]
STATISTICS = {
    "visits": "count",
    "people": "users",
    "price": "sum",
    "average": ("price", "mean"),
    "wait": "median",
}
COMMON = {
    "by": "city",
    "keys": KEYS,
    "statistics": STATISTICS,
    "bounds": {"price": (0, 100), "wait": (0, 600)},
}


def visits(n=30_000, users=4000, seed=0):
    """Return people of different activity who like some cities more than others."""
    rng = np.random.default_rng(seed)
    activity = rng.lognormal(0.0, 0.8, users)
    who = rng.choice(users, size=n, p=activity / activity.sum())
    city = (rng.zipf(1.6, n) + who) % 5
    return pd.DataFrame(
        {
            "who": who,
            "city": np.array(KEYS)[city],
            "price": rng.gamma(2.0, 10.0, n).clip(0, 100),
            "wait": rng.gamma(4.0, 20.0, n),
        }
    )


def truth(frame):
    own = frame.groupby(["city", "who"])["wait"].median()
    made = frame.groupby("city").agg(
        visits=("who", "size"), people=("who", "nunique"), price=("price", "sum")
    )
    made["average"] = made["price"] / made["visits"]
    made["wait"] = own.groupby("city").median()
    return made.loc[KEYS]


FRAME, TRUTH = visits(), truth(visits())


@pytest.mark.parametrize("relation", Relation)
@pytest.mark.parametrize("delta", [0.0, 1e-6])
def test_every_cell_is_near_the_truth_and_says_how_near(relation, delta):
    far, bounds = [], []
    for seed in range(4):
        with use_noise(SeededNoise(seed)):
            table = UserTable(8.0, delta=delta, relation=relation, cap=60, groups=5, **COMMON).fit(
                FRAME, users="who"
            )
        found = table.table_.to_pandas().set_index("city")
        for name in STATISTICS:
            far.append(np.abs(found[name] - TRUTH[name]) <= found[f"{name}_bound"])
            bounds.append(found[f"{name}_bound"] / TRUTH[name])
    assert np.mean(far) > 0.9
    assert np.median(bounds) < 0.25
    assert table.guarantee_.epsilon == 8.0


@pytest.mark.parametrize("delta", [0.0, 1e-6])
def test_caps_that_are_found_lose_little(delta):
    with use_noise(SeededNoise(0)):
        table = UserTable(4.0, delta=delta, **COMMON).fit(FRAME, users="who")
    found = table.table_.to_pandas().set_index("city")
    assert np.abs(found["visits"] / TRUTH["visits"] - 1).max() < 0.15
    assert np.abs(found["people"] / TRUTH["people"] - 1).max() < 0.15
    assert np.abs(found["average"] - TRUTH["average"]).max() < 3
    assert 10 < table.error_.caps["records"] < 80
    assert "found privately" in str(table.algorithm_)


def test_frames_of_every_kind_and_crowds_everywhere_give_the_same_table():
    numbers = FRAME.assign(city=FRAME["city"].map({k: float(i) for i, k in enumerate(KEYS)}))
    keys = {"keys": [0, 1, 2, 3, 4]}
    estimator = UserTable(2.0, delta=1e-6, **{**COMMON, **keys})
    crowd = UserData.from_frame(numbers, user="who", features=["city", "price", "wait"])
    worlds = [
        (numbers, "who"),
        (pl.from_pandas(numbers), "who"),
        (pa.table(numbers), numbers["who"].to_numpy()),
        (crowd, None),
        (MemoryCrowd(crowd, n_parts=7), None),
    ]
    tables = []
    for X, users in worlds:
        with use_noise(SeededNoise(3)):
            tables.append(clone(estimator).fit(X, users=users).table_.drop_columns("city"))
    assert all(table.equals(tables[0]) for table in tables[1:])
    with use_noise(SeededNoise(4)):
        assert not clone(estimator).fit(crowd).table_.drop_columns("city").equals(tables[0])


def test_the_order_of_rows_changes_nothing():
    order = np.random.default_rng(0).permutation(len(FRAME))
    tables = []
    for frame in (FRAME, FRAME.iloc[order]):
        with use_noise(SeededNoise(0)):
            tables.append(UserTable(2.0, delta=1e-6, **COMMON).fit(frame, users="who").table_)
    assert tables[0].equals(tables[1])


HOSTILE = [
    pd.DataFrame(
        {
            "who": [-1] * 3,
            "city": ["a", "b", "zz"],
            "price": [1e308, -1e308, np.nan],
            "wait": [np.inf, 1.0, 0.0],
        }
    ),
    pd.DataFrame(
        {"who": [-1] * 5000, "city": KEYS * 1000, "price": [100.0] * 5000, "wait": [600.0] * 5000}
    ),
    pd.DataFrame({"who": [-1], "city": [None], "price": [0.1], "wait": [0.1]}),
]
SMALL = visits(600, 60)


def neighbours(hostile, relation):
    """Return people with a quiet person (or nobody), and with a hostile one in their place."""
    quiet = pd.DataFrame({"who": [-1], "city": ["a"], "price": [1.0], "wait": [1.0]})
    first = [SMALL, quiet] if relation is Relation.REPLACE else [SMALL]
    return pd.concat(first, ignore_index=True), pd.concat([SMALL, hostile], ignore_index=True)


@pytest.mark.parametrize("relation", Relation)
@pytest.mark.parametrize("delta", [0.0, 1e-6])
@pytest.mark.parametrize("keys", [KEYS, "popular"])
def test_given_the_same_releases_nobody_can_be_told_apart(relation, delta, keys):
    if keys == "popular" and delta == 0:
        pytest.skip("popular keys need delta")
    estimator = UserTable(
        3.0, delta=delta, relation=relation, random_state=0, **{**COMMON, "keys": keys}
    )
    for seed, hostile in itertools.product(range(2), HOSTILE):
        if keys == "popular" and hostile["city"].isna().all():
            continue
        report = replay(
            lambda frame: clone(estimator).fit(frame, users="who"),
            *neighbours(hostile, relation),
            seed=seed,
        )
        assert report.same, str(report)


@pytest.fixture
def sums(monkeypatch):
    """Collect what every noisy sum is added to, beside the mechanism that adds the noise."""
    seen = []
    for kind in (GaussianSum, LaplaceSum, BlockSum):
        add = kind._add_noise

        def spying(self, totals, account, add=add):
            seen.append((self, numbers_of(totals).copy()))
            return add(self, totals, account)

        monkeypatch.setattr(kind, "_add_noise", spying)
    return seen


def largest_excess(seen):
    """Return the largest distance of two runs' sums over what the noise was made for."""
    half, worst = len(seen) // 2, 0.0
    for (one, first), (other, second) in zip(seen[:half], seen[half:], strict=True):
        assert one == other
        change = [int(x) for x in first - second]
        if isinstance(one, GaussianSum):
            worst = max(worst, sum(x * x for x in change) / one.sensitivity_squared)
        elif isinstance(one, BlockSum):
            blocks = np.abs(np.array(change, dtype=object)).reshape(len(one.grid.bound.parts), -1)
            worst = max(worst, blocks.sum(axis=1).max() / one.sensitivity)
        else:
            worst = max(worst, sum(map(abs, change)) / one.sensitivity)
    return worst


@pytest.mark.parametrize("relation", Relation)
@pytest.mark.parametrize("delta", [0.0, 1e-6])
def test_one_person_moves_every_sum_by_no_more_than_its_noise_is_for(sums, relation, delta):
    worst = 0.0
    for hostile in HOSTILE:
        for cap in (0.5, 3, "auto"):
            sums.clear()
            estimator = UserTable(3.0, delta=delta, relation=relation, cap=cap, groups=2, **COMMON)
            replay(
                lambda frame, estimator=estimator: clone(estimator).fit(frame, users="who"),
                *neighbours(hostile, relation),
            )
            assert sums
            worst = max(worst, largest_excess(sums))
    assert 0.2 < worst <= 1.0


def test_a_twin_that_bounds_each_group_by_itself_is_caught(sums, monkeypatch):
    from quorate.core.questions import cells

    def each_alone(values, owners, n_users, *, bound, step):
        del owners, n_users
        return np.trunc(np.clip(values, -bound.radius, bound.radius) / step)

    monkeypatch.setattr(cells, "capped_steps", each_alone)
    estimator = UserTable(3.0, delta=1e-6, cap=3, groups=2, **COMMON)
    replay(
        lambda frame: clone(estimator).fit(frame, users="who"),
        *neighbours(HOSTILE[1], Relation.REPLACE),
    )
    assert largest_excess(sums) > 1.0


@pytest.mark.parametrize("relation", Relation)
@pytest.mark.parametrize(("delta", "cap"), [(0.0, "auto"), (1e-6, "auto"), (1e-6, 9)])
def test_what_was_drawn_costs_what_is_promised(relation, delta, cap):
    bill = Bill()
    with use_noise(bill):
        table = UserTable(2.0, delta=delta, cap=cap, relation=relation, **COMMON)
        promised = table.fit(FRAME, users="who").guarantee_
    cost = bill.epsilon(promised.delta)
    assert cost <= promised.epsilon * (1 + 1e-9)
    assert cost >= 0.9 * promised.epsilon


def test_a_bill_with_half_the_movement_is_noticed(monkeypatch):
    """The control: were one user able to move sums twice as far, the bill would say so."""
    honest = MOVES["GaussianSum"]
    monkeypatch.setitem(MOVES, "GaussianSum", lambda mechanism: 2 * honest(mechanism))
    bill = Bill()
    with use_noise(bill):
        promised = UserTable(2.0, delta=1e-6, **COMMON).fit(FRAME, users="who").guarantee_
    assert bill.epsilon(promised.delta) > 1.5 * promised.epsilon


def test_popular_keys_and_products_of_keys():
    frame = FRAME.assign(late=FRAME["wait"] > 80)
    with use_noise(SeededNoise(0)):
        popular = UserTable(
            4.0,
            delta=1e-6,
            by=["city", "late"],
            keys="popular",
            statistics={"n": "count"},
            random_state=0,
        ).fit(frame, users="who")
    assert 3 <= len(popular.keys_) <= 11
    # All other keys are one more row, the last.
    assert popular.keys_[-1] == (None, None)
    assert set(popular.keys_[:-1]) <= set(itertools.product(KEYS, [0, 1]))
    assert abs(sum(popular.table_["n"].to_pylist()) - len(FRAME)) < 0.1 * len(FRAME)
    product = UserTable(
        4.0,
        by=["city", "late"],
        keys={"city": ["a", "q"], "late": [True]},
        statistics={"n": "count"},
    ).fit(frame, users="who")
    assert product.table_.num_rows == 2
    nothing = UserTable(0.1, delta=1e-9, by="city", keys="popular", statistics={"n": "count"})
    empty = nothing.fit(SMALL, users="who")
    assert empty.keys_ == ((None,),)
    assert empty.error_.smallest_key > 60
    assert f"{empty.error_.smallest_key} people" in str(empty.error_)


def test_one_group_of_all_records_and_conditions():
    with use_noise(SeededNoise(0)):
        table = UserTable(
            9.0, statistics={"n": "count"}, cap=200, where={"price": (None, 20), "city": ["a", "b"]}
        ).fit(FRAME, users="who")
    wanted = ((FRAME["price"] <= 20) & FRAME["city"].isin(["a", "b"])).sum()
    assert abs(table.table_["n"][0].as_py() - wanted) < 200


MISTAKES = [
    {"statistics": None},
    {"statistics": {"price": "mode"}},
    {"statistics": {"city": "sum"}, "bounds": {"city": (0, 1)}},
    {"bounds": None},
    {"bounds": {"price": (0, 100)}},
    {"keys": None},
    {"keys": "popular"},
    {"keys": "all"},
    {"by": "town"},
    {"by": None},
    {"by": ["city", "price"]},
    {"cap": -1},
    {"groups": "some"},
    {"where": {"town": 1}},
    {"where": {"city": (0, 1)}},
    {"missing": "zero"},
    {"epsilon": -1.0},
    {"algorithm": "gaussian"},
]


@pytest.mark.parametrize("mistake", MISTAKES, ids=str)
def test_mistakes_cost_nothing(mistake, tmp_path):
    ledger = Ledger(tmp_path / "book.db")
    ledger.set_budget("visits", epsilon=100.0, delta=0.1, relation=Relation.ADD_REMOVE)
    table = UserTable(1.0, ledger=ledger, data_name="visits", **COMMON).set_params(**mistake)
    with pytest.raises((QuorateError, ValueError, TypeError)):
        table.fit(FRAME, users="who")
    for X, users in ((FRAME, None), (FRAME, "whom"), (FRAME, [1, 2])):
        with pytest.raises((QuorateError, ValueError)):
            UserTable(1.0, ledger=ledger, data_name="visits", **COMMON).fit(X, users=users)
    assert ledger.spent("visits").epsilon == 0
    UserTable(1.0, ledger=ledger, data_name="visits", **COMMON).fit(SMALL, users="who")
    assert ledger.spent("visits").epsilon == 1.0


def test_names_must_be_there():
    with pytest.raises(SchemaError):
        UserTable(statistics={"n": "count"}, by="x", keys=[1]).fit(
            np.zeros((3, 2)), users=[1, 2, 3]
        )
    with pytest.raises(ParameterError):
        UserTable(statistics={"n": "count", "n_error": "users"}, by="n_bound", keys=[1]).fit(
            FRAME, users="who"
        )


class TestPeople:
    """Attributes that stand in a table of people, one row a person."""

    LISTED = pd.DataFrame(
        {"who": np.arange(3000), "ward": np.where(np.arange(3000) % 3 == 0, "x", "y"), "age": 40.0}
    )
    ASKED: ClassVar = {
        "by": "ward",
        "keys": ["x", "y"],
        "statistics": {"n": "count", "age": "mean"},
        "bounds": {"age": (0, 100)},
        "where": {"price": (None, 50), "age": (18, None)},
        "cap": 30,
    }

    def test_answers_are_those_of_the_joined_table(self):
        listed = self.LISTED.iloc[:-10]
        joined = FRAME.merge(listed, on="who", how="left")
        answers = []
        for frame, known in ((FRAME, {"people": listed}), (joined, {})):
            with use_noise(SeededNoise(0)):
                made = UserTable(2.0, delta=1e-6, **self.ASKED).fit(frame, users="who", **known)
            answers.append(made.table_)
        assert answers[0].equals(answers[1])

    def test_popular_keys_of_people(self):
        with use_noise(SeededNoise(0)):
            asked = self.ASKED | {"keys": "popular", "cap": "auto"}
            found = UserTable(8.0, delta=1e-6, random_state=0, **asked).fit(
                pl.from_pandas(FRAME), users="who", people=pl.from_pandas(self.LISTED).lazy()
            )
        assert found.keys_ == (("x",), ("y",), (None,))

    @pytest.mark.parametrize("relation", Relation)
    @pytest.mark.parametrize("rows", [1, 2, 0])
    def test_given_the_same_releases_nobody_can_be_told_apart(self, relation, rows):
        own = pd.DataFrame({"who": np.full(rows, -1), "ward": "y", "age": np.inf})
        listed = pd.concat([self.LISTED, own], ignore_index=True)
        estimator = UserTable(3.0, delta=1e-6, relation=relation, **self.ASKED)
        for hostile in HOSTILE:
            one, other = neighbours(hostile, relation)
            report = replay(
                lambda frames: clone(estimator).fit(frames[0], users="who", people=frames[1]),
                (one, self.LISTED),
                (other, listed),
            )
            assert report.same, str(report)

    def test_mistakes_cost_nothing(self, tmp_path):
        ledger = Ledger(tmp_path / "book.db")
        ledger.set_budget("visits", epsilon=10.0, delta=0.1, relation=Relation.ADD_REMOVE)
        for people, users in (
            (self.LISTED.assign(who=self.LISTED["who"].astype(str)), "who"),
            (self.LISTED.drop(columns="ward"), "who"),
            (self.LISTED.assign(price=1.0), "who"),
            (self.LISTED, FRAME["who"].to_numpy()),
            ([1, 2], "who"),
        ):
            table = UserTable(1.0, ledger=ledger, data_name="visits", **self.ASKED)
            with pytest.raises(QuorateError):
                table.fit(FRAME, users=users, people=people)
        assert ledger.spent("visits").epsilon == 0
