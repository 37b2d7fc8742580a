"""Public randomness is repeatable and refuses what is not a seed."""

import numpy as np
import pytest

from quorate.core.public_randomness import public_generator
from quorate.exceptions import ParameterError


def test_a_seed_repeats_the_same_choices():
    first, second = public_generator(3).random(5), public_generator(3).random(5)
    np.testing.assert_array_equal(first, second)


def test_a_generator_is_used_as_it_is():
    generator = np.random.default_rng(1)
    assert public_generator(generator) is generator


def test_a_legacy_state_seeds_a_generator():
    first = public_generator(np.random.RandomState(0)).random()
    assert first == public_generator(np.random.RandomState(0)).random()


def test_no_seed_gives_fresh_choices():
    assert public_generator(None).random() != public_generator(None).random()


@pytest.mark.parametrize("seed", [-1, 0.5, "7", True, [1]])
def test_anything_else_is_refused(seed):
    with pytest.raises(ParameterError, match="random_state"):
        public_generator(seed)
