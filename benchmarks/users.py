"""Grouping by user and the exact sum of clipped user means, beside polars' group-by.

The same table on both sides, in one run: 5,000,000 records of 100,000 users, 20 columns, ids in
random order. Limits: 1.5 times the time of polars' ``group_by(user).mean()`` on its own in-memory
frame (each side is timed several times, in turns, and the best time counts), and a peak memory of
2.5 times the table, *the table itself included*. Memory is measured in a process of its own that
builds the table, then groups and sums: the growth of its largest resident size since the imports.
"""

from __future__ import annotations

import resource
import subprocess
import sys
import time

import numpy as np

from quorate.core.bounds.grid import Ball
from quorate.core.guarantees import Relation
from quorate.core.people import People
from quorate.core.users import UserData
from quorate.data.engines import UserMeans
from quorate.mechanisms.sums import choose_grid

RECORDS, COLUMNS, USERS = 5_000_000, 20, 100_000
ROUNDS = 5
LIMIT_TIME, LIMIT_MEMORY = 1.5, 2.5


def make_table():
    rng = np.random.default_rng(0)
    X = np.empty((RECORDS, COLUMNS))
    for start in range(0, RECORDS, 100_000):
        X[start : start + 100_000] = rng.standard_normal((100_000, COLUMNS))
    users = rng.integers(0, USERS, RECORDS) * 7919 + 13
    return X, users


def sum_of_means(X, users):
    people = UserData.from_arrays(X, users=users)
    statistic = UserMeans(Ball(0.5, dimension=COLUMNS))
    grid = choose_grid(statistic.bound, n_users=USERS)
    return People(people, Relation.REPLACE).total(statistic, grid)


def seconds(work):
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


def peak_bytes():
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


def measure_memory():
    """Print the growth of the peak over the size of the table; runs in its own process."""
    warm_up = np.arange(1000.0).reshape(-1, 1), np.arange(1000)
    UserData.from_arrays(*warm_up[:1], users=warm_up[1]).user_means()
    before = peak_bytes()
    X, users = make_table()
    sum_of_means(X, users)
    print((peak_bytes() - before) / (X.nbytes + users.nbytes))


def main():
    import polars as pl

    command = [sys.executable, __file__, "--memory"]
    run = subprocess.run(command, capture_output=True, text=True, check=True)
    memory = float(run.stdout)

    X, users = make_table()
    columns = {f"x{j}": np.ascontiguousarray(X[:, j]) for j in range(COLUMNS)}
    frame = pl.DataFrame({"user": users, **columns})
    ours, theirs = [], []
    for _ in range(ROUNDS):
        ours.append(seconds(lambda: sum_of_means(X, users)))
        theirs.append(seconds(lambda: frame.group_by("user").mean()))
    ratio = min(ours) / min(theirs)
    print(f"{RECORDS:,} records x {COLUMNS} columns, {USERS:,} users")
    print(f"quorate: group and sum clipped means  {min(ours):8.3f} s")
    print(f"polars: group_by(user).mean()         {min(theirs):8.3f} s")
    print(f"time    ratio {ratio:5.2f}   limit {LIMIT_TIME}")
    print(f"memory  ratio {memory:5.2f}   limit {LIMIT_MEMORY}   (peak, table included)")
    return 0 if ratio <= LIMIT_TIME and memory <= LIMIT_MEMORY else 1


if __name__ == "__main__":
    if "--memory" in sys.argv:
        measure_memory()
    else:
        sys.exit(main())
