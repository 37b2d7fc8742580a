"""Whole fits under audit: exact laws on tiny worlds, replay on neighbours, broken twins."""

from dataclasses import replace

import numpy as np
import pytest

from quorate.auditing import Cells, SmallWorld, audit_exactly, enumerate_runs, replay
from quorate.core.bounds.grid import Ball, Grid
from quorate.core.guarantees import Guarantee
from quorate.core.users import UserData
from quorate.mechanisms.sums import choose_grid
from quorate.mechanisms.user_releases import BoundedVectors, ReleasedMean, UserReleases
from quorate.models import (
    ClippedGradients,
    LinearRegression,
    LogisticRegression,
    SquaredLoss,
    base,
    minimize,
)
from quorate.models.coordinates.geometry import Geometry
from quorate.models.optimization import gradients, training
from quorate.models.optimization.clips import Lengths
from sealing import numbers_of, rows_of, sealed_for

# One feature, three users, one record each: a small gradient, a large one, one beyond any radius.
RECORDS = ((1.0, 1.0), (1.0, -2.0), (8.0, -8.0))
WORLD = SmallWorld(records=RECORDS, n_users=3, ordered=False)
EPSILON, DELTA = 3.0, 0.05
CLAIM = Guarantee(epsilon=EPSILON, delta=DELTA)


@pytest.fixture(autouse=True)
def few_candidates(monkeypatch):
    """Four candidate radii instead of 128: two looks instead of seven."""
    few = np.array([-1.0, 0.0, 1.0, 2.0])
    monkeypatch.setattr(gradients, "WIDE", few)


def held(data):
    rows = np.array([[x] for x, _ in data])
    return UserData(rows, np.array([y for _, y in data]), offsets=np.arange(len(data) + 1))


def minimum(data, **options):
    found = minimize(
        held(data),
        SquaredLoss(intercept=False),
        epsilon=EPSILON,
        delta=DELTA,
        records=1,
        curvature=1.0,
        **{"steps": 1} | options,
    )
    return found.theta, found.trace


def law_of(run, cells):
    return lambda data: enumerate_runs(lambda noise: run(data), cells=cells)


def audit(run, *, width=1.0, reach=2.0, world=WORLD, thorough=True):
    law = law_of(run, Cells(width=width, reach=reach))
    return audit_exactly(law, world, CLAIM, thorough=thorough)


class TestExactAudit:
    def test_a_minimisation_with_a_private_radius_keeps_its_claim(self):
        found = audit(minimum)
        assert found.holds
        assert found.tightness > 0.3, "an audit that sees nothing proves nothing"

    def test_two_steps_keep_it_too(self):
        found = audit(
            lambda data: minimum(data, steps=2, gradients=ClippedGradients(radius=1.0)),
            width=0.75,
            reach=2.25,
        )
        assert found.holds
        assert found.tightness > 0.5

    def regression(self, monkeypatch):
        """A length and a lifted gradient in public coordinates: looks at a scale are too many."""

        def public(run, **_):
            return Geometry(np.zeros(1), np.eye(1)), run.data

        monkeypatch.setattr(base, "release_coordinates", public)

        def run(data):
            model = LinearRegression(
                EPSILON,
                delta=DELTA,
                fit_intercept=False,
                target_bounds=(-2.0, 2.0),
                steps=1,
                hopeless="constant",
            )
            # Three users are hopeless by the rule; the audit wants the real way all the same.
            model._feasibility = lambda n_users, n_features: NeverHopeless()
            model.fit(held(data))
            return model.coef_, model.trace_

        pairs = SmallWorld(records=RECORDS[:1] + RECORDS[2:], n_users=3, ordered=False)
        return audit(run, width=1.0, reach=1.0, world=pairs)

    def test_a_whole_regression_keeps_it(self, monkeypatch):
        found = self.regression(monkeypatch)
        assert found.holds
        assert found.tightness > 0.1

    def test_a_length_that_nobody_paid_for_is_caught(self, monkeypatch):
        def from_the_data(run, vectors, *, longest):
            lengths = np.linalg.norm(rows_of(run.data.each(vectors)), axis=1)
            return Lengths.around(float(np.log(lengths.max() + 1e-6)), error=0.1, cone=False), 0.1

        monkeypatch.setattr(training, "_release_lengths", from_the_data)
        assert not self.regression(monkeypatch).holds

    def test_the_constant_that_replaces_a_hopeless_fit_keeps_it(self):
        def run(data):
            model = LinearRegression(
                EPSILON, delta=DELTA, target_bounds=(-2.0, 2.0), hopeless="constant"
            )
            return model.fit(held(data)).intercept_

        # Cells of half the width take four times the fits and see a loss larger by .3 %.
        found = audit(run, width=0.5, reach=4.0)
        assert found.holds
        assert found.tightness > 0.6


class NeverHopeless:
    hopeless = False


def without_a_clip(run, mechanism, vectors):
    """The noise of a small radius on contributions that nobody has cut."""
    grid = choose_grid(mechanism.grid.bound, n_users=4, noise_scale=1e3)
    loose = Grid(Ball(1e3, dimension=grid.bound.dimension), step=grid.step)
    return broken_mean(run, replace(mechanism, grid=grid), vectors, loose)


