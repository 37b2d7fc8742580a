r"""Sums over nested intervals: a distribution function with less noise than sums of cells.

A sum of j noisy cells contains the noise of all of them. If cells are summed in groups, and groups
in larger groups, each with its own noise, then a sum up to any point needs few of them. The price
is that a user contributes to one group of every level, so L levels share the budget. With L levels
of b parts each the standard deviation of a sum is about :math:`\sqrt{b L^3}/2` times that of a
single cell, compared with :math:`\sqrt{b^L}/2` without levels. For the largest error over all
points two levels are better from about 200 cells on, three from about 3,000. [1]_

Least squares then makes all noisy sums consistent: the parts of a group add up to the group, and
everything adds up to the known number of users. [2]_

References
----------
.. [1] Qardaji, Yang, Li. Understanding hierarchical methods for differentially private histograms.
   PVLDB 6(14), 2013.
.. [2] Hay, Rastogi, Miklau, Suciu. Boosting the accuracy of differentially private histograms
   through consistency. PVLDB 3(1), 2010.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from quorate import _validate
from quorate.core.public_randomness import public_generator

__all__ = ["Hierarchy", "choose_hierarchy", "rising"]

# machine: public draws that tell how far the largest error of a distribution function reaches.
_DRAWS, _SEED = 600, 20_231
# Measured: from this many cells on one more level makes the largest error smaller.
_MORE_LEVELS = (200, 3000, 40_000)


@dataclass(frozen=True)
class Hierarchy:
    """``levels`` levels of intervals, each divided into ``branching`` parts.

    Parameters
    ----------
    branching, levels : int

    Examples
    --------
    >>> Hierarchy(branching=4, levels=2).sizes
    (4, 16)
    """

    branching: int
    levels: int

    def __post_init__(self) -> None:
        _validate.positive_integer(branching=self.branching, levels=self.levels)

    @property
    def leaves(self) -> int:
        """Number of the smallest intervals."""
        return int(self.branching**self.levels)

    @property
    def sizes(self) -> tuple[int, ...]:
        """Number of intervals of each level."""
        return tuple(int(self.branching**level) for level in range(1, self.levels + 1))

    def consistent(
        self, sums: list[NDArray[np.float64]], absent: float, total: float
    ) -> tuple[NDArray[np.float64], float]:
        """Return the shares of leaves and absent users, by least squares over all sums.

        ``sums`` has one array per level; ``total`` is the sum of everything. It works on several
        sets at once, along the first axis.

        >>> leaves, absent = Hierarchy(2, 1).consistent([np.array([5.0, 3.0])], 1.0, 12.0)
        >>> leaves, absent
        (array([6., 4.]), np.float64(2.0))
        """
        b = self.branching
        # From the leaves up: the best estimate of a sum from itself and what lies below.
        best, variance = [sums[-1]], [1.0]
        for values in reversed(sums[:-1]):
            below = best[0].reshape(*values.shape, b).sum(axis=-1)
            weight = b * variance[0] / (1.0 + b * variance[0])
            best.insert(0, weight * values + (1.0 - weight) * below)
            variance.insert(0, weight)
        # From the top down: what is missing is shared by the parts, by their variance.
        whole = b * variance[0] + 1.0
        missing = total - best[0].sum(axis=-1) - absent
        gone = absent + missing / whole
        fitted = best[0] + (missing * variance[0] / whole)[..., None]
        for level in range(1, self.levels):
            parts = best[level].reshape(*fitted.shape, b)
            missing = fitted - parts.sum(axis=-1)
            fitted = (parts + missing[..., None] / b).reshape(*fitted.shape[:-1], -1)
        return fitted, gone

    def largest_error(self, *, scale: float, beta: float) -> float:
        """Return a bound on the errors of all cumulative sums that fails with probability ``beta``.

        ``scale`` is the scale of the Laplace noise of every sum. The error does not depend on the
        data, so its distribution is known. Its quantile is estimated from public simulations, with
        a margin for their finite number.

        >>> 1.0 < Hierarchy(8, 1).largest_error(scale=1.0, beta=0.05) < 8.0
        True
        """
        errors = _largest_errors(self)
        place = (1.0 - beta) * _DRAWS + 2.0 * math.sqrt(beta * (1.0 - beta) * _DRAWS)
        return scale * float(errors[min(_DRAWS - 1, math.ceil(place))])


@lru_cache(maxsize=64)
def _largest_errors(hierarchy: Hierarchy) -> NDArray[np.float64]:
    """Return sorted public draws of the largest error of a sum, for noise of scale 1.

    If sums are divided by the number of present users, two errors add up: that of the sum, and that
    of the number of absent users.
    """
    generator = public_generator(_SEED)
    found = []
    for _ in range(12):
        many = _DRAWS // 12
        noise = [generator.laplace(size=(many, size)) for size in hierarchy.sizes]
        absent = generator.laplace(size=many)
        leaves, gone = hierarchy.consistent(noise, absent, np.zeros(many))  # type: ignore[arg-type]
        ups = np.abs(np.cumsum(leaves, axis=-1)).max(axis=-1)
        found.append(ups + np.abs(gone))
    return np.sort(np.concatenate(found))


def choose_hierarchy(cells: int) -> Hierarchy:
    """Return the levels with the smallest error of sums over ``cells`` cells.

    >>> choose_hierarchy(20), choose_hierarchy(1000)
    (Hierarchy(branching=20, levels=1), Hierarchy(branching=32, levels=2))
    """
    _validate.positive_integer(cells=cells)
    levels = 1 + sum(cells >= start for start in _MORE_LEVELS)
    return Hierarchy(max(2, math.ceil(cells ** (1.0 / levels) - 1e-9)), levels)


def rising(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the nearest non-decreasing values between 0 and 1.

    Each value is the midpoint of the largest value so far and the smallest later value; this never
    increases the largest distance from any non-decreasing function.

    >>> rising(np.array([0.2, 0.1, 0.7, 1.2]))
    array([0.15, 0.15, 0.7 , 1.  ])
    """
    highest = np.maximum.accumulate(values)
    lowest = np.minimum.accumulate(values[::-1])[::-1]
    return np.clip(0.5 * (highest + lowest), 0.0, 1.0)
