"""Rules and their numbers: there and back, and nothing outside."""

from __future__ import annotations

import numpy as np
import pytest

from quorate.learners.concepts import Constant
from quorate.learners.concepts.boolean.booleans import all_patterns
from quorate.papers.stability.codes import (
    DecisionListCode,
    HalfspaceCode,
    LiteralsCode,
    conjunctions_up_to,
)

CODES = {
    "decision lists": DecisionListCode(2, length=2),
    "conjunctions": LiteralsCode(3),
    "disjunctions": LiteralsCode(3, any_of=True),
    "halfspaces": HalfspaceCode(2, resolution=0.5),
}
every_code = pytest.mark.parametrize("code", CODES.values(), ids=CODES)


@every_code
def test_every_number_is_a_rule(code):
    points = all_patterns(code.features)
    for key in range(code.size):
        assert set(code.decode(key).predict(points)) <= {0, 1}


@every_code
def test_rules_come_back(code):
    for key in range(code.size):
        rule = code.decode(key)
        again = code.encode(rule)
        assert 0 <= again < code.size
        assert code.decode(again) == rule


@every_code
def test_equal_rules_have_one_number(code):
    rules = {}
    for key in range(code.size):
        rule = code.decode(key)
        rules.setdefault(rule, set()).add(code.encode(rule))
    assert all(len(numbers) == 1 for numbers in rules.values())


@every_code
def test_a_rule_of_another_kind_is_a_number_too(code):
    class Other:
        pass

    assert 0 <= code.encode(Other()) < code.size
    assert code.encode(Constant(1)) < code.size


def test_terms_are_conjunctions_of_different_features():
    terms = conjunctions_up_to(4, 2)
    assert len(set(terms)) == len(terms) == 8 + 6 * 4
    assert all(len({feature for feature, _ in term}) == len(term) for term in terms)


def test_both_literals_of_a_feature_are_a_constant():
    from quorate.learners.concepts.boolean.conjunctions import Literals

    never = Literals(literals=((0, True), (0, False)), any_of=False, names=("a", "b", "c"))
    found = LiteralsCode(3).decode(LiteralsCode(3).encode(never))
    assert np.array_equal(found.predict(all_patterns(3)), never.predict(all_patterns(3)))
