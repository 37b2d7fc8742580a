"""A shared seed gives everybody the same numbers, and names cannot run into each other."""

import numpy as np
import pytest

from quorate.exceptions import ParameterError
from quorate.papers.stability.shared_seed import SharedSeed, hash_word


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
