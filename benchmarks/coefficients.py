"""Do the stated errors of coefficients hold, and are they narrow? Every figure against its limit.

Run ``python benchmarks/coefficients.py`` (a few minutes) or with ``--full``. Stated is how far the
coefficients are from those that fit the same people best without privacy. Two figures for each
world: the share of coefficients within their interval of 95 % (at least .9), and the median
half-width over the true 95 % quantile of errors (at most 3 in three of four worlds). Where nothing
is stated the run does not count, and the line says how many these are.

Noise comes from a seeded test double. The exit code is 1 if a limit is missed.
"""

from __future__ import annotations

import argparse
import math
import sys
from dataclasses import dataclass
from functools import partial

import numpy as np
from scipy.optimize import minimize

from models import SEASON, seasons
from quorate.core.guarantees import Relation
from quorate.core.noise import SeededNoise, use_noise
from quorate.core.users import UserData
from quorate.models import HuberRegression, LinearRegression, LinearSVC, LogisticRegression

KINDS = {
    "linear": LinearRegression,
    "huber": HuberRegression,
    "logistic": LogisticRegression,
    "svc": LinearSVC,
    "softmax": partial(LogisticRegression, classes=(0.0, 1.0, 2.0)),
}
REACH = 6.0


@dataclass(frozen=True)
class World:
    """People of one kind; ``alike`` or with places and tastes of their own."""

    kind: str
    n: int
    m: int
    d: int
    alike: bool

    def people(self, seed: int) -> UserData:
        """Draw a crowd: correlated features away from zero, a few of them far out."""
        rng = np.random.default_rng([seed, self.n, self.m, self.d, self.alike])
        shape = (self.n * self.m, self.d)
        who = np.repeat(np.arange(self.n), self.m)
        z = rng.normal(size=shape)
        z *= np.where(rng.random((len(z), 1)) < 0.05, 3.0, 1.0)
        if not self.alike:
            z = 0.6 * z + 0.8 * rng.normal(size=(self.n, self.d))[who]
        mixing = np.eye(self.d) + 0.5 * rng.normal(size=(self.d, self.d)) / math.sqrt(self.d)
        x = z @ mixing.T + rng.normal(size=self.d)
        score = x @ rng.normal(size=self.d) / math.sqrt(self.d)
        if not self.alike:
            score = score + 0.7 * rng.normal(size=self.n)[who]
        if self.kind in ("linear", "huber"):
            y = score + rng.normal(size=len(x))
        elif self.kind == "softmax":
            other = x @ rng.normal(size=self.d) / math.sqrt(self.d)
            three = np.column_stack([score - score.mean(), other - other.mean(), np.zeros(len(x))])
            y = np.argmax(1.5 * three + rng.gumbel(size=three.shape), axis=1).astype(float)
        else:
            chance = 1.0 / (1.0 + np.exp(-1.5 * (score - score.mean())))
            y = (rng.random(len(x)) < chance).astype(float)
        return UserData(x, y, offsets=np.arange(0, len(x) + 1, self.m))

    def model(self, relation: Relation):
        """Return the default, which answers with a constant where it must."""
        bounds = {"target_bounds": (-REACH, REACH)} if self.kind in ("linear", "huber") else {}
        return KINDS[self.kind](hopeless="constant", relation=relation, progress=False, **bounds)


def best(model, people: UserData) -> np.ndarray:
    """Return the coefficients and constants, a row an output, that fit best without privacy."""
    loss, counts = model._loss(), people.record_counts()
    weights = np.repeat(1.0 / counts, counts) / len(counts)
    centre, spread = people.X.mean(axis=0), people.X.std(axis=0)
    rows = np.column_stack([(people.X - centre) / spread, np.ones(len(people.X))])
    targets = model._scaled_targets(people.y) if isinstance(model, LinearRegression) else people.y

    def cost(theta):
        """Return the integral of the slopes from zero, by ten points, and the gradient."""
        scores = rows @ theta.reshape(loss.outputs, -1).T
        parts = (np.arange(10) + 0.5) / 10
        slopes = np.mean([loss.slopes(part * scores, targets) for part in parts], axis=0)
        gradient = (weights[:, None] * loss.slopes(scores, targets)).T @ rows
        return float(weights @ np.sum(slopes * scores, axis=1)), gradient.ravel()

    start = np.zeros(loss.outputs * rows.shape[1])
    found = minimize(cost, start, jac=True, method="L-BFGS-B", options={"maxiter": 1000}).x
    table = found.reshape(loss.outputs, -1)
    table[:, :-1] /= spread
    table[:, -1] -= table[:, :-1] @ centre
    return table * model._unit()


