"""What noise did to coefficients: propagated as it should be, held, and from released numbers."""

import math
import pickle
from unittest import mock

import numpy as np
import pytest

from quorate import (
    HuberRegression,
    LinearRegression,
    LinearSVC,
    LogisticRegression,
    PrivateGridSearch,
    Ridge,
)
from quorate.auditing import replay
from quorate.models import base
from quorate.models.class_losses import ClassWeighted, SoftmaxLoss
from quorate.models.coefficients import CoefficientError
from quorate.models.losses import LogisticLoss
from quorate.models.optimization import descent_noise, few_users
from quorate.models.optimization.descent import AveragedDescent, OptimizerState
from quorate.models.optimization.descent_noise import (
    error_of_covariance,
    noise_covariance,
    released_curvature,
)
from quorate.models.optimization.gradients import DescentStep, gradients_at
from quorate.noise import SeededNoise, use_noise
from quorate.users import UserData

RNG = np.random.default_rng(7)


def crowd(n=2000, m=4, d=2, *, labels=False, seed=0, scale=1.0):
    rng = np.random.default_rng([seed, n, m, d])
    X = 1.0 + scale * rng.normal(size=(n * m, d)) @ (np.eye(d) + 0.4)
    y = X @ np.linspace(1.0, -1.0, d) / scale + rng.normal(size=n * m)
    y = (y > 0).astype(float) if labels else y
    return UserData(X, y, offsets=np.arange(0, n * m + 1, m))


def quiet_descent(curvature, steps, *, noises, shrinkages, size, seed):
    """Return the end of a descent on a quadratic and its path, with noise and then without."""
    rng = np.random.default_rng(seed)
    ends, path = [], []
    for loud in (1.0, 0.0):
        descent = AveragedDescent()
        state = OptimizerState.start(np.zeros(size), steps=steps)
        for noise, shrinkage in zip(noises, shrinkages, strict=True):
            theta = descent.query(state)
            gradient = curvature @ (theta - 1.0) + loud * noise * rng.normal(size=size)
            if loud:
                path.append(
                    DescentStep(
                        theta=theta,
                        gradient=gradient,
                        noise=noise,
                        curvature=1.0,
                        shrinkage=shrinkage,
                    )
                )
            state = descent.update(
                state, gradient + shrinkage * theta, curvature=1.0, precision=1.0 / noise**2
            )
        ends.append(descent.aggregate(state))
    return ends[0] - ends[1], path


