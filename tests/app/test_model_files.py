"""A model file holds what was released, and cannot run code."""

import json
import math

import numpy as np
import pyarrow as pa
import pytest

from quorate import (
    ConceptLearner,
    Ledger,
    LogisticRegression,
    PrivateMedian,
    ThresholdLearner,
    UserData,
    UserMean,
    UserSum,
    UserTable,
)
from quorate.app.model_files import VERSION, ModelFileError, StoredModel
from quorate.core.noise import SeededNoise, use_noise
from quorate.exceptions import ParameterError
from quorate.learners.concepts import Classifiers, Thresholds
from quorate.means import UserQuantiles, UserQueries

RNG = np.random.default_rng(0)
X = RNG.normal(3.0, 1.0, size=(3000, 2))
USERS = np.arange(3000) % 300
PEOPLE = UserData.from_arrays(X, users=USERS, unit="patient")
LINE = RNG.integers(0, 1000, size=3000)


def cut_off():
    return ThresholdLearner(epsilon=1.0, domain=(0, 999)).fit(
        LINE[:, None], LINE >= 400, users=USERS
    )


FITTED = {
    "mean": lambda: UserMean(epsilon=1.0, delta=1e-6, bounds=50.0).fit(PEOPLE),
    "pure mean": lambda: UserMean(epsilon=1.0, bounds=([0.0, 1.0], 9.0)).fit(PEOPLE),
    "median": lambda: PrivateMedian(epsilon=1.0, bounds=50.0).fit(PEOPLE),
    "quantiles": lambda: UserQuantiles(epsilon=1.0, bounds=50.0).fit(PEOPLE),
    "cut-off": cut_off,
    "cut-off with labels": lambda: ThresholdLearner(
        epsilon=1.0, domain=(0.0, 999.0), classes=("well", "ill")
    ).fit(LINE[:, None], np.where(LINE >= 400, "ill", "well"), users=USERS),
    "rule": lambda: ConceptLearner(Thresholds(0, 999), epsilon=1.0).fit(
        LINE[:, None], LINE >= 400, users=USERS
    ),
}


def released(estimator):
    names = ("mean_", "median_", "quantiles_", "threshold_", "index_", "algorithm_", "error_")
    return {name: getattr(estimator, name) for name in names if hasattr(estimator, name)}


class TestRoundTrip:
    @pytest.mark.parametrize("make", FITTED.values(), ids=FITTED)
    def test_what_was_released_comes_back(self, make, tmp_path):
        estimator = make()
        path = StoredModel(estimator).write(tmp_path / "model.json")
        again = StoredModel.read(path).estimator
        assert type(again) is type(estimator)
        for name, value in released(estimator).items():
            np.testing.assert_array_equal(getattr(again, name), value)
        assert again.guarantee_.to_dict() == estimator.guarantee_.to_dict()
        assert again.n_features_in_ == estimator.n_features_in_
        if hasattr(estimator, "predict"):
            new = np.arange(0, 1000, 7)[:, None]
            np.testing.assert_array_equal(again.predict(new), estimator.predict(new))

    def test_bounds_that_too_few_people_leave_infinite_come_back(self, tmp_path):
        few = pa.table({"who": [1, 2], "pet": ["cat", "dog"]})
        asked = {"by": "pet", "keys": ["cat", "dog"], "statistics": {"pets": "count"}}
        with use_noise(SeededNoise(1)):
            table = UserTable(0.1, **asked).fit(few, users="who")
            total = UserSum(0.1, bounds=(0, 9)).fit([[3.0], [4.0]], users=[1, 2])
        assert table.table_["pets_bound"].to_pylist() == [math.inf, math.inf]
        found = StoredModel.read(StoredModel(table).write(tmp_path / "table.json"))
        assert found.estimator.table_.equals(table.table_)
        found = StoredModel.read(StoredModel(total).write(tmp_path / "sum.json"))
        assert found.estimator.error_.bound.tolist() == total.error_.bound.tolist() == [math.inf]

    def test_a_model_that_was_read_is_written_the_same_way(self, tmp_path):
        document = StoredModel(FITTED["mean"]()).to_dict()
        assert StoredModel.from_dict(document).to_dict() == document

    def test_names_and_labels_are_kept(self, tmp_path):
        import pyarrow as pa

        table = pa.table({"person": USERS, "dose": LINE, "ill": LINE >= 400})
        people = UserData.from_frame(table, user="person", features=["dose"], target="ill")
        learner = ThresholdLearner(epsilon=5.0, domain=(0, 999)).fit(people)
        path = StoredModel(learner, ("well", "ill")).write(tmp_path / "m.json")
        model = StoredModel.read(path)
        assert model.feature_names == ("dose",)
        assert model.predict([[0.0], [999.0]]).tolist() == ["well", "ill"]

    def test_a_row_that_lacks_a_value_has_no_label(self):
        y = (X[:, 0] > np.median(X[:, 0])).astype(int)
        model = LogisticRegression(8.0, delta=1e-6, bounds=50.0).fit(X, y, users=USERS)
        found = StoredModel(model, ("well", "ill")).predict([X[0], np.full(X.shape[1], np.nan)])
        assert found[0] in ("well", "ill")
        assert found[1] is None

    def test_the_ledger_stays_at_home(self, tmp_path):
        ledger = Ledger(tmp_path / "secret-place.db")
        ledger.set_budget("visits", epsilon=1.0, unit="patient")
        mean = UserMean(epsilon=0.5, bounds=50.0, ledger=ledger, data_name="visits").fit(PEOPLE)
        text = StoredModel(mean).write(tmp_path / "m.json").read_text()
        assert "secret-place" not in text
        assert StoredModel.read(tmp_path / "m.json").estimator.guarantee_.data_name == "visits"


