"""Plans for rules of a finite class."""

import numpy as np
import pytest

from quorate.core.guarantees import Relation
from quorate.core.noise import SeededNoise, use_noise
from quorate.core.users import UserData
from quorate.exceptions import ParameterError
from quorate.learners import ConceptLearner
from quorate.learners.concepts import Intervals
from quorate.planning import plan
from quorate.planning.tasks.concept import ConceptTask


class TestWay:
    def test_it_is_what_the_learner_does(self):
        X = np.arange(20.0).reshape(-1, 1)
        people = UserData(X, np.zeros(20), offsets=np.arange(11) * 2)
        with use_noise(SeededNoise(0)):
            learner = ConceptLearner(Intervals(20), 1.0, records=2).fit(people)
        way, reason = ConceptTask(size=211, records=2).algorithm(10, 1.0)
        assert way == learner.algorithm_.name
        assert reason == learner.algorithm_.reason + "."

    @pytest.mark.parametrize(
        ("numbers", "users", "way"),
        [
            ({"records": 1}, 100, "mistakes"),
            ({"records": 8}, 100, "duels"),
            ({"records": 8, "size": 10**6}, 50, "kolmogorov_smirnov"),
            ({"records": 8}, 400, "capped_regret"),
            ({"records": 8, "alike": True}, 400, "duels"),
            ({"records": 8, "size": 10**6}, 500, "capped_regret"),
            ({"records": 8, "size": 10**6, "alike": True}, 500, "crossing"),
            ({"records": 3, "size": 10**6}, 50, "any_mistake"),
        ],
    )
    def test_it_depends_on_size_users_and_records(self, numbers, users, way):
        assert ConceptTask(**numbers).algorithm(users, 1.0)[0] == way

    def test_a_private_number_of_users_is_not_looked_at(self):
        task = ConceptTask(records=8, size=10**6, relation=Relation.ADD_REMOVE)
        assert task.algorithm(50, 1.0) == task.algorithm(5000, 1.0)


@pytest.mark.parametrize("size", [100, 4000, 10**6])
@pytest.mark.parametrize("alike", [False, True])
def test_more_users_never_plan_a_larger_error(size, alike):
    task = ConceptTask(records=8, size=size, alike=alike)
    errors = [task.error(n, 1.0) for n in range(20, 700, 20)]
    assert errors == sorted(errors, reverse=True)


def test_one_rule_needs_no_learning():
    assert ConceptTask(size=1).error(1, 1.0) == 0.0
    assert ConceptTask(size=1).lower(epsilon=1.0, error=0.1).users == 1


def test_larger_classes_and_noisier_labels_need_more_users():
    needed = [
        plan("concept", size=size, records=8, epsilon=1.0, error=0.05).users
        for size in (10, 1000, 10**5)
    ]
    assert needed == sorted(needed)
    noisy = plan("concept", size=1000, records=8, epsilon=1.0, error=0.05, error_level=0.3)
    assert noisy.users > needed[1]


def test_the_vc_dimension_is_at_most_the_logarithm_of_the_size():
    assert ConceptTask(size=1000).vc_dimension == 9
    assert ConceptTask(size=1000, vc=2).vc_dimension == 2
    assert ConceptTask(size=1).vc_dimension == 1


@pytest.mark.parametrize("wrong", [{"size": 0}, {"vc": 0}, {"error_level": 0.5}])
def test_numbers_outside_their_range_are_refused(wrong):
    with pytest.raises(ParameterError, match="Expected"):
        ConceptTask(**wrong)
