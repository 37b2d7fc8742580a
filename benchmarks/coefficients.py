"""Do the stated errors of coefficients hold, and are they narrow? Every figure against its limit.

Run ``python benchmarks/coefficients.py`` (a few minutes) or with ``--full``. Stated is how far the
noise carried the coefficients from where the same descent ends without it: from the same start, in
the same released coordinates, with the same clips and shrinkage. So the same descent is walked
again without noise and its end compared. Two figures for each world: the share of runs in which
the length of the error is within ``error_.bound`` (at least .9; of its coefficients one by one,
too), and the median bound over the true 95 % quantile of lengths (at most 3 in three of four
worlds).

The constants of ``models/optimization/descent_noise.py`` were settled on worlds of the seeds 1000
to 1019 (Huber and hinge losses and several classes: 1000 to 1007); what is reported has other
seeds, correlated features with outliers, and real people (next season's hits). Noise comes from a
seeded test double. The exit code is 1 if a limit is missed.
"""

from __future__ import annotations

import argparse
import math
import sys
from dataclasses import dataclass
from functools import partial
from unittest import mock

import numpy as np

from models import SEASON, seasons
from quorate.guarantees import Relation
from quorate.models import (
    HuberRegression,
    LinearRegression,
    LinearSVC,
    LogisticRegression,
    base,
    few_users,
)
from quorate.models.optimization.gradients import gradients_at
from quorate.noise import SeededNoise, use_noise
from quorate.users import UserData

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


class Watched:
    """Looks on while a model descends, and walks the same way again without noise."""

    def __init__(self) -> None:
        self.seen = None

    def __enter__(self) -> Watched:
        self._patches = [
            mock.patch.object(room, "descend", self._watching(room.descend))
            for room in (base, few_users)
        ]
        for patch in self._patches:
            patch.start()
        return self

    def __exit__(self, *_: object) -> None:
        for patch in self._patches:
            patch.stop()

    def _watching(self, descend):
        def watched(run, loss, **known):
            minimum = descend(run, loss, **known)
            self.seen = run, loss, known["initial"], minimum
            return minimum

        return watched

    def quiet_end(self) -> np.ndarray:
        """Return where the descent ends without noise, with the same clips and shrinkage."""
        run, loss, theta, minimum = self.seen
        shrunk = ~loss.unpenalized(run.data.n_features)
        average, total, half = theta, 0.0, len(minimum.path) / 2
        for number, (step, said) in enumerate(zip(minimum.path, minimum.trace, strict=True)):
            gradients = np.nan_to_num(gradients_at(loss, theta)(run.data))
            lengths = np.linalg.norm(gradients, axis=1)
            kept = np.minimum(1.0, said.radius / np.maximum(lengths, 1e-300))
            gradient = kept @ gradients / run.n_users
            gradient = gradient + step.shrinkage * np.where(shrunk, theta, 0.0)
            pull, _ = loss.penalty(theta, minimum.penalty)
            theta = theta - minimum.optimizer.step_size / step.curvature * (gradient + pull)
            if number >= half:
                total += 1.0 / step.noise**2
                average = average + (theta - average) / (step.noise**2 * total)
        return average


def one_run(model, people: UserData, seed: int) -> tuple[float, bool, float, float] | None:
    """Return the share of coefficients and whether the length are within, the bound, the length."""
    with Watched() as watched, use_noise(SeededNoise([9, seed])):
        model.fit(people)
    if not model.error_.stated:
        return None
    _, loss, _, minimum = watched.seen
    moved = loss.geometry.outward(minimum.theta - watched.quiet_end(), loss.inner)
    moved = moved.reshape(loss.inner.outputs, -1)
    weights, offsets = moved[:, :-1], moved[:, -1]
    limits = base.FeatureRange(model.bounds, weights.shape[1])
    weights, offsets = limits.unscaled(weights, offsets)
    errors = np.column_stack([weights, offsets]).ravel() * model._unit()
    length = float(np.linalg.norm(errors))
    within = np.abs(errors) <= np.array(model.error_.coordinates)
    return float(within.mean()), length <= model.error_.bound, model.error_.bound, length


def report(name: str, runs: list) -> tuple[bool, bool]:
    """Print a line; return whether the errors hold and whether they are narrow."""
    told = [run for run in runs if run is not None]
    if len(told) < 3:
        print(f"{name:44} constant in {len(runs) - len(told)} of {len(runs)} runs", flush=True)
        return True, True
    each, within, bounds, lengths = (np.array(column) for column in zip(*told, strict=True))
    wide = float(np.median(bounds) / np.quantile(lengths, 0.95))
    # 20 runs of which 95 % hold show at most 3 misses in all but 2 % of cases.
    slack = 0.1 + 2.0 * math.sqrt(0.05 / len(told))
    holds = each.mean() >= 0.9 and within.mean() >= 1.0 - slack
    print(
        f"{name:44} each {each.mean():.2f}  length {within.mean():.2f}  bound / true {wide:.2f}  "
        f"({len(told)} runs, {len(runs) - len(told)} constants)",
        flush=True,
    )
    return bool(holds), wide <= 3.0


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
        model = LinearRegression(bounds=(0.0, upper), target_bounds=(0.0, SEASON["H"]))
        found.append(one_run(model, people, seed))
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
    print(f"bounds at most 3 times too wide in {narrow} of {total} (limit: three of four)")
    return 0 if hold == total and narrow >= 0.75 * total else 1


if __name__ == "__main__":
    sys.exit(main())
