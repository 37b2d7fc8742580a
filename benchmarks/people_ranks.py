"""Medians and quantiles of people who differ: how far released ranks are off, among real people.

A person's own number is the median of their records. A released number is off by as many people as
would have to be moved to its other side before it is a quantile of everybody's own numbers.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from quorate.core.noise import SeededNoise, use_noise
from quorate.core.users import UserData
from quorate.means import PrivateMedian, UserQuantiles
from quorate.means.median import record_quantile

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


@dataclass
class Ranks:
    """By how much released ranks were off, and the stated 95 % bounds, as shares of the people."""

    off: list = field(default_factory=list)
    stated: list = field(default_factory=list)

    def add(self, off: float, stated: float) -> None:
        """Remember one number."""
        self.off.append(off)
        self.stated.append(stated)

    @property
    def rms(self) -> float:
        """Root of the mean square."""
        return float(np.sqrt(np.mean(np.square(self.off))))

    @property
    def kept(self) -> float:
        """Share of the bounds that hold."""
        return float(np.mean(np.less_equal(self.off, self.stated)))

    @property
    def tight(self) -> bool:
        """Whether the usual bound is at most three times the 95 % quantile of the errors."""
        return bool(np.median(self.stated) <= 3.0 * np.quantile(self.off, 0.95))


def released_ranks(table, place: int, *, quantiles, runs: int, seed: int) -> list[Ranks]:
    """Return the ranks of each of some quantiles of a column, released together."""
    users, own, bounds = column(table, place)
    found = [Ranks() for _ in quantiles]
    for run in range(runs):
        with use_noise(SeededNoise([seed, run])):
            if len(quantiles) == 1:
                fit = PrivateMedian(epsilon=EPSILON, bounds=bounds).fit(users)
            else:
                fit = UserQuantiles(epsilon=EPSILON, quantiles=quantiles, bounds=bounds).fit(users)
        each = zip(found, quantiles, fit.quantiles_.ravel(), fit.error_.coordinates, strict=True)
        for ranks, quantile, value, stated in each:
            ranks.add(rank_off(own, float(value), quantile), stated / own.size)
    return found
