"""Numbers that were chosen: which module-level constants of the library say where they come from.

A constant is *chosen* if its value is written with numbers only and is neither a power of two nor 0
nor 1. Somebody may ask why it is not another number, and a comment on its line or right above it
answers. The comment begins with one of :data:`MARKS`; ``CONTRIBUTING.md`` says what each means.
"""

from __future__ import annotations

import ast
import io
import math
import re
import tokenize
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from statistics import NormalDist

MARKS = ("derived", "public", "machine")
_MARKED = re.compile(rf"#:?\s*(?:{'|'.join(MARKS)}): \S")
_KNOWN = {
    "math": math,
    "Fraction": Fraction,
    "NormalDist": NormalDist,
    "float": float,
    "int": int,
    "round": round,
}


@dataclass(frozen=True)
class Constant:
    """A chosen number: where it is, and whether a comment says where it comes from."""

    place: str
    name: str
    value: str
    is_derived: bool

    def __str__(self) -> str:
        return f"{self.place} {self.name} = {self.value}"


def constants(source: str, place: str) -> list[Constant]:
    """Return the chosen numbers of one module; a tuple of numbers counts as so many."""
    lines = source.splitlines()
    marked = _marked_lines(source)
    found = []
    for node in ast.parse(source).body:
        for name, value in _assigned(node):
            for number in _numbers(value):
                if not _is_chosen(number):
                    continue
                says = _says_why(lines, marked, node)
                found.append(Constant(f"{place}:{node.lineno}", name, ast.unparse(number), says))
    return found


def of_tree(root: Path) -> dict[str, list[Constant]]:
    """Return the chosen numbers of every room below ``root``."""
    rooms: dict[str, list[Constant]] = {}
    for path in sorted(root.rglob("*.py")):
        place = path.relative_to(root)
        room = place.parts[0] if len(place.parts) > 1 else "."
        rooms.setdefault(room, []).extend(constants(path.read_text(), str(place)))
    return rooms


def _assigned(node: ast.stmt) -> Iterator[tuple[str, ast.expr]]:
    """Yield each name that a statement gives a value, with the value."""
    if isinstance(node, ast.AnnAssign) and node.value is not None:
        yield ast.unparse(node.target), node.value
    if not isinstance(node, ast.Assign):
        return
    target, value = node.targets[0], node.value
    names = target.elts if isinstance(target, ast.Tuple) else [target]
    values = [value] * len(names)
    if isinstance(target, ast.Tuple) and isinstance(value, ast.Tuple):
        values = value.elts
    for name, each in zip(names, values, strict=True):
        yield ast.unparse(name), each


def _numbers(value: ast.expr) -> list[ast.expr]:
    """Return the numbers of a value that is written with numbers only; none for other values."""
    parts = value.elts if isinstance(value, ast.Tuple) else [value]
    return parts if parts and all(_is_numeric(part) for part in parts) else []


def _is_numeric(node: ast.expr) -> bool:
    names = {each.id for each in ast.walk(node) if isinstance(each, ast.Name)}
    literals = [each.value for each in ast.walk(node) if isinstance(each, ast.Constant)]
    plain = all(isinstance(each, int | float) and not isinstance(each, bool) for each in literals)
    folded = isinstance(
        node, ast.Constant | ast.BinOp | ast.UnaryOp | ast.Call | ast.Tuple | ast.Attribute
    )
    return folded and plain and bool(literals) and names <= set(_KNOWN)


def _is_chosen(number: ast.expr) -> bool:
    if isinstance(number, ast.Tuple):
        return any(_is_chosen(each) for each in number.elts)
    code = compile(ast.Expression(number), "<constant>", "eval")
    value = float(eval(code, {"__builtins__": {}}, dict(_KNOWN)))
    return value != 0.0 and math.frexp(abs(value))[0] != 0.5


def _marked_lines(source: str) -> set[int]:
    """Return the lines of comments that begin with a mark."""
    tokens = tokenize.generate_tokens(io.StringIO(source).readline)
    return {
        token.start[0]
        for token in tokens
        if token.type == tokenize.COMMENT and _MARKED.match(token.string)
    }


def _says_why(lines: list[str], marked: set[int], node: ast.stmt) -> bool:
    """Whether a marked comment stands on the lines of a statement or in the block above it."""
    if marked & set(range(node.lineno, (node.end_lineno or node.lineno) + 1)):
        return True
    above = node.lineno - 1
    while above >= 1 and lines[above - 1].startswith("#"):
        if above in marked:
            return True
        above -= 1
    return False
