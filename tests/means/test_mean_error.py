"""What is stated about a mean: error figures that hold for both kinds of noise; frozen."""

import dataclasses
import math

import numpy as np
import pytest

from quorate.means.mean_error import MeanError
from quorate.means.present_mean import ErrorParts, MeanRelease


class TestError:
    @pytest.mark.parametrize("dimension", [1, 10, 300])
    def test_the_bound_holds_for_gaussian_noise(self, dimension):
        error = ErrorParts(noise=np.full(dimension, 2.0), radius=1.0).stated()
        draws = np.random.default_rng(0).normal(scale=2.0, size=(4000, dimension))
        lengths = np.linalg.norm(draws, axis=1)
        # 4000 draws: a true share of 5 % stays below 7 % except with probability 1e-6.
        assert np.mean(lengths > error.bound) < 0.07
        assert np.mean(lengths > 0.7 * error.bound) > 0.05
        assert error.standard_error == pytest.approx(2.0 * math.sqrt(dimension))

    def test_the_error_bound_holds_and_is_not_loose(self):
        scales = np.array([1.0, 2.0])
        noise = math.sqrt(2.0) * scales
        error = ErrorParts(noise=noise, laplace=True, radius=1.0).stated()
        draws = np.random.default_rng(0).laplace(scale=scales, size=(4000, 2))
        lengths = np.linalg.norm(draws, axis=1)
        assert np.mean(lengths > error.bound) < 0.06
        assert error.bound < 4 * error.standard_error
        assert error.standard_error == pytest.approx(math.sqrt(2 * 5))


class TestForm:
    @pytest.mark.parametrize("kind", [MeanError, MeanRelease])
    def test_results_are_frozen(self, kind):
        assert dataclasses.fields(kind)
        assert kind.__dataclass_params__.frozen
