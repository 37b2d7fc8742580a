"""How good private group-bys are, against what PipelineDP does at the best caps an oracle can pick.

Run ``python benchmarks/tables.py`` (about a minute: 100,000 rows, 5,000 people, 20 groups), or with
``--full`` the table of the promise: 1,000,000 rows, 20,000 people, 50 groups. Epsilon is 1, delta
1e-6, and one person may join or leave, which is PipelineDP's relation. Errors are root mean squares
over the groups, averaged over runs, against the exact table. The exit code is 1 if a limit is
missed.

People differ in activity (log-normal) and in taste (each has favourite groups; some groups are
popular); values differ by person and group and stay far below their public bound. Three such worlds
are tried.

The peer. ``pipeline_dp`` runs in plain Python, minutes for one table of this size, and an oracle
has to try hundreds of caps. So its documented mechanism is computed here instead, with numpy:
records of a person in a group are sampled down to ``max_contributions_per_partition``, groups of a
person to ``max_partitions_contributed``; Gaussian noise on the counts and on the sums about the
middle of the bounds, of L2 sensitivity sqrt(groups) x records (x half width), half of the budget
each, split by its Gaussian (PLD) accountant; a mean is their ratio, a sum the mean times the count.
Where the package is installed, one real run at the oracle's caps stands beside it. The oracle knows
the exact table and picks caps and the upper bound of the values: once for the whole table (by the
product of the three errors), and once more for each statistic by itself, which no single run of the
peer can reach.

Two more peers. Tumult Analytics (``MaxGroupsPerID`` and ``MaxRowsPerGroupPerID``) and OpenDP's
query interface (``truncate_num_groups``, ``truncate_per_group``) sample records and groups of a
person down in the same way and add Gaussian noise of L2 sensitivity sqrt(groups) x records to
counts, and x the largest absolute value to sums, which they count from zero; a mean is the ratio.
The same formulas stand for both, computed here after their documentation;
``benchmarks/table_peers.py`` runs the packages themselves. Both get half of the budget for each of
the two, converted by tight Gaussian accounting, which is more than either's own conversion from
zero-concentrated privacy gives them.

Bounds. Every shape of people (equal rows, one row, log-normal and Zipf activity; 200 to 20,000
people, 1 to 500 groups, both relations, epsilon .3 to 3, pure or not) is fitted many times; a cell
should be within its bound 95 times of 100, and bounds should not be several times too wide.
``benchmarks/people_groups.py`` asks the same of real people.

Times are minima of alternating runs, by the clock, of fits from a polars frame to an Arrow table
and of polars group-bys of the same statistics in one call, with as many threads as polars likes.
The yardstick of the limit is the quicker one, by group; the group-by of person and group, which any
bounded table has to look at, stands beside it.
"""

from __future__ import annotations

import argparse
import importlib.util
import sys
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from quorate import UserTable

EPSILON, DELTA, LIMIT, UPPER = 1.0, 1e-6, 0.7, 200.0
STATISTICS = ("visits", "spent", "average")
ROWS_OF_PARTS = 100_000


@dataclass
class Report:
    """Collects lines and remembers whether a limit was missed."""

    missed: int = 0

    def line(self, what: str, value: float, limit: float | None, note: str = "") -> None:
        """Print a figure, beside its limit if it has one."""
        kept = limit is None or value <= limit
        self.missed += not kept
        verdict = "      " if limit is None else "ok    " if kept else "MISSED"
        bound = "" if limit is None else f"<= {limit:g}"
        print(f"{verdict} {what:<58s} {value:10.4g}  {bound:<8s} {note}", flush=True)


@dataclass(frozen=True)
class World:
    """Records of people: whose, in which group, with which value."""

    who: np.ndarray
    group: np.ndarray
    value: np.ndarray
    users: int
    groups: int

    def table(self) -> np.ndarray:
        """Return the exact counts, sums and means, one row a statistic."""
        counts = np.bincount(self.group, minlength=self.groups)
        sums = np.bincount(self.group, weights=self.value, minlength=self.groups)
        return np.array([counts, sums, sums / np.maximum(counts, 1)])


