r"""Caps and their clipping bias from a noisy tally of lengths; only released numbers are used.

The lengths of people's contributions are counted between public edges, one or two per factor of
two. People are *detected* above an edge if some sum of counts above it is too large for noise. The
test is wrong in at most one of 20 cases, for all edges together. The *top* is the highest edge with
enough evidence. The search goes upwards from edge to edge. An edge that is close to the last one
found needs less evidence than one that is far away, because a cap that is too large adds noise in
proportion to its excess. Let t be the top. The expected number of people with lengths from t to 4 t
is the noisy count of this range, but at least one noise scale. Beyond 4 t it falls as a Pareto law,
with the smallest index that the counts below t allow (:meth:`Tail.index`).

The cap is the edge at which noise and clipping bias balance. The bound on the clipping bias assumes
the slowest law that the noisy counts do not exclude, the largest number of people that noise may
hide, and the longest contribution that is likely under this law. If people are too few to show how
their tail falls, the bound is wide. If nobody is detected there is no bound.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property, lru_cache, partial

import numpy as np
from numpy.typing import NDArray

from quorate.tabulate.released import CONFIDENCE

__all__ = ["RARELY", "Tail", "ladder", "noise_odds", "whole_ladder"]

Floats = NDArray[np.float64]

# derived: the least whole number at which caps that noise lengthens by 2^j, with odds e^-1 2^-3j or
# less, have a finite mean square (they add less than .4 to it; with 2^-2j it is infinite).
_STEEP = 3.0
# How many doublings below the top say how a tail falls.
_SEEN = 3
RARELY = 0.001  # public: how often an error may be ten times as large as its bound
# What is as likely to be off to one side as to the other.
_EVEN = 0.5
# machine: powers that differ by less are not told apart.
_FLAT = 1e-9


def ladder(low: float, high: float, steps: int) -> Floats:
    """Return edges from ``low`` upwards, ``steps`` per factor of two, to at least ``high``.

    >>> ladder(1.0, 5.0, 1).tolist(), ladder(1.0, 2.0, 2).round(2).tolist()
    ([1.0, 2.0, 4.0, 8.0], [1.0, 1.41, 2.0])
    """
    return np.asarray(
        low * 2.0 ** (np.arange(math.ceil(math.log2(high / low)) * steps + 1) / steps)
    )


def whole_ladder(high: float, steps: int) -> Floats:
    """Return whole numbers up to ``high``, about this many per factor of two.

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
        The index of the edge that is assumed to be the top if nobody is detected.
    shortest : float, default=0.0
        A lower bound on the lengths that are counted at the first edge; 0 if none is known.
    whole : bool, default=False
        Whether lengths are whole numbers; each then represents the lengths within half a unit.
    least : float, default=0.0
        A lower bound on the index of the tail.

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
    shortest: float = 0.0
    whole: bool = False
    least: float = 0.0

    @property
    def known(self) -> bool:
        """Whether anybody is detected, or no length can be above the last edge."""
        return self._top >= 0 or self.closed

    @property
    def _spans(self) -> int:
        """How many sums of 1, 2, 4, ... counts are tested at an edge, up to a factor of four."""
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
        """The top, or a higher edge with people who are too few to justify a cap there.

        Such a wide bound is useless, so noise may cause it in only one case of four hundred.
        """
        rare = self._unlikely + math.log(1 - CONFIDENCE)
        seen = [place for place, odds in enumerate(self._odds) if odds < rare]
        return max([self.top, *seen])

    def cap(self, noise: float) -> float:
        """Return the edge that minimises noise plus clipping bias.

        ``noise`` is the noise divided by the cap.

        Both are for the sum over all groups. It may be an edge in the first factor of two beyond
        the top, but none farther up, because nothing was detected there.
        """
        places = self.edges[: self.top + self.steps + 1]
        loss = [math.hypot(noise * edge, self.cut(float(edge))) for edge in places]
        return float(places[int(np.argmin(loss))])

    def cut(self, cap: float) -> float:
        """Return the expected clipping bias of a cap (one of the edges), summed over all people."""
        return self._lost(cap, self.top, self._expected, 1.0, 0.0)[0]

    def worst(self, cap: float, *, far: bool = False) -> tuple[float, float, float]:
        """Return bounds on a cap's clipping bias, the people above, and the bias of one person.

        The bound covers two cases. Noise may hide people: the number of people and the index of
        their tail are then both off, each with a probability of the root of 1/20. Or some
        contributions are longer than expected, with a probability of half of 1/20. With ``far`` the
        bound is exceeded in less than one run of a thousand.
        """
        level, root = 1 - CONFIDENCE, math.sqrt(1 - CONFIDENCE)
        cases = (root, _EVEN), (_EVEN, level / 2)
        if far:
            cases = (RARELY, _EVEN), (root, RARELY / 2)
        end = self._farthest
        beyond = [self._beyond(end, hidden) for hidden, _ in cases]
        hides = self._unsure(1, 0.0, cases[0][0])
        found = [
            self._lost(cap, end, b, odds, hides) for b, (_, odds) in zip(beyond, cases, strict=True)
        ]
        lost, one = zip(*found, strict=True)
        return max(lost), beyond[0][0], max(one)

    def index(self, level: float) -> float:
        """Return a lower bound on the index of the tail; it is wrong with probability ``level``."""
        return self._steepest(self._farthest, level)

    @cached_property
    def _expected(self) -> tuple[float, float]:
        return self._beyond(self.top, _EVEN)

    def _lost(
        self, cap: float, end: int, beyond: tuple[float, float], odds: float, hides: float
    ) -> tuple[float, float]:
        """Return the clipping bias of all people together, and of the longest contribution.

        The longest contribution is the length that only ``odds`` people are expected to exceed. If
        noise may hide people, all lengths are assumed at the upper edge of their interval.
        """
        (people, index), start = beyond, float(self.edges[end])
        last, more = float(self.edges[-1]), math.log(max(1.0, people / odds))
        if not people:
            last = start
        elif more < index * math.log(last / start):
            last = start * math.exp(more / index)
        one = max(0.0, last - cap)
        lost = self._below(cap, end, max(people, hides), at_most=hides > 0.0)
        lost += _pareto(max(cap, start), last, start, index) * people
        return lost + one * (people > 0), one

    def _beyond(self, end: int, level: float) -> tuple[float, float]:
        """Return an upper bound on the people above an edge, and a lower bound on their index."""
        final = len(self.edges) - 1
        if self.closed and end == final:
            return 0.0, math.inf
        index, most = self._steepest(end, level), math.inf
        for last in (min(end + 2 * self.steps, final), final):
            seen = float(self.counts[end + 1 : last + 1].sum())
            hidden = 0.0 if level == _EVEN else self._unsure(last - end, seen, level / 2)
            most = min(most, (max(self.size, seen) + hidden) / self._within(end, last, index))
        return most, index

    def _steepest(self, end: int, level: float) -> float:
        """Return the largest lower bound on the index that the counts below an edge give.

        Tails of activity become steeper for larger lengths, as those of equal people, log-normal
        and Pareto laws do. So a bound from lower lengths also holds above them. Let T be an edge,
        and count people from ``low`` to T and from T to ``last``. With an index of at most a, the
        first count is at most ``((T/low)^a - 1) / (1 - (last/T)^-a)`` times the second. Several
        windows are tried. Each allows for noise and sampling error, with an equal part of
        ``level``.
        """
        from scipy.optimize import brentq

        tops = range(end, max(-1, end - (_SEEN + 1) * self.steps), -self.steps)
        found, level = self.least, level / (len(tops) * _SEEN)
        for top in tops:
            last = min(top + 2 * self.steps, len(self.edges) - 1)
            after = max(0.0, float(self.counts[top + 1 : last + 1].sum()))
            off_after = self._unsure(last - top, after, level)
            for back in range(1, _SEEN + 1):
                place = max(-1, top - back * self.steps)
                low = self._length(place) if place >= 0 else self.shortest
                before = float(self.counts[place + 1 : top + 1].sum())
                off = self._unsure(top - place, before, level)
                if last == top or low <= 0.0 or before <= off:
                    continue
                rest = after**2 * off**2 + off_after**2 * (before**2 - off**2)
                ratio = (before**2 - off**2) / (before * after + math.sqrt(rest))
                up = math.log(self._length(top) / low)

                excess = partial(self._excess, up, top, last, ratio)
                if excess(max(found, _FLAT)) < 0.0:
                    found = brentq(excess, max(found, _FLAT), math.log1p(ratio) / up + 1.0)
        return found

    def _excess(self, up: float, top: int, last: int, ratio: float, index: float) -> float:
        """Return the largest ratio of counts that an index allows, minus the given ratio."""
        return math.expm1(index * up) / self._within(top, last, index) - ratio

    def _unsure(self, count: int, seen: float, level: float) -> float:
        """Return the error bound of a sum of ``count`` counts: noise and sampling error."""
        from scipy.special import ndtri

        noise = noise_quantile(count, level) * self.size
        return math.hypot(noise, float(ndtri(level)) * math.sqrt(max(0.0, seen)))

    def _length(self, place: int) -> float:
        return float(self.edges[place]) + self.whole / 2

    def _within(self, start: int, last: int, index: float) -> float:
        """Return the share of the people above edge ``start`` who are not above edge ``last``."""
        if last == len(self.edges) - 1:
            return 1.0
        ratio = self._length(last) / self._length(start)
        return -math.expm1(-max(index, _FLAT) * math.log(ratio))

    def _below(self, cap: float, top: int, beyond: float, *, at_most: bool) -> float:
        """Return the integral, from the cap to the top, of the number of people above each length.

        Lengths are assumed to be uniform between two edges; for an upper bound, all at the upper
        edge.
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


def _pareto(low: float, high: float, start: float, index: float) -> float:
    """Return the integral of (x/start)^-index, between two lengths.

    >>> _pareto(1.0, 4.0, 1.0, 2.0), round(_pareto(1.0, 4.0, 1.0, 1.0), 6) == round(math.log(4), 6)
    (0.75, True)
    """
    if high <= low or index == math.inf:
        return 0.0
    width, steep = math.log(high / low), 1.0 - index
    # (e^(steep width) - 1) / steep, which is width where steep is 0.
    whole = width if abs(steep * width) < _FLAT else math.expm1(steep * width) / steep
    return low * math.pow(low / start, -index) * whole


@lru_cache(maxsize=4096)
def noise_quantile(count: int, level: float) -> float:
    """Return what a sum of ``count`` standard Laplace variables exceeds with probability ``level``.

    >>> round(noise_quantile(1, 0.05), 3), round(noise_quantile(4, 0.05), 2), noise_quantile(0, 0.1)
    (2.303, 4.63, 0.0)
    """
    from scipy.optimize import brentq

    if count == 0:
        return 0.0
    high = 8.0 * count - 8.0 * math.log(level)
    return float(brentq(lambda total: noise_odds(count, total) - math.log(level), 0.0, high))


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
