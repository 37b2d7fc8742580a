"""Medians and quantiles of people who differ: how far released ranks are off, among real people.

A person's own number is the median of their records. A released number is off by as many people as
would have to be moved to its other side before it is a quantile of everybody's own numbers.
"""

from __future__ import annotations

import numpy as np

from quorate.means import PrivateMedian, UserQuantiles
from quorate.means.median import record_quantile
from quorate.noise import SeededNoise, use_noise
from quorate.users import UserData

EPSILON = 1.0


def rank_off(own: np.ndarray, value: float, quantile: float) -> float:
    """Return by which share of people a value misses a quantile of their own numbers.

    >>> rank_off(np.arange(11.0), 5.0, 0.5), round(rank_off(np.arange(10.0), 6.5, 0.5), 6)
    (0.0, 0.2)
    """
    below, above = np.mean(own < value), np.mean(own > value)
    return float(max(below - quantile, above - (1.0 - quantile), 0.0))


def column(table, place: int) -> tuple[UserData, np.ndarray, tuple[float, float]]:
    """Return one column of a table: its users, their own medians, and its public range."""
    users = UserData(
        np.ascontiguousarray(table.users.X[:, place : place + 1]), offsets=table.users.offsets
    )
    lower, upper = (float(limits[place]) for limits in table.limits)
    own = record_quantile(users, 0.5).ravel()
    return users, np.clip(own[np.isfinite(own)], lower, upper), (lower, upper)


def median_ranks(table, place: int, *, runs: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Return by how much medians are off, and the stated 95 % bounds, as shares of the people."""
    users, own, bounds = column(table, place)
    off, stated = [], []
    for run in range(runs):
        with use_noise(SeededNoise([seed, run])):
            found = PrivateMedian(epsilon=EPSILON, bounds=bounds).fit(users)
        off.append(rank_off(own, float(found.values_.ravel()[0]), 0.5))
        stated.append(found.error_.bound / own.size)
    return np.array(off), np.array(stated)


def quartile_ranks(table, place: int, *, runs: int, seed: int) -> np.ndarray:
    """Return by how much the worst of three quartiles is off, as a share of the people."""
    users, own, bounds = column(table, place)
    off = []
    for run in range(runs):
        with use_noise(SeededNoise([seed, run])):
            found = UserQuantiles(epsilon=EPSILON, bounds=bounds).fit(users)
        values = found.values_.ravel()
        off.append(max(rank_off(own, v, q) for v, q in zip(values, (0.25, 0.5, 0.75), strict=True)))
    return np.array(off)
