"""What a table should contain: names, statistics and the columns they are computed from."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from quorate import _validate
from quorate._validate import described
from quorate.exceptions import ParameterError, UnboundedContributionError
from quorate.ranges import as_bound, as_limits

__all__ = ["STATISTICS", "Request", "TableRequest", "as_request"]

STATISTICS = ("count", "users", "sum", "mean", "median", "quantile")
"""``count`` of records, ``users`` who hold one, and what is known of a column of numbers."""

_WITHOUT_COLUMN = ("count", "users")


@dataclass(frozen=True)
class Request:
    """One column of a table: its name, the statistic, and the column of the data.

    ``fraction`` says which quantile; 0.5 is the median.

    >>> Request("visits", "count").column is None
    True
    """

    name: str
    statistic: str
    column: str | None = None
    fraction: float = 0.5


@dataclass(frozen=True)
class TableRequest:
    """All requested columns of a table.

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
        """Columns whose values are summed."""
        return self._columns("sum", "mean")

    @property
    def medians(self) -> tuple[str, ...]:
        """Columns for which each person's own median is computed: for medians and quantiles."""
        return self._columns("median", "quantile")

    @property
    def quantiles(self) -> tuple[tuple[str, float], ...]:
        """Columns and fractions of the requested quantiles, each once.

        >>> as_request({"wait": "median", "late": ("wait", "quantile", 0.9)}).quantiles
        (('wait', 0.5), ('wait', 0.9))
        """
        searched = (r for r in self.requests if r.statistic in ("median", "quantile"))
        return tuple(dict.fromkeys((str(r.column), r.fraction) for r in searched))

    @property
    def values(self) -> tuple[str, ...]:
        """The numeric columns that are read."""
        return tuple(dict.fromkeys([*self.added_up, *self.medians]))

    @property
    def counted(self) -> bool:
        """Whether records are counted: as a statistic, or as a divisor."""
        return any(request.statistic in ("count", "mean") for request in self.requests)

    @property
    def people(self) -> bool:
        """Whether users are counted."""
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
    """Return the request that ``statistics=`` describes.

    >>> as_request({"people": "users"}).people
    True
    """
    if not (isinstance(statistics, Mapping) and statistics):
        raise ParameterError(
            "Expected statistics as a dictionary, such as {'visits': 'count', 'spend': 'sum'}, got "
            f"{described(statistics)}."
        )
    return TableRequest(tuple(_one(name, asked) for name, asked in statistics.items()))


def _one(name: Any, asked: Any) -> Request:
    """Return one column: ``"sum"``, ``("price", "mean")`` or ``("price", "quantile", 0.9)``."""
    words = list(asked) if isinstance(asked, tuple | list) else [asked]
    fraction = words.pop() if words[1:] and words[-2] == "quantile" else None
    texts = [name, *words]
    column, word = texts[-2:] if len(texts) in (2, 3) else ("", "")
    fits = word in STATISTICS and (fraction is None) == (word != "quantile")
    if not (all(isinstance(t, str) and t.strip() for t in texts) and fits):
        raise ParameterError(
            f"Expected names of columns with one of {', '.join(STATISTICS)}, a pair (column, "
            "statistic), or a triple such as ('price', 'quantile', 0.9), got "
            f"{described(asked)} for {name!r}."
        )
    if fraction is not None:
        _validate.probability(quantile=fraction)
    return Request(
        name,
        word,
        None if word in _WITHOUT_COLUMN else column,
        0.5 if fraction is None else float(fraction),
    )
