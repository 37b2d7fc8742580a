"""Decision lists: every function once, each written as a list that computes it."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from quorate.learners.concepts import (
    Constant,
    DecisionList,
    DecisionLists,
    littlestone_dimension,
    vc_dimension,
)
from quorate.learners.concepts.boolean.booleans import all_patterns


def functions_of_all_lists(features):
    """Write down all lists that use each feature at most once, and collect what they compute."""
    X, found = all_patterns(features), set()
    names = tuple("abc"[:features])
    for order in itertools.permutations(range(features)):
        for values in itertools.product([True, False], repeat=features):
            for labels in itertools.product([0, 1], repeat=features + 1):
                rules = tuple(zip(order, values, labels, strict=False))
                concept = DecisionList(rules=rules, default=labels[-1], names=names)
                found.add(tuple(concept.predict(X).tolist()))
    return found


@pytest.mark.parametrize("features", [1, 2, 3])
def test_the_class_holds_every_function_of_a_list_once(features):
    table = DecisionLists(features).predictions(all_patterns(features)).T
    assert sorted(map(tuple, table.tolist())) == sorted(functions_of_all_lists(features))


@pytest.mark.parametrize(
    ("features", "size"), list(enumerate([4, 14, 96, 1050, 15036, 260134], start=1))
)
def test_the_number_of_functions_is_known(features, size):
    assert DecisionLists(features).size == size


@pytest.mark.parametrize("features", [1, 2, 3, 4])
def test_the_written_list_computes_its_function(features):
    lists = DecisionLists(features)
    X = all_patterns(features)
    table = lists.predictions(X)
    for index in range(lists.size):
        concept = lists.concept(index)
        np.testing.assert_array_equal(concept.predict(X), table[:, index])
        if isinstance(concept, DecisionList):
            used = [feature for feature, _, _ in concept.rules]
            assert len(set(used)) == len(used)


def test_the_largest_class_is_right_where_it_is_looked_at():
    lists = DecisionLists(6)
    X = all_patterns(6)
    for index in range(0, lists.size, 26_013):
        np.testing.assert_array_equal(lists.concept(index).predict(X), lists._table[index])


def test_a_list_reads_from_left_to_right():
    lists = DecisionLists(2, names=["smoker", "old"])
    sentences = {str(lists.concept(index)) for index in range(lists.size)}
    assert "If smoker then predict 1, else if old then predict 1, else predict 0." in sentences
    assert lists.concept(0) == Constant(0)


@pytest.mark.parametrize("features", [1, 2, 3])
def test_the_dimensions_are_those_of_the_table(features):
    lists = DecisionLists(features)
    table = lists.predictions(all_patterns(features)).T
    assert lists.vc_is_exact
    assert lists.vc_dimension == vc_dimension(table) == features + 1
    assert lists.littlestone_is_exact
    assert lists.littlestone_dimension == littlestone_dimension(table)


def test_beyond_the_stated_size_the_bound_says_so():
    assert DecisionLists(4).littlestone_is_exact
    assert not DecisionLists(5).littlestone_is_exact
    assert DecisionLists(5).littlestone_dimension == 13