def people(rows: int, users: int, groups: int, *, activity: float, taste: float) -> World:
    """Return a world: how much people differ in activity, and how many groups they like."""
    rng = np.random.default_rng(0)
    busy = rng.lognormal(0.0, activity, users)
    who = rng.choice(users, size=rows, p=busy / busy.sum())
    popular = np.arange(1, groups + 1) ** -0.7
    likes = rng.gamma(taste * popular / popular.sum(), size=(users, groups)) + 1e-12
    climbing = np.cumsum(likes / likes.sum(axis=1, keepdims=True), axis=1)
    group, draws = np.empty(rows, dtype=np.int64), rng.random(rows)
    for start in range(0, rows, ROWS_OF_PARTS):
        part = slice(start, start + ROWS_OF_PARTS)
        group[part] = (climbing[who[part]] < draws[part, None]).sum(axis=1)
    group = group.clip(0, groups - 1)
    value = rng.gamma(2.0, 10.0, rows)
    value *= rng.lognormal(0.0, 0.3, groups)[group] * rng.lognormal(0.0, 0.5, users)[who]
    return World(who, group, np.minimum(value, UPPER), users, groups)


def errors(found: np.ndarray, exact: np.ndarray) -> np.ndarray:
    return np.sqrt(np.mean((found - exact) ** 2, axis=-1))


Tried = list[tuple[tuple[int, int, float], np.ndarray]]


def peers(world: World, *, runs: int) -> tuple[Tried, Tried]:
    """Return the errors of both kinds of peers at many caps: ((groups, records, upper), errors).

    The first count sums from the middle of the bounds, as PipelineDP does, the others from zero.
    """
    from quorate.core.account.costs import gdp_mu

    rng = np.random.default_rng(1)
    order = rng.permutation(len(world.who))
    who, group, value = world.who[order], world.group[order], world.value[order]
    cells = who * world.groups + group
    by_cell = np.argsort(cells, kind="stable")
    starts = np.flatnonzero(np.diff(cells[by_cell], prepend=-1))
    sizes = np.diff(np.append(starts, len(cells)))
    rank = np.arange(len(cells)) - np.repeat(starts, sizes)
    owners = cells[by_cell][starts] // world.groups
    mixed = np.lexsort((rng.random(len(owners)), owners))
    firsts = np.flatnonzero(np.diff(owners[mixed], prepend=-1))
    place = np.empty(len(owners), dtype=np.int64)
    lengths = np.diff(np.append(firsts, len(owners)))
    place[mixed] = np.arange(len(owners)) - np.repeat(firsts, lengths)
    place = np.repeat(place, sizes)
    group, value = group[by_cell], value[by_cell]
    deviation = np.sqrt(2.0) / gdp_mu(EPSILON, DELTA)  # two Gaussian releases, tightly composed
    exact, found = world.table(), ([], [])
    for l0 in (g for g in (1, 2, 3, 5, 8, 12, 20, 30, 50) if g <= world.groups):
        for linf in (1, 2, 3, 5, 8, 12, 20, 30, 50, 80):
            kept = (rank < linf) & (place < l0)
            scale = deviation * np.sqrt(l0) * linf
            counts = np.bincount(group[kept], minlength=world.groups)
            for upper in (50.0, 100.0, UPPER):
                clipped = np.minimum(value[kept], upper)
                totals = np.bincount(group[kept], weights=clipped, minlength=world.groups)
                for centre, tried in zip((upper / 2, 0.0), found, strict=True):
                    about, each = totals - centre * counts, []
                    for _ in range(runs):
                        noisy = counts + rng.normal(0, scale, world.groups)
                        sums = about + rng.normal(0, scale * (upper - centre), world.groups)
                        means = np.clip(centre + sums / np.maximum(noisy, 1), 0, upper)
                        added = means * noisy if centre else sums
                        each.append(errors(np.array([noisy, added, means]), exact))
                    tried.append(((l0, linf, upper), np.mean(each, axis=0)))
    return found


def ours(world: World, *, runs: int) -> np.ndarray:
    """Return our errors, caps found privately, with the loose bound."""
    import pyarrow as pa

    from quorate.core.noise import SeededNoise, use_noise

    frame = pa.table({"who": world.who, "group": world.group, "spent": world.value})
    found = []
    for seed in range(runs):
        with use_noise(SeededNoise(seed)):
            made = table(list(range(world.groups))).fit(frame, users="who").table_
        found.append(errors(np.array([made[name] for name in STATISTICS]), world.table()))
    return np.mean(found, axis=0)


def table(keys: list[object]) -> UserTable:
    from quorate import Relation, UserTable

    return UserTable(
        EPSILON,
        delta=DELTA,
        by="group",
        keys=keys,
        statistics={"visits": "count", "spent": "sum", "average": ("spent", "mean")},
        bounds={"spent": (0.0, UPPER)},
        relation=Relation.ADD_REMOVE,
    )


