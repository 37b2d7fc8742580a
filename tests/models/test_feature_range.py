"""Public limits of features: cut, scaled, and back without a change of predictions."""

import numpy as np

from quorate.core.bounds.grid import Box
from quorate.models.public_inputs import FeatureRange

RNG = np.random.default_rng(0)


class TestFeatureRange:
    def test_scaling_and_back_keep_predictions(self):
        limits = FeatureRange(([0.0, -5.0], [10.0, 5.0]), 2)
        rows = RNG.uniform([0.0, -5.0], [10.0, 5.0], size=(5, 2))
        weights, offsets = RNG.normal(size=(1, 2)), RNG.normal(size=1)
        outer, shift = limits.unscaled(weights, offsets)
        np.testing.assert_allclose(
            rows @ outer.T + shift, limits.scaled(rows) @ weights.T + offsets
        )
        np.testing.assert_allclose(limits.rescaled(outer, shift)[0], weights)
        np.testing.assert_allclose(limits.rescaled(outer, shift)[1], offsets)

    def test_values_beyond_are_cut(self):
        assert FeatureRange(2.0, 1).scaled(np.array([[1e300], [-7.0]])).ravel().tolist() == [1, -1]

    def test_an_overflow_is_not_talked_about(self):
        limits = FeatureRange(([1e-70], [2e-70]), 1)
        assert limits.scaled(np.array([[1e308], [-1e308]])).ravel().tolist() == [1, -1]

    def test_a_box_is_itself(self):
        limits = FeatureRange(Box([0.0, 0.0], [2.0, 4.0]), 2)
        assert limits.half_width.tolist() == [1.0, 2.0]

    def test_no_bounds_change_nothing(self):
        rows = np.ones((2, 2))
        assert FeatureRange(None, 2).scaled(rows) is rows
