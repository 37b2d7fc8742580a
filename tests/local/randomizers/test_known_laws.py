"""Transparent randomizers: exact ratios over all values, samplers against their laws."""

import itertools
import math
from fractions import Fraction
from functools import partial

import numpy as np
import pytest
from scipy.stats import chisquare

from quorate.core.noise import SecureNoise
from quorate.exceptions import ParameterError
from quorate.local.randomizers.known_laws import (
    BinaryResponse,
    BitVectorResponse,
    FiniteRandomizer,
    GaussianResponse,
    KaryResponse,
    LaplaceResponse,
)

ODD = [math.nan, math.inf, -math.inf, 1e308, -7.0, 0.0, 0.3, 1.0]
BITS3 = list(itertools.product((0, 1), repeat=3))
HALF, THIRD = Fraction(1, 2), Fraction(1, 3)
TABLE = FiniteRandomizer(
    {"a": {0: HALF, 1: THIRD, 2: Fraction(1, 6)}, "b": {0: THIRD, 1: HALF, 2: Fraction(1, 6)}},
    epsilon=0.41,
)
FINITE = [
    (BinaryResponse(1.0), ODD, (0, 1), 1.0),
    (BinaryResponse(0.1), ODD, (0, 1), 0.1),
    (KaryResponse(1.0, categories=5), [*ODD, 1, 2, 3, 4, 99], range(5), 1.0),
    (BitVectorResponse(1.0, length=3, ones=1), [*BITS3, (math.nan,) * 3], BITS3, 1.0),
    (BitVectorResponse(1.0, length=3, ones=3), BITS3, BITS3, 1.0),
    (TABLE, ["a", "b", "what"], (0, 1, 2), math.log(1.5)),
]


@pytest.mark.claim("K5: Definition 5.1")
@pytest.mark.parametrize(("randomizer", "values", "answers", "epsilon"), FINITE)
class TestLaws:
    def test_the_chances_of_all_answers_add_up_to_one(self, randomizer, values, answers, epsilon):
        for value in values:
            assert sum(randomizer.probability(w, value) for w in answers) == pytest.approx(1.0)

    def test_the_worst_ratio_is_epsilon(self, randomizer, values, answers, epsilon):
        worst = max(
            math.log(randomizer.probability(w, v) / randomizer.probability(w, u))
            for w in answers
            for v in values
            for u in values
        )
        assert worst == pytest.approx(epsilon, abs=1e-12)
        assert worst <= randomizer.epsilon + 1e-12

    def test_draws_follow_the_law(self, randomizer, values, answers, epsilon):
        """A false alarm has a chance of 1e-7 for each value."""
        places = {answer: place for place, answer in enumerate(answers)}
        for value in values[-3:]:
            drawn = randomizer.draw([value] * 3000, SecureNoise())
            keys = [tuple(w.tolist()) if np.ndim(w) else w for w in drawn]
            counts = np.bincount([places[key] for key in keys], minlength=len(places))
            law = [randomizer.probability(answer, value) for answer in places]
            assert chisquare(counts, 3000 * np.array(law)).pvalue > 1e-7


class TestBroken:
    def test_a_response_that_lies_too_rarely_is_caught(self):
        class TooHonest(BinaryResponse):
            @property
            def _lie(self):
                return BinaryResponse(1.05)._lie

        broken = TooHonest(1.0)
        assert math.log(broken.probability(1, 1.0) / broken.probability(1, 0.0)) > 1.0 + 1e-3
        counts = np.bincount(broken.draw([1.0] * 400_000, SecureNoise()))
        law = [BinaryResponse(1.0).probability(w, 1.0) for w in (0, 1)]
        assert chisquare(counts, 400_000 * np.array(law)).pvalue < 1e-7


class TestBinary:
    def test_the_estimate_is_unbiased_and_as_noisy_as_stated(self):
        response = BinaryResponse(1.0)
        values = np.tile([0.0, 1.0, 1.0, 0.2], 250)
        found = [response.estimate(response.draw(values, SecureNoise())) for _ in range(400)]
        error = response.standard_error(1000, mean=0.55)
        assert abs(np.mean(found) - 0.55) < 5 * error / 20
        assert np.std(found) == pytest.approx(error, rel=0.2)


