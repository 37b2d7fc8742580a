"""Glue end to end: given the same released values, neighbours cannot be told apart.

Each program runs on a data set and on neighbours in which one user sends what an adversary would
send. Every program has twins with a leak, and each leak is seen.
"""

from __future__ import annotations

import logging
import warnings

import numpy as np
import pytest

from quorate import PrivateMedian, ThresholdLearner, UserData, UserMean
from quorate.auditing import replay
from quorate.core.bounds.grid import Ball, Grid, Interval
from quorate.core.guarantees import Relation
from quorate.data.engines import MemoryCrowd, UserMeans
from quorate.mechanisms.choices.choose import ChooseBest, Selection
from quorate.mechanisms.choices.ordered import ChooseOrdered
from quorate.mechanisms.choices.quantiles import FloatQuantile, PrivateQuantile
from quorate.mechanisms.laplace import LaplaceSum
from quorate.mechanisms.noisy_count import NoisyCount
from quorate.mechanisms.sums import GaussianSum, choose_grid
from sealing import crowd_total, release_by_hand

ADVERSARIAL = [0.0, -0.0, 1e-320, 3.7, -1e300, 1e308, np.inf, -np.inf, np.nan]
SEEDS = range(3)


def values_with(last):
    return np.array([0.3, -0.7, 0.9, last])


def integers_of(values):
    return np.nan_to_num(values, nan=0.0, posinf=1e9, neginf=-1e9).clip(-1e9, 1e9).astype(np.int64)


def crowd_votes(values):
    return np.array([np.sum(values > t) for t in (-0.5, 0.0, 0.5)])


LINE = Grid(Interval(-1.0, 1.0), step=2.0**-20)
MECHANISMS = {
    "LaplaceSum": lambda v: LaplaceSum(grid=LINE, epsilon=1.0).release_values(v),
    "GaussianSum": lambda v: GaussianSum(grid=LINE, noise_multiplier=2.0).release_values(v),
    "NoisyCount": lambda v: NoisyCount(epsilon=1.0).release_values(v),
    "ChooseBest": lambda v: release_by_hand(ChooseBest(candidates=3, epsilon=1.0), crowd_votes(v)),
    "ChooseBest-GUMBEL": lambda v: release_by_hand(
        ChooseBest(candidates=3, epsilon=1.0, selection=Selection.GUMBEL), crowd_votes(v)
    ),
    "ChooseOrdered": lambda v: release_by_hand(
        ChooseOrdered(epsilon=1.0), np.full(3, 2**60), crowd_votes(v)
    ),
    "PrivateQuantile": lambda v: release_by_hand(
        PrivateQuantile(domain=(-(2**62), 2**62), epsilon=1.0), integers_of(v)
    ),
    "FloatQuantile": lambda v: release_by_hand(
        FloatQuantile(lower=-1.0, upper=1.0, resolution=2.0**-20, epsilon=1.0), v
    ),
}


class TestMechanisms:
    @pytest.mark.parametrize("last", ADVERSARIAL, ids=str)
    @pytest.mark.parametrize("name", MECHANISMS)
    def test_whatever_one_user_sends_looks_the_same(self, name, last):
        for seed in SEEDS:
            report = replay(MECHANISMS[name], values_with(0.2), values_with(last), seed=seed)
            assert report.same, str(report)
            assert len(report.calls) == 1

    def test_a_missing_user_looks_the_same_under_add_remove(self):
        def run(values):
            bound = Interval(-1.0, 1.0)
            total = LaplaceSum(
                grid=Grid(bound, step=2.0**-20), epsilon=1.0, relation=Relation.ADD_REMOVE
            ).release_values(values)
            median = release_by_hand(
                PrivateQuantile(domain=(0, 99), epsilon=1.0, relation=Relation.ADD_REMOVE),
                integers_of(values),
            )
            return total, median

        for fewer in (values_with(0.2)[:-1], np.array([])):
            report = replay(run, values_with(0.2), fewer)
            assert report.same, str(report)

    @pytest.mark.parametrize(
        "leak",
        [
            lambda v: LaplaceSum(
                grid=Grid(Interval(-1.0, max(1.0, np.nanmax(v))), step=2.0**-20), epsilon=1.0
            ).release_values(v),
            lambda v: release_by_hand(
                FloatQuantile(
                    lower=-1.0, upper=max(1.0, np.max(v)), resolution=2.0**-20, epsilon=1.0
                ),
                v,
            ),
            lambda v: release_by_hand(
                ChooseBest(candidates=len(set(np.floor(v))), epsilon=1.0),
                np.zeros(len(set(np.floor(v))), dtype=np.int64),
            ),
            lambda v: [release_by_hand(NoisyCount(epsilon=1.0), 3) for x in v if x < 1],
            lambda v: release_by_hand(NoisyCount(epsilon=1.0), 3) if v[3] < 1 else 3,
        ],
        ids=["bound", "domain", "candidates", "number of releases", "skipped release"],
    )
    def test_a_public_quantity_taken_from_the_data_is_seen(self, leak):
        assert not replay(leak, values_with(-0.2), values_with(3.7)).same


