"""Break privacy on purpose, once per mutant, and see which tests notice: ``make mutants``.

A mutant is data, in one file for each room under ``catalogue``: a ``file`` of ``src/quorate``, an
``old`` text that stands there exactly once, the ``new`` text that breaks the promise, and the
``tests`` that must catch it. It is applied to a copy of the tree in a temporary directory, never to
the checkout. A mutant which changes no promise carries its reason as ``equivalent`` and is not run.
"""

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
import threading
import time
import tomllib
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from queue import SimpleQueue

ROOT = Path(__file__).parents[2]
CATALOGUE = Path(__file__).with_name("catalogue")
WARM = Path(__file__).with_name("warm.py")
COPIED = ("src", "tests", "docs", "README.md", "pyproject.toml")
# Seconds after which a run counts as broken: a mutant must fail a test, not stop the clock.
PATIENCE = 240
CAUGHT, SURVIVED, BROKEN = "caught", "survived", "BROKEN"


@dataclass(frozen=True, kw_only=True)
class Mutant:
    """One change of the source that breaks privacy, and the tests that must see it."""

    name: str
    room: str
    file: str
    old: str
    new: str
    tests: tuple[str, ...]
    quick: bool = False
    equivalent: str = ""

    def source(self, root=ROOT):
        return root / "src" / "quorate" / self.file


def catalogue(only=None):
    """Return every mutant, or those of the room ``only``."""
    found = []
    for path in sorted(CATALOGUE.glob("*.toml")):
        for entry in tomllib.loads(path.read_text())["mutant"]:
            entry["tests"] = tuple(entry["tests"])
            found.append(Mutant(room=path.stem, **entry))
    return [mutant for mutant in found if only in (None, mutant.room)]


class Copy:
    """A copy of the tree in which one mutant at a time is alive."""

    def __init__(self, root):
        self.root = Path(root)
        for name in COPIED:
            source, target = ROOT / name, self.root / name
            if source.is_dir():
                ignored = shutil.ignore_patterns("__pycache__", ".*")
                shutil.copytree(source, target, ignore=ignored)
            else:
                shutil.copy(source, target)
        # Compiled once; a changed source is noticed by its hash, whatever the clock says.
        mode = ["--invalidation-mode", "checked-hash"]
        subprocess.run(
            [sys.executable, "-m", "compileall", "-q", *mode, str(self.root / "src")], check=True
        )
        self._printed = self.root / "printed.txt"
        environment = os.environ | {"PYTHONPATH": str(self.root / "src"), "OMP_NUM_THREADS": "1"}
        for name in ("PYTEST_ADDOPTS", "PYTEST_XDIST_WORKER", "PYTEST_CURRENT_TEST"):
            environment.pop(name, None)
        self._warm = subprocess.Popen(
            [sys.executable, str(WARM), str(self._printed), str(PATIENCE)],
            cwd=self.root,
            env=environment,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    @contextmanager
    def applied(self, mutant):
        """Let the mutant live for the length of a ``with`` block."""
        path = mutant.source(self.root)
        before = path.read_text()
        if before.count(mutant.old) != 1:
            raise ValueError(f"{mutant.name}: the old text stands {before.count(mutant.old)} times")
        try:
            path.write_text(before.replace(mutant.old, mutant.new))
            yield
        finally:
            path.write_text(before)

    def run(self, tests):
        """Run tests in the copy; return pytest's exit code and what it printed."""
        self._warm.stdin.write(json.dumps(tests) + "\n")
        self._warm.stdin.flush()
        code = int(self._warm.stdout.readline())
        return code, self._printed.read_text(errors="replace")

    def close(self):
        """End the process of the copy."""
        self._warm.stdin.close()
        self._warm.wait()
        self._warm.stdout.close()

    def verdict(self, mutant):
        """Return whether its tests catch the mutant, and what pytest printed."""
        with self.applied(mutant):
            code, printed = self.run(mutant.tests)
        # 1: a test failed. 0: all passed. Anything else: nothing was tested.
        return {1: CAUGHT, 0: SURVIVED}.get(code, BROKEN), printed


def main(arguments=None):
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", metavar="ROOM", help="run the mutants of one room")
    parser.add_argument("--name", metavar="TEXT", default="", help="run those whose name has TEXT")
    parser.add_argument("--jobs", type=int, default=1, metavar="N", help="copies at work at once")
    parser.add_argument(
        "--verbose", action="store_true", help="print what pytest says of survivors"
    )
    asked = parser.parse_args(arguments)
    every = [mutant for mutant in catalogue(asked.only) if asked.name in mutant.name]
    alive = [mutant for mutant in every if not mutant.equivalent]
    if not alive:
        parser.error("no mutant of that room and name")

    printing = threading.Lock()
    verdicts = Counter()
    copies = SimpleQueue()

    def judge(mutant):
        copy, begun = copies.get(), time.monotonic()
        try:
            verdict, printed = copy.verdict(mutant)
        finally:
            copies.put(copy)
        with printing:
            verdicts[verdict] += 1
            seconds = time.monotonic() - begun
            print(f"{verdict:8} {seconds:5.1f} s  {mutant.room}: {mutant.name}", flush=True)
            if verdict != CAUGHT and asked.verbose:
                print(printed)

    with tempfile.TemporaryDirectory(prefix="mutants-") as folder:
        for job in range(asked.jobs):
            copies.put(Copy(Path(folder) / str(job)))
        # A test that fails on healthy code would catch everything.
        healthy = copies.get()
        for room in sorted({mutant.room for mutant in alive}):
            tests = {test for mutant in alive if mutant.room == room for test in mutant.tests}
            code, printed = healthy.run(sorted(tests))
            if code != 0:
                print(printed)
                print(f"Tests of {room} do not pass on the source as it is: nothing was tried.")
                return 2
        copies.put(healthy)
        with ThreadPoolExecutor(asked.jobs) as pool:
            list(pool.map(judge, alive))

    for mutant in every:
        if mutant.equivalent:
            print(f"equivalent        {mutant.room}: {mutant.name} ({mutant.equivalent})")
    counts = ", ".join(f"{verdicts[kind]} {kind}" for kind in (CAUGHT, SURVIVED, BROKEN))
    print(f"{len(alive)} mutants: {counts}; {len(every) - len(alive)} more are equivalent.")
    return 0 if verdicts[CAUGHT] == len(alive) else 1


if __name__ == "__main__":
    sys.exit(main())
