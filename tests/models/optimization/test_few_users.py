"""The plan for few users: a scale, a centre where it can be seen, and when it is taken."""

import numpy as np
import pytest

from drawing import gaussian_account
from quorate.guarantees import Relation
from quorate.models import LinearRegression, LogisticRegression
from quorate.models.class_losses import SoftmaxLoss
from quorate.models.coordinates.geometry import Geometry
from quorate.models.losses import LogisticLoss
from quorate.models.optimization.few_users import (
    few_user_steps,
    longest_start,
    release_misfit,
    release_scale,
)
from quorate.models.optimization.gradients import has_few_users
from quorate.models.regression_losses import SquaredLoss
from quorate.noise import SeededNoise, use_noise
from quorate.users import UserData
from sealing import start_run

MU = 0.2367


def scale_of(rows, mu=1.0, seed=0, **options):
    data = UserData(rows, offsets=np.arange(0, len(rows) + 1, 4))
    with use_noise(SeededNoise(seed)):
        run = start_run(data, gaussian_account(mu, **options))
        return run, release_scale(run, centred=True)


class TestScale:
    @pytest.mark.parametrize("size", [1e-4, 1.0, 3e3])
    @pytest.mark.parametrize("relation", list(Relation))
    def test_a_typical_record_has_unit_coordinates(self, size, relation):
        rows = size * np.random.default_rng(1).normal(size=(1600, 3))
        _, shape = scale_of(rows, relation=relation)
        assert 0.5 < float(shape.whitening) * size < 1.3

    def test_a_centre_is_found_where_it_can_be_seen(self):
        rows = np.random.default_rng(1).normal(5.0, 1.0, size=(1600, 3))
        _, shape = scale_of(rows)
        assert np.abs(shape.centre - 5.0).max() < 1.0
        assert 0.3 < float(shape.whitening) < 1.3

    def test_few_users_pay_for_none(self):
        rows = np.random.default_rng(1).normal(5.0, 1.0, size=(800, 20))
        run, shape = scale_of(rows, mu=MU)
        assert not shape.centre.any()
        assert float(run.account.square_left / run.account.square) > 0.85

    @pytest.mark.parametrize("value", [0.0, np.nan, 1e308, -np.inf])
    def test_extreme_features_do_no_harm(self, value):
        _, shape = scale_of(np.full((400, 2), value))
        assert 0.0 < float(shape.whitening) < np.inf
        assert np.all(np.isfinite(shape.centre))


class TestPlan:
    def test_it_is_taken_up_to_a_number_of_users(self):
        known = {"mu": MU, "dimension": 21, "relation": Relation.REPLACE, "records": lambda: 9.0}
        assert has_few_users(n_users=670, **known)
        assert not has_few_users(n_users=670, **known | {"records": lambda: 1.0})
        assert has_few_users(n_users=200, **known | {"records": lambda: 1.0})
        assert not has_few_users(n_users=690, **known)
        assert not has_few_users(n_users=350, **known | {"relation": Relation.ADD_REMOVE})

    def test_steps_grow_with_the_signal(self):
        known = {"mu": MU, "dimension": 21, "relation": Relation.REPLACE}
        assert few_user_steps(n_users=150, **known) < few_user_steps(n_users=600, **known)

    def test_classifiers_know_how_long_a_first_gradient_can_be(self):
        assert longest_start(LogisticLoss()) == pytest.approx(0.3)
        assert 0.4 < longest_start(SoftmaxLoss(classes=10)) < 0.6


class TestMisfit:
    def missed(self, targets, *, guess):
        """Return the middle of five, as one look in a hundred and sixty errs."""
        data = UserData(np.zeros((800, 1)), targets, offsets=np.arange(0, 801, 4))
        plain, at = Geometry(np.zeros(1), np.ones(())), np.array([0.0, 3.0])
        with use_noise(SeededNoise(1)):
            runs = [start_run(data, gaussian_account(0.5)) for _ in range(5)]
            found = [release_misfit(run, SquaredLoss(), plain, at, guess=guess) for run in runs]
        return float(np.median(found))

    @pytest.mark.parametrize("guess", [0.01, 1.0, 100.0])
    def test_it_is_found_from_any_guess(self, guess):
        targets = np.random.default_rng(0).normal(3.0, 0.2, 800)
        assert 0.1 <= self.missed(targets, guess=guess) <= 0.8

    def test_what_records_miss_counts_and_not_their_mean(self):
        assert self.missed(np.tile([1.0, 5.0], 400), guess=1.0) >= 1.0

    def test_values_that_are_no_numbers_are_quiet(self):
        targets = np.full(800, 3.2)
        targets[:8], targets[8:16] = np.nan, 1e300
        assert self.missed(targets, guess=1.0) < 1.0