def people(first_user, n_others=40):
    """Users with three records in the plane each; the first one sends ``first_user``."""
    rng = np.random.default_rng(5)
    others = rng.normal(size=(n_others * 3, 2))
    table = np.concatenate([np.asarray(first_user, dtype=np.float64).reshape(-1, 2), others])
    ids = np.concatenate(
        [np.zeros(len(table) - len(others), int), np.repeat(range(1, n_others + 1), 3)]
    )
    labels = (table[:, 0] > 0).astype(float)
    return UserData.from_arrays(table, labels, users=ids)


CONTRIBUTIONS = {
    "one record": [[0.1, 0.2]],
    "a thousand records": np.full((1000, 2), 0.5),
    "huge": [[1e308, -1e308], [1e308, 1e308]],
    "infinite": [[np.inf, 0.0], [0.0, -np.inf]],
    "not a number": [[np.nan, np.nan]],
    "half missing": [[np.nan, 1.0], [0.5, 0.5]],
}
HONEST_USER = [[0.3, 0.1], [0.2, -0.4], [0.1, 0.1]]


def engine_sum(data, statistic=None, threads=1):
    bound = Ball(1.0, dimension=2)
    grid = choose_grid(bound, n_users=data.n_users)
    crowd = MemoryCrowd(data, n_parts=5, threads=threads)
    totals = crowd_total(crowd, statistic or UserMeans(bound), grid)
    return release_by_hand(
        GaussianSum(grid=grid, noise_multiplier=2.0, delta=1e-6), totals, count=data.n_users
    )


class LyingStatistic:
    """Declares a unit ball and returns the raw sums."""

    bound = Ball(1.0, dimension=2)

    def __call__(self, users):
        return users.user_means() * 1e6


class RaisingStatistic(LyingStatistic):
    """Breaks its duty: whether it raises depends on records."""

    def __call__(self, users):
        if np.abs(users.user_means()).max() > 100:
            raise ValueError(f"outlier {users.user_means().max()}")
        return users.user_means()


class TestEngines:
    @pytest.mark.parametrize("sent", CONTRIBUTIONS, ids=str)
    @pytest.mark.parametrize("statistic", [None, LyingStatistic()], ids=["means", "lying"])
    def test_sums_over_users_look_the_same(self, sent, statistic):
        report = replay(
            lambda data: engine_sum(data, statistic),
            people(HONEST_USER),
            people(CONTRIBUTIONS[sent]),
        )
        assert report.same, str(report)
        assert len(report.calls) == 1

    def test_a_statistic_that_raises_for_some_records_is_seen(self):
        report = replay(
            lambda data: engine_sum(data, RaisingStatistic()),
            people(HONEST_USER),
            people(CONTRIBUTIONS["huge"]),
        )
        assert not report.same
        assert not any(
            "e+" in difference or "outlier" in difference for difference in report.differences
        )


ESTIMATORS = {
    "UserMean pure": lambda data: UserMean(1.0, bounds=5.0, random_state=0).fit(data),
    "UserMean": lambda data: UserMean(1.0, delta=1e-6, bounds=5.0, random_state=0).fit(data),
    "PrivateMedian": lambda data: PrivateMedian(1.0, bounds=5.0).fit(data),
    "ThresholdLearner": lambda data: ThresholdLearner(
        1.0, domain=(-4.0, 4.0), step=0.25, random_state=0
    ).fit(UserData(data.X[:, :1], data.y, offsets=data.offsets)),
}


class TestEstimators:
    @pytest.mark.parametrize("sent", CONTRIBUTIONS, ids=str)
    @pytest.mark.parametrize("name", ESTIMATORS)
    def test_whole_fits_look_the_same(self, name, sent):
        for seed in SEEDS:
            report = replay(
                ESTIMATORS[name], people(HONEST_USER), people(CONTRIBUTIONS[sent]), seed=seed
            )
            assert report.same, f"{name}: {report}"
            assert report.calls

    @pytest.mark.parametrize("sent", CONTRIBUTIONS, ids=str)
    @pytest.mark.parametrize("delta", [0.0, 1e-6])
    def test_a_mean_with_many_adaptive_steps_looks_the_same(self, sent, delta):
        report = replay(
            lambda data: UserMean(1.0, delta=delta, bounds=1000.0, random_state=0).fit(data),
            people(HONEST_USER, n_others=1500),
            people(CONTRIBUTIONS[sent], n_others=1500),
        )
        assert report.same, str(report)
        assert len(report.calls) > 3

    @pytest.mark.parametrize(
        "leak",
        [
            lambda model, data: setattr(model, "n_records_", data.n_records),
            lambda model, data: setattr(model, "_data", data.X),
            lambda model, data: setattr(model, "classes_", np.unique(np.sign(data.X))),
            lambda model, data: warnings.warn(str(data.n_records), UserWarning, stacklevel=1),
            lambda model, data: logging.getLogger("quorate").info("records %d", data.n_records),
            lambda model, data: print(data.n_records),
        ],
        ids=["attribute", "kept data", "classes", "warning", "log", "print"],
    )
    def test_a_fit_that_says_more_is_seen(self, leak):
        def fit(data):
            model = ESTIMATORS["UserMean pure"](data)
            leak(model, data)
            return model

        neighbour = people([[0.0, 0.0]])
        assert replay(ESTIMATORS["UserMean pure"], people(HONEST_USER), neighbour).same
        assert not replay(fit, people(HONEST_USER), neighbour).same
