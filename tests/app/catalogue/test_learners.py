"""What the catalogue says about learners is true of them: releases, answers, files, plans."""

from types import SimpleNamespace

import pytest

from catalogue_checks import check_answer, check_file, check_releases, check_sizes
from quorate.app.catalogue import CATALOGUE, learners
from quorate.exceptions import ParameterError

every_estimator = pytest.mark.parametrize(
    "descriptor", learners.DESCRIPTORS, ids=lambda descriptor: descriptor.name
)


@every_estimator
def test_a_fit_sets_what_is_said_and_nothing_else(descriptor):
    check_releases(descriptor)


@every_estimator
def test_what_was_released_can_be_said(descriptor):
    check_answer(descriptor)


@every_estimator
def test_what_was_released_can_be_stored(descriptor):
    check_file(descriptor)


@every_estimator
def test_the_planner_gets_the_numbers_it_needs(descriptor):
    if descriptor.name == "ParityLearner":
        with pytest.raises(ParameterError, match="fair coins"):
            check_sizes(descriptor)
        check_sizes(descriptor, inputs="any")
        return
    check_sizes(descriptor)


def test_labels_that_are_0_and_1_are_not_explained():
    """It said "(0 means 0, 1 means 1.)"."""
    example = CATALOGUE["ThresholdLearner"].example()
    learner = CATALOGUE["ThresholdLearner"].kind(**example.parameters)
    learner.fit(example.X, example.y, users=example.users)
    say = CATALOGUE["StableLearner"].answer
    rule = SimpleNamespace(
        concept_=learner.concept_,
        algorithm_=learner.algorithm_,
        error_=SimpleNamespace(stated=False, covers="", confidence=0.95),
    )
    assert "means" in say(rule, ("age",), ("no", "yes")).sentence
    assert "means" not in say(rule, ("age",), (0, 1)).sentence
