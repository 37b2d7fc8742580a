"""Parities: recovered privately, refused from public numbers, one record or one vote a user."""

import numpy as np
import pytest

from quorate import Ledger, UserData
from quorate.core.account.compose import price
from quorate.core.guarantees import Relation
from quorate.core.noise import SeededNoise, use_noise
from quorate.exceptions import BudgetExceededError, NotEnoughUsersError, ParameterError, SchemaError
from quorate.learners.concepts import Constant
from quorate.learners.parity_learner import ParityLearner, _own_solutions


def world(features, users, records=1, seed=0, secret=None):
    rng = np.random.default_rng(seed)
    chosen = rng.integers(0, 2, features) if secret is None else np.array(secret)
    X = rng.integers(0, 2, (users * records, features))
    return X, X @ chosen % 2, np.repeat(np.arange(users), records), tuple(np.flatnonzero(chosen))


class TestOneRecord:
    def test_sixty_four_features_are_recovered_from_nine_hundred_users(self):
        found = 0
        for seed in range(6):
            X, y, users, chosen = world(64, 920, seed=seed)
            with use_noise(SeededNoise(seed)):
                learner = ParityLearner(random_state=seed).fit(X, y, users=users)
            found += learner.answered_ and learner.concept_.chosen == chosen
        assert found >= 5

    def test_predictions_and_names(self):
        X, y, users, _ = world(4, 600, secret=[1, 0, 1, 0])
        labels = np.array(["even", "odd"])[y]
        with use_noise(SeededNoise(0)):
            learner = ParityLearner(2.0, classes=("even", "odd"), random_state=0)
            learner.fit(X, labels, users=users)
        assert np.array_equal(learner.predict(X), labels)
        assert str(learner.concept_) == "Predict 1 if an odd number of x0, x2 is true, else 0."
        assert learner.score(X, labels) == 1.0
        assert learner.algorithm_.name == "one_record"

    def test_a_user_with_many_records_has_one_equation(self):
        """However many wrong records one user holds, at most one row is spoilt."""
        X, y, users, chosen = world(8, 400, seed=1)
        X = np.concatenate([X, np.zeros((5000, 8), int)])
        y = np.concatenate([y, np.ones(5000, int)])
        users = np.concatenate([users, np.zeros(5000, int)])
        found = 0
        for seed in range(6):
            with use_noise(SeededNoise(seed)):
                learner = ParityLearner(random_state=seed).fit(X, y, users=users)
            found += getattr(learner.concept_, "chosen", ()) == chosen
        assert found >= 3

    def test_nothing_found_is_a_constant_rule(self):
        rng = np.random.default_rng(0)
        X = rng.integers(0, 2, (600, 16))
        y = rng.integers(0, 2, 600)  # no parity explains these
        with use_noise(SeededNoise(0)):
            learner = ParityLearner(random_state=0).fit(X, y, users=range(600))
        assert learner.answered_ is False
        assert learner.concept_ == Constant(0)

    def test_odd_values_are_no_error(self):
        X, y, users, _ = world(4, 400)
        X = X.astype(float)
        X[3] = np.nan
        X[4] = [np.inf, -np.inf, 1e308, 7.0]
        y = y.astype(float)
        y[5] = 9.0
        y[6] = np.nan
        ParityLearner(random_state=0).fit(X, y, users=users)

    def test_any_inputs(self):
        """Inputs of a skewed distribution: the rule errs little on the same distribution."""
        rng = np.random.default_rng(0)
        X = (rng.random((60_000, 6)) < [0.5, 0.9, 0.99, 0.5, 0.1, 0.01]).astype(int)
        y = (X[:, 0] + X[:, 2] + X[:, 5]) % 2
        learner = ParityLearner(2.0, inputs="any", error=0.1, failure=0.05, random_state=0)
        assert learner.users_needed(6) < 20_000
        with use_noise(SeededNoise(0)):
            learner.fit(X[:20_000], y[:20_000], users=range(20_000))
        assert 1 - learner.score(X[20_000:], y[20_000:]) <= 0.1

    def test_the_published_constants(self):
        X, y, users, chosen = world(4, 20_000, seed=2, secret=[1, 1, 0, 0])
        learner = ParityLearner(0.5, constants="published", failure=0.05, random_state=0)
        with use_noise(SeededNoise(2)):
            learner.fit(X, y, users=users)
        assert learner.concept_.chosen == chosen
        with pytest.raises(ParameterError, match="published"):
            ParityLearner(1.0, constants="published").users_needed(4)