def with_noise_for_radius_one(run, mechanism, vectors):
    """Contributions cut to the radius found, noise as if it were an eighth."""
    grid = choose_grid(mechanism.grid.bound, n_users=4, noise_scale=1e3)
    small = Grid(Ball(grid.bound.l2_radius / 8, dimension=1), step=grid.step)
    return broken_mean(run, replace(mechanism, grid=small), vectors, grid)


def broken_mean(run, mechanism, vectors, grid):
    """Contributions on one grid, noise for another."""
    # The seal says what the grid proves; the twin breaks it and believes the mechanism instead.
    totals = numbers_of(run.data.total(BoundedVectors(vectors, grid.bound), grid))
    believed = sealed_for(mechanism, totals)
    total = mechanism.release(believed, count=0.0, account=run.account)
    return ReleasedMean(total / run.n_users, mechanism.standard_error / run.n_users)


def with_a_radius_from_the_data(self, vectors, exponents, *, dimension, unit=1.0):
    """The exact quantile of the norms, unpaid."""
    norms = np.sort(np.linalg.norm(rows_of(self.data.each(vectors)), axis=1))
    return float(np.clip(norms[len(norms) // 2], 0.5, 4.0))


class TestBrokenTwins:
    def test_no_clip_is_caught(self, monkeypatch):
        monkeypatch.setattr(UserReleases, "mean_by", without_a_clip)
        assert not audit(minimum, thorough=False).holds

    def test_noise_that_does_not_follow_the_radius_is_caught(self, monkeypatch):
        monkeypatch.setattr(UserReleases, "mean_by", with_noise_for_radius_one)
        assert not audit(minimum, thorough=False).holds

    def test_a_radius_nobody_paid_for_is_caught(self, monkeypatch):
        monkeypatch.setattr(UserReleases, "radius", with_a_radius_from_the_data)
        assert not audit(minimum, thorough=False).holds


# --- replay --------------------------------------------------------------------------------------

RNG = np.random.default_rng(0)
ROWS = RNG.normal(size=(60, 2))
TARGETS = (ROWS[:, 0] > 0).astype(float)
OFFSETS = np.arange(0, 61, 3)


def neighbour(kind):
    """The last user replaced: by other values, by giants, by nobody's records."""
    rows, targets, offsets = ROWS.copy(), TARGETS.copy(), OFFSETS.copy()
    if kind == "fewer records":
        return UserData(rows[:-2], targets[:-2], offsets=np.append(offsets[:-1], 58))
    rows[-3:] = {"other": 1.0, "giant": 1e200, "zero": 0.0}[kind]
    targets[-3:] = 1.0 - targets[-3:]
    return UserData(rows, targets, offsets=offsets)


MODELS = {
    "logistic": lambda: LogisticRegression(60.0),
    "bounded": lambda: LogisticRegression(60.0, bounds=2.0, steps=5),
    "regression": lambda: LinearRegression(60.0, bounds=2.0, target_bounds=(0.0, 1.0)),
    "constant": lambda: LogisticRegression(0.1, hopeless="constant"),
}


@pytest.mark.parametrize("kind", ["other", "giant", "zero", "fewer records"])
@pytest.mark.parametrize("model", MODELS)
class TestReplay:
    def test_a_neighbour_looks_the_same(self, model, kind):
        data = UserData(ROWS, TARGETS, offsets=OFFSETS)
        report = replay(lambda people: MODELS[model]().fit(people), data, neighbour(kind))
        assert report.same, str(report)


def test_a_neighbour_looks_the_same_in_minibatches_too():
    def run(people):
        return LogisticRegression(60.0, batch_rate=0.3, steps=2).fit(people)

    report = replay(run, UserData(ROWS, TARGETS, offsets=OFFSETS), neighbour("giant"))
    assert report.same, str(report)


class TestLeaksAreSeen:
    def check(self, run):
        data = UserData(ROWS, TARGETS, offsets=OFFSETS)
        return replay(run, data, neighbour("giant"))

    def test_a_radius_from_the_data(self, monkeypatch):
        def largest(self, vectors, exponents, *, dimension, unit=1.0):
            return float(
                np.clip(np.linalg.norm(rows_of(self.data.each(vectors)), axis=1).max(), 1e-6, 1e6)
            )

        monkeypatch.setattr(UserReleases, "radius", largest)
        assert not self.check(lambda people: MODELS["logistic"]().fit(people)).same

    def test_a_score_on_the_training_records(self):
        def run(people):
            model = MODELS["logistic"]().fit(people)
            model.loss_ = float(np.mean(model.decision_function(people.X)))
            return model

        assert not self.check(run).same

    def test_the_number_of_records(self):
        def run(people):
            model = MODELS["logistic"]().fit(people)
            model.records_ = people.n_records
            return model

        data = UserData(ROWS, TARGETS, offsets=OFFSETS)
        assert not replay(run, data, neighbour("fewer records")).same
