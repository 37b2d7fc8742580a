"""The price of negative binomial noise, against other sums, other libraries and the print."""

import math

import mpmath
import numpy as np
import pytest
from scipy.stats import binom, nbinom, poisson

from quorate.exceptions import ParameterError
from quorate.local.shuffling.count_noise import (
    CountNoise,
    calibrated_noise,
    histogram_bound,
    noise_delta,
    published_noise,
    selection_bound,
    sum_bound,
)

NOISES = [
    CountNoise(3.0, 0.5),
    CountNoise(0.7, 0.8),
    CountNoise(40.0, 0.1),
    CountNoise(200.0, 0.02),
]
every_noise = pytest.mark.parametrize("noise", NOISES, ids=str)


def by_definition(epsilon, noise, buckets, size=220):
    """Sum the definition with mpmath's masses; p is the chance to continue."""
    with mpmath.workdps(30):
        r, p = mpmath.mpf(noise.r), mpmath.mpf(noise.p)
        masses = [
            mpmath.gamma(k + r) / mpmath.gamma(r) / mpmath.factorial(k) * (1 - p) ** r * p**k
            for k in range(size)
        ]
        f = np.array([float(mass) for mass in masses])
    here, before = np.append(f, 0.0), np.append([0.0], f)
    factor = math.exp(epsilon)
    if buckets == 1:
        return max(
            np.maximum(before - factor * here, 0).sum(), np.maximum(here - factor * before, 0).sum()
        )
    moved = np.multiply.outer(before, here) - factor * np.multiply.outer(here, before)
    return np.maximum(moved, 0).sum()


class TestLaw:
    @every_noise
    def test_masses_are_those_of_scipy_with_its_parameter_turned_round(self, noise):
        masses, beyond = noise.masses()
        k = np.arange(len(masses))
        np.testing.assert_allclose(masses, nbinom.pmf(k, noise.r, 1 - noise.p), rtol=1e-9)
        assert beyond < 1e-21
        assert masses @ k == pytest.approx(noise.mean)
        assert math.sqrt(masses @ (k - noise.mean) ** 2) == pytest.approx(noise.deviation)

    def test_what_lies_beyond_is_bounded(self):
        masses, beyond = CountNoise(2.0, 0.9).masses()
        assert nbinom.sf(len(masses) - 1, 2.0, 0.1) <= beyond * (1 + 1e-6)

    def test_shares_of_users_add_up_to_the_whole(self):
        """Divisibility: five users with r/5 make NB(r, p)."""
        share = CountNoise(3.0 / 5, 0.5).masses()[0][:60]
        total = np.ones(1)
        for _ in range(5):
            total = np.convolve(total, share)
        np.testing.assert_allclose(total[:60], CountNoise(3.0, 0.5).masses()[0][:60], rtol=1e-9)


class TestQuantile:
    @every_noise
    def test_it_is_the_first_that_is_rarely_exceeded(self, noise):
        for beta in (0.5, 0.1, 1e-6):
            found = noise.quantile(beta)
            assert nbinom.sf(found, noise.r, 1 - noise.p) <= beta * (1 + 1e-9)
            assert found == 0 or nbinom.sf(found - 1, noise.r, 1 - noise.p) > beta * (1 - 1e-9)

    def test_the_tail_is_that_of_a_binomial_with_more_throws(self):
        noise, above = CountNoise(7.0, 0.6), 20
        tail = nbinom.sf(above, 7, 0.4)
        assert binom.cdf(6, above + 7, 0.4) == pytest.approx(tail)
        assert binom.cdf(6, above, 0.4) > 2 * tail
        assert noise.quantile(tail * 1.0001) == above


@pytest.mark.claim("G11: Lemma 36")
class TestPrice:
    @every_noise
    @pytest.mark.parametrize("buckets", [1, 2])
    def test_it_is_the_hockey_stick_by_definition(self, noise, buckets):
        for epsilon in (0.3, 1.0, 2.0):
            truth = by_definition(epsilon, noise, buckets=buckets)
            found = noise_delta(epsilon, noise, buckets=buckets)
            assert truth * (1 - 1e-9) <= found <= truth * (1 + 1e-6) + 1e-15

    def test_both_directions_count(self):
        """With a heavy tail the lost user is the worse case: nobody is below zero."""
        noise = CountNoise(1.0, math.exp(-0.9))
        assert noise_delta(1.0, noise, buckets=1) >= noise.masses()[0][0] * 0.99

    @every_noise
    def test_replacing_costs_more_than_adding_and_less_than_two_additions(self, noise):
        one = noise_delta(1.0, noise, buckets=1)
        two = noise_delta(1.0, noise, buckets=2)
        half = noise_delta(0.5, noise, buckets=1)
        assert one <= two <= (1 + math.exp(0.5)) * half + 1e-12

    def test_chances_exchanged_are_caught(self):
        right = by_definition(1.0, CountNoise(3.0, 0.2), buckets=1)
        swapped = noise_delta(1.0, CountNoise(3.0, 0.8), buckets=1)
        assert abs(swapped - right) > 0.1


