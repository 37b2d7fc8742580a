"""Public mistakes are refused before they cost anything, and no message repeats data."""

import math

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone

from quorate.accounting.ledger import Ledger
from quorate.bounds import Ball, Box
from quorate.exceptions import NumericalFailure, ParameterError
from quorate.guarantees import Relation
from quorate.means import (
    PrivateMedian,
    UserCovariance,
    UserMean,
    UserQuantiles,
    UserQueries,
    UserScaler,
)
from quorate.means.ranges import as_bound, check_epsilon, features_told, told_bound
from quorate.users import UserData

ROWS = np.random.default_rng(0).normal(51.2, 0.1, size=(60, 2))
TABLES = {
    "array": (ROWS, range(60)),
    "frame": (pd.DataFrame(ROWS, columns=["a", "b"]), range(60)),
    "users": (UserData(ROWS, offsets=np.arange(61)), None),
}
ESTIMATORS = [
    UserMean(1.0, bound=100.0),
    UserMean(1.0, delta=1e-6, bound=100.0),
    UserScaler(1.0, bound=100.0),
    UserScaler(1.0, delta=1e-6, bound=100.0),
    UserCovariance(1.0, delta=1e-6, bound=100.0),
    PrivateMedian(1.0, bound=100.0),
    UserQuantiles(1.0, bound=100.0),
    UserQueries(1.0, delta=1e-6, bound=100.0, dimension=2),
]
BAD_BOUNDS = {
    "nothing": None,
    "reversed": (1.0, 0.0),
    "empty": (1.0, 1.0),
    "zero": 0.0,
    "negative": -1.0,
    "infinite": math.inf,
    "nan": math.nan,
    "yes": True,
    "text": "1",
    "texts": ("0", "1"),
    "too wide": 1e300,
    "too narrow": 1e-300,
    "far away": (1e299, 2e299),
    "a giant ball": Ball(2.0**250, dimension=2),
    "three": (0.0, 1.0, 2.0),
    "half reversed": ([0.0, 2.0], 1.0),
    "other length": ([0.0, 0.0, 0.0], 1.0),
    "matrix": ([[0.0]], 1.0),
    "half infinite": (0.0, [1.0, math.inf]),
    "other dimension": Ball(1.0, dimension=3),
    "data": ROWS,
    "data as limits": (ROWS, ROWS),
}


@pytest.fixture
def ledger(tmp_path):
    ledger = Ledger(tmp_path / "ledger.db")
    ledger.set_budget("people", epsilon=100.0, delta=0.5)
    return ledger


def refused(estimator, ledger, *, table="array", error=ParameterError, **parameters):
    X, users = TABLES[table]
    estimator = clone(estimator).set_params(ledger=ledger, data_name="people", **parameters)
    with pytest.raises(error) as caught:
        estimator.fit(X, users=users)
    assert len(ledger.history("people")) == 1  # the budget that was set
    # Neither a record nor a piece of one.
    assert "51." not in str(caught.value)
    return str(caught.value)


class TestRefusedBeforeTheCharge:
    @pytest.mark.parametrize("bound", BAD_BOUNDS.values(), ids=BAD_BOUNDS.keys())
    @pytest.mark.parametrize("estimator", ESTIMATORS, ids=lambda e: f"{e!r:.24}")
    def test_a_wrong_bound(self, estimator, bound, ledger):
        refused(estimator, ledger, bound=bound)

    @pytest.mark.parametrize("table", TABLES)
    @pytest.mark.parametrize("estimator", ESTIMATORS[:-1], ids=lambda e: f"{e!r:.24}")
    def test_a_bound_for_other_features_than_there_are(self, estimator, table, ledger):
        refused(estimator, ledger, table=table, bound=([0.0] * 3, [100.0] * 3))

    @pytest.mark.parametrize("epsilon", [0.0, -1.0, math.nan, math.inf, True, "1", 1e-12, ROWS])
    @pytest.mark.parametrize("estimator", ESTIMATORS, ids=lambda e: f"{e!r:.24}")
    def test_a_wrong_epsilon(self, estimator, epsilon, ledger):
        refused(estimator, ledger, epsilon=epsilon)

    @pytest.mark.parametrize("estimator", ESTIMATORS[4::3], ids=lambda e: f"{e!r:.24}")
    def test_a_missing_delta(self, estimator, ledger):
        assert "delta > 0" in refused(estimator, ledger, delta=0.0)
        default = type(estimator)(1.0, bound=100.0)
        assert default.delta == 0.0

    @pytest.mark.parametrize("estimator", [ESTIMATORS[1], ESTIMATORS[3], ESTIMATORS[4]])
    def test_a_delta_that_no_noise_keeps(self, estimator, ledger):
        refused(estimator, ledger, delta=1e-300, error=NumericalFailure)

    @pytest.mark.parametrize("resolution", [201.0, 1e-20, math.nan, -1.0])
    def test_a_resolution_that_does_not_fit_the_range(self, resolution, ledger):
        refused(PrivateMedian(1.0, bound=100.0), ledger, resolution=resolution)

    def test_a_quantile_that_cannot_be_written_as_a_fraction(self, ledger):
        refused(UserQuantiles(1.0, bound=100.0), ledger, quantiles=[math.pi / 4])

    @pytest.mark.parametrize("table", TABLES)
    def test_winsorizing_vectors_without_delta(self, table, ledger):
        estimator = UserMean(1.0, bound=100.0, algorithm="winsorized", radius=1.0)
        assert "one dimension" in refused(estimator, ledger, table=table)

    @pytest.mark.parametrize("kind", [UserMean, UserQueries])
    def test_a_published_epsilon_beyond_its_limit(self, kind, ledger):
        options = {"algorithm": "winsorized", "radius": 1.0, "constants": "published"}
        estimator = kind(90.0, delta=1e-6, bound=100.0, **options)
        assert "calibrated" in refused(estimator, ledger)

    def test_a_published_radius_that_is_lost_in_the_range(self, ledger):
        options = {"algorithm": "winsorized", "radius": 1e-30}
        refused(UserMean(1.0, delta=1e-6, bound=100.0, **options), ledger)

    @pytest.mark.parametrize("records", [0, 2.5, True, "all", -3])
    def test_a_wrong_number_of_records(self, records, ledger):
        refused(UserMean(1.0, delta=1e-6, bound=100.0), ledger, records=records)

    def test_what_is_right_is_charged_once(self, ledger):
        for i, estimator in enumerate(ESTIMATORS):
            fitted = clone(estimator).set_params(ledger=ledger, data_name="people")
            fitted.fit(ROWS, users=range(60))
            assert len(ledger.history("people")) == i + 2


