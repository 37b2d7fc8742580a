"""Plays the first page of the documents and five roles in an environment of its own.

Run ``python benchmarks/walk.py``: the wheel is built and put into a new environment that sees its
declared dependencies and nothing else (no test tools, no checkout); then every block and command of
``docs/start.md`` is run there, timed, and its answer compared with the table that the page makes.
After it come the walks of ``benchmarks/walks``, one for each role: what somebody in data science,
at a terminal, in a privacy office, in phone engineering or in statistics does on the first day,
with the mistakes they make. Each of them checks its own answers. ``--role`` plays one of them.
``--full`` begins with an empty environment and ``pip install`` instead, and ``--python`` names
another Python for it. The exit code is 1 if a step fails, is wrong, or takes five minutes.
"""

from __future__ import annotations

import argparse
import csv
import importlib.metadata
import re
import shlex
import subprocess
import sys
import tempfile
import time
import venv
import zipfile
from dataclasses import dataclass
from pathlib import Path

from packaging.requirements import Requirement

ROOT = Path(__file__).parents[1]
LIMIT = 300.0
ROLES = {each.stem: each for each in sorted((ROOT / "benchmarks" / "walks").glob("*.py"))}
SCRIPT = "#!{python}\nimport sys\nfrom quorate.app.cli import main\nsys.exit(main())\n"


@dataclass(frozen=True)
class Step:
    """One step of the walk: what was run, how it ended, what it said, how long it took."""

    name: str
    code: int
    said: str
    seconds: float


def build(folder: Path) -> Path:
    """Build the wheel; the build backend comes with the test tools."""
    command = [sys.executable, "-m", "build", "--wheel", "--no-isolation", "--outdir", str(folder)]
    run = subprocess.run([*command, str(ROOT)], capture_output=True, text=True, check=False)
    if run.returncode:
        raise SystemExit(run.stdout[-2000:] + run.stderr[-2000:])
    (wheel,) = folder.glob("*.whl")
    return wheel


def needed(name: str, found: dict[str, importlib.metadata.Distribution], extra: str = "") -> None:
    """Collect a distribution and all that it declares to need, with one extra or none."""
    distribution = importlib.metadata.distribution(name)
    for line in distribution.requires or ():
        requirement = Requirement(line)
        known = requirement.name.lower().replace("_", "-")
        if known in found:
            continue
        if requirement.marker is None or requirement.marker.evaluate({"extra": extra}):
            try:
                found[known] = importlib.metadata.distribution(known)
            except importlib.metadata.PackageNotFoundError:
                continue
            needed(known, found)


def quick_environment(folder: Path, wheel: Path) -> Path:
    """Return the programs of an environment with the wheel and links to its dependencies."""
    home = folder / "env"
    venv.create(home, with_pip=False, symlinks=True)
    (packages,) = home.glob("lib/python*/site-packages")
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(packages)
    found: dict[str, importlib.metadata.Distribution] = {}
    needed("quorate", found, extra="serve")
    for distribution in found.values():
        tops = {file.parts[0] for file in distribution.files or () if file.parts[0] != ".."}
        for top in tops - {"__pycache__"}:
            place = packages / top
            if not place.exists():
                place.symlink_to(Path(str(distribution.locate_file(top))))
    program = home / "bin" / "quorate"
    program.write_text(SCRIPT.format(python=home / "bin" / "python"))
    program.chmod(0o755)
    return home / "bin"


def full_environment(folder: Path, wheel: Path, python: str) -> Path:
    """Return the programs of an environment into which pip installed the wheel."""
    home = folder / "env"
    subprocess.run([python, "-m", "venv", str(home)], check=True)
    pip = [str(home / "bin" / "python"), "-m", "pip", "install", "--quiet"]
    subprocess.run([*pip, "--disable-pip-version-check", f"{wheel}[serve]"], check=True)
    return home / "bin"


def page() -> tuple[list[str], list[str]]:
    """Return the blocks of Python and the commands of the first page."""
    text = (ROOT / "docs" / "start.md").read_text(encoding="utf-8")
    blocks = re.findall(r"```python\n(.*?)```", text, re.S)
    return blocks, re.findall(r"^quorate (.*)$", text, re.M)


