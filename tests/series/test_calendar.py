"""Labels of periods, there and back."""

import pytest

from quorate.exceptions import ParameterError
from quorate.series.calendar import Calendar

STARTS = {
    "day": ("2026-02-27", "2026-03-01"),
    "week": ("2026-W52", "2027-W01"),
    "month": ("2026-11", "2027-01"),
    "quarter": ("2026-Q3", "2027-Q1"),
    "year": ("2026", "2028"),
}


@pytest.mark.parametrize("every", STARTS)
def test_labels_are_numbered_one_after_the_other(every):
    start, third = STARTS[every]
    calendar = Calendar(every, 800, start)
    if every != "week":  # 2026 has 53 weeks
        assert calendar.label(3) == third
    assert calendar.label(1) == start
    labels = [calendar.label(number) for number in range(1, 801)]
    assert len(set(labels)) == 800
    assert labels == sorted(labels)
    assert [calendar.number(label) for label in labels] == list(range(1, 801))


def test_a_year_of_53_weeks():
    calendar = Calendar("week", 5, "2026-W52")
    assert [calendar.label(n) for n in (1, 2, 3)] == ["2026-W52", "2026-W53", "2027-W01"]


@pytest.mark.parametrize("period", ["2026-W51", "2027-W40", "2026-11", 0, 6, True, 2.0, None, "x"])
def test_what_is_outside_is_refused(period):
    with pytest.raises(ParameterError, match="Expected"):
        Calendar("week", 5, "2026-W52").number(period)


def test_without_a_start_periods_have_numbers():
    assert Calendar("week", 5).number("3") == Calendar("week", 5).number(3) == 3
    with pytest.raises(ParameterError, match="Expected a period from '1' to '5'"):
        Calendar("week", 5).number("2026-W01")
