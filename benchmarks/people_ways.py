"""Three ways to fit a linear model privately that anyone tries, each tuned at nobody's cost.

Federated averaging with adaptive clipping, descent on records with the privacy of a group (at most
``cap`` records a person), and the same on one record a person.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from itertools import product

import numpy as np

from models import MU, logistic

# Rounds, own steps of a user, rate, first radius, speed at which the radius follows the median.
FEDERATED = (
    *product((8, 16, 32), (1,), (1.0, 2.0, 4.0), (0.2, 0.6), (0.2, 1.0)),
    *product((6, 12), (4,), (0.5, 1.0, 2.0), (0.6, 1.5), (0.2, 1.0)),
)
# Steps, rate, radius, records a person at most.
GROUPED = tuple(product((8, 30), (0.5, 2.0, 4.0), (0.5, 2.0, 8.0), (2, 8)))
SINGLE = tuple(product((8, 30), (0.5, 2.0, 4.0), (0.5, 2.0, 8.0), (1,)))


@dataclass(frozen=True)
class People:
    """Records in the units that everybody knows: features in [-1, 1], a target or a label."""

    X: np.ndarray
    y: np.ndarray
    counts: np.ndarray
    binary: bool

    @cached_property
    def starts(self) -> np.ndarray:
        """Where each person's records begin."""
        return np.r_[0, np.cumsum(self.counts)[:-1]]

    @cached_property
    def weights(self) -> np.ndarray:
        """Weights of records with which everybody counts once."""
        return np.repeat(1.0 / self.counts, self.counts) / len(self.counts)

    def slopes(self, scores: np.ndarray) -> np.ndarray:
        """Return the derivative of the loss of each record by its score."""
        return (logistic(scores) if self.binary else scores) - self.y

    def loss(self, scores: np.ndarray) -> float:
        """Return the mean loss over people: half a squared residual, or a logarithmic loss."""
        if self.binary:
            return float(self.weights @ (np.logaddexp(0, scores) - self.y * scores))
        return float(self.weights @ (scores - self.y) ** 2) / 2

    def take(self, chosen: np.ndarray) -> People:
        """Return some of the people."""
        counts = self.counts[chosen]
        ends = np.cumsum(counts)
        rows = np.arange(ends[-1]) + np.repeat(self.starts[chosen] - (ends - counts), counts)
        return People(self.X[rows], self.y[rows], counts, self.binary)

    def capped(self, most: int, rng: np.random.Generator) -> People:
        """Return the same people with at most so many of their records, by chance."""
        order = np.lexsort((rng.random(len(self.X)), np.repeat(self.starts, self.counts)))
        place = np.arange(len(self.X)) - np.repeat(self.starts, self.counts)
        rows = order[place < most]
        return People(self.X[rows], self.y[rows], np.minimum(self.counts, most), self.binary)


# --- what anyone tries ---------------------------------------------------------------------------


def federated(people: People, setting: tuple, rng: np.random.Generator) -> np.ndarray:
    """Return weights by federated averaging whose clip follows the median of the updates."""
    rounds, own_steps, rate, radius, speed = setting
    n, d = len(people.counts), people.X.shape[1]
    pace = 1.0 if people.binary else 1.0 / np.mean(np.einsum("ij,ij->i", people.X, people.X))
    mu = MU / np.sqrt(rounds)
    theta, total = np.zeros(d), np.zeros(d)
    for turn in range(rounds):
        own = np.tile(theta, (n, 1))
        for step in range(own_steps):
            near = people.X @ theta if step == 0 else None
            scores = _own_scores(people, own) if near is None else near
            rows = people.X * people.slopes(scores)[:, None]
            own -= pace * np.add.reduceat(rows, people.starts) / people.counts[:, None]
        update = own - theta
        norms = np.sqrt(np.einsum("ij,ij->i", update, update))
        mean = np.minimum(1.0, radius / np.maximum(norms, 1e-300)) @ update / n
        theta = theta + rate * (mean + 2 * radius / (n * mu * np.sqrt(0.95)) * rng.normal(size=d))
        inside = np.mean(norms <= radius) + rng.normal() / (n * mu * np.sqrt(0.05))
        radius *= np.exp(-speed * (inside - 0.5))
        if turn >= rounds // 2:
            total += theta
    return total / (rounds - rounds // 2)


def _own_scores(people: People, own: np.ndarray) -> np.ndarray:
    m = people.counts[0]
    if np.all(people.counts == m):
        return np.matmul(people.X.reshape(len(own), m, -1), own[:, :, None]).ravel()
    return np.einsum("ij,ij->i", people.X, np.repeat(own, people.counts, axis=0))


def grouped(people: People, setting: tuple, rng: np.random.Generator) -> np.ndarray:
    """Return weights by descent on clipped gradients of at most ``cap`` records a person."""
    steps, rate, radius, cap = setting
    kept = people.capped(cap, rng)
    d = kept.X.shape[1]
    theta, total = np.zeros(d), np.zeros(d)
    norms = np.sqrt(np.einsum("ij,ij->i", kept.X, kept.X))
    for step in range(steps):
        slopes = kept.slopes(kept.X @ theta)
        slopes *= np.minimum(1.0, radius / np.maximum(np.abs(slopes) * norms, 1e-300))
        noise = 2 * radius * cap * np.sqrt(steps) / (len(kept.X) * MU) * rng.normal(size=d)
        theta = theta - rate * (slopes @ kept.X / len(kept.X) + noise)
        if step >= steps // 2:
            total += theta
    return total / (steps - steps // 2)


WAYS: dict[str, tuple[Callable, tuple]] = {
    "federated": (federated, FEDERATED),
    "group": (grouped, GROUPED),
    "one record": (grouped, SINGLE),
}
Case = tuple[People, Callable[[np.ndarray], float]]


def tuned(way: str, cases: list[Case], seed: int) -> tuple:
    """Return the setting with the least mean loss on cases that are not reported."""
    method, settings = WAYS[way]
    risks = np.zeros(len(settings))
    for i, (people, excess) in enumerate(cases):
        for place, setting in enumerate(settings):
            rng = np.random.default_rng([5, seed, i, place])
            with np.errstate(all="ignore"):
                risks[place] += excess(method(people, setting, rng))
    return settings[int(np.nanargmin(np.where(np.isfinite(risks), risks, np.inf)))]
