"""VC and Littlestone dimension against their definitions, and known classes."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from quorate.exceptions import ParameterError, SchemaError
from quorate.learners.concepts.dimensions import (
    TooMuchWork,
    littlestone_dimension,
    littlestone_or_bound,
    vc_dimension,
    vc_or_bound,
)


def vc_by_definition(table):
    points = range(table.shape[1])
    return max(
        size
        for size in range(table.shape[1] + 1)
        for chosen in itertools.combinations(points, size)
        if len({tuple(row) for row in table[:, chosen].tolist()}) == 2**size
    )


def littlestone_by_definition(rows):
    if len(rows) == 0:
        return -1
    deepest = 0
    for point in range(rows.shape[1]):
        ones = rows[:, point] == 1
        if 0 < ones.sum() < len(rows):
            sides = littlestone_by_definition(rows[ones]), littlestone_by_definition(rows[~ones])
            deepest = max(deepest, 1 + min(sides))
    return deepest


TABLES = st.tuples(st.integers(1, 12), st.integers(1, 5)).flatmap(
    lambda shape: st.lists(
        st.lists(st.integers(0, 1), min_size=shape[1], max_size=shape[1]),
        min_size=shape[0],
        max_size=shape[0],
    )
)


@given(table=TABLES)
def test_vc_equals_its_definition(table):
    assert vc_dimension(table) == vc_by_definition(np.array(table))


@given(table=TABLES)
def test_littlestone_equals_its_definition(table):
    assert littlestone_dimension(table) == littlestone_by_definition(np.unique(table, axis=0))


@given(table=TABLES, data=st.data())
def test_repeating_exchanging_and_flipping_change_nothing(table, data):
    table = np.array(table)
    points = data.draw(st.lists(st.sampled_from(range(table.shape[1])), max_size=3))
    flips = np.array(data.draw(st.lists(st.integers(0, 1), min_size=5, max_size=5)))
    other = (table ^ flips[: table.shape[1]])[::-1]
    other = np.hstack([other, other[:, points]])[:, ::-1]
    assert vc_dimension(other) == vc_dimension(table)
    assert littlestone_dimension(other) == littlestone_dimension(table)


def test_256_thresholds_take_eight_mistakes():
    assert littlestone_dimension(np.tri(256, 255, -1)) == 8


def test_one_hypothesis_or_no_point_has_dimension_zero():
    assert vc_dimension([[0, 1, 0]]) == littlestone_dimension([[0, 1, 0]]) == 0
    empty = np.zeros((3, 0))
    assert vc_dimension(empty) == littlestone_dimension(empty) == 0


def test_a_dimension_that_takes_too_long_is_refused_or_bounded():
    table = np.random.default_rng(0).integers(0, 2, (64, 40))
    with pytest.raises(TooMuchWork, match="max_steps=50"):
        vc_dimension(table, max_steps=50)
    with pytest.raises(TooMuchWork, match="max_steps=50"):
        littlestone_dimension(table, max_steps=50)
    hard = np.random.default_rng(0).integers(0, 2, (512, 64))
    assert vc_or_bound(hard, size=512) == (9, False)
    assert littlestone_or_bound(hard, size=512) == (9, True)


@pytest.mark.parametrize("dimension", [vc_dimension, littlestone_dimension])
def test_tables_of_another_shape_are_refused(dimension):
    with pytest.raises(SchemaError, match="hypotheses in rows"):
        dimension([0, 1])
    with pytest.raises(SchemaError, match="hypotheses in rows"):
        dimension(np.zeros((0, 3)))
    with pytest.raises(ParameterError, match="max_steps"):
        dimension([[0, 1]], max_steps=0)
