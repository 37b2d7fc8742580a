"""Means of people who differ: real tables and a grid of worlds, against what anyone tries first.

Errors are lengths (L2) in half-widths of the public ranges, root mean squares over runs, against
the mean over the people themselves. Private noise of the baselines is drawn in floating point.
"""

from __future__ import annotations

import contextlib
import hashlib
import itertools
import math
from collections import Counter
from dataclasses import dataclass

import numpy as np

from quorate.core.account.costs import gdp_mu
from quorate.core.guarantees import Relation
from quorate.core.noise import SeededNoise, use_noise
from quorate.core.users import UserData
from quorate.exceptions import NotEnoughUsersError
from quorate.means import UserMean

EPSILON, DELTA = 1.0, 1e-6
SHAPES = (
    "normal",
    "exponential",
    "log-normal",
    "t(2.5)",
    "zero-inflated",
    "bimodal",
    "shares",
    "one wide",
)
DIMENSIONS = (1, 2, 5, 20, 100)
USERS = (150, 200, 300, 500, 1000, 10_000)
RANGES = (3.0, 100.0, 1e4)
WORLDS = 250
# Rounds, rate and quantile: the usual setting, and what an oracle may choose from for free.
ADAPTIVE = (10, 2.0, 0.5)
ORACLE = tuple(itertools.product((5, 10, 20), (0.5, 1.0, 2.0, 4.0), (0.5, 0.8)))


def rms(errors) -> float:
    return float(np.sqrt(np.mean(np.square(errors))))


# Baselines, on user means in half-widths of the public range.


def range_laplace(n: int, d: int, epsilon: float = EPSILON) -> float:
    """Return the error of Laplace noise on means clipped to the range."""
    return math.sqrt(2.0 * d) * 2.0 * d / (n * epsilon)


def range_gaussian(n: int, d: int, delta: float = DELTA) -> float:
    """Return the error of Gaussian noise on means clipped to the range; none at delta 0."""
    return 2.0 * d / (n * gdp_mu(EPSILON, delta)) if delta else math.inf


def clipping_to_the_range(table, columns: int, delta: float = DELTA) -> float:
    """Return the error of the better noise on the range, with what absent people cost there.

    Who clips to the range has to do something with people who hold no value. The better of two
    ways counts, with hindsight: they are taken for the middle of the range, or they are counted
    with the best part of epsilon.
    """
    lower, upper = (limits[:columns] for limits in table.limits)
    half = (upper - lower) / 2.0
    means = table.users.user_means()[:, :columns]
    there = ~np.isnan(means).any(axis=1)
    n, absent = len(means), int((~there).sum())
    noise = min(range_laplace(n, columns), range_gaussian(n, columns, delta))
    away = np.clip((means[there] - lower) / half - 1.0, -1.0, 1.0).mean(axis=0)
    length = float(np.linalg.norm(away))
    parts = np.linspace(0.02, 0.5, 49)
    counted = np.hypot(noise / (1.0 - parts), length * math.sqrt(2.0) / (n * EPSILON * parts))
    return min(math.hypot(noise, length * absent / n), float(counted.min()))


def adaptive_clipping(means: np.ndarray, rng, setting=ADAPTIVE, delta: float = DELTA) -> float:
    """Return the error of adaptive clipping (Andrew et al., 2021): clip, move, adapt the clip."""
    rounds, rate, quantile = setting
    n, d = means.shape
    square = gdp_mu(EPSILON, delta) ** 2 / rounds
    at, clip = np.zeros(d), math.sqrt(d)
    for _ in range(rounds):
        away = means - at
        length = np.sqrt(np.einsum("ij,ij->i", away, away))
        total = np.minimum(1.0, clip / np.maximum(length, 1e-300)) @ away
        at = at + (total + rng.normal(scale=2.0 * clip / math.sqrt(0.9 * square), size=d)) / n
        inside = np.mean(length <= clip) + rng.normal(scale=1.0 / (n * math.sqrt(0.1 * square)))
        clip *= math.exp(-rate * (min(1.0, max(0.0, inside)) - quantile))
    return float(np.linalg.norm(np.clip(at, -1.0, 1.0) - means.mean(axis=0)))


