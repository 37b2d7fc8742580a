"""The order of a fit: charge, gather, release, promise; and what its errors may look at."""

import dataclasses

import numpy as np
import pytest

from quorate import Ledger, Relation, UserData
from quorate.core.account.account import Account
from quorate.core.guarantees import Numerics, Pure, Repeated
from quorate.core.noise import SeededNoise, use_noise
from quorate.data.engines import MemoryCrowd
from quorate.data.tables import as_feature_matrix
from quorate.estimators import Route, UserEstimator
from quorate.exceptions import BudgetExceededError, NumericalFailure, ParameterError, SchemaError
from sealing import moved


class Half(UserEstimator):
    """Spend ``cost`` of the declared budget and release nothing."""

    def __init__(self, epsilon=1.0, delta=0.0, ledger=None, data_name=None, cost=0.5):
        self.epsilon = epsilon
        self.delta = delta
        self.ledger = ledger
        self.data_name = data_name
        self.cost = cost

    def fit(self, X, y=None, *, users=None):
        self._charge(X, y, users)
        self._gather(X, y, users)
        self.guarantee_ = self._promise(Pure(self.cost))
        return self


class Noisy(UserEstimator):
    """Draw noise of this pure loss, twice, from the account that was charged or from another."""

    def __init__(self, epsilon=1.0, delta=0.0, loss=0.5, *, other=False):
        self.epsilon = epsilon
        self.delta = delta
        self.loss = loss
        self.other = other

    def fit(self, X, y=None, *, users=None):
        account = self._charge(X, y, users)
        self._gather(X, y, users)
        if self.other:
            account = Account.open(epsilon=self.epsilon)
        for _ in range(2):
            account.laplace(moved(np.zeros(1, np.int64), 1), scale=1 / self.loss)
        self.guarantee_ = self._promise(account)
        return self


X = np.arange(12.0).reshape(6, 2)
USERS = [0, 0, 1, 1, 2, 2]


class Unreadable:
    """A table that must not be touched."""

    def __array__(self, *args, **kwargs):
        raise RuntimeError("the data were read")

    @property
    def columns(self):
        raise RuntimeError("the data were read")


