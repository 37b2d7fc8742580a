"""The oracle of every exact audit is itself checked against slower and plainer computations."""

from __future__ import annotations

import math
from decimal import Decimal, localcontext
from fractions import Fraction
from itertools import permutations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from quorate.auditing import (
    Law,
    discrete_gaussian_mass,
    discrete_laplace_mass,
    gumbel_max_mass,
    independent_laws,
    permute_and_flip_mass,
)
from quorate.auditing.laws import gaussian_interval, geometric_interval, laplace_interval
from quorate.exceptions import ParameterError


def decimal_masses(exponent, reach):
    """Probabilities of -reach..reach for mass exp(exponent(z)), in 60 digits."""
    with localcontext() as context:
        context.prec = 60
        weights = {z: exponent(Decimal(z)).exp() for z in range(-reach, reach + 1)}
        total = sum(weights.values())
        return {z: weight / total for z, weight in weights.items()}


class TestAdditiveNoise:
    @pytest.mark.parametrize("scale", [0.25, 1.0, 3.5])
    def test_discrete_laplace_agrees_with_sixty_digits(self, scale):
        oracle = decimal_masses(lambda z: -abs(z) / Decimal(scale), reach=int(150 * scale) + 60)
        law = discrete_laplace_mass(3, scale=scale, window=(-10, 16))
        for output in range(-9, 16):
            assert law[output] == pytest.approx(float(oracle[output - 3]), rel=1e-13)
        assert law[16] == pytest.approx(float(sum(oracle[z] for z in oracle if z >= 13)), rel=1e-12)
        assert law[-10] == pytest.approx(
            float(sum(oracle[z] for z in oracle if z <= -13)), rel=1e-12
        )

    @pytest.mark.parametrize("sigma", [0.3, 1.0, 2.5])
    def test_discrete_gaussian_agrees_with_sixty_digits(self, sigma):
        oracle = decimal_masses(lambda z: -z * z / (2 * Decimal(sigma) ** 2), reach=60)
        law = discrete_gaussian_mass(1, sigma=sigma, window=(-4, 6))
        for output in range(-3, 6):
            assert law[output] == pytest.approx(float(oracle[output - 1]), rel=1e-12)
        assert law[6] == pytest.approx(float(sum(oracle[z] for z in oracle if z >= 5)), rel=1e-12)
        tails = sum(oracle[z] for z in oracle if z > 5 or z < -5)
        assert law.coarse == pytest.approx(float(tails), rel=1e-11)

    @given(low=st.integers(-300, 300), length=st.integers(0, 300), scale=st.floats(0.2, 80))
    def test_intervals_are_the_sums_of_their_points(self, low, length, scale):
        high = low + length
        for interval, name in (
            (laplace_interval, "scale"),
            (gaussian_interval, "sigma"),
            (geometric_interval, "scale"),
        ):
            points = [interval(z, z, **{name: scale}) for z in range(low, high + 1)]
            assert interval(low, high, **{name: scale}) == pytest.approx(
                math.fsum(points), rel=1e-11, abs=1e-300
            )

    @given(cut=st.integers(-500, 500), scale=st.floats(0.2, 80))
    def test_two_open_intervals_add_up_to_one(self, cut, scale):
        for interval, name in (
            (laplace_interval, "scale"),
            (gaussian_interval, "sigma"),
            (geometric_interval, "scale"),
        ):
            whole = interval(None, cut, **{name: scale}) + interval(cut + 1, None, **{name: scale})
            assert whole == pytest.approx(1.0, abs=1e-13)

    @pytest.mark.parametrize("ends", [(-9000, 4000), (1000, 20000), (-20000, -5000), (None, 7)])
    def test_long_sums_by_the_formula_agree_with_adding_the_terms(self, ends, monkeypatch):
        by_formula = gaussian_interval(*ends, sigma=2500.0)
        monkeypatch.setattr("quorate.auditing.laws.MAX_DIRECT_TERMS", 10**9)
        assert by_formula == pytest.approx(gaussian_interval(*ends, sigma=2500.0), rel=1e-12)

    def test_fine_grids_are_no_harder_than_coarse_ones(self):
        sigma = 2.0**40
        middle = gaussian_interval(-int(sigma), int(sigma), sigma=sigma)
        assert middle == pytest.approx(math.erf(math.sqrt(0.5)), rel=1e-9)


class TestChoices:
    def test_permute_and_flip_agrees_with_walking_all_permutations(self):
        scores, scale = [3, 1, 2, 3, 0], 1.3
        weights = [math.exp((s - 3) / scale) for s in scores]
        oracle = [0.0] * len(scores)
        for order in permutations(range(len(scores))):
            still_here = 1.0 / math.factorial(len(scores))
            for i in order:
                oracle[i] += still_here * weights[i]
                still_here *= 1.0 - weights[i]
        law = permute_and_flip_mass(scores, scale=scale)
        assert [law[i] for i in range(5)] == pytest.approx(oracle, rel=1e-12)

    def test_the_exponential_mechanism_has_weights_exp_of_score_over_scale(self):
        law = gumbel_max_mass(np.array([0, 3, 1]), scale=2.0)
        assert law[1] / law[0] == pytest.approx(math.exp(1.5))
        assert math.fsum(law.values()) == pytest.approx(1.0)

    def test_scores_at_both_ends_of_int64_do_not_wrap(self):
        law = permute_and_flip_mass([-(2**63), 2**63 - 1], scale=1e18)
        assert law[1] > 0.99
        assert law[0] == pytest.approx(0.5 * math.exp(-(2**64) / 1e18), rel=1e-9)

    def test_no_candidates_are_refused(self):
        with pytest.raises(ParameterError, match="at least one score"):
            permute_and_flip_mass([], scale=1.0)


class TestLaw:
    @pytest.mark.parametrize(
        "masses", [{0: 0.5}, {0: 1.5, 1: -0.5}, {0: math.nan}, {0: 0.7, 1: 0.7}, {}]
    )
    def test_what_is_not_a_distribution_is_refused(self, masses):
        with pytest.raises(ParameterError, match="Expected probabilities"):
            Law(masses)

    def test_lost_mass_completes_the_total_and_is_slack(self):
        law = Law({"a": Fraction(1, 2)}, lost=0.5)
        assert law.slack == 0.5

    def test_independent_outputs_multiply(self):
        law = independent_laws(Law({0: 0.25, 1: 0.75}), Law({0: 0.5}, lost=0.5))
        assert law[1, 0] == 0.375
        assert law.lost == 0.5

    @pytest.mark.parametrize("window", [(0, 0), (3, -3)])
    def test_a_window_without_room_is_refused(self, window):
        with pytest.raises(ParameterError, match="low < high"):
            discrete_laplace_mass(0, scale=1.0, window=window)
