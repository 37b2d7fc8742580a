"""Figures as inline SVG, with colours from the page and a description for screen readers.

matplotlib draws; its colours are placeholders that become CSS variables, so one figure is readable
on a light and on a dark page. matplotlib is an optional dependency, the extra ``plot``.
"""

from __future__ import annotations

import html
import io
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from quorate.exceptions import MissingExtraError

__all__ = [
    "NORMAL_95",
    "Drawing",
    "ErrorBars",
    "Line",
    "draw_band",
    "draw_bars",
    "draw_curves",
    "draw_intervals",
    "draw_marks",
    "draw_matrix",
    "draw_named_bars",
    "draw_segments",
    "has_matplotlib",
]

# Placeholders that matplotlib writes and the page's CSS variables that they become.
_INK, _MUTED, _RULE, _PAPER = "#010101", "#020202", "#030303", "#040404"
_SERIES = ("#050505", "#060606", "#070707", "#080808", "#090909")
_VARIABLES = {
    _INK: "--ink",
    _MUTED: "--muted",
    _RULE: "--rule",
    _PAPER: "--paper",
    **{colour: f"--series-{i + 1}" for i, colour in enumerate(_SERIES)},
}
_DASHES = ("-", "--", ":", "-.", (0, (5, 1, 1, 1, 1, 1)))
_MARKERS = ("o", "s", "^", "D", "v")
# machine: inches and points; about as wide as the screen of a phone, so that letters stay
# readable there.
_WIDTH, _HEIGHT, _LETTERS = 5.0, 3.6, 11.0
NORMAL_95 = 1.96  # derived: the 97.5 % quantile of the normal law
"""Standard errors to both sides of a 95 % confidence interval: a quantile of the normal law."""
_LONGEST = 22  # machine: letters of a label that fit beside an axis
_READABLE = 8  # columns of a matrix whose numbers can still be read


@dataclass(frozen=True)
class Drawing:
    """A figure: SVG, a short title, and a description of what it shows."""

    svg: str
    title: str
    description: str


@dataclass(frozen=True)
class Line:
    """One line of a figure.

    >>> Line("Quorate", (100, 1000), (0.5, 0.05)).name
    'Quorate'
    """

    name: str
    x: tuple[float, ...]
    y: tuple[float, ...]


@dataclass(frozen=True)
class ErrorBars:
    """Numbers with their names and error bounds; one panel of a figure.

    >>> ErrorBars("visits", ("Ulm", "Bonn"), (7.0, 9.0), (1.0, 1.0)).said()
    'visits: Ulm 7 ± 1, Bonn 9 ± 1.'
    """

    name: str
    labels: tuple[str, ...]
    values: tuple[float, ...]
    errors: tuple[float, ...] | None = None
    ranges: tuple[tuple[float, float], ...] | None = None
    """Lower and upper ends, where an error is not the same on both sides."""

    @property
    def lengths(self) -> Any:
        """The error bars in matplotlib's form.

        These are the lengths to the left and to the right of each value.
        """
        if self.ranges is None:
            return self.errors
        pairs = list(zip(self.values, self.ranges, strict=True))
        left = [value - low for value, (low, _) in pairs]
        return [left, [high - value for value, (_, high) in pairs]]

    def said(self) -> str:
        """Return the numbers in words."""
        if self.ranges is not None:
            within = [
                f"{label} {value:.4g} ({low:.4g} to {high:.4g})"
                for label, value, (low, high) in zip(
                    self.labels, self.values, self.ranges, strict=True
                )
            ]
            return f"{self.name}: {', '.join(within)}."
        errors = self.errors or (None,) * len(self.values)
        pairs = [
            f"{label} {value:.4g}" + ("" if error is None else f" ± {error:.2g}")
            for label, value, error in zip(self.labels, self.values, errors, strict=True)
        ]
        return f"{self.name}: {', '.join(pairs)}."


def has_matplotlib() -> bool:
    """Return whether figures can be drawn.

    >>> isinstance(has_matplotlib(), bool)
    True
    """
    try:
        import matplotlib  # noqa: F401
    except ImportError:
        return False
    return True


