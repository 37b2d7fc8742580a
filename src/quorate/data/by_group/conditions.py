"""Public conditions on records, which select the records of a statistic.

A condition is data, not code. For each column that it names it gives a range, a value or a list of
values, and all of these must be satisfied. So it can be checked before anything is charged, sent to
workers and written into a request, and it depends on the record alone. A missing value satisfies no
condition.
"""

from __future__ import annotations

import numbers
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from quorate._validate import described
from quorate.exceptions import ParameterError

__all__ = ["Condition", "as_conditions"]

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Condition:
    """The condition on one column: a number in a range, or one of several labels.

    >>> Condition("age", lower=18.0, upper=30.0).holds(np.array([18.0, 31.0, np.nan])).tolist()
    [True, False, False]
    >>> Condition("kind", labels=(1, 3)).holds(np.array([1.0, 2.0, 3.0])).tolist()
    [True, False, True]
    """

    column: str
    lower: float = -np.inf
    upper: float = np.inf
    labels: tuple[Any, ...] | None = None

    @property
    def is_range(self) -> bool:
        """Whether the condition is about the size of numbers."""
        return self.labels is None

    def holds(self, values: Floats) -> NDArray[np.bool_]:
        """Return for each number whether it satisfies the condition."""
        if self.labels is None:
            return (values >= self.lower) & (values <= self.upper)
        wanted = [float(x) for x in self.labels if isinstance(x, numbers.Real)]
        return np.isin(values, np.array(wanted, dtype=np.float64))


def as_conditions(where: Any) -> tuple[Condition, ...]:
    """Parse ``where=``: ``{"age": (18, 30), "city": ["Bonn", "Ulm"], "new": True}``.

    A pair is a range including its ends, with None for an open end; a list contains the allowed
    values; anything else is the only allowed value.

    >>> as_conditions({"age": (18, None)})[0].upper
    inf
    """
    if where is None:
        return ()
    if not isinstance(where, Mapping):
        raise ParameterError(
            "Expected where as a dictionary from columns to ranges or values, such as "
            f"{{'age': (18, 30)}}, got {described(where)}."
        )
    return tuple(_condition(name, wanted) for name, wanted in where.items())


def _condition(name: Any, wanted: Any) -> Condition:
    if not isinstance(name, str):
        raise ParameterError(f"Expected where to name columns, got {described(name)}.")
    if isinstance(wanted, tuple):
        ends = [x for x in wanted if x is not None]
        real = all(isinstance(x, numbers.Real) and not isinstance(x, bool) for x in ends)
        if len(wanted) != 2 or not real or not all(x == x for x in ends):
            raise ParameterError(
                f"Expected a range (lower, upper) of numbers or None for {name!r}; pass a list for "
                "several values."
            )
        lower, upper = wanted
        return Condition(
            name,
            -np.inf if lower is None else float(lower),
            np.inf if upper is None else float(upper),
        )
    labels = tuple(wanted) if isinstance(wanted, list | set | frozenset | range) else (wanted,)
    plain = tuple(x.item() if isinstance(x, np.generic) else x for x in labels)
    if not plain or not all(isinstance(x, str | numbers.Real) or hasattr(x, "year") for x in plain):
        raise ParameterError(f"Expected values for {name!r}: texts, numbers or dates.")
    return Condition(name, labels=plain)
