"""Edges of cells on a line: public ones, and a grid for a range that is only loosely known."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from quorate import _validate
from quorate._validate import described
from quorate.exceptions import ParameterError, UnboundedContributionError

__all__ = ["as_edges", "declared_edges", "loose_edges"]

_LARGEST, _NARROWEST = 1e100, 1e-100  # machine: squares and ratios stay floats
_MAX_CELLS = 10**6  # machine: memory
# A loosely known range is resolved down to this many powers of two below its largest number.
_POWERS = 20


def as_edges(edges: Any) -> NDArray[np.float64]:
    """Return public edges as an array; refuse edges that do not increase.

    >>> as_edges([0, 1, 5])
    array([0., 1., 5.])
    """
    try:
        values = np.asarray(edges, dtype=np.float64)
    except (TypeError, ValueError):
        values = np.empty(0)
    fits = values.ndim == 1 and 2 <= values.size <= _MAX_CELLS + 1
    # A density is a share over a width, which must be a float.
    if not (fits and np.all(np.abs(values) <= _LARGEST) and np.all(np.diff(values) >= _NARROWEST)):
        raise ParameterError(
            f"Expected edges to be increasing finite numbers, at least two, each {_NARROWEST:g} or "
            f"more above the last, got {described(edges)}."
        )
    return values


def declared_edges(
    edges: Sequence[float] | None, bounds: tuple[float, float] | None, cells: int
) -> NDArray[np.float64]:
    """Return the edges that parameters describe: stated ones, or equal cells of a range.

    >>> declared_edges(None, (0.0, 1.0), 4)
    array([0.  , 0.25, 0.5 , 0.75, 1.  ])
    """
    if edges is not None:
        if bounds is not None:
            raise ParameterError("Expected either edges or bounds, got both.")
        return as_edges(edges)
    low, high = as_range(bounds)
    _validate.positive_integer(cells=cells)
    if cells > _MAX_CELLS:
        raise ParameterError(f"Expected at most {_MAX_CELLS} cells, got cells={cells!r}.")
    return as_edges(np.linspace(low, high, int(cells) + 1))


def as_range(bounds: Any) -> tuple[float, float]:
    """Return a public range; refuse anything else.

    >>> as_range((0, 9))
    (0.0, 9.0)
    """
    if bounds is None:
        raise UnboundedContributionError(
            "A distribution of numbers needs bounds=(lower, upper), a loose public range, or "
            "edges=; they must not be taken from the data."
        )
    if not (isinstance(bounds, tuple | list) and len(bounds) == 2):
        raise ParameterError(f"Expected bounds to be a pair of numbers, got {described(bounds)}.")
    low, high = bounds
    _validate.ordered(low, high, name="bounds")
    if not (abs(low) <= _LARGEST and abs(high) <= _LARGEST):
        raise ParameterError(f"Expected bounds within {_LARGEST:g}, got bounds={bounds!r}.")
    return float(low), float(high)


def loose_edges(low: float, high: float, cells: int) -> NDArray[np.float64]:
    """Return edges whose distances grow by a constant ratio from 0 outwards.

    So values are resolved well even if the range is a million times too wide.

    >>> loose_edges(0.0, 1024.0, 4).round(3).tolist()
    [0.0, 0.03, 0.999, 31.999, 1024.0]
    >>> loose_edges(-1.0, 1.0, 4).size
    5
    """
    largest = max(abs(low), abs(high))
    smallest = largest * 2.0**-_POWERS

    def place(x: float) -> float:
        return math.copysign(math.log1p(abs(x) / smallest), x)

    places = np.linspace(place(low), place(high), cells + 1)
    edges = np.sign(places) * np.expm1(np.abs(places)) * smallest
    edges[0], edges[-1] = low, high
    return as_edges(np.unique(edges))
