"""How good and how fast private means are: every promised figure against its limit.

Run ``python benchmarks/means.py`` (some ten minutes on one core) or with ``--quick`` (one).
Epsilon is 1, delta 1e-6 and one user may be replaced, unless a line says otherwise; the radius is
unknown to every method except where "oracle" stands. Errors are root mean squares of the L2
distance to the true mean; tau is the root mean square distance of one user from it. Noise comes
from a seeded test double, because thousands of fits are drawn; the timing uses the real source.
The exit code is 1 if a limit is missed.
"""

from __future__ import annotations

import argparse
import itertools
import math
import sys
import time
from collections import Counter
from dataclasses import dataclass

import numpy as np

from quorate.core.account.costs import gdp_mu
from quorate.core.noise import SeededNoise, use_noise
from quorate.core.users import UserData
from quorate.means import UserMean

EPSILON, DELTA = 1.0, 1e-6
SHAPES = ("laplace", "uniform", "one direction", "t(2.1)", "log-normal")
# The public range in units of one user's standard deviation per coordinate, unless stated.
RANGE = 1000.0


@dataclass
class Table:
    """Collects lines and remembers whether a limit was missed."""

    missed: int = 0

    def line(self, what: str, value: float, limit: float, *, at_most: bool, note: str = "") -> None:
        """Print a figure beside its limit."""
        kept = value <= limit if at_most else value >= limit
        self.missed += not kept
        sign = "<=" if at_most else ">="
        verdict = "ok    " if kept else "MISSED"
        print(f"{verdict} {what:<62s} {value:10.4g}  {sign} {limit:<6g} {note}", flush=True)


def draw_users(shape: str, n: int, d: int, rng: np.random.Generator, reach: float = RANGE):
    """Return user means and the true mean, which lies anywhere in half the range."""
    if shape == "gauss":
        away = rng.normal(size=(n, d))
    elif shape == "laplace":
        away = rng.laplace(scale=math.sqrt(0.5), size=(n, d))
    elif shape == "uniform":
        away = rng.uniform(-math.sqrt(3.0), math.sqrt(3.0), size=(n, d))
    elif shape == "one direction":
        away = rng.normal(size=(n, d))
        away[:, 0] *= 10.0
    elif shape == "t(2.1)":
        away = rng.standard_t(2.1, size=(n, d))
    else:
        away = np.exp(rng.normal(size=(n, d))) - math.exp(0.5)
    centre = rng.uniform(-reach / 2, reach / 2, size=d)
    return away + centre, centre


def people(means: np.ndarray) -> UserData:
    """Return users who hold one record each: their mean."""
    return UserData(means, offsets=np.arange(len(means) + 1))


def clip_to_range(n: int, d: int, reach: float = RANGE) -> float:
    """Return the root mean square noise of clipping to the range with the whole budget."""
    return 2.0 * reach * d / (n * gdp_mu(EPSILON, DELTA))


def rms(errors) -> float:
    return float(np.sqrt(np.mean(np.square(errors))))


@dataclass(frozen=True)
class Cell:
    """Errors of repeated fits and of the plain means of the same users."""

    ours: np.ndarray
    plain: np.ndarray
    routes: Counter

    @property
    def ratio(self) -> float:
        """Our error over that of the plain mean."""
        return rms(self.ours) / rms(self.plain)

    @property
    def note(self) -> str:
        """How often which route was taken."""
        ways = ", ".join(f"{name} {count}" for name, count in self.routes.most_common())
        return f"[{ways}; worst {self.ours.max() / rms(self.plain):.1f} x non-private]"


def fit_cell(shape, n, d, repeats, seed, *, reach=RANGE, **options) -> Cell:
    rng = np.random.default_rng([seed, n, d])
    ours, plain, routes = [], [], Counter()
    for i in range(repeats):
        means, centre = draw_users(shape, n, d, rng, reach)
        with use_noise(SeededNoise([seed, i])):
            parameters = {"epsilon": EPSILON, "delta": DELTA, "bounds": reach} | options
            fitted = UserMean(**parameters, random_state=rng).fit(people(means))
        ours.append(np.linalg.norm(fitted.mean_ - centre))
        plain.append(np.linalg.norm(means.mean(axis=0) - centre))
        routes[fitted.algorithm_.name] += 1
    return Cell(np.array(ours), np.array(plain), routes)


