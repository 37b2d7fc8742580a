"""What one person's records really moved, draw by draw, against what was written down.

A fit runs on neighbours who differ in one person, with the same released values
(:class:`Watched`, :class:`Again`). Both times every draw is written down with the numbers that got
the noise, so that what one person moved is *measured*, and no sensitivity is believed: neither that
of the mechanism nor a proof of ours. Divided by the scale of the noise and added up, it is what
these neighbours can be told apart by; :func:`recorded` is what ``guarantee_.events`` say.
"""

import math
from dataclasses import dataclass

import numpy as np

from quorate.auditing.replay import _Forced, _Recording
from quorate.core.guarantees import (
    Approximate,
    Composed,
    Gaussian,
    Nothing,
    Pure,
    Repeated,
    Subsampled,
)
from quorate.core.noise.composed_laws import SECRETS
from quorate.mechanisms.laws import law_of


@dataclass(frozen=True)
class Cost:
    """What draws cost: losses that add up, and squares of Gaussian ones that do."""

    pure: float = 0.0
    square: float = 0.0

    def __add__(self, other):
        return Cost(self.pure + other.pure, self.square + other.square)

    def times(self, count):
        return Cost(count * self.pure, count * self.square)

    def share_of(self, other):
        """Return the larger share of ``other`` that this is; more than 1 is too much."""
        pairs = ((self.pure, other.pure), (self.square, other.square))
        shares = [mine / theirs if theirs else math.inf for mine, theirs in pairs if mine]
        return max(shares, default=0.0)


def recorded(event):
    """Return what an event says was drawn; what is on a sample counts as if it were on all."""
    match event:
        case Nothing():
            return Cost()
        case Pure(epsilon=epsilon) | Approximate(epsilon=epsilon):
            return Cost(pure=float(epsilon))
        case Gaussian(noise_multiplier=multiplier):
            return Cost(square=1.0 / float(multiplier) ** 2)
        case Repeated(event=inner, count=count):
            return recorded(inner).times(count)
        case Subsampled(event=inner):
            return recorded(inner)
        case Composed(events=events):
            return sum(map(recorded, events), Cost())
    raise AssertionError(f"nobody knows what {event!r} says")


# Samplers whose exact law is asked for; others have coins of their own, which are enumerated.
_CHOICES = {"universe_choice", "ordered_flips", "ordered_choice"}


class _Watching:
    """Writes down what gets noise, beside what was asked for."""

    def __init__(self, *given):
        super().__init__(*given)
        self.noised, self.paired = [], False

    def _note(self, law, held, scale):
        # Pairs that nobody is told: one draw is about all pairings together, and the measure of one
        # of them says nothing (tests/mechanisms/means/test_pair_quantile.py).
        self.noised.append((law, None if self.paired else held, scale))
        self.paired = False

    def _add(self, law, values, scale):
        self._note(law, values.astype(object), scale)
        return super()._add(law, values, scale)

    def _choose(self, law, scores, scale):
        self._note(law, scores.astype(object), scale)
        return super()._choose(law, scores, scale)

    def _truncated(self, size, scale, reach):
        # What lies above a threshold is released, and not how many have a vote.
        self._note("truncated", None, scale)
        return self._seeded._truncated(size, scale, reach)

    def _sample(self, method, public, draw, held):
        known = method in _CHOICES and not self.paired
        self._note(method, law_of(method, public, held) if known else None, public)
        return super()._sample(method, public, draw, held)

    def _uniform_below(self, upper):
        self.paired = upper == SECRETS
        return super()._uniform_below(upper)


class Watched(_Watching, _Recording):
    """The first run."""


class Again(_Watching, _Forced):
    """The neighbour's, which is given the same releases."""


def moved(first, second):
    """Return what two runs can be told apart by, draw by draw, up to where they part."""
    total = Cost()
    for (law, mine, scale), (other, theirs, same) in zip(first.noised, second.noised, strict=False):
        alike = getattr(mine, "shape", None) == getattr(theirs, "shape", None)
        if (law, scale) != (other, same) or not alike:
            break
        total += Cost() if mine is None else _cost(law, mine, theirs, scale)
    return total


def _cost(law, mine, theirs, scale):
    if hasattr(mine, "lengths"):
        return Cost(pure=largest_ratio(mine, theirs))
    change = np.array([float(a - b) for a, b in zip(mine.ravel(), theirs.ravel(), strict=True)])
    if not change.size:
        return Cost()
    if law == "discrete_gaussian":
        return Cost(square=float(np.sum((change / scale) ** 2)))
    if law == "cube_laplace":
        return Cost(pure=float(np.abs(change).max() / scale))
    if law == "blocks_laplace":
        return Cost(pure=float(np.abs(change.reshape(mine.shape)).sum(axis=1).max() / scale))
    if law == "balanced_laplace":
        return Cost(pure=float((np.abs(change).sum() + abs(change.sum())) / scale))
    if law in ("gumbel_max", "permute_and_flip"):
        return Cost(pure=float((change.max() - change.min()) / scale))
    assert law in ("discrete_laplace", "geometric"), law
    return Cost(pure=float(np.abs(change).sum() / scale))


def largest_ratio(mine, theirs):
    """Return how much likelier an integer is under one of two laws that are flat on pieces."""
    edges, densities = [], []
    for law in (mine, theirs):
        lengths = [int(length) for length in law.lengths]
        starts = law.lower + np.concatenate([[0], np.cumsum(lengths, dtype=object)])
        edges.append(starts)
        densities.append(
            [p / n if n else 0.0 for p, n in zip(law.probabilities.tolist(), lengths, strict=True)]
        )
    points = sorted({int(edge) for each in edges for edge in each[:-1]})
    ratios = [0.0]
    for point in points:
        found = []
        for starts, density in zip(edges, densities, strict=True):
            place = int(np.searchsorted(starts.astype(object), point, side="right")) - 1
            found.append(density[place] if 0 <= place < len(density) else 0.0)
        if min(found) > 1e-250:
            ratios.append(abs(math.log(found[0] / found[1])))
    return max(ratios)
