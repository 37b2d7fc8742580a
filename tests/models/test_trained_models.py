"""What fitted models are worth: rare labels, few users, nothing to find, and errors that hold."""

from itertools import pairwise

import numpy as np
import pytest

from quorate.core.guarantees import Relation
from quorate.core.noise import SeededNoise, use_noise
from quorate.core.users import UserData
from quorate.models import HuberRegression, LinearRegression, LinearSVC, LogisticRegression


def fitted(model, data, seed=0):
    with use_noise(SeededNoise(seed)):
        return model.fit(data)


def holders(share=0.1, n=2000, m=8, seed=0):
    """Return people who hold the second label in most of their records, or hardly ever."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n * m, 5))
    own = 4.0 * np.repeat(rng.normal(size=n), m)
    scores = X[:, 0] - 0.5 * X[:, 1] + own + rng.logistic(size=n * m)
    labels = (scores > np.quantile(scores, 1.0 - share)).astype(float)
    return UserData(X, labels, offsets=np.arange(n + 1) * m)


class TestRareLabelsThatStay:
    data = holders()

    def predicted(self, data, label):
        found = [
            fitted(LogisticRegression(), data, seed).predict_proba(data.X)[:, label].mean()
            for seed in range(4)
        ]
        return float(np.mean(found))

    def test_they_are_predicted_as_often_as_they_are_held(self):
        assert 0.085 < self.predicted(self.data, 1) < 0.115

    def test_the_other_label_may_be_the_rare_one(self):
        turned = UserData(self.data.X, 1.0 - self.data.y, offsets=self.data.offsets)
        assert 0.085 < self.predicted(turned, 0) < 0.115


@pytest.mark.parametrize("relation", list(Relation))
@pytest.mark.parametrize(
    "model",
    [
        LinearSVC,
        LogisticRegression,
        lambda **told: LogisticRegression(class_weight={0: 1, 1: 4}, **told),
        lambda **told: LogisticRegression(batch_rate=0.2, **told),
        lambda **told: LinearRegression(target_bounds=(-1.0, 2.0), **told),
        HuberRegression,
    ],
)
def test_every_model_ends_within_its_budget(model, relation):
    found = fitted(model(relation=relation), holders(0.2, n=1200))
    assert np.isfinite(found.coef_).all()
    assert np.isfinite(found.intercept_).all()
    assert found.guarantee_.epsilon == 1.0


class TestFewUsers:
    def data(self, n=250, m=20):
        rng = np.random.default_rng(2)
        rows = rng.normal(size=(n * m, 3))
        target = np.tanh(rows @ [1.0, -1.0, 0.5])
        return rows, target, np.repeat(np.arange(n), m)

    def test_a_classifier_learns(self):
        rows, target, users = self.data()
        with use_noise(SeededNoise(0)):
            model = LogisticRegression().fit(rows, target > 0, users=users)
        assert model.score(rows, target > 0) > 0.9

    @pytest.mark.parametrize("bounds", [None, (-1.0, 1.0)])
    def test_a_regression_learns(self, bounds):
        rows, target, users = self.data()
        with use_noise(SeededNoise(0)):
            model = LinearRegression(target_bounds=bounds).fit(rows, target, users=users)
        assert model.score(rows, target) > 0.6

    @pytest.mark.parametrize("seed", range(6))
    def test_no_regression_of_the_fewest_is_much_worse_than_a_constant(self, seed):
        """A clip a thousand times too wide left one with 19,000 times the variance."""
        rng = np.random.default_rng(seed)
        n, m = 150, 8
        rows = rng.normal(size=(n * m, 8)) + 2.0 * rng.normal(size=(n * m, 1)) + 3.0
        target = rows[:, 0] - rows[:, 1] + np.repeat(rng.normal(5.0, 2.0, n), m)
        with use_noise(SeededNoise(seed)):
            model = LinearRegression().fit(rows, target, users=np.repeat(np.arange(n), m))
        assert np.mean((model.predict(rows) - target) ** 2) < 1.6 * np.var(target)

    @pytest.mark.parametrize("seed", range(4))
    def test_some_records_are_not_taken_for_noise(self, seed):
        """One fit in ten was a constant, and worse than one without privacy."""
        rng = np.random.default_rng(seed)
        n, m = 150, 10
        rows = rng.normal(size=(n * m, 20))
        score = rows @ rng.normal(size=20) * 0.5
        labels = rng.random(n * m) < 1.0 / (1.0 + np.exp(-score))
        with use_noise(SeededNoise(seed)):
            model = LogisticRegression().fit(rows, labels, users=np.repeat(np.arange(n), m))
        fitted = rows @ model.coef_[0] + model.intercept_[0]
        assert np.mean(np.logaddexp(0.0, fitted) - labels * fitted) < 0.67  # a constant: 0.69


@pytest.mark.parametrize("seed", range(5))
def test_labels_that_nothing_explains_give_nearly_a_constant(seed):
    rng = np.random.default_rng(seed)
    rows, users = rng.normal(size=(150, 20)), np.arange(150)
    labels = rng.random(150) < 0.8
    with use_noise(SeededNoise(seed)):
        model = LogisticRegression().fit(rows, labels, users=users)
    assert np.linalg.norm(model.coef_) < 0.6
    assert abs(model.intercept_[0] - np.log(4.0)) < 1.2


@pytest.mark.parametrize("kind", [LinearRegression, LogisticRegression])
def test_what_features_explain_is_not_shrunk_away(kind):
    rng = np.random.default_rng(3)
    X = rng.normal(size=(4000, 5))
    y = 2.0 * X[:, 0] + rng.normal(size=4000)
    labels = y if kind is LinearRegression else (y > 0) * 1.0
    model = fitted(kind(), UserData(X, labels, offsets=np.arange(0, 4001, 8)))
    assert np.ravel(model.coef_)[0] > 1.0


def numbers(n, seed, *, shape):
    """Return people and the coefficients that fit them best without privacy."""
    rng = np.random.default_rng([seed, n])
    X = rng.normal(size=(n * 4, 4))
    if shape == "correlated":
        X = 0.6 * X + 0.8 * rng.normal(size=(n * 4, 1))
    if shape == "off centre":
        X = X + 3.0
    y = X @ rng.normal(0.0, 0.5, 4) + rng.normal(size=n * 4)
    y = np.clip(y, -8.0, 8.0)
    best = np.linalg.lstsq(np.column_stack([X, np.ones(len(X))]), y, rcond=None)[0]
    return UserData(X, y, offsets=np.arange(0, n * 4 + 1, 4)), best


@pytest.mark.parametrize("shape", ["plain", "correlated", "off centre"])
def test_intervals_of_coefficients_hold(shape):
    inside = []
    for seed in range(12):
        data, best = numbers(2000, seed, shape=shape)
        model = fitted(LinearRegression(target_bounds=(-8.0, 8.0)), data, seed)
        errors = model.error_.standard_errors[0, :4]
        inside.append(np.abs(model.coef_ - best[:4]) < 1.96 * errors)
    assert np.mean(inside) >= 0.85  # of 48 at .95: fewer than 41 have a probability of .007


def test_more_users_never_make_a_model_worse():
    """The mean excess of six fits, along a grid that crosses every change of coordinates."""
    found = []
    for n in (200, 500, 1000, 2000, 5000, 12_000):
        worse = []
        for seed in range(6):
            data, best = numbers(n, seed, shape="correlated")
            model = fitted(LinearRegression(target_bounds=(-8.0, 8.0)), data, seed)
            off = np.append(model.coef_, model.intercept_) - best
            wide = np.column_stack([data.X, np.ones(len(data.X))])
            worse.append(float(np.mean((wide @ off) ** 2)))
        found.append(float(np.mean(worse)))
    assert all(later < 1.2 * before for before, later in pairwise(found))
    assert found[-1] < 0.02 * found[0]