class TestCharging:
    def test_the_budget_is_charged_before_the_data_are_touched(self, tmp_path):
        ledger = Ledger(tmp_path / "ledger.sqlite")
        ledger.set_budget("visits", epsilon=1.0)
        with pytest.raises(SchemaError, match="withheld") as caught:
            Half(ledger=ledger, data_name="visits").fit(Unreadable(), users=USERS)
        assert caught.value.__context__ is None
        assert ledger.spent("visits").epsilon == 1.0

    def test_an_over_budget_fit_is_refused_and_reads_nothing(self, tmp_path):
        ledger = Ledger(tmp_path / "ledger.sqlite")
        ledger.set_budget("visits", epsilon=0.5)
        with pytest.raises(BudgetExceededError):
            Half(ledger=ledger, data_name="visits").fit(Unreadable(), users=USERS)
        assert ledger.spent("visits").epsilon == 0.0

    def test_the_guarantee_names_the_ledger_that_paid(self, tmp_path):
        ledger = Ledger(tmp_path / "ledger.sqlite")
        ledger.set_budget("visits", epsilon=1.0)
        fitted = Half(ledger=ledger, data_name="visits").fit(X, users=USERS)
        assert fitted.guarantee_.data_name == "visits"
        assert Half().fit(X, users=USERS).guarantee_.data_name is None

    @pytest.mark.parametrize(
        ("table", "users"),
        [(X, None), (X[:, 0], USERS), (X, USERS[:-1]), (X, "patient")],
        ids=["no users", "one axis", "too few ids", "a column name"],
    )
    def test_a_mistake_that_shapes_show_costs_nothing(self, table, users, tmp_path):
        ledger = Ledger(tmp_path / "ledger.sqlite")
        ledger.set_budget("visits", epsilon=1.0)
        with pytest.raises((ParameterError, SchemaError)):
            Half(ledger=ledger, data_name="visits").fit(table, users=users)
        assert ledger.spent("visits").epsilon == 0.0

    def test_lengths_that_differ_are_not_told(self):
        with pytest.raises(SchemaError, match="same length") as caught:
            Half().fit(X, users=USERS[:-1])
        assert not any(character.isdigit() for character in str(caught.value))

    def test_a_plan_above_the_budget_by_one_unit_gives_no_guarantee(self):
        with pytest.raises(NumericalFailure, match="no guarantee"):
            Half(epsilon=1.0, cost=np.nextafter(1.0, 2.0)).fit(X, users=USERS)

    def test_a_failed_second_fit_leaves_no_old_release(self):
        estimator = Half().fit(X, users=USERS)
        estimator.cost = 2.0
        with pytest.raises(NumericalFailure):
            estimator.fit(X, users=USERS)
        assert not hasattr(estimator, "guarantee_")

    def test_a_ledger_without_a_name_is_refused(self, tmp_path):
        with pytest.raises(ParameterError, match="data_name"):
            Half(ledger=Ledger(tmp_path / "ledger.sqlite")).fit(X, users=USERS)

    @pytest.mark.parametrize("epsilon", [0, -1, float("inf"), float("nan"), "1"])
    def test_a_bad_epsilon_is_refused(self, epsilon):
        with pytest.raises(ParameterError, match="epsilon"):
            Half(epsilon=epsilon).fit(X, users=USERS)

    def test_a_ledger_of_another_kind_is_refused(self):
        with pytest.raises(ParameterError, match=r"quorate\.Ledger"):
            Half(ledger={"epsilon": 1}, data_name="visits").fit(X, users=USERS)

    def test_a_relation_given_as_text_is_refused(self):
        estimator = Half()
        estimator.relation = "replace"
        with pytest.raises(ParameterError, match="Relation"):
            estimator.fit(X, users=USERS)


class TestPromise:
    def test_it_declares_what_was_charged_and_lists_what_was_done(self):
        promise = Half(epsilon=1.0, cost=0.5).fit(X, users=USERS).guarantee_
        assert promise.epsilon == 1.0
        assert promise.events == (Pure(0.5),)
        assert promise.relation is Relation.REPLACE

    def test_a_plan_that_costs_more_than_declared_gives_no_guarantee(self):
        with pytest.raises(NumericalFailure, match="no guarantee"):
            Half(epsilon=1.0, cost=1.001).fit(X, users=USERS)

    def test_it_lists_what_was_drawn_from_the_account(self):
        promise = Noisy(loss=0.5).fit(X, users=USERS).guarantee_
        assert promise.epsilon == 1.0
        assert promise.events == (Repeated(Pure(0.5), 2),)

    def test_a_draw_beyond_the_budget_is_refused(self):
        with pytest.raises(NumericalFailure, match="does not fit"):
            Noisy(loss=0.6).fit(X, users=USERS)

    def test_an_account_that_was_not_charged_gives_no_guarantee(self):
        with pytest.raises(NumericalFailure, match="another account"):
            Noisy(other=True).fit(X, users=USERS)

    def test_a_test_double_voids_the_guarantee(self):
        with use_noise(SeededNoise(0)):
            promise = Half().fit(X, users=USERS).guarantee_
        assert promise.numerics is Numerics.VOID
        assert not promise.holds

    def test_the_unit_comes_from_the_users(self):
        data = UserData.from_arrays(X, users=USERS, unit="patient")
        assert Half().fit(data).guarantee_.unit == "patient"


