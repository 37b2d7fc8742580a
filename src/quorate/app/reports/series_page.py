"""The page of a series: a picture per statistic, a line per group, and the guarantee."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from quorate.app.reports.figures import _DASHES, _RULE, _SERIES, Drawing, _draw
from quorate.app.reports.page import Facts, Page, Picture, Section, Table, Text, render
from quorate.series.user_series import UserSeries

__all__ = ["SeriesCurve", "draw_series", "series_page"]

# machine: at most this many lines are drawn in one picture; other groups are in the table.
_LINES = 5
_LABELS = 4


@dataclass(frozen=True)
class SeriesCurve:
    """One group's numbers over the periods, with their error bounds.

    >>> SeriesCurve("north", (7.0, 9.0), (1.0, 1.0)).values
    (7.0, 9.0)
    """

    name: str
    values: tuple[float, ...]
    bounds: tuple[float, ...]


def draw_series(
    periods: Sequence[str], curves: Sequence[SeriesCurve], *, title: str, y_label: str
) -> Drawing:
    """Draw numbers over time, each with the band of its error bound.

    >>> curve = SeriesCurve("all", (7.0, 9.0), (1.0, 1.0))
    >>> drawing = draw_series(["1", "2"], [curve], title="Buyers", y_label="buyers")
    >>> drawing.description
    'all: 7 ± 1 in 1, 9 ± 1 in 2.'
    """

    def fill(axes: Any) -> None:
        places = range(len(periods))
        for i, curve in enumerate(curves):
            colour = _SERIES[i % len(_SERIES)]
            low = [v - b for v, b in zip(curve.values, curve.bounds, strict=True)]
            high = [v + b for v, b in zip(curve.values, curve.bounds, strict=True)]
            axes.fill_between(places, low, high, color=colour, alpha=0.18, linewidth=0)
            axes.plot(
                places,
                curve.values,
                label=curve.name,
                color=colour,
                linestyle=_DASHES[i % len(_DASHES)],
                marker="o" if len(periods) == 1 else None,
                linewidth=1.8,
            )
        every = max(1, -(-len(periods) // _LABELS))
        axes.set_xticks(list(places)[::every], list(periods)[::every])
        axes.set(ylabel=y_label)
        axes.grid(visible=True, color=_RULE, linewidth=0.6)

    said = [
        f"{c.name}: {c.values[0]:.3g} ± {c.bounds[0]:.2g} in {periods[0]}, "
        f"{c.values[-1]:.3g} ± {c.bounds[-1]:.2g} in {periods[-1]}."
        for c in curves
    ]
    return _draw(fill, title, " ".join(said))


def series_page(series: UserSeries) -> str:
    """Return the page of what a series has released so far, as one HTML document."""
    names = [n.removesuffix("_bound") for n in series.table_.column_names if n.endswith("_bound")]
    periods = series.periods_
    sections = []
    for title, table in (("Each period", series.table_), ("Running totals", series.running_)):
        rows = table.to_pylist()
        pictures = tuple(_picture(rows, name, periods, title) for name in names)
        sections.append(Section(title, pictures))
    last = [row for row in series.table_.to_pylist() if row["period"] == periods[-1]]
    sections.append(
        Section(
            f"Figures of {periods[-1]}",
            (
                _figures(last, names),
                Text(f"{str(series.error_).capitalize()}."),
                Text(series.error_.covers),
            ),
        )
    )
    promise = series.guarantee_
    sections.append(
        Section(
            "Guarantee",
            (
                Text(str(promise), tone="quote"),
                Text(
                    f"This holds for all {series.horizon} periods together, also for those that "
                    "are yet to come, and for whole people."
                ),
                Facts(
                    (
                        ("noise", series.design.factor.name),
                        ("a person counts fully in", f"{series.design.touched} periods"),
                        ("charged to", promise.data_name or "no ledger"),
                    )
                ),
            ),
        )
    )
    return render(
        Page(
            "A private series",
            f"{len(periods)} of {series.horizon} periods, from {periods[0]} to {periods[-1]}.",
            (
                (f"{promise.epsilon:g}", "epsilon, all periods"),
                (f"{promise.delta:g}", "delta"),
                (str(len(periods)), "periods so far"),
            ),
            tuple(sections),
        )
    )


def _group(row: dict[str, Any]) -> str:
    """Return the name of the group of a row: the columns between the period and the statistics."""
    names = list(row)
    first = next(i for i, name in enumerate(names) if f"{name}_bound" in row)
    return " ".join(str(row[name]) for name in names[1:first]) or "all"


def _picture(
    rows: list[dict[str, Any]], name: str, periods: tuple[str, ...], title: str
) -> Picture:
    found: dict[str, list[tuple[float, float]]] = {}
    for row in rows:
        found.setdefault(_group(row), []).append((row[name], row[f"{name}_bound"]))
    curves = [
        SeriesCurve(group, tuple(v for v, _ in pairs), tuple(b for _, b in pairs))
        for group, pairs in list(found.items())[:_LINES]
    ]
    drawing = draw_series(periods, curves, title=f"{title}: {name}", y_label=name)
    others = len(found) - len(curves)
    caption = f"{name}; noise keeps each number within its band with probability 95 %."
    return Picture(drawing, caption + (f" {others} more groups are not drawn." if others else ""))


def _figures(rows: list[dict[str, Any]], names: list[str]) -> Table:
    header = ("group", *(part for name in names for part in (name, "±")))
    return Table(
        "Released numbers of the last period; noise stays within ± with probability 95 %",
        header,
        tuple(
            (_group(row), *(f"{row[part]:,.4g}" for n in names for part in (n, f"{n}_bound")))
            for row in rows
        ),
    )
