"""Make a release: check, build, try the wheel in an empty environment, write the notes.

Run ``python release/release.py`` at a tagged commit (``git tag v0.2.0``); ``--rehearse`` does the
same at any commit. In ``dist/`` there are then the sdist, the wheel and ``NOTES.md``, the change
log of this release. Nothing is uploaded: that is the last step, by hand or by the workflow.

The exit code is 1 if anything is missing, and each reason is said in one line.
"""

from __future__ import annotations

import argparse
import hashlib
import re
import shutil
import subprocess
import sys
import tarfile
import tomllib
import venv
import zipfile
from pathlib import Path
from tempfile import TemporaryDirectory

sys.path.insert(0, str(Path(__file__).parent))
from version import ROOT, planned_version, version

TRIAL = """
import numpy as np, pathlib, sys
import quorate as qr
assert pathlib.Path(qr.__file__).is_relative_to(sys.prefix), qr.__file__
assert qr.__version__ == sys.argv[1], qr.__version__
X = np.random.default_rng(0).normal(50.0, 5.0, (4000, 1))
mean = qr.UserMean(epsilon=1.0, bounds=(0.0, 100.0)).fit(X, users=np.arange(4000) % 400)
assert abs(mean.mean_[0] - 50.0) < 10.0, mean.mean_
print(mean.guarantee_)
"""


def notes(text: str, wanted: str) -> str:
    r"""Return what a change log says about one version.

    >>> notes("# Changes\n## 0.2.0 (today)\nNew.\n## 0.1.0\nOld.\n", "0.2.0")
    'New.'
    """
    found = re.search(
        rf"^## {re.escape(wanted)}(?![.\d])[^\n]*\n(.*?)(?=^## |\Z)", text, re.M | re.S
    )
    return "" if found is None else found[1].strip()


def problems(root: Path, made: str, *, rehearse: bool) -> list[str]:
    """Return why the sources in ``root`` are not ready for a release; nothing if they are."""
    found = []
    planned, log = planned_version(root), (root / "CHANGELOG.md").read_text(encoding="utf-8")
    if not rehearse and made != planned:
        found.append(f"The commit is {made}, the change log describes {planned}: tag v{planned}.")
    if not rehearse and "(unreleased)" in log:
        found.append("CHANGELOG.md still says (unreleased).")
    if not notes(log, planned):
        found.append(f"CHANGELOG.md says nothing about {planned}.")
    if f"version: {planned}" not in (root / "CITATION.cff").read_text(encoding="utf-8"):
        found.append(f"CITATION.cff is not about {planned}.")
    project = tomllib.loads((root / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    origin = _said("git", "-C", str(root), "remote", "get-url", "origin")
    source = project.get("urls", {}).get("Source")
    if not rehearse and source is None:
        found.append("pyproject.toml has no [project.urls]: write Source, Issues and Changelog.")
    elif not rehearse and source.removeprefix("https://") not in origin.replace(":", "/"):
        found.append(f"The origin is {origin or 'not set'}, the project links name {source}.")
    if not rehearse and _said("git", "-C", str(root), "status", "--porcelain"):
        found.append("The working tree has changes that are not committed.")
    return found


def build(root: Path, folder: Path) -> tuple[Path, Path]:
    """Build sdist and wheel, the wheel from the sdist; return both."""
    subprocess.run([sys.executable, "-m", "build", "--outdir", str(folder), str(root)], check=True)
    (sdist,), (wheel,) = folder.glob("*.tar.gz"), folder.glob("*.whl")
    return sdist, wheel


def check_contents(sdist: Path, wheel: Path) -> list[str]:
    """Return what should not be in the archives, or is missing there."""
    with zipfile.ZipFile(wheel) as archive:
        inside = archive.namelist()
    strange = [name for name in inside if not re.match(r"quorate(-[^/]*\.dist-info)?/", name)]
    found = [f"The wheel holds {name}." for name in strange[:5]]
    if "quorate/py.typed" not in inside:
        found.append("The wheel has no py.typed.")
    with tarfile.open(sdist) as packed:
        names = {name.partition("/")[2] for name in packed.getnames()}
    wanted = ("README.md", "CHANGELOG.md", "LICENSE", "release/version.py", "constraints.txt")
    return found + [f"The sdist has no {name}." for name in wanted if name not in names]


def try_wheel(wheel: Path, made: str, folder: Path) -> None:
    """Install the wheel into an empty environment and use it there, in Python and as a command."""
    home = folder / "env"
    venv.create(home, with_pip=True)
    python = str(home / "bin" / "python")
    pip = [python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", str(wheel)]
    subprocess.run(pip, check=True)
    # -I: a PYTHONPATH of the caller would bring the checkout in.
    subprocess.run([python, "-I", "-c", TRIAL, made], check=True, cwd=folder)
    said = _said(str(home / "bin" / "quorate"), "--version")
    if said != f"quorate {made}":
        raise SystemExit(f"Expected the command of {made}, it says {said!r}.")


def _said(*command: str) -> str:
    run = subprocess.run(command, capture_output=True, text=True, check=False)
    return run.stdout.strip()


def main() -> int:
    """Make the release."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--rehearse", action="store_true", help="at a commit without a tag")
    parser.add_argument("--outdir", type=Path, default=ROOT / "dist")
    given = parser.parse_args()
    made = version()
    wrong = problems(ROOT, made, rehearse=given.rehearse)
    if wrong:
        print("\n".join(wrong), file=sys.stderr)
        return 1
    with TemporaryDirectory() as place:
        folder = Path(place)
        sdist, wheel = build(ROOT, folder / "dist")
        if wrong := check_contents(sdist, wheel):
            print("\n".join(wrong), file=sys.stderr)
            return 1
        try_wheel(wheel, made, folder)
        given.outdir.mkdir(parents=True, exist_ok=True)
        said = notes((ROOT / "CHANGELOG.md").read_text(encoding="utf-8"), planned_version())
        sums = []
        for archive in (sdist, wheel):
            sums.append(f"{hashlib.sha256(archive.read_bytes()).hexdigest()}  {archive.name}")
            shutil.copy(archive, given.outdir)
    text = f"# Quorate {made}\n\n{said}\n\n## SHA-256\n\n```\n" + "\n".join(sums) + "\n```\n"
    (given.outdir / "NOTES.md").write_text(text, encoding="utf-8")
    print(f"{sdist.name}, {wheel.name} and NOTES.md are in {given.outdir}.")
    return 0


if __name__ == "__main__":
    sys.exit(main())