class TestBounds:
    @pytest.mark.parametrize(
        ("bound", "lower", "upper"),
        [
            (2, [-2.0, -2.0], [2.0, 2.0]),
            (np.float32(2.0), [-2.0, -2.0], [2.0, 2.0]),
            ((0, 5), [0.0, 0.0], [5.0, 5.0]),
            ([0.0, [1, 2]], [0.0, 0.0], [1.0, 2.0]),
            ((np.zeros(2), np.array([1, 3])), [0.0, 0.0], [1.0, 3.0]),
        ],
    )
    def test_numbers_pairs_and_vectors_become_boxes(self, bound, lower, upper):
        assert as_bound(bound, 2) == Box(lower, upper)

    def test_a_bound_stays_itself(self):
        ball = Ball(1.0, dimension=2)
        assert as_bound(ball, 2) is ball

    @pytest.mark.parametrize(
        ("X", "features"),
        [
            (ROWS, 2),
            (ROWS[:, 0], 1),
            (TABLES["frame"][0], 2),
            (TABLES["users"][0], 2),
            ([[1.0, 2.0]], None),
            (7, None),
        ],
        ids=["matrix", "vector", "frame", "users", "list", "number"],
    )
    def test_features_are_told_by_shapes_only(self, X, features):
        assert features_told(X) == features

    def test_where_the_data_do_not_tell_the_bound_does(self):
        assert told_bound(Ball(1.0, dimension=7), [[1.0]]).dimension == 7
        assert told_bound(1.0, [[1.0, 2.0]]).dimension == 1
        mean = UserMean(1.0, bound=([0.0, 0.0], 1.0)).fit([[0.5, 0.5]] * 3, users=range(3))
        assert mean.mean_.shape == (2,)

    @pytest.mark.parametrize("relation", list(Relation))
    @pytest.mark.parametrize("delta", [0.0, 1e-9])
    @pytest.mark.parametrize("algorithm", ["auto", "clip"])
    def test_the_smallest_epsilon_works(self, relation, delta, algorithm):
        check_epsilon(1e-9)
        options = {"algorithm": algorithm, "relation": relation, "bound": 100.0}
        mean = UserMean(1e-9, delta=delta, **options).fit(ROWS, users=range(60))
        assert np.isfinite(mean.mean_).all()

    @pytest.mark.parametrize("size", [1e-26, 1e32])
    @pytest.mark.parametrize("estimator", ESTIMATORS[:-1], ids=lambda e: f"{e!r:.24}")
    def test_ranges_of_unusual_size_work_as_far_as_they_are_taken(self, estimator, size):
        fitted = clone(estimator).set_params(bound=size).fit(ROWS * size / 100.0, users=range(60))
        assert fitted.guarantee_.holds

    @pytest.mark.parametrize("size", [1e-59, 1e71])
    @pytest.mark.parametrize("delta", [0.0, 1e-6])
    def test_means_take_more(self, size, delta):
        rows = np.repeat(ROWS, 50, axis=0) * size / 100.0
        mean = UserMean(1.0, delta=delta, bound=size).fit(rows, users=range(3000))
        assert np.isfinite(mean.mean_).all()