class TestPropagation:
    curvature = np.diag([1.0, 0.5, 0.1])
    noises = np.linspace(0.3, 0.2, 20)
    shrinkages = np.linspace(0.05, 0.02, 20)

    def errors(self, count):
        return [
            quiet_descent(
                self.curvature,
                20,
                noises=self.noises,
                shrinkages=self.shrinkages,
                size=3,
                seed=seed,
            )
            for seed in range(count)
        ]

    def test_the_covariance_is_that_of_the_optimiser_itself(self):
        runs = self.errors(500)
        moved = np.array([error for error, _ in runs])
        told = noise_covariance(
            runs[0][1], self.curvature, descent=AveragedDescent(), shrunk=np.ones(3)
        )
        # A variance of 500 normal numbers is off by 6 %; the seeds are fixed.
        np.testing.assert_allclose(np.diagonal(told), moved.var(axis=0), rtol=0.2)
        np.testing.assert_allclose(told, told.T)

    @pytest.mark.parametrize("steps", [2, 9, 70])
    def test_it_is_what_each_step_s_noise_makes_of_the_average(self, steps):
        """Step by step, forwards; of 70 steps the products are made in shares."""
        rng, size, descent = np.random.default_rng(steps), 21, AveragedDescent()
        root = rng.normal(size=(size, size)) / size
        curvature, shrunk = root @ root.T, np.append(np.ones(size - 1), 0.0)
        path = [
            DescentStep(theta=np.zeros(size), gradient=np.zeros(size), noise=noise, curvature=bent,
                        shrinkage=shrinkage)
            for noise, bent, shrinkage in rng.uniform(0.2, 0.9, size=(steps, 3))
        ]  # fmt: skip
        tail = math.ceil((1.0 - descent.tail) * steps)
        weights = [path[-1].noise ** 2 / step.noise**2 for step in path]
        expected = np.zeros((size, size))
        for first, step in enumerate(path):
            moved, average = np.eye(size) * descent.step_size / step.curvature * step.noise, 0.0
            for place in range(first, steps):
                rate = descent.step_size / path[place].curvature
                if place > first:
                    pull = np.eye(size) - rate * path[place].shrinkage * np.diag(shrunk)
                    moved = (pull - rate * curvature) @ moved
                average = average + (weights[place] * moved if place >= tail else 0.0)
            expected += average @ average.T / sum(weights[tail:]) ** 2
        found = noise_covariance(path, curvature, descent=descent, shrunk=shrunk)
        np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-12 * expected.max())

    def test_a_twin_that_forgets_the_early_steps_is_seen(self):
        runs = self.errors(300)
        moved = np.array([error for error, _ in runs])
        late = noise_covariance(
            runs[0][1][10:], self.curvature, descent=AveragedDescent(tail=1.0), shrunk=np.ones(3)
        )
        assert np.diagonal(late)[2] < 0.7 * moved.var(axis=0)[2]

    def test_released_gradients_show_the_curvature(self):
        for level in (0.3, 0.8):
            _, path = quiet_descent(
                level * np.eye(20), 40, noises=np.full(40, 0.1), shrinkages=np.zeros(40), size=20,
                seed=1,
            )  # fmt: skip
            found = released_curvature(path, expected=np.eye(20), step_size=1.2)
            assert 0.5 * level < np.diagonal(found).mean() < 1.1 * level

    def test_a_shift_of_all_outputs_is_flat(self):
        found = SoftmaxLoss(classes=3).expected_curvature(RNG.normal(size=9))
        shift = np.kron(np.ones(3), [1.0, 0.0, 0.0]) / math.sqrt(3.0)
        assert shift @ found @ shift == pytest.approx(0.0, abs=1e-12)
        assert np.linalg.eigvalsh(found).min() > -1e-12

    @pytest.mark.parametrize("theta", [[0.5, -1.0, 0.3], [2.0, 2.0, -1.0]])
    def test_what_is_expected_of_two_classes(self, theta):
        """Against the mean over many normal records."""
        rows = np.column_stack(
            [np.random.default_rng(0).normal(size=(200_000, 2)), np.ones(200_000)]
        )
        chance = 1.0 / (1.0 + np.exp(-rows @ theta))
        wanted = (rows * (chance * (1.0 - chance))[:, None]).T @ rows / len(rows)
        for loss in (LogisticLoss(), ClassWeighted(inner=LogisticLoss(), weights=(1.0, 1.0))):
            found = loss.expected_curvature(np.array(theta))
            np.testing.assert_allclose(found, wanted, atol=2e-3)


class Watched:
    """Looks on while a model descends."""

    def __enter__(self):
        self.patches = []
        for room in (base, few_users):
            self.patches.append(mock.patch.object(room, "descend", self.watching(room.descend)))
            self.patches[-1].start()
        return self

    def __exit__(self, *_):
        for patch in self.patches:
            patch.stop()

    def watching(self, descend):
        def watched(run, loss, **known):
            self.seen = run, loss, known["initial"], descend(run, loss, **known)
            return self.seen[-1]

        return watched

    def moved(self):
        """Return what noise did, in the coordinates of the features."""
        run, loss, theta, minimum = self.seen
        shrunk, total = ~loss.unpenalized(run.data.n_features), 0.0
        average = theta
        for number, (step, said) in enumerate(zip(minimum.path, minimum.trace, strict=True)):
            gradients = gradients_at(loss, theta)(run.data._held_crowd())
            kept = np.minimum(
                1.0, said.radius / np.maximum(np.linalg.norm(gradients, axis=1), 1e-99)
            )
            gradient = kept @ gradients / run.n_users + step.shrinkage * shrunk * theta
            gradient = gradient + loss.penalty(theta, minimum.penalty)[0]
            theta = theta - minimum.optimizer.step_size / step.curvature * gradient
            if 2 * number >= len(minimum.path):
                total += step.noise**-2
                average = average + (theta - average) / (step.noise**2 * total)
        return loss.geometry.outward(minimum.theta - average, loss.inner)


