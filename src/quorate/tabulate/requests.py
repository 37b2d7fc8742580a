"""What a table should hold: names, statistics and the columns they are about."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from quorate._validate import described
from quorate.exceptions import ParameterError, UnboundedContributionError
from quorate.ranges import as_bound, as_limits

__all__ = ["STATISTICS", "Request", "TableRequest", "as_request"]

STATISTICS = ("count", "users", "sum", "mean", "median")
"""``count`` of records, ``users`` who hold one, and what is known of a column of numbers."""

_WITHOUT_COLUMN = ("count", "users")


@dataclass(frozen=True)
class Request:
    """One column of a table: its name, the statistic, and the column of records it is about.

    >>> Request("visits", "count").column is None
    True
    """

    name: str
    statistic: str
    column: str | None = None


@dataclass(frozen=True)
class TableRequest:
    """All columns that a table should have.

    >>> table = as_request({"visits": "count", "spent": ("price", "sum"), "price": "mean"})
    >>> table.added_up, table.medians, table.counted
    (('price',), (), True)
    """

    requests: tuple[Request, ...]

    def _columns(self, *statistics: str) -> tuple[str, ...]:
        found = (r.column for r in self.requests if r.statistic in statistics)
        return tuple(dict.fromkeys(column for column in found if column is not None))

    @property
    def added_up(self) -> tuple[str, ...]:
        """Columns whose values are added up."""
        return self._columns("sum", "mean")

    @property
    def medians(self) -> tuple[str, ...]:
        """Columns of which medians are asked for."""
        return self._columns("median")

    @property
    def values(self) -> tuple[str, ...]:
        """Columns of numbers that are read."""
        return tuple(dict.fromkeys([*self.added_up, *self.medians]))

    @property
    def counted(self) -> bool:
        """Whether records are counted: for their number, or as a divisor."""
        return any(request.statistic in ("count", "mean") for request in self.requests)

    @property
    def people(self) -> bool:
        """Whether people are counted."""
        return any(request.statistic == "users" for request in self.requests)

    def ranges(self, bounds: Any) -> dict[str, tuple[float, float]]:
        """Return the public range of each column that is read.

        >>> as_request({"price": "sum"}).ranges({"price": (0, 9)})
        {'price': (0.0, 9.0)}
        """
        if not self.values:
            return {}
        if bounds is None:
            raise UnboundedContributionError(
                f"Expected bounds for {', '.join(self.values)}, the public range of the values; it "
                "must not be taken from the data. Pass bounds={'column': (lower, upper)}."
            )
        as_bound(bounds, len(self.values), self.values)
        lower, upper = as_limits(bounds, len(self.values), self.values)
        pairs = zip(lower.tolist(), upper.tolist(), strict=True)
        return dict(zip(self.values, pairs, strict=True))


def as_request(statistics: Any) -> TableRequest:
    """Return what ``statistics=`` asks for.

    >>> as_request({"people": "users"}).people
    True
    """
    if not (isinstance(statistics, Mapping) and statistics):
        raise ParameterError(
            "Expected statistics as a dictionary, such as {'visits': 'count', 'spend': 'sum'}, got "
            f"{described(statistics)}."
        )
    requests = []
    for name, asked in statistics.items():
        column, word = (name, asked) if isinstance(asked, str) else _pair(asked)
        if not (isinstance(name, str) and name.strip()) or word not in STATISTICS:
            raise ParameterError(
                f"Expected names of columns with one of {', '.join(STATISTICS)}, or a pair "
                f"(column, statistic), got {described(asked)} for {name!r}."
            )
        requests.append(Request(name, word, None if word in _WITHOUT_COLUMN else column))
    return TableRequest(tuple(requests))


def _pair(asked: Any) -> tuple[str, str]:
    if isinstance(asked, tuple | list) and len(asked) == 2 and all(map(_is_text, asked)):
        return str(asked[0]), str(asked[1])
    return "", ""


def _is_text(value: object) -> bool:
    return isinstance(value, str)
