"""Write constraints.txt: what is installed here of all that the project declares to need."""

from __future__ import annotations

import re
import sys
import tomllib
from collections.abc import Iterator
from importlib import metadata
from pathlib import Path
from typing import Any

from packaging.requirements import Requirement

ROOT = Path(__file__).resolve().parents[1]
OPENING = """\
# The versions that the tests of this commit ran with: make test CONSTRAINTS=constraints.txt, or
# pip install -c constraints.txt quorate. `make constraints` writes this file anew from .venv.
"""


def declared(project: dict[str, Any]) -> Iterator[str]:
    """Yield all requirements of a pyproject.toml: of the package, its extras and its groups."""
    yield from project["project"]["dependencies"]
    for extra in project["project"]["optional-dependencies"].values():
        yield from extra
    for group in project["dependency-groups"].values():
        yield from (line for line in group if isinstance(line, str))
    yield from project["build-system"]["requires"]


def collect(line: str, found: dict[str, str], seen: set[str], extras: tuple[str, ...]) -> None:
    """Add the version of a requirement that is installed, and of whatever it needs."""
    requirement = Requirement(line)
    marker = requirement.marker
    if marker is not None and not any(marker.evaluate({"extra": each}) for each in extras):
        return
    name = re.sub(r"[-_.]+", "-", requirement.name).lower()
    key = f"{name}{sorted(requirement.extras)}"
    if key in seen or name in ("quorate", "pip", "setuptools"):
        return
    seen.add(key)
    try:
        distribution = metadata.distribution(name)
    except metadata.PackageNotFoundError:
        return
    found[name] = distribution.version
    for need in distribution.requires or ():
        collect(need, found, seen, ("", *requirement.extras))


def main() -> int:
    found: dict[str, str] = {}
    seen: set[str] = set()
    for line in declared(tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))):
        collect(line, found, seen, ("",))
    lines = "".join(f"{name}=={found[name]}\n" for name in sorted(found))
    (ROOT / "constraints.txt").write_text(OPENING + lines, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
