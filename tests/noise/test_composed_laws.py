"""What is made of several draws has its law exactly, and comes from the source that is asked."""

import math
from fractions import Fraction

import pytest

from all_paths import law_of_all_paths
from quorate.noise import NoiseSource, SecureNoise, SeededNoise

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

        assert source.sample("a loop", draw, law=law, rate=1) == 5
        assert seen == [source]
