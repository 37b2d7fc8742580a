"""Read the *Privacy* and *Learning* sections of docstrings as they are meant.

Such a section is a list of terms, each with a text that may go on over several lines::

    Privacy
    -------
    guarantee : (epsilon, delta)-differential privacy
    proof : four lines here,
        which are indented

To napoleon a word after a colon is a *type*. Here the section becomes a definition list.
"""

from __future__ import annotations

import re
from typing import Any

SECTIONS = ("Privacy", "Learning")

_TERM = re.compile(r"^(\w[\w ]*?)\s*: (.*)$")


def definition_lists(lines: list[str]) -> list[str]:
    """Return the lines of a docstring with its sections of terms as definition lists."""
    found: list[str] = []
    place = 0
    while place < len(lines):
        if _begins(lines, place):
            end = _end(lines, place + 2)
            found += _definitions(lines[place].strip(), lines[place + 2 : end])
            place = end
        else:
            found.append(lines[place])
            place += 1
    return found


def whole_sentence(what: str, lines: list[str]) -> list[str]:
    """Return the docstring of an attribute so that napoleon reads no type in it.

    To napoleon the words before a colon are a type: "Number of records. Private: release it ..."
    was torn apart. An empty type comes before the sentence here.
    """
    if what in ("attribute", "data", "property") and lines and lines[0].strip():
        return [f": {lines[0].strip()}", *lines[1:]]
    return lines


def _begins(lines: list[str], place: int) -> bool:
    underlined = place + 1 < len(lines) and re.fullmatch(r"-{3,}", lines[place + 1].strip())
    return bool(underlined) and lines[place].strip() in SECTIONS


def _end(lines: list[str], start: int) -> int:
    """Return where the next section begins."""
    for place in range(start, len(lines) - 1):
        if lines[place].strip() and re.fullmatch(r"-{3,}", lines[place + 1].strip()):
            return place
    return len(lines)


def _definitions(title: str, body: list[str]) -> list[str]:
    found = [f".. rubric:: {title}", "", ".. container:: terms", ""]
    for line in body:
        term = _TERM.match(line)
        if term is not None:
            found += [f"    **{term[1]}**", f"        {term[2]}"]
        elif line.strip():
            found.append(f"    {line}" if line.startswith("    ") else f"        {line}")
        else:
            found.append("")
    return [*found, ""]


def unlink_words(app: Any, doctree: Any) -> None:
    """Turn links of types that are plain words into words.

    A type is prose here, such as "array of shape (d,)", and "shape" led to an attribute of a class
    that has one. Names of classes have capital letters.
    """
    from sphinx.addnodes import pending_xref

    for link in list(doctree.findall(pending_xref)):
        words = link.get("refdomain") == "py" and link.get("reftype") == "class"
        if words and link["reftarget"].islower() and "." not in link["reftarget"]:
            link.replace_self(link.children)
