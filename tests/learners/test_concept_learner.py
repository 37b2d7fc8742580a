"""ConceptLearner: what it learns, how users help, exact audits of whole fits."""

import numpy as np
import pytest
from sklearn.base import clone

from quorate.core.guarantees import Relation
from quorate.core.noise import SeededNoise, use_noise
from quorate.core.users import UserData
from quorate.learners import ConceptLearner
from quorate.learners.concepts import Conjunctions, FiniteTable, Stumps, Thresholds
from quorate.learners.scores import Mistakes
from rule_worlds import LABELINGS, RELATIONS, audit


def boolean_people(n, m, noise, seed, d=5):
    rng = np.random.default_rng(seed)
    X = rng.integers(0, 2, (n * m, d)).astype(float)
    y = (X[:, 0] > 0) & (X[:, 2] < 1)
    y = y ^ (rng.random(n * m) < noise)
    return UserData(X, y.astype(float), offsets=np.arange(n + 1) * m)


def error_of(learner, d=5):
    cube = (np.arange(2**d)[:, None] >> np.arange(d)) & 1
    truth = (cube[:, 0] > 0) & (cube[:, 2] < 1)
    return np.mean(learner.predict(cube.astype(float)) != truth)


class TestLearning:
    def test_a_rule_is_found_from_a_hundred_users(self):
        # The exact rule wins with probability above 1 - 1e-9 at this epsilon.
        learner = ConceptLearner(Conjunctions(5), epsilon=5.0)
        learner.fit(boolean_people(100, 32, 0.1, seed=0))
        assert error_of(learner) == 0.0
        assert str(learner.concept_).startswith("Predict 1 if")

    def test_more_records_help_at_a_fixed_number_of_users(self):
        def mean_error(m):
            errors = []
            for seed in range(12):
                with use_noise(SeededNoise(seed)):
                    learner = ConceptLearner(Conjunctions(5), epsilon=1.0)
                    errors.append(error_of(learner.fit(boolean_people(50, m, 0.1, seed))))
            return np.mean(errors)

        assert mean_error(16) < 0.005
        assert mean_error(1) > 0.05

    def test_group_privacy_does_not(self):
        errors = []
        for seed in range(12):
            with use_noise(SeededNoise(seed)):
                learner = ConceptLearner(Conjunctions(5), algorithm=Mistakes(records=32))
                errors.append(error_of(learner.fit(boolean_people(50, 32, 0.1, seed))))
        assert np.mean(errors) > 0.03

    # Regrets need no cap from 90 ln(8192) = 811 users x epsilon on.
    @pytest.mark.parametrize(
        ("n_users", "alike", "score"),
        [
            (400, False, "capped_regret"),
            (600, False, "regret"),
            (600, True, "crossing"),
        ],
    )
    def test_a_large_class_is_learned_with_many_users(self, n_users, alike, score):
        concepts = Stumps.on_grid(lower=[0.0] * 4, upper=[1.0] * 4, cuts=1024)
        rng = np.random.default_rng(0)
        X = rng.random((n_users * 12, 4))
        y = (X[:, 1] >= 0.4) ^ (rng.random(len(X)) < 0.2)
        data = UserData(X, y.astype(float), offsets=np.arange(n_users + 1) * 12)
        with use_noise(SeededNoise(0)):
            learner = ConceptLearner(concepts, epsilon=2.0, alike=alike).fit(data)
        assert learner.algorithm_.name == score
        assert (learner.records_ is not None) == alike
        grid = rng.random((4000, 4))
        assert np.mean(learner.predict(grid) != (grid[:, 1] >= 0.4)) < 0.05

    def test_a_huge_class_is_reduced_to_its_labelings_of_a_finite_domain(self):
        points = np.array([3.0, 17.0, 90.0, 1e9])
        labelings = Thresholds(0, 2**40).distinct_labelings(points)
        rng = np.random.default_rng(0)
        x = rng.choice(points, 100 * 4)
        data = UserData(x.reshape(-1, 1), (x >= 50) * 1.0, offsets=np.arange(101) * 4)
        learner = ConceptLearner(labelings, epsilon=4.0).fit(data)
        assert labelings.size == 5
        assert learner.predict(points.reshape(-1, 1)).tolist() == [0, 0, 1, 1]

    def test_an_improper_representation_is_learned_by_the_published_way(self):
        learner = ConceptLearner(Thresholds(0, 20), epsilon=20.0, constants="published", records=8)
        rng = np.random.default_rng(0)
        x = rng.integers(0, 21, 300 * 8).astype(float)
        data = UserData(x.reshape(-1, 1), (x >= 9) * 1.0, offsets=np.arange(301) * 8)
        assert abs(learner.fit(data).index_ - 9) <= 2
        assert learner.algorithm_.name == "estimated_level"


class TestPrivacy:
    @pytest.mark.parametrize("relation", RELATIONS, ids=lambda r: r.name)
    @pytest.mark.parametrize("options", [{}, {"error_level": 0.2}, {"records": 1}], ids=str)
    def test_the_exact_audit_of_a_whole_fit_holds(self, options, relation, record_property):
        learner = ConceptLearner(LABELINGS, relation=relation, random_state=0, **options)
        found = audit(lambda data: clone(learner).fit(data).index_, relation)
        record_property("tightness", found.tightness)
        assert found.holds, str(found)

    def test_a_twin_whose_list_of_rules_comes_from_the_data_is_caught(self):
        def list_from_the_data(data):
            rules = [[0, 0], [1, 1]]
            if np.any(data.y > 0):
                rules.append([0, 1])
            learner = ConceptLearner(FiniteTable(rules)).fit(data)
            return tuple(learner.predict([[0.0], [1.0]]).tolist())

        found = audit(list_from_the_data, Relation.REPLACE)
        assert not found.holds
        assert found.epsilon == np.inf


class TestScikitLearn:
    def test_arrays_frames_and_user_data_give_the_same(self):
        data = boolean_people(40, 8, 0.1, seed=1)
        owner = np.repeat(np.arange(40), 8)
        chosen = []
        for arguments in ((data,), (data.X, data.y)):
            with use_noise(SeededNoise(5)):
                learner = ConceptLearner(Conjunctions(5))
                extra = {} if len(arguments) == 1 else {"users": owner}
                chosen.append(learner.fit(*arguments, **extra).index_)
        assert chosen[0] == chosen[1]

    def test_predictions_are_labels(self):
        learner = ConceptLearner(Conjunctions(5), epsilon=3.0)
        learner.fit(boolean_people(40, 8, 0.1, seed=1))
        assert set(learner.predict(np.eye(5))) <= {0, 1}
        assert learner.classes_.tolist() == [0, 1]


def test_the_score_of_scikit_learn_is_not_hidden_by_a_parameter():
    data = UserData.from_arrays([[0.0], [1.0]] * 40, [0, 1] * 40, users=np.arange(80) // 2)
    learner = ConceptLearner(Thresholds(0, 1), 20.0).fit(data)
    assert learner.score([[0.0], [1.0]], [0, 1]) == 1.0
