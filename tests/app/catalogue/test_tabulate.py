"""What the catalogue says about counts, sums and tables is true of them."""

import pytest

from catalogue_checks import check_answer, check_file, check_releases, check_sizes
from quorate.app.catalogue import tabulate
from quorate.exceptions import ParameterError

every_estimator = pytest.mark.parametrize(
    "descriptor", tabulate.DESCRIPTORS, ids=lambda descriptor: descriptor.name
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
    if descriptor.name != "UserTable":
        check_sizes(descriptor)
        return
    # A plan is about counts, sums and means; that of another table is left out, and says so.
    check_sizes(descriptor, statistics={"visits": "count"})
    with pytest.raises(ParameterError, match="counts, sums and means"):
        check_sizes(descriptor)
