"""PrivateMinError: a fit estimates the smallest error of a class and buys what it needs."""

import numpy as np
from sklearn.base import clone

from quorate.concepts import Thresholds
from quorate.learners import PrivateMinError
from quorate.noise import SeededNoise, use_noise
from quorate.users import UserData


def noisy_people(n, m, error, seed):
    """Draw labels that the first rule gets wrong with probability ``error``."""
    rng = np.random.default_rng(seed)
    x = rng.integers(0, 4, n * m)
    y = (x >= 2) ^ (rng.random(n * m) < error)
    return UserData(x.reshape(-1, 1).astype(float), y.astype(float), offsets=np.arange(n + 1) * m)


def test_a_class_without_noise_has_no_error():
    search = PrivateMinError(Thresholds(0, 3), epsilon=8.0, records=8)
    assert search.fit(noisy_people(200, 8, 0.0, 0)).min_error_ < 0.06


def test_records_may_be_bought():
    search = PrivateMinError(Thresholds(0, 3), epsilon=8.0).fit(noisy_people(200, 8, 0.2, 0))
    assert search.records_.lower == 8
    assert abs(search.min_error_ - 0.2) < 0.1


def test_published_constants_run():
    search = PrivateMinError(Thresholds(0, 3), epsilon=8.0, records=8, constants="published")
    with use_noise(SeededNoise(0)):
        assert 0.0 <= clone(search).fit(noisy_people(200, 8, 0.2, 0)).min_error_ <= 1.0
