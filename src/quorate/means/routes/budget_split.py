"""How a budget is split between the steps of a mean, from public and released numbers only.

Distances are measured in the data's units. ``spread`` is a released estimate of how far one user
lies from the centre; ``effective_users`` is n, or the released sum of weights; ``square`` is what
is left of the squared Gaussian budget. Nothing here sees data: anyone can recompute a plan.

All predictions assume that users are spread evenly around one centre. They steer the split and
the choice of a route; the privacy of a run does not depend on them.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import NormalDist

import numpy as np

from quorate.mechanisms.sums import looks_needed

__all__ = [
    "CorePlan",
    "Setting",
    "ShrinkPlan",
    "plan_core",
    "plan_shrinking",
    "radius_share",
    "spread_looks_cost",
]

SPREAD_CANDIDATES = 128
SPREAD_RATIO = 2.0**0.25
# A look at the pair distances errs by half of all pairs once in this many standard deviations.
SPREAD_CERTAINTY = 4.7
# The search for the final radius has to leave this many standard deviations of users outside, so
# that noise alone does not send it to the largest radius.
RADIUS_CERTAINTY = 4.3
RADIUS_CANDIDATES = 64
# How much a share q of cut users is assumed to bias the mean, in units of q times the radius.
CUT_WEIGHT = 0.04
# The final radius cuts this many times the share at which cutting costs as much as it saves in
# the worst case; users who lie evenly around their centre lose much less.
CUT_FACTOR = 2.0
# Multiples of the typical distance of two users at which the core is tried, one after the other.
CORE_RADII = (1.35, 2.2, 3.6)
# The plan lets a test on well gathered users pass by this many standard deviations.
CORE_CERTAINTY = 3.0
# Shares: who may lack friends at the first radius, and how many friends the others have.
CORE_LONELY, CORE_FRIENDLY = 0.06, 0.9

_ROUND_SHARES = np.array([0.01, 0.02, 0.03, 0.04, 0.06, 0.08, 0.1, 0.13, 0.17, 0.22])
_MAX_ROUNDS = 16
_TEST_SHARES = (0.06, 0.09, 0.12, 0.16, 0.2, 0.25)
_CENTRE_SHARES = (0.04, 0.07, 0.1, 0.15, 0.2)
_RADIUS_SHARES = np.geomspace(0.03, 0.6, 16)


@dataclass(frozen=True, kw_only=True)
class Setting:
    """The public numbers of one run.

    Parameters
    ----------
    effective_users : float
        Number of users, or the noisy sum of their weights.
    dimension : int
    reach : float
        Radius of the public bound.
    spread : float
        Released estimate of one user's distance from the centre.
    diameter : float, default=2.0
        Change of a clipped sum by one user, in radii: 2 for replacement, 1 for add or remove.
    drift : float, default=0.1
        Share of users who may pull a shrinking ball to one side.
    normaliser_error : float, default=0.0
        Relative standard error of ``effective_users``.
    """

    effective_users: float
    dimension: int
    reach: float
    spread: float
    diameter: float = 2.0
    drift: float = 0.1
    normaliser_error: float = 0.0

    @property
    def noise_length(self) -> float:
        """Length of a standard normal vector that is exceeded about once in 1000 draws."""
        return math.sqrt(self.dimension) + 2.3

    def mean_error(self, radius: float, square: float) -> float:
        """Return the root mean square length of the noise of a clipped mean."""
        scale = self.diameter * radius / (self.effective_users * math.sqrt(square))
        return scale * math.sqrt(self.dimension)

    def next_radius(self, radius: float, noise: float) -> float:
        """Return the radius after a round with noise of standard deviation ``noise``."""
        away = math.hypot(noise * self.noise_length, self.normaliser_error * radius)
        return math.hypot(self.spread, away) + self.drift * radius


@dataclass(frozen=True, kw_only=True)
class ShrinkPlan:
    """Rounds of a shrinking ball, then a search for the radius, then one clipped mean.

    Attributes
    ----------
    rounds : int
    round_square, radius_square, final_square : float
        Squared Gaussian parameters of each round, of the search for the radius and of the mean.
    error : float
        Predicted root mean square error of the final noise.
    """

    rounds: int
    round_square: float
    radius_square: float
    final_square: float
    error: float


@dataclass(frozen=True, kw_only=True)
class CorePlan:
    """A test for a friendly core, its mean, then a shrinking ball.

    Attributes
    ----------
    test_square, centre_square : float
        Squared Gaussian parameters of each of the tests and of the core's mean.
    top_share, few_share : float
        ``top`` and ``few`` of the core as shares of the users.
    error : float
        Predicted error at the end.
    """

    test_square: float
    centre_square: float
    top_share: float
    few_share: float
    error: float


def spread_looks_cost(pairs: int, square: float) -> float:
    """Return the squared budget of the search for the spread among ``pairs`` pair distances.

    >>> spread_looks_cost(500, 0.0555) < 0.06 * 0.0555
    True
    """
    looks = looks_needed(SPREAD_CANDIDATES)
    return max(looks * (SPREAD_CERTAINTY / (pairs / 2)) ** 2, 0.01 * square)


def radius_share(setting: Setting, square: float) -> float:
    """Return the share of ``square`` that the search for the final radius should get."""
    scale = 1.0 / (setting.effective_users * math.sqrt(square))
    cut = RADIUS_CERTAINTY * math.sqrt(looks_needed(RADIUS_CANDIDATES)) * scale
    noise = setting.diameter * math.sqrt(setting.dimension) * scale
    loss = CUT_WEIGHT * cut / np.sqrt(_RADIUS_SHARES) + noise / np.sqrt(1.0 - _RADIUS_SHARES)
    return float(_RADIUS_SHARES[int(np.argmin(loss))])


def plan_shrinking(setting: Setting, *, start: float, square: float) -> ShrinkPlan | None:
    """Plan rounds from radius ``start`` down to the spread; ``None`` if the noise is too large.

    >>> big = Setting(effective_users=10_000, dimension=10, reach=1000.0, spread=1.0)
    >>> plan_shrinking(big, start=1000.0, square=0.055).rounds
    5
    >>> small = Setting(effective_users=100, dimension=100, reach=1000.0, spread=1.0)
    >>> plan_shrinking(small, start=1000.0, square=0.055) is None
    True
    """
    [plan] = _plans(setting, starts=[start], squares=[square])
    return plan


def _plans(
    setting: Setting, *, starts: Sequence[float], squares: Sequence[float]
) -> list[ShrinkPlan | None]:
    """Return :func:`plan_shrinking` of each start with its budget; a core tries dozens."""
    shares = [radius_share(setting, square) for square in squares]
    usable = [square * (1.0 - share) for square, share in zip(squares, shares, strict=True)]
    target = 3.0 * setting.spread * (1.0 + setting.drift)
    # A row for each start, a column for each share of a round.
    deviation = np.sqrt(np.array(usable)[:, np.newaxis] * _ROUND_SHARES)
    radius = np.repeat(np.array(starts, dtype=np.float64)[:, np.newaxis], len(_ROUND_SHARES), 1)
    feasible = np.ones(radius.shape, dtype=bool)
    rows = np.arange(len(radius))
    least = np.full(len(radius), np.inf)
    rounds, column = np.zeros((2, len(radius)), dtype=np.int64)
    for done in range(_MAX_ROUNDS + 1):
        rest = 1.0 - done * _ROUND_SHARES
        feasible &= rest >= 0.3
        if not feasible.any():
            break
        arrived = feasible & (radius <= target)
        if arrived.any():
            error = np.where(arrived, radius / np.sqrt(np.maximum(rest, 0.3)), np.inf)
            i = np.argmin(error, axis=1)
            better = error[rows, i] < 0.98 * least
            least[better], column[better] = error[rows, i][better], i[better]
            rounds[better] = done
        noise = setting.diameter * radius / setting.effective_users / deviation
        after = np.hypot(noise * setting.noise_length, setting.normaliser_error * radius)
        after = np.hypot(after, setting.spread) + setting.drift * radius
        feasible &= (after <= 0.75 * radius) | (radius <= 2.0 * setting.spread)
        radius = np.where(feasible, after, 0.0)  # what is given up must not grow beyond floats
    return [
        None
        if relative == math.inf
        else ShrinkPlan(
            rounds=count,
            round_square=left * each,
            radius_square=square * share,
            final_square=left * (1.0 - count * each),
            error=setting.mean_error(relative, left),
        )
        for relative, count, each, left, square, share in zip(
            least.tolist(),
            rounds.tolist(),
            _ROUND_SHARES[column].tolist(),
            usable,
            squares,
            shares,
            strict=True,
        )
    ]


def plan_core(
    setting: Setting,
    *,
    n_users: int,
    core_spread: float,
    square: float,
    delta: float,
    hostile: float = 0.0,
) -> CorePlan | None:
    """Plan a friendly core and what follows; ``None`` if the test could not pass.

    ``core_spread`` is the spread of the unweighted users, whom the core consists of.

    >>> setting = Setting(effective_users=1000, dimension=200, reach=14_000.0, spread=14.0)
    >>> plan = plan_core(setting, n_users=1000, core_spread=14.0, square=0.05, delta=1e-7)
    >>> plan.error < 6.0
    True
    """
    quantile = -NormalDist().inv_cdf(delta / len(CORE_RADII))
    lonely = CORE_LONELY + 1.2 * hostile
    friendly = CORE_FRIENDLY - 1.2 * hostile
    radius = CORE_RADII[0] * math.sqrt(2.0) * core_spread
    tried: list[tuple[float, float, float, float, float, float]] = []
    for test in _TEST_SHARES:
        needed = (quantile + CORE_CERTAINTY) / math.sqrt(test * square) / n_users
        few, slope = needed + lonely, friendly - 0.5 - needed - 2.0 / n_users
        if few > 0.3 or slope < 0.05:
            continue
        factor = (1.0 + few / slope) / (1.0 - few)
        for centre in _CENTRE_SHARES:
            noise = 2.0 * radius * factor / n_users / math.sqrt(centre * square)
            start = math.hypot(setting.spread, noise * setting.noise_length)
            tried.append((start, square * (1.0 - test - centre), test, centre, slope, few))
    if not tried:
        return None
    plans = _plans(setting, starts=[each[0] for each in tried], squares=[each[1] for each in tried])
    best: CorePlan | None = None
    for (_, _, test, centre, slope, few), shrink in zip(tried, plans, strict=True):
        if shrink is not None and (best is None or shrink.error < best.error):
            best = CorePlan(
                test_square=test * square,
                centre_square=centre * square,
                top_share=0.5 + slope,
                few_share=few,
                error=shrink.error,
            )
    return best
