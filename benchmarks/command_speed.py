"""Compares the command line with Python on one CSV file, by the processor time of both.

Run ``python benchmarks/command_speed.py --megabytes 169``. Both read the same file and release the
same mean; the command also counts the rows that could not be read and adds a forecast. The ratio
of processor times depends little on what else the machine does.
"""

from __future__ import annotations

import argparse
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import pyarrow as pa
from pyarrow import csv

OCTETS_A_ROW = 33.2
FEATURES = ("age", "bmi", "lab", "stay")
PYTHON = """
import sys
import quorate as qr
people = qr.UserData.from_csv(sys.argv[1], user="patient", features={features})
qr.UserMean(epsilon=1.0, delta=1e-6, bounds=300.0).fit(people)
"""
COMMAND = "import sys; from quorate.app.cli import main; sys.exit(main(sys.argv[1:]))"


def write_table(path: Path, megabytes: float) -> None:
    """Write patients with four measurements a visit."""
    rng = np.random.default_rng(0)
    n = int(megabytes * 1e6 / OCTETS_A_ROW)
    columns = {
        "patient": rng.integers(0, max(1, n // 100), n),
        "age": np.round(rng.normal(50, 15, n), 1),
        "bmi": np.round(rng.normal(25, 4, n), 2),
        "lab": np.round(rng.normal(200, 60, n), 3),
        "ward": rng.integers(0, 9, n),
        "stay": np.round(rng.exponential(4, n), 4),
    }
    csv.write_csv(pa.table(columns), path)


def seconds(command: list[str]) -> tuple[float, float]:
    """Return processor time and wall time of a program that must succeed."""
    before, start = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    after, end = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    used = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return used, end - start


def main() -> None:
    """Print both times and their ratio, the best of some runs of each."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--megabytes", type=float, default=20.0)
    parser.add_argument("--runs", type=int, default=2)
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "visits.csv"
        write_table(path, asked.megabytes)
        script = PYTHON.format(features=list(FEATURES))
        options = f"--task mean --user patient --features {','.join(FEATURES)} --bounds 300"
        options += " --epsilon 1 --delta 1e-6"
        runs = {
            "Python": [sys.executable, "-c", script, str(path)],
            "command": [sys.executable, "-c", COMMAND, "fit", str(path), *options.split()],
        }
        best = {
            name: min(seconds(command) for _ in range(asked.runs)) for name, command in runs.items()
        }
    print(f"{asked.megabytes:g} MB of CSV, best of {asked.runs}")
    for name, (used, passed) in best.items():
        print(f"{name:8} processor {used:6.1f} s   wall {passed:6.1f} s")
    print(f"ratio of processor times {best['command'][0] / best['Python'][0]:.2f}")


if __name__ == "__main__":
    main()
