"""Hopeless fits are known before any data are read."""

import numpy as np
import pytest

from quorate.core.guarantees import Relation
from quorate.core.users import UserData
from quorate.exceptions import NotEnoughUsersError, ParameterError
from quorate.models import LogisticRegression, model_feasibility


class TestRule:
    def test_digits_with_29_users_are_hopeless(self):
        digits = model_feasibility(n_users=29, dimension=650, epsilon=1.0, delta=1e-6)
        assert digits.hopeless
        with pytest.raises(NotEnoughUsersError, match="216 users"):
            digits.require()

    def test_more_users_epsilon_or_fewer_parameters_help(self):
        base = {"n_users": 29, "dimension": 6500, "epsilon": 1.0, "delta": 1e-6}
        needed = model_feasibility(**base).users_needed
        assert model_feasibility(**base | {"epsilon": 4.0}).users_needed < needed
        assert model_feasibility(**base | {"dimension": 65}).users_needed < needed
        assert not model_feasibility(**base | {"n_users": needed}).hopeless

    def test_public_records_sharpen_it(self):
        base = {"n_users": 300, "dimension": 100, "epsilon": 1.0, "delta": 1e-6}
        assert (
            model_feasibility(**base, records=1).users_needed
            > model_feasibility(**base).users_needed
        )
        assert (
            model_feasibility(**base, records=10**6).users_needed
            == model_feasibility(**base).users_needed
        )

    def test_add_remove_needs_half_as_many(self):
        base = {"n_users": 300, "dimension": 40_000, "epsilon": 1.0, "delta": 1e-6}
        replaced = model_feasibility(**base).users_needed
        added = model_feasibility(**base, relation=Relation.ADD_REMOVE).users_needed
        assert added == pytest.approx(replaced / 2, abs=1)

    def test_a_hopeless_fit_really_is_noise(self):
        """The noise of one step with the whole budget exceeds the longest possible gradient."""
        case = model_feasibility(n_users=100, dimension=400, epsilon=1.0, delta=1e-6)
        assert case.hopeless
        assert 2 * np.sqrt(400) / (100 * 0.2367) > 1

    def test_nonsense_is_refused(self):
        with pytest.raises(ParameterError, match="dimension"):
            model_feasibility(n_users=1, dimension=0, epsilon=1.0, delta=1e-6)


class TestInAFit:
    def digits(self):
        from sklearn.datasets import load_digits

        X, y = load_digits(return_X_y=True)
        return X[: 29 * 60], y[: 29 * 60], np.repeat(np.arange(29), 60)

    def test_multinomial_digits_with_29_users_are_refused_before_the_fit(self):
        X, y, users = self.digits()
        model = LogisticRegression(classes=range(10), bounds=(0.0, 16.0))
        with pytest.raises(NotEnoughUsersError, match="hopeless='constant'"):
            model.fit(X, y, users=users)
        assert not hasattr(model, "guarantee_")

    def test_the_refusal_costs_nothing(self, tmp_path):
        from quorate.ledger.ledger import Ledger

        ledger = Ledger(tmp_path / "ledger.db")
        ledger.set_budget("digits", epsilon=1.0, delta=1e-5)
        X, y, users = self.digits()
        model = LogisticRegression(classes=range(10), ledger=ledger, data_name="digits")
        with pytest.raises(NotEnoughUsersError):
            model.fit(X, y, users=users)
        assert len(ledger.history("digits")) == 1, "the budget was set, and nothing charged"

    def test_who_insists_gets_a_constant(self):
        X, y, users = self.digits()
        model = LogisticRegression(classes=range(10), bounds=(0.0, 16.0), hopeless="constant")
        model.fit(X, y, users=users)
        assert model.coef_.shape == (10, 64)
        assert not model.coef_.any()
        assert model.guarantee_.epsilon == 1.0

    def test_user_data_is_refused_too(self):
        X, y, users = self.digits()
        people = UserData.from_arrays(X, y, users=users)
        with pytest.raises(NotEnoughUsersError):
            LogisticRegression(classes=range(10)).fit(people)
