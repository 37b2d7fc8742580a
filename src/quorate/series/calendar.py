"""Periods of a public calendar, by number and by label."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date, timedelta
from typing import Any

from quorate import _validate
from quorate.exceptions import ParameterError
from quorate.ledger.calendars import PERIODS, check_period

__all__ = ["Calendar"]


@dataclass(frozen=True)
class Calendar:
    """``horizon`` periods beginning with ``start``; without a start they are numbered from 1.

    >>> weeks = Calendar("week", 60, "2026-W01")
    >>> weeks.label(53), weeks.number("2027-W01"), weeks.number(2)
    ('2026-W53', 54, 2)
    >>> Calendar("month", 12).label(3)
    '3'
    """

    every: str
    horizon: int
    start: str | None = None

    def __post_init__(self) -> None:
        _validate.one_of(tuple(PERIODS), every=self.every)
        _validate.positive_integer(horizon=self.horizon)
        if self.start is not None:
            _check_label(self.every, self.start)

    def label(self, number: int) -> str:
        """Return the label of a period, given its number (from 1)."""
        if self.start is None:
            return str(number)
        return _label(self.every, _place(self.every, self.start) + number - 1)

    def number(self, period: Any) -> int:
        """Return the number of a period, given as number or label.

        A period outside the horizon is refused.
        """
        found = period
        if isinstance(period, str) and self.start is not None:
            _check_label(self.every, period)
            found = _place(self.every, period) - _place(self.every, self.start) + 1
        elif isinstance(period, str) and period.isascii() and period.isdigit():
            found = int(period)
        if isinstance(found, bool) or not isinstance(found, int) or not 1 <= found <= self.horizon:
            raise ParameterError(
                f"Expected a period from {self.label(1)!r} to {self.label(self.horizon)!r}, got "
                f"period={period!r}."
            )
        return found


def _check_label(every: str, label: Any) -> None:
    if not isinstance(label, str):
        raise ParameterError(f"Expected the label of a {every}, such as {PERIODS[every][1]!r}.")
    try:
        check_period(every, label)
    except ParameterError:
        raise ParameterError(
            f"Expected the label of a {every} such as {PERIODS[every][1]!r}, got {label!r}."
        ) from None


def _place(every: str, label: str) -> int:
    """Return the number of periods between the beginning of the calendar and this one.

    >>> _place("week", "2026-W02") - _place("week", "2025-W52"), _place("quarter", "2026-Q3") % 4
    (2, 2)
    """
    if every in ("day", "week"):
        days = date.fromisoformat(label if every == "day" else f"{label}-1").toordinal()
        return days if every == "day" else days // 7  # both ends are Mondays, the day 1 is one
    year = int(label[:4])
    if every == "month":
        return 12 * year + int(label[5:]) - 1
    return year if every == "year" else 4 * year + int(label[6:]) - 1


def _label(every: str, place: int) -> str:
    match every:
        case "day":
            return date.fromordinal(place).isoformat()
        case "week":
            day = date.fromordinal(1) + timedelta(days=7 * place)
            year, week, _ = day.isocalendar()
            return f"{year:04d}-W{week:02d}"
        case "month":
            return f"{place // 12:04d}-{place % 12 + 1:02d}"
        case "quarter":
            return f"{place // 4:04d}-Q{place % 4 + 1}"
    return f"{place:04d}"