def draw_curves(
    curves: Sequence[Line],
    *,
    title: str,
    x_label: str,
    y_label: str,
    point: tuple[str, float, float] | None = None,
) -> Drawing:
    """Draw lines on logarithmic axes, and one labelled point.

    >>> drawing = draw_curves([Line("plan", (10.0, 100.0), (1.0, 0.1))], title="Error",
    ...                       x_label="users", y_label="error", point=("this run", 50.0, 0.2))
    >>> drawing.svg.startswith("<svg"), drawing.description
    (True, 'plan: 1 at users 10, 0.1 at users 100. this run: 0.2 at users 50.')
    """

    def fill(axes: Any) -> None:
        for i, curve in enumerate(curves):
            axes.plot(
                curve.x,
                curve.y,
                label=curve.name,
                color=_SERIES[i % len(_SERIES)],
                linestyle=_DASHES[i % len(_DASHES)],
                linewidth=2.2 if i == 0 else 1.5,
            )
        if point is not None:
            axes.plot([point[1]], [point[2]], "o", color=_INK, markersize=8, label=point[0])
        axes.set(xscale="log", yscale="log", xlabel=x_label, ylabel=y_label)
        # Ticks at 3 and 4 are so close that their labels overlap.
        axes.yaxis.set_minor_locator(LogLocator(subs=(2.0, 5.0)))
        axes.grid(visible=True, which="major", color=_RULE, linewidth=0.6)

    from matplotlib.ticker import LogLocator

    said = [
        f"{curve.name}: {curve.y[0]:.3g} at {x_label} {curve.x[0]:.3g}, "
        f"{curve.y[-1]:.3g} at {x_label} {curve.x[-1]:.3g}."
        for curve in curves
    ]
    if point is not None:
        said.append(f"{point[0]}: {point[2]:.3g} at {x_label} {point[1]:.3g}.")
    return _draw(fill, title, " ".join(said))


def draw_marks(
    groups: Sequence[str],
    series: Mapping[str, Sequence[float]],
    *,
    title: str,
    y_label: str,
) -> Drawing:
    """Draw one mark per group and series on a logarithmic axis.

    >>> drawing = draw_marks(["mean"], {"Quorate": [0.1], "group privacy": [9.0]}, title="Errors",
    ...                     y_label="error")
    >>> drawing.description
    'mean: Quorate 0.1, group privacy 9.'
    """

    def fill(axes: Any) -> None:
        shift = 0.16
        for i, (name, values) in enumerate(series.items()):
            places = [j + (i - (len(series) - 1) / 2) * shift for j in range(len(groups))]
            colour = _SERIES[i % len(_SERIES)]
            axes.plot(
                places,
                values,
                linestyle="none",
                marker=_MARKERS[i % len(_MARKERS)],
                markersize=8,
                color=colour,
                label=name,
            )
        axes.set(yscale="log", ylabel=y_label, xlim=(-0.6, len(groups) - 0.4))
        axes.set_xticks(range(len(groups)), labels=list(groups))
        axes.grid(visible=True, axis="y", which="major", color=_RULE, linewidth=0.6)

    said = [
        f"{group}: " + ", ".join(f"{name} {values[j]:.3g}" for name, values in series.items()) + "."
        for j, group in enumerate(groups)
    ]
    return _draw(fill, title, " ".join(said))


def draw_intervals(panels: Sequence[ErrorBars], *, title: str) -> Drawing:
    """Draw each number as a dot with its error bar; each kind of number has its own panel and axis.

    >>> panel = ErrorBars("mean", ("age",), (41.0,), (2.0,))
    >>> draw_intervals([panel], title="Means").description
    'mean: age 41 ± 2.'
    """
    rows = [max(1, len(panel.labels)) for panel in panels]

    def fill(figure: Any) -> None:
        all_axes = figure.subplots(len(panels), 1, height_ratios=[n + 1 for n in rows])
        for i, panel in enumerate(panels):
            axes = all_axes if len(panels) == 1 else all_axes[i]
            places = range(len(panel.labels))
            colour = _SERIES[0]
            axes.errorbar(
                panel.values,
                places,
                xerr=panel.lengths,
                fmt="o",
                color=colour,
                ecolor=colour,
                elinewidth=2,
                capsize=4,
                markersize=6,
            )
            axes.set_yticks(places, labels=[_short(label) for label in panel.labels])
            axes.set_ylim(len(panel.labels) - 0.4, -0.6)
            if i + 1 == len(panels) or panels[i + 1].name != panel.name:
                axes.set_xlabel(panel.name)
            axes.grid(visible=True, axis="x", color=_RULE, linewidth=0.6)
            axes.locator_params(axis="x", nbins=5)

    height = 0.45 * len(panels) + 0.26 * sum(n + 1 for n in rows)
    said = " ".join(panel.said() for panel in panels)
    return _draw_figure(fill, title, said, max(1.2, height))


