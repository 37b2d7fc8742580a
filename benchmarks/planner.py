"""Whether plans come true: simulations at the planned number of users, and at a third of it.

Run ``python benchmarks/planner.py`` (half an hour on one core) or with ``--quick`` (ten minutes);
name tasks to run only these. Every setting asks the planner how many users reach an error with 90 %
confidence, draws that many, runs the real estimator and looks how often the error was kept. None of
these settings was used to calibrate the planner; ``--calibration`` runs those that were. Noise
comes from a seeded test double, because thousands of fits are drawn. The exit code is 1 unless, for
each task, at least 9 of 10 settings are hit, most are missed with a third of the users, and the
median ratio of planned to truly needed users is at most 2.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from quorate.core.noise import SeededNoise, use_noise
from quorate.core.users import UserData
from quorate.learners import ConceptLearner, LossSelector, ThresholdLearner
from quorate.learners.concepts import (
    ConceptClass,
    Conjunctions,
    FiniteTable,
    Intervals,
    Stumps,
    Thresholds,
)
from quorate.means import PrivateMedian, UserMean
from quorate.models import LinearRegression, LogisticRegression
from quorate.planning import plan

CONFIDENCE = 0.9
# Shares of the planned users at which the truly needed number is looked for, downwards.
LADDER = (0.8, 0.65, 0.5, 0.4, 1 / 3, 0.25, 0.17, 0.1)


@dataclass(frozen=True)
class Setting:
    """One question to the planner, and the world in which it is put to the test."""

    task: str
    error: float
    epsilon: float = 1.0
    world: str = ""
    numbers: dict[str, Any] = field(default_factory=dict)

    def __str__(self) -> str:
        numbers = " ".join(f"{name}={value:g}" for name, value in self.numbers.items())
        return f"{self.task} {self.world} eps={self.epsilon:g} error={self.error:g} {numbers}"

    def planned(self) -> int | None:
        """Ask the planner; people are alike unless the setting says how they differ."""
        alike: dict[str, Any] = {}
        if self.task in ("threshold", "concept", "select"):
            alike = {"alike": True}
        elif self.task in ("mean", "linear", "logistic") and "heterogeneity" not in self.numbers:
            alike = {"between": 0.0}
        return plan(
            self.task,
            epsilon=self.epsilon,
            error=self.error,
            confidence=CONFIDENCE,
            **alike,
            **self.numbers,
        ).users


# --- one simulated fit: setting, users, generator -> error ---------------------------------------


def one_row_each(values: np.ndarray) -> UserData:
    return UserData(values, offsets=np.arange(len(values) + 1))


def simulate_mean(setting: Setting, n: int, rng: np.random.Generator) -> float:
    numbers = setting.numbers
    d, bound = numbers.get("dimension", 1), numbers.get("bounds", 100.0)
    away = numbers.get("scale", 1.0) / np.sqrt(numbers.get("records", 1))
    away = np.hypot(away, numbers.get("heterogeneity", 0.0))
    if setting.world == "laplace":
        users = rng.laplace(scale=np.sqrt(0.5), size=(n, d))
    elif setting.world == "uniform":
        users = rng.uniform(-np.sqrt(3.0), np.sqrt(3.0), size=(n, d))
    else:
        users = rng.normal(size=(n, d))
    centre = rng.uniform(-bound / 2, bound / 2, d)
    estimator = UserMean(setting.epsilon, delta=numbers.get("delta", 0.0), bounds=bound)
    estimator.fit(one_row_each(centre + away * users))
    return float(np.linalg.norm(estimator.mean_ - centre))


def simulate_median(setting: Setting, n: int, rng: np.random.Generator) -> float:
    bound, scale = setting.numbers.get("bounds", 100.0), setting.numbers.get("scale", 1.0)
    d = setting.numbers.get("dimension", 1)
    centre = rng.uniform(-bound / 2, bound / 2, d)
    if setting.world == "skewed":
        sample = scale * (rng.exponential(size=(n, d)) - np.log(2.0))
    elif setting.world == "uniform":
        sample = scale * rng.uniform(-np.sqrt(3.0), np.sqrt(3.0), size=(n, d))
    else:
        sample = scale * rng.normal(size=(n, d))
    released = PrivateMedian(setting.epsilon, bounds=bound).fit(one_row_each(centre + sample))
    away = (released.median_ - centre) / scale
    if setting.world == "skewed":
        ranks = 1.0 - np.exp(-np.maximum(0.0, away + np.log(2.0)))
    elif setting.world == "uniform":
        ranks = np.clip(0.5 + away / np.sqrt(12.0), 0.0, 1.0)
    else:
        from scipy.special import ndtr

        ranks = ndtr(away)
    return float(np.max(np.abs(ranks - 0.5)))


def simulate_threshold(setting: Setting, n: int, rng: np.random.Generator) -> float:
    domain, m = setting.numbers.get("domain", 2**32), setting.numbers.get("records", 1)
    noise = setting.numbers.get("error_level", 0.1)
    window = {"": min(2**16, domain), "narrow": min(2**10, domain), "wide": domain}[setting.world]
    low = int(rng.integers(0, domain - window + 1))
    cut = low + int(rng.integers(window // 4, 3 * window // 4))
    x = rng.integers(low, low + window, n * m)
    y = (x >= cut) ^ (rng.random(n * m) < noise)
    people = UserData(
        x.astype(np.float64).reshape(-1, 1), y.astype(np.float64), offsets=np.arange(n + 1) * m
    )
    learner = ThresholdLearner(setting.epsilon, domain=(0, domain - 1), alike=True)
    found = learner.fit(people).threshold_
    return abs(min(max(found, low), low + window) - cut) / window * (1 - 2 * noise)


@dataclass(frozen=True)
class World:
    """A finite population with its labels' chances, and a class to learn."""

    concepts: ConceptClass
    X: np.ndarray
    predictions: np.ndarray


