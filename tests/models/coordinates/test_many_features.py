"""Many features are brought to one scale, and the directions they share are found."""

import numpy as np
import pytest

from quorate import UserData
from quorate.core.account.account import Account
from quorate.core.noise import SeededNoise, use_noise
from quorate.core.people import People
from quorate.mechanisms.user_releases import UserReleases
from quorate.models import LinearRegression, LogisticRegression
from quorate.models.coordinates.many_features import AlongDirections, MeanSquares, release_of_many

FEATURES = 120


def people(n=4000, m=3, *, common=0.0, scales=1.0, seed=0):
    rng = np.random.default_rng(seed)
    rows = rng.standard_normal((n * m, FEATURES)) + common * rng.standard_normal((n * m, 1))
    return UserData(rows * scales + 3.0, offsets=np.arange(0, n * m + 1, m))


def spreads(data, *, epsilon=3.0, seed=0):
    account = Account.open(epsilon=epsilon, delta=1e-6, noise=SeededNoise(seed))
    run = UserReleases.start(People(data, account.relation), account)
    shape, _ = release_of_many(run, centred=True)
    # Predictions take coefficients back by the same matrix.
    np.testing.assert_allclose(shape.whitening, shape.whitening.T)
    # Predictions take coefficients back by the same matrix.
    np.testing.assert_allclose(shape.whitening, shape.whitening.T)
    moved = (data.X - shape.centre) @ shape.whitening
    return np.linalg.eigvalsh(moved.T @ moved / len(moved))


def test_features_that_spread_alike_become_round():
    found = spreads(people())
    # What the noise leaves of the way to the centre, some .2 a feature, counts as spread.
    assert 0.4 < found.min() <= found.max() < 4.0


def test_a_common_factor_is_found_and_shortened():
    data = people(common=1.0)
    raw = np.linalg.eigvalsh(np.cov(data.X.T))
    assert raw.max() > 100 * np.median(raw)
    found = spreads(data)
    assert found.max() < 12 * np.median(found)


def test_features_of_other_scales_are_brought_to_one():
    scales = np.geomspace(1e-2, 1e2, FEATURES)
    found = spreads(people(scales=scales), epsilon=10.0)
    # Squares of a large feature hide those of a small one, which is left shorter and never longer.
    assert found.max() < 2.5
    assert np.mean(found > 0.3) > 0.25


def test_a_common_factor_of_features_of_other_scales_is_shortened_too():
    scales = np.geomspace(0.1, 10.0, FEATURES)
    raw = spreads(people(scales=scales, common=0.0), epsilon=10.0)
    found = spreads(people(scales=scales, common=1.0), epsilon=10.0)
    # It is 120 times as long as the rest where all have one scale.
    assert found.max() < 3.0 * raw.max()


@pytest.mark.parametrize("value", [0.0, 1e150, np.nan])
def test_extreme_features_do_no_harm(value):
    data = UserData(np.full((300, FEATURES), value), offsets=np.arange(301))
    account = Account.open(epsilon=1.0, delta=1e-6, noise=SeededNoise(0))
    run = UserReleases.start(People(data, account.relation), account)
    assert np.all(np.isfinite(release_of_many(run, centred=True)[0].whitening))


@pytest.mark.parametrize(
    "vectors",
    [MeanSquares(np.zeros(FEATURES)), AlongDirections(np.eye(FEATURES)[:, :4])],
    ids=["squares", "directions"],
)
def test_the_row_of_a_user_is_the_same_alone(vectors):
    data = people(n=40, m=3)
    together = vectors(data)
    for user in (0, 17, 39):
        assert np.array_equal(vectors(data.take([user]))[0], together[user])


def test_a_product_along_directions_is_that_of_the_second_moment():
    data = people(n=5, m=4)
    directions = np.random.default_rng(1).standard_normal((FEATURES, 3))
    found = AlongDirections(directions)(data).reshape(5, FEATURES, 3)
    for user in range(5):
        rows = data.take([user]).X
        np.testing.assert_allclose(found[user], rows.T @ rows @ directions / 4, rtol=1e-6)


@pytest.mark.parametrize("common", [0.0, 1.0])
def test_models_of_many_features_learn(common):
    """With one number for all of them .8 of what a constant misses was left at this size."""
    rng = np.random.default_rng(5)
    data = people(n=5000, m=5, common=common)
    weights = rng.standard_normal(FEATURES)
    signal = (data.X - 3.0) @ weights
    signal /= signal.std()
    ids = np.repeat(np.arange(5000), 5)
    with use_noise(SeededNoise(3)):
        model = LinearRegression(2.0, delta=1e-6, target_bounds=(-5.0, 5.0))
        model.fit(data.X, signal + 0.3 * rng.standard_normal(25_000), users=ids)
    assert np.mean((model.predict(data.X) - signal) ** 2) < 0.25
    labels = (signal + 0.3 * rng.standard_normal(25_000) > 0).astype(int)
    with use_noise(SeededNoise(4)):
        model = LogisticRegression(2.0, delta=1e-6, classes=[0, 1]).fit(data.X, labels, users=ids)
    assert np.mean(model.predict(data.X) == (signal > 0)) > 0.85
