"""The group-by libraries themselves, on the table of ``benchmarks/tables.py``.

Run ``python benchmarks/table_peers.py`` (100,000 rows, 5,000 people, 20 groups; ``--full`` for the
table of the promise) where any of ``opendp[polars]``, ``tmlt.analytics`` (with Java) and
``pipeline-dp`` is installed. They ask for other versions of numpy, pandas, polars and Spark than
this library does, so they are best put into environments of their own: ``--save table.npz`` writes
the table, our errors and the caps down here, ``--load table.npz`` reads them there. A library that
is not there, or does not run, is named with the reason.

Each gets the caps and the upper bound that suit it best, picked by an oracle that knows the exact
table (``tables.peers``), half of the budget for counts and half for sums, and is otherwise used as
its documents say: PipelineDP with its accountant for epsilon and delta, the other two with the
zero-concentrated privacy that is worth epsilon and delta by rho + 2 sqrt(rho log(1/delta)). A mean
is the quotient of a sum and a count where a library would pay for it once more. Epsilon is 1, delta
1e-6, and one person may join or leave. Printed are the errors, their quotients with ours, and the
seconds one run took.
"""

from __future__ import annotations

import argparse
import math
import os
import sys
import time
from collections.abc import Callable

import numpy as np

from tables import DELTA, EPSILON, STATISTICS, UPPER, World, errors, ours, peers, people

Caps = tuple[int, int, float]
Ran = tuple[np.ndarray, float]


def concentrated(epsilon: float, delta: float) -> float:
    """Return the rho of zero-concentrated privacy that is worth a budget."""
    log = math.log(1.0 / delta)
    return (math.sqrt(log + epsilon) - math.sqrt(log)) ** 2


def as_table(world: World, counts: dict[int, float], sums: dict[int, float]) -> np.ndarray:
    count = np.array([counts.get(group, 0.0) for group in range(world.groups)], dtype=float)
    total = np.array([sums.get(group, 0.0) for group in range(world.groups)], dtype=float)
    return np.array([count, total, np.clip(total / np.maximum(count, 1.0), 0.0, UPPER)])


def opendp(world: World, caps: Caps) -> Ran:
    """Run OpenDP's query interface."""
    import opendp.prelude as dp
    import polars as pl

    dp.enable_features("contrib")
    groups, records, upper = caps
    # Version 0.16 cannot sample groups (polars finds a name twice), and of the first k keeps k - 1:
    # labels in a random order, the first k + 1 of them.
    label = np.random.default_rng(2).permutation(world.groups)
    frame = pl.LazyFrame({"who": world.who, "group": label[world.group], "spent": world.value})
    keys = pl.LazyFrame({"group": np.arange(world.groups)})
    start = time.perf_counter()
    context = dp.Context.compositor(
        data=frame,
        privacy_unit=dp.unit_of(contributions=1, identifier="who"),
        privacy_loss=dp.loss_of(rho=concentrated(EPSILON, DELTA)),
        split_evenly_over=1,
        # Sums of floats need a public bound on how many rows a group has.
        margins=[dp.polars.Margin(by=["group"], max_length=len(world.who))],
    )
    query = (
        context.query()
        .truncate_per_group(records, by=["group"])
        .truncate_num_groups(groups + 1, by=["group"], keep="first")
        .group_by("group")
        .agg(dp.len(signed=True), pl.col("spent").fill_nan(0.0).fill_null(0.0).dp.sum((0.0, upper)))
        .with_keys(keys)
    )
    found = query.release().collect()
    taken = time.perf_counter() - start
    groups_of = np.argsort(label)[found["group"].to_numpy()].tolist()
    counts = dict(zip(groups_of, found["len"].to_list(), strict=True))
    sums = dict(zip(groups_of, found["spent"].to_list(), strict=True))
    return as_table(world, counts, sums), taken


def tumult(world: World, caps: Caps) -> Ran:
    """Run Tumult Analytics."""
    import pandas as pd
    from pyspark.sql import SparkSession
    from tmlt.analytics import (
        AddRowsWithID,
        KeySet,
        MaxGroupsPerID,
        MaxRowsPerGroupPerID,
        QueryBuilder,
        RhoZCDPBudget,
        Session,
    )

    groups, records, upper = caps
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    # Four pieces of a table of this size, as Spark's documents advise; its default is 200.
    builder = SparkSession.builder.master("local[2]").config("spark.sql.shuffle.partitions", "4")
    spark = builder.getOrCreate()
    spark.sparkContext.setLogLevel("ERROR")
    held = {"who": world.who, "visited": world.group, "spent": world.value}
    frame = spark.createDataFrame(pd.DataFrame(held)).cache()
    frame.count()
    rho = concentrated(EPSILON, DELTA)
    start = time.perf_counter()
    session = Session.from_dataframe(
        privacy_budget=RhoZCDPBudget(rho),
        source_id="visits",
        dataframe=frame,
        protected_change=AddRowsWithID("who"),
    )
    keys = KeySet.from_dict({"visited": list(range(world.groups))})
    capped = (
        QueryBuilder("visits")
        .enforce(MaxGroupsPerID("visited", groups))
        .enforce(MaxRowsPerGroupPerID("visited", records))
        .groupby(keys)
    )
    found = []
    for query, column in (
        (capped.count(name="found"), "found"),
        (capped.sum("spent", low=0.0, high=upper, name="found"), "found"),
    ):
        rows = session.evaluate(query, RhoZCDPBudget(rho / 2)).toPandas()
        found.append(dict(zip(rows["visited"].tolist(), rows[column].tolist(), strict=True)))
    return as_table(world, *found), time.perf_counter() - start


