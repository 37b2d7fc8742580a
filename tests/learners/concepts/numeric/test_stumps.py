"""Decision stumps: order, sentences, and the exact VC dimension where cut points suffice."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest

from quorate.exceptions import ParameterError
from quorate.learners.concepts import Stumps, vc_dimension


def all_cells(stumps):
    """List one point for every combination of cells between cut points."""
    axes = [[min(cuts, default=0) - 1, *cuts] for cuts in stumps.cuts]
    return np.array(list(itertools.product(*axes)), dtype=float)


class TestConcepts:
    def test_stumps_come_by_direction_feature_and_cut(self):
        stumps = Stumps([[1, 2], [], [0.25]], names=["age", "unused", "dose"])
        assert [str(stumps.concept(index)) for index in range(stumps.size)] == [
            "Predict 1 if age >= 1, else 0.",
            "Predict 1 if age >= 2, else 0.",
            "Predict 1 if dose >= 0.25, else 0.",
            "Predict 1 if age < 1, else 0.",
            "Predict 1 if age < 2, else 0.",
            "Predict 1 if dose < 0.25, else 0.",
        ]

    def test_a_grid_keeps_its_cut_points_inside(self):
        stumps = Stumps.on_grid(lower=[0, -1], upper=[1, 1], cuts=4)
        assert stumps.size == 16
        assert stumps.cuts[0] == pytest.approx((0.2, 0.4, 0.6, 0.8))
        assert stumps.cuts[1] == pytest.approx((-0.6, -0.2, 0.2, 0.6))


class TestDimensions:
    @pytest.mark.parametrize("cuts", list(itertools.product([0, 1, 2, 3], repeat=3))[1:])
    def test_the_bound_holds_and_is_exact_where_it_says_so(self, cuts):
        stumps = Stumps([range(k) for k in cuts])
        dimension = vc_dimension(stumps.predictions(all_cells(stumps)).T)
        assert dimension <= stumps.vc_dimension
        if stumps.vc_is_exact:
            assert dimension == stumps.vc_dimension

    @pytest.mark.parametrize(("features", "dimension"), [(1, 2), (2, 3), (3, 4), (4, 4), (5, 5)])
    def test_many_cut_points_give_the_published_value(self, features, dimension):
        stumps = Stumps([range(20)] * features)
        assert math.comb(dimension, dimension // 2) <= 2 * features
        assert stumps.vc_is_exact
        assert stumps.vc_dimension == dimension

    def test_four_points_are_shattered_by_three_features(self):
        stumps = Stumps([range(1, 5), range(1, 4), range(1, 4)])
        assert stumps.vc_is_exact
        assert vc_dimension(stumps.predictions(all_cells(stumps)).T) == stumps.vc_dimension == 4


class TestRefusals:
    @pytest.mark.parametrize(
        "cuts", [[], [[]], [[2, 1]], [[1, 1]], [[math.nan]], [[0, math.inf]], [[1], []][1:]]
    )
    def test_cut_points_must_be_finite_increasing_and_there(self, cuts):
        with pytest.raises(ParameterError, match="cut"):
            Stumps(cuts)

    def test_a_grid_needs_bounds_in_order(self):
        with pytest.raises(ParameterError, match="lower < upper"):
            Stumps.on_grid(lower=[1], upper=[0], cuts=2)
        with pytest.raises(ParameterError, match="as many upper as lower"):
            Stumps.on_grid(lower=[0], upper=[1, 2], cuts=2)
        with pytest.raises(ParameterError, match="cuts"):
            Stumps.on_grid(lower=[0], upper=[1], cuts=0)
