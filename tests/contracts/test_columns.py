"""Every estimator of tables takes categories, dates and booleans, by one set of public rules."""

import datetime

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import quorate as qr
from quorate.app.catalogue import CATALOGUE
from quorate.app.model_files import StoredModel
from quorate.core.noise import SeededNoise, use_noise
from quorate.core.users import UserData
from quorate.data.coding import Coding, coded_columns
from quorate.data.engines.files import FileCrowd
from quorate.data.engines.layout import Layout
from quorate.estimators import UserEstimator
from quorate.exceptions import ParameterError, QuorateError, SchemaError
from quorate.models import PrivateGridSearch
from quorate.models.coefficients import CoefficientError

N_USERS, EACH = 120, 4
CATEGORIES = {"region": ["north", "south"], "kind": [1, 2, 3]}
RANGE = (datetime.date(2020, 1, 1), datetime.date(2020, 12, 31))
BOUNDS = {"age": (0.0, 100.0), "visit": RANGE}
FLAGGED = BOUNDS | {"smokes": (0.0, 1.0)}
FEATURES = ["age", "region", "visit", "kind", "smokes"]
NAMES = (
    "age",
    "region=north",
    "region=south",
    "visit (days since 2020-01-01)",
    "kind=1",
    "kind=2",
    "kind=3",
    "smokes",
)
USERS = np.repeat(np.arange(N_USERS), EACH)


def table(seed=0):
    rng = np.random.default_rng(seed)
    n = N_USERS * EACH
    return pa.table(
        {
            "age": rng.uniform(0, 100, n),
            "region": rng.choice(["north", "south", "mars"], n),
            "visit": np.datetime64("2020-01-01") + rng.integers(0, 365, n),
            "kind": rng.integers(1, 5, n),
            "smokes": rng.random(n) < 0.3,
        }
    )


def targets(seed=1):
    return np.random.default_rng(seed).integers(0, 2, N_USERS * EACH)


MODEL = {"steps": 2, "progress": False, "epsilon": 9.0}
NET = {**MODEL, "hidden": 2}
MADE = {
    "LogisticRegression": MODEL,
    "LinearSVC": MODEL,
    "LinearRegression": MODEL,
    "Ridge": MODEL,
    "HuberRegression": MODEL,
    "NeuralClassifier": NET,
    "NeuralRegressor": NET,
    "UserMean": {"delta": 1e-6, "algorithm": "clip"},
    "UserScaler": {"delta": 1e-6},
    "UserCovariance": {"delta": 1e-6, "epsilon": 9.0},
}
# Without zeros and ones: a median of them says little.
DATES_ONLY = {"UserQuantiles": {}, "PrivateMedian": {}, "UserVariation": {}}
# What is released names labels, not columns of zeros and ones; tests/synth compares the doors.
AS_LABELS = {"UserSynthesizer": {}}
PREDICT = [name for name in MADE if hasattr(CATALOGUE[name].kind, "predict")]


def make(name, **more):
    return CATALOGUE[name].kind(**MADE[name] | {"bounds": BOUNDS, "categories": CATEGORIES} | more)


def fitted(estimator, X, y=None, users=None):
    with use_noise(SeededNoise(5)):
        return estimator.fit(X, y, users=users)


def released(estimator):
    names = [name for name in CATALOGUE[type(estimator).__name__].releases if name != "algorithm_"]
    return [getattr(estimator, name) for name in names]


def same(one, other):
    return all(
        same(vars(a).values(), vars(b).values())
        if isinstance(a, CoefficientError)
        else np.array_equal(a, b)
        if isinstance(a, np.ndarray)
        else a == b
        for a, b in zip(one, other, strict=True)
    )


def test_every_estimator_that_codes_columns_is_compared_here():
    coding = {name for name, each in CATALOGUE.items() if each.kind._codes_columns}
    assert coding == MADE.keys() | DATES_ONLY.keys() | AS_LABELS.keys()


