"""Pictures of rules show what the released rule predicts, point by point."""

from types import SimpleNamespace

import numpy as np
import pytest

from quorate.app.reports.rule_pictures import influences, rule_drawing, segments
from quorate.learners.concepts import (
    Conjunctions,
    DecisionLists,
    Intervals,
    Parities,
    PointFunctions,
)
from quorate.learners.concepts.numeric.thresholds import CutOff, OrderedDomain


def rules_on_a_line():
    yield CutOff(cut=7, above=True), 20
    yield CutOff(cut=7, above=False), 20
    yield CutOff(cut=0, above=True), 20
    for kind in (Intervals(20), PointFunctions(20)):
        for index in range(0, kind.size, 7):
            yield kind.concept(index), 20


@pytest.mark.parametrize(("rule", "points"), list(rules_on_a_line()), ids=str)
def test_every_point_lies_in_a_segment_with_its_prediction(rule, points):
    parts = segments(rule, 0, points - 1)
    assert (parts[0][0], parts[-1][1]) == (0, points - 1)
    assert [part[1] for part in parts[:-1]] == [part[0] for part in parts[1:]]
    for x in range(points - 1):
        (label,) = {label for start, end, label in parts if start <= x < end}
        assert label == rule.predict([[float(x)]])[0]


@pytest.mark.parametrize("kind", [Conjunctions, DecisionLists, Parities])
def test_an_influence_is_counted_over_all_inputs(kind):
    rule = kind(3).concept(5)
    inputs = [[(k >> j) & 1 for j in range(3)] for k in range(8)]
    for place in range(3):
        changed = 0
        for row in inputs:
            other = list(row)
            other[place] = 1 - other[place]
            changed += int(rule.predict([row])[0] != rule.predict([other])[0])
        assert influences(rule, 3)[place] == changed / 8


def test_of_many_features_the_same_inputs_are_drawn_in_every_run():
    rule = Parities(20).concept(0b11)
    assert influences(rule, 20) == (1.0, 1.0, *[0.0] * 18)


def test_a_rule_is_drawn_over_the_public_range():
    domain = OrderedDomain(lower=10, points=41)
    learner = SimpleNamespace(
        concept_=CutOff(cut=30, above=True), concepts=SimpleNamespace(domain=domain)
    )
    text = rule_drawing(learner, ["age"]).description
    assert text == "age 10 to 30: predict 0, 30 to 50: predict 1."


def test_a_rule_on_several_booleans_is_drawn_by_influence():
    learner = SimpleNamespace(concept_=Parities(2).concept(0b10))
    text = rule_drawing(learner, ["old", "ill"]).description
    assert text == "share of inputs that it decides: old 0, ill 1."


def test_what_has_neither_form_is_not_drawn():
    learner = SimpleNamespace(concept_=SimpleNamespace(predict=np.zeros), concepts=None)
    assert rule_drawing(learner, ["a", "b"]) is None
