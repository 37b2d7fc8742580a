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
    "asked",
    [
        None,
        {},
        {"a": "mode"},
        {"a": ("x",)},
        {"": "count"},
        ["count"],
        {"a": "quantile"},
        {"a": ("x", "quantile")},
        {"a": ("x", "quantile", 1.0)},
        {"a": ("x", "quantile", "most")},
        {"a": ("x", "mean", 0.5)},
        {"a": ("x", "y", "quantile", 0.5)},
    ],
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


def test_quantiles_of_a_column_need_one_own_median_and_each_its_search():
    request = as_request(
        {"x": "median", "p90": ("x", "quantile", 0.9), "again": ["x", "quantile", 0.9]}
    )
    assert request.medians == ("x",)
    assert request.quantiles == (("x", 0.5), ("x", 0.9))
    assert as_request({"x": ("quantile", 0.25)}).quantiles == (("x", 0.25),)