class TestRefusals:
    def test_other_estimators_and_unfitted_ones_are_not_written(self):
        with pytest.raises(ParameterError, match="model files know"):
            StoredModel(UserQueries(epsilon=1.0))
        with pytest.raises(ParameterError, match="fitted"):
            StoredModel(UserMean(epsilon=1.0))

        class UserMeanTwin(UserMean):
            pass

        UserMeanTwin.__name__ = "UserMean"
        with pytest.raises(ParameterError):
            StoredModel(UserMeanTwin(epsilon=1.0))

    def test_a_class_of_foreign_models_is_not_written(self):
        from sklearn.dummy import DummyClassifier

        model = DummyClassifier(strategy="constant", constant=1).fit([[0]], [1])
        learner = ConceptLearner(Classifiers([model, model], features=1), epsilon=1.0)
        learner.fit(LINE[:, None], LINE >= 400, users=USERS)
        with pytest.raises(ParameterError, match="Classifiers"):
            StoredModel(learner).to_dict()

    def test_an_answer_about_the_crowd_predicts_nothing(self):
        with pytest.raises(ParameterError, match="answer about the crowd"):
            StoredModel(FITTED["median"]()).predict([[1.0, 2.0]])

    def test_a_newer_version_is_named(self):
        document = StoredModel(FITTED["median"]()).to_dict() | {"version": VERSION + 1}
        with pytest.raises(ModelFileError, match="Install a newer quorate"):
            StoredModel.from_dict(document)

    def test_a_missing_file_and_one_that_is_no_json_are_refused(self, tmp_path):
        with pytest.raises(ModelFileError, match="found none"):
            StoredModel.read(tmp_path / "none.json")
        for text in ("", "[" * 100_000, "{}", '{"format": "quorate-model"', "\x80", "1" * 10_000):
            (tmp_path / "m.json").write_text(text)
            with pytest.raises(ModelFileError):
                StoredModel.read(tmp_path / "m.json")


def changed(path, value):
    """Return a sound document with one place changed."""
    document = json.loads(json.dumps(StoredModel(cut_off(), ("a", "b")).to_dict()))
    place = document
    for name in path[:-1]:
        place = place[name]
    place[path[-1]] = value
    return document


def explode(*_args, **_kwargs):
    raise RuntimeError("code ran")


EVIL = {"kind": "eval", "fields": {"source": "1"}}


