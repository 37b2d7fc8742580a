"""Any mistake (F4): a user counts once, however many records are wrong."""

import numpy as np
import pytest

from quorate.core.guarantees import Relation
from quorate.core.noise import SeededNoise, use_noise
from quorate.core.users import UserData
from quorate.learners import ConceptLearner
from quorate.learners.concepts import Thresholds
from quorate.learners.scores import AnyMistake, MoreThan
from rule_worlds import losses_of


@pytest.mark.claim("F4: Lemma 22")
def test_a_user_counts_once():
    assert losses_of(AnyMistake(), np.array([[0, 1, 900]]), np.array([999])).tolist() == [0, 1, 1]


def test_it_is_more_than_zero_mistakes():
    rng = np.random.default_rng(0)
    mistakes, held = rng.integers(0, 4, (20, 7)), np.full(20, 5)
    same = losses_of(MoreThan(rate=0.0), mistakes, held)
    np.testing.assert_array_equal(losses_of(AnyMistake(), mistakes, held), same)


def test_no_record_is_dropped():
    assert AnyMistake().record_cap is None
    assert AnyMistake().sensitivity(Relation.REPLACE) == 1


@pytest.mark.claim("F4: Theorem 4")
def test_rules_without_mistakes_are_learned_from_fewer_users_of_more_records():
    # Theorem 4 of Ghazi et al.: of order ln(|C|) / (epsilon min(1, m alpha)) users.
    concepts, rng = Thresholds(0, 63), np.random.default_rng(0)

    def worst(users, records):
        errors = []
        for seed in range(12):
            rows = rng.integers(0, 64, size=users * records)
            data = UserData(
                rows[:, None], rows >= 20, offsets=np.arange(0, users * records + 1, records)
            )
            with use_noise(SeededNoise(seed)):
                learner = ConceptLearner(concepts, 1.0, algorithm="any_mistake").fit(data)
            errors.append(np.mean(learner.predict(np.arange(64)[:, None]) != (np.arange(64) >= 20)))
        return sorted(errors)[-2]

    assert worst(40, 16) <= 1 / 32 < worst(40, 1)
    assert worst(600, 1) <= 1 / 32