class TestPublished:
    @pytest.mark.parametrize(("epsilon", "delta"), [(1.0, 1e-6), (0.5, 5e-7), (0.1, 1e-9)])
    def test_constants_are_those_of_the_print(self, epsilon, delta):
        noise = published_noise(epsilon, delta)
        assert noise.r == pytest.approx(3 * (1 + math.log(1 / delta)))
        assert noise.p == pytest.approx(math.exp(-0.2 * epsilon))
        assert noise_delta(epsilon, noise, buckets=1) <= delta

    def test_the_corollary_has_its_own_constant(self):
        noise = published_noise(1.0, 1e-6, beta=0.1)
        assert noise.r == math.ceil(1000 * (1 + math.log(1e7)))
        # Its proof: T = 2r/(1-p) is exceeded with probability at most beta.
        assert nbinom.sf(2 * noise.r / (1 - noise.p), noise.r, 1 - noise.p) <= 0.1

    def test_the_print_pays_far_too_much(self):
        assert noise_delta(1.0, published_noise(1.0, 1e-6), buckets=1) < 1e-20


class TestCalibration:
    def test_the_joint_noise_is_small(self):
        noise = calibrated_noise(1.0, 1e-6, buckets=2)
        assert noise.mean <= 43
        assert noise.deviation <= 6.6

    @pytest.mark.parametrize("buckets", [1, 2])
    @pytest.mark.parametrize(("epsilon", "delta"), [(0.5, 1e-6), (1.0, 1e-9), (2.0, 1e-4)])
    def test_the_noise_fits_and_less_does_not(self, epsilon, delta, buckets):
        noise = calibrated_noise(epsilon, delta, buckets=buckets)
        assert noise_delta(epsilon, noise, buckets=buckets) <= delta
        less = CountNoise(noise.r * 0.999, noise.p)
        assert noise_delta(epsilon, less, buckets=buckets) > delta

    def test_it_agrees_with_poisson_noise_computed_elsewhere(self):
        """The smallest deviation is near the Poisson limit: 34.07 (one bucket), by another sum."""
        k = np.arange(400)
        f = poisson.pmf(k, 34.07)
        before = np.append([0.0], f[:-1])
        delta = max(
            np.maximum(before - math.e * f, 0).sum(), np.maximum(f - math.e * before, 0).sum()
        )
        assert delta == pytest.approx(1e-6, rel=0.02)
        noise = calibrated_noise(1.0, 1e-6, buckets=1)
        assert noise.mean == pytest.approx(34.07, rel=0.01)


@pytest.mark.parametrize(
    ("r", "p"), [(0.0, 0.5), (-1.0, 0.5), (1.0, 0.0), (1.0, 1.0), (math.nan, 0.5)]
)
def test_parameters_out_of_range_are_refused(r, p):
    with pytest.raises(ParameterError):
        CountNoise(r, p)


@pytest.mark.claim("G11: Corollary 40", "G11: Lemma 36", "G11: Lemma 37")
class TestPrintedBounds:
    """Written from Appendix D of the paper, not from the code."""

    CASES = ((1.0, 1e-6, 0.05), (0.3, 1e-3, 0.4), (0.9, 1e-9, 1e-4))

    @pytest.mark.parametrize(("epsilon", "delta", "beta"), CASES)
    def test_corollary_40_has_its_r_and_its_threshold(self, epsilon, delta, beta):
        r = math.ceil(1000 * (1 + math.log(1 / (beta * delta))))
        p = math.exp(-0.2 * epsilon)
        noise = published_noise(epsilon, delta, beta=beta)
        assert (noise.r, noise.p) == (r, p)
        threshold = sum_bound(epsilon, delta, beta=beta)
        assert threshold == pytest.approx(2 * r / (1 - p), rel=1e-12)
        # What the corollary says of it, by exact tails; half of it would not do.
        assert nbinom.sf(threshold, r, 1 - p) <= beta
        assert nbinom.sf(threshold / 2.5, r, 1 - p) > beta

    @pytest.mark.parametrize(("epsilon", "delta", "beta"), CASES)
    def test_lemmas_36_and_37_take_half_the_budget_and_the_second_beta_over_n(
        self, epsilon, delta, beta
    ):
        def threshold(chance):
            r = math.ceil(1000 * (1 + math.log(1 / (chance * delta / 2))))
            return 2 * r / (1 - math.exp(-0.2 * epsilon / 2))

        assert selection_bound(epsilon, delta, beta=beta) == pytest.approx(threshold(beta))
        for users in (1, 30, 10**6):
            found = histogram_bound(epsilon, delta, beta=beta, users=users)
            assert found == pytest.approx(threshold(beta / users))
