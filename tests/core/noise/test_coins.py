"""Coins are exact: their digits agree with another arithmetic, and ties go on to the next word."""

from decimal import Decimal, getcontext
from fractions import Fraction

import numpy as np
import pytest

from quorate.core.noise import SecureNoise, SeededNoise
from quorate.core.noise.coins import Coin
from quorate.core.noise.exact_decisions import exp_enclosure
from quorate.exceptions import ParameterError

getcontext().prec = 150
EXPONENTS = [Fraction(1, 10**9), Fraction(1, 3), Fraction(1), Fraction(5, 2), Fraction(37)]


def decimal(number):
    return Decimal(number.numerator) / Decimal(number.denominator)


class TestBounds:
    @pytest.mark.parametrize("x", [*EXPONENTS, Fraction(700), Fraction(5000)])
    @pytest.mark.parametrize("bits", [20, 64, 200])
    def test_they_hold_exp_between_them_and_are_close(self, x, bits):
        low, high = (Fraction(q, 2**bits) for q in exp_enclosure(x, bits=bits))
        assert decimal(low) < (-decimal(x)).exp() < decimal(high)
        assert high - low <= Fraction(2, 2**bits)


class TestDigits:
    @pytest.mark.parametrize("x", EXPONENTS)
    @pytest.mark.parametrize("form", [(1, -1, 1, 1), (0, 1, 1, 2), (1, 0, 1, 1), (0, 3, 1, 3)])
    def test_they_are_those_of_decimal_arithmetic(self, x, form):
        a, b, c, d = form
        q = (-decimal(x)).exp()
        probability = (a + b * q) / (c + d * q)
        coin = Coin(x, *form)
        for bits in (8, 64, 192):
            assert coin.digits(bits) == int(probability * 2**bits)
        assert coin.probability == pytest.approx(float(probability), rel=1e-15)

    def test_a_huge_exponent_is_almost_certain_and_never_certain(self):
        assert Coin(Fraction(5000), 1, -1, 1, 1).digits(64) == 2**64 - 1
        assert Coin(Fraction(5000), 0, 1, 1, 2).digits(64) == 0


class TestThrows:
    def test_they_follow_the_probability(self):
        """A false alarm has a chance of 1e-9: six standard deviations."""
        coin = Coin(Fraction(1), 1, -1, 1, 1)
        for noise in (SecureNoise(), SeededNoise(0)):
            share = coin.throw(200_000, noise).mean()
            assert abs(share - np.tanh(0.5)) < 6 * 0.5 / np.sqrt(200_000)

    @pytest.mark.parametrize(("further", "heads"), [(-1, True), (1, False)])
    def test_a_tie_is_decided_by_the_next_digits(self, further, heads):
        coin = Coin(Fraction(1), 1, -1, 1, 1)
        asked = []

        class Tied(SeededNoise):
            def _uniform_words(self, count):
                return np.full(count, coin.digits(64), dtype=np.uint64)

            def _uniform_below(self, upper):
                asked.append(upper)
                digit = coin.digits(64 * (len(asked) + 1)) % 2**64
                return digit if len(asked) == 1 else digit + further

        assert coin.throw_one(Tied(0)) is heads
        assert asked == [2**64, 2**64]

    def test_the_nearest_words_fall_on_their_sides(self):
        coin = Coin(Fraction(1), 1, -1, 1, 1)

        class Near(SeededNoise):
            def _uniform_words(self, count):
                return np.array([coin.digits(64) - 1, coin.digits(64) + 1], dtype=np.uint64)

        assert coin.throw(2, Near(0)).tolist() == [True, False]


@pytest.mark.parametrize(
    "arguments", [(Fraction(0), 1, -1, 1, 1), (Fraction(1), 1, 1, 1, 1), (1.0, 1, -1, 1, 1)]
)
def test_what_is_no_coin_is_refused(arguments):
    with pytest.raises(ParameterError):
        Coin(*arguments)
