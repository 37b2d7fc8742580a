"""Curves from releases: every statistic of every group, by period and as running totals.

Everything here is computed from released and public numbers.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from quorate.data.by_group.person_cells import ValueColumn
from quorate.mechanisms.stated_error import StatedError
from quorate.series.design import Design, SeriesPart
from quorate.tabulate.released import (
    CONFIDENCE,
    Estimates,
    Released,
    arrow_table,
    means,
    tail_factor,
    totals,
)
from quorate.tabulate.requests import Request

__all__ = ["Asked", "SeriesError", "curves", "people_cut"]

Floats = NDArray[np.float64]

COVERS = (
    "Privacy noise; neither contributions beyond people's length for the horizon nor sampling "
    "error."
)


@dataclass(frozen=True, kw_only=True)
class SeriesError(StatedError):
    """The errors of a series; public before the first period.

    Attributes
    ----------
    standard_error : dict
        For each part of a cell (``records``, ``people``, columns): the standard error in one
        period, and that of a running total at the end of the horizon.
    cut : tuple of float or None
        How many people were clipped so far because they exceeded their total length, and the error
        of that number; None if they were not counted.
    confidence : float
        Probability with which each number, taken separately, is within its bound.

    Examples
    --------
    >>> print(SeriesError(standard_error={"people": (8.4, 61.0)}))
    standard errors: people 8.4 a period, 61 at the end of running totals
    """

    standard_error: dict[str, tuple[float, float]]
    cut: tuple[float, float] | None = None
    confidence: float = CONFIDENCE
    covers: str = COVERS

    @property
    def coordinates(self) -> tuple[float, ...]:
        """Empty, because every number has its own bound."""
        return ()

    @property
    def bound(self) -> float:
        """Infinite for the series as a whole: each number has its own."""
        return math.inf

    @property
    def worst(self) -> float:
        """Infinite, because no released number limits how much more a person may contribute."""
        return math.inf

    def __str__(self) -> str:
        each = ", ".join(
            f"{name} {period:.3g} a period, {end:.3g} at the end of running totals"
            for name, (period, end) in self.standard_error.items()
        )
        if self.cut is None:
            return f"standard errors: {each}"
        people, bound = self.cut
        return (
            f"standard errors: {each}; {max(0.0, people):.0f} people (at most {bound:.0f} off) "
            "were clipped because they exceeded their length"
        )


@dataclass(frozen=True)
class Asked:
    """The requested tables of a series.

    Attributes
    ----------
    by : tuple of str
    keys : tuple
        The groups; the tables have one row for each.
    requests : tuple of Request
        Statistics of numbers.
    labels : dict
        Maps names of statistics to pairs of a label column and its public labels.
    ranges : dict
        Maps numeric columns to their public ranges.
    """

    by: tuple[str, ...]
    keys: tuple[tuple[Any, ...], ...]
    requests: tuple[Request, ...]
    labels: dict[str, tuple[str, tuple[Any, ...]]]
    ranges: dict[str, tuple[float, float]]


def curves(
    released: list[NDArray[np.int64]], labels: list[str], asked: Asked, design: Design, view: str
) -> Any:
    """Return a table with one row for each period and group, and three columns per statistic.

    Parameters
    ----------
    released : list of arrays of integers
        One array per period, starting with the first.
    labels : list of str
        The names of these periods.
    asked : Asked
    design : Design
    view : {"periods", "running"}
    """
    noisy = np.array(released, dtype=np.float64).reshape(len(released), design.dimension)
    seen = design.factor.view(noisy, view)
    found = {
        _name(part): _part(part, seen[:, start : start + part.cells], asked, design, view)
        for start, part in zip(design.starts, design.parts, strict=True)
    }
    columns: dict[str, Estimates] = {}
    for request in asked.requests:
        columns[request.name] = _statistic(request, found)
    for name, (column, each) in asked.labels.items():
        for place, label in enumerate(each):
            columns[f"{name}={label}"] = _share(found[f"labels {column}"], place, len(each))
    rows = tuple((label, *key) for label in labels for key in asked.keys)
    return arrow_table(("period", *asked.by), rows, columns)


def people_cut(released: list[NDArray[np.int64]], labels: list[str], design: Design) -> Any:
    """Return a table by period: how many people were clipped up to then, each counted once."""
    noisy = np.array(released, dtype=np.float64).reshape(len(released), design.dimension)
    errors = design.cut_errors()[: len(released)]
    found = Estimates(
        values=design.factor.view(noisy, "running")[:, -1] / design.flag,
        errors=errors,
        bounds=tail_factor("gaussian", beta=1 - CONFIDENCE) * errors,
    )
    return arrow_table(("period",), tuple((label,) for label in labels), {"people": found})


def _name(part: SeriesPart) -> str:
    return part.kind if part.column is None else f"{part.kind} {part.column}"


def _part(part: SeriesPart, steps: Floats, asked: Asked, design: Design, view: str) -> Released:
    values = steps * design.step(part)
    errors = np.repeat(design.errors(part, view)[: len(steps)], part.cells)
    column = ValueColumn(0, *asked.ranges[str(part.column)]) if part.kind == "sum" else None
    return Released(
        values=values.ravel(),
        errors=errors,
        bounds=tail_factor("gaussian", beta=1 - CONFIDENCE) * errors,
        cap=part.unit,
        centre=part.centre,
        column=column,
    )


def _statistic(request: Request, found: dict[str, Released]) -> Estimates:
    if request.statistic == "users":
        return found["people"]
    if request.statistic == "count":
        return found["records"]
    sums = found[f"sum {request.column}"]
    if request.statistic == "mean":
        return means(sums, found["records"])
    return totals(sums, found.get("records"))


def _share(part: Released, place: int, size: int) -> Estimates:
    r"""Return the share of one label among all labels, in each group: a ratio of noisy counts.

    Given counts k with the sum n, each with noise of deviation s, the error of the share :math:`p =
    k / n` is about :math:`(z_k - p \sum_j z_j) / n`. Its deviation is :math:`s \sqrt{1 - 2p + m
    p^2} / n` for m labels. If the counts are within their noise, the share is only known to lie
    between 0 and 1.
    """
    counts, noise = part.values.reshape(-1, size), part.errors.reshape(-1, size)[:, 0]
    together = counts.sum(axis=1)
    tail = tail_factor("gaussian", beta=1 - CONFIDENCE)
    reach = tail * math.sqrt(size) * noise
    known = together > reach
    divisor = np.where(known, together, 1.0)
    share = np.clip(np.where(known, counts[:, place] / divisor, 1.0 / size), 0.0, 1.0)
    spread = noise * np.sqrt(np.maximum(1 - 2 * share + size * share**2, 0.0)) / divisor
    # The divisor is off as well: it is at least what is left of it below the noise.
    bounds = tail * spread * divisor / np.maximum(divisor - reach, 1e-300)
    return Estimates(
        values=share,
        errors=np.where(known, np.minimum(spread, 1.0), 1.0),
        bounds=np.where(known, np.minimum(bounds, 1.0), 1.0),
    )
