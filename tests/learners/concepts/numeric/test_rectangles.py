"""Rectangles: order, sentences, and dimensions on narrow and wide grids."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from quorate.exceptions import ParameterError
from quorate.learners.concepts import Rectangles, littlestone_dimension, vc_dimension


class TestConcepts:
    def test_a_side_without_limits_is_not_mentioned(self):
        boxes = Rectangles((2, 2), names=("age", "dose"))
        assert [str(boxes.concept(index)) for index in range(boxes.size)] == [
            "Always predict 0.",
            "Predict 1 if age < 1 and dose < 1, else 0.",
            "Predict 1 if age < 1, else 0.",
            "Predict 1 if age < 1 and dose >= 1, else 0.",
            "Predict 1 if dose < 1, else 0.",
            "Always predict 1.",
            "Predict 1 if dose >= 1, else 0.",
            "Predict 1 if age >= 1 and dose < 1, else 0.",
            "Predict 1 if age >= 1, else 0.",
            "Predict 1 if age >= 1 and dose >= 1, else 0.",
        ]


class TestDimensions:
    @pytest.mark.parametrize("points", list(itertools.product(range(1, 6), range(1, 6))))
    def test_both_are_those_of_the_table(self, points):
        boxes = Rectangles(points)
        grid = np.array(list(itertools.product(*map(range, points))))
        table = boxes.predictions(grid).T
        assert boxes.vc_is_exact
        assert boxes.vc_dimension == vc_dimension(table)
        assert boxes.littlestone_is_exact
        assert boxes.littlestone_dimension == littlestone_dimension(table)

    def test_beyond_the_stated_size_the_bound_says_so(self):
        assert not Rectangles((6, 7)).littlestone_is_exact
        assert Rectangles((6, 7)).littlestone_dimension == 9


@pytest.mark.parametrize(
    "wrong",
    [
        {"points": (3,)},
        {"points": (3, 3, 3)},
        {"points": (3, 0)},
        {"points": (3, 3), "step": (1, 0)},
        {"points": (3, 3), "lower": (0,)},
        {"points": (3, 3), "names": ["only"]},
    ],
)
def test_parameters_outside_are_refused_when_the_class_is_built(wrong):
    with pytest.raises(ParameterError, match="Expected"):
        Rectangles(**wrong)
