"""What is made of several draws has its law exactly, and comes from the source that is asked."""

import hashlib
import math
from collections import Counter
from fractions import Fraction
from types import SimpleNamespace

import numpy as np
import pytest

from all_paths import law_of_all_paths
from quorate.core.noise import NoiseSource, SecureNoise, SeededNoise
from quorate.core.noise.composed_laws import SECRETS, secret_order

pytestmark = pytest.mark.entropy


def probability_of_true(run):
    """Return bounds on the probability that a sampler says yes."""
    found, undecided = law_of_all_paths(run, smallest=Fraction(1, 10**4))
    return found[True], found[True] + undecided


class TestCoins:
    @pytest.mark.parametrize("x", [Fraction(0), Fraction(1, 3), Fraction(1), Fraction(3, 2)])
    def test_bernoulli_exp_is_exact_when_all_its_integers_are_enumerated(self, x):
        low, high = probability_of_true(lambda source: source.bernoulli_exp(x))
        assert low <= Fraction(math.exp(-x)) + Fraction(1, 10**15)
        assert high >= Fraction(math.exp(-x)) - Fraction(1, 10**15)
        assert high - low < Fraction(1, 5)

    def test_an_off_by_one_in_the_series_is_caught(self):
        class OffByOne(NoiseSource):
            def bernoulli_exp(self, x, source):
                k = 2
                while source.uniform_below(x.denominator * k) < x.numerator:
                    k += 1
                return k % 2 == 1

        run = OffByOne.bernoulli_exp
        low, high = probability_of_true(lambda s: run(None, Fraction(1, 3), s))
        assert not low <= Fraction(math.exp(-1 / 3)) <= high

    def test_a_huge_argument_ends_quickly(self):
        # exp(-10**9) is zero for every purpose; the flips stop at the first failure.
        assert not SecureNoise().bernoulli_exp(Fraction(10**9))


class TestSamplers:
    """A sampler of many draws is run with the source that was asked, and its law is not needed."""

    @pytest.mark.parametrize(
        "make", [SecureNoise, lambda: SeededNoise(11)], ids=["secure", "seeded"]
    )
    def test_the_draws_come_from_the_source_itself(self, make):
        source, seen = make(), []

        def draw(noise):
            seen.append(noise)
            return 5 + noise.uniform_below(1)

        def law():
            raise AssertionError("a real draw needs no law")

        assert source.sample("a loop", draw, held=law, rate=1) == 5
        assert seen == [source]


class TestSecretOrders:
    def test_every_order_is_as_likely_as_every_other(self):
        rng = np.random.default_rng(0)
        secrets = [int.from_bytes(rng.bytes(32), "big") for _ in range(6000)]
        found = Counter(tuple(secret_order(4, secret=each).tolist()) for each in secrets)
        assert len(found) == math.factorial(4)
        # 23 degrees of freedom: beyond 60 with a chance of 1e-5.
        assert sum((seen - 250) ** 2 / 250 for seen in found.values()) < 60

    @pytest.mark.parametrize("size", [0, 1, 1000])
    def test_an_order_has_everybody_once(self, size):
        assert sorted(secret_order(size, secret=SECRETS - 1).tolist()) == list(range(size))

    def test_words_that_are_equal_are_asked_for_again(self, monkeypatch):
        """Places would break a tie, and the first of two would be first more often."""
        asked, words = [], iter([[7, 7], [9, 4]])

        def made(given):
            asked.append(given)
            held = np.array(next(words), "<u8").tobytes()
            return SimpleNamespace(digest=lambda size: held[:size])

        monkeypatch.setattr(hashlib, "shake_256", made)
        assert secret_order(2, secret=5).tolist() == [1, 0]
        assert len(set(asked)) == 2
