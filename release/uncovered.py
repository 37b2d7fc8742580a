"""Read a coverage run for its error paths: list every ``raise`` that no test has reached.

Run by ``make coverage``, after the tests. The exit code is 1 if there is one in the room that was
asked for, so that a refusal which nobody has seen does not stay.
"""

from __future__ import annotations

import ast
import json
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]


def raises(source: str) -> dict[int, int]:
    r"""Return the first and the last line of each ``raise`` in a text.

    >>> raises("if x:\n    raise ValueError(\n        'x')\n")
    {2: 3}
    """
    return {
        node.lineno: node.end_lineno or node.lineno
        for node in ast.walk(ast.parse(source))
        if isinstance(node, ast.Raise)
    }


def unreached(report: dict[str, dict[str, list[int]]], root: Path) -> list[str]:
    """Return ``file:line`` of each ``raise`` whose first line was not run."""
    found = []
    for name, lines in sorted(report.items()):
        absent = set(lines["missing_lines"])
        for line in raises((root / name).read_text(encoding="utf-8")):
            if line in absent:
                found.append(f"{name}:{line}")
    return found


def main() -> int:
    room = f"src/quorate/{sys.argv[1]}/*" if len(sys.argv) > 1 else "src/quorate/*"
    coverage = [sys.executable, "-m", "coverage"]
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "coverage.json"
        subprocess.run([*coverage, "json", "-q", "--include", room, "-o", str(path)], check=True)
        report = json.loads(path.read_text(encoding="utf-8"))
    print(f"{report['totals']['percent_covered_display']} % of lines and branches are run.")
    found = unreached(report["files"], ROOT)
    print(f"{len(found)} refusals are reached by no test.", *found, sep="\n")
    return int(bool(found) and len(sys.argv) > 1)


if __name__ == "__main__":
    sys.exit(main())
