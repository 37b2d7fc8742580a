"""The answer of a fit as a picture with its errors, from released numbers only."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from quorate.app.catalogue import Answer
from quorate.app.reports.figures import (
    NORMAL_95,
    Drawing,
    ErrorBars,
    draw_band,
    draw_bars,
    draw_intervals,
    draw_matrix,
    draw_named_bars,
)
from quorate.app.reports.page import Picture
from quorate.app.reports.rule_pictures import rule_drawing

__all__ = ["answer_picture"]

_MOST_ROWS = 40  # machine: more dots than that cannot be read
# machine: numbers whose sizes differ more than that get an axis each, to be seen on a screen.
_RATIO = 20.0
# machine: so do numbers with an error bar that is too short to be seen on such an axis.
_WIDTH = 50.0


def answer_picture(estimator: Any, said: Answer, features: Sequence[str]) -> Picture | None:
    """Draw what was released; None for kinds of rules that cannot be drawn.

    ``said`` is the answer in words and plain numbers.
    """
    drawn = _drawn(estimator, said, features)
    if drawn is None:
        return None
    drawing, has_errors = drawn
    if not has_errors:
        return Picture(drawing, "What was released, without error bars.")
    sure = f"{estimator.error_.confidence:.0%}"
    return Picture(drawing, f"What was released; error bars show the stated error ({sure}).")


def _drawn(estimator: Any, said: Answer, features: Sequence[str]) -> tuple[Drawing, bool] | None:
    """Return the picture, and whether it shows errors."""
    if hasattr(estimator, "table_"):
        return _table(estimator)
    if hasattr(estimator, "concept_"):
        drawing = rule_drawing(estimator, features)
        return None if drawing is None else (drawing, False)
    special = _BY_ATTRIBUTE.get(next((n for n in _BY_ATTRIBUTE if hasattr(estimator, n)), ""))
    if special is not None:
        return special(estimator, features)
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
            ErrorBars(name, tuple(found), tuple(found.values()))
            for name, found in said.values["quantiles"].items()
        ]
        return draw_intervals(panels, title="Quantiles"), False
    if hasattr(estimator, "weights_") and "hidden" in said.values:
        return _network(estimator, features), False
    if hasattr(estimator, "count_"):
        return _intervals("count", ["all"], [estimator.count_], [estimator.error_.bound])
    return None


def _network(estimator: Any, features: Sequence[str]) -> Drawing:
    """Draw the lengths of the weights of each feature, for the default network."""
    from quorate.nets.small import feature_lengths

    names = tuple(features)[:_MOST_ROWS]
    lengths = feature_lengths(estimator.weights_, features=len(features), hidden=estimator.hidden)
    drawn = ErrorBars("length of the weights", names, tuple(lengths.tolist())[:_MOST_ROWS])
    return draw_intervals([drawn], title="Weights of each feature")


def _scales(estimator: Any, features: Sequence[str]) -> tuple[Drawing, bool]:
    """Draw the centres, with a bar of one scale to each side."""
    centres, scales = map(tuple, (estimator.centre_.tolist(), estimator.scale_.tolist()))
    names = tuple(features)[:_MOST_ROWS]
    whole = ErrorBars(
        "centre, with one scale to both sides", names, centres[:_MOST_ROWS], scales[:_MOST_ROWS]
    )
    return draw_intervals(_panels(whole), title="Centre and scale"), False


def _correlations(estimator: Any, features: Sequence[str]) -> tuple[Drawing, bool] | None:
    """Draw a covariance as correlations, which do not depend on units; one variance as it is."""
    matrix, names = estimator.covariance_.tolist(), tuple(features)[:_MOST_ROWS]
    if len(names) == 1:
        return _intervals("variance", names, matrix[0], None)
    roots = [math.sqrt(max(matrix[i][i], 0.0)) for i in range(len(names))]
    shown = [
        [
            matrix[i][j] / (roots[i] * roots[j]) if roots[i] * roots[j] > 0 else 0.0
            for j in range(len(names))
        ]
        for i in range(len(names))
    ]
    return draw_matrix(names, shown, title="Correlations"), False


def _normal(estimator: Any, features: Sequence[str]) -> tuple[Drawing, bool]:
    """Draw the means of a normal distribution, with a bar of one standard deviation."""
    names = tuple(features)[:_MOST_ROWS]
    spreads = tuple(
        math.sqrt(max(float(estimator.covariance_[i][i]), 0.0)) for i in range(len(names))
    )
    means = tuple(map(float, estimator.mean_))[: len(names)]
    whole = ErrorBars("mean, with one standard deviation to both sides", names, means, spreads)
    return draw_intervals(_panels(whole), title="Normal distribution"), False


def _variation(estimator: Any, features: Sequence[str]) -> tuple[Drawing, bool]:
    """Draw how much users differ, each number with its confidence interval."""
    del features
    error = estimator.error_
    numbers = (
        ("of user means", estimator.share_, error.share),
        ("of records", estimator.between_, error.between),
    )
    shares = ErrorBars(
        "share of the variance that lies between users",
        tuple(name for name, _, _ in numbers),
        tuple(float(value) for _, value, _ in numbers),
        ranges=tuple((float(low), float(high)) for _, _, (low, high) in numbers),
    )
    low, high = map(float, error.records)
    held = ErrorBars(
        "records per user", ("harmonic mean",), (float(estimator.records_),), ranges=((low, high),)
    )
    return draw_intervals([shares, held], title="Variation between users"), True


def _smallest_error(estimator: Any, features: Sequence[str]) -> tuple[Drawing, bool] | None:
    del features
    # Its stated error counts users, which have no place on an axis of shares.
    return _intervals("error of the best rule", ["share"], [estimator.min_error_], None)


def _chosen(estimator: Any, features: Sequence[str]) -> tuple[Drawing, bool]:
    """Draw which of the candidates was chosen; their losses are not released."""
    picked = [float(place == estimator.index_) for place in range(len(features))][:_MOST_ROWS]
    names = tuple(features)[:_MOST_ROWS]
    return draw_named_bars(names, picked, title="The choice", x_label="chosen"), False


def _phrases(estimator: Any, features: Sequence[str]) -> tuple[Drawing, bool]:
    """Draw how many people a phrase needed to be found; nothing is released about each phrase."""
    del features
    people = estimator.error_.people
    names = [f"if each uses {size}" if size > 1 else "if each uses no other" for size, _ in people]
    drawn = ErrorBars("people who were enough", tuple(names), tuple(float(n) for _, n in people))
    return draw_intervals(_panels(drawn), title="People who have to use a phrase"), False


# Attributes that tell a kind of answer, and how it is drawn.
def _synthetic(estimator: Any, _: Sequence[str]) -> tuple[Drawing, bool]:
    pairs = estimator.error_.pairs[:_MOST_ROWS]
    names, bounds = [" and ".join(p.columns) for p in pairs], [p.bound for p in pairs]
    title = "How far tables of two columns are off"
    return draw_named_bars(names, bounds, title=title, x_label="total variation at most"), False


_BY_ATTRIBUTE = {
    "repeats_": _synthetic,
    "centre_": _scales,
    "variance_": _correlations,
    "covariance_": _normal,
    "between_": _variation,
    "min_error_": _smallest_error,
    "index_": _chosen,
    "phrases_": _phrases,
}


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
    whole = ErrorBars(
        name, tuple(labels)[:_MOST_ROWS], tuple(map(float, values))[:_MOST_ROWS], errors
    )
    return draw_intervals(_panels(whole), title=name.capitalize()), bounds is not None


def _panels(whole: ErrorBars) -> list[ErrorBars]:
    """Return one panel, or one per number if a common axis would hide the small ones."""
    errors = whole.errors or (0.0,) * len(whole.values)
    sizes = [abs(value) + error for value, error in zip(whole.values, errors, strict=True)]
    span = max(whole.values) - min(whole.values)
    shown = all(error * _WIDTH >= span for error in whole.errors or ())
    if min(sizes) * _RATIO >= max(sizes) and shown:
        return [whole]
    return [
        ErrorBars(whole.name, (label,), (value,), None if whole.errors is None else (error,))
        for label, value, error in zip(whole.labels, whole.values, errors, strict=True)
    ]


def _coefficients(table: Any, features: Sequence[str]) -> tuple[Drawing, bool]:
    """Draw the coefficients, without the intercept, which might hide them on a common axis."""
    names = tuple(features)[:_MOST_ROWS]
    panels = []
    for place, output in enumerate(table.outputs):
        name = "coefficient" if output == "coefficient" else f"coefficient for {output}"
        errors = None
        if table.errors is not None:
            errors = tuple(NORMAL_95 * e for e in table.errors[: len(names), place].tolist())
        values = tuple(table.values[: len(names), place].tolist())
        panels.append(ErrorBars(name, names, values, errors))
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
        panels.append(ErrorBars(name, own, tuple(table[name].to_pylist()), errors))
    return draw_intervals(panels, title="Table"), True


def _is_bound(name: str, table: Any) -> bool:
    return name.endswith("_bound") and name.removesuffix("_bound") in table.column_names
