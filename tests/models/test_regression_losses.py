"""Losses of numbers; that their gradients are right is tested for all losses together."""

import numpy as np
import pytest

from quorate.exceptions import ParameterError
from quorate.models.regression_losses import HuberLoss, SquaredLoss


def test_errors_beyond_the_width_count_linearly():
    predictions, targets = np.array([[0.3], [5.0], [-5.0]]), np.zeros(3)
    assert HuberLoss(width=2.0).slopes(predictions, targets).ravel().tolist() == [0.3, 2.0, -2.0]
    assert SquaredLoss().slopes(predictions, targets).ravel().tolist() == [0.3, 5.0, -5.0]


def test_a_width_must_be_positive():
    with pytest.raises(ParameterError, match="width"):
        HuberLoss(width=0.0)
