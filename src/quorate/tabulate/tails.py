r"""From a noisy tally of lengths to a cap, and to what it cuts: nothing here sees people.

The length of a person's contribution is tallied between public edges, each at most twice the one
before. The *top* is the highest edge below which people are seen: first a count (or the sum of two)
that noise exceeds nowhere in 19 of 20 cases; going up from there, those that exceed what noise may
well do, which may be the less the higher they are. Where nobody is longer than the last edge, the
first rule is enough. Beyond the top as many are expected as the
next count says, one size of the noise at least; they become fewer as a Pareto law whose index is
read off the counts below, over one to three doublings, and which never falls more slowly than 1/x.

A cap is the edge where noise and what is cut balance. A bound on what it cuts takes counts beyond
the top as high, and those below as low, as they are in one case of twenty.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from quorate.tabulate.budget import KNOWN
from quorate.tabulate.released import CONFIDENCE

__all__ = ["Tail", "doublings", "whole_edges"]

Floats = NDArray[np.float64]

# A Laplace variable exceeds so many of its sizes in one case of twenty, on one side.
_RARE = math.log(10.0)
# Noise lengthens a cap by 2^j with odds e^-1 2^-3j or less, which adds up to less than .4 to the
# mean square of a cap: for two of the three an infinite mean square is what 2^-2j has.
_STEEP = 3.0
# How many doublings below the top say how a tail falls; KNOWN is two more of them.
_SEEN = 3


def doublings(low: float, high: float) -> Floats:
    """Return edges from ``low`` on, each twice the one before, the last one at least ``high``.

    >>> doublings(1.0, 5.0).tolist()
    [1.0, 2.0, 4.0, 8.0]
    """
    return np.asarray(low * 2.0 ** np.arange(math.ceil(math.log2(high / low)) + 1))


def whole_edges(high: int) -> Floats:
    """Return whole numbers up to ``high``, two a doubling: how many groups people may be in.

    >>> whole_edges(20).tolist()
    [1.0, 2.0, 3.0, 4.0, 6.0, 8.0, 11.0, 16.0, 20.0]
    """
    steps = np.rint(2.0 ** (np.arange(2 * math.ceil(math.log2(max(2, high))) + 1) / 2))
    return np.unique(np.minimum(steps, high))


@dataclass(frozen=True, kw_only=True, eq=False)
class Tail:
    """What a noisy tally of lengths says about people who are longer than a cap.

    Parameters
    ----------
    edges : array of shape (m,)
        Increasing.
    counts : array of shape (m,)
        Noisy: how many people are no longer than an edge, and longer than the one before.
    size : float
        Of the noise: the scale of its Laplace law.
    nothing : float, default=0
        Noisy: how many people are in a group, and add nothing to this part.
    closed : bool, default=False
        Whether nobody is longer than the last edge.
    unseen : int, default=0
        The place of the top where nobody is seen.

    Examples
    --------
    >>> alike = Tail(edges=doublings(1, 100), counts=np.r_[3, -5, 2, 1, 0, 2000, 4, -2], size=5.0)
    >>> alike.cap(10.0), alike.cut(32.0) < 300
    (32.0, True)
    """

    edges: Floats
    counts: Floats
    size: float
    nothing: float = 0.0
    closed: bool = False
    unseen: int = 0

    @property
    def known(self) -> bool:
        """Whether so many people are seen that their tail can be told from noise."""
        noise = _RARE * self.size * math.sqrt(len(self.counts))
        seen = self.nothing + float(self.counts.sum())
        return seen >= KNOWN * self.size - noise and (self._top >= 0 or self.closed)

    @cached_property
    def _top(self) -> int:
        """The place of the highest edge below which people are seen; -1 if there is none."""
        found, first = -1, -math.log(2 * (1 - CONFIDENCE) / len(self.counts))
        pairs = self.counts + np.append(self.counts[1:], 0.0)
        for place, (one, two) in enumerate(zip(self.counts, pairs, strict=True)):
            least = first
            if found >= 0:
                higher = _STEEP * math.log(self.edges[place] / self.edges[found]) + 1.0
                least = min(higher, first) if self.closed else higher
            least *= self.size
            if one > least or two > math.sqrt(2.0) * least:
                found = place
        return found

    @property
    def top(self) -> int:
        """The place of the highest edge below which people are seen, or are taken to be."""
        return self._top if self._top >= 0 else self.unseen

    @property
    def _ends(self) -> bool:
        return self.closed and self.top == len(self.edges) - 1

    def cap(self, noise: float) -> float:
        """Return the edge where noise, ``noise`` a cap, and what is cut are least together.

        Both are about the sum over all groups. An edge beyond the top may be it, not two of them:
        nothing was seen there.
        """
        places = self.edges[: self.top + 2]
        loss = [math.hypot(noise * edge, self.cut(float(edge))) for edge in places]
        return float(places[int(np.argmin(loss))])

    def cut(self, cap: float) -> float:
        """Return about how much a cap, one of the edges, cuts of all people."""
        beyond = 0.0
        if not self._ends:
            beyond = max(self.size, float(self.counts[self.top + 1 :][:1].sum()))
        index = self._index(beyond, 0.0) if beyond else 1.0
        return self._below(cap, beyond) + self._pareto(cap, beyond, index)

    def worst(self, cap: float) -> tuple[float, float]:
        """Return how much a cap cuts of all people at most, and of how many it does."""
        top = float(self.edges[self.top])
        margin = _RARE * self.size
        below = self._below(cap, 0.0 if self._ends else self.size, at_most=True)
        below += margin * max(0.0, top - cap)
        if self._ends:
            return below, margin
        # Two counts beyond the top, and what their noise may hide.
        two = float(self.counts[self.top + 1 :][:2].sum())
        beyond = max(self.size, two) + math.sqrt(2.0) * margin
        return below + self._pareto(cap, beyond, self._index(beyond, margin)), beyond

    def _index(self, beyond: float, margin: float) -> float:
        """Return how steeply the tail falls: the Pareto index of the steepest of some slopes."""
        place, index = self.top, 1.0
        for back in range(1, min(_SEEN, place + 1) + 1):
            seen = float(self.counts[place + 1 - back : place + 1].sum())
            low = max(seen - margin * math.sqrt(back), 0.0)
            index = max(index, math.log2((low + beyond) / beyond) / back)
        return index

    def _pareto(self, cap: float, beyond: float, index: float) -> float:
        """Return the integral of people above a length, from the cap or top to the last edge."""
        start, last = float(self.edges[self.top]), float(self.edges[-1])
        cap = max(cap, start)
        if last <= cap:
            return 0.0
        if index == 1.0:
            return beyond * start * math.log(last / cap)
        rest = math.pow(cap / start, 1 - index) - math.pow(last / start, 1 - index)
        return beyond * start * rest / (index - 1)

    def _below(self, cap: float, beyond: float, *, at_most: bool = False) -> float:
        """Return the integral of people above a length, from the cap to the top.

        People lie evenly between two edges; at most, all of them at the upper one.
        """
        found, above = 0.0, beyond
        for place in range(self.top, 0, -1):
            if self.edges[place - 1] < cap:
                break
            before = max(above, above + float(self.counts[place]))
            people = before if at_most else (above + before) / 2
            found += (self.edges[place] - self.edges[place - 1]) * people
            above = before
        return found
