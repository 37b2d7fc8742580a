"""What the catalogue says about networks is true of them: releases, answers, files, plans."""

import pytest

from catalogue_checks import check_answer, check_file, check_releases, check_sizes
from quorate.app.catalogue import nets

every_estimator = pytest.mark.parametrize(
    "descriptor", nets.DESCRIPTORS, ids=lambda descriptor: descriptor.name
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
    check_sizes(descriptor)
