"""How well and how fast the learners of rules work: every figure against its limit.

Run ``python benchmarks/learners.py`` (some minutes) or with ``--quick`` (fewer repetitions).
Epsilon is 1, privacy is pure, one user may be replaced. Group privacy, one record a user and a
private majority vote of the users' own best rules run on the same data. Noise comes from a seeded
test double, because thousands of fits are drawn; the timings use the real source. The exit code is
1 if a limit is missed.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np

from quorate.core.noise import SeededNoise, use_noise
from quorate.core.users import UserData
from quorate.learners import ConceptLearner, LossSelector, ThresholdLearner
from quorate.learners.concepts import ConceptClass, Conjunctions, FiniteTable, Intervals, Stumps
from quorate.learners.scores import Duels, Mistakes, OwnBest

DOMAIN = 2**32
WINDOW = 2**16


@dataclass(frozen=True)
class Figure:
    """One measured number and the limit it has to keep."""

    name: str
    value: float
    limit: float
    note: str = ""

    @property
    def kept(self) -> bool:
        """Say whether the limit is kept."""
        return self.value <= self.limit

    def __str__(self) -> str:
        mark = "ok    " if self.kept else "MISSED"
        return f"{mark} {self.name:<62} {self.value:>9.4f} <= {self.limit:<8.4g} {self.note}"


# --- cut-offs over 2^32 points -------------------------------------------------------------------


def cut_off_world(n: int, m: int, noise: float, rng: np.random.Generator):
    """Put records in a window of 2^16 points somewhere in 2^32; return the excess error too."""
    low = int(rng.integers(0, DOMAIN - WINDOW))
    cut = low + int(rng.integers(WINDOW // 4, 3 * WINDOW // 4))
    x = rng.integers(low, low + WINDOW, n * m)
    y = (x >= cut) ^ (rng.random(n * m) < noise)
    people = UserData(
        x.astype(np.float64).reshape(-1, 1), y.astype(np.float64), offsets=np.arange(n + 1) * m
    )

    def excess(threshold: float) -> float:
        return abs(min(max(threshold, low), low + WINDOW) - cut) / WINDOW * (1 - 2 * noise)

    return people, excess


def cut_offs(repetitions: int) -> Iterator[Figure]:
    for n, m, limit in ((100, 16, 0.012), (100, 256, 0.001), (300, 4, 0.01), (1000, 1, 0.008)):
        rng = np.random.default_rng([n, m])
        ways = {
            "auto": "auto",
            "alike": "auto",
            "group": Mistakes(records=m),
            "one": Mistakes(records=1),
            "vote": OwnBest(),
        }
        found: dict[str, list[float]] = {name: [] for name in ways}
        for repetition in range(repetitions):
            people, excess = cut_off_world(n, m, 0.1, rng)
            for name, way in ways.items():
                with use_noise(SeededNoise([n, m, repetition, len(name)])):
                    learner = ThresholdLearner(
                        1.0, domain=(0, DOMAIN - 1), algorithm=way, alike=name == "alike"
                    )
                    found[name].append(excess(learner.fit(people).threshold_))
        p90 = {name: float(np.quantile(values, 0.9)) for name, values in found.items()}
        note = ", ".join(f"{name} {p90[name]:.4f}" for name in ("auto", "group", "one", "vote"))
        # These users are alike, and the learner is told so; the default assumes nothing.
        title = f"cut-off, noise 0.1, n={n}, m={m}: 90% excess, auto, alike=True"
        yield Figure(title, p90["alike"], limit, note)


# --- finite classes ------------------------------------------------------------------------------


@dataclass(frozen=True)
class World:
    """A finite population with its labels' chances, and a class to learn."""

    concepts: ConceptClass
    X: np.ndarray
    chance: np.ndarray
    errors: np.ndarray

    def people(self, n: int, m: int, rng: np.random.Generator) -> UserData:
        """Draw n users of m records each."""
        rows = rng.integers(0, len(self.X), n * m)
        y = rng.random(n * m) < self.chance[rows]
        return UserData(self.X[rows], y.astype(np.float64), offsets=np.arange(n + 1) * m)

    def excess(self, index: int) -> float:
        """Return by how much a rule errs more than the best one."""
        return float(self.errors[index] - self.errors.min())