class TestInput:
    def test_rows_without_users_are_refused(self):
        with pytest.raises(ParameterError, match="a row is not a person"):
            Half().fit(X)

    def test_user_data_together_with_users_is_refused(self):
        with pytest.raises(ParameterError, match="either a UserData"):
            Half().fit(UserData.from_arrays(X, users=USERS), users=USERS)

    def test_a_missing_target_is_refused(self):
        with pytest.raises(SchemaError, match="target"):
            Half()._charge(X, None, USERS, target=True)

    def test_a_finer_unit_must_be_named(self):
        days = [0, 1, 0, 1, 0, 1]
        with pytest.raises(ParameterError, match="person x day"):
            Half().fit(X, users=(USERS, days))
        named = UserData.from_arrays(X, users=(USERS, days), unit="person x day")
        assert "for each person x day" in str(Half().fit(named).guarantee_)

    def test_nobody_at_all_is_refused_only_where_the_number_of_users_is_public(self):
        fractions = [0.5] * len(X)
        with pytest.raises(SchemaError, match="at least one user"):
            Half().fit(X, users=fractions)
        half = Half()
        half.relation = Relation.ADD_REMOVE
        assert half.fit(X, users=fractions).n_features_in_ == 2

    def test_infinities_and_nan_are_legal(self):
        hostile = X.copy()
        hostile[0] = np.nan, np.inf
        assert Half().fit(hostile, users=USERS).n_features_in_ == 2

    @pytest.mark.parametrize(
        ("table", "message"),
        [
            (np.array([["a", "b"]]), "Expected numbers"),
            (np.array([[1, {}]], dtype=object), "Expected numbers"),
            (np.zeros(3), "2 dimensions"),
            (np.zeros((3, 0)), "0 feature"),
            (np.zeros((2, 2), dtype=complex), "Complex"),
        ],
    )
    def test_a_wrong_schema_is_refused(self, table, message):
        with pytest.raises(SchemaError, match=message):
            as_feature_matrix(table)

    def test_a_vector_is_one_feature_where_there_is_only_one(self):
        assert as_feature_matrix(np.zeros(3), single=True)[0].shape == (3, 1)

    def test_sparse_tables_are_refused_with_advice(self):
        from scipy.sparse import csr_array

        with pytest.raises(SchemaError, match="toarray"):
            as_feature_matrix(csr_array(X))

    def test_a_crowd_in_parts_is_refused_by_those_who_do_not_take_one(self):
        crowd = MemoryCrowd(UserData.from_arrays(X, users=USERS), n_parts=2)
        with pytest.raises(ParameterError, match="MemoryCrowd"):
            Half().fit(crowd)

    def test_feature_names_are_kept_and_compared(self):
        import pandas as pd

        fitted = Half().fit(pd.DataFrame(X, columns=["age", "bmi"]), users=USERS)
        assert list(fitted.feature_names_in_) == ["age", "bmi"]
        fitted._features(pd.DataFrame(X, columns=["age", "bmi"]))
        with pytest.raises(SchemaError, match="feature names"):
            fitted._features(pd.DataFrame(X, columns=["bmi", "age"]))
        with pytest.raises(SchemaError, match="expecting 2 features"):
            fitted._features(X[:, :1])


class TestRoutes:
    def test_it_says_which_way_and_why(self):
        assert str(Route(name="ball", reason="there was room.")) == "ball: there was room."

    def test_it_is_frozen_and_takes_keywords_only(self):
        with pytest.raises(dataclasses.FrozenInstanceError):
            Route(name="ball", reason="").name = "core"
        with pytest.raises(TypeError):
            Route("ball", "there was room.")


def test_a_ledger_is_charged_with_all_that_is_declared(tmp_path):
    ledger = Ledger(tmp_path / "ledger.db")
    ledger.set_budget("visits", epsilon=2.0, delta=1e-5)
    Half(1.0, delta=1e-6, ledger=ledger, data_name="visits").fit(X, users=range(6))
    assert ledger.spent("visits").epsilon == 1.0
    assert ledger.spent("visits").delta == 1e-6
