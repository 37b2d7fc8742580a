"""Planning quantiles over users: how far the ranks of the answers are off."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from quorate import _validate
from quorate.core.guarantees import Relation
from quorate.means.median import LOOK
from quorate.planning.plan import PublishedBound
from quorate.planning.tasks.median import MedianTask

__all__ = ["QuantilesTask", "level_error"]

_POINTS = 601  # machine: points of a quadrature
_FARTHEST = 8.0
# machine: ranks are found to within this; those less likely than the other add nothing.
_CLOSEST, _NEVER = 1e-13, 1e-22
# Measured: the share of the failure probability to plan with.
_CAUTION = 0.4


@lru_cache(maxsize=64)
def _cells(level: float) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return signed rank errors of normal values at ``level``, and their widths there."""
    from scipy.special import ndtr, ndtri

    near = np.geomspace(1e-9, 0.25, 200)
    edges = np.concatenate(
        [
            ndtr(np.linspace(-_FARTHEST, _FARTHEST, _POINTS)),
            *(level + sign * near for sign in (-1.0, 1.0)),
            [level],
        ]
    )
    edges = np.unique(edges[(edges > 0.0) & (edges < 1.0)])
    return (edges[1:] + edges[:-1]) / 2 - level, np.diff(ndtri(edges))


def level_error(level: float, *, users: int, rate: float, outside: float, beta: float) -> float:
    """Bound the rank error of a private quantile of normal values, except with ``beta``.

    ``rate`` is the change of the exponent of the mechanism if the rank changes by one user.
    ``outside`` is the width of the public range beyond all values, in standard deviations.

    >>> middle, end = (
    ...     level_error(level, users=1000, rate=0.4, outside=100.0, beta=0.1)
    ...     for level in (0.5, 0.1)
    ... )
    >>> 0.01 < end < middle < 0.03
    True
    """
    from scipy.optimize import brentq
    from scipy.special import ndtr

    ranks, widths = _cells(level)
    away = np.abs(ranks)
    least = float(away.min())
    weights = widths * np.exp(-rate * users * (away - least))
    nowhere = outside * sum(math.exp(-rate * users * (end - least)) for end in (level, 1.0 - level))
    total = float(weights.sum()) + nowhere
    weights, nowhere = weights / total, nowhere / total
    likely = weights > _NEVER
    weights, ranks = weights[likely], ranks[likely]
    deviation = math.sqrt(level * (1.0 - level) / users)

    def missed(error: float) -> float:
        beyond = ndtr((ranks - error) / deviation) + ndtr((-ranks - error) / deviation)
        return float(weights @ beyond) + nowhere

    farthest = max(level, 1.0 - level)
    if missed(farthest) > beta:
        return farthest
    if missed(0.0) <= beta:
        return _CLOSEST
    root = float(brentq(lambda error: missed(error) - beta, 0.0, farthest, xtol=_CLOSEST))
    while missed(root) > beta:
        root += _CLOSEST
    return root


@dataclass(frozen=True, kw_only=True)
class QuantilesTask(MedianTask):
    """Quantiles over users of one value per user, as in :class:`~quorate.means.UserQuantiles`.

    The error is the largest rank error of all of them: the distance of the share of users below an
    answer from the level. The levels are evenly spaced: three are the quartiles.

    Parameters
    ----------
    dimension : int, default=1
        Features.
    size : int, default=3
        Number of quantiles per feature; all of them share epsilon.
    bounds : float or pair, default=100.0
        Public range of the values: b for [-b, b], or (lower, upper).
    scale : float, default=1.0
        A public guess of the standard deviation of the users' values; only its logarithm matters.

    Examples
    --------
    >>> QuantilesTask(bounds=1000.0).error(3000, 1.0) < 0.05
    True
    """

    size: int = 3

    name: ClassVar[str] = "quantiles"
    error_meaning: ClassVar[str] = (
        "largest distance of an answer's rank from its level, as a share of users"
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        _validate.positive_integer(size=self.size)

    @property
    def levels(self) -> tuple[float, ...]:
        """Shares of users below each quantile."""
        return tuple(k / (self.size + 1) for k in range(1, self.size + 1))

    @property
    def largest_error(self) -> float:
        """The rank error if all users are on one side of the last quantile."""
        return max(self.levels)

    @property
    def answers(self) -> int:
        """How many answers share epsilon."""
        return self.dimension * self.size

    def error(self, users: int, epsilon: float) -> float:
        """Return the bound on the rank errors of all quantiles."""
        each = float(1 - LOOK) * epsilon / self.answers
        beta = _CAUTION * self.beta / self.answers
        outside = max(0.0, self.half_width / self.scale - _FARTHEST)
        return max(
            level_error(
                level, users=users, rate=each * self._move(level), outside=outside, beta=beta
            )
            for level in {min(level, 1.0 - level) for level in self.levels}
        )

    def _move(self, level: float) -> float:
        """Return the change of the exponent per rank at an epsilon of 1."""
        return 0.5 if self.relation is Relation.REPLACE else 0.5 / max(level, 1.0 - level)

    def upper(self, *, epsilon: float, error: float) -> PublishedBound:
        """Return the users for which the bounds of a median with its part of epsilon suffice."""
        alone = MedianTask(
            dimension=self.answers,
            bounds=self.bounds,
            scale=self.scale,
            records=self.records,
            confidence=self.confidence,
            relation=self.relation,
        )
        found = alone.upper(epsilon=epsilon, error=min(error, 0.49))
        return PublishedBound(
            users=found.users, theorem=found.theorem, holds=False, note="stated for medians"
        )
