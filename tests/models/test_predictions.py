"""Rows that lack a value have no prediction, and say so everywhere."""

import numpy as np
import pandas as pd
import pytest

from quorate import LinearRegression, LinearSVC, LogisticRegression


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
