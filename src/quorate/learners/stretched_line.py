"""A line stretched around one of its points, so that every octave of distance weighs the same.

A private choice among 2^32 points finds a good point only if it outweighs all the others, and most
points of a huge domain are far away from all people. Once a central position was released, the line
may be stretched around it. Then each octave of distance from the centre weighs about the same, and
the points near the centre weigh about as much as the many far ones. Every point keeps at least one
copy, so every point can be chosen, and a choice on the stretched line is a choice on the original
line.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from itertools import accumulate

import numpy as np

from quorate.core.questions.lines import SealedLine

__all__ = ["Span", "StretchedLine", "most_copies"]

# machine: copies of the nearest points: 2^50; together with 2^63 far points they are fewer than
# 2^64.
_MOST_HALVINGS = 50


@dataclass(frozen=True)
class Span:
    """Consecutive points of a line, and a centre among them.

    >>> Span(first=0, last=9, centre=4).starts(halvings=2)
    [(0, 1), (1, 2), (3, 4), (6, 2), (8, 1)]
    """

    first: int
    last: int
    centre: int

    def starts(self, *, halvings: int) -> list[tuple[int, int]]:
        """Return where the number of copies changes, and the new numbers of copies."""
        copies: dict[int, int] = {}
        for octave in range((self.last - self.first + 1).bit_length(), -1, -1):
            # Points at a distance of 2^octave to 2^(octave + 1) - 1, and the centre with the first.
            weight = 1 << max(0, halvings - octave)
            copies[max(self.first, self.centre - (2 << octave) + 1)] = weight
        for octave in range((self.last - self.first + 1).bit_length()):
            beyond = self.centre + (2 << octave)
            if beyond <= self.last:
                copies[beyond] = 1 << max(0, halvings - octave - 1)
        changes: list[tuple[int, int]] = []
        for start, weight in sorted(copies.items()):
            if not changes or changes[-1][1] != weight:
                changes.append((start, weight))
        return changes


@dataclass(frozen=True)
class StretchedLine:
    """A line of spans, in which each point is repeated; the span determines how often.

    >>> line = StretchedLine((Span(0, 9, 4),))
    >>> line.total, [line.point(place) for place in (0, 10, 51, 52)]
    (92, [0, 1, 4, 5])
    """

    spans: tuple[Span, ...]

    @cached_property
    def _segments(self) -> list[tuple[int, int]]:
        for halvings in (min(_MOST_HALVINGS, self.size.bit_length()), 0):
            found = [each for span in self.spans for each in span.starts(halvings=halvings)]
            if sum(self._copies(found)) < 2**64:
                break
        return found

    def _copies(self, segments: list[tuple[int, int]]) -> list[int]:
        ends = [start for start, _ in segments[1:]] + [self.size]
        return [(end - at) * weight for (at, weight), end in zip(segments, ends, strict=True)]

    @property
    def size(self) -> int:
        """The number of points."""
        return self.spans[-1].last + 1

    @property
    def total(self) -> int:
        """The number of copies, fewer than 2**64."""
        return sum(self._copies(self._segments))

    def losses(self, line: SealedLine) -> SealedLine:
        """Return losses along the line for every copy of a point."""
        places = np.array([start for start, _ in self._segments], dtype=np.uint64)
        copies = np.array([weight for _, weight in self._segments], dtype=np.uint64)
        return line.stretched(places, copies)

    def point(self, place: int) -> int:
        """Return the point of copy number ``place``."""
        copies = self._copies(self._segments)
        before = [0, *accumulate(copies)]
        which = next(i for i in range(len(copies)) if place < before[i + 1])
        start, weight = self._segments[which]
        return start + (place - before[which]) // weight


def most_copies(size: int) -> int:
    """Return an upper bound on the copies of any stretched line with this many points.

    An octave of distance has at most 2^octave points on either side of its centre, each with
    2^(halvings - octave) copies or one.

    >>> most_copies(10) >= StretchedLine((Span(0, 9, 4),)).total
    True
    """
    octaves = size.bit_length() + 1
    copies = octaves * (4 << min(_MOST_HALVINGS, size.bit_length())) + 2 * size
    return min(2**64 - 1, copies)
