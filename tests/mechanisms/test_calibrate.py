"""Calibration: the smallest noise, on the safe side, priced again."""

import math
from fractions import Fraction

import mpmath
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from quorate.core.account import (
    Composed,
    Gaussian,
    Pure,
    Repeated,
    Subsampled,
    gdp_mu,
    price,
)
from quorate.core.guarantees import Relation
from quorate.exceptions import NumericalFailure, ParameterError
from quorate.mechanisms.calibrate import calibrate, gaussian_multiplier, split_epsilon

epsilons = st.floats(-6, 2.5).map(lambda exponent: 10.0**exponent)
deltas = st.floats(-14, -0.5).map(lambda exponent: 10.0**exponent)


def true_delta(epsilon, mu):
    with mpmath.workdps(60):
        epsilon, mu = mpmath.mpf(epsilon), mpmath.mpf(mu)
        return mpmath.ncdf(mu / 2 - epsilon / mu) - mpmath.exp(epsilon) * mpmath.ncdf(
            -mu / 2 - epsilon / mu
        )


class TestGaussianBudget:
    def test_the_published_figures(self):
        """(1, 1e-6) needs noise 4.2247, mu 0.2367."""
        assert gaussian_multiplier(1.0, 1e-6) == pytest.approx(4.2247, abs=5e-5)
        assert gdp_mu(1.0, 1e-6) == pytest.approx(0.2367, abs=5e-5)

    @settings(max_examples=200)
    @given(epsilons, deltas)
    def test_mu_keeps_the_budget_and_a_little_more_would_not(self, epsilon, delta):
        mu = gdp_mu(epsilon, delta)
        assert true_delta(epsilon, mu) <= delta
        assert true_delta(epsilon, mu * (1 + 1e-4)) > delta

    @settings(max_examples=100)
    @given(epsilons, deltas, st.integers(1, 10**6))
    def test_the_multiplier_prices_back_to_the_budget(self, epsilon, delta, count):
        multiplier = gaussian_multiplier(epsilon, delta, count=count)
        assert price(Repeated(Gaussian(multiplier), count), delta=delta) <= epsilon
        less = price(Repeated(Gaussian(multiplier * 0.999), count), delta=delta)
        assert less > epsilon * (1 - 1e-6)

    @pytest.mark.parametrize("epsilon", [0.1, 0.25, 0.3, 0.7, 1.0, 2.0, 8.0])
    @pytest.mark.parametrize("delta", [1e-9, 1e-6, 1e-5])
    def test_a_round_budget_comes_back_as_the_same_number(self, epsilon, delta):
        assert price(Gaussian(gaussian_multiplier(epsilon, delta)), delta=delta) == epsilon

    def test_the_classical_formula_would_be_caught(self):
        """sqrt(2 log(1.25 / delta)) / epsilon is wrong for epsilon above 1."""
        epsilon, delta = 8.0, 1e-2
        classical = math.sqrt(2 * math.log(1.25 / delta)) / epsilon
        assert true_delta(epsilon, 1 / classical) > delta
        assert true_delta(epsilon, 1 / gaussian_multiplier(epsilon, delta)) <= delta

    @pytest.mark.parametrize("epsilon", [0.0, -1.0, math.nan, math.inf])
    def test_a_budget_is_positive_and_finite(self, epsilon):
        with pytest.raises(ParameterError, match="epsilon"):
            gdp_mu(epsilon, 1e-6)

    @pytest.mark.parametrize("delta", [0.0, 1.0, math.nan])
    def test_gaussian_noise_needs_a_delta(self, delta):
        with pytest.raises(ParameterError, match="delta"):
            gaussian_multiplier(1.0, delta)

    @pytest.mark.parametrize("count", [0, -1, 1.5])
    def test_a_count_is_positive(self, count):
        with pytest.raises(ParameterError, match="count"):
            gaussian_multiplier(1.0, 1e-6, count=count)

    def test_a_budget_too_small_for_floats_is_refused(self):
        with pytest.raises(NumericalFailure, match="larger budget"):
            gdp_mu(1e-19, 1e-6)
        with pytest.raises(NumericalFailure, match="larger budget"):
            gdp_mu(1.0, 1e-295)


