"""Training by the posterior of a minimum: from people to parameters, and back to a constant."""

import math

import numpy as np
import pytest

from drawing import gaussian_account
from quorate.core.guarantees import Relation
from quorate.core.noise import SeededNoise, use_noise
from quorate.core.users import UserData
from quorate.models.coordinates.geometry import Geometry, WhitenedLoss
from quorate.models.losses import LogisticLoss
from quorate.models.optimization.training import Start, constant_share, train, train_constant
from quorate.models.regression_losses import SquaredLoss
from sealing import start_run

RNG = np.random.default_rng(0)


def targets_of(middle, spread, n=2000, m=3):
    own = np.repeat(RNG.normal(middle, spread, n), m)
    targets = own + RNG.normal(0.0, spread, n * m)
    return UserData(np.zeros((n * m, 1)), targets, offsets=np.arange(0, n * m + 1, m))


@pytest.mark.parametrize("relation", list(Relation))
@pytest.mark.parametrize("middle", [-0.95, 0.0, 0.3])
def test_the_mean_target_is_found_wherever_it_is(middle, relation):
    with use_noise(SeededNoise(3)):
        run = start_run(targets_of(middle, 0.02), gaussian_account(0.25, relation=relation))
        before = run.account.square_left
        found, _ = train_constant(run, reach=1.0, share=0.05)
    assert abs(found.mean[0] - middle) < 0.05
    spent = float((before - run.account.square_left) / run.account.square)
    assert spent == pytest.approx(0.05, rel=1e-6)


def test_the_error_of_the_mean_target_is_that_of_its_noise():
    data, errors = targets_of(0.2, 0.05, n=400), []
    truth = float(np.mean(data.y))
    for seed in range(40):
        with use_noise(SeededNoise(seed)):
            run = start_run(data, gaussian_account(0.25))
            found, _ = train_constant(run, reach=1.0, share=0.05)
        errors.append((found.mean[0] - truth) / math.sqrt(found.variance[0]))
    assert 0.4 < np.sqrt(np.mean(np.square(errors))) < 1.5


def trained(people, start, loss, *, mu=0.25, relation=Relation.REPLACE, seed=0, **known):
    size = people.n_features
    with use_noise(SeededNoise(seed)):
        run = start_run(people, gaussian_account(mu, relation=relation))
        geometry = Geometry(np.zeros(size), np.eye(size))
        found = train(run, WhitenedLoss(loss, geometry), start, **known)
        left = float(run.account.square_left / run.account.square)
    return found, left


def numbers(n=2000, m=4, size=3):
    X = RNG.normal(size=(n * m, size))
    y = X @ np.full(size, 0.5) + 0.3 * RNG.normal(size=n * m)
    return UserData(X, y, offsets=np.arange(0, n * m + 1, m))


@pytest.mark.parametrize("relation", list(Relation))
def test_all_of_the_account_is_spent_and_coefficients_are_found(relation):
    start = Start(constant=np.zeros(1), variance=0.01, slope=1.0)
    found, left = trained(numbers(), start, SquaredLoss(), relation=relation)
    assert left < 1e-6
    np.testing.assert_allclose(found.theta, [0.5, 0.5, 0.5, 0.0], atol=0.1)
    assert np.abs(found.covariance).max() < 0.01
    assert len(found.trace) == 20


def test_where_nothing_is_shown_the_constant_stays():
    """The noise of one step with all of the account is as long as all that could be found."""
    people = UserData(RNG.normal(size=(300, 30)), RNG.normal(size=300), offsets=np.arange(301))
    start = Start(constant=np.zeros(1), variance=0.01, slope=1.0)
    lengths = [
        np.linalg.norm(trained(people, start, SquaredLoss(), seed=seed)[0].theta[:-1])
        for seed in range(6)
    ]
    assert np.median(lengths) < 0.1


@pytest.mark.parametrize("share", [0.03, 0.5])
def test_labels_are_predicted_as_often_as_they_are_held(share):
    """A clip takes most from those who hold a rare label: without the last look it is lost."""
    n, odds = 4000, math.log(share / (1.0 - share))
    people = UserData(
        RNG.normal(size=(n, 2)), (RNG.random(n) < share) * 1.0, offsets=np.arange(n + 1)
    )
    start = Start(
        constant=np.array([odds]),
        variance=0.04,
        slope=1.0,
        shares=np.array([1.0 - share, share]),
    )
    found, _ = trained(people, start, LogisticLoss())
    assert 1.0 / (1.0 + math.exp(-found.theta[-1])) == pytest.approx(share, rel=0.4)


def test_a_stronger_penalty_leaves_shorter_coefficients():
    start = Start(constant=np.zeros(1), variance=0.01, slope=1.0)
    free, held = (
        trained(numbers(), start, SquaredLoss(), penalty=penalty)[0].theta for penalty in (0.0, 1.0)
    )
    np.testing.assert_allclose(held[:-1], free[:-1] / 2.0, atol=0.08)


def test_a_constant_of_few_costs_at_most_what_is_allowed():
    people = UserData(np.zeros((100, 1)), offsets=np.arange(101))
    run = start_run(people, gaussian_account(0.25))
    assert constant_share(run, most=0.25) == 0.25


class TestEarlierFits:
    """Where an earlier fit ended counts as one more gradient, and as none if others disagree."""

    def test_a_good_one_leaves_less_noise(self):
        start = Start(constant=np.zeros(1), variance=0.01, slope=1.0)
        people, truth = numbers(n=300), np.array([0.5, 0.5, 0.5, 0.0])

        def error(**known):
            found = (
                trained(people, start, SquaredLoss(), seed=seed, **known)[0] for seed in range(6)
            )
            return np.mean([np.sum((each.theta - truth) ** 2) for each in found])

        cold, warm = error(), error(before=(truth, 0.01))
        assert warm < 0.5 * cold

    @pytest.mark.parametrize("away", [3.0, 300.0])
    def test_a_wrong_one_is_forgotten(self, away):
        start = Start(constant=np.zeros(1), variance=0.01, slope=1.0)
        found, _ = trained(numbers(), start, SquaredLoss(), before=(np.full(4, away), 1e-3))
        np.testing.assert_allclose(found.theta, [0.5, 0.5, 0.5, 0.0], atol=0.1)
        assert np.abs(found.covariance).max() < 0.01
