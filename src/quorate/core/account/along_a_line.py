r"""Private choice of a point on a line: a closed operation of the account.

The losses on a line are constant between neighbouring values, so 2^63 points are divided into few
pieces. The exponential mechanism chooses a piece by its size and its loss, and then a point inside
it. This has the same law as choosing among all points, and its cost does not grow with their
number.

Proof. Let S be the ``spread`` of the sealed losses: the sensitivity of a difference of two losses.
Adding a constant to all losses of the neighbour does not change its law. Choose the constant such
that :math:`0 \le s'(u) - s(u) \le S` for every point u. Then :math:`e^{-\lambda s(u)}` and its sum
over all points change by factors in :math:`[e^{-\lambda S}, 1]`, so the probability of u changes by
at most
:math:`e^{\lambda S}`; and permute-and-flip at the same rate loses no more
(:class:`~quorate.mechanisms.choices.choose. ChooseBest`). This loss, an exact fraction, is charged.
A piece of L points of loss s has the weight :math:`L e^{-\lambda s}` and its points are equally
likely, so the division into pieces does not change the law.

*Scales.* Candidates may also be the points of several public grids, each with a multiplicity. This
is a finite public list of points, and a user changes their losses equally. A piece with W entries
of the list has the weight :math:`W e^{-\lambda s}`; a uniform number below W selects one of its
entries; the number of the copy is not released. The list of all points once is the grid of stride
1.

For exact sampling see ``docs/proofs/ordered_choice.md``.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from operator import index

import numpy as np
from numpy.typing import NDArray

from quorate._validate import exact, is_integer
from quorate.core.account.account import Account, sample_for
from quorate.core.noise import NoiseSource
from quorate.core.noise.exponential import check_pieces, choose_weighted
from quorate.core.noise.flips import first_heads
from quorate.core.questions.lines import SealedLine, opened_line
from quorate.core.sealed import check_sealed
from quorate.exceptions import ParameterError

__all__ = ["EVERY_POINT", "Scale", "choose_point"]

Integers = NDArray[np.int64]
Places = NDArray[np.uint64]

Scale = tuple[int, int]
"""A stride, whose multiples are the points of the scale, and how often each is a candidate."""

EVERY_POINT: tuple[Scale, ...] = ((1, 1),)

# Numbers of multiples are found in 64 bits.
_LONGEST = 2**62


def choose_point(
    line: SealedLine,
    *,
    rate: Fraction,
    account: Account,
    lower: int = 0,
    scales: Sequence[Scale] = EVERY_POINT,
    flips: bool = False,
) -> int:
    """Return a point of {lower, ..., lower + size - 1} whose loss is close to the smallest.

    Parameters
    ----------
    line : SealedLine
    rate : Fraction
        The factor of losses in the exponent; the cost is this factor times the spread of the sealed
        losses.
    account : Account
    lower : int, default=0
        The number of the first point.
    scales : sequence of (int, int)
        Strides and multiplicities: the multiples of each stride are candidates, each this many
        times.
    flips : bool, default=False
        Whether to choose by permute-and-flip instead of the exponential mechanism; only if every
        point occurs once.

    Examples
    --------
    >>> from quorate.core.by_hand import line_by_hand
    >>> lengths = np.array([2**62, 1000, 2**62], dtype=np.uint64)
    >>> line = line_by_hand(lengths, np.array([50, 0, 50]))
    >>> account = Account.open(epsilon=4.0)
    >>> 0 <= choose_point(line, rate=Fraction(2), account=account, lower=-(2**62)) < 1000
    True
    >>> account.left
    Fraction(0, 1)
    """
    check_sealed(line, SealedLine)
    account.check_seal(line)
    scales = tuple(scales)
    plain = scales == EVERY_POINT
    if not plain and (flips or line.size > _LONGEST or not all(map(_is_scale, scales))):
        raise ParameterError(
            "Expected strides and copies of at least 1, along at most 2^62 points, and every point "
            "once where permute-and-flip chooses."
        )
    sizes, losses = check_pieces(*opened_line(line))
    entries = _Entries(index(lower), sizes, scales)
    if not 0 < entries.total < 2**64:
        raise ParameterError("Expected at least one and fewer than 2^64 candidates with copies.")

    def draw(noise: NoiseSource) -> int:
        if flips:
            return _flipped(sizes, losses, rate=rate, noise=noise)
        weights = np.sum(entries.weights, axis=0)
        piece = choose_weighted(weights, losses, rate=rate, noise=noise)
        return entries.number(piece, noise.uniform_below(int(weights[piece])))

    number = sample_for(
        account,
        "ordered_flips" if flips else "ordered_choice",
        draw,
        held=(entries, losses),
        loss=rate * exact(line.moves.spread),
        rate=rate,
        lower=lower,
        size=line.size,
        scales=scales,
    )
    return entries.point(number)


@dataclass(frozen=True)
class _Entries:
    """The list of candidates, grid by grid, and how many of them lie in each piece."""

    lower: int
    sizes: Places
    scales: tuple[Scale, ...]

    @cached_property
    def before(self) -> list[Places]:
        """The number of multiples of each stride before each edge of a piece."""
        edges = np.concatenate([np.zeros(1, np.uint64), np.cumsum(self.sizes)])
        strides = [stride for stride, _ in self.scales]
        rooms = (np.uint64(stride - 1 - -self.lower % stride) for stride in strides)
        return [
            (edges + room) // np.uint64(stride) for stride, room in zip(strides, rooms, strict=True)
        ]

    @property
    def total(self) -> int:
        """The number of entries, which is public; above 2^64 the weights would wrap around."""
        pairs = zip(self.scales, self.before, strict=True)
        return sum(copies * int(before[-1]) for (_, copies), before in pairs)

    @cached_property
    def held(self) -> list[Places]:
        """How many multiples of each stride lie in each piece."""
        return [np.diff(before) for before in self.before]

    @cached_property
    def weights(self) -> list[Places]:
        """How many entries of each grid lie in each piece."""
        return [
            np.uint64(copies) * held
            for (_, copies), held in zip(self.scales, self.held, strict=True)
        ]

    def number(self, piece: int, drawn: int) -> int:
        """Return the index of the entry of a piece that the random number ``drawn`` selects."""
        earlier = 0
        for (_, copies), before in zip(self.scales, self.before, strict=True):
            first, last = int(before[piece]), int(before[piece + 1])
            if drawn < copies * (last - first):
                return earlier + first + drawn // copies
            drawn -= copies * (last - first)
            earlier += int(before[-1])
        raise AssertionError("A number was drawn beyond its piece.")

    def point(self, number: int) -> int:
        """Return the point of an entry."""
        for (stride, _), before in zip(self.scales, self.before, strict=True):
            if number < int(before[-1]):
                return self.lower + -self.lower % stride + number * stride
            number -= int(before[-1])
        raise AssertionError("There are not so many points.")


def _is_scale(scale: Scale) -> bool:
    return all(is_integer(number) and 0 < number < _LONGEST for number in scale)


def _flipped(sizes: Places, losses: Integers, *, rate: Fraction, noise: NoiseSource) -> int:
    """Return the index of the point that permute-and-flip over all points chooses."""
    covered = np.flatnonzero(sizes)
    levels, level = np.unique(losses[covered], return_inverse=True)
    held = [covered[level == each] for each in range(len(levels))]
    points = [int(np.sum(sizes[pieces])) for pieces in held]
    # Python's own integers: gaps may span all of 64 bits.
    gaps = [int(loss) - int(levels[0]) for loss in levels]
    pieces = held[first_heads(points, gaps, rate=rate, noise=noise)]
    # The pieces of the level laid end to end; they are fewer than 2**64 points.
    ends = np.cumsum(sizes[pieces])
    place = noise.uniform_below(int(ends[-1]))
    which = int(np.searchsorted(ends, np.uint64(place), side="right"))
    inside = place - (int(ends[which - 1]) if which else 0)
    return int(np.sum(sizes[: pieces[which]])) + inside
