"""One round of whitening, for few users."""

import numpy as np

from drawing import gaussian_account
from quorate.models.coordinates.one_round import release_in_one_round
from quorate.noise import SeededNoise, use_noise
from quorate.releases.user_releases import UserReleases
from quorate.users import UserData

RNG = np.random.default_rng(1)
MIX = np.array([[3.0, 0.0], [2.0, 0.5]])


def skewed(n=4000, m=3):
    rows = RNG.normal(size=(n * m, 2)) @ MIX.T + [50.0, -20.0]
    return UserData(rows, RNG.normal(size=n * m), offsets=np.arange(0, n * m + 1, m))


def released(data, *, mu=1.0, centred=True):
    with use_noise(SeededNoise(3)):
        run = UserReleases.start(data, gaussian_account(mu))
        return release_in_one_round(run, centred=centred)[0]


def test_the_features_become_round():
    data = skewed()
    shape = released(data, mu=4.0)
    moved = (data.X - shape.centre) @ shape.whitening
    spread = np.linalg.eigvalsh(moved.T @ moved / len(moved))
    assert 0.5 < spread.min() <= spread.max() < 2.0


def test_spread_that_drowns_in_noise_is_left_at_the_size_of_the_noise():
    data = skewed(n=200)
    shape = released(data, mu=0.1)
    moved = (data.X - shape.centre) @ shape.whitening
    assert np.linalg.eigvalsh(moved.T @ moved / len(moved)).max() < 20.0


def test_without_an_intercept_there_is_no_centre():
    assert not released(skewed(), centred=False).centre.any()
