"""The surrogate score (L1, L4): its definition, and that it is the plain count for H = C."""

import numpy as np
import pytest

from quorate.core.guarantees import Relation
from quorate.core.users import UserData
from quorate.exceptions import ParameterError
from quorate.learners.concepts import Classifiers, Constant, FiniteTable, Thresholds
from quorate.learners.scores import MoreThan, Surrogate
from rule_worlds import table_losses


def crowd(seed, n=12, m=4):
    rng = np.random.default_rng(seed)
    return UserData(
        rng.integers(0, 4, (n * m, 1)).astype(float),
        rng.integers(0, 2, n * m).astype(float),
        offsets=np.arange(n + 1) * m,
    )


def by_definition(target, represented, data, rate, s):
    best = []
    for h in range(represented.size):
        scores = []
        for c in range(target.size):
            users = 0
            for i in range(data.n_users):
                rows = slice(data.offsets[i], data.offsets[i + 1])
                X, y = data.X[rows], data.y[rows]
                by_c, by_h = target.predict(c, X), represented.predict(h, X)
                users += np.count_nonzero(by_c != y) > np.floor(rate * len(y))
                users += np.count_nonzero(by_c != by_h) > s
            scores.append(users)
        best.append(min(scores))
    return np.array(best)


@pytest.mark.parametrize(("rate", "s"), [(0.0, 0), (0.3, 0), (0.5, 1)])
def test_it_is_the_minimum_over_concepts_of_error_plus_disagreement(rate, s):
    target, represented = Thresholds(0, 3), FiniteTable(np.eye(4, dtype=int))
    for seed in range(4):
        data = crowd(seed)
        score = Surrogate(target=target, rate=rate, disagreements=s)
        found = table_losses(score, represented, data)
        np.testing.assert_array_equal(found, by_definition(target, represented, data, rate, s))


@pytest.mark.parametrize("rate", [0.0, 0.25, 0.5])
def test_for_a_class_that_represents_itself_it_is_the_plain_count(rate):
    for seed in range(6):
        concepts, data = Thresholds(0, 3), crowd(seed)
        scores = Surrogate(target=concepts, rate=rate), MoreThan(rate=rate)
        surrogate, plain = (table_losses(score, concepts, data) for score in scores)
        np.testing.assert_array_equal(surrogate, plain)


@pytest.mark.claim("L1: Theorem 3.4")
@pytest.mark.parametrize("relation", Relation)
def test_one_user_moves_a_loss_by_two_which_is_the_sensitivity(relation):
    target, represented = FiniteTable(np.zeros((1, 2), int)), FiniteTable(np.ones((1, 2), int))
    score = Surrogate(target=target)
    wrong = UserData(np.zeros((1, 1)), np.ones(1), offsets=[0, 1])
    silent = UserData(np.zeros((0, 1)), np.zeros(0), offsets=[0, 0])
    losses = [int(table_losses(score, represented, users)[0]) for users in (wrong, silent)]
    assert losses == [2, 0]
    assert score.sensitivity(relation) == 2


def test_too_many_pairs_are_refused():
    target = Thresholds(0, 9000)
    with pytest.raises(ParameterError, match="pairs"):
        table_losses(Surrogate(target=target), target, crowd(0))


def test_mistakes_alone_do_not_determine_it():
    with pytest.raises(ParameterError, match="computed where the records are"):
        Surrogate(target=Thresholds(0, 1)).judged(np.zeros((1, 3), dtype=int), np.zeros(1))


def test_the_item_level_learner_keeps_one_record():
    assert Surrogate(target=Thresholds(0, 1), records=1).record_cap == 1


class Picky:
    """A model that cannot read some records and looks at how many it is shown."""

    def predict(self, X):
        if np.any(X > 90):
            raise SystemExit("31337")
        return np.full(len(X), len(X) > 4)


def test_models_are_asked_about_one_user_at_a_time():
    target = Classifiers([Picky(), Constant(1)], features=1)

    def losses(first):
        x = np.concatenate([first, np.arange(12.0) % 4])[:, None]
        offsets = [0, len(first), *range(len(first) + 4, len(first) + 13, 4)]
        data = UserData(x, np.ones(len(x)), offsets=offsets)
        return table_losses(Surrogate(target=target), target, data)

    # Alone nobody brings five records: the first model says 0, and all labels are 1.
    assert losses([1.0]).tolist() == losses([99.0]).tolist() == [4, 0]
