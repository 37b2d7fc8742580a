"""One way to say who is who: ``users="column"`` at every door, whatever holds the table."""

import datetime
import decimal
import re

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import quorate as qr
from fitted_examples import make, released
from quorate.app.catalogue import CATALOGUE
from quorate.core.noise import SeededNoise, use_noise
from quorate.exceptions import ParameterError, QuorateError, SchemaError
from quorate.papers.queries.private_score import private_cross_val_score, private_score


def seeded(work):
    with use_noise(SeededNoise(0)):
        return work()


def same(one, other):
    first, second = released(one), released(other)
    assert first.keys() == second.keys()
    for name in first:
        assert repr(first[name]) == repr(second[name]), name


def as_frame(example, **others):
    """Return the table of an example with its ids and target as columns."""
    X = example.X
    if isinstance(X, np.ndarray):
        X = pa.table({f"c{place}": column for place, column in enumerate(X.T)})
    columns = dict(zip(X.column_names, X.columns, strict=True)) | {"who": example.users}
    if example.y is not None:
        columns["what"] = example.y
    return pa.table(columns | others)


@pytest.mark.parametrize("name", sorted(CATALOGUE))
def test_every_estimator_takes_names_of_columns(name):
    example = CATALOGUE[name].example()
    table = as_frame(example)
    y = None if example.y is None else "what"
    features = table.drop_columns(["who"] if y is None else ["who", "what"])
    expected = seeded(lambda: make(name).fit(features, example.y, users=example.users))
    same(seeded(lambda: make(name).fit(table, y, users="who")), expected)
    same(seeded(lambda: make(name).fit(table.to_pandas(), y, users="who")), expected)


class Untouched(qr.Ledger):
    """A ledger from which nothing may be charged."""

    def charge(self, *args, **kwargs):
        raise AssertionError("Expected nothing to be charged.")


@pytest.fixture
def ledger(tmp_path):
    return Untouched(tmp_path / "ledger.db")


@pytest.mark.parametrize("name", sorted(CATALOGUE))
def test_a_column_that_is_not_there_costs_nothing(name, ledger):
    example = CATALOGUE[name].example()
    estimator = make(name)
    if "ledger" in estimator.get_params(deep=False):
        estimator.set_params(ledger=ledger, data_name="d")
    with pytest.raises(SchemaError, match="column 'whom'"):
        estimator.fit(as_frame(example), None if example.y is None else "what", users="whom")
    with pytest.raises(ParameterError, match=r"users='whom' names a column, but X is a ndarray"):
        estimator.fit(np.ones((3, 1)), example.y, users="whom")


def visits(rows=1200):
    public = np.random.default_rng(31)
    return {
        "who": public.integers(0, 300, rows),
        "age": public.normal(50.0, 8.0, rows).round(2),
        "ill": public.integers(0, 2, rows),
    }


class TestScores:
    def test_scores_and_searches_take_names(self):
        table = pa.table(visits())
        X, y, users = table.select(["age"]), table.column("ill"), table.column("who")
        model = seeded(
            lambda: qr.LogisticRegression(4.0, delta=1e-6, random_state=0).fit(X, y, users=users)
        )
        one = seeded(lambda: private_score(model, X, y, users=users, epsilon=1.0))
        other = seeded(lambda: private_score(model, table, "ill", users="who", epsilon=1.0))
        assert one.value == other.value
        given = {"epsilon": 30.0, "delta": 1e-4, "folds": 2, "random_state": 0}
        fresh = qr.LogisticRegression()
        one = seeded(lambda: private_cross_val_score(fresh, X, y, users=users, **given))
        other = seeded(lambda: private_cross_val_score(fresh, table, "ill", users="who", **given))
        assert np.array_equal(one.scores, other.scores)

    def test_users_of_arrays_take_names(self):
        table = pd.DataFrame(visits())
        people = qr.UserData.from_arrays(table, "ill", users="who")
        assert people.feature_names == ("age",)
        assert people.n_users == table.who.nunique()
        assert people.has_target


def relation(table):
    return duckdb.connect().from_arrow(table)


def decimals(table):
    cells = pa.array([decimal.Decimal(f"{x:.2f}") for x in table.column("age").to_pylist()])
    return table.set_column(1, "age", cells)


