"""Planning a private median: how far the rank of the answer is off."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from quorate import _validate
from quorate._validate import exact
from quorate.core.guarantees import Relation
from quorate.means.median import LOOK, ROUTE, looked_quantile
from quorate.mechanisms.choices.quantiles import FloatQuantile
from quorate.mechanisms.choices.round_quantile import RoundQuantile
from quorate.planning.limits import fixed_users_floor, packing_users
from quorate.planning.plan import PublishedBound
from quorate.planning.solve import smallest_users
from quorate.planning.tasks.base import PlanTask
from quorate.ranges import half_width

__all__ = ["MedianTask"]

_HALF_POINTS = 300  # machine: points of a quadrature
# Measured: the share of the failure probability to plan with.
_CAUTION = 0.6
# machine: ranks less likely than this add nothing to a float.
_NEVER = 1e-22


@lru_cache(maxsize=8)
def _ranks() -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return rank errors in (0, 1/2), and the width of the values with each.

    Values are normal with standard deviation 1. Ranks are denser near the median and near the
    ends, where widths change fast.
    """
    from scipy.special import ndtr, ndtri

    edges = ndtr(np.linspace(-8.0, 0.0, _HALF_POINTS))
    edges = np.concatenate([edges, 0.5 - np.geomspace(0.5e-1, 1e-9, _HALF_POINTS), [0.5]])
    edges = np.unique(edges)
    return 0.5 - (edges[1:] + edges[:-1]) / 2, 2.0 * np.diff(ndtri(edges))


@dataclass(frozen=True, kw_only=True)
class MedianTask(PlanTask):
    """The median over users of one value per user, as in :class:`~quorate.means.PrivateMedian`.

    The error is the rank error: how far the share of all users (not only those who take part) below
    the released value is from one half. The law of the mechanism is computed for normally
    distributed values and convolved with the sampling error of the median. Ranks are relative to
    users. How much users differ and how many records they have matters only through ``scale``, so
    ``between`` is not a parameter.

    Parameters
    ----------
    dimension : int, default=1
        Number of medians that share epsilon.
    bounds : float or pair, default=100.0
        Public range of the values: b for [-b, b], or (lower, upper).
    scale : float, default=1.0
        A public guess of the standard deviation of the users' values; only its logarithm matters.

    Examples
    --------
    >>> task = MedianTask(bounds=1000.0)
    >>> task.error(1000, 1.0) < 0.05 < task.error(100, 1.0)
    True
    """

    dimension: int = 1
    bounds: Any = 100.0
    scale: float = 1.0

    name: ClassVar[str] = "median"
    error_meaning: ClassVar[str] = (
        "distance of the answer's rank from one half, as a share of users"
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        _validate.positive_integer(dimension=self.dimension)
        _validate.positive(half_width=self.half_width, scale=self.scale)

    @cached_property
    def half_width(self) -> float:
        """Half of the width of the public range."""
        return half_width(self.bounds)

    @property
    def largest_error(self) -> float:
        """The rank error if all users are on one side of the answer."""
        return 0.5

    def mechanism(self, epsilon: float) -> RoundQuantile | FloatQuantile:
        """Return the mechanism for one of the medians."""
        mechanism, _ = looked_quantile(
            (-self.half_width, self.half_width),
            epsilon=exact(epsilon) / self.dimension,
            relation=self.relation,
        )
        return mechanism

    def error(self, users: int, epsilon: float) -> float:
        """Return the bound on the rank errors of all medians."""
        from scipy.optimize import brentq
        from scipy.special import ndtr

        ranks, widths = _ranks()
        # Losses are twice the rank error in users; one user changes them by 2, or by 1.
        rate = float(1 - LOOK) * epsilon / self.dimension
        rate /= 2.0 if self.relation is Relation.REPLACE else 1.0
        # Exponents are taken from the middle, which outweighs everything when users are many.
        least = float(ranks.min())
        weights = widths * np.exp(-rate * users * (ranks - least))
        outside = max(0.0, 2.0 * self.half_width / self.scale - float(widths.sum()))
        nowhere = outside * math.exp(-rate * users * (0.5 - least))
        total = float(weights.sum()) + nowhere
        weights, nowhere = weights / total, nowhere / total
        likely = weights > _NEVER
        weights, ranks = weights[likely], ranks[likely]
        deviation = 0.5 / math.sqrt(users)
        # The gaps between users near the median vary, which the law for all users leaves out.
        beta = _CAUTION * self.beta / self.dimension

        def missed(error: float) -> float:
            above = ndtr((ranks - error) / deviation)
            below = ndtr((-ranks - error) / deviation)
            return float(weights @ (above + below)) + nowhere

        if missed(0.5) > beta:
            return 0.5
        # The least of 2^40 steps that keeps beta, which a root on the way to it nearly is.
        step = 0.5 * 2.0**-40
        root = 0.0
        if missed(0.0) > beta:
            root = brentq(lambda error: missed(error) - beta, 0.0, 0.5, xtol=step / 4)
        place = max(1, math.ceil(root / step))
        while missed(place * step) > beta:
            place += 1
        while place > 1 and missed((place - 1) * step) <= beta:
            place -= 1
        return place * step

    def algorithm(self, users: int, epsilon: float) -> tuple[str, str]:
        """Return the only algorithm."""
        del users, epsilon
        return ROUTE.name, ROUTE.reason

    def upper(self, *, epsilon: float, error: float) -> PublishedBound:
        """Return the users for which the worst-case bounds of sampling and mechanism suffice."""
        theorem = "Lemma 5.1 of Li, Wang, Ye (2024)"
        if error >= 0.5:
            return PublishedBound(users=1, theorem=theorem, holds=True, note="any answer does")
        beta = self.beta / (2.0 * self.dimension)
        rank = self.mechanism(epsilon).error_bound(beta)
        sampling = math.sqrt(math.log(2.0 / beta) / 2.0)
        users = smallest_users(lambda n: rank / n + sampling / math.sqrt(n), error)
        return PublishedBound(
            users=None if users is None else float(users),
            theorem=theorem,
            holds=True,
            note="worst case over all data; exact constants of the mechanism and Hoeffding's bound",
        )

    def lower(self, *, epsilon: float, error: float) -> PublishedBound:
        """Return the packing bound over all possible positions of the users."""
        from scipy.special import ndtri

        # Normal crowds have no good answer in common from twice this distance on.
        away = self.scale * float(ndtri(0.5 + error)) if error < 0.5 else math.inf
        places = 1 + math.floor(self.half_width / away)
        if places == 1:
            return PublishedBound(
                users=1.0, theorem="no theorem", holds=True, note="the middle always does"
            )
        if self.delta > 0:
            floor = float(
                fixed_users_floor(
                    epsilon=epsilon, delta=self.delta, beta=self.beta, relation=self.relation
                )
            )
            theorem = "Theorem 9 of Levy et al. (2021)"
        else:
            floor = packing_users(
                log_alternatives=self.dimension * math.log(places),
                epsilon=epsilon,
                beta=self.beta,
                relation=self.relation,
            )
            theorem = "Lemma 39 (packing) of Ghazi et al. (2023)"
        return PublishedBound(
            users=max(1.0, floor),
            theorem=theorem,
            holds=True,
            note="normal crowds that have no good answer in common",
        )