@pytest.mark.parametrize(
    ("model", "labels"),
    [
        (LinearRegression(target_bounds=(-6.0, 6.0)), False),
        (Ridge(penalty=0.3, target_bounds=(-6.0, 6.0)), False),
        (HuberRegression(target_bounds=(-6.0, 6.0)), False),
        (LogisticRegression(), True),
        (LinearSVC(), True),
    ],
    ids=lambda each: type(each).__name__,
)
def test_stated_errors_hold_and_are_not_absurd(model, labels):
    within, wide = [], []
    for seed in range(8):
        with Watched() as watched, use_noise(SeededNoise(seed)):
            model.fit(crowd(labels=labels, seed=seed))
        error = np.abs(watched.moved()) * model._unit()
        within.append(error <= np.array(model.error_.coordinates))
        wide.append(model.error_.bound / np.linalg.norm(error))
    assert np.mean(within) >= 0.9
    # With the true curvature the median would be about 3, as an error is mostly well within.
    assert 1.0 < np.median(wide) < 9.0


class TestWhatIsTold:
    model = LogisticRegression(epsilon=2.0)

    def test_everything_has_its_place(self):
        with use_noise(SeededNoise(1)):
            model = LinearRegression(bounds=(-5.0, 5.0)).fit(crowd())
        error = model.error_
        assert isinstance(error, CoefficientError)
        assert error.standard_errors.shape == (1, 3)
        np.testing.assert_allclose(error.coordinates, 1.96 * error.standard_errors.ravel())
        assert max(error.coordinates) <= error.bound < error.worst == math.inf
        table = model.coefficients_.to_arrow().to_pydict()
        np.testing.assert_allclose(table["standard error"], error.standard_errors[0])
        np.testing.assert_allclose(
            np.array(table["upper"]) - table["lower"], 2 * 1.96 * error.standard_errors[0]
        )
        assert "sampling" in error.covers
        again = pickle.loads(pickle.dumps(model))
        np.testing.assert_array_equal(again.error_.covariance, error.covariance)

    def test_bounds_of_features_change_no_error(self):
        """The same fit in other units: errors follow the coefficients."""
        people = crowd()
        wider = UserData(10.0 * people.X + 3.0, people.y, offsets=people.offsets)
        fits = []
        for data, bounds in ((people, (-8.0, 8.0)), (wider, (-77.0, 83.0))):
            with use_noise(SeededNoise(3)):
                fits.append(LinearRegression(bounds=bounds, target_bounds=(-6.0, 6.0)).fit(data))
        one, other = (fit.error_.standard_errors[0] for fit in fits)
        np.testing.assert_allclose(other[:2], one[:2] / 10.0, rtol=1e-6)
        x = np.array([[0.5, -1.0]])
        (_, std), (_, same) = (
            fit.predict(rows, return_std=True)
            for fit, rows in zip(fits, (x, 10.0 * x + 3.0), strict=True)
        )
        np.testing.assert_allclose(same, std, rtol=1e-6)

    def test_predictions_have_errors(self):
        with use_noise(SeededNoise(1)):
            model = LinearRegression(target_bounds=(-6.0, 6.0)).fit(crowd())
        rows = np.array([[1.0, 1.0], [40.0, 1.0], [np.nan, 1.0]])
        predictions, errors = model.predict(rows, return_std=True)
        np.testing.assert_array_equal(predictions, model.predict(rows))
        ones = np.append(rows[1], 1.0)
        wanted = math.sqrt(ones @ model.error_.covariance[0] @ ones)
        assert errors[1] == pytest.approx(wanted)
        assert errors[0] < errors[1]
        assert np.isnan(errors[2])

    def test_scores_of_classes_have_errors(self):
        people = crowd(labels=True)
        for classes in ((0, 1), (0, 1, 2)):
            with use_noise(SeededNoise(1)):
                model = LogisticRegression(classes=classes).fit(people)
            scores, errors = model.decision_function(people.X[:4], return_std=True)
            assert scores.shape == errors.shape
            assert np.all(errors > 0)
            assert len(model.coefficients_.to_arrow().column_names) == 1 + 4 * len(model.coef_)

    def test_without_an_intercept_the_constant_has_no_error(self):
        with use_noise(SeededNoise(1)):
            model = LinearRegression(fit_intercept=False).fit(crowd())
        assert len(model.error_.coordinates) == 2
        assert model.error_.standard_errors[0, 2] == 0.0


