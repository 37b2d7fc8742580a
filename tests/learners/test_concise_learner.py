"""Short rules first: it stops early where one fits, goes on where none does, and pays once."""

import numpy as np
import pytest

from quorate.core.account.compose import price
from quorate.core.account.parts import cut_by_draws
from quorate.core.guarantees import Relation
from quorate.core.noise import SeededNoise, use_noise
from quorate.exceptions import NotEnoughUsersError, ParameterError
from quorate.learners import concise_learner
from quorate.learners.concepts import Classifiers, Conjunctions, Intervals, Thresholds
from quorate.learners.concise_learner import ConciseLearner

CLASSES = [Thresholds(0, 15), Intervals(16)]
AGES = np.random.default_rng(0).integers(0, 16, size=12_000).astype(float).reshape(-1, 1)


def fit(labels, seed=0, **changes):
    learner = ConciseLearner(CLASSES, 2.0, error=0.2, random_state=seed, **changes)
    with use_noise(SeededNoise(seed)):
        return learner.fit(AGES, labels, users=range(len(AGES)))


def test_a_short_rule_ends_it_after_one_round():
    labels = AGES[:, 0] >= 9
    found = [fit(labels, seed) for seed in range(10)]
    assert all(each.round_ == 1 and each.accepted_ for each in found)
    assert all(each.score(AGES, labels) >= 0.8 for each in found)


def test_a_longer_rule_is_found_in_the_next_round():
    labels = (AGES[:, 0] >= 5) & (AGES[:, 0] < 11)
    found = [fit(labels, seed) for seed in range(10)]
    assert all(each.round_ == 2 and each.accepted_ for each in found)
    assert all(each.score(AGES, labels) >= 0.8 for each in found)


def test_where_nothing_fits_nothing_is_accepted():
    labels = np.random.default_rng(1).integers(0, 2, len(AGES))
    assert not fit(labels).accepted_


def test_all_rounds_cost_epsilon_once_and_blocks_are_disjoint(monkeypatch):
    blocks = []

    def watched(*given, **named):
        blocks.extend(cut_by_draws(*given, **named))
        return blocks

    monkeypatch.setattr(concise_learner, "cut_by_draws", watched)
    learner = fit(np.zeros(len(AGES), int))
    (event,) = learner.guarantee_.events
    assert price(event, delta=0.0, relation=Relation.REPLACE) == pytest.approx(2.0)
    keys = [part._held_crowd().keys() for part in blocks]
    assert len(np.unique(np.concatenate(keys))) == sum(map(len, keys))
    assert sum(map(len, keys)) == learner.users_needed()


def test_refusals():
    with pytest.raises(NotEnoughUsersError, match="Expected at least"):
        ConciseLearner(CLASSES).fit(AGES[:100], AGES[:100, 0] > 3, users=range(100))
    for changes, message in (
        ({"classes_of_rules": []}, "ConceptClass"),
        ({"classes_of_rules": CLASSES[::-1]}, "order of size"),
        ({"classes_of_rules": [Thresholds(0, 3), Conjunctions(3)]}, "same features"),
        ({"relation": Relation.ADD_REMOVE}, "REPLACE"),
        ({"error": 0.0}, "error"),
    ):
        with pytest.raises(ParameterError, match=message):
            ConciseLearner(**({"classes_of_rules": CLASSES} | changes)).users_needed()


class Moody:
    """A model that raises at a negative record, and answers otherwise by how many it sees."""

    def predict(self, X):
        if np.any(X < 0):
            raise ValueError("SECRET")
        return np.full(len(X), int(len(X) == 1))


def test_models_of_a_caller_see_one_user_at_a_time_and_err_where_they_raise():
    from quorate.core.bounds.grid import Interval
    from quorate.core.users import UserData
    from quorate.learners.concepts import Classifiers
    from quorate.learners.concise_learner import _Wrong

    people = UserData.from_arrays([[1.0], [-1.0], [2.0], [3.0]], [1, 1, 1, 0], users=range(4))
    wrong = _Wrong(Classifiers([Moody()], features=1).concept(0), Interval(0.0, 1.0))
    assert wrong(people).ravel().tolist() == [0.0, 1.0, 0.0, 1.0]
    for user in range(4):
        assert wrong(people.take([user]))[0] == wrong(people)[user]


class Picky:
    """A model that cannot read some records and is right about people it sees together."""

    def predict(self, X):
        if np.any(X > 90):
            raise SystemExit("31337")
        return np.full(len(X), len(X) > 1)


@pytest.mark.parametrize("vectorized", [False, True])
def test_models_test_one_user_at_a_time_and_what_they_raise_is_a_mistake(vectorized):
    models = Classifiers([Picky(), Picky()], features=1, vectorized=vectorized)
    learner = ConciseLearner([models], 2.0, error=0.2, random_state=0)
    ages = AGES.copy()
    ages[0] = 99.0
    with use_noise(SeededNoise(0)):
        learner.fit(ages, np.ones(len(ages), int), users=range(len(ages)))
    # Alone everybody is told 0; shown all at once the model would be right, or raise.
    assert not learner.accepted_
    assert learner.guarantee_.caveat == models.caveat