FORMS = {
    "pandas": pa.Table.to_pandas,
    "pandas nullable": lambda t: t.to_pandas().convert_dtypes(),
    "pandas arrow": lambda t: t.to_pandas().convert_dtypes(dtype_backend="pyarrow"),
    "polars": pl.from_arrow,
    "polars lazy": lambda t: pl.from_arrow(t).lazy(),
    "polars decimal": lambda t: pl.from_arrow(t).with_columns(pl.col("age").cast(pl.Decimal(9, 2))),
    "arrow decimal": decimals,
    "record batch": lambda t: t.to_batches()[0],
    "duckdb": relation,
    "duckdb query": lambda t: relation(t).filter("age > -1000"),
    "ids that are categories": lambda t: t.to_pandas().astype({"who": "category"}),
    "ids that are decimals": lambda t: t.to_pandas().assign(
        who=[decimal.Decimal(int(who)) for who in t.column("who").to_pylist()]
    ),
    "ids that are periods": lambda t: t.to_pandas().assign(
        who=pd.PeriodIndex.from_ordinals(t.column("who").to_numpy(), freq="D")
    ),
}
DOORS = {
    "mean": lambda: qr.UserMean(2.0, bounds={"age": (0, 100), "ill": (0, 1)}, random_state=0),
    "sum": lambda: qr.UserSum(2.0, bounds={"age": (0, 100)}),
    "table": lambda: qr.UserTable(
        2.0, statistics={"n": "count", "m": ("age", "mean")}, bounds={"age": (0, 100)}
    ),
    "count": lambda: qr.UserCount(2.0),
}


@pytest.mark.parametrize("door", DOORS)
@pytest.mark.parametrize("form", FORMS)
def test_every_form_of_a_table_gives_the_same_answer(form, door):
    table = pa.table(visits())
    if door == "sum":
        table = table.drop_columns(["ill"])
    fit = lambda X: seeded(lambda: DOORS[door]().fit(X, users="who"))  # noqa: E731
    found, expected = (released(fit(X)) for X in (FORMS[form](table), table))
    for name in ("mean_", "sum_", "count_"):
        if name in expected:
            assert np.allclose(found[name], expected[name], rtol=1e-12), name
    if door == "table":
        assert np.allclose(found["table_"]["m"], expected["table_"]["m"], rtol=1e-12)


def test_a_query_is_run_once():
    runs = []
    lazy = pl.DataFrame(visits()).lazy().map_batches(lambda frame: runs.append(1) or frame)
    DOORS["table"]().fit(lazy, users="who")
    DOORS["mean"]().fit(lazy, users="who")
    assert len(runs) == 2


def test_what_can_be_read_once_is_refused_for_free():
    reader = pa.table(visits()).to_reader()
    for door in DOORS.values():
        with pytest.raises(ParameterError, match=r"read_all\(\)"):
            door().fit(reader, users="who")
    assert qr.UserData.from_frame(reader, user="who").n_users == len({*visits()["who"]})


def test_the_query_that_fails_says_nothing_about_rows():
    broken = duckdb.sql("select 1 as who, error('31337 years') as age")
    with pytest.raises(SchemaError, match="withheld") as caught:
        DOORS["count"]().fit(broken, users="who")
    assert "31337" not in str(caught.value)


UNREADABLE = {
    "text": ("categories=", lambda n: ["a"] * n),
    "categories": ("categories=", lambda n: pd.Categorical(["a"] * n)),
    "objects": ("categories=", lambda n: [decimal.Decimal(1)] * n),
    "periods": ("start_time", lambda n: pd.period_range("2020-01-01", periods=n, freq="D")),
    "durations": ("total_seconds", lambda n: pd.to_timedelta(np.arange(n), unit="h")),
    "dates": ("bounds=", lambda n: pd.date_range("2020-01-01", periods=n, freq="h")),
    "times of day": ("seconds", lambda n: [datetime.time(3)] * n),
    "sparse": (r"\.astype\(float\)", lambda n: pd.arrays.SparseArray(np.ones(n))),
    "complex": (r"\.astype\(float\)", lambda n: np.ones(n) + 1j),
}


@pytest.mark.parametrize("kind", UNREADABLE)
@pytest.mark.parametrize("name", ["UserMean", "LogisticRegression", "RecordMean"])
def test_a_column_that_is_no_number_is_refused_in_one_sentence_for_free(name, kind, ledger):
    remedy, make_cells = UNREADABLE[kind]
    frame = pd.DataFrame(visits()).drop(columns="ill")
    cells = make_cells(len(frame))
    if kind == "times of day":
        frame = pa.table(dict(frame.items()) | {"odd": pa.array(cells)})
    else:
        frame["odd"] = cells
    estimator = make(name, ledger=ledger, data_name="d")
    y = np.zeros(len(frame)) if name == "LogisticRegression" else None
    with pytest.raises(SchemaError, match=f"'odd'.*{remedy}") as caught:
        estimator.fit(frame, y, users="who")
    assert str(caught.value).count(". ") == 0


DAYS = pd.date_range("2020-01-01", periods=3, freq="D")


def clinics():
    table = visits()
    public = np.random.default_rng(5)
    table["clinic"] = public.choice(["north", "south"], len(table["who"]))
    table["day"] = public.choice(
        pd.date_range("2020-01-01", periods=3, freq="D"), len(table["who"])
    )
    return pd.DataFrame(table)


