"""From released blocks to a table with a standard error and a bound for every cell."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from quorate.mechanisms.stated_error import StatedError
from quorate.tabulate.blocks import Block, tail_factor

__all__ = ["CONFIDENCE", "Estimates", "TableError", "arrow_table", "means", "plain", "totals"]

Floats = NDArray[np.float64]

CONFIDENCE = 0.95
"""With this probability each cell, by itself, is within its bound."""
_COVERS = (
    "The bounds in the cells cover privacy noise; not what people hold beyond the length that "
    "counts, nor the sampling of the people themselves."
)


@dataclass(frozen=True, kw_only=True)
class Estimates:
    """One column of a table: values, standard errors, and what the noise does not exceed.

    >>> one = Estimates(values=np.array([7.0]), errors=np.array([1.0]), bounds=np.array([2.0]))
    >>> one.values.size
    1
    """

    values: Floats
    errors: Floats
    bounds: Floats


@dataclass(frozen=True, kw_only=True)
class TableError(StatedError):
    """What the errors of a table are about; computed from public and released numbers.

    Attributes
    ----------
    standard_error : dict
        Root mean square over the groups of the standard errors of each statistic.
    confidence : float
        With this probability each cell, by itself, is within its bound of the table of everybody's
        *bounded* contributions.
    length : float or None
        Length that a person's records were bounded to; a record of an average group has length 1.
    people_length : float or None
        The same for the groups that a person counts in.
    people_cut : float
        About how many people had more: they were scaled down as a whole. What they hold beyond the
        length is missing from counts and sums and is not part of the errors; means are weighted
        means in which they count less than their records. 0 if the lengths were stated.

    Examples
    --------
    >>> print(TableError(standard_error={"visits": 12.0}, length=20.0, people_cut=150.0))
    standard errors: visits 12; about 150 people had more than counts
    """

    standard_error: dict[str, float]
    confidence: float = CONFIDENCE
    length: float | None = None
    people_length: float | None = None
    people_cut: float = 0.0
    covers: str = _COVERS

    @property
    def coordinates(self) -> tuple[float, ...]:
        """Empty: the table has a bound in each cell."""
        return ()

    @property
    def bound(self) -> float:
        """Infinite for the table as a whole: each cell has its own."""
        return math.inf

    @property
    def worst(self) -> float:
        """Infinite: nothing that was released says how much more some people hold."""
        return math.inf

    def __str__(self) -> str:
        each = ", ".join(f"{name} {error:.3g}" for name, error in self.standard_error.items())
        cut = (
            f"; about {self.people_cut:.0f} people had more than counts" if self.people_cut else ""
        )
        return f"standard errors: {each}{cut}"


def plain(values: Floats, errors: Floats, *, gaussian: bool) -> Estimates:
    """Return released numbers with the bounds of their noise.

    >>> plain(np.zeros(1), np.ones(1), gaussian=True).bounds.round(2).tolist()
    [1.96]
    """
    factor = tail_factor(gaussian=gaussian, beta=1.0 - CONFIDENCE)
    return Estimates(values=values, errors=errors, bounds=errors * factor)


def totals(block: Block, place: int) -> Estimates:
    """Return the sum of a column in each group: about its centre, plus the centre a record.

    >>> from quorate.tabulate.gathering.cells import ValueColumn
    >>> from quorate.tabulate.looks import Shape
    >>> shape = Shape(
    ...     columns=(ValueColumn(2, 0.0, 9.0),), centres=(4.0,), units=(1.0,), weights=np.ones(1)
    ... )
    >>> block = Block(
    ...     counts=np.array([10.0]),
    ...     sums=np.array([[2.0]]),
    ...     count_errors=np.ones(1),
    ...     sum_errors=np.ones((1, 1)),
    ...     shape=shape,
    ...     length=1.0,
    ...     cut=0.0,
    ...     gaussian=True,
    ... )
    >>> totals(block, 0).values.tolist(), means(block, 0).values.tolist()
    ([42.0], [4.2])
    """
    centre, errors = block.shape.centres[place], block.sum_errors[place]
    if block.counts is None or centre == 0.0:
        return plain(block.sums[place], errors, gaussian=block.gaussian)
    values = block.sums[place] + centre * block.counts
    deviations = np.hypot(errors, centre * block.count_errors)
    if block.gaussian:
        return plain(values, deviations, gaussian=True)
    # Two Laplace variables: each within its bound but for half of the chance.
    factor = tail_factor(gaussian=False, beta=(1.0 - CONFIDENCE) / 2)
    bounds = factor * (errors + abs(centre) * block.count_errors)
    return Estimates(values=values, errors=deviations, bounds=bounds)


def means(block: Block, place: int) -> Estimates:
    r"""Return the mean of a column in each group: a ratio of two released numbers.

    Let s be the sum about the centre c and n the count, and let their noise be within
    :math:`b_s` and :math:`b_n`, each but for half of the chance. If :math:`n > b_n`, the mean
    :math:`m = c + s/n` is off by at most :math:`(b_s + |m - c| b_n)/(n - b_n)`; otherwise all that
    is known is the range. The standard error is that of the first order.
    """
    column, centre = block.shape.columns[place], block.shape.centres[place]
    counts = np.zeros(block.shape.groups) if block.counts is None else block.counts
    width = column.upper - column.lower
    factor = tail_factor(gaussian=block.gaussian, beta=(1.0 - CONFIDENCE) / 2)
    sum_bounds, count_bounds = factor * block.sum_errors[place], factor * block.count_errors
    with np.errstate(all="ignore"):
        offsets = block.sums[place] / counts
        values = np.clip(centre + offsets, column.lower, column.upper)
        away = np.abs(offsets)
        errors = np.hypot(block.sum_errors[place], away * block.count_errors) / counts
        bounds = (sum_bounds + away * count_bounds) / (counts - count_bounds)
    unknown = ~(counts > count_bounds)
    values = np.where(unknown & ~np.isfinite(values), centre, values)
    return Estimates(
        values=values,
        errors=np.where(unknown, width, np.minimum(errors, width)),
        bounds=np.where(unknown, width, np.minimum(bounds, width)),
    )


def arrow_table(
    by: tuple[str, ...], keys: tuple[tuple[Any, ...], ...], columns: dict[str, Estimates]
) -> Any:
    """Return the table: one row a group, three columns a statistic.

    >>> one = Estimates(values=np.array([7.0]), errors=np.array([1.0]), bounds=np.array([2.0]))
    >>> arrow_table(("city",), (("Bonn",),), {"visits": one}).to_pylist()
    [{'city': 'Bonn', 'visits': 7.0, 'visits_error': 1.0, 'visits_bound': 2.0}]
    """
    import pyarrow as pa

    made: dict[str, Any] = {
        name: pa.array([key[place] for key in keys]) for place, name in enumerate(by)
    }
    for name, found in columns.items():
        made[name] = pa.array(found.values)
        made[f"{name}_error"] = pa.array(found.errors)
        made[f"{name}_bound"] = pa.array(found.bounds)
    return pa.table(made)
