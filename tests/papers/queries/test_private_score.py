"""Scores of models: bounds that hold and are not loose, users who count once, priced folds."""

import numpy as np
import pyarrow as pa
import pytest
from sklearn.linear_model import LogisticRegression as PlainRegression

from quorate import ConceptLearner, Ledger, LogisticRegression, UserData
from quorate.core.account.compose import price
from quorate.core.guarantees import Relation
from quorate.core.noise import SeededNoise, use_noise
from quorate.data.engines.memory import MemoryCrowd
from quorate.exceptions import BudgetExceededError, ParameterError
from quorate.learners.concepts import Conjunctions, Thresholds
from quorate.papers.queries import Population
from quorate.papers.queries.private_score import private_cross_val_score, private_score

RULE = Thresholds(0, 100).concept(50)
RNG = np.random.default_rng(0)
AGES = RNG.integers(0, 101, size=240).astype(float)
USERS = RNG.integers(0, 60, size=240)
LABELS = (AGES >= 40).astype(int)


def true_score():
    right = (AGES >= 50) == (LABELS == 1)
    return np.mean([right[user == USERS].mean() for user in range(60) if np.any(user == USERS)])


def score(seed=0, **changes):
    with use_noise(SeededNoise(seed)):
        return private_score(
            RULE, AGES.reshape(-1, 1), LABELS, users=USERS, **({"epsilon": 1.0} | changes)
        )


class TestError:
    @pytest.mark.parametrize("changes", [{}, {"delta": 1e-5}, {"relation": Relation.ADD_REMOVE}])
    def test_the_bound_holds_as_often_as_it_says_and_is_not_loose(self, changes):
        """At beta = 0.2 and up to four standard deviations of what 120 runs show."""
        found = [score(seed, beta=0.2, **changes) for seed in range(120)]
        errors = np.array([abs(each.value - true_score()) for each in found])
        bounds = np.array([each.error for each in found])
        outside = np.mean(errors > bounds)
        assert outside <= 0.2 + 4 * np.sqrt(0.16 / 120)
        if not changes:
            assert outside > 0.1
            assert np.mean(errors > 0.7 * bounds) > 0.2

    def test_a_giant_user_counts_once(self):
        ages = np.concatenate([np.full(100_000, 45.0), np.full(999, 10.0)])
        users = np.concatenate([np.zeros(100_000, int), np.arange(1, 1000)])
        with use_noise(SeededNoise(0)):
            found = private_score(RULE, ages.reshape(-1, 1), ages >= 40, users=users, epsilon=1.0)
        assert found.value > 0.98


class TestModels:
    def test_a_model_sees_one_user_at_a_time(self):
        seen = []

        class Curious:
            def predict(self, X):
                seen.append(len(X))
                return X[:, 0] >= 50

        with use_noise(SeededNoise(0)):
            private_score(Curious(), AGES.reshape(-1, 1), LABELS, users=USERS, epsilon=1.0)
        assert sum(seen) == 240
        assert len(seen) == len(set(USERS))

    def test_a_model_that_raises_for_one_user_scores_the_others(self):
        class Picky:
            def predict(self, X):
                if np.any(X == 31337):
                    raise ValueError("I met 31337")
                return np.ones(len(X))

        X = np.concatenate([np.zeros((999, 1)), [[31337.0]]])
        with use_noise(SeededNoise(0)):
            found = private_score(Picky(), X, np.ones(1000), users=range(1000), epsilon=5.0)
        assert abs(found.value - 0.9995) < 0.01

    def test_labels_may_be_words(self):
        words = np.array(["no", "yes"])[LABELS]
        model = PlainRegression().fit(AGES.reshape(-1, 1), words)
        with use_noise(SeededNoise(0)):
            found = private_score(model, AGES.reshape(-1, 1), words, users=USERS, epsilon=5.0)
        assert found.value > 0.9

    @pytest.mark.parametrize(
        ("metric", "truth"),
        [("absolute_error", 3.0), ("squared_error", 9.0), (lambda y, p: (p - y) / 2, 1.5)],
    )
    def test_errors_of_regressions(self, metric, truth):
        class Off:
            def predict(self, X):
                return X[:, 0] + 3.0

        X = RNG.random((2000, 1))
        with use_noise(SeededNoise(0)):
            found = private_score(
                Off(), X, X[:, 0], users=range(2000), epsilon=5.0, metric=metric, bound=(0.0, 10.0)
            )
        assert abs(found.value - truth) < 2 * found.error


