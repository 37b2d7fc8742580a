"""What a pipeline promises is what its steps cost together, never less."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from sklearn import config_context
from sklearn.decomposition import PCA
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LinearRegression
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import FeatureUnion, make_pipeline
from sklearn.preprocessing import (
    FunctionTransformer,
    Normalizer,
    PolynomialFeatures,
    StandardScaler,
)

import quorate as qr
from quorate.core.account import Composed, price
from quorate.core.guarantees import Gaussian, Numerics, Repeated, Subsampled
from quorate.core.noise import SeededNoise, use_noise
from quorate.exceptions import ParameterError, RelationMismatchError

RNG = np.random.default_rng(0)
X, PEOPLE = RNG.normal(size=(3000, 2)), np.repeat(np.arange(1000), 3)
PURE = {"epsilon": 0.5, "bounds": 6.0}
GAUSSIAN = {"epsilon": 0.5, "delta": 1e-6, "bounds": 6.0}


def fitted(*steps):
    with config_context(enable_metadata_routing=True):
        return make_pipeline(*steps).fit(X, users=PEOPLE)


def test_pure_costs_add_up():
    steps = fitted(qr.UserScaler(**PURE), qr.UserMean(**PURE))
    total = qr.total_guarantee(steps)
    # Which draws the halves are made of depends on what was found: sums may end a bit below.
    assert 1.0 - 1e-12 < total.epsilon <= 1.0
    assert total.delta == 0.0
    assert len(total.events) == 2


def test_gaussian_costs_are_what_the_accountant_proves():
    steps = fitted(qr.UserScaler(**GAUSSIAN), qr.UserCovariance(**GAUSSIAN))
    total = qr.total_guarantee(steps)
    events = tuple(event for step in steps for event in step.guarantee_.events)
    assert total.delta == 2e-6
    assert total.epsilon == price(Composed(events), delta=2e-6) < 1.0


def test_steps_that_hide_inside_others_count_too():
    inside = FeatureUnion([("a", qr.UserScaler(**PURE)), ("b", FunctionTransformer())])
    inside.transformer_list[0][1].fit(X, users=PEOPLE)
    mean = qr.UserMean(**PURE).fit(X, users=PEOPLE)
    total = qr.total_guarantee(make_pipeline(make_pipeline(inside), mean))
    assert 1.0 - 1e-12 < total.epsilon <= 1.0
    assert qr.total_guarantee(mean) == mean.guarantee_


def test_the_weakest_numerics_are_told():
    scaler = qr.UserScaler(**PURE).fit(X, users=PEOPLE)
    with use_noise(SeededNoise(0)):
        mean = qr.UserMean(**PURE).fit(X, users=PEOPLE)
    total = qr.total_guarantee(make_pipeline(scaler, mean))
    assert total.numerics is mean.guarantee_.numerics is not Numerics.EXACT


@pytest.mark.parametrize("relation", qr.Relation)
def test_samples_are_priced_under_the_relation_of_the_steps(relation):
    step = qr.UserMean(**PURE, relation=relation).fit(X, users=PEOPLE)
    sampled = Repeated(Subsampled(Gaussian(0.8), 0.05), 20)
    step.guarantee_ = replace(step.guarantee_, epsilon=50.0, delta=1e-6, events=(sampled,))
    total = qr.total_guarantee(make_pipeline(step, step))
    expected = price(Composed((sampled, sampled)), delta=2e-6, relation=relation)
    assert total.epsilon == expected < 50.0
    other = next(each for each in qr.Relation if each is not relation)
    assert expected != price(Composed((sampled, sampled)), delta=2e-6, relation=other)


def test_caveats_of_all_steps_are_told():
    step = qr.UserMean(**PURE).fit(X, users=PEOPLE)
    doubtful = qr.UserScaler(**PURE).fit(X, users=PEOPLE)
    doubtful.guarantee_ = doubtful.guarantee_.idealized("A model saw many users at once.")
    total = qr.total_guarantee(make_pipeline(step, doubtful))
    assert total.caveat == "A model saw many users at once."
    assert total.numerics is doubtful.guarantee_.numerics is not Numerics.EXACT


class Untold(StandardScaler):
    """A step of somebody else's that learns from the data."""


@pytest.mark.parametrize("kind", [StandardScaler, PCA, Untold])
def test_a_step_that_is_not_private_leaves_no_guarantee(kind):
    exact = kind().fit(X)
    mean = qr.UserMean(**PURE).fit(X, users=PEOPLE)
    union = FeatureUnion([("a", exact), ("b", "passthrough")])
    for steps in (make_pipeline(exact, mean), make_pipeline(union, mean)):
        total = qr.total_guarantee(steps)
        assert total.epsilon == np.inf
        assert not total.holds
        assert str(total) == f"No guarantee for any user: {kind.__name__} is not private."


def test_a_model_that_is_not_private_behind_a_private_scaler_leaves_no_guarantee():
    scaler = qr.UserScaler(**PURE).fit(X, users=PEOPLE)
    model = LinearRegression().fit(X, X[:, 0])
    assert "LinearRegression is not private" in str(
        qr.total_guarantee(make_pipeline(scaler, model))
    )


def test_steps_that_learn_nothing_cost_nothing():
    mean = qr.UserMean(**PURE).fit(X, users=PEOPLE)
    for step in (Normalizer(), FunctionTransformer(), PolynomialFeatures().fit(X), "passthrough"):
        assert qr.total_guarantee(make_pipeline(step, mean)) == mean.guarantee_


def test_what_has_no_sum_is_refused():
    scaler = qr.UserScaler(**PURE).fit(X, users=PEOPLE)
    other = qr.UserMean(**PURE, relation=qr.Relation.ADD_REMOVE).fit(X, users=PEOPLE)
    with pytest.raises(RelationMismatchError):
        qr.total_guarantee(make_pipeline(scaler, other))
    with pytest.raises(NotFittedError):
        qr.total_guarantee(make_pipeline(scaler, qr.UserMean(**PURE)))
    with pytest.raises(ParameterError, match="nothing to guarantee"):
        qr.total_guarantee(make_pipeline(FunctionTransformer()))
    search = GridSearchCV(FunctionTransformer(), {"validate": [True]})
    search.best_estimator_ = scaler
    with pytest.raises(ParameterError, match="PrivateGridSearch"):
        qr.total_guarantee(search)


def test_a_promise_that_was_partly_read_from_a_file_costs_what_it_says():
    """A model that goes on from a stored one carries an event that nobody here can price."""
    scaler = qr.UserScaler(**PURE).fit(X, users=PEOPLE)
    mean = qr.UserMean(**PURE).fit(X, users=PEOPLE)
    stored = object()
    mean.guarantee_ = replace(
        mean.guarantee_, epsilon=5.0, events=(stored, *scaler.guarantee_.events)
    )
    assert qr.total_guarantee(make_pipeline(scaler, mean)).epsilon == 5.5