def make_world(
    concepts: ConceptClass, X: np.ndarray, targets, noise: float | str, rng: np.random.Generator
) -> World:
    """Label by a random target with ``noise``; "agnostic": it depends on x, a tenth contradicts."""
    predictions = np.stack([concepts.predict(h, X) for h in range(concepts.size)]) == 1
    target = predictions[rng.choice(targets)]
    if noise == "agnostic":
        rate = rng.uniform(0, 0.5, len(X))
        rate = np.where(rng.random(len(X)) < 0.1, 1 - rate, rate)
    else:
        rate = np.full(len(X), float(noise))
    chance = np.where(target, 1 - rate, rate)
    errors = np.where(predictions, 1 - chance, chance).mean(axis=1)
    return World(concepts, X, chance, errors)


def cube(d: int) -> np.ndarray:
    return (np.arange(2**d)[:, np.newaxis] >> np.arange(d)) & 1


def stumps(noise, rng):
    concepts = Stumps.on_grid(lower=[0.0] * 8, upper=[1.0] * 8, cuts=32)
    return make_world(concepts, rng.random((1500, 8)), np.arange(512), noise, rng)


def conjunctions(noise, rng):
    concepts = Conjunctions(6)
    three = [
        h for h in range(concepts.size) if len(getattr(concepts.concept(h), "literals", ())) == 3
    ]
    return make_world(concepts, cube(6).astype(float), three, noise, rng)


def intervals(noise, rng):
    concepts = Intervals(20)
    return make_world(
        concepts, np.arange(20.0).reshape(-1, 1), np.arange(concepts.size), noise, rng
    )


def random_table(noise, rng):
    concepts = FiniteTable(rng.integers(0, 2, (256, 64)))
    return make_world(concepts, np.arange(64.0).reshape(-1, 1), np.arange(256), noise, rng)


WORLDS: tuple[tuple[str, Callable, float | str], ...] = (
    ("stumps (512)", stumps, 0.2),
    ("stumps (512)", stumps, "agnostic"),
    ("conjunctions (729)", conjunctions, 0.1),
    ("conjunctions (729)", conjunctions, 0.2),
    ("intervals (211)", intervals, 0.2),
    ("intervals (211)", intervals, "agnostic"),
    ("table (256 x 64)", random_table, 0.2),
    ("table (256 x 64)", random_table, "agnostic"),
)


def mean_excess(make, noise, n: int, m: int, ways, repetitions: int, seed: int):
    rng = np.random.default_rng([n, m, seed])
    found: dict[str, list[float]] = {name: [] for name in ways}
    for repetition in range(repetitions):
        world = make(noise, rng)
        people = world.people(n, m, rng)
        for name, way in ways.items():
            with use_noise(SeededNoise([n, m, seed, repetition, len(name)])):
                learner = ConceptLearner(world.concepts, 1.0, algorithm=way).fit(people)
            found[name].append(world.excess(learner.index_))
    return {name: float(np.mean(values)) for name, values in found.items()}


def finite_classes(repetitions: int) -> Iterator[Figure]:
    for number, (name, make, noise) in enumerate(WORLDS):
        for m in (16, 64):
            ways = {
                "auto": "auto",
                "sign": Duels(loss=1, gain=1),
                "group": Mistakes(records=m),
                "one": Mistakes(records=1),
                "vote": OwnBest(),
            }
            mean = mean_excess(make, noise, 50, m, ways, repetitions, number)
            label = f"{name}, noise {noise}, n=50, m={m}"
            note = ", ".join(f"{key} {mean[key]:.4f}" for key in list(ways)[1:])
            yield Figure(f"{label}: mean excess, auto", mean["auto"], 0.01, note)
            if m == 64:
                title = f"{label}: five times below group"
                yield Figure(title, 5 * mean["auto"], mean["group"])