def grouped(frame, by, keys, **users):
    table = qr.UserTable(
        4.0, by=by, keys=keys, statistics={"n": "count", "m": ("age", "mean")},
        bounds={"age": (0, 100)},
    )  # fmt: skip
    return seeded(lambda: table.fit(frame, **users)).table_


class TestKeys:
    @pytest.mark.parametrize(
        "keys",
        [np.array, pd.Series, pd.Index, pd.Categorical, pl.Series, pa.array, tuple],
        ids=lambda kind: kind.__name__,
    )
    def test_labels_in_any_form(self, keys):
        expected = grouped(clinics(), "clinic", ["north", "south"], users="who")
        found = grouped(clinics(), "clinic", keys(["north", "south"]), users="who")
        assert found.equals(expected)

    @pytest.mark.parametrize(
        "keys",
        [DAYS, DAYS.to_numpy(), DAYS.to_series(), pl.Series(DAYS), DAYS.date, [*map(str, DAYS)]],
        ids=["DatetimeIndex", "array", "Series", "polars", "dates", "text"],
    )
    def test_dates_in_any_form(self, keys):
        frame = clinics()
        found = grouped(frame, "day", keys, users="who")
        assert abs(found["n"].to_numpy().sum() - len(frame)) < 100

    def test_numbers_are_no_dates_and_periods_are_refused(self):
        with pytest.raises(SchemaError, match="column 'day'"):
            grouped(clinics(), "day", [1, 2], users="who")
        with pytest.raises(ParameterError, match="to_timestamp"):
            grouped(clinics(), "day", pd.period_range("2020-01", periods=2, freq="M"), users="who")


class TestGroupByOfCrowds:
    def crowds(self):
        frame = clinics()[["who", "age", "clinic"]]
        given = {"user": "who", "categories": {"clinic": ["north", "south"]}}
        yield qr.UserData.from_frame(frame, **given)
        base = duckdb.connect()
        base.register("visits", frame)
        yield qr.UserData.from_sql(base, "select * from visits", **given)

    def test_a_crowd_can_be_grouped_by_its_categories(self):
        expected = grouped(clinics(), "clinic", ["south", "north"], users="who")
        for crowd in self.crowds():
            found = grouped(crowd, "clinic", ["south", "north"])
            assert found["clinic"].to_pylist() == ["south", "north"]
            assert np.allclose(found["n"], expected["n"])
            assert np.allclose(found["m"], expected["m"], rtol=1e-9)

    def test_categories_and_numbers_together_and_as_conditions(self):
        frame = clinics()[["who", "age", "clinic", "ill"]]
        given = {"user": "who", "categories": {"clinic": ["north", "south"]}}
        crowd = qr.UserData.from_frame(frame, **given)
        table = qr.UserTable(
            50.0, by=["clinic", "ill"], keys={"clinic": ["north", "south"], "ill": [0, 1]},
            statistics={"n": "count"}, where={"clinic": ["south"], "age": (50, None)},
        )  # fmt: skip
        rows = table.fit(crowd).table_.to_pylist()
        truth = frame[(frame.clinic == "south") & (frame.age >= 50)].groupby("ill").size()
        counts = {(row["clinic"], row["ill"]): row["n"] for row in rows}
        assert abs(counts["south", 0] - truth[0]) < 15
        assert abs(counts["south", 1] - truth[1]) < 15
        assert abs(counts["north", 0]) < 15

    def test_a_crowd_that_was_read_without_labels_says_what_to_do(self):
        crowd = qr.UserData.from_frame(clinics(), user="who", features=["age"])
        with pytest.raises(SchemaError, match=r"categories=\{'clinic': \['north'\]\}"):
            grouped(crowd, "clinic", ["north"])


def test_fitted_names_say_what_they_are():
    """Every estimator has an answer named after what it is, its error, route and guarantee."""
    vague = {"values_", "value_", "result_", "results_", "answer_", "output_", "estimate_"}
    for name, descriptor in CATALOGUE.items():
        names = {*descriptor.releases, *descriptor.follows}
        assert not names & vague, name
        assert "algorithm_" in names, name
        assert all(re.fullmatch(r"[a-z]+(_[a-z]+)*_", each) for each in names), name
    assert "quantiles_" in CATALOGUE["UserQuantiles"].releases
    assert "median_" in CATALOGUE["PrivateMedian"].follows


@pytest.mark.parametrize("bounds", [(0, 100), {"age": (0, 120)}])
def test_a_column_of_text_gets_a_message_that_names_categories(bounds):
    table = pd.DataFrame({"who": [1, 2, 3], "age": [30, 40, 50], "ward": ["A", "B", "A"]})
    with pytest.raises(QuorateError, match="categories="):
        qr.UserMean(1.0, bounds=bounds).fit(table, users="who")
