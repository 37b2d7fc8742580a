"""How people enter the plans of rules and of cut-offs: once, and alike."""

import pytest

from quorate.exceptions import ParameterError
from quorate.planning.tasks.concept import ConceptTask
from quorate.planning.tasks.rules import RuleTask, check_error_level
from quorate.planning.tasks.threshold import ThresholdTask

TASKS = [ConceptTask, ThresholdTask]


@pytest.mark.parametrize("kind", TASKS)
def test_users_who_are_alike_have_nothing_between_them(kind):
    assert issubclass(kind, RuleTask)
    assert kind(records=16, alike=True).share_between == 0.0
    assert kind(records=16, alike=True).assumptions == ()
    assert kind(records=16).share_between > 0.0
    assert kind(records=16).assumptions


@pytest.mark.parametrize("kind", TASKS)
def test_group_privacy_meets_the_same_people_and_no_coin_errs_more(kind):
    alike, differ = kind(records=16, alike=True), kind(records=16)
    assert differ.group_error(4000, 1.0) > alike.group_error(4000, 1.0)
    assert differ.group_error(2, 0.01) == differ.largest_error == 0.4


@pytest.mark.parametrize("kind", TASKS)
def test_what_is_no_error_of_a_rule_is_refused(kind):
    for wrong in (-0.1, 0.5, float("nan")):
        with pytest.raises(ParameterError, match="error_level"):
            kind(error_level=wrong)
    with pytest.raises(ParameterError, match="alike"):
        kind(alike="yes")
    check_error_level(0.0)