def realizable(repetitions: int) -> Iterator[Figure]:
    for name, make in (("conjunctions (729)", conjunctions), ("stumps (512)", stumps)):
        few, many = (
            mean_excess(make, 0.0, 50, m, {"auto": "auto"}, repetitions, 99)["auto"]
            for m in (4, 16)
        )
        note = f"m=4 {few:.4f}, m=16 {many:.4f}"
        title = f"{name}, realizable, n=50: 3 x excess at m=16 against m=4"
        yield Figure(title, 3 * many, few, note)


# --- bounded losses ------------------------------------------------------------------------------


def losses(repetitions: int) -> Iterator[Figure]:
    candidates, n, m = 1000, 300, 1000
    rng = np.random.default_rng(7)
    # These users are alike, and say so; those who may differ add up their losses.
    ways = {
        "alike": {"alike": True},
        "auto": {},
        "exponential": {"algorithm": "exponential"},
        "reference": {"algorithm": "reference"},
    }
    found: dict[str, list[float]] = {name: [] for name in ways}
    for repetition in range(repetitions):
        mean = rng.uniform(0.4, 0.6, candidates)
        held = rng.binomial(m, mean, (n, candidates)) / m
        people = UserData(held, offsets=np.arange(n + 1))
        for name, way in ways.items():
            with use_noise(SeededNoise([repetition, len(name)])):
                selector = LossSelector(1.0, bounds=(0.0, 1.0), records=m, **way).fit(people)
            found[name].append(float(mean[selector.index_] - mean.min()))
    average = {name: float(np.mean(values)) for name, values in found.items()}
    note = ", ".join(
        f"{word} {average[name]:.4f}"
        for word, name in (("auto", "auto"), ("plain", "exponential"), ("reference", "reference"))
    )
    title = "best of 1000 by a bounded loss, n=300, m=1000: excess, auto, alike=True"
    yield Figure(title, average["alike"], average["exponential"] / 3, note)


# --- time ----------------------------------------------------------------------------------------


def fastest(action: Callable[[], object], times: int = 5) -> float:
    best = float("inf")
    for _ in range(times):
        start = time.perf_counter()
        action()
        best = min(best, time.perf_counter() - start)
    return best


def timings() -> Iterator[Figure]:
    rng = np.random.default_rng(3)
    people, _ = cut_off_world(1000, 256, 0.1, rng)
    learner = ThresholdLearner(1.0, domain=(0, DOMAIN - 1))
    learner.fit(people)
    sort = fastest(lambda: np.sort(people.X[:, 0]))
    fit = fastest(lambda: learner.fit(people))
    mistakes = rng.integers(0, 64, (1000, 729)).astype(np.int32)
    narrow = mistakes.astype(np.int16)

    def compare() -> None:
        for errors in narrow:
            np.greater.outer(errors, errors)

    outer = fastest(compare)
    duels = fastest(lambda: Duels(loss=1, gain=1).verdict.tally(mistakes))
    title = "cut-off, 2^32 points, n=1000, m=256: fit / np.sort"
    yield Figure(title, fit / sort, 30, f"{fit:.3f} s")
    title = "sign score, 729 rules, n=1000 / comparisons"
    yield Figure(title, duels / outer, 1.5, f"{duels:.3f} s")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="fewer repetitions")
    quick = parser.parse_args().quick
    figures = []
    for part, repetitions in (
        (timings, None),
        (cut_offs, 30 if quick else 200),
        (finite_classes, 20 if quick else 40),
        (realizable, 10 if quick else 60),
        (losses, 3 if quick else 12),
    ):
        for figure in part() if repetitions is None else part(repetitions):
            print(figure, flush=True)
            figures.append(figure)
    missed = sum(not figure.kept for figure in figures)
    print(f"{len(figures) - missed} of {len(figures)} limits kept.")
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
