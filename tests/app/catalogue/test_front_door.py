"""An estimator is entered in the catalogue; the front door repeats its name, and this says how."""

import ast
from pathlib import Path

import quorate
from quorate.app.catalogue import CATALOGUE

FRONT = Path(quorate.__file__)


def typed_imports(text):
    """Return where type checkers find each name: the imports under ``TYPE_CHECKING``."""
    for node in ast.parse(text).body:
        if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING":
            lines = [line for line in node.body if isinstance(line, ast.ImportFrom)]
            return {alias.name: line.module for line in lines for alias in line.names}
    return {}


def missing(names, homes, listed, typed):
    """Return the lines to add to ``quorate/__init__.py`` so that every name stands there."""
    lines = [f'in __all__: "{name}",' for name in names if name not in listed]
    return lines + [
        f"under TYPE_CHECKING: from {homes[name]} import {name}"
        for name in names
        if typed.get(name) != homes[name]
    ]


def test_every_estimator_of_the_catalogue_stands_at_the_front_door():
    homes = {name: entry.kind.__module__ for name, entry in CATALOGUE.items()}
    to_add = missing(homes, homes, quorate.__all__, typed_imports(FRONT.read_text()))
    assert not to_add, "add to src/quorate/__init__.py, " + "; ".join(to_add)


def test_every_name_of_the_front_door_opens_and_has_a_type():
    typed = typed_imports(FRONT.read_text())
    for name in quorate.__all__:
        assert getattr(quorate, name) is not None
        assert name in typed or name in ("Guarantee", "Relation")


def test_the_lines_to_add_are_named():
    """The control: an estimator that was only entered in the catalogue."""
    found = missing(["UserMode"], {"UserMode": "quorate.means.mode"}, [], {})
    assert found == [
        'in __all__: "UserMode",',
        "under TYPE_CHECKING: from quorate.means.mode import UserMode",
    ]
