"""Private regression: accurate, bounded, honest about units."""

import numpy as np
import pytest

from quorate.core.guarantees import Relation
from quorate.core.noise import SeededNoise, use_noise
from quorate.core.users import UserData
from quorate.exceptions import ParameterError, RelationMismatchError, SchemaError
from quorate.models import HuberRegression, LinearRegression, Ridge

RNG = np.random.default_rng(0)
N, M = 3000, 4
X = RNG.normal(size=(N * M, 3)) * [1.0, 10.0, 0.1] + [5.0, -40.0, 2.0]
TRUTH = np.array([2.0, 0.3, -10.0])
Y = X @ TRUTH + 7.0 + 0.5 * RNG.normal(size=N * M)
USERS = np.repeat(np.arange(N), M)


def fitted(kind=LinearRegression, *, y=Y, seed=2, **options):
    with use_noise(SeededNoise(seed)):
        return kind(2.0, **options).fit(X, y, users=USERS)


def error(model):
    return np.mean((model.predict(X) - Y) ** 2) / np.var(Y)


class TestAccuracy:
    @pytest.mark.parametrize("kind", [LinearRegression, HuberRegression])
    def test_skewed_features_are_no_problem(self, kind):
        assert error(fitted(kind)) < 0.1

    def test_public_bounds_help_or_do_no_harm(self):
        bounds = ([0.0, -100.0, 1.0], [10.0, 20.0, 3.0])
        model = fitted(bounds=bounds, target_bounds=(-40.0, 20.0))
        assert error(model) < 0.1
        assert model.coef_ == pytest.approx(TRUTH, rel=0.5)

    def test_without_an_intercept_zero_stays_zero(self):
        y = X @ TRUTH
        model = fitted(y=y, fit_intercept=False, target_bounds=(-60.0, 20.0))
        assert model.intercept_ == 0.0
        assert np.mean((model.predict(X) - y) ** 2) < 0.1 * np.mean(y**2)

    def test_under_add_remove_too(self):
        assert error(fitted(relation=Relation.ADD_REMOVE)) < 0.1

    @pytest.mark.parametrize("kind", [LinearRegression, HuberRegression])
    def test_with_samples_of_users_it_ends_within_its_budget(self, kind):
        model = fitted(kind, batch_rate=0.2, steps=10)
        assert model.guarantee_.epsilon == 2.0
        assert error(model) < 0.3

    def test_with_little_signal_it_is_about_a_constant(self):
        rows = RNG.normal(size=(300, 10))
        y = rows @ np.ones(10) * 0.1 + RNG.normal(size=300)
        ratios = []
        for seed in range(10):
            with use_noise(SeededNoise(seed)):
                model = LinearRegression(1.0).fit(rows, y, users=np.arange(300))
            ratios.append(np.mean((model.predict(rows) - y) ** 2) / np.var(y))
        assert np.mean(ratios) < 1.3

    def test_more_records_help_at_a_fixed_number_of_users(self):
        errors = []
        for m in (1, 64):
            rows = RNG.normal(size=(800 * m, 10))
            y = rows @ np.ones(10) + 3.0 * RNG.normal(size=800 * m)
            found = []
            for seed in range(4):
                with use_noise(SeededNoise(seed)):
                    model = LinearRegression(1.0).fit(rows, y, users=np.repeat(np.arange(800), m))
                found.append(np.sum((model.coef_ - 1.0) ** 2))
            errors.append(np.mean(found))
        assert errors[1] < errors[0] / 8


class TestRidge:
    def test_a_penalty_shrinks(self):
        bounds = ([0.0, -100.0, 1.0], [10.0, 20.0, 3.0])
        free = fitted(bounds=bounds, target_bounds=(-40.0, 20.0))
        pulled = fitted(Ridge, bounds=bounds, target_bounds=(-40.0, 20.0), penalty=10.0)
        assert np.abs(pulled.coef_).max() < 0.2 * np.abs(free.coef_).max()

    def test_it_solves_the_penalised_problem(self):
        rows = RNG.normal(size=(N * M, 2))
        y = rows @ [1.0, -2.0]
        with use_noise(SeededNoise(1)):
            model = Ridge(8.0, penalty=1.0, fit_intercept=False).fit(rows, y, users=USERS)
        assert model.coef_ == pytest.approx([0.5, -1.0], abs=0.1)


class TestHuber:
    def test_outliers_in_the_target_do_not_drag_it(self):
        y = Y + 1000.0 * (np.arange(Y.size) % 50 == 0)
        huber, squares = (fitted(kind, y=y) for kind in (HuberRegression, LinearRegression))
        assert abs(np.median(huber.predict(X) - Y)) < abs(np.median(squares.predict(X) - Y))

    def test_the_width_is_in_units_of_the_target(self):
        model = HuberRegression(width=3.0, target_bounds=(0.0, 60.0))
        assert model._loss().width == pytest.approx(0.1)

    def test_a_width_must_be_positive(self):
        with pytest.raises(ParameterError, match="width"):
            fitted(HuberRegression, width=-1.0)


class TestTarget:
    def test_predictions_stay_in_the_public_range(self):
        model = fitted(target_bounds=(-20.0, -10.0))
        assert np.all((model.predict(X * 100) >= -20.0) & (model.predict(X * 100) <= -10.0))

    def test_a_giant_target_moves_nothing_much(self):
        y = Y.copy()
        y[:M] = 1e300
        assert error(fitted(y=y)) < 0.1

    def test_it_is_needed(self):
        with pytest.raises(SchemaError, match="requires y"):
            LinearRegression().fit(UserData(X, offsets=np.arange(0, N * M + 1, M)))

    @pytest.mark.parametrize("bounds", [(1.0, 1.0), (2.0, 1.0), (0.0, np.inf), "wide"])
    def test_a_range_without_sense_is_refused(self, bounds):
        with pytest.raises(ParameterError):
            fitted(target_bounds=bounds)


class TestWarmStart:
    def test_it_continues_where_the_last_fit_ended(self):
        options = {"target_bounds": (-40.0, 20.0), "bounds": (-100.0, 20.0), "steps": 1}
        with use_noise(SeededNoise(1)):
            model = LinearRegression(8.0, warm_start=True, **options)
            errors = [error(model.fit(X, Y, users=USERS)) for _ in range(6)]
        assert errors[-1] < errors[0]

    def test_its_promise_covers_the_fits_it_went_on_from(self):
        model = fitted(warm_start=True)
        once = model.guarantee_
        twice = model.fit(X, Y, users=USERS).guarantee_
        assert twice.epsilon == 2 * once.epsilon
        assert twice.delta == 2 * once.delta
        assert len(twice.events) == 2
        cold = fitted()
        assert cold.fit(X, Y, users=USERS).guarantee_.epsilon == once.epsilon

    def test_a_fit_that_hides_other_neighbours_is_not_gone_on_from(self):
        model = fitted(warm_start=True).set_params(relation=Relation.ADD_REMOVE)
        with pytest.raises(RelationMismatchError):
            model.fit(X, Y, users=USERS)

    def test_another_number_of_features_is_refused(self):
        model = fitted(warm_start=True)
        with pytest.raises(ParameterError, match="warm_start"):
            model.fit(X[:, :2], Y, users=USERS)
