"""What a table is asked for, and what is refused."""

import pytest

from quorate.exceptions import ParameterError, UnboundedContributionError
from quorate.tabulate.requests import as_request


def test_names_columns_and_statistics():
    request = as_request({"n": "count", "who": "users", "x": "sum", "m": ("x", "mean")})
    assert request.counted
    assert request.people
    assert request.added_up == ("x",)
    assert request.values == ("x",)
    assert not as_request({"x": "sum"}).counted


@pytest.mark.parametrize(
    "asked", [None, {}, {"a": "mode"}, {"a": ("x",)}, {"": "count"}, ["count"]]
)
def test_others_are_refused(asked):
    with pytest.raises(ParameterError):
        as_request(asked)


def test_ranges_must_be_stated_for_what_is_read():
    request = as_request({"x": "sum", "n": "count"})
    assert request.ranges((0, 5)) == {"x": (0.0, 5.0)}
    assert as_request({"n": "count"}).ranges(None) == {}
    with pytest.raises(UnboundedContributionError):
        request.ranges(None)
    with pytest.raises(ParameterError):
        request.ranges({"y": (0, 5)})
