"""Formulas as MathML, written when the site is built: browsers show them without any script.

MathJax would be fetched from a server whenever a page is read. MathML needs neither a network nor
JavaScript.
"""

from __future__ import annotations

from typing import Any

from docutils import nodes
from latex2mathml.converter import convert


def to_mathml(formula: str, *, block: bool = False) -> str:
    """Return a LaTeX formula as a MathML element."""
    return convert(formula.strip(), display="block" if block else "inline")


def _visit_inline(translator: Any, node: nodes.math) -> None:
    translator.body.append(f'<span class="math">{to_mathml(node.astext())}</span>')
    raise nodes.SkipNode


def _visit_block(translator: Any, node: nodes.math_block) -> None:
    translator.body.append(f'<div class="math">{to_mathml(node.astext(), block=True)}</div>')
    raise nodes.SkipNode


def _depart(translator: Any, node: nodes.Node) -> None:
    """Do nothing: the whole formula was written when its node was entered."""


def setup(app: Any) -> dict[str, bool]:
    """Offer the renderer under the name ``mathml``; Sphinx calls it."""
    app.add_html_math_renderer("mathml", (_visit_inline, _depart), (_visit_block, _depart))
    return {"parallel_read_safe": True, "parallel_write_safe": True}
