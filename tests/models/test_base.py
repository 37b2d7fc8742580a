"""What all linear models promise: order of a fit, scikit-learn's contract, refusals."""

import pickle
import warnings

import numpy as np
import pandas as pd
import pytest
from sklearn import config_context
from sklearn.base import clone, is_classifier
from sklearn.model_selection import GridSearchCV, GroupKFold, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.utils.estimator_checks import parametrize_with_checks

from quorate.core.bounds.grid import Ball
from quorate.core.noise import SeededNoise, use_noise
from quorate.exceptions import BudgetExceededError, ParameterError, SchemaError, WithheldError
from quorate.ledger.ledger import Ledger
from quorate.means.scaler import UserScaler
from quorate.models import HuberRegression, LinearRegression, LinearSVC, LogisticRegression, Ridge

RNG = np.random.default_rng(0)
X = RNG.normal(size=(4000, 2))
Y = (X[:, 0] > 0).astype(int)
USERS = np.repeat(np.arange(1000), 4)
EVERY = [LogisticRegression, LinearSVC, LinearRegression, Ridge, HuberRegression]


# --- scikit-learn's own checks, through subclasses in which each row is a user ------------------


def each_row_a_user(kind):
    """Return a model for checks that know no users; classes come from y, in tests only."""

    class Checked(kind):
        pass

    def fit(self, X, y=None, users=None):
        rows = np.asarray(X)
        ids = np.arange(len(rows)) if rows.ndim else None
        # One seed per fit: the checks compare fits of the same data.
        with use_noise(SeededNoise(0)):
            if y is None or not hasattr(self, "classes"):
                return super(Checked, self).fit(X, y, users=ids)
            from sklearn.utils.multiclass import check_classification_targets

            check_classification_targets(y)
            labels = np.unique(np.asarray(y))
            if labels.size < 2:
                raise ValueError("Only one class in y.")
            if kind is LinearSVC and labels.size > 2:
                raise ValueError("Only binary classification is supported.")
            given, self.classes = self.classes, labels
            try:
                return super(Checked, self).fit(X, y, users=ids)
            finally:
                self.classes = given

    # Beside the class, where what it says about labels is not withheld: the checks want to hear it.
    Checked.fit = np.errstate(all="ignore")(fit)
    Checked.__name__ = Checked.__qualname__ = f"Checked{kind.__name__}"
    globals()[Checked.__name__] = Checked
    return Checked(epsilon=1e6, delta=0.1, hopeless="constant")


REASONS = {
    "check_dtype_object": "a column of objects may hold anything; it is refused by its type",
    "check_supervised_y_2d": "a target of shape (n, 1) is read as it is meant, without a warning",
    "check_supervised_y_no_nan": "an error about a value would leak: such records are dropped",
    "check_parameters_default_constructible": "relation is an Enum and not a string, by design",
}


def expected_failures(estimator):
    # Classifiers are refused such labels by the class above, which needs to know the classes.
    spared = {"check_supervised_y_no_nan"} if is_classifier(estimator) else set()
    return {check: reason for check, reason in REASONS.items() if check not in spared}


@parametrize_with_checks(
    [each_row_a_user(kind) for kind in EVERY], expected_failed_checks=expected_failures
)
def test_scikit_learn_agrees(estimator, check):
    check(estimator)


# --- citizenship ---------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", EVERY)
class TestContract:
    def fit(self, kind, **options):
        with use_noise(SeededNoise(1)):
            return kind(2.0, **options).fit(X, Y, users=USERS)

    def test_it_clones_and_keeps_its_parameters(self, kind):
        model = kind(0.7, penalty=0.2, steps=3)
        assert clone(model).get_params() == model.get_params()
        assert self.fit(kind, steps=3).steps == 3

    def test_a_fitted_model_survives_a_pickle(self, kind):
        model = self.fit(kind)
        again = pickle.loads(pickle.dumps(model))
        assert np.array_equal(again.predict(X), model.predict(X))
        assert again.guarantee_ == model.guarantee_

    def test_released_are_these_names_and_nothing_else(self, kind):
        released = {name for name in vars(self.fit(kind)) if name.endswith("_")}
        assert released - {"classes_"} == {
            "algorithm_",
            "coef_",
            "error_",
            "intercept_",
            "guarantee_",
            "n_features_in_",
            "trace_",
        }

    def test_column_names_are_kept_and_checked(self, kind):
        frame = pd.DataFrame(X, columns=["age", "weight"])
        with use_noise(SeededNoise(1)):
            model = kind(2.0).fit(frame, Y, users=USERS)
        assert model.feature_names_in_.tolist() == ["age", "weight"]
        with pytest.raises(SchemaError, match="feature names"):
            model.predict(frame[["weight", "age"]])

    def test_sparse_input_is_refused_clearly(self, kind):
        from scipy import sparse

        with pytest.raises(SchemaError, match="dense"):
            kind(1.0).fit(sparse.csr_array(X), Y, users=USERS)

    def test_users_are_needed(self, kind):
        with pytest.raises(ParameterError, match="a row is not a person"):
            kind(1.0).fit(X, Y)

    def test_partial_fit_is_refused_with_a_reason(self, kind):
        assert not hasattr(kind(1.0), "partial_fit")
        with pytest.raises(AttributeError, match="charged again"):
            kind(1.0).partial_fit(X, Y, users=USERS)

    def test_the_progress_bar_is_for_terminals(self, kind, capsys):
        self.fit(kind)
        assert capsys.readouterr().err == ""