def draw_bars(
    edges: Sequence[float], shares: Sequence[float], error: float, *, title: str, x_label: str
) -> Drawing:
    """Draw a histogram: the share of each bin as a bar with its error bar.

    >>> draw_bars([0, 1, 3], [0.25, 0.75], 0.1, title="Spread", x_label="age").description
    '0 to 1: 0.25, 1 to 3: 0.75; each ± 0.1.'
    """

    def fill(axes: Any) -> None:
        axes.stairs(shares, edges, fill=True, color=_SERIES[0], alpha=0.45)
        axes.stairs(shares, edges, color=_SERIES[0], linewidth=1.5)
        middles = [(a + b) / 2 for a, b in pairwise(edges)]
        lower = [min(share, error) for share in shares]
        axes.errorbar(
            middles,
            shares,
            yerr=[lower, [error] * len(shares)],
            fmt="none",
            ecolor=_INK,
            elinewidth=1.2,
            capsize=2,
        )
        axes.set(xlabel=x_label, ylabel="share", ylim=(0, None))
        axes.grid(visible=True, axis="y", color=_RULE, linewidth=0.6)

    bins = zip(pairwise(edges), shares, strict=True)
    said = ", ".join(f"{a:.4g} to {b:.4g}: {share:.3g}" for (a, b), share in bins)
    return _draw(fill, title, f"{said}; each ± {error:.2g}.")


def draw_band(
    x: Sequence[float], y: Sequence[float], error: float, *, title: str, x_label: str
) -> Drawing:
    """Draw a distribution function with the band in which the true one lies.

    >>> draw_band([0, 5], [0, 1], 0.1, title="Below", x_label="age").description
    'share below: 0 at age 0, 1 at age 5; each ± 0.1.'
    """

    def fill(axes: Any) -> None:
        lower = [max(0.0, each - error) for each in y]
        upper = [min(1.0, each + error) for each in y]
        axes.fill_between(x, lower, upper, color=_SERIES[0], alpha=0.25, linewidth=0)
        axes.plot(x, y, color=_SERIES[0], linewidth=2)
        axes.set(xlabel=x_label, ylabel="share below", ylim=(0, 1))
        axes.grid(visible=True, color=_RULE, linewidth=0.6)

    ends = f"{y[0]:.3g} at {x_label} {x[0]:.4g}, {y[-1]:.3g} at {x_label} {x[-1]:.4g}"
    return _draw(fill, title, f"share below: {ends}; each ± {error:.2g}.")


def draw_segments(
    parts: Sequence[tuple[float, float, int]], *, title: str, x_label: str
) -> Drawing:
    """Draw a line whose segments are labelled with what a rule predicts on them.

    >>> draw_segments([(0, 30, 0), (30, 99, 1)], title="Rule", x_label="age").description
    'age 0 to 30: predict 0, 30 to 99: predict 1.'
    """

    def fill(figure: Any) -> None:
        axes = figure.add_subplot()
        for label in sorted({part[2] for part in parts}):
            drawn = [(start, end - start) for start, end, each in parts if each == label]
            colour = _SERIES[label % len(_SERIES)]
            axes.broken_barh(
                drawn, (0, 1), color=colour, alpha=0.55, linewidth=1.5, label=f"predict {label}"
            )
        for start, _, _ in parts[1:]:
            axes.axvline(start, color=_INK, linewidth=2)
            axes.annotate(f"{start:,.6g}", (start, 1.06), ha="center", annotation_clip=False)
        axes.set(xlabel=x_label, xlim=(parts[0][0], parts[-1][1]), ylim=(0, 1), yticks=[])
        axes.locator_params(axis="x", nbins=5)
        axes.spines["left"].set_visible(False)
        figure.legend(*axes.get_legend_handles_labels(), loc="outside upper left", ncols=2)

    said = ", ".join(f"{a:.6g} to {b:.6g}: predict {label}" for a, b, label in parts)
    return _draw_figure(fill, title, f"{x_label} {said}.", 1.9)


def draw_named_bars(
    names: Sequence[str], values: Sequence[float], *, title: str, x_label: str
) -> Drawing:
    """Draw a bar from zero for each name.

    >>> draw_named_bars(["old", "ill"], [0.5, 0.25], title="Rule", x_label="share").description
    'share: old 0.5, ill 0.25.'
    """

    def fill(figure: Any) -> None:
        axes = figure.add_subplot()
        axes.barh(range(len(names)), values, color=_SERIES[0], alpha=0.6, height=0.6)
        axes.set_yticks(range(len(names)), labels=[_short(name) for name in names])
        axes.set(xlabel=x_label, ylim=(len(names) - 0.4, -0.6), xlim=(0, None))
        axes.locator_params(axis="x", nbins=5)
        axes.grid(visible=True, axis="x", color=_RULE, linewidth=0.6)

    said = ", ".join(f"{name} {value:.3g}" for name, value in zip(names, values, strict=True))
    return _draw_figure(fill, title, f"{x_label}: {said}.", max(1.2, 0.7 + 0.26 * len(names)))


