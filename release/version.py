"""The version of a build, from the last tag; the build backend runs this file.

* In an sdist it stands in ``PKG-INFO``.
* At a tag ``v0.2.0`` it is 0.2.0; 5 commits later 0.2.1.dev5+g<commit>.
* In a clone without tags, or without git, it is a development version of the release that the
  change log describes first: 0.2.0.dev<commits>+g<commit>, or 0.2.0.dev0.
"""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]


def version(root: Path = ROOT) -> str:
    """Return the version of the sources in ``root``."""
    info = root / "PKG-INFO"
    if info.is_file():
        found = re.search(r"^Version: (\S+)$", info.read_text(encoding="utf-8"), re.M)
        if found is not None:
            return found[1]
    described = _git(root, "describe", "--tags", "--long", "--match", "v[0-9]*")
    tagged = re.fullmatch(r"v(\d+)\.(\d+)\.(\d+)-(\d+)-g([0-9a-f]+)", described or "")
    if tagged is not None:
        major, minor, patch, later = map(int, tagged.groups()[:4])
        if later == 0:
            return f"{major}.{minor}.{patch}"
        return f"{major}.{minor}.{patch + 1}.dev{later}+g{tagged[5]}"
    planned, commit = planned_version(root), _git(root, "rev-parse", "--short", "HEAD")
    if commit is None:
        return f"{planned}.dev0"
    return f"{planned}.dev{_git(root, 'rev-list', '--count', 'HEAD')}+g{commit}"


def planned_version(root: Path = ROOT) -> str:
    """Return the release that the change log describes first."""
    found = re.search(
        r"^## (\d+\.\d+\.\d+)", (root / "CHANGELOG.md").read_text(encoding="utf-8"), re.M
    )
    if found is None:
        raise SystemExit("Expected CHANGELOG.md with a heading such as '## 0.2.0'.")
    return found[1]


def _git(root: Path, *arguments: str) -> str | None:
    # A checkout of our own: not a repository somewhere above an unpacked archive.
    if not (root / ".git").exists():
        return None
    command = ["git", "-C", str(root), *arguments]
    try:
        run = subprocess.run(command, capture_output=True, text=True, check=False, timeout=30)
    except (OSError, subprocess.TimeoutExpired):
        return None
    return run.stdout.strip() or None if run.returncode == 0 else None
