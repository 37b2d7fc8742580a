"""Votes are counted the same in every order, and no key of a user can raise."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from quorate.core.questions.votes import count_votes, sorted_votes
from quorate.exceptions import SchemaError

ODD = [None, 2.5, float("nan"), (1, 2), [1], {"a": 1}, {1}, object(), -1, 2**300, True, b"x", "x"]


def test_order_of_users_never_reaches_the_result():
    keys = ["b", "a", 3, b"q", "b", 3, 1]
    assert list(count_votes(keys).items()) == list(count_votes(keys[::-1]).items())
    assert list(count_votes(keys)) == [1, 3, "a", "b", b"q"]


@given(st.lists(st.sampled_from(range(len(ODD)))))
def test_nothing_that_a_user_holds_raises(places):
    votes = count_votes([ODD[place] for place in places])
    assert all(type(key) in (int, str, bytes) and count > 0 for key, count in votes.items())
    assert sum(votes.values()) == sum(isinstance(ODD[p], int | str | bytes) for p in places)


def test_keys_outside_the_universe_are_no_votes():
    assert count_votes(np.array([-1, 0, 7, 8, 2**62]), size=8) == {0: 1, 7: 1}
    assert count_votes([2**256 - 1, 2**256, "0"], size=2**256) == {2**256 - 1: 1}


def test_arrays_and_lists_count_alike():
    keys = np.array([5, 3, 5, 3, 3], dtype=np.uint64)
    assert count_votes(keys) == count_votes(keys.tolist()) == count_votes(keys.astype(object))
    assert count_votes(np.array(["b", "a"])) == {"a": 1, "b": 1}


def test_a_wrong_dtype_is_refused_by_dtype_alone():
    with pytest.raises(SchemaError, match="dtype=float64"):
        count_votes(np.array([0.5]))
    with pytest.raises(SchemaError, match="2 axes"):
        count_votes(np.zeros((2, 2), dtype=int))


def test_counts_of_nobody_are_left_out():
    assert sorted_votes({"a": 0, "b": -3, "c": 1}) == {"c": 1}
