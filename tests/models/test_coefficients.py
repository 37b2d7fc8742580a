"""Coefficients have names."""

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from sklearn.exceptions import NotFittedError

from quorate import LinearRegression, LogisticRegression
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
