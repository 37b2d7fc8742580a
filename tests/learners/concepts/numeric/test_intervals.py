"""Intervals: order, sentences, sizes and dimensions."""

from __future__ import annotations

import numpy as np
import pytest

from quorate.exceptions import ParameterError
from quorate.learners.concepts import Intervals, littlestone_dimension, vc_dimension
from quorate.learners.concepts.numeric.intervals import Range


class TestConcepts:
    def test_intervals_come_by_first_and_last_point(self):
        intervals = Intervals(3, name="hour")
        assert [str(intervals.concept(index)) for index in range(intervals.size)] == [
            "Always predict 0.",
            "Predict 1 if hour < 1, else 0.",
            "Predict 1 if hour < 2, else 0.",
            "Always predict 1.",
            "Predict 1 if 1 <= hour < 2, else 0.",
            "Predict 1 if hour >= 1, else 0.",
            "Predict 1 if hour >= 2, else 0.",
        ]

    def test_twenty_points_have_211_intervals(self):
        assert Intervals(20).size == 211

    def test_a_range_without_limits_is_everything(self):
        assert Range(None, None).is_everything
        assert not Range(0, None).is_everything
        assert Range(None, None).contains(np.array([-np.inf, 3.0])).all()


class TestDimensions:
    @pytest.mark.parametrize("points", range(1, 13))
    def test_both_are_those_of_the_table(self, points):
        intervals = Intervals(points, lower=-3.0, step=0.7)
        table = np.array(
            [[a <= x <= b for x in range(points)] for a in range(points) for b in range(a, points)]
            + [[False] * points]
        )
        assert intervals.vc_is_exact
        assert intervals.vc_dimension == vc_dimension(table)
        assert intervals.littlestone_is_exact
        assert intervals.littlestone_dimension == littlestone_dimension(table)

    def test_beyond_the_stated_size_the_bound_says_so(self):
        assert Intervals(64).littlestone_is_exact
        assert Intervals(64).littlestone_dimension == 10
        assert not Intervals(65).littlestone_is_exact
        assert Intervals(65).littlestone_dimension == 11


@pytest.mark.parametrize("wrong", [{"points": 0}, {"points": 2.5}, {"points": 3, "step": -1}])
def test_parameters_outside_are_refused_when_the_class_is_built(wrong):
    with pytest.raises(ParameterError, match="Expected"):
        Intervals(**wrong)