def real_peer(world: World, caps: tuple[int, int, float], report: Report) -> None:
    """Run the package itself once, where it is installed."""
    if importlib.util.find_spec("pipeline_dp") is None:
        print("       PipelineDP itself: skipped, pipeline-dp is not installed")
        return
    import pipeline_dp as dp

    l0, linf, upper = caps
    budget = dp.PLDBudgetAccountant(total_epsilon=EPSILON, total_delta=DELTA)
    engine = dp.DPEngine(budget, dp.LocalBackend())
    metrics = [dp.Metrics.COUNT, dp.Metrics.SUM, dp.Metrics.MEAN]
    parameters = dp.AggregateParams(
        metrics=metrics,
        noise_kind=dp.NoiseKind.GAUSSIAN,
        max_partitions_contributed=l0,
        max_contributions_per_partition=linf,
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
    result = engine.aggregate(
        rows, parameters, reading, public_partitions=list(range(world.groups))
    )
    start = time.perf_counter()
    budget.compute_budgets()
    made = dict(result)
    taken = time.perf_counter() - start
    found = np.array([[made[g].count, made[g].sum, made[g].mean] for g in range(world.groups)]).T
    for name, error in zip(STATISTICS, errors(found, world.table()), strict=True):
        report.line(f"PipelineDP itself, {name}, one run", error, None, f"{taken:.0f} s")


def times(world: World, report: Report, *, strict: bool) -> None:
    """Compare the time of a fit with polars group-bys of the same frame."""
    import polars as pl

    names = np.array([f"group {place}" for place in range(world.groups)])
    frame = pl.DataFrame({"who": world.who, "group": names[world.group], "spent": world.value})
    statistics = pl.len(), pl.col("spent").sum(), pl.col("spent").mean().alias("average")
    estimator = table(names.tolist())
    timed = {
        "a fit": lambda: estimator.fit(frame, users="who"),
        "by group": lambda: frame.group_by("group").agg(*statistics),
        "by person and group": lambda: frame.group_by("who", "group").agg(*statistics),
    }
    taken: dict[str, list[float]] = {name: [] for name in timed}
    for _ in range(20):
        for name, work in timed.items():
            start = time.perf_counter()
            work()
            taken[name].append(time.perf_counter() - start)
    fit, plain, both = (min(taken[name]) for name in timed)
    limit = 2.5 if strict else None
    report.line("time / polars group-by group", fit / plain, limit, f"{fit:.4f}, {plain:.4f} s")
    report.line("time / polars group-by person and group", fit / both, None, f"{both:.3f} s")


def shaped(kind: str, users: int, groups: int) -> World:
    """Return people of one shape: equal or log-normal or Zipf activity, or one record each."""
    rng = np.random.default_rng([users, groups])
    held = {
        "equal rows": np.full(users, 20),
        "one row": np.ones(users, int),
        "log-normal": np.maximum(1, np.rint(rng.lognormal(1.5, 1.0, users))).astype(int),
        "zipf": np.minimum(rng.zipf(2.5, users), 5000),
    }[kind]
    who = np.repeat(np.arange(users), held)
    popular = 1.0 / np.arange(1, groups + 1)
    popular /= popular.sum()
    usual = rng.choice(groups, users, p=popular)[who]
    group = np.where(rng.random(len(who)) < 0.5, usual, rng.choice(groups, len(who), p=popular))
    value = rng.gamma(2.0, 10.0, len(who)) * rng.lognormal(0.0, 0.4, users)[who]
    return World(who, group, np.minimum(value, UPPER), users, groups)


def shapes(*, fits: int) -> None:
    """Print in how many cells of every shape bounds hold, and how wide they are."""
    import pyarrow as pa

    from quorate import Relation, UserTable
    from quorate.core.noise import SeededNoise, use_noise

    asked = {"n": "count", "people": "users", "sum": ("x", "sum"), "mean": ("x", "mean")}
    sizes = [(200, 2), (200, 30), (2000, 1), (2000, 5), (2000, 50), (20_000, 3), (20_000, 500)]
    settings = [(1.0, DELTA, "ADD_REMOVE"), (0.3, 0.0, "ADD_REMOVE"), (3.0, DELTA, "REPLACE")]
    settings += [(1.0, 0.0, "REPLACE"), (0.3, DELTA, "ADD_REMOVE")]
    inside, wide, furthest = {}, [], 0.0
    for number, kind in enumerate(("equal rows", "one row", "log-normal", "zipf")):
        for users, groups in sizes:
            world = shaped(kind, users, groups)
            frame = pa.table({"who": world.who, "group": world.group, "x": world.value})
            counts, sums, means = world.table()
            cells = np.unique(world.who * groups + world.group) % groups
            people = np.bincount(cells, minlength=groups)
            exact = {"n": counts, "people": people, "sum": sums, "mean": means}
            for place, (epsilon, delta, relation) in enumerate(settings):
                table = UserTable(
                    epsilon,
                    delta=delta,
                    by="group",
                    keys=list(range(groups)),
                    statistics=asked,
                    bounds={"x": (0.0, UPPER)},
                    relation=Relation[relation],
                )
                off, bounds = {name: [] for name in asked}, {name: [] for name in asked}
                # Shares of some hundred cells, and draws of their own.
                first = 10_000 * (place + 5 * (number + 4 * (users + groups)))
                for seed in range(max(3, fits // 8, 5 * fits // groups)):
                    with use_noise(SeededNoise(first + seed)):
                        found = table.fit(frame, users="who").table_
                    for name in asked:
                        known = exact["n"] > 0 if name == "mean" else slice(None)
                        off[name].append((np.asarray(found[name]) - exact[name])[known])
                        bounds[name].append(np.asarray(found[f"{name}_bound"])[known])
                for name in asked:
                    far, bound = np.abs(off[name]), np.array(bounds[name])
                    key = kind, users, groups, epsilon, delta, relation, name
                    inside[key] = float(np.mean(far <= bound))
                    wide.append(np.median(bound) / max(float(np.quantile(far, 0.95)), 1e-12))
                    furthest = max(furthest, float(np.max(far / bound)))
    for kind in ("equal rows", "one row", "log-normal", "zipf"):
        held = {key: share for key, share in inside.items() if key[0] == kind}
        low = min(held, key=held.get)
        kept = np.mean(np.array(list(held.values())) >= 0.93)
        word = "reached" if kept == 1 else "MISSED "
        print(
            f"{word} {kind}: 93 % of cells inside in {kept:.1%} of settings, least {held[low]:.2f}"
        )
    quarter = float(np.quantile(wide, 0.75))
    word = "reached" if quarter <= 4 else "MISSED "
    print(f"{word} bound over the true quantile, three quarters of settings {quarter:.2f} <= 4")
    word = "reached" if furthest <= 10 else "MISSED "
    print(f"{word} furthest error over its bound {furthest:.1f} <= 10")


def alike(*, runs: int) -> None:
    """Print how 2,000 people with exactly 20 records each are counted."""
    from quorate import UserCount
    from quorate.core.noise import SeededNoise, use_noise

    who, off, bounds = np.repeat(np.arange(2000), 20), [], []
    for seed in range(runs):
        with use_noise(SeededNoise(seed)):
            count = UserCount(EPSILON, of="records").fit(np.zeros((40_000, 1)), users=who)
        off.append(abs(count.count_ - 40_000))
        bounds.append(count.error_.bound)
    inside, typical = np.mean(np.array(off) <= bounds), float(np.median(off))
    word = "reached" if inside >= 0.95 and typical <= 300 else "MISSED "
    print(f"{word} 2,000 people with 20 records: {inside:.1%} inside, typical error {typical:.0f}")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--full", action="store_true", help="the table of the promise")
    full = parser.parse_args().full
    size = (1_000_000, 20_000, 50) if full else (100_000, 5_000, 20)
    report = Report()
    worlds = {"people differ": (1.0, 5.0), "alike in activity": (0.5, 5.0), "broad": (1.0, 50.0)}
    print(f"{size[0]:,} rows, {size[1]:,} people, {size[2]} groups; epsilon {EPSILON:g}")
    for name, (activity, taste) in worlds.items():
        world = people(*size, activity=activity, taste=taste)
        tried, others = peers(world, runs=3)
        caps, best = min(tried, key=lambda one: float(np.prod(one[1])))
        theirs, zero = min(others, key=lambda one: float(np.prod(one[1])))
        own = ours(world, runs=5 if full else 10)
        for place, statistic in enumerate(STATISTICS):
            note = f"{own[place]:.4g} against {best[place]:.4g} at {caps}"
            report.line(
                f"{name}: {statistic}, one set of caps", own[place] / best[place], LIMIT, note
            )
            alone = min(error[place] for _, error in tried)
            report.line(f"{name}: {statistic}, caps for it alone", own[place] / alone, None)
            note = f"against {zero[place]:.4g} at {theirs}"
            report.line(
                f"{name}: {statistic}, Tumult and OpenDP", own[place] / zero[place], None, note
            )
        if name == "people differ":
            real_peer(world, caps, report)
            times(world, report, strict=full)
    alike(runs=200)
    shapes(fits=60 if full else 12)
    return int(report.missed > 0)


if __name__ == "__main__":
    sys.exit(main())
