"""The constant model: shares of labels, and people without records."""

import numpy as np
import pytest

from quorate.core.guarantees import Relation
from quorate.core.noise import SeededNoise, use_noise
from quorate.core.users import UserData
from quorate.models import LinearRegression, LogisticRegression
from quorate.models.first_constant import posterior_share


@pytest.mark.parametrize("model", [LinearRegression, LogisticRegression])
@pytest.mark.parametrize("relation", list(Relation))
def test_a_constant_is_that_of_those_who_are_there(model, relation):
    """Half of 600 people have no record; taken for the middle they would halve the answer."""
    counts = np.tile([2, 0], 300)
    data = UserData(np.zeros((600, 600)), np.ones(600), offsets=np.r_[0, np.cumsum(counts)])
    told = {"target_bounds": (-2.0, 2.0)} if model is LinearRegression else {}
    with use_noise(SeededNoise(0)):
        fitted = model(hopeless="constant", records=2, relation=relation, **told).fit(data)
    assert fitted.algorithm_.name == "constant"
    if model is LinearRegression:
        assert abs(fitted.intercept_ - 1.0) < 0.2
    else:
        assert fitted.predict_proba(np.zeros((1, 600)))[0, 1] > 0.9


@pytest.mark.parametrize("share", [0.02, 0.3, 0.97])
@pytest.mark.parametrize("noise", [0.001, 0.05, 0.3])
def test_a_posterior_share_is_right_on_average(share, noise):
    """Of shares that are as likely everywhere, those around what was said have this mean."""
    rng = np.random.default_rng(0)
    truth = rng.random(400_000)
    said = truth + noise * rng.normal(size=truth.size)
    near = np.abs(said - share) < max(0.2 * noise, 0.002)
    mean, _ = posterior_share(share, noise)
    error = 5.0 * truth[near].std() / np.sqrt(near.sum()) + 0.002
    assert mean == pytest.approx(truth[near].mean(), abs=error)


@pytest.mark.parametrize("share", [-1e9, -0.5, 0.0, 1.0, 1.5, 1e9])
def test_log_odds_of_any_share_are_finite(share):
    mean, spread = posterior_share(share, 0.05)
    assert 0.0 < mean < 1.0
    assert 0.0 < spread < 10.0


def test_less_noise_makes_a_share_surer():
    spreads = [posterior_share(0.2, noise)[1] for noise in (0.2, 0.05, 0.01)]
    assert spreads == sorted(spreads, reverse=True)
