"""Lists of models: whatever a model does with one person's record, the others do not notice."""

from __future__ import annotations

import math

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.tree import DecisionTreeClassifier

from quorate.exceptions import ParameterError
from quorate.learners.concepts import Classifiers


class Fragile:
    """Raises, quoting the value, if a value is 13; predicts 1 otherwise."""

    def predict(self, X):
        if (X == 13).any():
            raise RuntimeError(f"no idea about {X}")
        return np.ones(len(X))


class Strange:
    """Answers with the wrong number of predictions if a value is 13."""

    def predict(self, X):
        return np.ones(len(X) + int((X == 13).any()))


class Wordy:
    def predict(self, X):
        return np.where(X[:, 0] > 0, "yes", "no")


def test_scikit_learn_s_models_see_no_infinity(make_users):
    X, y = [[0.0], [1.0], [2.0], [3.0]], [0, 0, 1, 1]
    models = [LogisticRegression().fit(X, y), DecisionTreeClassifier(random_state=0).fit(X, y)]
    candidates = Classifiers(models, features=1)
    people = [[(math.inf, 0), (3.0, 1)], [(-math.inf, 1), (1e300, 0), (math.nan, 0)]]
    assert candidates.mistakes(make_users(people, 1)).tolist() == [[1, 1], [2, 2]]
    assert candidates.predict(1, [[math.inf], [-math.inf]]).tolist() == [1, 0]


@pytest.mark.parametrize("model", [Fragile(), Strange()])
def test_a_model_that_fails_on_one_person_counts_as_wrong_there_only(model, make_users):
    people = [[(1, 1), (2, 0)], [(13, 1), (1, 1), (1, 1)], [], [(5, 0)]]
    mistakes = Classifiers([model], features=1).mistakes(make_users(people, 1))
    assert mistakes[:, 0].tolist() == [1, 3, 0, 1]


def test_what_is_not_one_is_zero(make_users):
    candidates = Classifiers([Wordy()], features=1, names=["wordy"])
    assert candidates.mistakes(make_users([[(1, 1), (1, 0)]], 1)).tolist() == [[1]]
    assert candidates.predict(0, [[1.0]]).tolist() == [0]


def test_concepts_are_equal_only_if_the_model_is_the_same():
    first, second = Wordy(), Wordy()
    candidates = Classifiers([first, second, first], features=1, names=["a", "a", "b"])
    assert candidates.concept(0) == Classifiers([first], features=1, names=["a"]).concept(0)
    assert candidates.concept(0) != candidates.concept(1)
    assert candidates.concept(0) != candidates.concept(2)
    assert candidates.concept(0) != "a"
    assert str(Classifiers([first], features=1).concept(0)) == "Predict as model 0 does."


def test_the_dimensions_are_bounded_by_the_number_of_models():
    candidates = Classifiers([Wordy()] * 5, features=1)
    assert (candidates.vc_dimension, candidates.littlestone_dimension) == (2, 2)
    assert not candidates.vc_is_exact
    assert not candidates.littlestone_is_exact


@pytest.mark.parametrize(
    ("models", "keywords"),
    [
        ([], {"features": 1}),
        (["model"], {"features": 1}),
        ([Wordy()], {"features": 0}),
        ([Wordy()], {"features": 1, "names": ["a", "b"]}),
        ([Wordy()], {"features": 1, "names": "a"}),
    ],
)
def test_a_list_that_cannot_predict_is_refused(models, keywords):
    with pytest.raises(ParameterError, match="Expected"):
        Classifiers(models, **keywords)