def adaptive_clipping(means, centre, rng, *, rounds, rate, quantile) -> float:
    """Return the error of adaptive clipping (Andrew et al., 2021): clip, move, adapt the clip."""
    n, d = means.shape
    square = gdp_mu(EPSILON, DELTA) ** 2 / rounds
    at, clip = np.zeros(d), RANGE * math.sqrt(d)
    for _ in range(rounds):
        away = means - at
        length = np.sqrt(np.vecdot(away, away))
        total = np.minimum(1.0, clip / np.maximum(length, 1e-12)) @ away
        noise = 2.0 * clip / math.sqrt(0.9 * square)
        at = at + (total + rng.normal(scale=noise, size=d)) / n
        inside = np.mean(length <= clip) + rng.normal(scale=1.0 / (n * math.sqrt(0.1 * square)))
        clip *= math.exp(-rate * (min(1.0, max(0.0, inside)) - quantile))
    return float(np.linalg.norm(at - centre))


def oracle_adaptive_clipping(shape, n, d, repeats, seed) -> tuple[float, tuple]:
    """Tune 24 configurations on some seeds, for free, and report the best on fresh ones."""
    rng = np.random.default_rng([seed, 7])
    grid = list(itertools.product((5, 10, 20), (0.5, 1.0, 2.0, 4.0), (0.5, 0.8)))

    def error(configuration, count):
        rounds, rate, quantile = configuration
        return rms(
            [
                adaptive_clipping(
                    *draw_users(shape, n, d, rng), rng, rounds=rounds, rate=rate, quantile=quantile
                )
                for _ in range(count)
            ]
        )

    best = min(grid, key=lambda configuration: error(configuration, max(3, repeats // 4)))
    return error(best, repeats), best


def gaussian_users(table: Table, scale: int) -> None:
    print("\nGaussian users, m = 100, d = 100 (B = 100 sigma means 1000 standard deviations)")
    cell = fit_cell("gauss", 1000, 100, 10 * scale, 1)
    gain = clip_to_range(1000, 100) / rms(cell.ours)
    table.line("n = 1000, B = 100 sigma: gain over clip-to-range", gain, 500, at_most=False)
    table.line("n = 1000: error / non-private", cell.ratio, 6, at_most=True, note=cell.note)
    cell = fit_cell("gauss", 10_000, 100, max(8, 2 * scale), 2)
    table.line("n = 10000: error / non-private", cell.ratio, 1.7, at_most=True, note=cell.note)
    cell = fit_cell("gauss", 1000, 100, 10 * scale, 3, reach=30.0)
    gain = clip_to_range(1000, 100, 30.0) / rms(cell.ours)
    table.line("n = 1000, B = 3 sigma: gain over clip-to-range", gain, 15, at_most=False)


def shapes(table: Table, scale: int) -> None:
    print("\nOther shapes of users: error / non-private")
    for d, n in itertools.product((1, 20, 200), (1000, 4000)):
        for shape in SHAPES:
            cell = fit_cell(shape, n, d, max(12, 4 * scale * 1000 // n), 4)
            table.line(f"{shape}, d = {d}, n = {n}", cell.ratio, 10, at_most=True, note=cell.note)
    print("\nd = 200, n = 1000: adaptive clipping, tuned by an oracle, over ours")
    for shape in SHAPES:
        theirs, best = oracle_adaptive_clipping(shape, 1000, 200, max(12, 4 * scale), 5)
        ours = fit_cell(shape, 1000, 200, max(12, 4 * scale), 6)
        note = f"[theirs {theirs:.3g}, rounds, rate, quantile = {best}]"
        table.line(shape, theirs / rms(ours.ours), 3, at_most=False, note=note)


def no_failures(table: Table, scale: int) -> None:
    runs = 20 * scale
    print(f"\nWorst error / (B sqrt(d)) of {runs * len(SHAPES)} runs for each d, n = 1000")
    for d in (20, 200):
        worst, where = 0.0, ""
        for shape in SHAPES:
            cell = fit_cell(shape, 1000, d, runs, 8)
            share = cell.ours.max() / (RANGE * math.sqrt(d))
            worst, where = max((worst, where), (share, shape))
        table.line(f"d = {d}", worst, 0.01, at_most=True, note=f"[worst: {where}]")


def fallback(table: Table, scale: int) -> None:
    print("\nBelow the working region: error / clip-to-range")
    for n, d in ((50, 20), (300, 100), (350, 30), (400, 50), (500, 200), (500, 1000)):
        for shape in ("gauss", "t(2.1)"):
            cell = fit_cell(shape, n, d, 3 * scale, 9)
            value = rms(cell.ours) / clip_to_range(n, d)
            table.line(f"{shape}, n = {n}, d = {d}", value, 2.2, at_most=True, note=cell.note)


def pure(table: Table, scale: int) -> None:
    print("\nOne dimension, delta = 0, B/s = 1000: share of runs with error below tau")
    for n in (150, 175, 200, 300, 1000):
        cell = fit_cell("gauss", n, 1, 50 * scale, 10, delta=0.0)
        value = float(np.mean(cell.ours < 1.0))
        table.line(f"n = {n}", value, 0.9, at_most=False, note=cell.note)


def robust(table: Table, scale: int) -> None:
    print("\n10 % hostile users, robust = 0.1, n = 3000, d = 10: error / tau")
    n, d = 3000, 10
    places = {"at the corner": None, "100 tau away": 100.0, "5 tau away": 5.0, "2 tau away": 2.0}
    for name, distance in places.items():
        rng = np.random.default_rng(11)
        errors = []
        for i in range(max(8, 4 * scale)):
            means, centre = draw_users("gauss", n, d, rng)
            hostile = rng.permutation(n)[: n // 10]
            means[hostile] = RANGE if distance is None else centre + distance
            with use_noise(SeededNoise([11, i])):
                fitted = UserMean(
                    epsilon=EPSILON, delta=DELTA, bounds=RANGE, robust=0.1, random_state=rng
                ).fit(people(means))
            errors.append(np.linalg.norm(fitted.mean_ - centre) / math.sqrt(d))
        table.line(f"all in one place, {name}", rms(errors), 0.25, at_most=True)


def unequal(table: Table, scale: int) -> None:
    print("\nRecords log-uniform in 1 .. 1000, n = 3000: equal weights over records='auto'")
    n = 3000
    for d in (10, 100):
        rng = np.random.default_rng([12, d])
        errors: dict[str, list[float]] = {"auto": [], "equal": [], "equal, robust": []}
        options = {"auto": {"records": "auto"}, "equal": {}, "equal, robust": {"robust": 0.1}}
        for i in range(max(8, 3 * scale)):
            counts = np.exp(rng.uniform(0.0, math.log(1000.0), size=n)).astype(np.int64)
            centre = rng.uniform(-50.0, 50.0, size=d)
            # The first record carries the mean of all of them; the others repeat it.
            means = centre + rng.normal(size=(n, d)) / np.sqrt(counts)[:, None]
            offsets = np.concatenate([[0], np.cumsum(counts)])
            data = UserData(np.repeat(means, counts, axis=0), offsets=offsets)
            for name, chosen in options.items():
                with use_noise(SeededNoise([12, i])):
                    fitted = UserMean(
                        epsilon=EPSILON, delta=DELTA, bounds=100.0, random_state=rng, **chosen
                    ).fit(data)
                errors[name].append(float(np.linalg.norm(fitted.mean_ - centre)))
        for name in ("equal", "equal, robust"):
            value = rms(errors[name]) / rms(errors["auto"])
            note = f"[records='auto': {rms(errors['auto']):.4g}]"
            table.line(f"d = {d}: {name} weights", value, 2, at_most=False, note=note)


def speed(table: Table, scale: int) -> None:
    n = 10**6 if scale > 5 else 10**5
    print(f"\n{n} users x 100 dimensions of ready user means, real noise")
    rng = np.random.default_rng(13)
    means = rng.normal(size=(n, 100)) + rng.uniform(-50.0, 50.0, size=100)
    centre, times = means.mean(axis=0), []
    for _ in range(3):
        start = time.perf_counter()
        np.clip(means - centre, -3.0, 3.0).sum(0)
        times.append(time.perf_counter() - start)
    data = people(means)
    fits = []
    for _ in range(2):
        start = time.perf_counter()
        UserMean(epsilon=EPSILON, delta=DELTA, bounds=100.0, random_state=0).fit(data)
        fits.append(time.perf_counter() - start)
    note = f"[{min(fits):.2f} s against {min(times):.2f} s]"
    table.line(
        "fit / one pass of clip and sum", min(fits) / min(times), 25, at_most=True, note=note
    )


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="a tenth of the repetitions")
    parser.add_argument("--only", help="run the parts whose name contains this")
    arguments = parser.parse_args()
    table = Table()
    parts = (gaussian_users, shapes, no_failures, fallback, pure, robust, unequal, speed)
    for part in parts:
        if not arguments.only or arguments.only in part.__name__:
            part(table, 1 if arguments.quick else 10)
    print(f"\n{table.missed} limits missed")
    return 1 if table.missed else 0


if __name__ == "__main__":
    sys.exit(main())