class TestFits:
    def data(self, n=250, m=20, noise=0.0):
        rng = np.random.default_rng(2)
        rows = rng.normal(size=(n * m, 3))
        target = np.tanh(rows @ [1.0, -1.0, 0.5])
        return rows, target, np.repeat(np.arange(n), m)

    def test_a_classifier_learns_from_few_users(self):
        rows, target, users = self.data()
        with use_noise(SeededNoise(0)):
            model = LogisticRegression().fit(rows, target > 0, users=users)
        assert model.algorithm_.name == "few"
        assert model.score(rows, target > 0) > 0.9

    @pytest.mark.parametrize("bounds", [None, (-1.0, 1.0)])
    def test_a_regression_learns_from_few_users(self, bounds):
        rows, target, users = self.data()
        with use_noise(SeededNoise(0)):
            model = LinearRegression(target_bounds=bounds).fit(rows, target, users=users)
        assert model.algorithm_.name == "few"
        assert model.score(rows, target) > 0.6

    @pytest.mark.parametrize("seed", range(6))
    def test_no_regression_of_the_fewest_is_much_worse_than_a_constant(self, seed):
        """A clip a thousand times too wide left one with 19,000 times the variance."""
        rng = np.random.default_rng(seed)
        n, m = 150, 8
        rows = rng.normal(size=(n * m, 8)) + 2.0 * rng.normal(size=(n * m, 1)) + 3.0
        target = rows[:, 0] - rows[:, 1] + np.repeat(rng.normal(5.0, 2.0, n), m)
        with use_noise(SeededNoise(seed)):
            model = LinearRegression().fit(rows, target, users=np.repeat(np.arange(n), m))
        assert np.mean((model.predict(rows) - target) ** 2) < 1.6 * np.var(target)

    @pytest.mark.parametrize("seed", range(4))
    def test_few_users_with_some_records_are_not_taken_for_noise(self, seed):
        """One fit in ten was a constant, and worse than one without privacy."""
        rng = np.random.default_rng(seed)
        n, m = 150, 10
        rows = rng.normal(size=(n * m, 20))
        score = rows @ rng.normal(size=20) * 0.5
        labels = rng.random(n * m) < 1.0 / (1.0 + np.exp(-score))
        with use_noise(SeededNoise(seed)):
            model = LogisticRegression().fit(rows, labels, users=np.repeat(np.arange(n), m))
        fitted = rows @ model.coef_[0] + model.intercept_[0]
        assert model.algorithm_.name == "few"
        assert np.mean(np.logaddexp(0.0, fitted) - labels * fitted) < 0.65

    def test_weak_labels_of_many_records_are_not_taken_for_noise(self):
        """Three in four of these fits were constants: their way was no longer than noise's."""
        n, m = 300, 60

        def name(seed):
            rng = np.random.default_rng(seed)
            rows = rng.normal(size=(n * m, 20))
            likely = 1.0 / (1.0 + np.exp(-rows @ np.full(20, 0.11)))
            labels = (rng.random(n * m) < likely).astype(float)
            people = UserData(rows, labels, offsets=np.arange(0, n * m + 1, m))
            with use_noise(SeededNoise(seed)):
                return LogisticRegression().fit(people).algorithm_.name

        assert [name(seed) for seed in range(6)].count("few") >= 4

    @pytest.mark.parametrize("seed", range(5))
    def test_labels_that_nothing_explains_give_a_constant(self, seed):
        rng = np.random.default_rng(seed)
        rows, users = rng.normal(size=(150, 20)), np.arange(150)
        labels = rng.random(150) < 0.8
        with use_noise(SeededNoise(seed)):
            model = LogisticRegression().fit(rows, labels, users=users)
        assert model.algorithm_.name == "constant"
        assert not model.coef_.any()
        assert abs(model.intercept_[0] - np.log(4.0)) < 1.2
        assert model.guarantee_.epsilon == 1.0

    def test_giving_up_on_a_warm_start_is_paid_for_by_both_fits(self, monkeypatch):
        """Where the descent began decides whether it is given up, so the promise is of both."""
        rows, target, users = self.data()
        with use_noise(SeededNoise(0)):
            model = LogisticRegression(warm_start=True).fit(rows, target > 0, users=users)
            assert model.guarantee_.epsilon == 1.0
            monkeypatch.setattr(LogisticRegression, "_worth", lambda self: 1e-9)
            model.fit(rows, target > 0, users=users)
        assert model.algorithm_.name == "constant"
        assert model.guarantee_.epsilon == 2.0
        assert len(model.guarantee_.events) == 2