class TestRouting:
    def test_users_reach_the_model_through_a_pipeline(self):
        with config_context(enable_metadata_routing=True), use_noise(SeededNoise(1)):
            pipeline = make_pipeline(
                UserScaler(epsilon=2.0, delta=1e-6, bounds=10.0), LogisticRegression(2.0)
            )
            pipeline.fit(X, Y, users=USERS)
            assert pipeline.score(X, Y) > 0.85

    def test_cross_validation_splits_by_user(self):
        with (
            config_context(enable_metadata_routing=True),
            use_noise(SeededNoise(1)),
            pytest.warns(UserWarning, match="every fit spends epsilon=4 again") as said,
        ):
            scores = cross_val_score(
                LogisticRegression(4.0),
                X,
                Y,
                cv=GroupKFold(3),
                params={"users": USERS, "groups": USERS},
            )
        assert len(said) == 3
        assert scores.min() > 0.85

    def test_grid_search_passes_users_on(self):
        with config_context(enable_metadata_routing=True), use_noise(SeededNoise(1)):
            search = GridSearchCV(
                LogisticRegression(4.0), {"penalty": [0.0, 50.0]}, cv=GroupKFold(2)
            )
            with pytest.warns(UserWarning, match="Use PrivateGridSearch"):
                search.fit(X, Y, users=USERS, groups=USERS)
        assert search.best_params_ == {"penalty": 0.0}

    def test_the_warning_comes_before_the_first_charge(self, tmp_path):
        ledger = Ledger(tmp_path / "ledger.db")
        ledger.set_budget("people", epsilon=9.0, delta=1e-3)
        model = LogisticRegression(4.0, ledger=ledger, data_name="people")
        params = {"users": USERS, "groups": USERS}
        with config_context(enable_metadata_routing=True), warnings.catch_warnings():
            warnings.simplefilter("error")
            with pytest.raises(WithheldError):
                cross_val_score(model, X, Y, cv=GroupKFold(2), params=params, error_score="raise")
        assert ledger.spent("people").epsilon == 0


class TestLedger:
    def test_the_charge_comes_before_the_data(self, tmp_path):
        class Untouchable:
            shape, ndim = (3, 2), 2

            def __len__(self):
                return 3

            def __array__(self, dtype=None, copy=None):
                raise AssertionError("a record was read")

        ledger = Ledger(tmp_path / "ledger.db")
        ledger.set_budget("people", epsilon=0.5, delta=1e-6)
        model = LogisticRegression(1.0, ledger=ledger, data_name="people", hopeless="constant")
        with pytest.raises(BudgetExceededError):
            model.fit(Untouchable(), Y[:3], users=np.arange(3))

    def test_the_guarantee_names_the_data(self, tmp_path):
        ledger = Ledger(tmp_path / "ledger.db")
        ledger.set_budget("people", epsilon=1.5, delta=1e-5)
        model = LogisticRegression(1.0, ledger=ledger, data_name="people").fit(X, Y, users=USERS)
        assert model.guarantee_.data_name == "people"
        with pytest.raises(BudgetExceededError):
            model.fit(X, Y, users=USERS)


class TestParameters:
    @pytest.mark.parametrize(
        "change",
        [
            {"epsilon": 0.0},
            {"epsilon": np.nan},
            {"delta": 0.0},
            {"delta": 1.0},
            {"penalty": -1.0},
            {"records": "some"},
            {"steps": 0},
            {"hopeless": "maybe"},
            {"fit_intercept": "yes"},
            {"warm_start": 1},
            {"batch_rate": 1.5},
            {"bounds": (0.0, [1.0, 2.0, 3.0])},
            {"bounds": (1.0, 0.0)},
            {"bounds": Ball(1.0, dimension=2)},
            {"relation": "replace"},
        ],
        ids=str,
    )
    def test_nonsense_is_refused(self, change):
        with pytest.raises(ParameterError):
            LogisticRegression(**{"epsilon": 1.0} | change).fit(X, Y, users=USERS)

    def test_a_refusal_says_what_to_do(self):
        with pytest.raises(ParameterError, match="Choose delta"):
            LogisticRegression(delta=0.0).fit(X, Y, users=USERS)