def cube(d: int) -> np.ndarray:
    return ((np.arange(2**d)[:, np.newaxis] >> np.arange(d)) & 1).astype(float)


def concept_class(name: str) -> tuple[ConceptClass, np.ndarray]:
    rng = np.random.default_rng(5)
    line = np.arange(1000.0).reshape(-1, 1)
    match name:
        case "stumps":
            return Stumps.on_grid(lower=[0.0] * 8, upper=[1.0] * 8, cuts=32), rng.random((1500, 8))
        case "stumps of 4":
            return Stumps.on_grid(lower=[0.0] * 4, upper=[1.0] * 4, cuts=16), rng.random((1500, 4))
        case "stumps of 6":
            return Stumps.on_grid(lower=[0.0] * 6, upper=[1.0] * 6, cuts=20), rng.random((1500, 6))
        case "stumps of 3":
            return Stumps.on_grid(lower=[0.0] * 3, upper=[1.0] * 3, cuts=30), rng.random((1500, 3))
        case "intervals of 25":
            return Intervals(25), line[:25]
        case "cut-offs of 400":
            return Thresholds(0, 399), line[:400]
        case "wide table":
            return FiniteTable(rng.integers(0, 2, (500, 40))), line[:40]
        case "intervals":
            return Intervals(20), line[:20]
        case "intervals of 30":
            return Intervals(30), line[:30]
        case "conjunctions":
            return Conjunctions(6), cube(6)
        case "conjunctions of 5":
            return Conjunctions(5), cube(5)
        case "conjunctions of 8":
            return Conjunctions(8), cube(8)
        case "cut-offs":
            return Thresholds(0, 999), line
        case "table":
            return FiniteTable(rng.integers(0, 2, (256, 64))), line[:64]
    raise ValueError(name)


_WORLDS: dict[str, World] = {}


def concept_world(name: str) -> World:
    if name not in _WORLDS:
        concepts, X = concept_class(name)
        predictions = np.stack([concepts.predict(h, X) for h in range(concepts.size)]) == 1
        _WORLDS[name] = World(concepts, X, predictions)
    return _WORLDS[name]


def simulate_concept(setting: Setting, n: int, rng: np.random.Generator) -> float:
    world, m = concept_world(setting.world), setting.numbers.get("records", 1)
    noise = setting.numbers.get("error_level", 0.1)
    balanced = np.abs(world.predictions.mean(axis=1) - 0.5) < 0.45
    target = world.predictions[rng.choice(np.flatnonzero(balanced))]
    chance = np.where(target, 1 - noise, noise)
    errors = np.where(world.predictions, 1 - chance, chance).mean(axis=1)
    rows = rng.integers(0, len(world.X), n * m)
    y = rng.random(n * m) < chance[rows]
    people = UserData(world.X[rows], y.astype(np.float64), offsets=np.arange(n + 1) * m)
    learner = ConceptLearner(world.concepts, setting.epsilon, alike=True).fit(people)
    return float(errors[learner.index_] - errors.min())