class TestVotes:
    @pytest.mark.parametrize("delta", [0.0, 1e-6])
    def test_users_who_solve_alone_decide_together(self, delta):
        X, y, users, chosen = world(24, 90, records=40, seed=3)
        learner = ParityLearner(1.0, delta=delta, records=40, random_state=0)
        with use_noise(SeededNoise(0)):
            learner.fit(X, y, users=users)
        assert learner.algorithm_.name == "vote"
        assert learner.concept_.chosen == chosen

    def test_a_vote_is_a_function_of_ones_own_records(self):
        X, y, users, chosen = world(6, 30, records=20, seed=3)
        data = UserData.from_arrays(X, y, users=users)
        together = _own_solutions(data, 6)
        alone = [key for i in range(30) for key in _own_solutions(data.take([i]), 6)]
        assert together.tolist() == alone
        assert set(together) == {sum(1 << int(j) for j in chosen)}

    def test_contradictions_and_too_few_records_abstain(self):
        X = np.array([[1, 0], [1, 0], [0, 1], [1, 1]])
        y = np.array([0, 1, 0, 1])
        data = UserData.from_arrays(X, y, users=["liar", "liar", "liar", "short"])
        assert _own_solutions(data, 2).tolist() == [None, None]

    def test_one_record_is_taken_where_users_cannot_solve_alone(self):
        X, y, users, _ = world(24, 500, records=3, seed=3)
        learner = ParityLearner(records=3, random_state=0).fit(X, y, users=users)
        assert learner.algorithm_.name == "one_record"


class TestPromises:
    @pytest.mark.parametrize(
        ("delta", "algorithm"), [(0.0, "one_record"), (0.0, "vote"), (1e-6, "vote")]
    )
    def test_the_guarantee_is_what_was_declared_and_covers_what_was_drawn(self, delta, algorithm):
        X, y, users, _ = world(6, 400, records=20)
        learner = ParityLearner(1.0, delta=delta, algorithm=algorithm, random_state=0)
        learner.fit(X, y, users=users)
        promise = learner.guarantee_
        assert (promise.epsilon, promise.delta, promise.relation) == (1.0, delta, Relation.REPLACE)
        assert promise.holds
        (event,) = promise.events
        assert price(event, delta=delta, relation=Relation.REPLACE) == pytest.approx(1.0, abs=1e-9)

    def test_it_is_charged_before_data_are_read_and_refused_beyond_the_budget(self, tmp_path):
        X, y, users, _ = world(4, 400)
        ledger = Ledger(tmp_path / "ledger.db")
        ledger.set_budget("people", epsilon=1.5)
        learner = ParityLearner(1.0, ledger=ledger, data_name="people", random_state=0)
        learner.fit(X, y, users=users)
        with pytest.raises(BudgetExceededError):
            learner.fit(X, y, users=users)

    def test_only_releases_are_attributes(self):
        X, y, users, _ = world(4, 400)
        learner = ParityLearner(random_state=0).fit(X, y, users=users)
        assert {name for name in vars(learner) if name.endswith("_")} == {
            "algorithm_",
            "answered_",
            "classes_",
            "concept_",
            "error_",
            "guarantee_",
            "n_features_in_",
        }


class TestRefusals:
    @pytest.mark.parametrize("algorithm", ["one_record", "auto"])
    def test_a_delta_that_would_be_charged_unused_is_refused(self, algorithm):
        X, y, users, _ = world(4, 400)
        with pytest.raises(ParameterError, match="Leave delta out"):
            ParityLearner(delta=1e-6, algorithm=algorithm).fit(X, y, users=users)

    def test_insufficient_samples_follow_from_public_numbers_and_cost_nothing(self, tmp_path):
        X, y, users, _ = world(64, 500)
        ledger = Ledger(tmp_path / "ledger.db")
        ledger.set_budget("people", epsilon=1.0)
        learner = ParityLearner(1.0, ledger=ledger, data_name="people")
        with pytest.raises(NotEnoughUsersError, match="insufficient samples"):
            learner.fit(X, y, users=users)
        with pytest.raises(NotEnoughUsersError, match="insufficient samples"):
            learner.fit(X * 0, y * 0, users=users)
        ParityLearner(1.0, ledger=ledger, data_name="people").fit(X[:, :4], y, users=users)

    @pytest.mark.parametrize(
        ("changes", "message"),
        [
            ({"inputs": "gaussian"}, "inputs"),
            ({"algorithm": "all"}, "algorithm"),
            ({"failure": 0.0}, "failure"),
            ({"error": 2.0}, "error"),
            ({"records": 0}, "records"),
            ({"relation": Relation.ADD_REMOVE}, "REPLACE"),
            ({"constants": "best"}, "constants"),
            ({"classes": (1, 1)}, "class"),
            ({"epsilon": -1.0}, "epsilon"),
        ],
    )
    def test_parameters(self, changes, message):
        X, y, users, _ = world(4, 400)
        with pytest.raises((ParameterError, SchemaError), match=message):
            ParityLearner(**changes).fit(X, y, users=users)

    def test_too_many_features_and_missing_arguments(self):
        with pytest.raises(ParameterError, match="1024"):
            ParityLearner().users_needed(1025)
        X, y, _, _ = world(4, 400)
        with pytest.raises(ParameterError, match="users="):
            ParityLearner().fit(X, y)
        with pytest.raises(SchemaError, match="target y"):
            ParityLearner().fit(X, users=range(400))
