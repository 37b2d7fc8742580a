"""PrivateMinError: a fit estimates the smallest error of a class and buys what it needs."""

import numpy as np
import pytest
from sklearn.base import clone

from quorate.core.noise import SeededNoise, use_noise
from quorate.core.users import UserData
from quorate.learners import PrivateMinError
from quorate.learners.concepts import FiniteTable, Thresholds


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


@pytest.mark.parametrize("best", [0.65, 0.79, 0.95])
def test_a_class_that_can_only_err_more_than_half_is_told_so(best):
    # A search that starts at [0, 1/2] answers 0.469 wherever the best error is above.
    rng = np.random.default_rng(0)
    rules = FiniteTable([[0, 0, 1, 1], [0, 1, 1, 1]])
    assert not rules.errs_at_most_half
    x = rng.integers(2, 4, 400 * 16)
    wrong = rng.random(len(x)) < best
    data = UserData(x[:, None].astype(float), (~wrong).astype(float), offsets=np.arange(401) * 16)
    with use_noise(SeededNoise(0)):
        search = PrivateMinError(rules, epsilon=4.0, records=16).fit(data)
    assert abs(search.min_error_ - best) <= 0.05
