"""The number of rare successes has its law, however many trials there are."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from scipy.stats import binom, poisson

from goodness import FALSE_ALARM, p_value
from quorate.core.noise import NoiseSource, SeededNoise
from quorate.core.noise.binomial import RareSuccesses, _power
from quorate.core.noise.exact_decisions import exp_enclosure
from quorate.exceptions import ParameterError


def small(x):
    """A chance of exp(-x)."""
    return lambda bits: exp_enclosure(Fraction(x), bits=bits)


class Scripted(NoiseSource):
    """Gives the bits of one chosen uniform number."""

    def __init__(self, value):
        self.value = Fraction(value)

    def _uniform_below(self, upper):
        whole, self.value = divmod(self.value * upper, 1)
        return int(whole)

    def _add(self, law, values, scale):
        raise AssertionError

    def _choose(self, law, scores, scale):
        raise AssertionError


@pytest.mark.parametrize(("trials", "x"), [(1, 1), (5, 1), (40, 2), (1000, 5)])
def test_it_is_the_inverse_of_the_exact_distribution_function(trials, x):
    """Uniform numbers just below and just above each jump give k and k + 1."""
    chance = Fraction(math.exp(-x))
    successes = RareSuccesses(
        trials, lambda bits: (math.floor(chance * 2**bits), math.ceil(chance * 2**bits))
    )
    reached = Fraction(0)
    for k in range(min(trials, 12)):
        reached += math.comb(trials, k) * chance**k * (1 - chance) ** (trials - k)
        assert successes.draw(Scripted(reached - Fraction(1, 2**200))) == k
        assert successes.draw(Scripted(reached + Fraction(1, 2**200))) == k + 1


def test_more_bits_are_drawn_only_near_a_jump():
    calls = []

    class Counting(SeededNoise):
        def _uniform_below(self, upper):
            calls.append(upper)
            return super()._uniform_below(upper)

    noise = Counting(0)
    successes = RareSuccesses(100, small(4))
    for _ in range(200):
        successes.draw(noise)
    assert len(calls) == 200


def law_of_successes(trials, chance):
    """Return the law of as many successes as there may be, in floating point."""
    listed = range(min(trials, 200) + 1)
    term, masses = trials * math.log1p(-chance), []
    for k in listed:
        masses.append(math.exp(term))
        term += math.log(chance) - math.log1p(-chance)
        term += math.log(max(trials - k, 1)) - math.log(k + 1)
    return np.array(masses) / math.fsum(masses)


@pytest.mark.parametrize(("trials", "x"), [(4, 1), (2**20, 13), (2**256, 176)])
def test_draws_follow_the_law(trials, x):
    successes = RareSuccesses(trials, small(x))
    noise = SeededNoise(trials.bit_length())
    drawn = np.bincount([successes.draw(noise) for _ in range(3000)], minlength=20)
    law = law_of_successes(trials, math.exp(-x))
    law = np.append(law, np.zeros(max(0, len(drawn) - len(law))))[: len(drawn)]
    assert p_value(drawn, law) > FALSE_ALARM
    mean = trials * math.exp(-x)
    known = (
        binom.pmf(range(5), trials, mean / trials) if trials < 99 else poisson.pmf(range(5), mean)
    )
    assert np.allclose(law[:5], known, rtol=1e-4 if trials > 99 else 1e-12)


def test_no_trials_no_successes():
    assert RareSuccesses(0, small(1)).draw(SeededNoise(0)) == 0


def test_too_many_expected_successes_are_refused():
    with pytest.raises(ParameterError, match="raise the threshold"):
        RareSuccesses(2**20, small(1))


def test_powers_are_enclosed():
    for base, exponent in [(Fraction(9, 10), 37), (Fraction(1, 3), 5), (Fraction(1), 10**6)]:
        at = (math.floor(base * 2**80), math.ceil(base * 2**80))
        low, high = _power(at, exponent, 80)
        assert low <= base**exponent * 2**80 <= high
        assert high - low < 2**30
