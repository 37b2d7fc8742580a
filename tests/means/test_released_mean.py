"""What comes back from a run: error figures that hold; frozen."""

import dataclasses
import math

import numpy as np
import pytest

from quorate.means.released_mean import MeanError, MeanRelease


class TestError:
    @pytest.mark.parametrize("dimension", [1, 10, 300])
    def test_the_bound_holds_for_gaussian_noise(self, dimension):
        error = MeanError.of_noise(2.0, dimension=dimension, radius=1.0, cut_share=0.0)
        draws = np.random.default_rng(0).normal(scale=2.0, size=(4000, dimension))
        lengths = np.linalg.norm(draws, axis=1)
        # 4000 draws: a true share of 5 % stays below 7 % except with probability 1e-6.
        assert np.mean(lengths > error.bound) < 0.07
        assert np.mean(lengths > 0.7 * error.bound) > 0.05
        assert error.standard_error == pytest.approx(2.0 * math.sqrt(dimension))


class TestForm:
    @pytest.mark.parametrize("kind", [MeanError, MeanRelease])
    def test_results_are_frozen(self, kind):
        assert dataclasses.fields(kind)
        assert kind.__dataclass_params__.frozen