class TestCrowds:
    def test_scores_do_not_depend_on_how_users_lie(self):
        people = UserData.from_arrays(AGES.reshape(-1, 1), LABELS, users=USERS)
        crowd = MemoryCrowd(people, n_parts=4)
        found = []
        for data in (people, crowd):
            with use_noise(SeededNoise(0)):
                found.append(private_score(RULE, data, epsilon=1.0).value)
        assert found[0] == found[1]

    def test_models_that_fit_crowds_are_validated_on_them(self):
        rng = np.random.default_rng(0)
        X = rng.normal(size=(600, 2))
        people = UserData.from_arrays(X, X[:, 0] > 0, users=range(600))
        with use_noise(SeededNoise(0)):
            result = private_cross_val_score(
                LogisticRegression(),
                MemoryCrowd(people, n_parts=2),
                epsilon=20.0,
                delta=1e-6,
                folds=3,
                random_state=0,
            )
        assert result.mean > 0.7


class TestPrices:
    def test_a_score_is_priced_in_the_ledger_before_the_model_is_asked(self, tmp_path):
        ledger = Ledger(tmp_path / "ledger.db")
        ledger.set_budget("people", epsilon=1.0)

        class Untouched:
            def predict(self, X):
                raise AssertionError("the budget is not there")

        with pytest.raises(BudgetExceededError):
            private_score(
                Untouched(),
                AGES.reshape(-1, 1),
                LABELS,
                users=USERS,
                epsilon=2.0,
                ledger=ledger,
                data_name="people",
            )
        found = private_score(
            RULE,
            AGES.reshape(-1, 1),
            LABELS,
            users=USERS,
            epsilon=1.0,
            ledger=ledger,
            data_name="people",
        )
        assert found.guarantee.data_name == "people"
        (event,) = found.guarantee.events
        assert price(event, delta=0.0, relation=Relation.REPLACE) == pytest.approx(1.0)
        assert "noise" in str(found)

    def test_wrong_use_costs_nothing(self, tmp_path):
        ledger = Ledger(tmp_path / "ledger.db")
        ledger.set_budget("people", epsilon=1.0)
        known = {"users": USERS, "epsilon": 1.0, "ledger": ledger, "data_name": "people"}
        for changes in ({"metric": "r2"}, {"bound": (1.0, 0.0)}, {"beta": 2.0}, {"bound": 3}):
            with pytest.raises(ParameterError):
                private_score(RULE, AGES.reshape(-1, 1), LABELS, **known, **changes)
        with pytest.raises(ParameterError, match="fitted model"):
            private_score("rule", AGES.reshape(-1, 1), LABELS, **known)
        private_score(RULE, AGES.reshape(-1, 1), LABELS, **known)


