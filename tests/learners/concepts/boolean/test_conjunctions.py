"""Conjunctions and disjunctions: numbering, sentences, dimensions, duality."""

from __future__ import annotations

import numpy as np
import pytest

from quorate.learners.concepts import (
    Conjunctions,
    Disjunctions,
    littlestone_dimension,
    vc_dimension,
)
from quorate.learners.concepts.boolean.booleans import all_patterns


def test_digits_in_base_three_say_which_literals():
    names = ["a", "b"]
    assert [str(Conjunctions(2, names=names).concept(index)) for index in range(9)] == [
        "Always predict 1.",
        "Predict 1 if a, else 0.",
        "Predict 1 if not a, else 0.",
        "Predict 1 if b, else 0.",
        "Predict 1 if a and b, else 0.",
        "Predict 1 if not a and b, else 0.",
        "Predict 1 if not b, else 0.",
        "Predict 1 if a and not b, else 0.",
        "Predict 1 if not a and not b, else 0.",
    ]
    assert str(Disjunctions(2, names=names).concept(7)) == "Predict 1 if a or not b, else 0."
    assert str(Disjunctions(2, names=names).concept(0)) == "Always predict 0."


@pytest.mark.parametrize("kind", [Conjunctions, Disjunctions])
@pytest.mark.parametrize("features", range(1, 7))
def test_the_formulas_are_the_dimensions(kind, features):
    concepts = kind(features)
    table = concepts.predictions(all_patterns(features)).T
    assert len(np.unique(table, axis=0)) == concepts.size == 3**features
    assert concepts.vc_is_exact
    assert concepts.vc_dimension == vc_dimension(table)
    assert concepts.littlestone_is_exact
    assert concepts.littlestone_dimension == littlestone_dimension(table)


def test_a_disjunction_is_the_negation_of_the_conjunction_of_opposites():
    X = all_patterns(4)
    np.testing.assert_array_equal(
        Disjunctions(4).predictions(X), 1 - Conjunctions(4).predictions(1 - X)
    )
