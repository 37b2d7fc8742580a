"""Budgets per period of a public calendar.

A budget for each ``person x month`` protects what one person did in one month. Which month a record
belongs to is a public rule (its date), so every month is a data set of its own, with the same
budget. A charge names the month as ``"visits@2026-11"``.
"""

from __future__ import annotations

import re
from datetime import date

from quorate.exceptions import ParameterError

__all__ = ["PERIODS", "check_period", "divide_name"]

PERIODS: dict[str, tuple[str, str]] = {
    "day": (r"\d{4}-\d{2}-\d{2}", "2026-11-16"),
    "week": (r"\d{4}-W\d{2}", "2026-W47"),
    "month": (r"\d{4}-\d{2}", "2026-11"),
    "quarter": (r"\d{4}-Q[1-4]", "2026-Q4"),
    "year": (r"\d{4}", "2026"),
}
"""Each period with the form of its labels and an example."""


def divide_name(name: str) -> tuple[str, str]:
    """Return the name of the data set and the label of the period in ``name``, empty if none.

    >>> divide_name("visits@2026-11"), divide_name("visits")
    (('visits', '2026-11'), ('visits', ''))
    """
    base, mark, label = name.rpartition("@")
    return (base, label) if mark else (name, "")


def check_period(period: str, label: str) -> None:
    """Refuse a label that is not a period of the calendar.

    >>> check_period("month", "2026-13")
    Traceback (most recent call last):
    quorate.exceptions.ParameterError: Expected the label of a month such as '2026-11', got
    '2026-13'. Write the name of the data set as 'name@2026-11'.
    """
    form, example = PERIODS[period]
    if not (re.fullmatch(form, label, re.ASCII) and _is_on_calendar(period, label)):
        raise ParameterError(
            f"Expected the label of a {period} such as {example!r}, got {label!r}. Write the name "
            f"of the data set as 'name@{example}'."
        )


def _is_on_calendar(period: str, label: str) -> bool:
    try:
        match period:
            case "day":
                date.fromisoformat(label)
            case "week":
                date.fromisoformat(f"{label}-1")
            case "month":
                date.fromisoformat(f"{label}-01")
            case _:
                date(int(label[:4]), 1, 1)
    except ValueError:
        return False
    return True