class TestFolds:
    def test_scores_are_those_of_unseen_users(self):
        """A model that memorises ids would look perfect on users it has seen."""
        population = Population.uniform_cube(3, Conjunctions(3).concept(1), records=4)
        people = population.draw(1500, random_state=0)
        with use_noise(SeededNoise(0)):
            result = private_cross_val_score(
                ConceptLearner(Conjunctions(3)), people, epsilon=8.0, folds=3, random_state=0
            )
        assert result.scores.shape == (3,)
        assert result.mean > 0.95
        assert result.error < 0.05
        with use_noise(SeededNoise(0)):
            constant = private_cross_val_score(
                ConceptLearner(Thresholds(0, 100)),
                UserData.from_arrays(
                    RNG.random((900, 1)) * 100, RNG.integers(0, 2, 900), users=range(900)
                ),
                epsilon=8.0,
                random_state=0,
            )
        assert abs(constant.mean - 0.5) < 0.1

    def test_folds_are_disjoint_users_and_every_user_is_scored_once(self):
        trained, tested = [], []

        class Watching(ConceptLearner):
            def fit(self, X, y=None, *, users=None):
                trained.append(set(X.X[:, 0]))
                return super().fit(X)

            def predict(self, X):
                # The core tries a score on made-up users first, none of whom is of a whole age.
                if X[0, 0] == round(X[0, 0]):
                    tested.append(X[0, 0])
                return super().predict(X)

        ages = np.arange(90.0)
        with use_noise(SeededNoise(0)):
            private_cross_val_score(
                Watching(Thresholds(0, 100)),
                ages.reshape(-1, 1),
                ages >= 40,
                users=range(90),
                epsilon=8.0,
                folds=3,
                random_state=0,
            )
        assert sorted(tested) == ages.tolist()
        assert [len(each) for each in trained] == [60, 60, 60]
        for fold, seen in enumerate(trained):
            assert not seen & set(tested[30 * fold : 30 * fold + 30])

    @pytest.mark.parametrize(("folds", "share"), [(2, 0.5), (5, 0.2)])
    def test_fits_and_scores_add_up_to_the_budget(self, folds, share):
        prices = []

        class Watching(ConceptLearner):
            def fit(self, X, y=None, *, users=None):
                super().fit(X)
                prices.append(self.guarantee_.epsilon)
                return self

        ages = np.arange(90.0)
        result = private_cross_val_score(
            Watching(Thresholds(0, 100)),
            ages.reshape(-1, 1),
            ages >= 40,
            users=range(90),
            epsilon=3.0,
            folds=folds,
            score_share=share,
            random_state=0,
        )
        assert len(prices) == folds
        assert sum(prices[1:]) + share * 3.0 == pytest.approx(3.0)
        (event,) = result.guarantee.events
        assert price(event, delta=0.0, relation=Relation.REPLACE) == pytest.approx(3.0)
        assert result.guarantee.epsilon == 3.0

    def test_only_private_estimators_may_see_the_other_folds(self):
        with pytest.raises(ParameterError, match="only a private fit"):
            private_cross_val_score(
                PlainRegression(), AGES.reshape(-1, 1), LABELS, users=USERS, epsilon=1.0
            )
        with pytest.raises(ParameterError, match="folds"):
            private_cross_val_score(
                ConceptLearner(Thresholds(0, 9)),
                AGES.reshape(-1, 1),
                LABELS,
                users=USERS,
                epsilon=1.0,
                folds=1,
            )


def test_a_ledger_of_the_estimator_is_not_charged_beside_the_whole(tmp_path):
    """One promise, one charge: fits of folds are paid by it."""
    ledger = Ledger(tmp_path / "ledger.db")
    ledger.set_budget("ages", epsilon=3.0)
    learner = ConceptLearner(Thresholds(0, 100), ledger=ledger, data_name="ages")
    private_cross_val_score(
        learner,
        AGES.reshape(-1, 1),
        LABELS,
        users=USERS,
        epsilon=2.0,
        folds=3,
        ledger=ledger,
        data_name="ages",
    )
    assert ledger.spent("ages").epsilon == 2.0


def test_a_model_of_categories_is_scored_on_the_table_as_it_is():
    """A score refused the text column that the model itself had taken."""
    rng = np.random.default_rng(0)
    n = 1500
    region = np.repeat(rng.choice(["north", "south"], n), 4)
    age = np.repeat(rng.integers(20, 80, n), 4)
    lies = 0.08 * (age - 50) + np.where(region == "north", 1, -1) + rng.normal(size=4 * n)
    columns = {"who": np.repeat(np.arange(n), 4), "age": age, "region": region}
    table = pa.table(columns | {"ill": np.where(lies > 0, "yes", "no")})
    given = {"bounds": {"age": (18, 90)}, "categories": {"region": ["north", "south"]}}
    model = LogisticRegression(4.0, delta=1e-6, classes=("no", "yes"), **given)
    model.fit(table, "ill", users="who")
    truth = np.mean(model.predict(table.select(["age", "region"])) == np.array(table["ill"]))
    score = private_score(model, table, "ill", users="who", epsilon=1.0)
    assert abs(score.value - truth) < 0.02
    folds = private_cross_val_score(
        model, table, "ill", users="who", epsilon=20.0, delta=1e-5, folds=2, random_state=0
    )
    assert abs(folds.mean - truth) < 0.05
