"""How far to clip: noise against what clipping moves, from released points of a tail.

Two quantiles of the distances of users from a centre are known: an inner one, and an outer one that
leaves few enough users outside for the search to see it. The best clip lies farther out still,
where a handful of users is outside, so the tail between has to be guessed. Two guesses are mixed:
that it goes on to fall as from the inner to the outer point (a stretched exponential), and that it
falls from there on as slowly as a power of the distance. Nothing here sees data.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

__all__ = ["Tail"]

# Weight of the heavy guess where a clip is chosen: so much, or so many times the share of the users
# who are beyond the outer point, because more of them were not seen; and where an error is stated.
_HEAVY, _UNSEEN, _CAUTIOUS = 0.3, 2.5, 0.8
_CANDIDATES = 96
# Limits for what two noisy points say about a tail.
_HEAVIEST, _STEEPEST, _POWERS = 0.25, 4.0, (1.1, 12.0)


@dataclass(frozen=True, kw_only=True)
class Tail:
    """The users beyond an outer quantile of the distances from a centre.

    Parameters
    ----------
    outer : float
        A released distance; all users lie within ``farthest``.
    outer_share : float
        Share of the users that are farther away.
    farthest : float
    users : float
        How many there are.
    inner : float
    inner_share : float, default=0.5
        The same of a point farther in.
    lightest : float, default=4.0
        The largest exponent that is believed.

    Examples
    --------
    >>> tail = Tail(inner=0.7, outer=2.0, inner_share=0.5, outer_share=0.05, farthest=100.0,
    ...             users=1000.0)
    >>> radii, moved = tail.candidates, tail.excess()
    >>> bool(moved[0] > 10 * moved[radii > 4.0][0]), float(moved[-1])
    (True, 0.0)
    """

    outer: float
    outer_share: float
    farthest: float
    users: float
    inner: float
    inner_share: float = 0.5
    lightest: float = 4.0

    @property
    def _depth(self) -> float:
        return math.log(1.0 / self.outer_share)

    @property
    def exponent(self) -> float:
        """How the tail falls between both points: 1 for an exponential, 2 for a normal one."""
        if self.outer <= 1.05 * self.inner:
            return _STEEPEST
        before = math.log(1.0 / self.inner_share)
        found = math.log(self._depth / before) / math.log(self.outer / self.inner)
        return min(max(found, _HEAVIEST), _STEEPEST)

    @property
    def candidates(self) -> NDArray[np.float64]:
        """Radii to choose from: the outer quantile and farther."""
        if self.outer >= 0.999 * self.farthest:
            return np.array([self.farthest])
        return np.geomspace(self.outer, self.farthest, _CANDIDATES)

    def excess(self, *, cautious: bool = False) -> NDArray[np.float64]:
        """Return how far users lie beyond each candidate, added up over them."""
        radii = self.candidates
        if radii.size == 1:
            return np.zeros(1)
        heavy = _CAUTIOUS if cautious else max(_HEAVY, _UNSEEN * self.outer_share)
        depth, exponent = self._depth, min(self.exponent, self.lightest)
        power = min(max(exponent * depth, _POWERS[0]), _POWERS[1])
        away = radii / self.outer
        with np.errstate(over="ignore", under="ignore"):
            light = np.exp(-depth * (away**exponent - 1.0))
        share = heavy * away**-power + (1.0 - heavy) * light
        pieces = 0.5 * (share[1:] + share[:-1]) * np.diff(radii)
        beyond = np.concatenate([np.cumsum(pieces[::-1])[::-1], [0.0]])
        return np.asarray(self.users * self.outer_share * beyond)