def one_run(model, people: UserData, seed: int) -> tuple[np.ndarray, np.ndarray] | None:
    """Return the errors of the coefficients, and how large they are stated to be."""
    with use_noise(SeededNoise([9, seed])):
        model.fit(people)
    if not model.error_.stated:
        return None
    moved = np.atleast_2d(model.coef_) - best(model, people)[:, :-1]
    if len(moved) > 1:  # a shift of all classes is none
        moved = moved - moved.mean(axis=0)
    return moved.ravel(), 1.96 * model.error_.standard_errors[:, :-1].ravel()


def report(name: str, runs: list) -> tuple[bool, bool]:
    """Print a line; return whether the errors hold and whether they are narrow."""
    told = [run for run in runs if run is not None]
    if len(told) < 3:
        print(f"{name:44} nothing stated in {len(runs) - len(told)} of {len(runs)}", flush=True)
        return True, True
    moved, stated = (np.array(column) for column in zip(*told, strict=True))
    within = float(np.mean(np.abs(moved) <= stated))
    wide = float(np.median(stated) / np.quantile(np.abs(moved), 0.95))
    print(
        f"{name:44} within {within:.2f}  stated / true {wide:.2f}  "
        f"({len(told)} runs, {len(runs) - len(told)} state nothing)",
        flush=True,
    )
    return within >= 0.9, wide <= 3.0


def hits(runs: int) -> list:
    """Return runs on crowds of 4,000 players: this season's batting, next season's hits."""
    X, y, players = seasons()
    upper = np.array(list(SEASON.values()), dtype=float)
    names = np.unique(players)
    found = []
    for seed in range(runs):
        some = np.random.default_rng([5, seed]).permutation(names)[:4000]
        of_them = np.isin(players, some)
        people = UserData.from_arrays(X[of_them], y[of_them], users=players[of_them])
        scaled = UserData(people.X / upper, people.y, offsets=people.offsets)
        model = LinearRegression(target_bounds=(0.0, SEASON["H"]))
        found.append(one_run(model, scaled, seed))
    return found


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--full", action="store_true", help="all worlds, 20 runs each")
    parser.add_argument("--only", choices=list(KINDS), help="one loss")
    options = parser.parse_args()
    runs = 20 if options.full else 8
    sizes = [(300, 10, 1), (300, 10, 5), (2000, 5, 5), (2000, 5, 20)]
    if options.full:
        sizes += [(300, 10, 20), (2000, 5, 1), (20_000, 2, 1), (20_000, 2, 5), (20_000, 2, 20)]
    kept, total = [], 0
    if options.only is None:
        kept, total = [report("next season's hits, 4,000 players", hits(runs))], 1
    for kind in KINDS if options.only is None else [options.only]:
        for n, m, d in sizes:
            for alike in (True, False) if options.full else (False,):
                world = World(kind, n, m, d, alike)
                count = runs if n < 20_000 else max(6, runs // 3)
                found = [
                    one_run(world.model(list(Relation)[seed % 2]), world.people(seed), seed)
                    for seed in range(count)
                ]
                people = "alike" if alike else "different"
                kept.append(report(f"{kind}, n={n}, m={m}, d={d}, {people}", found))
                total += 1
    hold = sum(holds for holds, _ in kept)
    narrow = sum(narrow for _, narrow in kept)
    print(f"errors hold in {hold} of {total} worlds (limit: all)")
    print(f"intervals at most 3 times too wide in {narrow} of {total} (limit: three of four)")
    return 0 if hold == total and narrow >= 0.75 * total else 1


if __name__ == "__main__":
    sys.exit(main())
