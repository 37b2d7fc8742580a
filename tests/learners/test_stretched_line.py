"""A line seen from one of its points: every point is there, and octaves weigh alike."""

import numpy as np
import pytest

from quorate.core.questions.lines import opened_line
from quorate.learners.stretched_line import Span, StretchedLine
from sealing import moved_line

LINES = [
    StretchedLine((Span(0, 9, 4),)),
    StretchedLine((Span(0, 0, 0),)),
    StretchedLine((Span(0, 99, 0),)),
    StretchedLine((Span(0, 99, 99),)),
    StretchedLine((Span(0, 50, 7), Span(51, 99, 57))),
]


def pieces(line, starts, losses):
    """Return lengths and losses of the pieces of a stretched line."""
    return opened_line(line.losses(moved_line(starts, losses, line.size)))


@pytest.mark.parametrize("line", LINES)
def test_copies_follow_the_octave_of_the_distance_and_repeat_each_point_in_order(line):
    points = [line.point(place) for place in range(line.total)]
    assert points == sorted(points)
    copies = np.bincount(points)
    halvings = line.size.bit_length()
    for span in line.spans:
        for u in range(span.first, span.last + 1):
            octave = max(1, abs(u - span.centre)).bit_length() - 1
            assert copies[u] == 2 ** max(0, halvings - octave)


@pytest.mark.parametrize("line", LINES)
def test_pieces_have_the_copies_and_losses_of_their_points(line):
    rng = np.random.default_rng(0)
    inner = np.unique(rng.integers(0, line.size, 5))
    starts = np.unique(np.concatenate([[0], inner])).astype(np.uint64)
    losses = rng.integers(0, 9, starts.size)
    sizes, found = pieces(line, starts, losses)
    assert int(sizes.sum()) == line.total
    by_copy = np.repeat(found, sizes.astype(int))
    for place in range(0, line.total, 7):
        piece = np.searchsorted(starts, line.point(place), side="right") - 1
        assert by_copy[place] == losses[piece]


@pytest.mark.parametrize("size", [2**32 + 1, 2**63 + 1, 2**64 - 2])
def test_the_largest_lines_stay_below_64_bits_and_reach_their_ends(size):
    line = StretchedLine((Span(0, size - 1, size // 3),))
    assert size <= line.total < 2**64
    assert line.point(0) == 0
    assert line.point(line.total - 1) == size - 1
    sizes, _ = pieces(line, np.zeros(1, dtype=np.uint64), np.zeros(1, dtype=np.int64))
    assert sum(map(int, sizes)) == line.total


def test_near_points_weigh_as_much_as_far_ones_together():
    line = StretchedLine((Span(0, 2**32, 2**31),))
    starts = np.array([0, 2**31 - 2**16, 2**31 + 2**16], dtype=np.uint64)
    sizes, losses = pieces(line, starts, np.array([0, 1, 0]))
    near = int(sizes[losses == 1].sum())
    assert 0.4 < near / line.total < 0.7
