"""Real people: what the defaults are worth on tables that nobody tuned on.

``python benchmarks/people.py`` makes few runs on the tables of the *report* set;
``--full`` makes a hundred and goes through the grid of worlds, ``--choose`` takes the tables that
constants were chosen on. Every task is one function below. The exit code is 1 if a limit is missed.
"""

from __future__ import annotations

import argparse
import itertools
import sys
from dataclasses import dataclass

import numpy as np

from people_forecasts import forecasts_for_people
from people_means import (
    DELTA,
    absent_errors,
    adaptive_errors,
    clipping_to_the_range,
    fit_table,
    fit_world,
    group_privacy,
    one_record,
    range_gaussian,
    range_laplace,
    worlds,
)
from people_models import models_of_people
from people_ranks import released_ranks
from people_rules import cut_offs_of_people, rules_of_people
from people_tables import tables
from quorate.core.guarantees import Relation


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
    whole: dict[float, list[float]] = {DELTA: [], 0.0: []}
    for table in tables(which):
        n = table.users.n_users
        for columns in sorted({1, len(table.ranges)}):
            for delta in (DELTA, 0.0):
                # Squares of Laplace noise vary so much that 100 runs tell 1.0 from 1.2 hardly.
                fits = fit_table(table, columns, runs=4 * runs, seed=1, delta=delta)
                ranges = clipping_to_the_range(table, columns, delta)
                ratios.append(fits.rms / ranges)
                if columns == len(table.ranges):
                    whole[delta].append(ratios[-1])
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
    for delta, found in whole.items():
        share = float(np.mean(np.less_equal(found, 0.75)))
        report.line(
            f"means: share of whole tables up to .75, delta {delta:g}", share, 0.5, at_most=False
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
        # Squares of Laplace noise vary most, and fits in few dimensions take least.
        made = 4 * runs if world.dimension <= 2 and world.users <= 1000 else runs
        made = made if world.users * world.dimension <= 10**5 else max(4, runs // 4)
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


def medians_of_people(report: Report, which: str, runs: int) -> None:
    """Medians and quartiles of people's own medians: each column of a table on its own."""
    worst, kept, tight = 0.0, [], []
    for table in tables(which):
        n = table.users.n_users
        for place, name in enumerate(table.ranges):
            (median,) = released_ranks(table, place, quantiles=(0.5,), runs=runs, seed=4)
            three = (0.25, 0.5, 0.75)
            quartiles = released_ranks(table, place, quantiles=three, runs=runs, seed=5)
            limit = max(0.002, 12.0 / n)
            worst = max(worst, median.rms / limit)
            kept.append(min(each.kept for each in (median, *quartiles)))
            tight.extend(each.tight for each in (median, *quartiles))
            print(
                f"  {table.name:<25s} {name:<10s} n = {n:<6d} rank off by {median.rms:.5f} (allowed"
                f" {limit:.5f}), quartiles by {max(each.rms for each in quartiles):.5f}; bounds"
                f" kept {kept[-1]:.2f}; median stated {np.median(median.stated):.5f}",
                flush=True,
            )
    report.line("medians: worst rank / max(.002, 12 / n)", worst, 1.0)
    report.line("medians, quartiles: smallest share of kept bounds", min(kept), 0.9, at_most=False)
    report.line(
        "medians, quartiles: share of bounds up to 3 x", float(np.mean(tight)), 0.75, at_most=False
    )


def absent_people(report: Report, runs: int) -> None:
    """Means of 8,000 people of whom hardly anybody holds a value."""
    for present, d, relation in itertools.product((31, 300), (1, 20), Relation):
        over = max(absent_errors(present, d, relation, runs=runs))
        report.line(
            f"absent: {present} of 8,000, d = {d}, {relation.name.lower()}: worst error / bound",
            over,
            2.0,
        )


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--full", action="store_true", help="a hundred runs, and all worlds")
    parser.add_argument("--choose", action="store_true", help="tables that constants come from")
    parser.add_argument("--worlds", type=int, help="how many worlds of the grid")
    parser.add_argument("--runs", type=int, help="fits of each table and world")
    parser.add_argument("--only", nargs="+", help="which tasks: the words before the colons")
    given = parser.parse_args()
    runs = given.runs or (100 if given.full else 12)
    which = "choose" if given.choose else "report"
    count = (250 if given.full else 0) if given.worlds is None else given.worlds
    report = Report()
    tasks = {
        "means": lambda: mean_of_people(report, which, runs),
        "medians": lambda: medians_of_people(report, which, runs),
        "absent": lambda: absent_people(report, runs),
        "cut-offs": lambda: cut_offs_of_people(report, runs),
        "rules": lambda: rules_of_people(report, runs),
        "models": lambda: models_of_people(report, full=given.full),
        "forecasts": lambda: forecasts_for_people(report, which, runs),
        "worlds": lambda: mean_of_worlds(report, count, min(runs, 40)) if count else None,
    }
    always = {"means", "medians", "forecasts"} if given.choose else set(tasks)
    for name, task in tasks.items():
        if name in (given.only or always):
            task()
    return int(report.missed > 0)


if __name__ == "__main__":
    sys.exit(main())