@pytest.mark.parametrize("name", list(MADE))
class TestEveryEstimator:
    def test_frames_give_what_their_numbers_give(self, name):
        """The same release from three libraries, from users, from parts, and from plain numbers."""
        frame, y = table(), targets()
        coding = Coding.of(FEATURES, coded_columns(CATEGORIES, {"visit": RANGE}))
        numbers = pa.table(list(coding.matrix(frame).T), names=list(NAMES))
        limits = dict.fromkeys(NAMES, (0.0, 1.0)) | {"age": (0.0, 100.0), NAMES[3]: (0.0, 365.0)}
        plain = make(name, bounds=limits, categories=None)
        want = released(fitted(plain, numbers, y, USERS))
        assert plain.columns_ == NAMES
        for X in (frame, frame.to_pandas(), pl.from_arrow(frame)):
            estimator = fitted(make(name), X, y, USERS)
            assert same(released(estimator), want)
            assert estimator.columns_ == NAMES
            assert estimator.feature_names_in_.tolist() == FEATURES
            assert estimator.n_features_in_ == len(FEATURES)
        whole = frame.append_column("id", pa.array(USERS)).append_column("y", pa.array(y))
        asked = {"user": "id", "target": "y", "features": FEATURES, "unit": "user"}
        asked |= {"categories": CATEGORIES, "dates": {"visit": RANGE}}
        layout = Layout.of(whole.schema, **asked)
        for crowd in (
            UserData.from_frame(whole, **asked),
            FileCrowd.from_batches(whole.to_batches(), layout, n_parts=3),
        ):
            estimator = fitted(make(name, bounds=FLAGGED), crowd)
            assert same(released(estimator), want)
            assert estimator.feature_names_in_.tolist() == FEATURES

    @pytest.mark.parametrize(
        "mistake",
        [
            {"categories": {"planet": ["mars"]}},
            {"categories": {"region": "north"}},
            {"categories": {"region": ["north", "north"]}},
            {"categories": {"age": ["old", "young"]}},
            {"categories": {"region": [1, 2], "kind": [1]}},
            {"categories": {"kind": [1]}},
            {"categories": {"region": ["north"], "visit": ["2020"]}},
            {"bounds": {"age": (0.0, 100.0)}},
            {"bounds": BOUNDS | {"visit": ("2020-01-01", 5)}},
            {"bounds": BOUNDS | {"visit": ("2021-01-01", "2020-01-01")}},
            {"bounds": BOUNDS | {"age": ("2020-01-01", "2021-01-01")}},
            {"bounds": BOUNDS | {"region": (0.0, 1.0)}},
            {"bounds": {"visit": RANGE}},
            {"bounds": ([0.0] * 5, [1.0] * 5)},
        ],
        ids=str,
    )
    def test_a_mistake_in_the_schema_costs_nothing(self, name, mistake, tmp_path, monkeypatch):
        ledger = qr.Ledger(tmp_path / "ledger.sqlite")
        ledger.set_budget("people", epsilon=99.0, delta=0.1)
        estimator = make(name, ledger=ledger, data_name="people", **mistake)
        monkeypatch.setattr(UserEstimator, "_crowd", None)  # no record may be read
        with pytest.raises(QuorateError):
            estimator.fit(table(), targets(), users=USERS)
        assert ledger.spent("people").epsilon == 0.0

    @pytest.mark.parametrize("X", [np.zeros((480, 5)), [[0.0] * 5] * 480], ids=["array", "list"])
    def test_columns_without_names_are_refused(self, name, X):
        with pytest.raises(ParameterError, match="with names"):
            make(name).fit(X, targets(), users=USERS)

    def test_other_users_are_refused_by_their_names(self, name):
        people = UserData.from_arrays(np.zeros((480, 8)), targets(), users=USERS)
        with pytest.raises(ParameterError, match="with names"):
            make(name).fit(people)
        other = pa.table(list(np.zeros((8, 480))), names=list("abcdefgh"))
        whole = other.append_column("id", pa.array(USERS)).append_column("y", pa.array(targets()))
        with pytest.raises(SchemaError, match="same categories and dates"):
            make(name).fit(UserData.from_frame(whole, user="id", target="y"))

    def test_no_value_is_an_error(self, name):
        """A table of the same schema in which everything is strange goes the same way."""
        n = N_USERS * EACH
        strange = pa.table(
            {
                "age": pa.array([None, np.nan, np.inf, -1e308] * (n // 4)),
                "region": pa.array([None, "", "\x00", "north"] * (n // 4)),
                "visit": pa.array([None, 0, 2**31 - 1, -(2**31)] * (n // 4), pa.int32()).cast(
                    pa.date32()
                ),
                "kind": pa.array([None, -(2**63), 2**63 - 1, 1] * (n // 4)),
                "smokes": pa.array([None, True, False, True] * (n // 4)),
            }
        )
        usual = table()
        schema = strange.schema
        same_types = pa.table([usual.column(f.name).cast(f.type) for f in schema], schema=schema)
        one, other = fitted(make(name), same_types, targets(), USERS), make(name)
        fitted(other, strange, targets(), USERS)
        assert vars(one).keys() == vars(other).keys()
        assert [np.shape(a) for a in released(one)] == [np.shape(a) for a in released(other)]

    def test_the_file_of_a_model_codes_in_the_same_way(self, name, tmp_path):
        estimator = fitted(make(name), table(), targets(), USERS)
        path = StoredModel(estimator).write(tmp_path / "model.json")
        again = StoredModel.read(path).estimator
        assert again.columns_ == NAMES
        assert same(released(again), released(estimator))
        if name in PREDICT:
            assert np.array_equal(again.predict(table(7)), estimator.predict(table(7)))


@pytest.mark.parametrize("name", list(DATES_ONLY))
def test_dates_and_booleans_where_there_are_no_categories(name):
    frame = table().select(["age", "visit", "smokes"])
    estimator = CATALOGUE[name].kind(epsilon=9.0, bounds=BOUNDS)
    fitted(estimator, frame, None, USERS)
    assert estimator.columns_ == ("age", NAMES[3], "smokes")
    if name == "PrivateMedian":
        assert 100 < estimator.median_[1] < 265


@pytest.mark.parametrize("name", PREDICT)
class TestPredictions:
    def test_a_table_and_its_numbers_are_predicted_alike(self, name):
        model, frame = fitted(make(name), table(), targets(), USERS), table(3)
        coding = Coding.of(FEATURES, coded_columns(CATEGORIES, {"visit": RANGE}))
        numbers = coding.matrix(frame)
        want = model.predict(frame)
        for X in (frame.to_pandas(), numbers, pd.DataFrame(numbers, columns=list(NAMES))):
            assert np.array_equal(model.predict(X), want)

    def test_other_columns_are_refused(self, name):
        model = fitted(make(name), table(), targets(), USERS)
        with pytest.raises(SchemaError, match="feature names should match"):
            model.predict(table().select(FEATURES[::-1]))
        with pytest.raises(SchemaError, match="expecting 8 features"):
            model.predict(np.zeros((2, 5)))


def test_a_search_codes_in_the_same_way():
    model = make("LogisticRegression")
    search = PrivateGridSearch(model, {"penalty": [0.0, 1.0]}, epsilon=50.0)
    fitted(search, table(), targets(), USERS)
    best = search.best_estimator_
    assert best.columns_ == NAMES
    assert np.array_equal(search.predict(table(3)), best.predict(table(3)))
    for grid in ({"categories": [CATEGORIES]}, {"bounds": [BOUNDS]}):
        with pytest.raises(ParameterError):
            PrivateGridSearch(model, grid).fit(table(), targets(), users=USERS)


def test_what_people_do_with_categories_is_found():
    """A model learns what a region and a day do, and puts names to it."""
    rng = np.random.default_rng(0)
    n, each = 1500, 6
    users = np.repeat(np.arange(n), each)
    region = rng.choice(["north", "south", "mars"], n * each)
    day = rng.integers(0, 365, n * each)
    y = 3.0 * (region == "north") - 2.0 * (region == "south") + day / 100
    frame = pd.DataFrame(
        {"region": region, "visit": pd.Timestamp("2020-01-01") + day * pd.Timedelta(days=1)}
    )
    model = qr.LinearRegression(
        epsilon=4.0,
        bounds={"visit": RANGE},
        categories={"region": ["north", "south"]},
        target_bounds=(-5.0, 10.0),
        progress=False,
    )
    fitted(model, frame, y, users)
    found = dict(zip(model.columns_, model.coef_, strict=True))
    assert abs(found["region=north"] - 3.0) < 0.4
    assert abs(found["region=south"] + 2.0) < 0.4
    assert abs(found[NAMES[3]] - 0.01) < 0.002
    assert model.score(frame, y) > 0.95
