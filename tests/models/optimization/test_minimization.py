"""Private first-order minimisation of any loss."""

import numpy as np
import pytest

from quorate.core.account.account import Account
from quorate.core.account.compose import price
from quorate.core.guarantees import Numerics, Relation
from quorate.core.noise import SeededNoise, use_noise
from quorate.core.users import UserData
from quorate.exceptions import ParameterError, SchemaError
from quorate.models import (
    Adam,
    AveragedDescent,
    ClippedGradients,
    Loss,
    RandomIterateDescent,
    RestartedDescent,
    SquaredLoss,
    WinsorizedGradients,
    minimize,
)
from quorate.models.optimization.minimization import initial_point, with_caveat
from quorate.models.vectorized import Vectorized

RNG = np.random.default_rng(0)
TRUTH = np.array([1.0, -2.0])


def people(n=3000, m=4, unit="patient"):
    rows = RNG.normal(size=(n * m, 2))
    y = rows @ TRUTH + 0.5 * RNG.normal(size=n * m)
    return UserData(rows, y, offsets=np.arange(0, n * m + 1, m), unit=unit)


def fitted(**changes):
    options = {"epsilon": 2.0, "delta": 1e-6, "curvature": 1.0} | changes
    with use_noise(SeededNoise(1)):
        return minimize(people(), SquaredLoss(intercept=False), **options)


@pytest.mark.claim("U5: Algorithm 7")
class TestAccuracy:
    @pytest.mark.parametrize(
        ("optimizer", "steps"),
        [
            (None, None),
            (AveragedDescent(momentum=0.3), None),
            (RestartedDescent(condition=3.0), None),
            (RandomIterateDescent(random_state=1), 20),
            (Adam(learning_rate=0.3), 40),
        ],
        ids=repr,
    )
    def test_every_optimizer_comes_close(self, optimizer, steps):
        assert np.abs(fitted(optimizer=optimizer, steps=steps).theta - TRUTH).max() < 0.4

    def test_under_add_remove_too(self):
        assert np.abs(fitted(relation=Relation.ADD_REMOVE).theta - TRUTH).max() < 0.3

    def test_with_minibatches_too(self):
        assert np.abs(fitted(batch_rate=0.2, steps=15).theta - TRUTH).max() < 0.4

    def test_winsorized_gradients_work_with_a_large_budget(self):
        strategy = WinsorizedGradients(bound=6.0, radius=3.0, random_state=0)
        found = fitted(epsilon=30.0, gradients=strategy, steps=8)
        assert np.abs(found.theta - TRUTH).max() < 0.5

    def test_a_start_at_the_solution_stays_there(self):
        found = fitted(initial=TRUTH, steps=5)
        assert np.abs(found.theta - TRUTH).max() < 0.2

    def test_a_loss_of_your_own_is_enough(self):
        class Median(Loss):
            def dimension(self, n_features):
                return 1

            def user_gradients(self, batch, theta):
                side = np.sign(theta[0] - batch.y)
                sums = np.bincount(batch.user_index(), side, minlength=batch.n_users)
                return (sums / np.maximum(batch.record_counts(), 1))[:, None]

        data = UserData(np.zeros((1500, 1)), RNG.normal(3.0, 1.0, 1500), offsets=np.arange(1501))
        with use_noise(SeededNoise(1)):
            found = minimize(
                data, Median(), epsilon=2.0, delta=1e-6, optimizer=Adam(learning_rate=0.3), steps=40
            )
        assert abs(found.theta[0] - 3.0) < 0.5


class TestPromise:
    def test_a_loss_that_sees_everybody_makes_it_idealized(self):
        promise = Account.open(epsilon=1.0).guarantee()
        found = with_caveat(promise, Vectorized(SquaredLoss()))
        assert found.numerics is Numerics.IDEALIZED
        assert "Vectorized" in str(found)
        assert with_caveat(promise, SquaredLoss()) == promise

    def test_the_guarantee_is_the_budget_and_is_priced(self):
        found = fitted()
        assert (found.guarantee.epsilon, found.guarantee.delta) == (2.0, 1e-6)
        assert found.guarantee.unit == "patient"
        assert found.guarantee.numerics is Numerics.VOID
        cost = price(found.guarantee.events[0], delta=1e-6, relation=Relation.REPLACE)
        assert 1.99 < cost <= 2.0

    def test_with_real_noise_it_is_exact(self):
        found = minimize(
            people(300), SquaredLoss(), epsilon=2.0, delta=1e-6, steps=2, curvature=1.0
        )
        assert found.guarantee.numerics is Numerics.EXACT

    def test_the_trace_holds_released_numbers_only(self):
        found = fitted(steps=5)
        assert [each.step for each in found.trace] == [0, 1, 2, 3, 4]
        assert set(vars(found.trace[0])) == {"step", "radius", "gradient_norm", "noise", "penalty"}


class TestRefusals:
    def test_a_table_is_not_a_user_data(self):
        with pytest.raises(SchemaError, match="UserData"):
            minimize(np.zeros((3, 2)), SquaredLoss(), epsilon=1.0, delta=1e-6)

    def test_a_start_of_the_wrong_length(self):
        with pytest.raises(ParameterError, match="2 finite numbers"):
            initial_point([1.0], 2)
        with pytest.raises(ParameterError, match="finite"):
            initial_point([1.0, np.nan], 2)

    @pytest.mark.parametrize(
        "change",
        [{"steps": 0}, {"curvature": 0.0}, {"records": "few"}, {"delta": 0.0}, {"batch_rate": 2.0}],
        ids=str,
    )
    def test_nonsense(self, change):
        with pytest.raises(ParameterError):
            fitted(**change)

    def test_winsorized_needs_public_records_or_steps(self):
        with pytest.raises(ParameterError, match="whole budget"):
            fitted(gradients=WinsorizedGradients(bound=1.0, radius=1.0))

    def test_clipped_gradients_may_be_named(self):
        assert fitted(gradients=ClippedGradients(radius=2.0), steps=3).trace[0].radius == 2.0
