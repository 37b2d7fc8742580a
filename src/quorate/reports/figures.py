"""Figures as inline SVG: no image files, colours that follow the page, a text for those who listen.

matplotlib draws; its colours are placeholders that become CSS variables, so one figure is readable
on a light and on a dark page. matplotlib is an optional dependency, the extra ``plot``.
"""

from __future__ import annotations

import html
import io
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from quorate.exceptions import MissingExtraError

__all__ = ["Drawing", "Line", "draw_curves", "draw_marks", "has_matplotlib"]

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
# Inches and points: about as wide as the column of a phone, so that letters stay readable there.
_WIDTH, _HEIGHT, _LETTERS = 5.0, 3.6, 11.0


@dataclass(frozen=True)
class Drawing:
    """A figure: SVG, a short title, and a description that says what the picture shows."""

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


def has_matplotlib() -> bool:
    """Tell whether figures can be drawn.

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
    """Draw lines on logarithmic axes, and one point with its name.

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
        axes.grid(visible=True, which="major", color=_RULE, linewidth=0.6)

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
    """Draw, for each group, a mark for every series on a logarithmic axis.

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


def _draw(fill: Callable[[Any], None], title: str, description: str) -> Drawing:
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
        figure = Figure(figsize=(_WIDTH, _HEIGHT), layout="constrained")
        axes = figure.add_subplot()
        fill(axes)
        handles, names = axes.get_legend_handles_labels()
        figure.legend(handles, names, loc="outside upper left", ncols=2, handlelength=2.4)
        text = io.StringIO()
        figure.savefig(
            text,
            format="svg",
            transparent=True,
            metadata=dict.fromkeys(("Creator", "Date", "Format", "Type")),
        )
    return Drawing(_inline(text.getvalue(), title, description), title, description)


def _inline(svg: str, title: str, description: str) -> str:
    """Return SVG that can stand inside a page: colours by CSS, no ids in common with others."""
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
