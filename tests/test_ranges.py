"""Public mistakes are refused before they cost anything, and no message repeats data."""

import math

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from sklearn.base import clone

from quorate.core.bounds.grid import Ball, Box
from quorate.core.guarantees import Relation
from quorate.core.noise import SeededNoise, use_noise
from quorate.core.users import UserData
from quorate.data.tables import declared_names
from quorate.exceptions import NumericalFailure, ParameterError, UnboundedContributionError
from quorate.ledger.ledger import Ledger
from quorate.means import (
    PrivateMedian,
    UserCovariance,
    UserMean,
    UserQuantiles,
    UserQueries,
    UserScaler,
)
from quorate.models import LogisticRegression
from quorate.ranges import (
    Limit,
    as_bound,
    as_limits,
    declared_bound,
    declared_features,
    declared_limits,
    half_width,
    limits_by_name,
)

ROWS = np.random.default_rng(0).normal(51.2, 0.1, size=(60, 2))
TABLES = {
    "array": (ROWS, range(60)),
    "frame": (pd.DataFrame(ROWS, columns=["a", "b"]), range(60)),
    "users": (UserData(ROWS, offsets=np.arange(61)), None),
}
ESTIMATORS = [
    UserMean(1.0, bounds=100.0),
    UserMean(1.0, delta=1e-6, bounds=100.0),
    UserScaler(1.0, bounds=100.0),
    UserScaler(1.0, delta=1e-6, bounds=100.0),
    UserCovariance(1.0, delta=1e-6, bounds=100.0),
    PrivateMedian(1.0, bounds=100.0),
    UserQuantiles(1.0, bounds=100.0),
    UserQueries(1.0, delta=1e-6, bounds=100.0, dimension=2),
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
    "wider than a float": (-1.7e308, 1.7e308),
    "too narrow": 1e-300,
    "far away": (1e299, 2e299),
    "a giant ball": Ball(2.0**250, dimension=2),
    "three": (0.0, 1.0, 2.0),
    "half reversed": ([0.0, 2.0], 1.0),
    "other length": ([0.0, 0.0, 0.0], 1.0),
    "matrix": ([[0.0]], 1.0),
    "half infinite": (0.0, [1.0, math.inf]),
    "other dimension": Ball(1.0, dimension=3),
    "by a name that is not there": {"c": 1.0},
    "by one name of two": {"a": 1.0},
    "by name, reversed": {"a": 1.0, "b": (2.0, 1.0)},
    "data": ROWS,
    "data as limits": (ROWS, ROWS),
}


@pytest.fixture(scope="module")
def shelf():
    return []


@pytest.fixture
def ledger(shelf, tmp_path_factory):
    """A ledger that nobody has charged: the last one, if it was spared."""
    if not shelf or len(shelf[-1].history("people")) > 1:
        shelf.append(Ledger(tmp_path_factory.mktemp("books") / "ledger.db"))
        shelf[-1].set_budget("people", epsilon=100.0, delta=0.5)
    return shelf[-1]


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
        refused(estimator, ledger, bounds=bound)

    @pytest.mark.parametrize("table", TABLES)
    @pytest.mark.parametrize("estimator", ESTIMATORS[:-1], ids=lambda e: f"{e!r:.24}")
    def test_a_bound_for_other_features_than_there_are(self, estimator, table, ledger):
        refused(estimator, ledger, table=table, bounds=([0.0] * 3, [100.0] * 3))

    @pytest.mark.parametrize("epsilon", [0.0, -1.0, math.nan, math.inf, True, "1", 1e-12, ROWS])
    @pytest.mark.parametrize("estimator", ESTIMATORS, ids=lambda e: f"{e!r:.24}")
    def test_a_wrong_epsilon(self, estimator, epsilon, ledger):
        refused(estimator, ledger, epsilon=epsilon)

    @pytest.mark.parametrize("estimator", ESTIMATORS[4::3], ids=lambda e: f"{e!r:.24}")
    def test_a_missing_delta(self, estimator, ledger):
        assert "delta > 0" in refused(estimator, ledger, delta=0.0)

    @pytest.mark.parametrize("estimator", [ESTIMATORS[1], ESTIMATORS[3], ESTIMATORS[4]])
    def test_a_delta_that_no_noise_keeps(self, estimator, ledger):
        refused(estimator, ledger, delta=1e-300, error=NumericalFailure)

    @pytest.mark.parametrize("resolution", [201.0, 1e-20, math.nan, -1.0])
    def test_a_resolution_that_does_not_fit_the_range(self, resolution, ledger):
        refused(PrivateMedian(1.0, bounds=100.0), ledger, resolution=resolution)

    def test_a_quantile_that_cannot_be_written_as_a_fraction(self, ledger):
        refused(UserQuantiles(1.0, bounds=100.0), ledger, quantiles=[math.pi / 4])

    @pytest.mark.parametrize("table", TABLES)
    def test_winsorizing_vectors_without_delta(self, table, ledger):
        estimator = UserMean(1.0, bounds=100.0, algorithm="winsorized", radius=1.0)
        assert "one dimension" in refused(estimator, ledger, table=table)

    @pytest.mark.parametrize("kind", [UserMean, UserQueries])
    def test_a_published_epsilon_beyond_its_limit(self, kind, ledger):
        options = {"algorithm": "winsorized", "radius": 1.0, "constants": "published"}
        estimator = kind(90.0, delta=1e-6, bounds=100.0, **options)
        assert "calibrated" in refused(estimator, ledger)

    def test_a_published_radius_that_is_lost_in_the_range(self, ledger):
        options = {"algorithm": "winsorized", "radius": 1e-30}
        refused(UserMean(1.0, delta=1e-6, bounds=100.0, **options), ledger)

    @pytest.mark.parametrize("records", [0, 2.5, True, "all", -3])
    def test_a_wrong_number_of_records(self, records, ledger):
        refused(UserMean(1.0, delta=1e-6, bounds=100.0), ledger, records=records)

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
        assert declared_features(X) == features

    def test_where_the_data_do_not_tell_the_bound_does(self):
        assert declared_bound(Ball(1.0, dimension=7), [[1.0]]).dimension == 7
        assert declared_bound(1.0, [[1.0, 2.0]]).dimension == 1
        mean = UserMean(1.0, bounds=([0.0, 0.0], 1.0)).fit([[0.5, 0.5]] * 3, users=range(3))
        assert mean.mean_.shape == (2,)

    @pytest.mark.parametrize("relation", list(Relation))
    @pytest.mark.parametrize("delta", [0.0, 1e-9])
    @pytest.mark.parametrize("algorithm", ["auto", "clip"])
    def test_the_smallest_epsilon_works(self, relation, delta, algorithm):
        options = {"algorithm": algorithm, "relation": relation, "bounds": 100.0}
        mean = UserMean(1e-9, delta=delta, **options).fit(ROWS, users=range(60))
        assert np.isfinite(mean.mean_).all()

    @pytest.mark.parametrize("size", [1e-26, 1e32])
    @pytest.mark.parametrize("estimator", ESTIMATORS[:-1], ids=lambda e: f"{e!r:.24}")
    def test_ranges_of_unusual_size_work_as_far_as_they_are_taken(self, estimator, size):
        fitted = clone(estimator).set_params(bounds=size).fit(ROWS * size / 100.0, users=range(60))
        assert fitted.guarantee_.holds

    @pytest.mark.parametrize("size", [1e-59, 1e71])
    @pytest.mark.parametrize("delta", [0.0, 1e-6])
    def test_means_take_more(self, size, delta):
        rows = np.repeat(ROWS, 50, axis=0) * size / 100.0
        mean = UserMean(1.0, delta=delta, bounds=size).fit(rows, users=range(3000))
        assert np.isfinite(mean.mean_).all()


