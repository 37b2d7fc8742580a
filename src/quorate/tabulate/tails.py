r"""Caps and their clipping bias from a noisy tally of lengths; only released numbers are used.

The lengths of people's contributions are counted between public edges, one or two per factor of
two. People are *detected* from an edge on if some sums of counts above it exceed what noise reaches
in one case of twenty, for all edges together. The *top* is found by going upwards. From an edge
with detected people the next edge may need less evidence the closer it is, and must have more the
farther it is, because a cap that is too long because of noise costs in proportion to its excess.
The expected number of people in the next factor of two beyond the top is its noisy count, but at
least one noise scale. Further up it falls as a Pareto law. The index of this law is estimated from
the counts in one to three factors of two below, and the law never falls more slowly than 1/x.

The cap is the edge at which noise and clipping bias balance. The bound on the clipping bias uses
one-in-twenty quantiles: high ones for counts beyond the top, low ones for counts below. It includes
people detected farther up who are too few for a longer cap. If people are too few to estimate their
tail, the slowest law is assumed and the bound is wide. If nobody is detected there is no bound.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property, lru_cache

import numpy as np
from numpy.typing import NDArray

from quorate.tabulate.budget import KNOWN
from quorate.tabulate.released import CONFIDENCE

__all__ = ["Tail", "ladder", "noise_odds", "whole_ladder"]

Floats = NDArray[np.float64]

# A Laplace variable exceeds so many of its sizes in one case of twenty, on one side.
_RARE = math.log(10.0)
# Noise lengthens a cap by 2^j with odds e^-1 2^-3j or less, which adds up to less than .4 to the
# mean square of a cap: for two of the three an infinite mean square is what 2^-2j has.
_STEEP = 3.0
# How many doublings below the top say how a tail falls.
_SEEN = 3


def ladder(low: float, high: float, steps: int) -> Floats:
    """Return edges from ``low`` upwards, ``steps`` per factor of two, to at least ``high``.

    >>> ladder(1.0, 5.0, 1).tolist(), ladder(1.0, 2.0, 2).round(2).tolist()
    ([1.0, 2.0, 4.0, 8.0], [1.0, 1.41, 2.0])
    """
    return np.asarray(
        low * 2.0 ** (np.arange(math.ceil(math.log2(high / low)) * steps + 1) / steps)
    )


def whole_ladder(high: float, steps: int) -> Floats:
    """Return whole numbers up to ``high``, about so many per factor of two.

    >>> whole_ladder(20.0, 2).tolist(), whole_ladder(5.0, 1).tolist()
    ([1.0, 2.0, 3.0, 4.0, 6.0, 8.0, 11.0, 16.0, 20.0], [1.0, 2.0, 4.0, 5.0])
    """
    return np.unique(np.minimum(np.rint(ladder(1.0, max(2.0, high), steps)), high))


@dataclass(frozen=True, kw_only=True, eq=False)
class Tail:
    """What a noisy tally of lengths shows about people above a cap.

    Parameters
    ----------
    edges : array of shape (m,)
        Increasing.
    counts : array of shape (m,)
        Noisy numbers of people whose length is at most an edge and above the edge before.
    size : float
        Scale of the Laplace noise.
    steps : int, default=1
        Approximate number of edges per factor of two.
    closed : bool, default=False
        Whether nobody is above the last edge.
    unseen : int, default=0
        The index of the top if nobody is detected.

    Examples
    --------
    >>> alike = Tail(edges=ladder(1, 100, 1), counts=np.r_[3, -5, 2, 1, 0, 2000, 4, -2], size=5.0)
    >>> alike.cap(10.0), alike.cut(32.0) < 300
    (32.0, True)
    """

    edges: Floats
    counts: Floats
    size: float
    steps: int = 1
    closed: bool = False
    unseen: int = 0

    @property
    def known(self) -> bool:
        """Whether anybody is detected, or no length can be above the last edge."""
        return self._top >= 0 or self.closed

    @property
    def shown(self) -> bool:
        """Whether enough people are detected to estimate how their tail falls."""
        noise = _RARE * self.size * math.sqrt(len(self.counts))
        return float(self.counts.sum()) >= KNOWN * self.size - noise

    @property
    def _spans(self) -> int:
        """How many sums of counts are tested at an edge: of 1, 2, 4, up to two factors of two."""
        return 1 + self.steps.bit_length()

    @cached_property
    def _odds(self) -> list[float]:
        """For each edge, the probability that noise alone gives such large counts above it."""
        found = []
        for place in range(len(self.edges)):
            sums = [self.counts[place : place + 2**j] for j in range(self._spans)]
            found.append(min(noise_odds(len(s), float(s.sum()) / self.size) for s in sums))
        return found

    @property
    def _unlikely(self) -> float:
        return math.log((1 - CONFIDENCE) / (len(self.edges) * self._spans))

    @cached_property
    def _top(self) -> int:
        """The index of the highest edge from which people are detected; -1 if there is none."""
        found = -1
        for place, (edge, odds) in enumerate(zip(self.edges, self._odds, strict=True)):
            rare = self._unlikely
            if found >= 0:
                longer = _STEEP * math.log(edge / self.edges[found]) + 1.0
                rare = math.log(0.5 / (self.steps * self._spans)) - longer
            found = place if odds < rare else found
        return found

    @property
    def top(self) -> int:
        """The index of the highest edge below which people are detected or assumed."""
        return self._top if self._top >= 0 else self.unseen

    @cached_property
    def _farthest(self) -> int:
        """The top, or a higher edge at which people are detected who are too few for such a cap.

        A bound that long is useless, so noise may cause it in only one case of four hundred.
        """
        rare = self._unlikely + math.log(1 - CONFIDENCE)
        seen = [place for place, odds in enumerate(self._odds) if odds < rare]
        return max([self.top, *seen])

    def cap(self, noise: float) -> float:
        """Return the edge that minimises noise plus clipping bias.

        The noise is ``noise`` per unit of the cap.

        Both are for the sum over all groups. It may be an edge in the first factor of two beyond
        the top, but none farther up, because nothing was detected there.
        """
        places = self.edges[: self.top + self.steps + 1]
        loss = [math.hypot(noise * edge, self.cut(float(edge))) for edge in places]
        return float(places[int(np.argmin(loss))])

    def cut(self, cap: float) -> float:
        """Return the expected clipping bias of a cap (one of the edges), summed over all people."""
        beyond = self._beyond(self.top, 1)
        found = self._below(cap, self.top, beyond)
        return found + self._pareto(cap, self.top, beyond, self._index(self.top, beyond, 0.0))

    def worst(self, cap: float) -> tuple[float, float]:
        """Return upper bounds on the clipping bias of a cap and on the number of clipped people."""
        end, margin = self._farthest, _RARE * self.size
        beyond = self._beyond(end, 2)
        below = self._below(cap, end, min(beyond, self.size), at_most=True)
        below += margin * max(0.0, float(self.edges[end]) - cap)
        if not beyond:
            return below, margin
        # Two doublings beyond the top, and what their noise may hide.
        beyond += math.sqrt(max(1, len(self._next(end, 2)))) * margin
        index = self._index(end, beyond, margin) if self.shown else 1.0
        return below + self._pareto(cap, end, beyond, index), beyond

    def _next(self, top: int, doublings: int) -> Floats:
        """Return the counts in so many factors of two beyond a top."""
        end = float(self.edges[top]) * 2.0 ** (doublings + 0.5 / self.steps)
        return self.counts[top + 1 : int(np.searchsorted(self.edges, end))]

    def _beyond(self, top: int, doublings: int) -> float:
        """Return the estimated number of people in so many factors of two beyond a top."""
        if self.closed and top == len(self.edges) - 1:
            return 0.0
        return max(self.size, float(self._next(top, doublings).sum()))

    def _index(self, end: int, beyond: float, margin: float) -> float:
        """Return the Pareto index of the tail: the steepest of several slopes."""
        index, top = 1.0, float(self.edges[end])
        for back in range(1, _SEEN + 1):
            place = max(-1, end - back * self.steps)
            # The first edge is one record, which stands for lengths from a half to one and a half.
            low = float(self.edges[place]) if place >= 0 else float(self.edges[0]) / 3
            counts = self.counts[place + 1 : end + 1]
            seen = max(float(counts.sum()) - margin * math.sqrt(len(counts)), 0.0)
            if beyond:
                index = max(index, math.log1p(seen / beyond) / math.log(top / low))
        return index

    def _pareto(self, cap: float, top: int, beyond: float, index: float) -> float:
        """Return the integral of people above a length, from the cap or top to the last edge."""
        start, last = float(self.edges[top]), float(self.edges[-1])
        cap = max(cap, start)
        if last <= cap:
            return 0.0
        if index == 1.0:
            return beyond * start * math.log(last / cap)
        rest = math.pow(cap / start, 1 - index) - math.pow(last / start, 1 - index)
        return beyond * start * rest / (index - 1)

    def _below(self, cap: float, top: int, beyond: float, *, at_most: bool = False) -> float:
        """Return the integral of people above a length, from the cap to the top.

        People are assumed to lie evenly between two edges; for an upper bound, all at the upper
        one.
        """
        found, above = 0.0, beyond
        for place in range(top, 0, -1):
            if self.edges[place - 1] < cap:
                break
            before = max(above, above + float(self.counts[place]))
            people = before if at_most else (above + before) / 2
            found += (self.edges[place] - self.edges[place - 1]) * people
            above = before
        return found


def noise_odds(count: int, total: float) -> float:
    r"""Return the log probability that a sum of standard Laplace variables exceeds this.

    Such a sum is the difference of two gamma variables of the same shape n. It exceeds t > 0 with
    probability :math:`e^{-t} \sum_{i<n} a_i t^i / i!`, where :math:`a_i` is the probability of
    fewer than n - i heads before the n-th tail of a fair coin.

    >>> round(noise_odds(1, 3.0), 2), round(noise_odds(4, 10.0), 2), noise_odds(2, -1.0)
    (-3.69, -6.83, 0.0)
    """
    if total <= 0.0:
        return 0.0
    return math.log(float(np.polynomial.polynomial.polyval(total, _weights(count)))) - total


@lru_cache(maxsize=64)
def _weights(count: int) -> Floats:
    places = np.arange(count)
    heads = [math.comb(count - 1 + j, j) * 0.5 ** (count + j) for j in range(count)]
    return np.cumsum(heads)[::-1] / np.cumprod(np.maximum(places, 1).astype(float))
