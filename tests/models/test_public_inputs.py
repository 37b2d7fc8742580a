"""Public weights of classes, and why there are no others."""

import numpy as np
import pytest

from quorate import LinearRegression, LinearSVC, LogisticRegression
from quorate.core.noise import SeededNoise, use_noise
from quorate.exceptions import ParameterError
from quorate.models.public_inputs import public_weights

LABELS = ("well", "ill")


def people(n=400, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n * 5, 2))
    y = (X[:, 0] + rng.logistic(size=n * 5) > 2.0).astype(int)
    return X, y, np.repeat(np.arange(n), 5)


class TestPublicWeights:
    def test_only_how_they_compare_matters(self):
        assert public_weights({"well": 2, "ill": 8}, LABELS).tolist() == [0.25, 1.0]
        assert public_weights({"ill": 0.5}, LABELS).tolist() == [1.0, 0.5]

    @pytest.mark.parametrize(
        "wrong",
        [
            {"ill": 0},
            {"ill": -1},
            {"ill": np.nan},
            {"ill": np.inf},
            {"ill": "2"},
            {"ill": True},
            {"dead": 1.0},
            [1.0, 2.0],
            3.0,
        ],
    )
    def test_what_is_no_public_weight_is_refused(self, wrong):
        with pytest.raises(ParameterError):
            public_weights(wrong, LABELS)

    def test_balanced_is_refused_with_the_reason(self):
        with pytest.raises(ParameterError, match="Class frequencies are private"):
            public_weights("balanced", LABELS)


class TestModels:
    @pytest.mark.parametrize("kind", [LogisticRegression, LinearSVC])
    def test_a_heavy_class_is_found_more_often(self, kind):
        X, y, users = people()
        found = []
        for weights in (None, {1: 9.0}):
            with use_noise(SeededNoise(3)):
                model = kind(epsilon=50.0, class_weight=weights, progress=False)
                found.append(model.fit(X, y, users=users).predict(X).mean())
        assert found[1] > found[0] + 0.1

    def test_equal_weights_change_nothing(self):
        X, y, users = people()
        found = []
        for weights in (None, {0: 3.0, 1: 3.0}):
            with use_noise(SeededNoise(3)):
                model = LogisticRegression(epsilon=5.0, class_weight=weights, progress=False)
                found.append(model.fit(X, y, users=users).coef_)
        assert np.array_equal(*found)

    def test_a_constant_model_weighs_too(self):
        X, y, users = people(n=40)
        model = LogisticRegression(
            epsilon=0.5, hopeless="constant", class_weight={1: 1e6}, progress=False
        )
        assert (model.fit(X, y, users=users).predict(X) == 1).all()

    @pytest.mark.parametrize("kind", [LogisticRegression, LinearSVC, LinearRegression])
    def test_weights_of_records_are_refused_with_the_reason(self, kind):
        X, y, users = people(n=20)
        with pytest.raises(ParameterError, match="everybody counts once"):
            kind().fit(X, y, users=users, sample_weight=np.ones(len(X)))
        with pytest.raises(TypeError, match="unexpected keyword argument 'group'"):
            kind().fit(X, y, users=users, group=1)

    @pytest.mark.parametrize("weights", ["balanced", {7: 1.0}])
    def test_a_mistake_costs_nothing(self, weights, tmp_path):
        from quorate import Ledger

        ledger = Ledger(tmp_path / "ledger.sqlite")
        ledger.set_budget("people", epsilon=1.0, delta=1e-5)
        X, y, users = people(n=20)
        model = LogisticRegression(class_weight=weights, ledger=ledger, data_name="people")
        with pytest.raises(ParameterError):
            model.fit(X, y, users=users)
        assert ledger.spent("people").epsilon == 0.0
