"""Protocols in one process find the crowd's choice and promise what they keep."""

import numpy as np
import pytest

from quorate.core.guarantees import Numerics, Relation, Trust
from quorate.core.noise import SeededNoise, use_noise
from quorate.exceptions import NotEnoughUsersError, ParameterError, SchemaError
from quorate.local.simulate import local_choice, shuffle_choice


def crowd(users, share, seed, candidates=2**14):
    rng = np.random.default_rng(seed)
    keys = rng.integers(0, candidates, users)
    keys[: int(share * users)] = keys[0]
    return keys


def test_400_users_agree_locally_on_one_of_two_to_the_14():
    with use_noise(SeededNoise(1)):
        found = [
            local_choice(keys, candidates=2**14, epsilon=1.0).key == keys[0]
            for keys in (crowd(400, 0.8, seed) for seed in range(20))
        ]
    assert sum(found) >= 19


def test_100_users_agree_by_one_shuffled_message_each():
    with use_noise(SeededNoise(1)):
        found = [
            shuffle_choice(keys, candidates=2**14, epsilon=1.0, delta=1e-6).key == keys[0]
            for keys in (crowd(100, 0.8, seed) for seed in range(20))
        ]
    assert sum(found) >= 19


def test_each_model_promises_what_it_keeps():
    keys = crowd(100, 0.8, 0)
    local = local_choice(keys, candidates=2**14, epsilon=1.0, unit="patient").guarantee
    assert (local.epsilon, local.delta, local.unit) == (1.0, 0.0, "patient")
    assert local.trust is Trust.LOCAL
    assert local.numerics is Numerics.EXACT
    shuffled = shuffle_choice(keys, candidates=2**14, epsilon=1.0, delta=1e-6)
    assert (shuffled.guarantee.epsilon, shuffled.guarantee.delta) == (1.0, 1e-6)
    assert shuffled.guarantee.trust is Trust.SHUFFLE
    assert shuffled.guarantee.relation is Relation.REPLACE
    assert shuffled.report.epsilon > 2
    with use_noise(SeededNoise(0)):
        void = local_choice(keys, candidates=2**14, epsilon=1.0).guarantee
    assert void.numerics is Numerics.VOID


def test_fewer_honest_users_must_hide_themselves_more():
    keys = crowd(100, 0.8, 0)
    all_honest, half = (
        shuffle_choice(keys, candidates=2**14, epsilon=1.0, delta=1e-6, honest=share).report
        for share in (1.0, 0.5)
    )
    assert half.epsilon < all_honest.epsilon
    with pytest.raises(NotEnoughUsersError, match=r"honest=0\.001"):
        shuffle_choice(keys, candidates=2**14, epsilon=1.0, delta=1e-6, honest=0.001)


def test_keys_outside_the_candidates_are_users_without_an_answer():
    keys = np.array([-1, 2**62, 5, 5, 5, 5])
    assert local_choice(keys, candidates=8, epsilon=50.0).key == 5


@pytest.mark.parametrize("delta", [0.0, 1.0, -1e-6])
def test_a_shuffle_needs_a_delta(delta):
    with pytest.raises(ParameterError, match="delta"):
        shuffle_choice(np.zeros(10, np.int64), candidates=4, epsilon=1.0, delta=delta)


def test_keys_of_another_type_are_refused():
    with pytest.raises(SchemaError, match="int64"):
        local_choice(np.array([0.5]), candidates=4, epsilon=1.0)
