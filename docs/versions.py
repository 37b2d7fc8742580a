"""Give every version of the site a folder, and the folders a list that all of them show.

``python docs/versions.py folder`` prints the name of the folder of this version; ``python
docs/versions.py list docs/_build/html`` writes what the version switcher reads, and a first page
that leads to the newest release. The list is a script and not JSON, because a browser refuses to
fetch JSON for a page that was opened from a disk.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

from packaging.version import InvalidVersion, Version

DEVELOPMENT = "dev"

FIRST_PAGE = """<!doctype html>
<meta charset="utf-8">
<title>Quorate</title>
<meta http-equiv="refresh" content="0; url={newest}/index.html">
<a href="{newest}/index.html">Quorate {newest}</a>
"""


def folder_name(version: str) -> str:
    """Return the folder of a version: all versions between releases share one."""
    parsed = Version(version)
    return DEVELOPMENT if parsed.is_devrelease else parsed.public


def built(site: Path) -> list[str]:
    """Return the versions that were built, the newest release first and development last."""
    names = [page.parent.name for page in site.glob("*/index.html")]
    releases = [name for name in names if _is_release(name)]
    others = [DEVELOPMENT] if DEVELOPMENT in names else []
    return sorted(releases, key=Version, reverse=True) + others


def write_list(site: Path) -> None:
    """Write the list of versions and the first page into ``site``."""
    found = built(site)
    (site / "versions.js").write_text(f"window.quorateVersions = {json.dumps(found)};\n")
    (site / "index.html").write_text(FIRST_PAGE.format(newest=found[0]))


def _is_release(name: str) -> bool:
    try:
        Version(name)
    except InvalidVersion:
        return False
    return True


if __name__ == "__main__":
    import quorate

    if sys.argv[1] == "folder":
        print(folder_name(quorate.__version__))
    else:
        write_list(Path(sys.argv[2]))
