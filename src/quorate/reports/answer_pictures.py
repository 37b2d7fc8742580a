"""The answer of a fit as a picture with its errors, from released numbers only."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from quorate.catalogue import Answer
from quorate.reports.figures import Drawing, Intervals, draw_band, draw_bars, draw_intervals
from quorate.reports.page import Picture

__all__ = ["answer_picture"]

_MOST_ROWS = 40  # more dots than that cannot be read
_NORMAL_95 = 1.96
# Numbers whose sizes differ more than that get an axis each.
_RATIO = 20.0


def answer_picture(estimator: Any, said: Answer, features: Sequence[str]) -> Picture | None:
    """Return what was released as a picture; None for what has no place on an axis, as rules.

    ``said`` is the answer in words and plain numbers.
    """
    drawn = _drawn(estimator, said, features)
    if drawn is None:
        return None
    drawing, has_errors = drawn
    if not has_errors:
        return Picture(drawing, "What was released; how far off it may be is stated below.")
    error = estimator.error_
    return Picture(drawing, f"Error bars at {error.confidence:.0%} confidence. {error.covers}")


def _drawn(estimator: Any, said: Answer, features: Sequence[str]) -> tuple[Drawing, bool] | None:
    """Return the picture, and whether it shows errors."""
    if hasattr(estimator, "table_"):
        return _table(estimator)
    if hasattr(estimator, "coefficients_"):
        return _coefficients(estimator.coefficients_, features)
    if hasattr(estimator, "edges_"):
        return _spread(estimator, features[0]), True
    if hasattr(estimator, "categories_") and hasattr(estimator, "pmf_"):
        labels = [str(each) for each in estimator.categories_]
        stated = [float(estimator.error_.bound)] * len(labels)
        return _intervals("share", labels, estimator.pmf_, stated)
    for name in ("mean_", "sum_", "median_"):
        if hasattr(estimator, name):
            # Ranks and distances of distributions do not lie on the axis of the values.
            other = name == "median_" or hasattr(estimator.error_, "metric")
            bounds = None if other else estimator.error_.coordinates
            return _intervals(name.rstrip("_"), features, getattr(estimator, name), bounds)
    if "quantiles" in said.values:
        panels = [
            Intervals(name, tuple(found), tuple(found.values()))
            for name, found in said.values["quantiles"].items()
        ]
        return draw_intervals(panels, title="Quantiles"), False
    if hasattr(estimator, "count_"):
        return _intervals("count", ["all"], [estimator.count_], [estimator.error_.bound])
    return None


def _intervals(
    name: str, labels: Sequence[str], values: Sequence[float], bounds: Sequence[float] | None
) -> tuple[Drawing, bool] | None:
    if bounds is not None and (
        len(bounds) != len(labels) or not all(math.isfinite(each) for each in bounds)
    ):
        bounds = None
    if len(values) != len(labels) or len(labels) == 0:
        return None
    errors = None if bounds is None else tuple(map(float, bounds))[:_MOST_ROWS]
    whole = Intervals(
        name, tuple(labels)[:_MOST_ROWS], tuple(map(float, values))[:_MOST_ROWS], errors
    )
    return draw_intervals(_panels(whole), title=name.capitalize()), bounds is not None


def _panels(whole: Intervals) -> list[Intervals]:
    """Return one panel, or one for each number where one axis would hide the small ones."""
    errors = whole.errors or (0.0,) * len(whole.values)
    sizes = [abs(value) + error for value, error in zip(whole.values, errors, strict=True)]
    if min(sizes) * _RATIO >= max(sizes):
        return [whole]
    return [
        Intervals(whole.name, (label,), (value,), None if whole.errors is None else (error,))
        for label, value, error in zip(whole.labels, whole.values, errors, strict=True)
    ]


def _coefficients(table: Any, features: Sequence[str]) -> tuple[Drawing, bool]:
    """Draw the coefficients; the constant is in the table, on an axis it would hide the others."""
    names = tuple(features)[:_MOST_ROWS]
    panels = []
    for place, output in enumerate(table.outputs):
        name = "coefficient" if output == "coefficient" else f"coefficient for {output}"
        errors = None
        if table.errors is not None:
            errors = tuple(_NORMAL_95 * e for e in table.errors[: len(names), place].tolist())
        values = tuple(table.values[: len(names), place].tolist())
        panels.append(Intervals(name, names, values, errors))
    return draw_intervals(panels, title="Coefficients"), table.errors is not None


def _spread(estimator: Any, feature: str) -> Drawing:
    """Draw a histogram, or a distribution function with its band."""
    bound, edges = float(estimator.error_.bound), estimator.edges_.tolist()
    if not hasattr(estimator, "pmf_"):
        curve = estimator.cdf_.tolist()
        return draw_band(edges, curve, bound, title="Distribution function", x_label=feature)
    # A bin is a difference of two values of the distribution function.
    factor = 1.0 if "variation" in estimator.error_.metric else 2.0
    shares = estimator.pmf_.tolist()
    return draw_bars(edges, shares, factor * bound, title="Histogram", x_label=feature)


def _table(estimator: Any) -> tuple[Drawing, bool]:
    """Draw a panel for each statistic, a row for each key."""
    table = estimator.table_.slice(0, _MOST_ROWS)
    names = [name.removesuffix("_bound") for name in table.column_names if _is_bound(name, table)]
    statistics = {f"{name}{end}" for name in names for end in ("", "_error", "_bound")}
    by = [name for name in table.column_names if name not in statistics]
    rows = list(zip(*(table[name].to_pylist() for name in by), strict=True)) if by else [("all",)]
    labels = tuple(
        ", ".join("all others" if each is None else str(each) for each in row) for row in rows
    )
    panels = []
    for name in names:
        bounds = table[f"{name}_bound"].to_pylist()
        # A dot without a bar would look exact.
        own = tuple(
            label if math.isfinite(bound) else f"{label} (no bound)"
            for label, bound in zip(labels, bounds, strict=True)
        )
        errors = tuple(bound if math.isfinite(bound) else 0.0 for bound in bounds)
        panels.append(Intervals(name, own, tuple(table[name].to_pylist()), errors))
    return draw_intervals(panels, title="Table"), True


def _is_bound(name: str, table: Any) -> bool:
    return name.endswith("_bound") and name.removesuffix("_bound") in table.column_names
