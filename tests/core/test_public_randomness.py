"""Public randomness is repeatable and refuses what is not a seed."""

import numpy as np
import pytest

from quorate.core.public_randomness import SharedSeed, hash_word, public_generator
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


class TestSharedSeed:
    def test_a_number_belongs_to_its_id(self):
        seed = SharedSeed(7, task="t")
        ids = np.array([0, 1, 2**40, 2**64 - 1], dtype=np.uint64)
        words = seed.words("s", ids)
        for place in range(4):
            assert seed.words("s", ids[place : place + 1])[0] == words[place]
            assert hash_word(int(ids[place]), seed.keys("s")) == int(words[place])

    def test_the_bits_are_fixed_for_ever(self):
        """Clients of different versions must read the same numbers."""
        assert SharedSeed(7, task="t").words("s", np.array([0, 1])).tolist() == [
            5745830322164055035,
            6573937658692660946,
        ]

    def test_numbers_are_uniform_and_unrelated(self):
        ids = np.arange(2**16)
        bits = np.unpackbits(SharedSeed(0).words("s", ids).view(np.uint8)).reshape(-1, 64)
        assert np.abs(bits.mean(axis=0) - 0.5).max() < 0.012
        uniforms = SharedSeed(0).uniforms("s", ids)
        others = (
            SharedSeed(1).uniforms("s", ids),
            SharedSeed(0).uniforms("t", ids),
            SharedSeed(0).uniforms("s", ids + 1),
        )
        assert all(abs(np.corrcoef(uniforms, other)[0, 1]) < 0.02 for other in others)
        assert 0 < uniforms.min() < uniforms.max() < 1

    def test_names_cannot_run_into_each_other(self):
        assert SharedSeed(1, task="2").keys("3") != SharedSeed(12, task="").keys("3")
        assert SharedSeed(0, task="a").child("b").keys("s") != SharedSeed(0, task="ab").keys("s")

    @pytest.mark.parametrize("seed", [-1, 0.5, None, True, "7"])
    def test_what_is_no_seed_is_refused(self, seed):
        with pytest.raises(ParameterError):
            SharedSeed(seed)

    def test_generators_are_repeatable(self):
        first = SharedSeed(3).generator("g").random(3)
        assert np.array_equal(first, SharedSeed(3).generator("g").random(3))
