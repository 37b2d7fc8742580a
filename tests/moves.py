"""How far one user really moved what noise was added to, and what that cost.

:func:`loss_of` runs a program on two neighbouring data sets with the same released values and
compares the *exact* numbers that it handed to the noise, draw by draw. Whatever made them differ,
the user's own contribution or somebody else's that followed it, is in the sum: so it must not
exceed the guarantee, for any two neighbours. It knows neither sensitivities nor accounts.
"""

import bisect
import math

import numpy as np

from bill import gaussian_epsilon
from quorate.auditing.replay import _Forced, _Recording
from quorate.core.noise import use_noise
from quorate.mechanisms.laws import law_of


class _Looking:
    """Keeps the private numbers of every draw."""

    def __init__(self, *arguments):
        super().__init__(*arguments)
        self.looks = []

    def _add(self, law, values, scale):
        self.looks.append((law, scale, values.astype(object)))
        return super()._add(law, values, scale)

    def _choose(self, law, scores, scale):
        self.looks.append(("choice", scale, scores.astype(object)))
        return super()._choose(law, scores, scale)

    def _sample(self, method, public, draw, held):
        self.looks.append(("sample", method, law_of(method, public, held)))
        return super()._sample(method, public, draw, held)

    def _bernoulli_exp(self, x):
        self.looks.append(("coin", None, x))
        return super()._bernoulli_exp(x)


class First(_Looking, _Recording):
    """A run whose answers others get, too."""


class Second(_Looking, _Forced):
    """A run that gets the answers of another."""


def _log_chance(law, points):
    """Return the log probability of each of some integers."""
    lengths = np.array([int(length) for length in law.lengths], dtype=object)
    starts = law.lower + np.concatenate([[0], np.cumsum(lengths)[:-1]]).astype(object)
    used = [i for i, length in enumerate(lengths) if length]
    begins = [starts[i] for i in used]
    assert begins[0] <= min(points), "an outcome that one of the neighbours cannot have"
    places = [used[bisect.bisect_right(begins, point) - 1] for point in points]
    with np.errstate(divide="ignore"):
        chances = np.log([law.probabilities[i] for i in places])
    return chances - np.array([math.log(lengths[i]) for i in places])


def _of_samples(one, other):
    points = set()
    for law in (one, other):
        start = law.lower
        for length in law.lengths:
            if int(length):
                points.add(start)
            start += int(length)
    points = sorted(points)
    return float(np.max(np.abs(_log_chance(one, points) - _log_chance(other, points))))


def _of_coins(one, other):
    falls = [math.log(-math.expm1(-x)) if x else -math.inf for x in (one, other)]
    if one == other:
        return 0.0
    return max(abs(float(one - other)), abs(falls[0] - falls[1]))


def loss_of(run, data, neighbour, *, seed=0):
    """Return what ``run`` returned, the pure loss and the square of the Gaussian one."""
    first = First(seed)
    with use_noise(first):
        returned = run(data)
    with use_noise(second := Second(seed, first)):
        run(neighbour)
    assert not second.mismatches(), second.mismatches()
    assert first.calls, "nothing was drawn"
    assert len(first.looks) == len(second.looks)
    return returned, *losses(first.looks, second.looks)


def losses(first, second):
    """Return the pure loss, and the square of the Gaussian one, of two runs' private numbers."""
    pure = square = 0.0
    for (law, scale, one), (_, _, other) in zip(first, second, strict=True):
        if law == "sample":
            pure += _of_samples(one, other)
        elif law == "coin":
            pure += _of_coins(one, other)
        elif law == "choice":
            moved = one - other
            pure += float(max(moved) - min(moved)) / scale
        elif law == "discrete_gaussian":
            square += float(sum((one - other) ** 2)) / scale**2
        elif law == "cube_laplace":
            pure += float(max(abs(one - other))) / scale
        elif law == "blocks_laplace":
            pure += float(abs(one - other).sum(axis=1).max()) / scale
        elif law == "balanced_laplace":
            pure += float(sum(abs(one - other)) + abs(sum(one - other))) / scale
        else:
            pure += float(sum(abs(one - other))) / scale
    return pure, square


def epsilon_of(pure, square, delta):
    """Return the epsilon of a loss at ``delta``."""
    return pure + (gaussian_epsilon(math.sqrt(square), delta) if square else 0.0)