class TestSplitting:
    @given(st.floats(1e-6, 1e3), st.lists(st.floats(1e-3, 1e3), min_size=1, max_size=20))
    def test_pure_shares_never_exceed_the_whole(self, epsilon, shares):
        parts = split_epsilon(epsilon, shares)
        assert sum(map(Fraction, parts)) <= Fraction(epsilon)
        assert price(Composed(tuple(map(Pure, parts)))) <= epsilon
        assert sum(parts) == pytest.approx(epsilon)

    def test_dividing_floats_would_be_caught(self):
        """The broken twin: a tenth, ten times."""
        assert price(Repeated(Pure(1.0 / 10), 10)) > 1.0
        assert price(Composed(tuple(map(Pure, split_epsilon(1.0, [1] * 10))))) <= 1.0

    @pytest.mark.parametrize("shares", [[], [0.0], [1.0, -1.0], [math.nan]])
    def test_shares_are_positive(self, shares):
        with pytest.raises(ParameterError, match="share"):
            split_epsilon(1.0, shares)

    def test_the_whole_is_positive(self):
        with pytest.raises(ParameterError):
            split_epsilon(0.0, [1.0])


def _pure(scale):
    """What noise of this scale costs; a larger scale costs less."""
    return Pure(1 / scale)


class TestBisection:
    @pytest.mark.parametrize(
        ("make_event", "delta"),
        [
            (lambda scale: Repeated(_pure(scale), 50), 1e-6),
            (lambda scale: Composed((Pure(0.1), Gaussian(scale))), 1e-6),
            (lambda scale: Pure(3 / scale), 0.0),
        ],
    )
    def test_it_prices_back_to_the_budget(self, make_event, delta):
        found = calibrate(
            make_event, epsilon=1.0, delta=delta, lower=1.0, upper=1e3, tolerance=1e-3
        )
        assert price(make_event(found), delta=delta) <= 1.0
        assert price(make_event(found * (1 - 2e-3)), delta=delta) > 1.0

    def test_it_agrees_with_the_closed_form(self):
        found = calibrate(
            Gaussian, epsilon=1.0, delta=1e-6, lower=0.1, upper=100.0, tolerance=1e-10
        )
        assert found == pytest.approx(gaussian_multiplier(1.0, 1e-6), rel=1e-8)

    def test_the_relation_is_passed_on(self):
        def make_event(scale):
            return Subsampled(Gaussian(scale), 0.5)

        costs = {
            relation: calibrate(
                make_event,
                epsilon=1.0,
                delta=1e-5,
                relation=relation,
                lower=1.0,
                upper=10.0,
                tolerance=0.05,
            )
            for relation in Relation
        }
        assert costs[Relation.REPLACE] > 1.3 * costs[Relation.ADD_REMOVE]

    def test_a_lower_end_that_fits_is_the_answer(self):
        assert calibrate(_pure, epsilon=10.0, lower=0.5, upper=9.0) == 0.5

    def test_an_upper_end_that_does_not_fit_is_refused(self):
        with pytest.raises(NumericalFailure, match="raise upper"):
            calibrate(_pure, epsilon=0.01, lower=0.5, upper=9.0)
        with pytest.raises(NumericalFailure, match="inf"):
            calibrate(Gaussian, epsilon=1.0, lower=0.5, upper=9.0)

    def test_noise_that_works_backwards_is_refused(self):
        with pytest.raises(NumericalFailure, match="more noise"):
            calibrate(
                lambda scale: Pure(2.0 if scale < 3 else 5.0 if scale < 9 else 0.1),
                epsilon=1.0,
                lower=1.0,
                upper=10.0,
            )

    def test_the_bracket_is_in_order(self):
        with pytest.raises(ParameterError, match="lower < upper"):
            calibrate(_pure, epsilon=1.0, lower=2.0, upper=2.0)
        with pytest.raises(ParameterError, match="tolerance"):
            calibrate(_pure, epsilon=1.0, lower=1.0, upper=2.0, tolerance=0.0)

    def test_a_tolerance_below_floats_still_ends(self):
        found = calibrate(_pure, epsilon=0.3, lower=0.5, upper=9.0, tolerance=1e-300)
        assert price(_pure(found)) <= 0.3
        assert found == pytest.approx(1 / 0.3)