def play(programs: Path, folder: Path) -> list[Step]:
    """Run the page in ``folder``: all blocks in one Python, then each command."""
    blocks, commands = page()
    (folder / "page.py").write_text("\n".join(blocks), encoding="utf-8")
    todo = [("python", [str(programs / "python"), "page.py"])]
    todo += [(line, [str(programs / "quorate"), *shlex.split(line)]) for line in commands]
    return [run_step(name, command, programs, folder) for name, command in todo]


def play_role(role: str, programs: Path, folder: Path) -> Step:
    """Run the walk of one role in a folder of its own; it ends with 0 if all it saw was right."""
    place = folder / role
    place.mkdir()
    # -P: the folder of the scripts holds no modules for each other.
    command = [str(programs / "python"), "-P", str(ROLES[role]), str(programs)]
    return run_step(role, command, programs, place)


def run_step(name: str, command: list[str], programs: Path, folder: Path) -> Step:
    """Run a command that sees the programs of the environment and nothing else."""
    start = time.perf_counter()
    run = subprocess.run(
        command,
        cwd=folder,
        env={"PATH": str(programs), "HOME": str(folder), "COLUMNS": "200"},
        capture_output=True,
        text=True,
        check=False,
    )
    taken = time.perf_counter() - start
    return Step(name, run.returncode, run.stdout + run.stderr, taken)


def exact(folder: Path) -> dict[str, float]:
    """Return what the page asks, without privacy."""
    with (folder / "visits.csv").open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    north = [row for row in rows if row["clinic"] == "north"]
    return {
        "visits": float(len(north)),
        "pressure": sum(float(row["pressure"]) for row in rows) / len(rows),
        "age": sum(float(row["age"]) for row in rows) / len(rows),
    }


def failures(steps: list[Step]) -> list[str]:
    """Return the steps that failed or took too long."""
    found = [
        f"{step.name}: exit code {step.code}: {step.said[-800:]}" for step in steps if step.code
    ]
    return found + [f"{step.name}: {step.seconds:.0f} s" for step in steps if step.seconds > LIMIT]


def mistakes(steps: list[Step], folder: Path) -> list[str]:
    """Return what is wrong with the answers of the page; nothing if all is well."""
    found = failures(steps)
    if found:
        return found
    truth = exact(folder)
    # So far off is somebody else's answer; noise is less than half as far, but once in a million.
    with (folder / "table.csv").open(encoding="utf-8", newline="") as file:
        table = {row["clinic"]: row for row in csv.DictReader(file)}
    if not abs(float(table["north"]["visits"]) - truth["visits"]) < 0.45 * truth["visits"]:
        found.append("the table counts other visits")
    if not abs(float(table["north"]["pressure"]) - truth["pressure"]) < 40:
        found.append("the table has another mean")
    means = re.search(r"'age': \S*?([\d.]+)\)?, 'pressure': \S*?([\d.]+)\)?}", steps[0].said)
    if means is None or abs(float(means[1]) - truth["age"]) > 15:
        found.append(f"the mean of ages is missing or wrong: {steps[0].said[-400:]}")
    if means is not None and abs(float(means[2]) - truth["pressure"]) > 25:
        found.append("the mean of pressures is wrong")
    if not (folder / "model.json").exists():
        found.append("there is no model")
    predictions = next(step.said for step in steps if step.name.startswith("predict"))
    if len(predictions.split()) != 12_001:
        found.append("not every row has a prediction")
    return found


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--full", action="store_true", help="pip install into an empty environment")
    parser.add_argument("--python", default=sys.executable, help="which Python, with --full")
    parser.add_argument("--role", choices=list(ROLES), help="one walk, and not the first page")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        wheel = build(folder)
        start = time.perf_counter()
        programs = (
            full_environment(folder, wheel, given.python)
            if given.full
            else quick_environment(folder, wheel)
        )
        print(f"{time.perf_counter() - start:8.1f} s  an environment with {wheel.name}")
        wrong: list[str] = []
        steps = [] if given.role else play(programs, folder)
        if steps:
            wrong += mistakes(steps, folder)
        walks = [
            play_role(role, programs, folder) for role in ([given.role] if given.role else ROLES)
        ]
        wrong += failures(walks)
        for step in (*steps, *walks):
            print(f"{step.seconds:8.1f} s  exit {step.code}  {step.name[:90]}")
    print("\n".join(wrong) or "every answer is there and about right")
    return int(bool(wrong))


if __name__ == "__main__":
    sys.exit(main())