def adaptive_errors(draw, rng, runs: int) -> dict[str, float]:
    """Return the errors of adaptive clipping, as it is used and tuned by an oracle for free."""
    few = max(3, runs // 4)
    tuned = {
        setting: rms([adaptive_clipping(draw(), rng, setting) for _ in range(few)])
        for setting in ORACLE
    }
    best = min(tuned, key=tuned.get)
    return {
        "adaptive": rms([adaptive_clipping(draw(), rng) for _ in range(runs)]),
        "oracle": rms([adaptive_clipping(draw(), rng, best) for _ in range(runs)]),
    }


# Worlds.


@dataclass(frozen=True)
class World:
    """Users of one shape: ``reach`` standard deviations fit into half of the public range."""

    shape: str
    dimension: int
    users: int
    reach: float

    def draw(self, rng: np.random.Generator) -> np.ndarray:
        """Return user means in half-widths of the range, inside of it."""
        n, d = self.users, self.dimension
        size = (n, d)
        if self.shape == "normal":
            away = rng.normal(size=size)
        elif self.shape == "exponential":
            away = rng.exponential(size=size)
        elif self.shape == "log-normal":
            away = np.exp(rng.normal(size=size)) / 2.16
        elif self.shape == "t(2.5)":
            away = rng.standard_t(2.5, size=size) / math.sqrt(5.0)
        elif self.shape == "zero-inflated":
            away = (rng.random(size) < 0.3) * rng.exponential(size=size) / 0.71
        elif self.shape == "bimodal":
            away = (rng.random((n, 1)) < 0.3) * 2.0 + 0.4 * rng.normal(size=size)
        elif self.shape == "shares":
            away = rng.beta(0.5, 1.5, size=size) / 0.25
        else:
            away = rng.normal(size=size) * np.where(np.arange(d) == 0, 1.0, 0.2)
        centre = rng.uniform(-0.5, 0.5, size=d)
        return np.clip(centre + away / self.reach, -1.0, 1.0)


def worlds(count: int = WORLDS) -> list[World]:
    """Return some worlds of the whole grid, spread evenly over it by a fixed rule."""
    everything = [
        World(shape, d, n, reach)
        for d, n, reach, shape in itertools.product(DIMENSIONS, USERS, RANGES, SHAPES)
    ]
    order = np.random.default_rng(11).permutation(len(everything))[:count]
    return [everything[i] for i in sorted(order)]


def people(means: np.ndarray) -> UserData:
    """Return users who hold one record each: their mean."""
    return UserData(means, offsets=np.arange(len(means) + 1))


# Our own mean.


@dataclass
class Fits:
    """Errors, and what was said about them, of repeated fits.

    ``errors`` are in half-widths of the ranges; ``lengths`` and ``bounds`` in units of the data.
    """

    errors: np.ndarray
    lengths: np.ndarray
    bounds: np.ndarray
    routes: Counter

    @property
    def rms(self) -> float:
        """The root mean square error."""
        return rms(self.errors)

    @property
    def kept(self) -> float:
        """How often the error was within its stated bound."""
        return float(np.mean(self.lengths <= self.bounds))

    @property
    def looseness(self) -> float:
        """The median stated bound over the 95 % quantile of the errors."""
        return float(np.median(self.bounds) / max(np.quantile(self.lengths, 0.95), 1e-300))

    @property
    def failures(self) -> float:
        """Share of runs that are worse than ten times the median."""
        return float(np.mean(self.errors > 10.0 * np.median(self.errors)))


def fit(users: UserData, *, bounds, delta: float, seed, **options) -> tuple:
    with use_noise(SeededNoise(seed)):
        mean = UserMean(epsilon=EPSILON, delta=delta, bounds=bounds, **options).fit(users)
    return mean.mean_, mean.error_, mean.algorithm_


def fit_world(world: World, *, runs: int, seed: int, delta: float = DELTA) -> Fits:
    place = [world.users, world.dimension, int(world.reach), SHAPES.index(world.shape)]
    # Noise of its own for each world: shared draws would make all worlds lucky at once, or none.
    rng = np.random.default_rng([seed, *place])
    errors, bounds, routes = [], [], Counter()
    for run in range(runs):
        means = world.draw(rng)
        found, error, route = fit(people(means), bounds=1.0, delta=delta, seed=[seed, run, *place])
        errors.append(np.linalg.norm(found - means.mean(axis=0)))
        bounds.append(error.bound)
        routes[route.name] += 1
    return Fits(np.array(errors), np.array(errors), np.array(bounds), routes)


def fit_table(table, columns: int, *, runs: int, seed: int, delta: float = DELTA) -> Fits:
    """Return fits of the first ``columns`` columns of a table, in half-widths of their ranges."""
    lower, upper = (limits[:columns] for limits in table.limits)
    half = (upper - lower) / 2.0
    users = UserData(table.users.X[:, :columns], offsets=table.users.offsets)
    means = users.user_means()
    truth = np.clip(means[~np.isnan(means[:, 0])], lower, upper).mean(axis=0)
    # Noise of its own for each table: shared draws would make all tables lucky at once, or none.
    place = [seed, columns, int(delta > 0.0), *hashlib.sha256(table.name.encode()).digest()[:4]]
    errors, lengths, bounds, routes = [], [], [], Counter()
    for run in range(runs):
        found, error, route = fit(users, bounds=(lower, upper), delta=delta, seed=[run, *place])
        errors.append(np.linalg.norm((found - truth) / half))
        lengths.append(np.linalg.norm(found - truth))
        bounds.append(error.bound)
        routes[route.name] += 1
    return Fits(np.array(errors), np.array(lengths), np.array(bounds), routes)


def absent_errors(present: int, d: int, relation: Relation, *, runs: int) -> list[float]:
    """Return errors over stated bounds where few of 8,000 people hold a value, far from the centre.

    An answer that is refused is not off.
    """
    rng = np.random.default_rng([present, d])
    means = np.full((8000, d), np.nan)
    means[:present] = rng.normal(0.5, 0.05, size=(present, d))
    truth, found = means[:present].mean(axis=0), []
    for run in range(runs):
        with contextlib.suppress(NotEnoughUsersError):
            mean, error, _ = fit(
                people(means), bounds=1.0, delta=DELTA, seed=[6, run], relation=relation
            )
            found.append(float(np.linalg.norm(mean - truth)) / error.bound)
    return found or [0.0]


def one_record(table, columns: int, rng, *, delta: float = DELTA) -> float:
    """Return the error of one record a person: the noise of the range, and which record it is."""
    lower, upper = (limits[:columns] for limits in table.limits)
    half = (upper - lower) / 2.0
    held = np.flatnonzero(np.diff(table.users.offsets) > 0)
    first, last = table.users.offsets[held], table.users.offsets[held + 1]
    rows = np.clip((table.users.X[:, :columns] - lower) / half - 1.0, -1.0, 1.0)
    truth = np.add.reduceat(rows, first) / (last - first)[:, None]
    noise = min(range_laplace(held.size, columns), range_gaussian(held.size, columns, delta))
    errors = []
    for _ in range(20):
        chosen = rows[rng.integers(first, last)]
        errors.append(np.linalg.norm(chosen.mean(axis=0) - truth.mean(axis=0)))
    return math.hypot(noise, rms(errors))


def group_privacy(table, columns: int) -> float:
    """Return the noise where every record is hidden alone and a person's by group privacy.

    People hold at most so many records as nine in ten do; what others hold beyond is left out.
    """
    counts = np.diff(table.users.offsets)
    most = max(1.0, float(np.quantile(counts, 0.9)))
    kept = float(np.minimum(counts, most).sum())
    return math.sqrt(2.0 * columns) * 2.0 * columns * most / (kept * EPSILON)
