"""Parities: numbering, sentences, dimensions."""

from __future__ import annotations

import pytest

from quorate.learners.concepts import (
    Constant,
    Parities,
    Parity,
    littlestone_dimension,
    vc_dimension,
)
from quorate.learners.concepts.boolean.booleans import all_patterns


def test_bits_say_which_features():
    parities = Parities(3, names=["a", "b", "c"])
    assert parities.concept(0) == Constant(0)
    assert str(parities.concept(2)) == "Predict 1 if b, else 0."
    assert parities.concept(5) == Parity(chosen=(0, 2), names=("a", "b", "c"))
    assert parities.predict(5, [[1, 1, 1], [1, 0, 0]]).tolist() == [0, 1]


@pytest.mark.parametrize("features", range(1, 7))
def test_both_dimensions_are_the_number_of_features(features):
    parities = Parities(features)
    table = parities.predictions(all_patterns(features)).T
    assert vc_dimension(table) == parities.vc_dimension == features
    assert littlestone_dimension(table) == parities.littlestone_dimension == features
    assert parities.vc_is_exact
    assert parities.littlestone_is_exact
