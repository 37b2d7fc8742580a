"""Gaussian differential privacy against sixty-digit arithmetic and exact enumeration."""

import math
from fractions import Fraction

import mpmath
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from quorate.core.account.gaussian_dp import delta_bound, epsilon_bound, total_mu

mus = st.floats(-9, 3).map(lambda exponent: 10.0**exponent)
tails = st.floats(-10, 36)


def true_delta(epsilon, mu):
    """Balle and Wang's formula in sixty digits: the oracle."""
    with mpmath.workdps(60):
        epsilon, mu = mpmath.mpf(epsilon), mpmath.mpf(mu)
        return mpmath.ncdf(mu / 2 - epsilon / mu) - mpmath.exp(epsilon) * mpmath.ncdf(
            -mu / 2 - epsilon / mu
        )


def naive_delta(epsilon, mu):
    """The formula as it stands, in floats: the broken twin."""
    upper = 0.5 * math.erfc((epsilon / mu - mu / 2) / math.sqrt(2))
    return upper - math.exp(epsilon) * 0.5 * math.erfc((epsilon / mu + mu / 2) / math.sqrt(2))


class TestDelta:
    @settings(max_examples=300)
    @given(mus, tails)
    def test_it_is_never_below_the_truth(self, mu, tail):
        epsilon = max(0.0, (tail + mu / 2) * mu)
        assert delta_bound(epsilon, mu) >= true_delta(epsilon, mu)

    @settings(max_examples=300)
    @given(st.floats(-4, 2).map(lambda exponent: 10.0**exponent), st.floats(-5, 15))
    def test_it_is_tight(self, mu, tail):
        epsilon = max(0.0, (tail + mu / 2) * mu)
        assert delta_bound(epsilon, mu) <= true_delta(epsilon, mu) * (1 + 1e-6)

    def test_tiny_losses_are_tight_too(self):
        for mu in (1e-9, 1e-6, 0.99e-4, 1.01e-4):
            for tail in (0.0, 1.0, 5.0, 8.0):
                truth = true_delta(mu * tail, mu)
                assert truth <= delta_bound(mu * tail, mu) <= truth * (1 + 1e-6)

    def test_the_plain_formula_fails_the_same_check(self):
        points = [(mu * (t + mu / 2), mu) for mu in (1e-8, 1e-4, 0.1) for t in range(1, 20)]
        assert any(naive_delta(*point) < true_delta(*point) for point in points)
        assert all(delta_bound(*point) >= true_delta(*point) for point in points)

    def test_extreme_arguments_stay_on_the_safe_side(self):
        assert delta_bound(1.0, 0.0) == 0.0
        assert delta_bound(1.0, math.inf) == 1.0
        assert delta_bound(1.0, math.nan) == 1.0
        assert delta_bound(1e300, 1e-3) > 0
        assert delta_bound(4e15, 1e8) == 1.0
        assert delta_bound(5e15, 1e8) >= 0.5
        assert delta_bound(6e15, 1e8) < 1e-100

    @given(mus, st.floats(0, 50), st.floats(1.001, 2))
    def test_it_grows_with_mu_and_falls_with_epsilon(self, mu, epsilon, factor):
        slack = 1 + 1e-9
        assert delta_bound(epsilon, mu) <= delta_bound(epsilon, mu * factor) * slack
        assert delta_bound(epsilon * factor, mu) <= delta_bound(epsilon, mu) * slack


class TestEpsilon:
    @settings(max_examples=200)
    @given(st.floats(-6, 1.5).map(lambda e: 10.0**e), st.floats(-14, -0.5).map(lambda e: 10.0**e))
    def test_it_keeps_delta_and_a_little_less_would_not(self, mu, delta):
        epsilon = epsilon_bound(delta, mu)
        assert true_delta(epsilon, mu) <= delta
        if epsilon > 1e-12:
            assert true_delta(epsilon * (1 - 1e-4), mu) > delta * (1 - 1e-2)

    def test_the_published_example(self):
        """Noise 4.2247 for (1, 1e-6), as dp_accounting's analytic calibration has it."""
        assert epsilon_bound(1e-6, 1 / 4.2247) == pytest.approx(1.0, abs=1e-5)

    def test_there_is_no_pure_epsilon(self):
        assert epsilon_bound(0.0, 0.1) == math.inf
        assert epsilon_bound(1e-300, 0.1) == math.inf
        assert epsilon_bound(1e-6, math.inf) == math.inf

    def test_no_noise_is_needed_for_nothing(self):
        assert epsilon_bound(0.0, 0.0) == 0.0

    def test_even_a_vanishing_loss_is_not_free(self):
        assert epsilon_bound(1e-6, 1e-9) == 1e-18


class TestDiscreteNoise:
    @pytest.mark.parametrize("sigma", [8.0, 20.0])
    @pytest.mark.parametrize("sensitivity", [1, 5, 30])
    @pytest.mark.parametrize("delta", [1e-9, 1e-5, 1e-2])
    def test_the_price_covers_the_discrete_gaussian(self, sigma, sensitivity, delta):
        tau = math.sqrt(sigma**2 - 4) / sensitivity
        epsilon = epsilon_bound(delta, total_mu([(tau, 1)]))
        assert self.discrete_delta(epsilon, sigma, sensitivity) <= delta

    def test_a_price_without_the_slack_is_caught(self):
        """Rounded continuous noise, priced with its full sigma at the grid's own scale."""
        sigma, delta = 1.0, 1e-3
        epsilon = epsilon_bound(delta, 1 / sigma)
        assert self.discrete_delta(epsilon, sigma, 1) > delta

    @staticmethod
    def discrete_delta(epsilon, sigma, sensitivity):
        mass = {z: math.exp(-(z**2) / (2 * sigma**2)) for z in range(-800, 801)}
        inside = range(-800 + sensitivity, 801)
        gain = (max(0.0, mass[z] - math.exp(epsilon) * mass[z - sensitivity]) for z in inside)
        return math.fsum(gain) / math.fsum(mass.values())


class TestComposition:
    @given(st.lists(st.tuples(st.floats(0.01, 1e4), st.integers(0, 1000)), max_size=8))
    def test_mu_is_above_the_root_of_the_squares_by_almost_nothing(self, parts):
        square = sum((count / Fraction(z) ** 2 for z, count in parts), Fraction(0))
        mu = Fraction(total_mu(parts))
        assert square <= mu**2 <= square * (1 + Fraction(1, 10**14))

    @given(st.lists(st.tuples(st.floats(0.01, 1e4), st.integers(1, 9)), min_size=2, max_size=8))
    def test_order_is_irrelevant(self, parts):
        assert total_mu(parts) == total_mu(parts[::-1])

    def test_noise_too_small_for_a_float_costs_everything(self):
        assert total_mu([(5e-324, 1)]) == math.inf