def pipeline(world: World, caps: Caps) -> Ran:
    """Run PipelineDP, in plain Python."""
    import pipeline_dp as dp

    groups, records, upper = caps
    budget = dp.NaiveBudgetAccountant(total_epsilon=EPSILON, total_delta=DELTA)
    try:
        budget = dp.PLDBudgetAccountant(total_epsilon=EPSILON, total_delta=DELTA)
    except (ImportError, AttributeError) as reason:
        print(f"       PipelineDP adds epsilons: {type(reason).__name__}")
    engine = dp.DPEngine(budget, dp.LocalBackend())
    parameters = dp.AggregateParams(
        metrics=[dp.Metrics.COUNT, dp.Metrics.SUM, dp.Metrics.MEAN],
        noise_kind=dp.NoiseKind.GAUSSIAN,
        max_partitions_contributed=groups,
        max_contributions_per_partition=records,
        min_value=0,
        max_value=upper,
    )
    reading = dp.DataExtractors(
        privacy_id_extractor=lambda row: row[0],
        partition_extractor=lambda row: row[1],
        value_extractor=lambda row: row[2],
    )
    columns = (world.who.tolist(), world.group.tolist(), world.value.tolist())
    rows = list(zip(*columns, strict=True))
    start = time.perf_counter()
    keys = list(range(world.groups))
    result = engine.aggregate(rows, parameters, reading, public_partitions=keys)
    budget.compute_budgets()
    made = dict(result)
    taken = time.perf_counter() - start
    return np.array([[made[g].count, made[g].sum, made[g].mean] for g in keys]).T, taken


def loaded(path: str) -> tuple[World, np.ndarray, list[Caps]]:
    """Return what ``--save`` wrote down: the table, our errors, and the caps of both kinds."""
    held = np.load(path)
    users, groups = held["sizes"].tolist()
    world = World(held["who"], held["group"], held["value"], users, groups)
    return world, held["own"], [(int(a), int(b), float(c)) for a, b, c in held["caps"]]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--full", action="store_true", help="the table of the promise")
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--only", choices=["opendp", "tumult", "pipeline"])
    parser.add_argument("--save", help="write the table, our errors and the caps to a file")
    parser.add_argument("--load", help="read them from a file, where this library is not installed")
    asked = parser.parse_args()
    if asked.load:
        world, own, caps = loaded(asked.load)
    else:
        size = (1_000_000, 20_000, 50) if asked.full else (100_000, 5_000, 20)
        world = people(*size, activity=1.0, taste=5.0)
        tried = peers(world, runs=3)
        caps = [min(each, key=lambda one: float(np.prod(one[1])))[0] for each in tried]
        own = ours(world, runs=10)
    if asked.save:
        held = {"who": world.who, "group": world.group, "value": world.value}
        sizes = np.array([world.users, world.groups])
        np.savez(asked.save, own=own, caps=np.array(caps), sizes=sizes, **held)
    print(f"{len(world.who):,} rows, {world.users:,} people, {world.groups} groups")
    print("quorate: " + _figures(own, own))
    libraries: dict[str, tuple[Callable[[World, Caps], Ran], Caps]] = {
        "opendp": (opendp, caps[1]),
        "tumult": (tumult, caps[1]),
        "pipeline": (pipeline, caps[0]),
    }
    for name, (run, best) in libraries.items():
        if asked.only not in (None, name):
            continue
        try:
            ran = [run(world, best) for _ in range(asked.runs)]
        except Exception as reason:  # whatever keeps a peer from running is named
            print(f"{name}: skipped, {type(reason).__name__}: {str(reason).splitlines()[0][:150]}")
            continue
        found = np.mean([errors(table, world.table()) for table, _ in ran], axis=0)
        taken = float(np.median([seconds for _, seconds in ran]))
        print(f"{name} at {best}: {_figures(found, own)}; {taken:.1f} s", flush=True)
    return 0


def _figures(found: np.ndarray, own: np.ndarray) -> str:
    each = zip(STATISTICS, found, own / found, strict=True)
    return ", ".join(f"{name} {error:.4g} (ours {part:.2f} of it)" for name, error, part in each)


if __name__ == "__main__":
    sys.exit(main())
