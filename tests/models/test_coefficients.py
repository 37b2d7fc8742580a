"""Coefficients have names; rows that lack a value have no prediction, and say so everywhere."""

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from sklearn.exceptions import NotFittedError

from quorate import LinearRegression, LinearSVC, LogisticRegression
from quorate.exceptions import ParameterError
from quorate.models.coefficients import Coefficients

TABLE = Coefficients.of(
    ("age", "bmi"), ("ill", "dead"), np.array([[1.0, 2.0], [3.0, 4.0]]), np.array([5.0, 6.0])
)


def fitted(kind, labels=None, names=("age", "bmi")):
    rng = np.random.default_rng(0)
    X = pd.DataFrame(rng.normal(size=(3000, 2)), columns=list(names))
    y = (X.iloc[:, 0] > 0).to_numpy().astype(int)
    more = {}
    if labels is not None:
        more["classes"] = labels
        y = np.asarray(labels)[y if len(labels) == 2 else rng.integers(0, len(labels), 3000)]
    model = kind(epsilon=20.0, steps=4, progress=False, **more)
    return model.fit(X, y, users=np.arange(3000) // 5)


class TestTable:
    def test_a_cell_has_a_name(self):
        assert TABLE["bmi", "ill"] == 2.0
        assert TABLE["constant", "dead"] == 6.0
        assert TABLE.to_dict()["dead"] == {"age": 3.0, "bmi": 4.0, "constant": 6.0}
        for wrong in ("age", ("age", "well"), ("height", "ill")):
            with pytest.raises(KeyError):
                TABLE[wrong]

    def test_frames_take_it(self):
        want = {"feature": ["age", "bmi", "constant"], "ill": [1, 2, 5], "dead": [3, 4, 6]}
        assert pa.table(TABLE).to_pydict() == want
        assert pl.DataFrame(TABLE).to_dict(as_series=False) == want
        assert TABLE.to_arrow().to_pandas().to_dict("list") == want

    def test_shapes_that_do_not_fit_are_refused(self):
        with pytest.raises(ParameterError, match="shape"):
            Coefficients(("a",), ("b",), np.zeros((3, 1)))


class TestModels:
    def test_a_regression_has_one_column(self):
        model = fitted(LinearRegression)
        assert model.coefficients_["age"] == model.coef_[0]
        assert model.coefficients_["constant"] == model.intercept_

    def test_two_classes_share_one_column_for_the_second(self):
        model = fitted(LogisticRegression, ("well", "ill"))
        assert model.coefficients_.outputs == ("ill",)
        assert model.coefficients_["bmi"] == model.coef_[0, 1]

    def test_several_classes_have_one_each(self):
        model = fitted(LogisticRegression, ("a", "b", "c"))
        assert model.coefficients_.outputs == ("a", "b", "c")
        assert model.coefficients_["bmi", "c"] == model.coef_[2, 1]

    def test_there_are_none_before_a_fit(self):
        with pytest.raises(NotFittedError):
            _ = LogisticRegression().coefficients_


class TestMissing:
    ROWS = pd.DataFrame({"age": [1.0, np.nan, np.inf, -1.0], "bmi": [0.0, 1.0, 1.0, 0.0]})

    @pytest.mark.parametrize(
        ("kind", "labels"),
        [
            (LogisticRegression, ("well", "ill")),
            (LogisticRegression, (0, 1)),
            (LogisticRegression, (0.5, 1.5)),
            (LogisticRegression, ("a", "b", "c")),
            (LinearSVC, (False, True)),
        ],
    )
    def test_a_label_and_its_probabilities_agree(self, kind, labels):
        model = fitted(kind, labels)
        found = model.predict(self.ROWS).tolist()
        lacking = [label is None or label != label for label in found]
        assert lacking == [False, True, True, False]
        assert {label for label, gone in zip(found, lacking, strict=True) if not gone} <= {*labels}
        scores = model.decision_function(self.ROWS).reshape(4, -1)
        assert np.isnan(scores).all(axis=1).tolist() == lacking
        if hasattr(model, "predict_proba"):
            shares = model.predict_proba(self.ROWS)
            assert np.isnan(shares).all(axis=1).tolist() == lacking
            best = np.asarray(labels)[shares[[0, 3]].argmax(axis=1)]
            assert best.tolist() == [found[0], found[3]]

    def test_whole_rows_keep_the_type_of_the_labels(self):
        model = fitted(LogisticRegression, (0, 1))
        assert model.predict(self.ROWS.iloc[[0, 3]]).dtype == model.classes_.dtype

    def test_a_number_is_none(self):
        model = fitted(LinearRegression)
        assert np.isnan(model.predict(self.ROWS)).tolist() == [False, True, True, False]

    def test_a_row_without_a_prediction_is_not_scored_as_right(self):
        model = fitted(LogisticRegression, (0, 1))
        whole = self.ROWS.iloc[[0, 3]]
        assert model.score(whole, model.predict(whole)) == 1.0
        for truth in (0, 1):
            y = [model.predict(whole)[0], truth, truth, model.predict(whole)[1]]
            assert model.score(self.ROWS, y) == 0.5
