"""Clipped differences to a reference: small radius, small noise, wide values survive."""

import numpy as np
import pytest

from quorate.core.guarantees import Relation
from quorate.exceptions import ParameterError
from quorate.learners.scores import ClippedDifference
from rule_worlds import losses_of


def test_a_user_adds_at_most_the_radius_however_wide_the_values():
    table = np.array([[0, 2**40, -(2**40)]])
    score = ClippedDifference(reference=0, radius=3)
    assert losses_of(score, table, np.zeros(1)).tolist() == [0, 3, -3]


def test_the_reference_itself_has_loss_zero():
    table = np.random.default_rng(0).integers(0, 100, (20, 6))
    assert losses_of(ClippedDifference(reference=4, radius=5), table, np.zeros(20))[4] == 0


def test_narrow_integers_do_not_overflow():
    table = np.array([[0, 255]], dtype=np.uint8)
    assert losses_of(ClippedDifference(reference=1, radius=300), table, np.zeros(1)).tolist() == [
        -255,
        0,
    ]


def test_sensitivities_are_the_proved_ones():
    score = ClippedDifference(reference=0, radius=5)
    assert score.sensitivity(Relation.REPLACE) == 10
    assert score.sensitivity(Relation.ADD_REMOVE) == 5


@pytest.mark.parametrize("bad", [{"reference": -1, "radius": 1}, {"reference": 0, "radius": 0}])
def test_bad_parameters_are_refused(bad):
    with pytest.raises(ParameterError):
        ClippedDifference(**bad)
