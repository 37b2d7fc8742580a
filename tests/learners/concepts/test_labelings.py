"""Distinct labelings (K2): each once, never more than Sauer's lemma allows."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from quorate.exceptions import ParameterError, SchemaError
from quorate.learners.concepts import (
    Conjunctions,
    Direction,
    Intervals,
    Parities,
    Rectangles,
    Stumps,
    Thresholds,
    distinct_labelings,
)

CLASSES = [
    Thresholds(0, 30),
    Thresholds(0, 30, direction=Direction.BELOW),
    Thresholds(0, 30, direction=Direction.EITHER),
    Intervals(12),
    Rectangles((4, 4)),
    Conjunctions(4),
    Parities(4),
    Stumps([[1, 2, 3], [1, 2, 3]]),
]


@pytest.mark.claim("K2: Corollary 3.6")
@pytest.mark.parametrize("concepts", CLASSES, ids=lambda c: type(c).__name__)
@settings(max_examples=20)
@given(data=st.data())
def test_every_labeling_is_there_once_and_sauer_bounds_them(concepts, data):
    row = st.tuples(*[st.integers(0, 5).map(float)] * concepts.n_features)
    domain = np.array(data.draw(st.lists(row, min_size=1, max_size=6, unique=True)))
    labelings = concepts.distinct_labelings(domain)
    everything = {tuple(concepts.predict(h, domain).tolist()) for h in range(concepts.size)}
    found = list(map(tuple, labelings.table.tolist()))
    assert len(set(found)) == len(found)
    assert set(found) == everything
    v = concepts.vc_dimension
    assert len(found) <= sum(math.comb(len(domain), i) for i in range(v + 1))
    if len(domain) >= v:
        assert len(found) <= (math.e * len(domain) / v) ** v
    for index in range(labelings.size):
        np.testing.assert_array_equal(
            labelings.concept(index).predict(domain), labelings.table[index]
        )


def test_the_first_hypothesis_represents_its_labeling():
    labelings = distinct_labelings(Intervals(10), [2.0, 7.0])
    assert labelings.table.tolist() == [[0, 0], [1, 0], [1, 1], [0, 1]]
    source = Intervals(10).predictions([2.0, 7.0]).T.tolist()
    assert [source.index(row) for row in labelings.table.tolist()] == list(
        labelings.representatives
    )


def test_a_domain_of_two_to_the_63_points_is_no_obstacle():
    domain = [3.0, 1e6, 1e15, 9e18]
    above = Thresholds(0, 2**63 - 1).distinct_labelings(domain)
    assert above.size == 5
    either = Thresholds(0, 2**63 - 2, direction=Direction.EITHER).distinct_labelings(domain)
    assert either.size == 8
    assert either.vc_dimension == 2


def test_mistakes_on_the_domain_are_those_of_the_class(make_users):
    concepts = Conjunctions(3)
    domain = [[0, 0, 1], [1, 0, 1], [1, 1, 1]]
    labelings = concepts.distinct_labelings(domain)
    people = make_users([[(0, 0, 1, 1), (1, 1, 1, 0)], [(1, 0, 1, 1)]], 3)
    np.testing.assert_array_equal(
        labelings.mistakes(people), concepts.mistakes(people)[:, labelings.representatives]
    )


def test_a_domain_must_fit():
    with pytest.raises(ParameterError, match="at least one point"):
        Intervals(3).distinct_labelings(np.zeros((0, 1)))
    with pytest.raises(ParameterError, match="different points"):
        Intervals(3).distinct_labelings([1.0, 1.0])
    with pytest.raises(ParameterError, match="finite"):
        Intervals(3).distinct_labelings([1.0, math.nan])
    with pytest.raises(SchemaError, match="1 columns"):
        Intervals(3).distinct_labelings([[1.0, 2.0]])
