"""Whatever a room opens is used: by another part, by a page, or by a script.

A function that only its own test calls proves nothing to a reader and has to be kept all the same.
"""

import ast
import functools
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SOURCE = ROOT / "src" / "quorate"
ROOMS = sorted(
    folder.name for folder in SOURCE.iterdir() if folder.is_dir() and folder.name != "__pycache__"
)
# Known answers of the wire format, for clients in other languages: `python -m` and tests read them.
# Votes are sealed by hand in audits and tests only, as core/by_hand.py is meant.
FOR_OTHERS = {"known_answers", "stored_answers", "votes_by_hand"}
INDEX = {"papers.md", "guarantees.md"}


def opened(path):
    """Return the public functions of a module."""
    tree = ast.parse(path.read_text())
    return {
        node.name
        for node in tree.body
        if isinstance(node, ast.FunctionDef) and not node.name.startswith("_")
    }


def used(text):
    """Return every name that some code uses outside of its own definition and of imports."""
    found = set()
    for top in ast.parse(text).body:
        if isinstance(top, ast.Import | ast.ImportFrom):
            continue
        own = getattr(top, "name", None)
        for node in ast.walk(top):
            if isinstance(node, ast.Name) and node.id != own:
                found.add(node.id)
            elif isinstance(node, ast.Attribute):
                found.add(node.attr)
    return found


@functools.cache
def callers():
    code = [path.read_text() for path in SOURCE.rglob("*.py")]
    code += [path.read_text() for path in (ROOT / "examples").glob("*.py")]
    found = set().union(*map(used, code))
    for page in (ROOT / "docs").rglob("*.md"):
        if page.name not in INDEX:
            found |= set(re.findall(r"\w+", page.read_text()))
    return found


@pytest.mark.parametrize("room", ROOMS)
def test_every_public_function_has_a_caller(room):
    functions = set().union(*map(opened, (SOURCE / room).rglob("*.py")))
    assert functions - callers() - FOR_OTHERS == set()


def test_a_function_without_a_caller_is_seen():
    alone = "def lonely():\n    return lonely()\n\n\ndef other():\n    return 1\n"
    assert "lonely" not in used(alone)
    assert "lonely" in used(alone + "x = lonely()\n")
