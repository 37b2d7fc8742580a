r"""Shared Gumbel numbers of up to 2^63 ordered hypotheses, computed only where needed (G1).

The maximum of the Gumbel numbers of a range also has a Gumbel law, shifted by the logarithm of the
length of the range. So a tree is drawn from the root: the maximum of a node belongs to one of its
halves, with odds given by their lengths, and the other half gets a Gumbel number truncated at that
maximum. All numbers are computed from the shared seed and the node's position, so everybody gets
the same tree, whichever part of it they need.

A user's mistakes change only at the user's own records. The best sum of Gumbel number and
log-weight is found by examining ranges in the order of their upper bounds: about 35 nodes for 2^32
hypotheses.
"""

from __future__ import annotations

import heapq
import math
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from quorate import _validate
from quorate.core.users.grouping import group_by_user
from quorate.learners.concepts.mistake_events import MistakeEvents
from quorate.papers.stability.shared_seed import SharedSeed, hash_word

__all__ = ["GumbelTree", "Staircase", "staircases"]


@dataclass(frozen=True)
class Staircase:
    """A number of mistakes that is constant on consecutive ranges of hypotheses.

    Parameters
    ----------
    starts : sequence of int
        The first hypothesis of each range; the first is 0.
    heights : array of int
        The number of mistakes on each range.

    Examples
    --------
    >>> steps = Staircase([0, 10, 20], np.array([5, 2, 7]))
    >>> steps.lowest(0, 10), steps.lowest(5, 30), steps.lowest(20, 21)
    (5, 2, 7)
    """

    starts: Sequence[int]
    heights: NDArray[np.int64]
    _table: list[list[int]] = field(default_factory=list, compare=False, repr=False)

    def lowest(self, low: int, high: int) -> int:
        """Return the fewest mistakes among hypotheses low, ..., high - 1."""
        first = bisect_right(self.starts, low) - 1
        last = bisect_right(self.starts, high - 1)
        level = (last - first).bit_length() - 1
        while len(self._table) <= level:
            self._grow()
        row = self._table[level]
        return min(row[first], row[last - (1 << level)])

    def _grow(self) -> None:
        if not self._table:
            self._table.append(np.asarray(self.heights).tolist())
            return
        width = 1 << len(self._table) - 1
        row = self._table[-1]
        self._table.append(list(map(min, row, row[width:])))


def staircases(events: MistakeEvents) -> Iterator[Staircase]:
    """Yield each user's mistakes as a function of the hypothesis.

    >>> from quorate.learners.concepts import Thresholds
    >>> from quorate.core.users import UserData
    >>> one = UserData.from_arrays([[2], [5]], [0, 1], users=["a", "a"])
    >>> next(staircases(Thresholds(0, 7).mistake_events(one))).starts
    [0, 3, 6]
    """
    order = group_by_user(events.user, n_users=events.n_users)
    ends = np.cumsum(np.bincount(events.user, minlength=events.n_users))
    for user, end in enumerate(ends.tolist()):
        own = order[(ends[user - 1] if user else 0) : end]
        position, after = events.positions[own], events.after[own]
        # Of several changes at one position only the last one is attained.
        attained = np.append(position[1:] != position[:-1], True)[: len(own)]
        yield Staircase(
            [0, *position[attained].tolist()],
            np.concatenate([events.initial[user : user + 1], after[attained]]),
        )


@dataclass(frozen=True)
class GumbelTree:
    """The Gumbel numbers of ``size`` ordered hypotheses, drawn only where needed.

    Parameters
    ----------
    size : int
        At most 2^64.
    seed : SharedSeed
    stream : str, default="tree"

    Examples
    --------
    >>> tree = GumbelTree(2**63, SharedSeed(1))
    >>> steps = Staircase([0, 2**40, 2**40 + 9], np.array([50, 0, 50]))
    >>> 2**40 <= tree.choose(steps, rate=2.0) < 2**40 + 9
    True
    """

    size: int
    seed: SharedSeed
    stream: str = "tree"
    _tops: dict[tuple[int, int], float] = field(default_factory=dict, compare=False, repr=False)
    _keys: dict[str, tuple[int, int]] = field(default_factory=dict, compare=False, repr=False)

    def __post_init__(self) -> None:
        _validate.positive_integer(size=self.size)

    @property
    def depth(self) -> int:
        """Number of levels below the root."""
        return (self.size - 1).bit_length()

    def choose(self, mistakes: Staircase, *, rate: float) -> int:
        """Return the hypothesis with the largest Gumbel number minus ``rate`` x mistakes.

        With an infinite rate it is the hypothesis with the largest Gumbel number among those with
        the fewest mistakes.
        """
        sharp = rate == math.inf
        heap: list[tuple[float, float, int, int]] = []

        def look_at(level: int, place: int) -> None:
            low, high = self._range(level, place)
            lowest, top = mistakes.lowest(low, high), self.top(level, place)
            first = float(lowest) if sharp else rate * lowest - top
            heapq.heappush(heap, (first, -top, level, place))

        look_at(0, 0)
        while True:
            _, _, level, place = heapq.heappop(heap)
            if level == self.depth:
                return place
            look_at(level + 1, 2 * place)
            if (2 * place + 1) << self.depth - level - 1 < self.size:
                look_at(level + 1, 2 * place + 1)

    def top(self, level: int, place: int) -> float:
        """Return the largest Gumbel number below a node; the node must exist.

        >>> tree = GumbelTree(1000, SharedSeed(2))
        >>> max(tree.top(10, leaf) for leaf in range(1000)) == tree.top(0, 0)
        True
        """
        known = self._tops.get((level, place))
        if known is not None:
            return known
        if level == 0:
            found = math.log(self.size) - math.log(-math.log(self._uniform("root", 0)))
            self._tops[level, place] = found
            return found
        self._split(level - 1, place >> 1)
        return self._tops[level, place]

    def _split(self, level: int, place: int) -> None:
        """Draw the maxima of both halves of a node, given the maximum of the node."""
        top = self.top(level, place)
        left, right = 2 * place, 2 * place + 1
        sizes = [high - low for low, high in (self._range(level + 1, h) for h in (left, right))]
        if sizes[1] <= 0:
            self._tops[level + 1, left] = top
            return
        stays_left = self._uniform(f"side {level}", place) < sizes[0] / (sizes[0] + sizes[1])
        winner, loser = (left, right) if stays_left else (right, left)
        centre = math.log(sizes[loser - left])
        u = self._uniform(f"rest {level}", place)
        self._tops[level + 1, winner] = top
        # A Gumbel number around the centre, given that it is at most the top.
        below = centre - math.log(math.exp(centre - top) - math.log(u))
        self._tops[level + 1, loser] = min(below, top)

    def _range(self, level: int, place: int) -> tuple[int, int]:
        shift = self.depth - level
        return min(place << shift, self.size), min((place + 1) << shift, self.size)

    def _uniform(self, name: str, place: int) -> float:
        keys = self._keys.get(name)
        if keys is None:
            keys = self._keys[name] = self.seed.keys(f"{self.stream} {name}")
        return ((hash_word(place, keys) >> 12) + 0.5) * 2.0**-52
