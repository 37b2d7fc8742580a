"""Private model choice pays for what it sees."""

import numpy as np
import pytest
from sklearn.base import clone

from quorate.auditing import replay
from quorate.core.account.compose import price
from quorate.core.guarantees import Relation
from quorate.core.noise import SeededNoise, use_noise
from quorate.core.people import People
from quorate.core.users import UserData
from quorate.exceptions import NotEnoughUsersError, NumericalFailure, ParameterError
from quorate.ledger.ledger import Ledger
from quorate.models import LinearRegression, LogisticRegression, PrivateGridSearch
from sealing import numbers_of

RNG = np.random.default_rng(0)
X = RNG.normal(size=(6000, 2))
Y = (X[:, 0] > 0).astype(int)
USERS = np.repeat(np.arange(1500), 4)


def search(**changes):
    options = {"epsilon": 2.0, "random_state": 0} | changes
    grid = options.pop("param_grid", {"penalty": [100.0, 0.0, 50.0]})
    estimator = options.pop("estimator", LogisticRegression(records=4))
    return PrivateGridSearch(estimator, grid, **options)


def fitted(**changes):
    with use_noise(SeededNoise(3)):
        return search(**changes).fit(X, Y, users=USERS)


class TestChoice:
    def test_the_better_setting_wins(self):
        found = fitted()
        assert found.best_params_ == {"penalty": 0.0}
        assert found.best_index_ == 1
        assert found.score(X, Y) > 0.85
        assert set(np.unique(found.predict(X))) <= {0, 1}

    def test_regression_is_judged_by_its_errors(self):
        estimator = LinearRegression(target_bounds=(-4.0, 4.0), records=4)
        with use_noise(SeededNoise(3)):
            found = search(estimator=estimator).fit(X, X[:, 0], users=USERS)
        assert found.best_params_ == {"penalty": 0.0}

    def test_regression_without_a_public_range_is_refused(self):
        with pytest.raises(ParameterError, match="target_bounds"):
            search(estimator=LinearRegression(records=4)).fit(X, X[:, 0], users=USERS)

    def test_under_add_remove_too(self):
        assert fitted(relation=Relation.ADD_REMOVE).best_params_ == {"penalty": 0.0}


class TestPromise:
    def test_candidates_choice_and_fit_together_keep_the_budget(self):
        found = fitted()
        [event] = found.guarantee_.events
        assert 0.9 * 2.0 < price(event, delta=1e-6, relation=Relation.REPLACE) <= 2.0

    def test_no_mark_is_shown(self):
        released = {name for name in vars(fitted()) if name.endswith("_")}
        assert released == {
            "algorithm_",
            "best_estimator_",
            "best_index_",
            "best_params_",
            "classes_",
            "error_",
            "guarantee_",
            "n_features_in_",
        }

    def test_the_ledger_is_charged_once(self, tmp_path):
        ledger = Ledger(tmp_path / "ledger.db")
        ledger.set_budget("people", epsilon=3.0, delta=1e-5)
        search(ledger=ledger, data_name="people").fit(X, Y, users=USERS)
        assert len(ledger.history("people")) == 2

    def test_a_candidate_that_draws_more_than_its_part_is_refused(self, monkeypatch):
        def whole(self, square):
            return self

        monkeypatch.setattr("quorate.core.account.account.Account.part_of", whole)
        with pytest.raises(NumericalFailure, match="nothing was drawn"):
            fitted()


class TestReplay:
    def run(self, rows):
        return search(
            random_state=5, epsilon=300.0, estimator=LogisticRegression(records=4, steps=3)
        ).fit(UserData(rows, np.repeat([0.0, 1.0], 40), offsets=np.arange(0, 81, 4)))

    def test_a_neighbour_looks_the_same(self):
        rows = RNG.normal(size=(80, 2))
        other = rows.copy()
        other[:4] = 1e9
        assert replay(self.run, rows, other).same

    def test_marks_that_are_shown_are_caught(self):
        def leaks(rows):
            found = self.run(rows)
            # Fixed coefficients, so that the marks surely differ between the neighbours.
            found.best_estimator_.coef_ = np.array([[1.0, 0.0]])
            found.best_estimator_.intercept_ = np.zeros(1)
            people = UserData(rows, np.repeat([0.0, 1.0], 40), offsets=np.arange(0, 81, 4))
            marks = found._marks(People(people, found.relation), (found.best_estimator_,))
            found.marks_ = numbers_of(marks)
            return found

        rows = RNG.normal(size=(80, 2))
        other = rows.copy()
        rows[:4] = 1.0
        other[:4] = -1.0
        assert not replay(leaks, rows, other).same


class TestRefusals:
    def test_settings_the_search_owns(self):
        with pytest.raises(ParameterError, match="epsilon"):
            fitted(param_grid={"epsilon": [1.0, 2.0]})

    def test_other_estimators(self):
        from sklearn.linear_model import LogisticRegression as Open

        with pytest.raises(ParameterError, match="linear models"):
            fitted(estimator=Open())

    @pytest.mark.parametrize("change", [{"selection_share": 0.0}, {"fit_share": 1.0}], ids=str)
    def test_nonsense(self, change):
        with pytest.raises(ParameterError):
            fitted(**change)

    def test_users_are_needed(self):
        with pytest.raises(ParameterError, match="users"):
            search().fit(X, Y)

    def test_too_few_users_are_refused_before_the_charge(self, tmp_path):
        ledger = Ledger(tmp_path / "ledger.db")
        ledger.set_budget("people", epsilon=3.0, delta=1e-5)
        with pytest.raises(NotEnoughUsersError):
            search(ledger=ledger, data_name="people").fit(X[:400], Y[:400], users=USERS[:400])
        assert len(ledger.history("people")) == 1

    def test_it_clones(self):
        assert clone(search()).param_grid == search().param_grid