class TestNoisyNumbers:
    @pytest.mark.parametrize("value", ODD)
    def test_laplace_answers_have_the_mass_of_their_law(self, value):
        response = LaplaceResponse(1.0, steps=4)
        cells = [response.low + k / 4 for k in range(-60, 65)]
        assert sum(response.probability(w, value) for w in cells) == pytest.approx(1.0, abs=1e-5)
        drawn = response.draw(np.full(3000, value), SecureNoise())
        near = list(range(-8, 13))
        counts = [np.sum(drawn == k / 4) for k in near]
        law = [response.probability(k / 4, value) for k in near]
        rest = 3000 - sum(counts)
        assert chisquare([*counts, rest], 3000 * np.array([*law, 1 - sum(law)])).pvalue > 1e-7

    @pytest.mark.parametrize("kind", [LaplaceResponse, partial(GaussianResponse, delta=1e-6)])
    def test_a_value_out_of_range_counts_as_its_end(self, kind):
        response = kind(1.0, low=-2.0, high=3.0, steps=10)
        given = np.array([-np.inf, -1e308, -2.1, -2.0, 3.0, 3.1, 1e308, np.inf, np.nan])
        assert response._cells(given).tolist() == [0, 0, 0, 0, 10, 10, 10, 10, 5]

    def test_the_worst_laplace_ratio_is_epsilon_and_half_the_noise_is_caught(self):
        response = LaplaceResponse(1.0, low=-2.0, high=2.0, steps=8)
        answers = [response.low + 4 * k / 8 for k in range(-30, 40)]

        def worst(law):
            return max(math.log(law(w, 2.0) / law(w, -2.0)) for w in answers)

        assert worst(response.probability) == pytest.approx(1.0, abs=1e-12)
        loud = LaplaceResponse(2.0, low=-2.0, high=2.0, steps=8)
        assert worst(loud.probability) > 1.5

    @pytest.mark.parametrize(("epsilon", "delta"), [(1.0, 1e-3), (0.5, 1e-2)])
    def test_the_gaussian_keeps_its_delta_and_hardly_less(self, epsilon, delta):
        response = GaussianResponse(epsilon, delta, steps=64)
        reach = int(12 * response.sigma)
        cells = [response.low + k / 64 for k in range(-reach, reach + 64)]
        far = np.array([response.probability(w, 0.0) for w in cells])
        near = np.array([response.probability(w, 1.0) for w in cells])
        assert far.sum() == pytest.approx(1.0, abs=1e-9)
        stick = max(
            np.maximum(far - math.exp(epsilon) * near, 0).sum(),
            np.maximum(near - math.exp(epsilon) * far, 0).sum(),
        )
        assert 0.9 * delta < stick <= delta

    def test_gaussian_draws_are_those_of_the_stated_sigma(self):
        response = GaussianResponse(1.0, 1e-3, low=-1.0, high=1.0, steps=1024)
        drawn = response.draw(np.full(4000, 5.0), SecureNoise())
        deviation = 2 * response.sigma / 1024
        assert abs(drawn.mean() - 1.0) < 5 * deviation / math.sqrt(4000)
        assert drawn.std() == pytest.approx(deviation, rel=0.08)


class TestBitVectors:
    def test_more_ones_than_allowed_are_cut(self):
        response = BitVectorResponse(1.0, length=3, ones=1)
        answer = (1, 1, 1)
        assert response.probability(answer, (1, 1, 1)) == response.probability(answer, (1, 0, 0))

    def test_means_are_estimated_without_bias(self):
        response = BitVectorResponse(4.0, length=4)
        rows = np.eye(4)[np.repeat([0, 1, 1, 3], 5000)]
        found = response.estimate(response.draw(rows, SecureNoise()))
        assert found == pytest.approx([0.25, 0.5, 0.0, 0.25], abs=0.03)


class TestCallersOwn:
    def test_a_table_is_checked_exactly_when_it_is_built(self):
        law = {
            0: {"y": Fraction(3, 4), "n": Fraction(1, 4)},
            1: {"y": Fraction(1, 4), "n": Fraction(3, 4)},
        }
        FiniteRandomizer(law, epsilon=math.log(3) * (1 + 1e-15))
        with pytest.raises(ParameterError, match="no guarantee"):
            FiniteRandomizer(law, epsilon=math.log(3) * (1 - 1e-15))

    def test_an_answer_that_gives_a_value_away_is_refused(self):
        law = {0: {"y": Fraction(1)}, 1: {"y": Fraction(1, 2), "n": Fraction(1, 2)}}
        with pytest.raises(ParameterError, match="infinitely many"):
            FiniteRandomizer(law, epsilon=1000.0)

    @pytest.mark.parametrize(
        "law",
        [
            {},
            {0: {"y": Fraction(1, 2)}},
            {0: {"y": 0.5, "n": 0.5}},
            {0: {"y": Fraction(3, 2), "n": Fraction(-1, 2)}},
        ],
    )
    def test_what_is_no_law_is_refused(self, law):
        with pytest.raises(ParameterError, match="Expected"):
            FiniteRandomizer(law, epsilon=1.0)

    def test_an_unhashable_value_is_read_as_the_default(self):
        assert TABLE.probability(0, ["list"]) == TABLE.probability(0, "a")


@pytest.mark.parametrize("epsilon", [0.0, -1.0, math.nan, math.inf, 1e9, "1", None])
def test_a_budget_that_is_none_is_refused(epsilon):
    with pytest.raises(ParameterError, match="epsilon"):
        BinaryResponse(epsilon)
    with pytest.raises(ParameterError, match="epsilon"):
        KaryResponse(epsilon, categories=3)
