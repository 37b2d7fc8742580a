"""Point functions: values brought into the domain, and dimension 1."""

from __future__ import annotations

import numpy as np
import pytest

from quorate.learners.concepts import PointFunctions, littlestone_dimension, vc_dimension


def test_values_are_rounded_down_and_clipped():
    points = PointFunctions(3, lower=10, name="shop")
    assert str(points.concept(1)) == "Predict 1 if shop is 11, else 0."
    assert points.predict(1, [10.9, 11.0, 11.9, 12.0]).tolist() == [0, 1, 1, 0]
    assert points.predict(0, [-5.0, np.nan]).tolist() == [1, 1]
    assert points.predict(2, [99.0]).tolist() == [1]


@pytest.mark.parametrize("points", [1, 2, 3, 30])
def test_after_one_label_nothing_is_left_to_learn(points):
    concepts = PointFunctions(points)
    assert concepts.vc_dimension == vc_dimension(np.eye(points))
    assert concepts.littlestone_dimension == littlestone_dimension(np.eye(points))
    assert concepts.vc_is_exact
    assert concepts.littlestone_is_exact
