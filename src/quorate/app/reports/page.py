"""One HTML file that explains a release: no network, no scripts, accessible.

A page is a tree of small frozen blocks; :func:`render` turns it into HTML and escapes every text.
The file loads nothing (its content security policy forbids it), follows the reader's light or dark
colour scheme, fits a phone of 360 pixels (wide tables scroll inside their own frame, which the
keyboard can reach), and has landmarks, headings and texts for figures.
"""

from __future__ import annotations

import html
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import singledispatch

from quorate.app.reports.figures import Drawing
from quorate.app.reports.style import STYLE

__all__ = ["Block", "Facts", "Meter", "Page", "Picture", "Section", "Table", "Text", "render"]

_POLICY = (
    "default-src 'none'; style-src 'unsafe-inline'; img-src data:; base-uri 'none'; "
    "form-action 'none'"
)


@dataclass(frozen=True)
class Text:
    """A paragraph; ``tone`` is "plain", "quote" (a quotation) or "warning"."""

    words: str
    tone: str = "plain"


@dataclass(frozen=True)
class Facts:
    """Names and values, side by side."""

    pairs: tuple[tuple[str, str], ...]


@dataclass(frozen=True)
class Table:
    """A table with a caption; if ``numeric``, all columns except the first are numeric."""

    caption: str
    header: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    numeric: bool = True


@dataclass(frozen=True)
class Meter:
    """A used amount out of a total, as a bar and in words."""

    label: str
    used: float
    whole: float
    words: str


@dataclass(frozen=True)
class Picture:
    """A drawing with a caption."""

    drawing: Drawing
    caption: str


Block = Text | Facts | Table | Meter | Picture


@dataclass(frozen=True)
class Section:
    """A heading and the blocks below it."""

    title: str
    blocks: tuple[Block, ...]


@dataclass(frozen=True)
class Page:
    """A whole page.

    Parameters
    ----------
    title : str
    lead : str
        A one-sentence summary.
    highlights : tuple of (value, name)
        Two to four numbers in large type.
    sections : tuple of Section
    footer : str, default=""

    Examples
    --------
    >>> section = Section("Guarantee", (Text("epsilon < 1 & exact"),))
    >>> page = render(Page("Report", "One mean.", (("1.0", "epsilon"),), (section,)))
    >>> page.startswith("<!doctype html>"), "epsilon &lt; 1 &amp; exact" in page
    (True, True)
    """

    title: str
    lead: str
    highlights: tuple[tuple[str, str], ...]
    sections: tuple[Section, ...]
    footer: str = ""


def render(page: Page) -> str:
    """Return the page as one self-contained HTML document.

    >>> render(Page("A <b>", "", (), ())).count("<b>")
    0
    """
    links = _join(
        f'<li><a href="#part-{i}">{_escape(section.title)}</a></li>'
        for i, section in enumerate(page.sections)
    )
    tiles = _join(
        f"<div><dt>{_escape(name)}</dt><dd>{_escape(value)}</dd></div>"
        for value, name in page.highlights
    )
    sections = _join(_section(i, section) for i, section in enumerate(page.sections))
    return f"""<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="{_POLICY}">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<meta name="referrer" content="no-referrer">
<link rel="icon" href="data:,">
<title>{_escape(page.title)}</title>
<style>{STYLE}</style>
</head>
<body>
<a class="skip" href="#main">Skip to the content</a>
<header>
<p class="brand">Quorate</p>
<h1>{_escape(page.title)}</h1>
<p class="lead">{_escape(page.lead)}</p>
<dl class="tiles">{tiles}</dl>
</header>
<nav aria-label="On this page"><ul>{links}</ul></nav>
<main id="main" tabindex="-1">
{sections}
</main>
<footer><p>{_escape(page.footer)}</p></footer>
</body>
</html>
"""


def _section(number: int, section: Section) -> str:
    blocks = _join(_block(block) for block in section.blocks)
    return (
        f'<section id="part-{number}" aria-labelledby="head-{number}">'
        f'<h2 id="head-{number}">{_escape(section.title)}</h2>{blocks}</section>'
    )


@singledispatch
def _block(block: Block) -> str:
    raise TypeError(f"Expected a block of a page, got {type(block).__name__}.")


@_block.register
def _(block: Text) -> str:
    words = _escape(block.words)
    if block.tone == "quote":
        return f"<blockquote><p>{words}</p></blockquote>"
    kind = ' class="warning" role="note"' if block.tone == "warning" else ""
    return f"<p{kind}>{words}</p>"


@_block.register
def _(block: Facts) -> str:
    pairs = _join(
        f"<div><dt>{_escape(name)}</dt><dd>{_escape(value)}</dd></div>"
        for name, value in block.pairs
    )
    return f'<dl class="facts">{pairs}</dl>'


@_block.register
def _(block: Table) -> str:
    head = _join(f'<th scope="col">{_escape(name)}</th>' for name in block.header)
    rows = _join(_row(row) for row in block.rows)
    kind = "numbers" if block.numeric else "words"
    return (
        f'<div class="frame" role="region" tabindex="0" aria-label="{_escape(block.caption)}">'
        f'<table class="{kind}"><caption>{_escape(block.caption)}</caption>'
        f"<thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table></div>"
    )


def _row(cells: Sequence[str]) -> str:
    first, *others = cells
    rest = _join(f"<td>{_escape(cell)}</td>" for cell in others)
    return f'<tr><th scope="row">{_escape(first)}</th>{rest}</tr>'


@_block.register
def _(block: Meter) -> str:
    share = min(1.0, max(0.0, block.used / block.whole)) if block.whole > 0 else 1.0
    label = _escape(block.label)
    return (
        f'<div class="meter"><p id="{_slug(block.label)}">{label}</p>'
        f'<svg viewBox="0 0 100 4" preserveAspectRatio="none" role="img" '
        f'aria-label="{_escape(block.words)}"><rect class="whole" width="100" height="4"/>'
        f'<rect class="used" width="{100 * share:.2f}" height="4"/></svg>'
        f"<p>{_escape(block.words)}</p></div>"
    )


@_block.register
def _(block: Picture) -> str:
    # The drawing is our own SVG, whose texts are escaped where it is made.
    return f"<figure>{block.drawing.svg}<figcaption>{_escape(block.caption)}</figcaption></figure>"


def _slug(text: str) -> str:
    return "m-" + "".join(letter if letter.isalnum() else "-" for letter in text.lower())


def _escape(text: str) -> str:
    return html.escape(str(text), quote=True)


def _join(parts: Iterable[str]) -> str:
    return "".join(parts)
