"""Bounds from samples keep their confidence, come close, and refute what is false.

All seeds are fixed. Where a bound could fail by chance it is computed at confidence 1 - 1e-6 or
its failures are counted at a lower confidence with a binomial allowance below 1e-6.
"""

from __future__ import annotations

import math

import numpy as np
import pytest

from quorate.auditing import epsilon_lower_bound
from quorate.core.guarantees import Guarantee
from quorate.exceptions import ParameterError, SchemaError


def discrete_laplace(seed, size, scale):
    rng = np.random.default_rng(seed)
    r = 1 - math.exp(-1 / scale)
    return rng.geometric(r, size) - rng.geometric(r, size)


class TestConfidence:
    def test_the_bound_fails_no_more_often_than_stated(self):
        """At confidence 0.9, 400 bounds fail 40 times on average at most; > 75 has p < 1e-7."""
        failures = 0
        for seed in range(400):
            rng = np.random.default_rng(seed)
            answers = rng.random((2, 400)) < 0.75
            bound = epsilon_lower_bound(answers[0], ~answers[1], confidence=0.9)
            failures += bound.epsilon > math.log(3)
        assert failures <= 75

    def test_testing_on_the_choosing_half_would_fail_more_often(self):
        """The control: equal samples for both halves are what splitting guards against."""
        failures = 0
        for seed in range(100):
            rng = np.random.default_rng(seed)
            first, second = rng.integers(0, 30, (2, 100))
            # Doubling each sample puts a copy into both halves.
            bound = epsilon_lower_bound(first.repeat(2), second.repeat(2), confidence=0.7)
            failures += bound.epsilon > 0
        assert failures > 60

    def test_equal_mechanisms_get_a_bound_near_zero(self):
        bound = epsilon_lower_bound(
            discrete_laplace(1, 20_000, 2.0), discrete_laplace(2, 20_000, 2.0)
        )
        assert bound.epsilon < 0.05


class TestPower:
    def test_laplace_noise_is_bounded_close_to_its_epsilon(self):
        bound = epsilon_lower_bound(
            discrete_laplace(3, 200_000, 1.0), 1 + discrete_laplace(4, 200_000, 1.0)
        )
        assert 0.9 < bound.epsilon <= 1.0
        assert not bound.refutes(Guarantee(epsilon=1.0))

    def test_halved_noise_is_refuted(self):
        bound = epsilon_lower_bound(
            discrete_laplace(5, 20_000, 0.5), 1 + discrete_laplace(6, 20_000, 0.5)
        )
        assert bound.refutes(Guarantee(epsilon=1.0))

    def test_labels_that_have_no_order_are_compared_by_likelihood(self):
        rng = np.random.default_rng(7)
        names = np.array(["red", "green", "blue", "grey"], dtype=object)
        first = names[rng.choice(4, 20_000, p=[0.4, 0.1, 0.4, 0.1])]
        second = names[rng.choice(4, 20_000, p=[0.1, 0.4, 0.1, 0.4])]
        bound = epsilon_lower_bound(list(first), list(second))
        assert 1.2 < bound.epsilon <= math.log(4)

    def test_a_union_of_two_ends_is_found(self):
        """Variance, not location, differs: no threshold event sees as much."""
        first, second = discrete_laplace(8, 50_000, 4.0), discrete_laplace(9, 50_000, 1.0)
        bound = epsilon_lower_bound(first, second)
        assert bound.epsilon > 1.5

    def test_continuous_outputs_do_not_fool_the_likelihood_order(self):
        rng = np.random.default_rng(10)
        bound = epsilon_lower_bound(rng.laplace(0, 1, 50_000), rng.laplace(1, 1, 50_000))
        assert 0.85 < bound.epsilon <= 1.0

    def test_delta_is_subtracted_from_the_likely_side(self):
        sure, never = [1] * 2000, [0] * 2000
        assert epsilon_lower_bound(sure, never).epsilon > 4
        loose = epsilon_lower_bound(sure, never, delta=0.9)
        assert 0 < loose.epsilon < epsilon_lower_bound(sure, never).epsilon
        assert epsilon_lower_bound(sure, never, delta=0.99).epsilon == 0.0


class TestReport:
    def test_it_prints_as_a_sentence(self):
        text = str(epsilon_lower_bound([1] * 100, [0] * 100, delta=0.01))
        assert text.startswith("With confidence 1 - 1e-06 epsilon is at least ")
        assert "0 times in 50 runs and 50 times in 50 runs on the neighbour" in text
        assert "at delta = 0.01" in text

    def test_counts_belong_to_the_samples_whichever_is_likelier(self):
        bound = epsilon_lower_bound([1] * 100, [0] * 60)
        swapped = epsilon_lower_bound([0] * 60, [1] * 100)
        assert (bound.trials, bound.neighbour_trials) == (50, 30)
        assert (swapped.trials, swapped.neighbour_trials) == (30, 50)

    def test_a_bound_at_a_smaller_delta_does_not_judge_a_larger_one(self):
        bound = epsilon_lower_bound([1] * 100, [0] * 100)
        with pytest.raises(ParameterError, match=r"Compute the bound with delta=0\.001"):
            bound.refutes(Guarantee(epsilon=1.0, delta=0.001))

    @pytest.mark.parametrize("samples", [[], [1, 2, 3]])
    def test_too_few_samples_are_refused(self, samples):
        with pytest.raises(SchemaError, match="at least 4 samples"):
            epsilon_lower_bound(samples, [1] * 10)

    def test_vectors_are_refused(self):
        with pytest.raises(SchemaError, match="one number or label per sample"):
            epsilon_lower_bound(np.zeros((10, 2)), np.zeros((10, 2)))

    @pytest.mark.parametrize("confidence", [0.0, 1.0, math.nan])
    def test_confidence_outside_its_range_is_refused(self, confidence):
        with pytest.raises(ParameterError, match="confidence"):
            epsilon_lower_bound([1] * 10, [0] * 10, confidence=confidence)


def test_an_event_is_not_tested_on_the_runs_that_chose_it():
    """Of two equal laws with many outputs some event always looks likelier in the same runs."""
    above = 0
    for seed in range(40):
        rng = np.random.default_rng(seed)
        one, other = rng.integers(0, 400, size=(2, 400))
        above += epsilon_lower_bound(one, other, confidence=0.9).epsilon > 0.0
    # 4 of 40 are allowed on average; 14 or more have a chance below 1e-4.
    assert above < 14