NAMED = {
    "pandas": pd.DataFrame(ROWS, columns=["a", "b"]),
    "pyarrow": pa.table({"a": ROWS[:, 0], "b": ROWS[:, 1]}),
    "users": UserData(ROWS, offsets=np.arange(61), feature_names=["a", "b"]),
}


class TestLimitsByName:
    @pytest.mark.parametrize("table", NAMED.values(), ids=NAMED.keys())
    def test_a_dictionary_means_what_the_pair_means(self, table):
        by_name = {"b": (0.0, 100.0), "a": 60.0}
        assert declared_names(table) == ("a", "b")
        assert declared_bound(by_name, NAMED["users"]) == Box([-60.0, 0.0], [60.0, 100.0])
        lower, upper = as_limits(by_name, 2, declared_names(table))
        assert (lower.tolist(), upper.tolist()) == ([-60.0, 0.0], [60.0, 100.0])

    @pytest.mark.parametrize("estimator", ESTIMATORS[:-1], ids=lambda e: f"{e!r:.24}")
    @pytest.mark.parametrize("table", NAMED)
    def test_every_estimator_of_named_columns_takes_it(self, estimator, table):
        users = None if table == "users" else range(60)
        found = []
        for bounds in ({"b": (0.0, 80.0), "a": 90.0}, ([-90.0, 0.0], [90.0, 80.0])):
            with use_noise(SeededNoise(0)):
                fitted = clone(estimator).set_params(bounds=bounds).fit(NAMED[table], users=users)
            found.append([str(v) for k, v in sorted(vars(fitted).items()) if k.endswith("_")])
        assert found[0] == found[1]

    def test_models_take_it_too(self):
        y = ROWS[:, 0] > 51.2
        found = []
        for bounds in ({"b": (0.0, 80.0), "a": 90.0}, ([-90.0, 0.0], [90.0, 80.0])):
            with use_noise(SeededNoise(0)):
                model = LogisticRegression(9.0, delta=1e-3, bounds=bounds, hopeless="constant")
                found.append(model.fit(NAMED["pandas"], y, users=range(60)).intercept_)
        assert np.array_equal(*found)

    def test_columns_without_names_are_refused_before_the_charge(self, ledger):
        message = refused(ESTIMATORS[0], ledger, bounds={"a": 1.0, "b": 1.0})
        assert "names of columns" in message

    def test_a_column_that_is_left_out_is_named(self):
        with pytest.raises(UnboundedContributionError, match="'b'"):
            as_limits({"a": 1.0}, 2, ["a", "b"])
        with pytest.raises(ParameterError, match="got bounds for age"):
            limits_by_name({"age": 1.0}, ["a", "b"])
        assert limits_by_name({"a": 1.0, "y": 2.0, None: 3.0}, ["a", "b"], others=["y"]) == [1.0, 3]

    def test_text_and_numbers_say_the_same(self):
        assert Limit.parse("-3,5") == Limit(-3, 5)
        assert half_width((-3, 5)) == 4.0 == half_width(4)

    @pytest.mark.parametrize("bounds", [(1.0, 0.0), {"c": 1.0}, Ball(1.0, dimension=2), "9"])
    def test_models_refuse_wrong_limits_before_the_charge(self, bounds, ledger):
        model = LogisticRegression(9.0, bounds=bounds, ledger=ledger, data_name="people")
        with pytest.raises(ParameterError, match="bounds"):
            model.fit(NAMED["pandas"], np.zeros(60), users=range(60))
        assert len(ledger.history("people")) == 1
        with pytest.raises(ParameterError, match="bounds"):
            declared_limits(bounds, NAMED["pandas"])