class TestNoStatement:
    def check(self, model, reason):
        assert reason in model.error_.covers
        assert model.error_.covers.startswith("No statement: ")
        assert model.error_.bound == math.inf
        assert set(model.error_.coordinates) == {math.inf}
        assert model.coefficients_.errors is None
        assert "standard error" not in model.coefficients_.to_arrow().column_names

    def test_a_constant_that_was_all_there_was_money_for(self):
        with use_noise(SeededNoise(0)):
            model = LogisticRegression(0.1, hopeless="constant").fit(crowd(60, labels=True))
        self.check(model, "a constant took the place")
        assert np.isinf(model.decision_function(np.zeros((2, 2)), return_std=True)[1]).all()

    def test_a_constant_that_gradients_called_for(self):
        # Where any way counts as noise.
        with use_noise(SeededNoise(0)), mock.patch.object(descent_noise, "SHOWN", math.inf):
            model = LogisticRegression().fit(crowd(labels=True))
        assert model.algorithm_.name == "constant"
        self.check(model, "a constant took the place")

    def test_a_constant_that_the_whole_way_called_for(self):
        at_the_end = mock.patch.object(base, "are_only_noise", return_value=True)
        with use_noise(SeededNoise(0)), at_the_end:
            model = LogisticRegression().fit(crowd(labels=True))
        assert model.algorithm_.name == "constant"
        self.check(model, "a constant took the place")

    def test_few_steps_and_samples(self):
        people = crowd(labels=True)
        with use_noise(SeededNoise(0)):
            self.check(LogisticRegression(steps=7).fit(people), "fewer than 8 steps")
            model = LogisticRegression(steps=12, batch_rate=0.2, records=4).fit(people)
        self.check(model, "samples of users")

    def test_a_model_that_is_sure_of_every_label(self):
        assert not LogisticLoss().expected_curvature(np.array([1e6, 1e9])).any()
        with (
            use_noise(SeededNoise(0)),
            mock.patch.object(LogisticLoss, "expected_curvature", return_value=np.zeros((3, 3))),
        ):
            self.check(LogisticRegression().fit(crowd(labels=True)), "so sure of every label")

    def test_more_parameters_than_matrices_are_made_for(self):
        with (
            use_noise(SeededNoise(0)),
            mock.patch.object(descent_noise, "MOST_PARAMETERS", 2),
        ):
            self.check(LogisticRegression().fit(crowd(labels=True)), "more than 2 coefficients")


class ReadsData(LinearRegression):
    """The broken twin whose error knows how many records there are."""

    def _release(self, data, account, limits, last):
        super()._release(data, account, limits, last)
        factor = 1.0 + 1e-9 * float(np.nansum(data._held_crowd().X))
        self.error_ = error_of_covariance(
            factor * self.error_.covariance[0], outputs=1, intercept=True
        )


class TestReleasedOnly:
    """The same released values on other people's data: the same error to the last bit."""

    def report(self, kind, seed):
        def run(people):
            return kind(steps=9, target_bounds=(-6.0, 6.0), progress=False).fit(people)

        return replay(run, crowd(500), crowd(500, seed=5, scale=3.0), seed=seed)

    @pytest.mark.parametrize("seed", range(2))
    def test_errors_follow_from_released_numbers(self, seed):
        report = self.report(LinearRegression, seed)
        assert report.same, str(report)

    def test_an_error_that_reads_data_is_seen(self):
        report = self.report(ReadsData, 0)
        assert not report.same
        assert "error_" in str(report)


def test_a_search_passes_on_the_error_of_its_model():
    search = PrivateGridSearch(LogisticRegression(), {"penalty": [0.0, 0.1]}, epsilon=8.0)
    with use_noise(SeededNoise(0)):
        search.fit(crowd(labels=True))
    assert search.best_estimator_.error_.stated