class TestUntrustedFiles:
    @pytest.mark.parametrize(
        ("path", "value"),
        [
            (["estimator"], "os.system"),
            (["estimator"], ["UserMean"]),
            (["estimator"], "UserMean"),
            (["version"], "1"),
            (["version"], None),
            (["parameters"], []),
            (["parameters", "epsilon"], EVIL),
            (["parameters", "fit"], 1),
            (["parameters", "ledger"], "ledger.db"),
            (["parameters", "domain"], None),
            (["released"], {}),
            (["released", "predict"], 1),
            (["released", "index_"], "3"),
            (["released", "index_"], True),
            (["released", "index_"], -1),
            (["released", "index_"], 10**30),
            (["released", "records_"], {"kind": "Route", "fields": {"name": "a", "reason": "b"}}),
            (["n_features"], 0),
            (["n_features"], "1"),
            (["n_features"], True),
            (["n_features"], 7),
            (["n_features"], 10**30),
            (["released", "algorithm_", "fields", "reason"], "\x1b[31m"),
            (["released", "algorithm_", "fields", "name"], 7),
            (["parameters", "classes"], "ab"),
            (["labels"], ["a", "b", "c"]),
            (["feature_names"], ["a", "b"]),
            (["feature_names"], [1]),
            (["labels"], ["only"]),
            (["labels"], [EVIL, EVIL]),
            (["guarantee"], None),
            (["guarantee", "epsilon"], -1.0),
            (["guarantee", "numerics"], "perfect"),
            (["guarantee", "data_name"], ["x"]),
            (["guarantee", "events"], 3),
        ],
        ids=str,
    )
    def test_every_wrong_part_is_refused(self, path, value):
        with pytest.raises(ModelFileError):
            StoredModel.from_dict(changed(path, value))

    def test_loading_never_unpickles_evaluates_or_imports_by_name(self, monkeypatch, tmp_path):
        import builtins
        import pickle

        path = StoredModel(cut_off()).write(tmp_path / "m.json")
        monkeypatch.setattr(builtins, "eval", explode)
        monkeypatch.setattr(pickle, "loads", explode)
        monkeypatch.setattr(pickle, "load", explode)
        assert StoredModel.read(path).estimator.threshold_ > 0
        for name in ("__import__('os').system('true')", "quorate.core.noise.SeededNoise"):
            with pytest.raises(ModelFileError):
                StoredModel.from_dict(changed(["estimator"], name))

    def test_the_broken_twin_that_imports_by_name_is_caught(self):
        """The attack of the test above works on a loader that trusts names."""
        import importlib

        def naive(document):
            module, _, name = document["estimator"].rpartition(".")
            return getattr(importlib.import_module(module), name)

        assert naive({"estimator": "quorate.core.noise.SeededNoise"}).__name__ == "SeededNoise"

    @pytest.mark.parametrize("kind", ["mean", "median", "quantiles"])
    def test_an_array_of_the_wrong_shape_or_with_infinities_is_refused(self, kind):
        document = StoredModel(FITTED[kind]()).to_dict()
        assert StoredModel.from_dict(document) is not None
        name = "mean_" if kind == "mean" else "quantiles_"
        given = document["released"][name]
        for wrong in (
            given | {"shape": [1, *given["shape"]]},
            given | {"shape": [0], "values": []},
            given | {"values": [{"kind": "float", "value": "nan"}] * len(given["values"])},
            given | {"dtype": "int64", "values": [1] * len(given["values"])},
        ):
            with pytest.raises(ModelFileError):
                StoredModel.from_dict(document | {"released": document["released"] | {name: wrong}})
        with pytest.raises(ModelFileError):
            StoredModel.from_dict(document | {"n_features": 3})


def array(dtype, shape, values):
    return {"kind": "array", "dtype": dtype, "shape": shape, "values": values}


NAN = {"kind": "float", "value": "nan"}


@pytest.fixture(scope="module")
def document():
    """A sound classifier as plain data."""
    y = (X[:, 0] > 3.0).astype(int)
    model = LogisticRegression(epsilon=1.0, delta=1e-6, bounds=9.0).fit(X, y, users=USERS)
    return json.loads(json.dumps(StoredModel(model).to_dict()))


class TestClassifiersFromUntrustedPlaces:
    def test_a_sound_file_is_loaded(self, document):
        assert StoredModel.from_dict(document).predict(X[:3]).shape == (3,)

    @pytest.mark.parametrize(
        ("section", "changes"),
        [
            ("released", {"coef_": array("float64", [1, 2], [NAN, NAN])}),
            ("released", {"coef_": array("float64", [1, 1, 2], [1.0, 2.0])}),
            ("released", {"coef_": array("float64", [3, 2], [1.0] * 6)}),
            ("released", {"coef_": array("float64", [2], [1.0] * 2)}),
            ("released", {"coef_": array("float64", [0, 2], [])}),
            (
                "released",
                {
                    "coef_": array("float64", [5, 2], [1.0] * 10),
                    "intercept_": array("float64", [5], [0.0, 0.0, 0.0, 0.0, 9.0]),
                },
            ),
            ("released", {"intercept_": array("float64", [7], [1.0] * 7)}),
            ("released", {"intercept_": array("text", [1], ["a"])}),
            ("released", {"classes_": array("int64", [0], [])}),
            ("released", {"classes_": array("int64", [2], [3, 4])}),
            ("released", {"classes_": array("int64", [1, 2], [0, 1])}),
            ("parameters", {"classes": "abc"}),
            ("guarantee", {"epsilon": float("inf")}),
            ("guarantee", {"epsilon": "1"}),
            ("guarantee", {"epsilon": True}),
            ("guarantee", {"delta": "0"}),
            ("guarantee", {"unit": "\x1b[31m"}),
            ("guarantee", {"unit": 3}),
            ("guarantee", {"events": "abc"}),
            ("guarantee", {"events": [1]}),
        ],
        ids=str,
    )
    def test_what_does_not_fit_together_is_refused(self, document, section, changes):
        with pytest.raises(ModelFileError):
            StoredModel.from_dict(document | {section: document[section] | changes})

    def test_labels_are_as_many_as_classes(self, document):
        assert StoredModel.from_dict(document | {"labels": ["a", "b"]}).labels == ("a", "b")
        with pytest.raises(ModelFileError):
            StoredModel.from_dict(document | {"labels": ["a", "b", "c"]})