def simulate_select(setting: Setting, n: int, rng: np.random.Generator) -> float:
    size, m = setting.numbers.get("size", 100), setting.numbers.get("records", 1)
    if setting.world == "ladder":
        mean = np.linspace(0.3, 0.6, size)
    elif setting.world == "half good":
        mean = np.where(rng.random(size) < 0.5, 0.4, 0.6)
    else:
        mean = rng.uniform(0.3, 0.7, size)
    # Losses 0 or 1, independent over candidates: differences deviate by about 0.7.
    held = rng.binomial(m, mean, (n, size)) / m
    selector = LossSelector(setting.epsilon, records=m, alike=True).fit(one_row_each(held))
    return float(mean[selector.index_] - mean.min())


def features(setting: Setting, n: int, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    d, m = setting.numbers.get("dimension", 10), setting.numbers.get("records", 1)
    direction = rng.normal(size=d)
    if setting.world == "uniform":
        X = rng.uniform(-np.sqrt(3.0), np.sqrt(3.0), size=(n * m, d))
    else:
        X = rng.normal(size=(n * m, d))
    return X, direction / np.linalg.norm(direction)


def simulate_linear(setting: Setting, n: int, rng: np.random.Generator) -> float:
    X, weights = features(setting, n, rng)
    y = X @ weights + setting.numbers.get("scale", 1.0) * rng.normal(size=len(X))
    people = UserData(X, y, offsets=np.arange(n + 1) * (len(X) // n))
    model = LinearRegression(setting.epsilon, delta=setting.numbers["delta"], hopeless="constant")
    model.fit(people)
    return float(np.sum((model.coef_ - weights) ** 2) + model.intercept_**2) / 2


def simulate_logistic(setting: Setting, n: int, rng: np.random.Generator) -> float:
    X, weights = features(setting, n, rng)
    y = rng.random(len(X)) < 1 / (1 + np.exp(-X @ weights))
    people = UserData(X, y.astype(np.float64), offsets=np.arange(n + 1) * (len(X) // n))
    model = LogisticRegression(setting.epsilon, delta=setting.numbers["delta"], hopeless="constant")
    model.fit(people)
    fresh, _ = features(replace(setting, numbers={**setting.numbers, "records": 1}), 20_000, rng)
    chance = 1 / (1 + np.exp(-fresh @ weights))

    def loss(score: np.ndarray) -> float:
        return float(np.mean(np.logaddexp(0, score) - chance * score))

    found = fresh @ np.ravel(model.coef_) + np.ravel(model.intercept_)[0]
    return loss(found) - loss(fresh @ weights)


SIMULATORS: dict[str, Callable[[Setting, int, np.random.Generator], float]] = {
    "mean": simulate_mean,
    "median": simulate_median,
    "threshold": simulate_threshold,
    "concept": simulate_concept,
    "select": simulate_select,
    "linear": simulate_linear,
    "logistic": simulate_logistic,
}


def success(setting: Setting, n: int, repetitions: int, seed: int) -> float:
    """Return how often n users keep the error."""
    kept = 0
    for repetition in range(repetitions):
        rng = np.random.default_rng([seed, n, repetition])
        with use_noise(SeededNoise([seed, n, repetition, 1])):
            kept += SIMULATORS[setting.task](setting, n, rng) <= setting.error
    return kept / repetitions


# --- the grids -----------------------------------------------------------------------------------


def some(task: str, rows: list[tuple[float, float, str, dict[str, Any]]]) -> list[Setting]:
    return [
        Setting(task, error, epsilon=epsilon, world=world, numbers=numbers)
        for error, epsilon, world, numbers in rows
    ]


CALIBRATION: dict[str, list[Setting]] = {
    "mean": some(
        "mean",
        [
            (0.05, 1.0, "", {"records": 10}),
            (0.02, 2.0, "", {"records": 10}),
            (0.3, 1.0, "", {"dimension": 4, "bounds": 10.0}),
            (0.1, 1.0, "", {"dimension": 1, "delta": 1e-6}),
            (0.1, 1.0, "", {"dimension": 10, "delta": 1e-6, "records": 10}),
            (0.3, 1.0, "", {"dimension": 10, "delta": 1e-6, "records": 10}),
            (0.3, 0.5, "", {"dimension": 100, "delta": 1e-6, "records": 10}),
            (0.1, 2.0, "", {"dimension": 100, "delta": 1e-6, "records": 100}),
            (0.5, 1.0, "", {"dimension": 10, "delta": 1e-6, "bounds": 5.0}),
        ],
    ),
    "median": some(
        "median",
        [
            (0.1, 1.0, "", {}),
            (0.05, 0.5, "", {"bounds": 1000.0}),
            (0.2, 1.0, "", {"bounds": 1e6}),
        ],
    ),
    "threshold": some(
        "threshold",
        [
            (0.02, 1.0, "", {"records": 16}),
            (0.005, 1.0, "", {"records": 16}),
            (0.01, 0.5, "", {"records": 4}),
            (0.01, 2.0, "", {"records": 1, "error_level": 0.0}),
            (0.002, 1.0, "", {"records": 64, "error_level": 0.3}),
            (0.03, 1.0, "", {"records": 4, "error_level": 0.3}),
            (0.01, 1.0, "wide", {"records": 16, "domain": 1000}),
            (0.05, 1.0, "wide", {"records": 4, "domain": 1000}),
        ],
    ),
    "concept": some(
        "concept",
        [
            (0.03, 1.0, "stumps", {"records": 16, "size": 512}),
            (0.05, 1.0, "stumps", {"records": 4, "size": 512, "error_level": 0.2}),
            (0.03, 0.5, "stumps", {"records": 16, "size": 512, "error_level": 0.2}),
            (0.05, 1.0, "intervals", {"records": 4, "size": 211}),
            (0.05, 2.0, "intervals", {"records": 16, "size": 211, "error_level": 0.3}),
            (0.1, 1.0, "stumps", {"records": 1, "size": 512}),
            (0.05, 1.0, "table", {"records": 16, "size": 256, "error_level": 0.2}),
            (0.1, 1.0, "conjunctions of 8", {"records": 16, "size": 6561}),
        ],
    ),
    "select": some(
        "select",
        [
            (0.02, 1.0, "", {"records": 64, "size": 100, "scale": 0.7}),
            (0.05, 1.0, "", {"records": 16, "size": 100, "scale": 0.7}),
            (0.05, 1.0, "", {"records": 4, "size": 100, "scale": 0.7}),
            (0.01, 0.5, "", {"records": 256, "size": 300, "scale": 0.7}),
            (0.05, 1.0, "ladder", {"records": 1, "size": 50, "scale": 0.7}),
        ],
    ),
    "linear": some(
        "linear",
        [
            (0.02, 1.0, "", {"dimension": 5, "delta": 1e-6, "records": 4}),
            (0.02, 1.0, "", {"dimension": 20, "delta": 1e-6, "records": 4}),
            (0.002, 1.0, "", {"dimension": 5, "delta": 1e-6, "records": 30}),
            (0.003, 1.0, "", {"dimension": 20, "delta": 1e-6, "records": 30}),
            (0.01, 3.0, "", {"dimension": 5, "delta": 1e-6, "records": 10}),
        ],
    ),
    "logistic": some(
        "logistic",
        [
            (0.02, 1.0, "", {"dimension": 5, "delta": 1e-6, "records": 4}),
            (0.02, 1.0, "", {"dimension": 20, "delta": 1e-6, "records": 4}),
            (0.002, 1.0, "", {"dimension": 5, "delta": 1e-6, "records": 30}),
            (0.003, 1.0, "", {"dimension": 20, "delta": 1e-6, "records": 30}),
            (0.01, 3.0, "", {"dimension": 5, "delta": 1e-6, "records": 10}),
        ],
    ),
}

SECOND_CALIBRATION: dict[str, list[Setting]] = {
    "mean": some(
        "mean",
        [
            (0.03, 1.0, "laplace", {"records": 20}),
            (0.2, 0.5, "", {"records": 1, "bounds": 30.0}),
            (0.1, 2.0, "uniform", {"dimension": 3, "records": 5}),
            (0.05, 1.5, "", {"delta": 1e-5, "records": 4}),
            (0.2, 1.0, "laplace", {"dimension": 20, "delta": 1e-6, "records": 10}),
            (0.06, 2.0, "uniform", {"dimension": 20, "delta": 1e-6, "records": 50}),
            (0.4, 1.0, "", {"dimension": 50, "delta": 1e-7, "records": 10, "bounds": 1000.0}),
            (0.15, 1.0, "", {"dimension": 5, "delta": 1e-6, "records": 5, "heterogeneity": 0.5}),
            (0.5, 0.7, "laplace", {"dimension": 30, "delta": 1e-6, "records": 3}),
            (1.0, 3.0, "uniform", {"dimension": 200, "delta": 1e-6, "records": 1}),
        ],
    ),
    "median": some(
        "median",
        [
            (0.08, 1.0, "", {"bounds": 50.0}),
            (0.05, 1.0, "skewed", {}),
            (0.03, 2.0, "uniform", {"bounds": 1e4}),
            (0.15, 0.5, "", {"bounds": 1e3}),
            (0.1, 0.3, "skewed", {"bounds": 1e3}),
            (0.05, 1.0, "", {"dimension": 3}),
            (0.2, 1.0, "uniform", {"bounds": 1e6}),
            (0.02, 0.5, "", {"bounds": 200.0}),
            (0.1, 2.0, "skewed", {"dimension": 2, "bounds": 1e5}),
            (0.25, 0.2, "", {"bounds": 20.0}),
        ],
    ),
    "threshold": some(
        "threshold",
        [
            (0.02, 1.0, "narrow", {"records": 8}),
            (0.004, 1.0, "narrow", {"records": 32}),
            (0.01, 1.0, "", {"records": 2, "error_level": 0.05}),
            (0.03, 0.7, "wide", {"records": 6, "error_level": 0.2, "domain": 2**20}),
            (0.01, 1.5, "", {"records": 12, "error_level": 0.2, "domain": 2**24}),
            (0.005, 0.4, "", {"records": 40}),
            (0.015, 1.0, "wide", {"records": 1, "error_level": 0.15, "domain": 2**16}),
            (0.02, 1.0, "wide", {"records": 10, "domain": 500}),
            (0.05, 0.6, "wide", {"records": 3, "domain": 2000, "error_level": 0.05}),
            (0.003, 2.0, "", {"records": 25, "error_level": 0.0, "domain": 2**40}),
        ],
    ),
    "concept": some(
        "concept",
        [
            (0.03, 1.0, "stumps of 4", {"records": 8, "size": 128}),
            (0.05, 1.0, "stumps of 4", {"records": 3, "size": 128, "error_level": 0.25}),
            (0.02, 0.7, "stumps", {"records": 32, "size": 512, "error_level": 0.15}),
            (0.04, 1.0, "intervals of 30", {"records": 8, "size": 466}),
            (0.06, 1.5, "intervals of 30", {"records": 5, "size": 466, "error_level": 0.2}),
            (0.05, 1.0, "conjunctions", {"records": 8, "size": 729}),
            (0.1, 0.5, "conjunctions of 5", {"records": 12, "size": 243, "error_level": 0.2}),
            (0.02, 1.0, "cut-offs", {"records": 10, "size": 1001}),
            (0.08, 2.0, "stumps", {"records": 2, "size": 512, "error_level": 0.05}),
            (0.1, 1.0, "table", {"records": 6, "size": 256, "error_level": 0.3}),
        ],
    ),
    "select": some(
        "select",
        [
            (0.03, 1.0, "", {"records": 32, "size": 50, "scale": 0.7}),
            (0.01, 1.0, "", {"records": 100, "size": 200, "scale": 0.7}),
            (0.05, 0.5, "ladder", {"records": 20, "size": 30, "scale": 0.7}),
            (0.02, 2.0, "ladder", {"records": 50, "size": 300, "scale": 0.7}),
            (0.05, 1.0, "half good", {"records": 16, "size": 40, "scale": 0.7}),
            (0.1, 1.0, "", {"records": 2, "size": 20, "scale": 0.7}),
            (0.05, 0.5, "ladder", {"records": 8, "size": 200, "scale": 0.7}),
            (0.03, 2.0, "", {"records": 10, "size": 60, "scale": 0.7}),
            (0.08, 0.7, "half good", {"records": 5, "size": 100, "scale": 0.7}),
            (0.005, 1.0, "", {"records": 400, "size": 80, "scale": 0.7}),
        ],
    ),
    "linear": some(
        "linear",
        [
            (0.02, 1.0, "", {"dimension": 8, "delta": 1e-6, "records": 5}),
            (0.005, 1.0, "uniform", {"dimension": 8, "delta": 1e-6, "records": 20}),
            (0.02, 0.5, "", {"dimension": 4, "delta": 1e-5, "records": 12}),
            (0.01, 2.0, "uniform", {"dimension": 15, "delta": 1e-6, "records": 8}),
            (0.004, 1.0, "", {"dimension": 3, "delta": 1e-6, "records": 40}),
            (0.05, 1.0, "", {"dimension": 12, "delta": 1e-6, "records": 2}),
            (0.03, 1.5, "uniform", {"dimension": 30, "delta": 1e-6, "records": 6}),
            (0.01, 4.0, "", {"dimension": 10, "delta": 1e-6, "records": 10}),
            (0.002, 1.0, "", {"dimension": 12, "delta": 1e-7, "records": 60}),
            (0.03, 0.7, "", {"dimension": 6, "delta": 1e-6, "records": 7}),
        ],
    ),
    "logistic": some(
        "logistic",
        [
            (0.02, 1.0, "", {"dimension": 8, "delta": 1e-6, "records": 5}),
            (0.005, 1.0, "uniform", {"dimension": 8, "delta": 1e-6, "records": 20}),
            (0.02, 0.5, "", {"dimension": 4, "delta": 1e-5, "records": 12}),
            (0.01, 2.0, "uniform", {"dimension": 15, "delta": 1e-6, "records": 8}),
            (0.004, 1.0, "", {"dimension": 3, "delta": 1e-6, "records": 40}),
            (0.05, 1.0, "", {"dimension": 12, "delta": 1e-6, "records": 2}),
            (0.03, 1.5, "uniform", {"dimension": 30, "delta": 1e-6, "records": 6}),
            (0.01, 4.0, "", {"dimension": 10, "delta": 1e-6, "records": 10}),
            (0.002, 1.0, "", {"dimension": 12, "delta": 1e-7, "records": 60}),
            (0.03, 0.7, "", {"dimension": 6, "delta": 1e-6, "records": 7}),
        ],
    ),
}


HELD_OUT: dict[str, list[Setting]] = {
    "mean": some(
        "mean",
        [
            (0.04, 1.0, "uniform", {"records": 9}),
            (0.3, 0.8, "laplace", {"records": 2, "bounds": 20.0, "dimension": 2}),
            (0.15, 2.5, "", {"dimension": 5, "records": 4, "bounds": 1000.0}),
            (0.08, 0.8, "laplace", {"delta": 1e-6, "records": 3}),
            (0.15, 1.0, "uniform", {"dimension": 8, "delta": 1e-6, "records": 12}),
            (0.25, 0.6, "", {"dimension": 15, "delta": 1e-5, "records": 8}),
            (0.1, 2.0, "laplace", {"dimension": 40, "delta": 1e-6, "records": 50, "bounds": 300.0}),
            (0.3, 1.0, "uniform", {"dimension": 12, "delta": 1e-6, "heterogeneity": 1.0}),
            (2.0, 1.0, "", {"dimension": 120, "delta": 1e-6, "records": 2}),
            (0.05, 4.0, "", {"dimension": 3, "delta": 1e-7, "records": 10}),
        ],
    ),
    "median": some(
        "median",
        [
            (0.07, 1.0, "uniform", {"bounds": 70.0}),
            (0.06, 1.5, "skewed", {"bounds": 500.0}),
            (0.04, 3.0, "", {"bounds": 1e5}),
            (0.12, 0.4, "", {"bounds": 2e3}),
            (0.1, 0.6, "skewed", {"bounds": 10.0}),
            (0.06, 1.0, "uniform", {"dimension": 4}),
            (0.3, 1.0, "", {"bounds": 1e8}),
            (0.025, 0.7, "uniform", {"bounds": 300.0}),
            (0.15, 1.0, "skewed", {"dimension": 3, "bounds": 1e4}),
            (0.2, 0.1, "", {"bounds": 30.0}),
        ],
    ),
    "threshold": some(
        "threshold",
        [
            (0.03, 1.0, "narrow", {"records": 5}),
            (0.002, 1.0, "", {"records": 48}),
            (0.02, 1.0, "narrow", {"records": 3, "error_level": 0.02}),
            (0.02, 0.5, "wide", {"records": 9, "error_level": 0.25, "domain": 2**18}),
            (0.008, 2.0, "", {"records": 20, "error_level": 0.15, "domain": 2**28}),
            (0.01, 0.3, "", {"records": 24}),
            (0.02, 1.0, "wide", {"records": 1, "error_level": 0.1, "domain": 2**14}),
            (0.03, 1.0, "wide", {"records": 7, "domain": 300}),
            (0.04, 0.8, "wide", {"records": 5, "domain": 3000, "error_level": 0.2}),
            (0.006, 1.5, "", {"records": 15, "error_level": 0.0, "domain": 2**48}),
        ],
    ),
    "concept": some(
        "concept",
        [
            (0.04, 1.0, "stumps of 6", {"records": 6, "size": 240}),
            (0.06, 0.7, "stumps of 6", {"records": 4, "size": 240, "error_level": 0.2}),
            (0.03, 1.0, "stumps of 3", {"records": 24, "size": 180, "error_level": 0.3}),
            (0.05, 1.0, "intervals of 25", {"records": 6, "size": 326}),
            (0.05, 0.5, "intervals of 25", {"records": 12, "size": 326, "error_level": 0.15}),
            (0.1, 1.0, "conjunctions of 5", {"records": 5, "size": 243}),
            (0.1, 2.0, "conjunctions", {"records": 3, "size": 729, "error_level": 0.1}),
            (0.03, 1.5, "cut-offs of 400", {"records": 4, "size": 401}),
            (0.08, 1.0, "stumps of 3", {"records": 1, "size": 180, "error_level": 0.1}),
            (0.1, 0.8, "wide table", {"records": 9, "size": 500, "error_level": 0.25}),
        ],
    ),
    "select": some(
        "select",
        [
            (0.04, 1.0, "", {"records": 24, "size": 70, "scale": 0.7}),
            (0.015, 1.0, "", {"records": 80, "size": 150, "scale": 0.7}),
            (0.06, 0.4, "ladder", {"records": 30, "size": 60, "scale": 0.7}),
            (0.03, 2.0, "ladder", {"records": 18, "size": 120, "scale": 0.7}),
            (0.1, 1.0, "half good", {"records": 20, "size": 25, "scale": 0.7}),
            (0.08, 1.0, "", {"records": 3, "size": 35, "scale": 0.7}),
            (0.06, 0.6, "ladder", {"records": 6, "size": 90, "scale": 0.7}),
            (0.04, 3.0, "", {"records": 7, "size": 45, "scale": 0.7}),
            (0.07, 1.0, "", {"records": 1, "size": 80, "scale": 0.7}),
            (0.008, 1.0, "", {"records": 300, "size": 110, "scale": 0.7}),
        ],
    ),
    "linear": some(
        "linear",
        [
            (0.03, 1.0, "", {"dimension": 7, "delta": 1e-6, "records": 4}),
            (0.004, 1.0, "uniform", {"dimension": 10, "delta": 1e-6, "records": 25}),
            (0.015, 0.6, "", {"dimension": 5, "delta": 1e-5, "records": 15}),
            (0.008, 2.5, "uniform", {"dimension": 12, "delta": 1e-6, "records": 9}),
            (0.006, 1.0, "", {"dimension": 2, "delta": 1e-6, "records": 35}),
            (0.04, 1.2, "uniform", {"dimension": 16, "delta": 1e-6, "records": 3}),
            (0.02, 1.5, "", {"dimension": 25, "delta": 1e-6, "records": 8}),
            (0.012, 3.0, "", {"dimension": 8, "delta": 1e-6, "records": 12}),
            (0.003, 1.0, "", {"dimension": 15, "delta": 1e-7, "records": 50}),
            (0.04, 0.8, "uniform", {"dimension": 9, "delta": 1e-6, "records": 6}),
        ],
    ),
    "logistic": some(
        "logistic",
        [
            (0.03, 1.0, "", {"dimension": 7, "delta": 1e-6, "records": 4}),
            (0.004, 1.0, "uniform", {"dimension": 10, "delta": 1e-6, "records": 25}),
            (0.015, 0.6, "", {"dimension": 5, "delta": 1e-5, "records": 15}),
            (0.008, 2.5, "uniform", {"dimension": 12, "delta": 1e-6, "records": 9}),
            (0.006, 1.0, "", {"dimension": 2, "delta": 1e-6, "records": 35}),
            (0.04, 1.2, "uniform", {"dimension": 16, "delta": 1e-6, "records": 3}),
            (0.02, 1.5, "", {"dimension": 25, "delta": 1e-6, "records": 8}),
            (0.012, 3.0, "", {"dimension": 8, "delta": 1e-6, "records": 12}),
            (0.003, 1.0, "", {"dimension": 15, "delta": 1e-7, "records": 50}),
            (0.04, 0.8, "uniform", {"dimension": 9, "delta": 1e-6, "records": 6}),
        ],
    ),
}


@dataclass(frozen=True)
class Outcome:
    """What happened at the planned users and below."""

    setting: Setting
    users: int | None
    hit: float
    third: float
    needed: int

    @property
    def kept(self) -> bool:
        """Say whether the plan came true."""
        return self.hit >= CONFIDENCE

    @property
    def ratio(self) -> float:
        """Planned over truly needed users."""
        return (self.users or 0) / self.needed

    def __str__(self) -> str:
        mark = "hit   " if self.kept else "MISSED"
        return (
            f"{mark} {self.setting!s:<78} n={self.users:>7,} kept {self.hit:.2f}, "
            f"a third {self.third:.2f}, planned/needed {self.ratio:.2f}"
        )


def judge(setting: Setting, repetitions: int, seed: int) -> Outcome:
    """Simulate at the planned users, at a third, and on a ladder down to the truly needed ones."""
    users = setting.planned()
    if users is None:
        return Outcome(setting, None, 0.0, 1.0, 1)
    hit = success(setting, users, repetitions, seed)
    third = success(setting, max(1, users // 3), repetitions, seed)
    needed = users
    steps = LADDER if hit >= CONFIDENCE else tuple(1 / share for share in LADDER)
    for share in steps:
        n = max(1, round(users * share))
        enough = success(setting, n, repetitions, seed) >= CONFIDENCE
        if hit >= CONFIDENCE and not enough:
            break
        needed = n
        if hit < CONFIDENCE and enough:
            break
    return Outcome(setting, users, hit, third, needed)


def report(task: str, outcomes: list[Outcome]) -> bool:
    """Print the figures of one task; return whether they keep their limits."""
    hits = sum(outcome.kept for outcome in outcomes)
    missed = sum(outcome.third < CONFIDENCE for outcome in outcomes)
    ratio = float(np.median([outcome.ratio for outcome in outcomes]))
    total = len(outcomes)
    kept = hits >= 0.9 * total and missed > total / 2 and ratio <= 2.0
    print(
        f"{'ok    ' if kept else 'FAILED'} {task}: {hits} of {total} hit, {missed} missed "
        f"with a third of the users, median planned/needed {ratio:.2f}\n",
        flush=True,
    )
    return kept


def run(tasks: list[str], grid: dict[str, list[Setting]], repetitions: int) -> Iterator[bool]:
    for task in tasks:
        outcomes = []
        start = time.perf_counter()
        for number, setting in enumerate(grid[task]):
            outcome = judge(setting, repetitions, 100 + number)
            print(outcome, flush=True)
            outcomes.append(outcome)
        print(f"       {time.perf_counter() - start:.0f} s")
        yield report(task, outcomes)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("tasks", nargs="*", help="only these tasks")
    parser.add_argument("--quick", action="store_true", help="fewer repetitions")
    parser.add_argument("--calibration", action="store_true", help="the settings of calibration")
    given = parser.parse_args()
    grid = HELD_OUT
    if given.calibration:
        grid = {task: CALIBRATION[task] + SECOND_CALIBRATION[task] for task in CALIBRATION}
    kept = list(run(given.tasks or list(grid), grid, 40 if given.quick else 100))
    print(f"{sum(kept)} of {len(kept)} tasks keep their limits.")
    return 0 if all(kept) else 1


if __name__ == "__main__":
    sys.exit(main())
