"""Noise of the ball and friendly-core algorithms of a mean, as tables over users x mu.

A route is planned from many small steps, and a plan asks for it hundreds of times; it depends on
users x mu alone, so that one table a dimension serves all questions.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import lru_cache

from quorate.means.routes.budget_split import Setting, plan_core, plan_shrinking, spread_looks_cost
from quorate.means.routes.ways import spread_is_affordable

__all__ = ["Table", "ball_noise", "core_noise", "read_noise", "tabulate"]

# Tables of noise are made at this mu; a route depends on users x mu alone.
_MU = 0.25
# Nodes of a table from the first feasible one on, per doubling, and how many.
_NODES, _LENGTH = 2.0, 14

Table = tuple[float, tuple[float, ...]]
"""The first feasible users x mu, and the noise (in spreads) from there on."""


def tabulate(noise: Callable[[float], float]) -> Table:
    """Tabulate a noise that is infinite up to a point and falls from there on."""
    low, high = 1.0, 2.0
    while not math.isfinite(noise(high)):
        low, high = high, 2.0 * high
        if high > 1e15:
            return math.inf, ()
    while high > 1.02 * low:
        middle = math.sqrt(low * high)
        if math.isfinite(noise(middle)):
            high = middle
        else:
            low = middle
    values: list[float] = []
    for node in range(_LENGTH):
        value = noise(high * 2.0 ** (node / _NODES))
        # Strictly falling by construction: a node never exceeds the one before.
        values.append(min(value, values[-1] * 0.999) if values else value)
    return high, tuple(values)


def read_noise(table: Table, signal: float) -> float:
    """Return a table's value at ``signal``, interpolated on logarithmic scales."""
    first, values = table
    if signal < first:
        return math.inf
    place = _NODES * math.log2(signal / first)
    node = min(int(place), len(values) - 2)
    if place > len(values) - 1:
        return values[-1] * math.exp2((len(values) - 1) / _NODES) * first / signal
    share = place - node
    logs = math.log(values[node]), math.log(values[node + 1])
    return math.exp(logs[0] + share * (logs[1] - logs[0]))


def _setting(signal: float, *, dimension: int, reach: float) -> tuple[Setting, float] | None:
    """Return what a route is planned from, and the squared budget after the spread was released."""
    users, square = signal / _MU, _MU * _MU
    pairs = int(users) // 2
    if pairs == 0:
        return None
    cost = spread_looks_cost(pairs, square)
    if not spread_is_affordable(cost, whole=square):
        return None
    setting = Setting(effective_users=users, dimension=dimension, reach=reach, spread=1.0)
    return setting, square - cost


@lru_cache(maxsize=256)
def core_noise(dimension: int, core_delta: float) -> Table:
    """Tabulate the noise of a mean that starts from a friendly core."""

    def noise(signal: float) -> float:
        found = _setting(signal, dimension=dimension, reach=1.0)
        if found is None:
            return math.inf
        setting, square = found
        users = int(setting.effective_users)
        plan = plan_core(setting, n_users=users, core_spread=1.0, square=square, delta=core_delta)
        return math.inf if plan is None else plan.error

    return tabulate(noise)


@lru_cache(maxsize=256)
def ball_noise(dimension: int, reach: float) -> Table:
    """Tabulate the noise of a mean found by a shrinking ball."""

    def noise(signal: float) -> float:
        found = _setting(signal, dimension=dimension, reach=reach)
        if found is None:
            return math.inf
        setting, square = found
        plan = plan_shrinking(setting, start=reach, square=square)
        return math.inf if plan is None else plan.error

    return tabulate(noise)
