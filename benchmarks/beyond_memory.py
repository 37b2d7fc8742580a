"""More records than memory: from Parquet files to a released mean, and a round of a logistic model.

Ten columns of 32-bit floats, 100 records a user, ids in random order, ten files. Each measurement
runs in a process of its own, so that its peak memory is its own. Limits: 1 GB and 4 times one scan
of the same files by pyarrow for the mean; 3 times a plain numpy pass over the same mapped arrays
for a logistic round; 60 ms for an almost empty round on Dask with 8 parts and 1.6 s on Spark.

``--rows 1e8`` is the size the limits are meant for; the default is a hundredth of it. ``--folder``
keeps the files. Spark is left out without Java. Of rounds the fastest counts: what else runs on the
machine only makes rounds slower.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

COLUMNS = 10
FILES = 10


def make_files(rows, folder):
    import pyarrow as pa
    import pyarrow.parquet as pq

    rng = np.random.default_rng(0)
    each, users = rows // FILES, max(1, rows // 100)
    for number in range(FILES):
        path = folder / f"{number}.parquet"
        if path.exists():
            continue
        writer = None
        for start in range(0, each, 10**6):
            size = min(10**6, each - start)
            columns = {"user": rng.integers(0, users, size) * 7919 + 13}
            for j in range(COLUMNS):
                columns[f"x{j}"] = rng.standard_normal(size, dtype=np.float32)
            table = pa.table(columns)
            writer = writer or pq.ParquetWriter(path, table.schema)
            writer.write_table(table)
        writer.close()


def peak_gigabytes():
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20


def timed(work):
    start = time.perf_counter()
    result = work()
    return time.perf_counter() - start, result


def scan(folder):
    import pyarrow.dataset as ds

    def walk():
        return sum(batch.num_rows for batch in ds.dataset(folder, format="parquet").to_batches())

    seconds, rows = timed(walk)
    return {"seconds": seconds, "rows": rows}


def mean(folder):
    from quorate.data.engines.files import FileCrowd
    from quorate.means import UserMean

    def fit():
        crowd = FileCrowd.from_parquet(folder, user="user")
        return UserMean(1.0, delta=1e-6, bounds=100.0).fit(crowd)

    seconds, fitted = timed(fit)
    return {
        "seconds": seconds,
        "gigabytes": peak_gigabytes(),
        "route": fitted.algorithm_.name,
        "mean": float(np.abs(fitted.mean_).max()),
    }


def logistic(folder):
    """One round over the spool, and the same sums by plain numpy over the same mapped arrays."""
    from quorate.core.bounds.grid import Ball
    from quorate.core.guarantees import Relation
    from quorate.core.people import People
    from quorate.data.engines.files import FileCrowd
    from quorate.mechanisms.sums import choose_grid
    from quorate.mechanisms.user_releases import BoundedVectors
    from quorate.models import LogisticLoss

    features = [f"x{j}" for j in range(1, COLUMNS)]
    crowd = FileCrowd.from_parquet(folder, user="user", features=features, target="x0")
    crowd.map(_settle)
    theta = np.linspace(-1.0, 1.0, COLUMNS)
    loss = LogisticLoss()
    bound = Ball(1.0, dimension=COLUMNS)
    grid = choose_grid(bound, n_users=crowd.n_users)

    def gradients(users):
        return loss.user_gradients(users, theta)

    def plain():
        parts = sorted(crowd._parts[0].spool.folder.glob("*.x.npy"))
        total = np.zeros(COLUMNS - 1)
        for path in parts:
            name = str(path)[: -len("x.npy")]
            rows = np.load(path, mmap_mode="r").astype(np.float64)
            y = np.load(name + "y.npy", mmap_mode="r")
            offsets = np.load(name + "offsets.npy")
            slopes = 1.0 / (1.0 + np.exp(-(rows @ theta[:-1] + theta[-1]))) - y
            sums = np.add.reduceat(rows * slopes[:, None], offsets[:-1], axis=0)
            sums /= np.diff(offsets)[:, None]
            norms = np.linalg.norm(sums, axis=1, keepdims=True)
            total += (sums / np.maximum(norms, 1.0)).sum(axis=0)
        return total

    statistic = BoundedVectors(gradients, bound)
    people = People(crowd, Relation.REPLACE)
    rounds = [timed(lambda: people.total(statistic, grid))[0] for _ in range(3)]
    numpy_rounds = [timed(plain)[0] for _ in range(3)]
    return {"seconds": min(rounds), "numpy": min(numpy_rounds), "gigabytes": peak_gigabytes()}


def _settle(part):
    return float(part.X[:1].sum())


def small_frame():
    import pandas as pd

    rng = np.random.default_rng(0)
    users = rng.integers(0, 100, 2000)
    return pd.DataFrame({"user": users, "x": rng.standard_normal(2000)})


def rounds_of(crowd):
    from quorate.core.guarantees import Relation
    from quorate.core.people import People
    from quorate.core.users import UserData

    thresholds, people = np.arange(8.0), People(crowd, Relation.REPLACE)
    times = [timed(lambda: people.counts(UserData.record_counts, thresholds))[0] for _ in range(30)]
    # The first rounds import modules and warm up the Java compiler.
    return {"median": float(np.median(times[10:])), "fastest": min(times)}


def dask_round(_):
    import dask.dataframe as dd
    from distributed import Client, LocalCluster

    from quorate.data.engines.dask import DaskCrowd

    with (
        LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None) as cluster,
        Client(cluster) as client,
    ):
        frame = dd.from_pandas(small_frame(), npartitions=2)
        return rounds_of(DaskCrowd.from_frame(frame, user="user", client=client, n_parts=8))


def spark_round(_):
    from pyspark.sql import SparkSession

    from quorate.data.engines.spark import SparkCrowd

    builder = SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false")
    session = builder.config("spark.ui.showConsoleProgress", "false").getOrCreate()
    session.sparkContext.setLogLevel("OFF")
    frame = session.createDataFrame(small_frame())
    return rounds_of(SparkCrowd.from_frame(frame, user="user", n_parts=8))


WORK = {
    "scan": scan,
    "mean": mean,
    "logistic": logistic,
    "dask": dask_round,
    "spark": spark_round,
}


def measured(name, folder):
    environment = dict(os.environ, OMP_NUM_THREADS="1", PYSPARK_PYTHON=sys.executable)
    command = [sys.executable, __file__, "--measure", name, "--folder", str(folder)]
    run = subprocess.run(command, capture_output=True, text=True, check=False, env=environment)
    if run.returncode:
        return {"error": run.stderr.strip().splitlines()[-1:]}
    return json.loads(run.stdout.strip().splitlines()[-1])


def report(rows, folder):
    make_files(rows, folder)
    measured("scan", folder)  # the first one finds cold files
    scanned, released = measured("scan", folder), measured("mean", folder)
    ratio = released["seconds"] / scanned["seconds"]
    print(f"rows {rows:.0e}, {COLUMNS} columns of float32")
    print(f"one scan by pyarrow              {scanned['seconds']:8.1f} s")
    print(
        "Parquet to a released mean      "
        f" {released['seconds']:8.1f} s = {ratio:.1f} scans (limit 4)"
    )
    print(f"  peak memory                    {released['gigabytes']:8.2f} GB (limit 1)")
    model = measured("logistic", folder)
    ratio = model["seconds"] / model["numpy"]
    print(
        "a logistic round over the spool "
        f" {model['seconds']:8.2f} s = {ratio:.1f} plain rounds (limit 3)"
    )
    print(f"  peak memory                    {model['gigabytes']:8.2f} GB")
    dask = measured("dask", folder)
    print(f"an empty round on Dask, 8 parts  {told(dask)} (limit 60)")
    if shutil.which("java"):
        spark = measured("spark", folder)
        print(f"an empty round on Spark local[2] {told(spark)} (limit 1600)")


def told(rounds):
    """Return the fastest of some rounds, which other work on the machine disturbs least."""
    return f"{1000 * rounds['fastest']:8.0f} ms, median {1000 * rounds['median']:.0f} ms"


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=float, default=1e6)
    parser.add_argument("--folder", type=Path)
    parser.add_argument("--measure", choices=WORK)
    given = parser.parse_args()
    if given.measure:
        print(json.dumps(WORK[given.measure](given.folder)))
    elif given.folder:
        given.folder.mkdir(parents=True, exist_ok=True)
        report(int(given.rows), given.folder)
    else:
        with tempfile.TemporaryDirectory() as folder:
            report(int(given.rows), Path(folder))


if __name__ == "__main__":
    main()
