"""Private classification: public classes, binary and multinomial."""

import numpy as np
import pytest

from quorate.core.noise import SeededNoise, use_noise
from quorate.core.users import UserData
from quorate.exceptions import ParameterError
from quorate.models import LinearSVC, LogisticRegression

RNG = np.random.default_rng(0)
N, M = 2000, 5
X = RNG.normal(size=(N * M, 3))
USERS = np.repeat(np.arange(N), M)
BINARY = (X[:, 0] - X[:, 1] > 0).astype(int)
THREE = np.argmax(X + 0.1 * RNG.normal(size=X.shape), axis=1)


def fitted(kind=LogisticRegression, *, y=BINARY, seed=2, **options):
    with use_noise(SeededNoise(seed)):
        return kind(1.0, **options).fit(X, y, users=USERS)


class TestBinary:
    @pytest.mark.parametrize("kind", [LogisticRegression, LinearSVC])
    def test_it_learns(self, kind):
        model = fitted(kind)
        assert model.score(X, BINARY) > 0.93
        assert model.coef_.shape == (1, 3)
        assert model.intercept_.shape == (1,)
        assert model.decision_function(X).shape == (N * M,)

    def test_labels_may_be_words(self):
        y = np.where(BINARY, "yes", "no")
        model = fitted(y=y, classes=("no", "yes"))
        assert model.score(X, y) > 0.93
        assert model.classes_.tolist() == ["no", "yes"]

    def test_probabilities_add_up(self):
        chances = fitted().predict_proba(X)
        np.testing.assert_allclose(chances.sum(axis=1), 1.0)
        np.testing.assert_allclose(np.exp(fitted().predict_log_proba(X)), chances)

    def test_labels_outside_the_classes_are_left_out(self):
        y = BINARY.copy()
        y[::7] = 5
        assert fitted(y=y).score(X, BINARY) > 0.93

    def test_only_one_class_in_the_data_says_nothing_to_anybody(self):
        model = fitted(y=np.zeros(N * M, dtype=int))
        assert model.classes_.tolist() == [0, 1]
        assert model.predict_proba(X)[:, 0].mean() > 0.8

    def test_a_user_data_holds_places_of_labels(self):
        people = UserData.from_arrays(
            X, np.where(BINARY, "b", "a"), users=USERS, classes=("a", "b")
        )
        with use_noise(SeededNoise(2)):
            model = LogisticRegression(1.0, classes=("a", "b")).fit(people)
        assert model.score(X, np.where(BINARY, "b", "a")) > 0.93


class TestMultinomial:
    def test_it_learns(self):
        model = fitted(y=THREE, classes=(0, 1, 2))
        assert model.score(X, THREE) > 0.85
        assert model.coef_.shape == (3, 3)
        np.testing.assert_allclose(model.predict_proba(X).sum(axis=1), 1.0)
        assert model.decision_function(X).shape == (N * M, 3)

    def test_a_margin_of_three_classes_is_refused(self):
        with pytest.raises(ParameterError, match="LogisticRegression"):
            fitted(LinearSVC, y=THREE, classes=(0, 1, 2))


class TestPublicClasses:
    @pytest.mark.parametrize("classes", [(), (1,), (1, 1)])
    def test_there_must_be_two_different_ones(self, classes):
        with pytest.raises(ParameterError, match="must not be taken from the data"):
            fitted(classes=classes)


class TestSmallData:
    def test_at_tiny_n_it_is_not_worse_than_a_constant(self):
        """Twenty features, 300 users of one record: the issue's hardest cell, in small."""
        excess, constant = [], []
        for seed in range(12):
            rng = np.random.default_rng(seed)
            theta = rng.normal(size=20) * 0.5
            rows = rng.normal(size=(300, 20))
            y = (rng.random(300) < 1 / (1 + np.exp(-rows @ theta))).astype(int)
            fresh = rng.normal(size=(4000, 20))
            chance = 1 / (1 + np.exp(-fresh @ theta))
            with use_noise(SeededNoise(seed)):
                model = LogisticRegression(1.0, delta=1e-6).fit(rows, y, users=np.arange(300))
            z = model.decision_function(fresh)
            excess.append(np.mean(np.logaddexp(0, z) - chance * z))
            constant.append(np.log(2.0))
        assert np.mean(excess) <= np.mean(constant)

    def test_a_width_must_be_positive(self):
        with pytest.raises(ParameterError, match="width"):
            fitted(LinearSVC, width=0.0)
