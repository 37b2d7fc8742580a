"""Conditions are data: refused before anything is paid, and true of a record by itself."""

import numpy as np
import pytest

from quorate.data.by_group.conditions import as_conditions
from quorate.exceptions import ParameterError


def test_ranges_hold_with_both_ends_and_missing_values_never():
    (condition,) = as_conditions({"age": (18, 30)})
    values = np.array([17.9, 18.0, 30.0, 30.1, np.nan, np.inf])
    assert condition.holds(values).tolist() == [False, True, True, False, False, False]


def test_lists_and_single_values():
    one, several = as_conditions({"a": 3, "b": [1, 2]})
    assert one.labels == (3,)
    assert several.holds(np.array([1.0, 2.5, 2.0, np.nan])).tolist() == [True, False, True, False]


def test_no_condition_is_none():
    assert as_conditions(None) == ()


@pytest.mark.parametrize(
    "where", [7, {"a": (1, 2, 3)}, {"a": ("x", 2)}, {3: 1}, {"a": []}, {"a": (np.nan, 1)}]
)
def test_others_are_refused(where):
    with pytest.raises(ParameterError):
        as_conditions(where)
