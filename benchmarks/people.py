"""Real people: what the defaults are worth on tables that nobody tuned on.

``python benchmarks/people.py`` makes few runs on the tables of the *report* set;
``--full`` makes a hundred and goes through the grid of worlds, ``--choose`` takes the tables that
constants were chosen on. Every task is one function below. The exit code is 1 if a limit is missed.
"""

from __future__ import annotations

import argparse
import sys
from dataclasses import dataclass

import numpy as np

from people_forecasts import forecasts_for_people
from people_means import (
    DELTA,
    adaptive_errors,
    fit_table,
    fit_world,
    group_privacy,
    one_record,
    range_gaussian,
    range_laplace,
    worlds,
)
from people_rules import cut_offs_of_people, rules_of_people
from people_tables import tables


@dataclass
class Report:
    """Collects lines and remembers whether a limit was missed."""

    missed: int = 0

    def line(self, what: str, value: float, limit: float, *, at_most: bool = True) -> None:
        """Print a figure beside its limit."""
        kept = value <= limit if at_most else value >= limit
        self.missed += not kept
        sign, verdict = "<=" if at_most else ">=", "ok    " if kept else "MISSED"
        print(f"{verdict} {what:<70s} {value:8.3g} {sign} {limit:g}", flush=True)


def mean_of_people(report: Report, which: str, runs: int) -> None:
    """Means of user means: all columns of a table, and its first one alone."""
    rng = np.random.default_rng(0)
    ratios, kept, loose = [], [], []
    for table in tables(which):
        n = table.users.n_users
        for columns in sorted({1, len(table.ranges)}):
            for delta in (DELTA, 0.0):
                fits = fit_table(table, columns, runs=runs, seed=1, delta=delta)
                ranges = min(range_laplace(n, columns), range_gaussian(n, columns, delta))
                ratios.append(fits.rms / ranges)
                kept.append(fits.kept)
                loose.append(fits.looseness)
                ways = ", ".join(f"{name} {count}" for name, count in fits.routes.most_common())
                print(
                    f"  {table.name:<25s} d = {columns}, n = {n:<6d} delta {delta:<6g}"
                    f" error / clipping to the range {ratios[-1]:5.2f}, one record"
                    f" {one_record(table, columns, rng, delta=delta) / ranges:6.2f}, group privacy"
                    f" {group_privacy(table, columns) / ranges:6.2f}; bound kept {kept[-1]:.2f},"
                    f" / 95 % quantile {loose[-1]:.2f}; worse than 10 medians {fits.failures:.2f}"
                    f" [{ways}]",
                    flush=True,
                )
    report.line("means: worst ratio to clipping to the range", max(ratios), 1.2)
    report.line(
        "means: ratio to clipping to the range in the middle", float(np.median(ratios)), 0.75
    )
    report.line("means: smallest share of kept 95 % bounds", min(kept), 0.9, at_most=False)
    report.line(
        "means: share of bounds below 3 x", float(np.mean(np.less(loose, 3))), 0.75, at_most=False
    )


def mean_of_worlds(report: Report, count: int, runs: int) -> None:
    """Means in a grid of worlds, against the best of all baselines and an oracle among them."""
    ratios, kept, loose, failures = [], [], [], []
    for i, world in enumerate(worlds(count)):
        rng = np.random.default_rng([2, i])
        made = runs if world.users * world.dimension <= 10**5 else max(4, runs // 4)
        fits = fit_world(world, runs=made, seed=2)
        best = min(
            range_laplace(world.users, world.dimension),
            range_gaussian(world.users, world.dimension),
            *adaptive_errors(lambda world=world, rng=rng: world.draw(rng), rng, made).values(),
        )
        ratios.append(fits.rms / best)
        kept.append(fits.kept)
        loose.append(fits.looseness)
        failures.append(fits.failures)
        if ratios[-1] > 1.25 or kept[-1] < 0.9:
            print(f"  {world}: ratio {ratios[-1]:.2f}, kept {kept[-1]:.2f}, {dict(fits.routes)}")
    share = float(np.mean(np.less_equal(ratios, 1.25)))
    report.line(f"worlds: share of {count} within 1.25 of the best", share, 0.95, at_most=False)
    report.line("worlds: runs worse than 10 medians", float(np.mean(failures)), 0.01)
    keep = float(np.mean(np.greater_equal(kept, 0.9)))
    report.line("worlds: share in which the bound is kept in 90 %", keep, 1.0, at_most=False)
    report.line(
        "worlds: share of bounds below 3 x", float(np.mean(np.less(loose, 3))), 0.75, at_most=False
    )


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--full", action="store_true", help="a hundred runs, and all worlds")
    parser.add_argument("--choose", action="store_true", help="tables that constants come from")
    parser.add_argument("--worlds", type=int, help="how many worlds of the grid")
    parser.add_argument("--runs", type=int, help="fits of each table and world")
    given = parser.parse_args()
    runs = given.runs or (100 if given.full else 12)
    report = Report()
    mean_of_people(report, "choose" if given.choose else "report", runs)
    if not given.choose:
        cut_offs_of_people(report, runs)
        rules_of_people(report, runs)
    forecasts_for_people(report, "choose" if given.choose else "report", runs)
    if count := (250 if given.full else 0) if given.worlds is None else given.worlds:
        mean_of_worlds(report, count, min(runs, 40))
    return int(report.missed > 0)


if __name__ == "__main__":
    sys.exit(main())
