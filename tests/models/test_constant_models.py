"""Models that end as a constant: its value, its errors, and all of the budget for it."""

import numpy as np

from quorate import LinearRegression, LogisticRegression
from quorate.core.account.compose import price
from quorate.core.guarantees import compose_events
from quorate.core.noise import SeededNoise, use_noise

RNG = np.random.default_rng(0)


def test_with_too_few_users_a_constant_can_be_asked_for():
    rows, y = RNG.normal(size=(40, 3)), RNG.normal(2.0, 1.0, size=40)
    found = []
    for seed in range(10):
        with use_noise(SeededNoise(seed)):
            model = LinearRegression(1.0, target_bounds=(-10.0, 10.0), hopeless="constant")
            model.fit(rows, y, users=np.arange(40))
        assert not model.coef_.any()
        found.append(model.intercept_)
    # Noise of 2 x 10 / (40 x 0.2367) each; ten of them beyond 5 standard errors: 1e-6.
    assert abs(np.mean(found) - 2.0) < 5 * 20 / (40 * 0.2367) / np.sqrt(10)


def test_a_constant_of_labels_says_how_often_they_occur():
    rows, y = RNG.normal(size=(400, 3)), np.repeat([1, 0, 0, 0], 100)
    with use_noise(SeededNoise(0)):
        model = LogisticRegression(0.5, hopeless="constant").fit(
            rows, y, users=np.arange(400) % 200
        )
    assert model.algorithm_.name == "constant"
    assert not model.coef_.any()
    assert not model.error_.stated
    assert model.trace_ == ()
    # 200 users at mu = 0.13: a share of one quarter has noise of 0.04.
    assert abs(model.predict_proba(rows[:1])[0, 1] - 0.25) < 0.2


def test_it_has_all_of_the_budget():
    rows, y = RNG.normal(size=(40, 3)), RNG.normal(size=40)
    model = LinearRegression(1.0, target_bounds=(-10.0, 10.0), hopeless="constant")
    model.fit(rows, y, users=np.arange(40))
    event = compose_events(model.guarantee_.events)
    assert 0.99 < price(event, delta=model.delta, relation=model.relation) <= 1.0
