"""A choice says how much worse than the best it may be, in people or in shares, or why not."""

import math

import pytest

from quorate.releases.choice_error import ChoiceError


def test_people_and_their_share():
    error = ChoiceError.of_people(30, counts="votes", n_users=120)
    assert (error.bound, error.worst, error.share) == (30.0, 30.0, 0.25)
    assert error.coordinates == (30.0,)
    assert "(votes)" in error.covers
    assert ChoiceError.of_people(300, counts="votes", n_users=120).share == 1.0


def test_without_a_public_number_there_is_no_share():
    error = ChoiceError.of_people(30, counts="votes", n_users=None)
    assert error.share is None
    assert str(error) == "at most 30 people worse than the best, with probability 95%"


def test_a_smaller_bound_names_its_assumption_and_keeps_the_worst():
    proved = ChoiceError.of_people(80, counts="votes", n_users=200)
    usual = proved.assuming(10, "all is as usual", n_users=200)
    assert (usual.bound, usual.worst, usual.share) == (10.0, 80.0, 0.05)
    assert usual.coordinates == (10.0,)
    assert usual.covers.endswith("The bound assumes that all is as usual; worst, nothing.")


def test_one_candidate_cannot_be_worse():
    assert ChoiceError.of_people(0, counts="votes", n_users=9).coordinates == ()


def test_a_share_has_its_unit_and_confidence():
    error = ChoiceError.of_share(0.1, unit="of records", confidence=0.9, covers="All of it.")
    assert str(error) == "at most 0.1 (of records), with probability 90%"


def test_nothing_is_stated_with_a_reason():
    error = ChoiceError.unknown("It was too dark.")
    assert not error.stated
    assert error.bound == error.worst == math.inf
    assert str(error) == "No statement: it was too dark."


def test_it_is_frozen():
    with pytest.raises(AttributeError):
        ChoiceError.unknown("No.").bound = 1.0
