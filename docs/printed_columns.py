"""Tell what a program prints in columns from sentences: columns keep their lines on a phone."""

from __future__ import annotations

import re
from itertools import pairwise
from typing import Any

_CELLS = re.compile(r"\S {2,}\S")


def in_columns(text: str) -> bool:
    r"""Return whether two lines or more, one after the other, have cells with gaps between them.

    >>> in_columns("     exact  stated\nAB    81.9     1.3")
    True
    >>> in_columns("epsilon = 1 for each user: whatever one user says, no conclusion\nis likely.")
    False
    """
    gaps = [bool(_CELLS.search(line)) for line in text.splitlines()]
    return any(one and next_one for one, next_one in pairwise(gaps))


def mark(app: Any, doctree: Any) -> None:
    """Give the class ``in-columns`` to the output of examples that is printed in columns."""
    from docutils import nodes

    for block in doctree.findall(nodes.literal_block):
        if "sphx-glr-script-out" in block["classes"] and in_columns(block.astext()):
            block["classes"].append("in-columns")