def draw_matrix(names: Sequence[str], values: Sequence[Sequence[float]], *, title: str) -> Drawing:
    """Draw a symmetric matrix of correlations; stronger ones have larger and darker squares.

    >>> draw_matrix(["a", "b"], [[1.0, -0.5], [-0.5, 1.0]], title="Correlations").description
    'a with b -0.5.'
    """

    def fill(figure: Any) -> None:
        axes = figure.add_subplot()
        for i, row in enumerate(values):
            for j, value in enumerate(row):
                colour, side = _SERIES[0 if value >= 0 else 1], 0.9 * min(1.0, abs(value)) ** 0.5
                left, top = j - side / 2, i - side / 2
                axes.add_patch(Rectangle((left, top), side, side, color=colour, alpha=0.6))
                if len(names) <= _READABLE:
                    axes.annotate(f"{value:.2f}", (j, i), ha="center", va="center", color=_INK)
        axes.set_xticks(range(len(names)), labels=[_short(name) for name in names], rotation=30)
        axes.set_yticks(range(len(names)), labels=[_short(name) for name in names])
        axes.set(xlim=(-0.6, len(names) - 0.4), ylim=(len(names) - 0.4, -0.6), aspect="equal")
        axes.set_xlabel(title.lower())

    from matplotlib.patches import Rectangle

    said = ", ".join(
        f"{name} with {other} {values[i][j]:.3g}"
        for i, name in enumerate(names)
        for j, other in enumerate(names)
        if i < j
    )
    return _draw_figure(fill, title, f"{said}." if said else "", _HEIGHT)


def _short(label: str) -> str:
    return label if len(label) <= _LONGEST else label[: _LONGEST - 1] + "…"


def _draw(fill: Callable[[Any], None], title: str, description: str) -> Drawing:
    def with_legend(figure: Any) -> None:
        axes = figure.add_subplot()
        fill(axes)
        handles, names = axes.get_legend_handles_labels()
        if names:
            figure.legend(handles, names, loc="outside upper left", ncols=2, handlelength=2.4)

    return _draw_figure(with_legend, title, description, _HEIGHT)


def _draw_figure(
    fill: Callable[[Any], None], title: str, description: str, height: float
) -> Drawing:
    try:
        import matplotlib as mpl
        from matplotlib.figure import Figure
    except ImportError as missing:
        raise MissingExtraError(
            "Figures need matplotlib, which is not installed: pip install 'quorate[plot]'."
        ) from missing

    style = {
        "svg.fonttype": "none",
        "svg.hashsalt": title,
        "font.size": _LETTERS,
        "text.color": _INK,
        "axes.edgecolor": _MUTED,
        "axes.labelcolor": _INK,
        "xtick.color": _MUTED,
        "ytick.color": _MUTED,
        "axes.spines.top": False,
        "axes.spines.right": False,
        "legend.frameon": False,
    }
    with mpl.rc_context(style):
        figure = Figure(figsize=(_WIDTH, height), layout="constrained")
        fill(figure)
        text = io.StringIO()
        figure.savefig(
            text,
            format="svg",
            transparent=True,
            metadata=dict.fromkeys(("Creator", "Date", "Format", "Type")),
        )
    return Drawing(_inline(text.getvalue(), title, description), title, description)


def _inline(svg: str, title: str, description: str) -> str:
    """Return SVG for use inside a page: colours from CSS, and ids that are unique on the page."""
    svg = svg[svg.index("<svg") :]
    svg = re.sub(r"<metadata>.*?</metadata>", "", svg, flags=re.S)
    svg = re.sub(r"<style[^>]*>.*?</style>", "", svg, flags=re.S)
    for colour, variable in _VARIABLES.items():
        svg = svg.replace(colour, f"var({variable})")
    key = "f" + format(abs(hash_text(title + description)), "x")
    svg = re.sub(r'\bid="([^"]+)"', rf'id="{key}-\1"', svg)
    svg = svg.replace("url(#", f"url(#{key}-").replace('href="#', f'href="#{key}-')
    opening, rest = svg.split(">", 1)
    opening = re.sub(r'\s(width|height)="[^"]*"', "", opening)
    opening += f' role="img" aria-labelledby="{key}-title {key}-description" focusable="false"'
    said = (
        f'<title id="{key}-title">{html.escape(title)}</title>'
        f'<desc id="{key}-description">{html.escape(description)}</desc>'
    )
    return f"{opening}>{said}{rest}".strip()


def hash_text(text: str) -> int:
    """Return a number for a text, the same in every run.

    >>> hash_text("a")
    97
    """
    value = 0
    for letter in text:
        value = (value * 1_000_003 + ord(letter)) % 2**61
    return value
