"""The mean target that a regression begins at."""

import numpy as np
import pytest

from drawing import gaussian_account
from quorate.guarantees import Relation
from quorate.models import LinearRegression
from quorate.models.first_constant import release_first_constant
from quorate.noise import SeededNoise, use_noise
from quorate.releases.user_releases import UserReleases
from quorate.users import UserData

RNG = np.random.default_rng(0)


def people(middle, spread, n=2000, m=3):
    own = RNG.normal(middle, spread, n)
    targets = np.repeat(own, m) + RNG.normal(0.0, spread, n * m)
    return UserData(np.zeros((n * m, 1)), targets, offsets=np.arange(0, n * m + 1, m))


def found(data, reach, relation=Relation.REPLACE, mu=0.25):
    with use_noise(SeededNoise(3)):
        run = UserReleases.start(data, gaussian_account(mu, relation=relation))
        before = run.account.square_left
        constant = release_first_constant(run, reach=reach)
    return constant, float((before - run.account.square_left) / run.account.square)


@pytest.mark.parametrize("relation", list(Relation))
@pytest.mark.parametrize("middle", [-0.95, 0.0, 0.3])
def test_people_are_found_wherever_they_are_in_the_range(middle, relation):
    constant, _ = found(people(middle, 0.02), 1.0, relation)
    assert abs(constant - middle) < 0.05


@pytest.mark.parametrize("middle", [3e-4, -5.0, 7e5])
def test_without_a_range_they_are_looked_for(middle):
    constant, _ = found(people(middle, abs(middle) / 10.0), None)
    assert constant == pytest.approx(middle, rel=0.3)


def test_it_costs_a_few_percent_at_most():
    assert found(people(0.2, 0.1, n=100), 1.0)[1] == pytest.approx(0.06)
    assert found(people(0.2, 0.1, n=20_000), 1.0)[1] < 0.003


def test_values_that_are_no_numbers_move_nobody_else():
    data = people(0.3, 0.02)
    targets = data.y.copy()
    targets[:3], targets[3:6], targets[6:9] = np.nan, np.inf, 1e308
    constant, _ = found(UserData(data.X, targets, offsets=data.offsets), 1.0)
    assert abs(constant - 0.3) < 0.05


def test_a_narrow_target_in_a_wide_range_is_fitted():
    """The noise of first gradients that all point to the mean would drown this."""
    n, m = 400, 8
    rows = RNG.normal(size=(n * m, 10)) * np.repeat([1.0, 0.15], 5)
    targets = 0.5 + 0.05 * rows[:, 0] + 0.04 * RNG.normal(size=n * m)
    people = UserData(rows, targets, offsets=np.arange(0, n * m + 1, m))
    with use_noise(SeededNoise(2)):
        model = LinearRegression(1.0, delta=1e-6, target_bounds=(-1.0, 1.0)).fit(people)
    assert model.algorithm_.name == "few"
    assert np.mean((model.predict(rows) - targets) ** 2) < 0.5 * np.var(targets)
