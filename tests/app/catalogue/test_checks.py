"""Stored releases have to be numbers of the right shape."""

import numpy as np
import pytest

from quorate.app.catalogue.checks import are_numbers, are_shares


@pytest.mark.parametrize(
    "value", [np.array([1, 2]), np.zeros(3), np.array([0.0, np.nan]), np.array([0.0, np.inf])]
)
def test_integers_other_shapes_and_infinities_are_no_numbers(value):
    assert are_numbers(np.array([0.5, -1.0]), (2,))
    assert not are_numbers(value, (2,))


@pytest.mark.parametrize("value", [[0.5, 0.6], [1.5, -0.5], [0.5]])
def test_shares_are_positive_and_add_up_to_one(value):
    assert are_shares(np.array([0.5, 0.5]), 2)
    assert not are_shares(np.array(value), 2)
