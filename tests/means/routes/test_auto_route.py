"""The default way: which one is taken, who is there, and answers inside the public range."""

import math

import numpy as np
import pytest

from quorate.core.bounds.grid import Ball, Box
from quorate.core.guarantees import Relation
from quorate.core.noise import SeededNoise, use_noise
from quorate.core.users import UserData
from quorate.means import UserMean
from quorate.means.present_mean import Size
from quorate.means.routes.auto_route import AutoRun, InHalfWidths, unit_bound
from quorate.means.routes.expected_errors import ExpectedErrors


def people(means):
    means = np.asarray(means, dtype=float)
    return UserData(means, offsets=np.arange(len(means) + 1))


def fitted(means, *, seed=0, **options):
    given = {"epsilon": 1.0, "delta": 1e-6, "bounds": 1.0} | options
    with use_noise(SeededNoise(seed)):
        return UserMean(**given).fit(people(means))


def some_there(present, *, n=8000, d=1, seed=0):
    """Return users of whom few hold a record, far from the centre of the range."""
    means = np.full((n, d), np.nan)
    means[:present] = np.random.default_rng(seed).normal(0.5, 0.05, size=(present, d))
    return means


class TestWay:
    def test_few_dimensions_are_searched_and_a_ball_drifts_in_many(self):
        rng = np.random.default_rng(0)
        for n, d, name in ((3000, 2, "interval"), (300, 5, "ball"), (1500, 12, "ball")):
            assert fitted(rng.normal(size=(n, d)) * 0.01).algorithm_.name == name

    @pytest.mark.parametrize("delta", [0.0, 1e-6])
    def test_a_narrow_range_is_clipped_to(self, delta):
        means = np.random.default_rng(0).uniform(-1.0, 1.0, size=(600, 1))
        fit = fitted(means, delta=delta)
        assert fit.algorithm_.name == "clip"
        # At most 12 % were spent to find out.
        assert fit.error_.standard_error < 1.3 * math.sqrt(2.0) * 2.0 / 600

    @pytest.mark.parametrize(("n", "d"), [(150, 1), (150, 2), (220, 1)])
    def test_few_users_drift_only_in_a_corner_of_the_range(self, n, d):
        rng = np.random.default_rng(0)
        # Half of them hold nothing and are as near as can be, and yet they fill the range.
        skewed = rng.exponential(size=(n, d)) * (rng.random((n, d)) < 0.5) - 0.9
        ways = [fitted(skewed, seed=seed).algorithm_.name for seed in range(10)]
        assert ways.count("clip") >= 9
        assert fitted(skewed * 0.01).algorithm_.name != "clip"

    @pytest.mark.parametrize("d", [3, 4])
    def test_some_users_of_a_few_features_drift_only_if_pairs_are_near(self, d):
        """A ball that drifts to users who fill their range errs twice as much as clipping to it."""
        wide = np.random.default_rng(0).uniform(-1.0, 1.0, size=(600, d))
        ways = [fitted(wide, seed=seed).algorithm_.name for seed in range(10)]
        assert ways.count("clip") >= 9
        ways = [fitted(wide * 0.01, seed=seed).algorithm_.name for seed in range(10)]
        assert ways.count("clip") <= 1

    def test_what_is_asked_before_a_drift_is_paid_from_what_was_set_aside(self, monkeypatch):
        """Beside Gaussian noise it would cost a square, and with it a good part of the budget."""
        narrow = np.random.default_rng(0).normal(size=(600, 5)) * 0.01
        asked = [fitted(narrow, seed=seed) for seed in range(5)]
        assert {fit.algorithm_.name for fit in asked} == {"ball"}
        monkeypatch.setattr(ExpectedErrors, "is_asked", False)
        unasked = [fitted(narrow, seed=seed) for seed in range(5)]
        errors = [
            np.median([fit.error_.standard_error for fit in fits]) for fits in (asked, unasked)
        ]
        # An eighth of epsilon; a square of the same size would double the noise.
        assert errors[0] < 1.5 * errors[1]

    def test_a_single_number_is_searched_for_in_its_corner(self):
        means = np.random.default_rng(0).normal(0.3, 1e-4, size=(500, 1))
        for delta in (0.0, 1e-6):
            fits = [fitted(means, delta=delta, seed=seed) for seed in range(10)]
            assert [fit.algorithm_.name for fit in fits] == ["interval"] * 10
            assert max(abs(fit.mean_[0] - means.mean()) for fit in fits) < 1e-4

    def test_columns_of_different_width_do_not_drown_each_other(self):
        rng = np.random.default_rng(0)
        means = rng.normal(size=(4000, 2)) * 0.01 * np.array([1.0, 1e6])
        fit = fitted(means, bounds=(np.array([-1.0, -1e6]), np.array([1.0, 1e6])))
        assert np.all(np.abs(fit.mean_) < np.array([1e-3, 1e3]))
        assert fit.error_.coordinates[0] < 1e-2 < 1e2 < fit.error_.coordinates[1]

    def test_an_answer_lies_in_the_public_range(self):
        for seed in range(20):
            fit = fitted(np.full((5, 2), 0.9), seed=seed)
            assert np.all(np.abs(fit.mean_) <= 1.0)


class TestWhoIsThere:
    @pytest.mark.parametrize("relation", list(Relation))
    @pytest.mark.parametrize("present", [31, 300])
    @pytest.mark.parametrize("d", [1, 20])
    def test_an_answer_is_never_off_by_more_than_twice_its_bound(self, present, d, relation):
        means = some_there(present, d=d)
        true = np.nanmean(means, axis=0)
        for seed in range(6):
            fit = fitted(means, seed=seed, relation=relation)
            assert np.linalg.norm(fit.mean_ - true) <= 2.0 * fit.error_.bound

    def test_nobody_there_is_said(self):
        fit = fitted(np.full((500, 2), np.nan))
        assert fit.error_.bound > 1.0


class TestUnits:
    def test_half_widths_are_the_units(self):
        bound = Box([0.0, -10.0], [4.0, 10.0])
        rows = InHalfWidths(bound)(people([[4.0, 0.0], [2.0, -99.0]]))
        assert rows.tolist() == [[1.0, 0.0], [0.0, -1.0]]

    def test_a_ball_becomes_a_unit_ball(self):
        assert unit_bound(Ball(3.0, dimension=2)) == Ball(1.0, dimension=2)


@pytest.mark.parametrize(("n", "d"), [(300, 5), (1500, 12)])
def test_people_who_come_and_go_are_as_many_as_were_counted(n, d, monkeypatch):
    """The way follows from the number that was bought, however many there really are."""
    monkeypatch.setattr(AutoRun, "count", lambda run: Size(float(n), 1.0))
    rng = np.random.default_rng(0)
    ways = {
        fitted(rng.normal(size=(held, d)) * 0.01, relation=Relation.ADD_REMOVE).algorithm_.name
        for held in (n, 4 * n)
    }
    assert ways == {"ball"}
